"""Run one op as a client would: helpers for tests of single ops."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import pytest

from engine import (
    COTANGENTS,
    LATEST,
    Compiler,
    EngineError,
    Limits,
    Program,
    Statement,
    TensorType,
    open_executor,
    registry,
)

EXECUTOR = open_executor(os.environ.get("GRADSERVE_TEST_DEVICE", "cpu"))
ON_GPU = EXECUTOR.device != "cpu"
Array = np.ndarray[Any, Any]


def _program(op: str, arrays: tuple[Any, ...], attrs: dict[str, Any]) -> tuple[Program, dict[int, Array]]:
    ops = registry()
    feeds = {i: np.asarray(a) for i, a in enumerate(arrays)}
    leaves = [Statement(ops.ops["input"]) for _ in arrays]
    program = Program(registry(), [*leaves, Statement(ops.get(op), tuple(feeds), attrs)], opset=LATEST)
    return program, feeds


def _types(feeds: dict[int, Array]) -> dict[int, TensorType]:
    return {i: TensorType.of(a) for i, a in feeds.items()}


def run(op: str, *arrays: Any, **attrs: Any) -> Array:
    """Return the op's value."""
    program, feeds = _program(op, arrays, attrs)
    compiled = Compiler(Limits()).forward(program, _types(feeds))
    return EXECUTOR.run(compiled.plan, feeds)[0]


def grads(
    op: str, *arrays: Any, cotangent: Any = None, wrt: list[int] | None = None, **attrs: Any
) -> tuple[Array, list[Array]]:
    """Return the op's value, and the gradients of sum(value · cotangent) for the float operands (or those in `wrt`)."""
    program, feeds = _program(op, arrays, attrs)
    value = run(op, *arrays, **attrs)
    seed = np.ones_like(value) if cotangent is None else np.asarray(cotangent, value.dtype)
    inputs = [i for i, a in feeds.items() if a.dtype.kind == "f"] if wrt is None else wrt
    compiled = Compiler(Limits()).gradients(program, _types(feeds), wrt=inputs, cotangent=TensorType.of(seed))
    value, *gradients = EXECUTOR.run(compiled.plan, {**feeds, (COTANGENTS, len(feeds)): seed})
    return value, gradients


def error(op: str, *arrays: Any, **attrs: Any) -> EngineError:
    """Return the error of running the op. The operand it names must exist, and match the one in the message."""
    with pytest.raises(EngineError) as caught:
        run(op, *arrays, **attrs)
    raised = caught.value
    mentioned = re.search(r"\boperand (\d+)", raised.detail)
    if raised.operand is not None:
        assert 0 <= raised.operand < max(len(arrays), len(registry().get(op).operands))
        assert mentioned is None or int(mentioned[1]) == raised.operand
    return raised
