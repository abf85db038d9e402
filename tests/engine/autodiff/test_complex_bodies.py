"""Complex numbers in bodies: loops against their unrolled steps, interpreted and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Compiler, Gradients, Limits, Program, Statement, TensorType, Values, open_executor, registry
from engine.compiler.body_plans import with_compiled_bodies
from engine.compiler.control_flow import PlannedScan
from engine.compiler.plan import graph_of
from engine.ir.program import Function
from tests.engine.looping import EXECUTOR, Writer, written

Z = np.array([0.6 + 0.3j, -0.2 + 0.7j])
W = np.array([0.9 - 0.2j, 0.3 + 0.5j])
STEPS = 5


def step(g: Writer, w: int, z: int) -> list[int]:
    """z ↦ tanh(z w) + conj z / 2, with its absolute value as a stacked result."""
    turned = g.add(g.tanh(g.mul(z, w)), g.mul_scalar(g.conj(z), scalar=0.5))
    return [turned, g.abs(turned)]


def energy(g: Writer, z: int, sizes: int) -> int:
    return g.add(g.sum(g.square(g.abs(z))), g.sum(sizes))


def gradients(g: Writer, executor: Any, times: int = 1) -> list[Any]:
    """Compute the last node's value and its gradients with respect to both leaves."""
    program = Program(registry(), g.statements, Limits(), opset=2, functions=g.functions)
    feeds = {0: W, 1: Z}
    types = {i: TensorType.of(a) for i, a in feeds.items()}
    last = len(g.statements) - 1
    plan = Compiler(Limits()).compile(program, types, Gradients.of_program(program, last, [0, 1], [last])).plan
    for _ in range(times):
        results = executor.run(plan, feeds)
        if times > 1:
            executor.settle()
    return list(results)


def unrolled() -> Writer:
    g = Writer()
    w, z = g.parameter(), g.parameter()
    sizes = []
    for _ in range(STEPS):
        z, size = step(g, w, z)
        sizes.append(size)
    energy(g, z, g.stacked(sizes))
    return g


def scanned() -> Writer:
    g = Writer()
    w, z = g.parameter(), g.parameter()
    energy(g, *g.scan(w, z, body=step, carries=1, length=STEPS))
    return g


def looped() -> Writer:
    g = Writer()
    w, z, n, total = g.parameter(), g.parameter(), g.number(0.0), g.number(0.0)

    def body(g: Writer, w: int, z: int, n: int, total: int) -> list[int]:
        turned, size = step(g, w, z)
        return [turned, g.add_scalar(n, scalar=1.0), g.add(total, g.sum(size))]

    def condition(g: Writer, _w: int, _z: int, n: int, _total: int) -> list[int]:
        return [g.less(n, g.number(float(STEPS)))]

    z, _, total, _, _ = g.while_(w, z, n, total, body=body, condition=condition, carries=3, max_steps=STEPS + 2)
    energy(g, z, total)
    return g


@pytest.mark.parametrize("write", [scanned, looped])
def test_loop_matches_its_unrolled_steps(write: Any) -> None:
    executor = open_executor("cpu")
    for actual, expected in zip(gradients(write(), executor), gradients(unrolled(), executor), strict=True):
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


#: ops of a carry and a constant that compile to machine code for real numbers only
UNCOMPILED = {
    "cumsum": lambda g, w, z: g.cumsum(g.mul(z, w), axis=0),
    "cumprod": lambda g, w, z: g.cumprod(g.add(z, w), axis=0),
    "a cast of what is real": lambda g, w, z: g.add(g.mul(g.cast(g.real(z), dtype="complex128"), w), z),
    "a flip": lambda g, w, z: g.mul(g.flip(z), w),
    "a pad and a slice": lambda g, w, z: g.mul(g.slice(g.pad(z, pad_width=[1, 1]), starts=[1], stops=[3]), w),
    "entries joined": lambda g, w, z: g.slice(g.cat(g.mul(w, z), z, axis=0), starts=[1], stops=[3]),
    "a product": lambda g, w, z: g.matmul(g.mul(g.reshape(w, shape=[2, 1]), g.reshape(z, shape=[1, 2])), z),
    "a solution": lambda g, w, z: g.solve(g.add(g.diag(w), g.cast(g.number(np.eye(2)), dtype="complex128")), z),
    "a choice": lambda g, w, z: g.where(g.less(g.abs(z), g.abs(w)), g.mul(z, w), z),
    "indices": lambda g, w, z: g.mul(g.gather(z, g.number([1, 0], "int64")), w),
    "a sum": lambda g, w, z: g.mul(g.sub(z, g.mean(z)), w),
}


