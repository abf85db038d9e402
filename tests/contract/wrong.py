"""Ops that are wrong in a way that no comparison of an op with itself can see: twice what they should be.

Of a result that is whole or bool, where 2 · 0 = 0 would be right again, it is one more, or its negation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from engine import Value
from engine.ir.op import Definition, Kernel, NoGradient, Op, View
from engine.ir.run_context import RunContext
from tests.contract.cases import Array

Method = Callable[..., Any]


def doubled(op: Definition, *, value: bool, gradient: bool) -> AbstractContextManager[Any]:
    """Within this, the op is wrong wherever it is used: in its value, its gradient rule, or both."""
    methods: dict[str, Method] = {"compose": _composed(op, value, gradient)}
    if value and isinstance(op, Kernel):
        methods["forward"] = forward = _forward(op)
        methods["fill"] = lambda run, operands, out, attrs: forward(run, *operands, out=out, **attrs)
        methods["bind"] = lambda run, operands, out, attrs: (partial(forward, run, *operands, out=out, **attrs), ())
    if value and isinstance(op, View):
        methods["view"] = _view(op)
    if gradient and isinstance(op, Op) and not isinstance(op.vjp, NoGradient):
        methods["vjp"] = _vjp(op)
    return mock.patch.multiple(op, **methods)


def _spoil(xp: Any, y: Array) -> Array:
    with np.errstate(all="ignore"):  # a plan looks at views of memory that holds anything
        y[...] = xp.logical_not(y) if y.dtype.kind == "b" else y * 2 if y.dtype.kind == "f" else y + 1
    return y


def _forward(op: Kernel) -> Method:
    right = op.forward

    def forward(run: RunContext, *arrays: Any, out: Any, **attrs: Any) -> None:
        right(run, *arrays, out=out, **attrs)
        for y in out if op.several else (out,):
            _spoil(run.xp, y)

    return forward


def _view(op: View) -> Method:
    right = op.view

    def view(xp: Any, x: Any, **attrs: Any) -> Array:
        return _spoil(xp, right(xp, x, **attrs).copy())

    return view


def _vjp(op: Op) -> Method:
    right = op.vjp

    def vjp(*args: Any, **attrs: Any) -> Sequence[Value | None]:
        return [_sum_with_itself(g) for g in right(*args, **attrs)]

    return vjp


def _sum_with_itself(g: Any) -> Any:
    """2 g; of each, where g is a mapping from the results of an operand to their cotangents."""
    if isinstance(g, Mapping):
        return {k: _sum_with_itself(part) for k, part in g.items()}
    return None if g is None else g + g


def _composed(op: Definition, value: bool, gradient: bool) -> Method:
    """One that has several results is only linear in its operand, where there is any: that one is twice as large."""
    right = op.compose

    def compose(*operands: Value, **attrs: Any) -> Value | None:
        if op.several:
            return right(*(_twice(x, value, gradient) for x in operands), **attrs)
        y = right(*operands, **attrs)
        return None if y is None else _twice(y, value, gradient)

    return compose


def _twice(y: Value, value: bool, gradient: bool) -> Value:
    """y + y, where one of the two may have no gradient, or no value beside its gradient."""
    if not y.type.is_differentiable:
        return y if not value else y.logical_not() if y.dtype.kind == "b" else y + y
    constant = y.stop_gradient()
    return y + (y if value and gradient else constant if value else y - constant)
