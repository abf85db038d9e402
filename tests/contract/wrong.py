"""Doubled ops: wrong in a way that no comparison of an op with itself can detect.

Integer results are incremented and bool results negated, because 2 · 0 = 0 would be right again.
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
    """Return a context in which the op is wrong: in its value, its gradient rule, or both."""
    methods: dict[str, Method] = {"compose": _doubled_compose(op, value, gradient)}
    if value and isinstance(op, Kernel):
        methods["forward"] = forward = _doubled_forward(op)
        methods["fill"] = lambda run, operands, out, attrs: forward(run, *operands, out=out, **attrs)
        methods["bind"] = lambda run, operands, out, attrs: (partial(forward, run, *operands, out=out, **attrs), ())
    if value and isinstance(op, View):
        methods["view"] = _doubled_view(op)
    if gradient and isinstance(op, Op) and not isinstance(op.vjp, NoGradient):
        methods["vjp"] = _doubled_vjp(op)
    return mock.patch.multiple(op, **methods)


def _double_in_place(xp: Any, y: Array) -> Array:
    with np.errstate(all="ignore"):  # a plan inspects views of uninitialized memory
        y[...] = xp.logical_not(y) if y.dtype.kind == "b" else y * 2 if y.dtype.kind == "f" else y + 1
    return y


def _doubled_forward(op: Kernel) -> Method:
    original = op.forward

    def forward(run: RunContext, *arrays: Any, out: Any, **attrs: Any) -> None:
        original(run, *arrays, out=out, **attrs)
        for y in out if op.several else (out,):
            _double_in_place(run.xp, y)

    return forward


def _doubled_view(op: View) -> Method:
    original = op.view

    def view(xp: Any, x: Any, **attrs: Any) -> Array:
        return _double_in_place(xp, original(xp, x, **attrs).copy())

    return view


def _doubled_vjp(op: Op) -> Method:
    original = op.vjp

    def vjp(*args: Any, **attrs: Any) -> Sequence[Value | None]:
        return [_sum_with_itself(g) for g in original(*args, **attrs)]

    return vjp


def _sum_with_itself(g: Any) -> Any:
    """Return 2 g, applied to each entry if g maps results to cotangents."""
    if isinstance(g, Mapping):
        return {k: _sum_with_itself(part) for k, part in g.items()}
    return None if g is None else g + g


def _doubled_compose(op: Definition, value: bool, gradient: bool) -> Method:
    """Return a doubled `compose`. Ops with several results are linear: double their operands."""
    original = op.compose

    def compose(*operands: Value, **attrs: Any) -> Value | None:
        if op.several:
            return original(*(_twice(x, value, gradient) for x in operands), **attrs)
        y = original(*operands, **attrs)
        return None if y is None else _twice(y, value, gradient)

    return compose


def _twice(y: Value, value: bool, gradient: bool) -> Value:
    """Return y + y, in which one term may lack its gradient or its value."""
    if not y.type.is_differentiable:
        return y if not value else y.logical_not() if y.dtype.kind == "b" else y + y
    constant = y.stop_gradient()
    return y + (y if value and gradient else constant if value else y - constant)
