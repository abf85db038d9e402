"""Errors name a parameter that is fed integers, not the node behind it, in every call that differentiates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine import (
    HVP,
    JVP,
    VJP,
    Batch,
    Call,
    Compiler,
    EngineError,
    Gradients,
    Hessian,
    Jacobian,
    Limits,
    Program,
    Statement,
    TensorType,
    analyse,
    certify,
    export_gradients,
    open_executor,
    registry,
)
from engine.compiler.compiler import CompileRequest

INT = TensorType((3,), np.dtype("int64"))
ONE = TensorType((), np.dtype("float64"))
DETAIL = "node 0 (parameter “w”): is int64, which has no derivatives: feed it as a float dtype, or take it out of "
LIMITS = Limits()


def program(last: str, leaf: str = "parameter") -> Program:
    """The mean, float64, or the sum, int64, of the squares of w."""
    ops = registry().ops
    return Program(
        registry(), [Statement(ops[leaf], name="w"), Statement(ops["square"], (0,)), Statement(ops[last], (1,))]
    )


def compiled(make: Callable[[Program], Call], shape: tuple[int, ...] = (3,)) -> Callable[[Program], Any]:
    return lambda p: Compiler(LIMITS).compile(p, {0: INT.with_shape(shape)}, make(p))


CALLS: dict[str, Callable[[Program], Any]] = {
    "gradients": compiled(Gradients.of_program),
    "gradients, wrt named": compiled(lambda p: Gradients.of_program(p, wrt=[0])),
    "vjp": compiled(lambda p: VJP.of_program(p, ((2, ONE),))),
    "jvp": compiled(lambda p: JVP.of_program(p, ((0, INT),))),
    "jacobian": compiled(Jacobian.of_program),
    "hvp": compiled(lambda p: HVP.along(p, ((0, INT),))),
    "hessian": compiled(Hessian.of_program),
    "batch": compiled(lambda p: Batch.of_program(p, {0: INT.with_shape((4, 3))}, [0]), (4, 3)),
    "plan": lambda p: analyse(CompileRequest(p, {0: INT}, Gradients.of_program(p), LIMITS)),
    "differentiate": lambda p: export_gradients(p, {0: INT}, Gradients.of_program(p), LIMITS),
    "check": lambda p: certify(
        open_executor("cpu"), p, {0: np.arange(3)}, Gradients.of_program(p), 2, 1e-6, LIMITS
    ),
}  # fmt: skip


@pytest.mark.parametrize("last", ["mean", "sum"])
@pytest.mark.parametrize("name", CALLS)
def test_error_names_the_parameter(name: str, last: str) -> None:
    with pytest.raises(EngineError) as caught:
        CALLS[name](program(last))
    error = caught.value
    assert error.detail == DETAIL + ("tangents" if name == "jvp" else "wrt")
    assert (error.code, error.node, error.expected, error.got) == ("not_differentiable", 0, "a float dtype", "int64")


def test_error_names_an_input_in_wrt() -> None:
    with pytest.raises(EngineError, match=r"take it out of wrt$"):
        compiled(lambda p: Gradients.of_program(p, wrt=[0]))(program("mean", "input"))


def test_error_of_an_inner_node_suggests_no_feed() -> None:
    with pytest.raises(EngineError, match=r"^node 1 \(square\): wrt names this node, whose dtype int64 has no derivat"):
        compiled(lambda p: Gradients.of_program(p, wrt=[1]))(program("mean"))
