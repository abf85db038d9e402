"""Graphs: what they are made of, what they say as text, and when they are well-formed.

    dtypes, errors, near, familiar, truth, run_tier, precision → tensor_type, faults → kinds, sample, limits
    → attributes → op → registry → ir → program → identity
                    ↘ text → verify

What may live here: the terms in which everything else is written. What may not: ops, derivatives, execution, or an
import from another room of the engine.
"""
