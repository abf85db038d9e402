"""Random matrices and evaluation of small graphs: helpers for tests of factorizations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine import Builder, Limits, TensorType, Value, registry
from engine.autodiff.vjp import vjp_or_zeros
from engine.compiler.plan import make_plan
from engine.ir.passes import optimise
from tests.engine.ops.run import EXECUTOR, Array

RTOL, ATOL = 1e-11, 1e-13
RNG = np.random.default_rng(0)
INITIAL_STATE = RNG.bit_generator.state


def real(*shape: int) -> Array:
    return RNG.uniform(-1, 1, shape)


def regular(*shape: int) -> Array:
    return real(*shape) + 3 * np.eye(shape[-1])


def definite(*shape: int) -> Array:
    x = real(*shape)
    return x @ x.swapaxes(-1, -2) + np.eye(shape[-1])


def close(actual: Any, expected: Any) -> None:
    assert np.shape(actual) == np.shape(expected)
    np.testing.assert_allclose(actual, expected, RTOL, ATOL)


def evaluate(write: Callable[..., Sequence[Value]], *arrays: Any) -> list[Array]:
    """Return the values of the graph that `write` builds from its operands."""
    builder, feeds = Builder(registry()), {i: np.asarray(a) for i, a in enumerate(arrays)}
    outputs = write(*(builder.leaf(TensorType.of(a), i) for i, a in feeds.items()))
    plan = make_plan(optimise(builder.graph(list(outputs))), Limits())
    return EXECUTOR.run(plan, {i: feeds[i] for i in plan.feeds})


def slogdet(x: Any) -> list[Array]:
    def write(v: Value) -> list[Value]:
        both = v.slogdet()
        return [both.output(0), both.output(1)]

    return evaluate(write, x)


def gradient_of_sum(write: Callable[[Value], Value], x: Any) -> Array:
    """Return the gradient of the sum of the value that `write` builds from x."""

    def graph(v: Value) -> list[Value]:
        total = write(v).sum()
        return vjp_or_zeros(v.builder, [(total, total.full_like(1.0))], [v])

    return evaluate(graph, x)[0]


def transposed(x: Array) -> Array:
    return x.swapaxes(-1, -2)
