"""Intermediate representation: typed graphs, programs as clients write them, the contract of ops, and graph passes.

The rest of the engine is written in these terms. Ops, derivatives and execution live elsewhere, and nothing here
imports another package of the engine.
"""