@pytest.mark.parametrize("name", UNCOMPILED)
def test_bodies_with_uncompiled_ops_match_unrolled_steps(name: str) -> None:
    pytest.importorskip("llvmlite")

    def body(g: Writer, w: int, z: int) -> list[int]:
        z = UNCOMPILED[name](g, w, z)
        return [z, g.abs(z)]

    g = Writer()
    w, z = g.parameter(), g.parameter()
    energy(g, *g.scan(w, z, body=body, carries=1, length=STEPS))
    plain, sizes = Writer(), []
    w, z = plain.parameter(), plain.parameter()
    for _ in range(STEPS):
        z, size = body(plain, w, z)
        sizes.append(size)
    energy(plain, z, plain.stacked(sizes))
    expected = gradients(plain, open_executor("cpu"))
    for executor, times in ((open_executor("cpu"), 1), (open_executor("cpu", compile="on"), 4)):
        for a, b in zip(gradients(g, executor, times), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)


@pytest.mark.parametrize("write", [scanned, looped])
def test_compiled_loop_matches_its_unrolled_steps(write: Any) -> None:
    pytest.importorskip("llvmlite")
    native = open_executor("cpu", compile="on")
    for actual, expected in zip(
        gradients(write(), native, times=4), gradients(unrolled(), open_executor("cpu")), strict=True
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_cond_map_and_call() -> None:
    """The branch that is not taken has the cotangent 0 + 0i; a map matches its entries."""

    def results_of(write: Any) -> list[Any]:
        g = Writer()
        w, z = g.parameter(), g.parameter()
        energy(g, *write(g, w, z))
        return gradients(g, open_executor("cpu"))

    def branched(g: Writer, w: int, z: int) -> list[int]:
        taken = g.number(True, "bool")
        return list(g.cond(taken, w, z, then=step, otherwise=lambda g, w, z: [g.exp(w), g.abs(g.log(z))]))

    def called(g: Writer, w: int, z: int) -> list[int]:
        return list(g.call(w, z, body=step))

    def mapped(g: Writer, w: int, z: int) -> list[int]:
        return list(g.map(w, z, body=step, sequences=2))

    plain = results_of(step)
    for write in (branched, called, mapped):
        for actual, expected in zip(results_of(write), plain, strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_fixed_point_of_complex_carries() -> None:
    """Closed form: z = (z + w / z) / 2 converges to √w, and the gradient of Σ |√w|² = Σ |w| is w / |w|."""
    g = Writer()
    w, z = g.parameter(), g.parameter()

    def body(g: Writer, w: int, z: int) -> list[int]:
        return [g.mul_scalar(g.add(z, g.div(w, z)), scalar=0.5)]

    root, *_ = g.fixed_point(w, z, body=body, carries=1, tolerance=1e-14, max_steps=60)
    g.sum(g.square(g.abs(root)))
    value, w_gradient, z_gradient = gradients(g, open_executor("cpu"))
    np.testing.assert_allclose(value, np.abs(W).sum(), rtol=1e-10)
    np.testing.assert_allclose(w_gradient, W / np.abs(W), rtol=1e-8)
    np.testing.assert_allclose(z_gradient, 0, atol=1e-8)


def test_function_body_accepts_a_complex_operand() -> None:
    """`Function` declares no dtype, so it runs on complex operands."""
    ops = registry().ops
    function = Function(registry(), [Statement(ops["input"]), Statement(ops["conj"], (0,))], [1])
    statements = [
        Statement(ops["input"]),
        Statement(ops["call"], (0,), {"body": 0}),
        Statement(ops["get_output"], (1,), {"index": 0}),
    ]
    program = Program(registry(), statements, opset=2, functions=[function])
    plan = Compiler(Limits()).forward(program, {0: TensorType.of(Z)}, [2]).plan
    assert (open_executor("cpu").run(plan, {0: Z})[0] == Z.conj()).all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_scan_compiles_to_one_kernel(dtype: str) -> None:
    """One kernel keeps complex carries in registers; it also has a sequence, a constant and a stack of reals."""
    pytest.importorskip("llvmlite")

    def body(g: Writer, w: int, z: int, x: int) -> list[int]:
        z = g.add(g.tanh(g.mul(z, w)), x)
        return [z, g.abs(z)]

    feeds = [np.asarray(a, dtype) for a in (W, Z, np.outer(np.arange(STEPS), Z))]
    loop = written(lambda g, *given: g.scan(*given, body=body, carries=1, sequences=1), *feeds)
    plan = Compiler(Limits()).compile(loop.program, loop.types, Values.of_program(loop.program, loop.results)).plan
    (scan,) = (node.op for node in with_compiled_bodies(graph_of(plan, registry())).nodes if node.op.runs)
    assert isinstance(scan, PlannedScan)
    assert scan.step_loop is not None
    expected = EXECUTOR.run(plan, loop.feeds)
    native = open_executor("cpu", compile="on")
    for _ in range(3):
        actual = native.run(plan, loop.feeds)
        native.settle()
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, 20 * np.finfo(dtype).eps)
