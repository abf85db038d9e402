"""Derivatives of one op, of any order: helpers for tests at special points."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine import Builder, Limits, TensorType, Value, open_executor, registry
from engine.autodiff.vjp import vjp_or_zeros
from engine.compiler.plan import make_plan
from engine.ir.attributes import bind
from engine.ir.passes import optimise

Array = np.ndarray[Any, Any]


def derivatives(op: str, *arrays: Any, by: int | tuple[int, ...] = (0, 0), **attrs: Any) -> list[Array]:
    """Return the op's value and elementwise derivatives with respect to the operands in `by`, one after the other.

    These operands must have the shape of the result.
    """
    feeds = {i: np.asarray(a) for i, a in enumerate(arrays)}
    builder = Builder(registry())
    operands = [builder.leaf(TensorType.of(a), i) for i, a in feeds.items()]
    stated = bind(registry().ops[op].attrs, attrs)
    outputs: list[Value] = [getattr(operands[0], op)(*operands[1:], **stated)]
    for i in (by,) if isinstance(by, int) else by:
        y = outputs[-1]
        outputs += vjp_or_zeros(builder, [(y, y.full_like(1.0))], [operands[i]])
    plan = make_plan(optimise(builder.graph(outputs)), Limits())
    return open_executor("cpu").run(plan, {i: feeds[i] for i in plan.feeds})
