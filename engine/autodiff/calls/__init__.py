"""Calls: the questions that a client can ask of a program. Each class states the nodes it needs and the results.

A call is plain data: it knows node numbers and types, but no arrays. It can be compared and hashed, so plans are cached
by call. This package holds the calls' defaults and checks, and states results in terms of the transforms. Rules of
differentiation belong to the ops; execution and the wire format live elsewhere.
"""

from __future__ import annotations

from engine.autodiff.calls.batch import STORED_VALUES, Batch, BatchSum, keeping
from engine.autodiff.calls.call import Call, Label
from engine.autodiff.calls.derivatives import COTANGENTS, HVP, JVP, VJP, Gradients, Hessian, Jacobian, Values

__all__ = [
    "COTANGENTS",
    "HVP",
    "JVP",
    "STORED_VALUES",
    "VJP",
    "Batch",
    "BatchSum",
    "Call",
    "Gradients",
    "Hessian",
    "Jacobian",
    "Label",
    "Values",
    "keeping",
]
