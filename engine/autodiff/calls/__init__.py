"""Calls: the questions that can be asked of a program. Each is one class: the nodes it needs, the results it writes.

A call is data: it can be compared and hashed, and a plan is cached under it. It knows node numbers and types, no
arrays. What may live here: the calls' defaults and checks, in terms of the transforms. What may not: rules of
differentiation (those of ops), execution, anything of the wire.
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
