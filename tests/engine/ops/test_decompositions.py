"""Common behaviour of decompositions: planned memory, layouts, deadline checks, and LAPACK's FLOP counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine import (
    Builder,
    Compiler,
    Limits,
    Program,
    Statement,
    TensorType,
    Value,
    Values,
    open_executor,
    registry,
)
from engine.compiler.plan import Plan, make_plan
from engine.ir.errors import DeadlineExceeded, DeadlineTooNear
from engine.ir.passes import optimise
from engine.ir.run_context import Deadline, RunContext
from engine.ops.linalg import matrices as factors
from engine.ops.linalg.lu import cofactors
from engine.ops.linalg.matrix_exp import exponential_slope
from engine.ops.linalg.symmetric_function import symmetric_slope
from tests.contract.cases import EXECUTOR, assert_planned_peak_holds
from tests.engine.ops.matrices import evaluate, real
from tests.engine.ops.run import Array

Write = Callable[[Value], list[Value]]


def outputs(name: str, count: int, **attrs: Any) -> Write:
    """Return a writer of all results of an op."""

    def write(x: Value) -> list[Value]:
        y = x.builder.emit(registry().get(name), (x,), attrs)
        return [y] if count == 1 else [y.output(i) for i in range(count)]

    return write


WRITERS: dict[str, Write] = {
    "eigh": outputs("eigh", 2),
    "eigenvalues": lambda x: [x.eigh().output(0)],
    "svd": outputs("svd", 3),
    "singular values": lambda x: [x.svd().output(1)],
    "qr": outputs("qr", 2),
    "lu": outputs("lu", 3),
    "matrix_exp": outputs("matrix_exp", 1),
    "its slope": lambda x: [exponential_slope(x, x)],
    "pinv": outputs("pinv", 1),
    "det": outputs("det", 1),
    "cofactors": lambda x: [cofactors(x)],
    **{f: outputs("symmetric_function", 1, function=f) for f in ("sqrt", "exp")},
    "slope of log": lambda x: [symmetric_slope(x, x, "log")],
}
EACH_WRITER = pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)


def definite(count: int, n: int) -> Array:
    x = real(count, n, n)
    return x @ x.swapaxes(-1, -2) / n + np.eye(n)


def planned(write: Write, x: Array) -> Plan:
    builder = Builder(registry())
    return make_plan(optimise(builder.graph(write(builder.leaf(TensorType.of(x), 0)))), Limits())


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(3, 250, 250), (700, 20, 20), (9000, 3, 3)], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float16"])
@EACH_WRITER
def test_memory_of_a_batch_stays_within_plan(write: Write, dtype: str, shape: tuple[int, int, int]) -> None:
    x = definite(*shape[:2]).astype(dtype)
    plan = planned(write, x)
    EXECUTOR.run(plan, {0: x})
    assert_planned_peak_holds(plan, {0: x})


@EACH_WRITER
def test_results_do_not_depend_on_the_layout(write: Write) -> None:
    x = definite(6, 4).reshape(2, 3, 4, 4)
    strided = np.ascontiguousarray(x.transpose(3, 1, 2, 0))
    actual = evaluate(lambda a: write(a.transpose(axes=(3, 1, 2, 0))), strided)
    for y, expected in zip(actual, evaluate(write, x), strict=True):
        np.testing.assert_allclose(y, expected, 1e-12, 1e-13)


@EACH_WRITER
def test_deadline_is_checked_between_matrices(write: Write) -> None:
    x = definite(2, 150)
    (step,) = (step for step in planned(write, x).steps if step.op.name != "get_output")
    op = step.op
    operands = [x] * len(op.operands)
    outs = [np.empty(t.shape, t.dtype) for t in step.types]
    run = RunContext(np, Deadline(0.0))
    with pytest.raises(DeadlineExceeded):
        op.forward(run, *operands, out=tuple(outs) if op.several else outs[0], **step.attrs)


@pytest.mark.parametrize("name", ["eigh", "eigenvalues", "svd", "singular values", "qr", "lu", "matrix_exp"])
def test_work_estimated_past_the_deadline_is_not_started(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """LAPACK cannot be interrupted, so the estimate decides; this one is for a slow processor."""
    run = RunContext(np, Deadline(60.0))
    x = definite(2, 3)
    (step,) = (step for step in planned(WRITERS[name], x).steps if step.op.name != "get_output")
    outs = [np.empty(t.shape, t.dtype) for t in step.types]

    def compute() -> None:
        step.op.forward(run, x, out=tuple(outs) if step.op.several else outs[0], **step.attrs)

    compute()
    monkeypatch.setattr(factors, "_SECONDS_PER_CUBE", dict.fromkeys(factors._SECONDS_PER_CUBE, 100.0))
    with pytest.raises(
        DeadlineTooNear,
        match=r"takes about .* s and cannot be interrupted, but only .* s of the request's 60 s are left",
    ):
        compute()
    run.device = "cuda"
    factors.admit(run, "eigh", x)


def test_deadline_refusal_names_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factors, "_SECONDS_PER_CUBE", dict.fromkeys(factors._SECONDS_PER_CUBE, 100.0))
    x, ops = np.eye(3), registry().ops
    nodes = [
        Statement(ops["parameter"], (), {}),
        Statement(ops["qr"], (0,), {}),
        Statement(ops["get_output"], (1,), {"index": 0}),
    ]
    program = Program(registry(), nodes, Limits(), opset=2)
    plan = Compiler(Limits()).compile(program, {0: TensorType.of(x)}, Values.of_program(program, [2])).plan
    for executor in (EXECUTOR, open_executor("cpu", compile="off")):
        with pytest.raises(DeadlineTooNear, match=r"node 1 \(qr\): this takes") as caught:
            executor.run(plan, {0: x}, Deadline(60.0))
        assert (caught.value.node, caught.value.code) == (1, "deadline_exceeded")


def test_expired_deadline_is_reported_as_exceeded() -> None:
    with pytest.raises(DeadlineExceeded):
        Deadline(0.0).admit(1.0)
    Deadline().admit(1e9)


def flops(name: str, *shape: int) -> int:
    op = registry().ops[name]
    return int(op.flops((), TensorType(shape, np.dtype(float))))  # type: ignore[attr-defined]


def test_flops() -> None:
    n = 6
    assert flops("eigh", n, n) == 9 * n**3
    assert flops("svd", n, n) == 25 * n**3
    assert flops("svd", 5, n, n) == 5 * 25 * n**3
    assert flops("svd", 8, n) == 4 * 8 * n**2 + 21 * n**3 == flops("svd", n, 8)
    assert flops("qr", n, n) == 4 * n**3 - 4 * n**3 // 3
    assert flops("matrix_exp", n, n) == 18 * n**3
    assert flops("det", 2, n, n) == 2 * 2 * n**3 // 3
    assert flops("pinv", n, n) == 27 * n**3
    for name in ("eigh", "svd", "qr", "lu", "matrix_exp", "det", "pinv"):
        assert flops(name, 0, 3, 3) == flops(name, 0, 0) == 0
    (values,) = [step for step in planned(WRITERS["singular values"], np.eye(n)).steps if step.op.internal]
    types = TensorType((n, n), np.dtype(float))
    assert values.op.flops((), types) == 4 * n**3 - 4 * n**3 // 3
