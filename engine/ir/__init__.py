"""Intermediate representation: typed graphs, programs as clients state them, ops' contract, and passes over graphs.

What may live here: the terms in which everything else is written. What may not: ops, derivatives, execution, or an
import from another room of the engine.
"""
