"""float16 attention with ops of its own: when it applies, its values, and derivatives to second order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Builder, TensorType, registry
from engine.autodiff.vjp import vjp
from engine.ir.run_context import RunContext
from engine.ops.nn.attention import HALF_GRADIENTS, HALF_ROWS, HalfRows, is_half_attention
from engine.ops.nn.attention_tiles import ROWS, ScoreOp
from tests.contract.cases import run_graph
from tests.engine.ops.values import allocated

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(21)
ATTRS: dict[str, Any] = {"scale": 0.3, "causal": True}
#: tolerance of results rounded to float16: one rounding of numbers up to 4, plus the error of float32
HALF = {"rtol": 2**-9, "atol": 2**-11}


def draw(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float16)


Q, K, V = draw(2, 5, 8), draw(2, 7, 8), draw(2, 7, 16)


def half(*shape: int) -> TensorType:
    return TensorType(shape, np.dtype("float16"))


def exact(q: Array, k: Array, v: Array, *, causal: bool) -> tuple[Array, Array, Array]:
    """Return p, y and the log-sums, in float64."""
    scores = ATTRS["scale"] * q.astype(float) @ k.astype(float).swapaxes(-1, -2)
    visible = np.tri(*scores.shape[-2:], dtype=bool) if causal else np.ones(scores.shape[-2:], bool)
    sums = np.where(visible, np.exp(scores), 0.0).sum(-1, keepdims=True)
    p = np.where(visible, np.exp(scores), 0.0) / sums
    return p, p @ v.astype(float), np.log(sums)


def computed(op: ScoreOp, arrays: list[Array], **attrs: Any) -> list[Array]:
    types = op.infer(*map(TensorType.of, arrays), **attrs)
    assert isinstance(types, tuple)
    out = tuple(np.full(t.shape, 9, t.dtype) for t in types)
    op.forward(RunContext(np), *arrays, out=out, **attrs)  # type: ignore[arg-type]
    return list(out)


@pytest.mark.parametrize("causal", [False, True])
def test_kernels_match_attention_and_its_gradients(causal: bool) -> None:
    attrs = {**ATTRS, "causal": causal}
    y, lse = computed(HALF_ROWS, [Q, K, V], **attrs)
    assert (y.dtype, lse.dtype) == (np.float16, np.float32)
    p, exact_y, exact_lse = exact(Q, K, V, causal=causal)
    np.testing.assert_allclose(y, exact_y, **HALF)
    np.testing.assert_allclose(lse, exact_lse, 1e-6, 1e-6)
    g = draw(*y.shape)
    ds = p * (g.astype(float) @ V.astype(float).swapaxes(-1, -2) - (g.astype(float) * y).sum(-1, keepdims=True))
    expected = ATTRS["scale"] * ds @ K, ATTRS["scale"] * ds.swapaxes(-1, -2) @ Q, p.swapaxes(-1, -2) @ g
    for a, b in zip(computed(HALF_GRADIENTS, [Q, K, V, y, lse, g], **attrs), expected, strict=True):
        assert a.dtype == np.float16
        np.testing.assert_allclose(a, b, **HALF)


@pytest.mark.parametrize("op", [HALF_ROWS, HALF_GRADIENTS], ids=lambda op: op.name)
def test_kernels_match_their_decompositions(op: ScoreOp) -> None:
    y, lse = computed(HALF_ROWS, [Q, K, V], **ATTRS)
    arrays = [Q, K, V] if op is HALF_ROWS else [Q, K, V, y, lse, draw(*y.shape)]
    builder = Builder(registry())
    values = [builder.leaf(TensorType.of(a), i) for i, a in enumerate(arrays)]
    expected = run_graph(builder.graph(list(op.written_out(*values, **ATTRS))), dict(enumerate(arrays)))
    for a, b in zip(computed(op, arrays, **ATTRS), expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, **(HALF if a.dtype == np.float16 else {"rtol": 1e-6}))


def derivatives(q: Array, k: Array, v: Array, weights: list[Array]) -> list[Array]:
    """Gradients of the weighted sum of y, and gradients of a weighted sum of these gradients."""
    builder = Builder(registry())
    arrays = [q, k, v, *weights]
    leaves = [builder.leaf(TensorType.of(x), i) for i, x in enumerate(arrays)]
    operands, (of_y, *of_gradients) = leaves[:3], leaves[3:]
    op = HALF_ROWS if q.dtype == np.float16 else ROWS
    y = builder.emit(op, operands, ATTRS).output(0)
    first = [x for x in vjp(builder, [(y, of_y)], operands) if x is not None]
    second = vjp(builder, list(zip(first, of_gradients, strict=True)), [*operands, of_y])
    result = run_graph(builder.graph([*first, *(x for x in second if x is not None)]), dict(enumerate(arrays)))
    assert len(result) == 7
    return result


def test_second_order_derivatives_match_float64_attention() -> None:
    """Compared with float64, which uses the general op."""
    arrays = [draw(2, 5, 8), draw(2, 7, 8), draw(2, 7, 16)]
    weights = [draw(2, 5, 16), *(draw(*x.shape) for x in arrays)]
    in_float64 = [x.astype(np.float64) for x in arrays], [x.astype(np.float64) for x in weights]
    actual, expected = derivatives(*arrays, weights), derivatives(*in_float64[0], in_float64[1])
    for a, b in zip(actual, expected, strict=True):
        assert a.dtype == np.float16
        # Intermediate float16 roundings add up, over queries or keys.
        np.testing.assert_allclose(a, b, 2**-8, 2**-8)


def test_log_sums_have_derivatives() -> None:
    builder = Builder(registry())
    leaves = [builder.leaf(TensorType.of(x), i) for i, x in enumerate((Q, K, V))]
    lse = builder.emit(HALF_ROWS, leaves, ATTRS).output(1)
    actual = vjp(builder, [(lse, lse.full_like(1.0))], leaves)
    assert all(x is not None for x in actual)
    by_q, by_k, by_v = run_graph(builder.graph([x for x in actual if x is not None]), {0: Q, 1: K, 2: V})
    p = exact(Q, K, V, causal=True)[0]
    np.testing.assert_allclose(by_q, ATTRS["scale"] * p @ K, **HALF)
    np.testing.assert_allclose(by_k, ATTRS["scale"] * p.swapaxes(-1, -2) @ Q, **HALF)
    assert not by_v.any()


def test_vmap_matches_each_example() -> None:
    """Only the queries are mapped."""
    queries = draw(3, 2, 5, 8)
    builder = Builder(registry())
    leaves = [builder.leaf(TensorType.of(x), i) for i, x in enumerate((queries, K, V))]
    result = HALF_ROWS.batch((True, False, False), *leaves, **ATTRS)
    y, lse = run_graph(builder.graph([result.output(0), result.output(1)]), {0: queries, 1: K, 2: V})
    for i in range(3):
        each = computed(HALF_ROWS, [queries[i], K, V], **ATTRS)
        np.testing.assert_array_equal(y[i], each[0])
        np.testing.assert_allclose(lse[i], each[1], 1e-6)


@pytest.mark.parametrize("op", [HALF_ROWS, HALF_GRADIENTS], ids=lambda op: op.name)
def test_memory_stays_within_stated_workspace(op: ScoreOp) -> None:
    q, k, v = draw(16, 200, 16), draw(16, 300, 16), draw(16, 300, 32)
    y, lse = computed(HALF_ROWS, [q, k, v], **ATTRS)
    arrays = [q, k, v] if op is HALF_ROWS else [q, k, v, y, lse, draw(*y.shape)]
    types = op.infer(*map(TensorType.of, arrays), **ATTRS)
    out = tuple(np.empty(t.shape, t.dtype) for t in types)  # type: ignore[union-attr]
    run = RunContext(np)
    casting = 1 << 16  # NumPy's buffers
    taken = allocated(lambda: op.forward(run, *arrays, out=out, **ATTRS))  # type: ignore[arg-type]
    assert taken <= op.workspace(types, *map(TensorType.of, arrays), **ATTRS) + casting


TAKEN = [(half(4, 8), half(4, 8), half(4, 8)), (half(2, 3, 4, 128), half(2, 3, 9, 128), half(2, 3, 9, 16))]
LEFT = {
    "float32": (TensorType((4, 8), np.dtype("float32")),) * 3,
    "rows of 12": (half(4, 12), half(4, 12), half(4, 8)),
    "rows of 136": (half(4, 136), half(4, 136), half(4, 8)),
    "values of 4": (half(4, 8), half(4, 8), half(4, 4)),
    "a mask": (half(4, 8), half(4, 8), half(4, 8), TensorType((4, 4), np.dtype("bool"))),
    "axes that broadcast": (half(2, 4, 8), half(1, 4, 8), half(2, 4, 8)),
    "no keys": (half(4, 8), half(0, 8), half(0, 8)),
}


@pytest.mark.parametrize(("types", "taken"), [*((t, True) for t in TAKEN), *((t, False) for t in LEFT.values())])
def test_supported_operand_types(types: tuple[TensorType, ...], taken: bool) -> None:
    assert is_half_attention(*types) is taken


@pytest.mark.parametrize(("queries", "taken"), [(1024, True), (1023, False)])
def test_op_is_used_if_scores_are_large(queries: int, taken: bool) -> None:
    """16 MiB of float32; smaller attention keeps the bits it had before this op existed."""
    builder = Builder(registry())
    q, k, v = (builder.leaf(half(4, n, 8), i) for i, n in enumerate((queries, 1024, 1024)))
    nodes = builder.graph([q.attention(k, v)]).nodes
    assert any(isinstance(node.op, HalfRows) for node in nodes) is taken
