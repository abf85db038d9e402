"""float16 attention by cuDNN: the requested graphs, forward and backward results, and unsupported operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.cuda.card_recipe import CardPlace, CardRecipe, CudnnPhase
from engine.cuda.cudnn_plans import CudnnLibrary, CudnnPlans
from engine.cuda.cudnn_recipes import AttentionShape, CudnnAttention, attention_shape
from engine.ir.run_context import RunContext
from engine.ir.tensor_type import Strided, TensorType
from engine.ops.nn.attention import HALF_GRADIENTS, HALF_ROWS
from engine.ops.nn.attention_tiles import ScoreOp
from tests.engine.cuda.cudnn_standin import Cudnn, Engine
from tests.engine.cuda.described_card import described_h100

Array = np.ndarray[Any, Any]
PLAIN = Engine("plain", workspace=100)
WORKSPACE = 64 << 20
ATTRS: dict[str, Any] = {"scale": 0.25, "causal": True}
RNG = np.random.default_rng(3)


def half(*shape: int) -> TensorType:
    return TensorType(shape, np.dtype("float16"))


def shape_of(*operands: Any, **attrs: Any) -> AttentionShape:
    """The attention shape of strided arrays, or of types."""
    types = [x if isinstance(x, TensorType) else Strided(TensorType.of(x), x.strides) for x in operands]
    shape = attention_shape(*types, **{**ATTRS, **attrs})
    assert shape is not None
    return shape


def attention_by(cudnn: Cudnn) -> CudnnAttention:
    return CudnnAttention(CudnnPlans(CudnnLibrary(cudnn, "sm_90")))


def run(cudnn: Cudnn, recipe: CardRecipe | None, operands: list[Array], results: list[Array]) -> None:
    """Run the phases in host memory."""
    assert recipe is not None
    space = np.full(recipe.workspace, 0x77, np.uint8)
    buffers = {"operand": operands, "result": results, "workspace": [space]}

    def address(place: CardPlace) -> int:
        return buffers[place.kind][place.number].ctypes.data + place.offset

    for phase in recipe.phases:
        assert isinstance(phase, CudnnPhase)
        addresses = {number: address(place) for number, place in phase.tensors}
        phase.plan.graph.execute(addresses, address(phase.workspace), handle=cudnn.create_handle())


def drawn(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float16)


CASES = {
    "no axes before": ((5, 8), (5, 8), (5, 16)),
    "heads": ((3, 5, 8), (3, 7, 8), (3, 7, 24)),
    "batch and heads": ((2, 3, 6, 16), (2, 3, 4, 16), (2, 3, 4, 8)),
    "three axes": ((2, 1, 3, 4, 8), (2, 1, 3, 4, 8), (2, 1, 3, 4, 8)),
}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shapes", CASES.values(), ids=CASES.keys())
def test_forward_and_backward_match_the_ops(shapes: tuple[tuple[int, ...], ...], causal: bool) -> None:
    """The ops, which accumulate in float32, are the reference."""
    cudnn = Cudnn(A=[PLAIN], computes=True)
    plans, attrs = attention_by(cudnn), {**ATTRS, "causal": causal}
    operands = [drawn(*operand_shape) for operand_shape in shapes]
    shape = shape_of(*operands, **attrs)
    expected, actual = results_of(HALF_ROWS, operands), results_of(HALF_ROWS, operands)
    HALF_ROWS.forward(RunContext(np), *operands, out=(expected[0], expected[1]), **attrs)
    run(cudnn, plans.rows(shape, deterministic=False, workspace=WORKSPACE), operands, actual)
    compare(actual, expected)
    saved = [*operands, *expected, drawn(*expected[0].shape)]
    expected, actual = results_of(HALF_GRADIENTS, saved), results_of(HALF_GRADIENTS, saved)
    HALF_GRADIENTS.forward(RunContext(np), *saved, out=tuple(expected), **attrs)
    run(cudnn, plans.gradients(shape, deterministic=True, workspace=WORKSPACE), saved, actual)
    compare(actual, expected)


def results_of(op: ScoreOp, operands: list[Array]) -> list[Array]:
    """Buffers for the results of an op, filled with 9."""
    types = op.infer(*map(TensorType.of, operands), **ATTRS)
    assert isinstance(types, tuple)
    return [np.full(t.shape, 9, t.dtype) for t in types]


def compare(actual: list[Array], expected: list[Array]) -> None:
    """Compare within a few units in the last place."""
    for a, b in zip(actual, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, 4 * np.finfo(a.dtype).eps, 4 * np.finfo(a.dtype).eps)


def test_heads_may_be_interleaved_with_rows() -> None:
    rows = drawn(2, 6, 3, 8)
    shape = shape_of(*[rows.swapaxes(1, 2)] * 3)
    assert shape.q == ((2, 3, 6, 8), (144, 8, 24, 1))


UNSUPPORTED = {
    "float32": (TensorType((4, 8), np.dtype("float32")),) * 3,
    "rows of 12": (half(4, 12), half(4, 12), half(4, 8)),
    "rows of 136": (half(4, 136), half(4, 136), half(4, 8)),
    "values of 4": (half(4, 8), half(4, 8), half(4, 4)),
    "a mask": (half(4, 8), half(4, 8), half(4, 8), TensorType((4, 4), np.dtype("bool"))),
    "axes that broadcast": (half(2, 4, 8), half(1, 4, 8), half(2, 4, 8)),
    "no keys": (half(4, 8), half(0, 8), half(0, 8)),
    "columns first": (Strided(half(8, 8), (2, 16)), half(8, 8), half(8, 8)),
    "rows askew": (Strided(half(8, 8), (20, 2)), half(8, 8), half(8, 8)),
    "one row for all": (Strided(half(8, 8), (0, 2)), half(8, 8), half(8, 8)),
    "backwards": (Strided(half(8, 8), (-16, 2)), half(8, 8), half(8, 8)),
    "three axes apart": (Strided(half(2, 2, 2, 8, 8), (4096, 1024, 256, 16, 2)), *[half(2, 2, 2, 8, 8)] * 2),
}


@pytest.mark.parametrize("types", UNSUPPORTED.values(), ids=UNSUPPORTED.keys())
def test_unsupported_operands_have_no_shape(types: tuple[TensorType, ...]) -> None:
    assert attention_shape(*types, **ATTRS) is None


@pytest.mark.parametrize("deterministic", [False, True])
def test_determinism_excludes_nondeterministic_engines(deterministic: bool) -> None:
    cudnn = Cudnn(A=[PLAIN])
    plans, shape = attention_by(cudnn), shape_of(*[half(4, 8)] * 3)
    assert plans.rows(shape, deterministic=deterministic, workspace=WORKSPACE)
    assert plans.gradients(shape, deterministic=deterministic, workspace=WORKSPACE)
    rows, back = cudnn.asked
    assert rows.without == back.without == (["NONDETERMINISTIC"] if deterministic else [])
    assert back.numbers == {
        "attn_scale": 0.25, "use_causal_mask": True, "use_deterministic_algorithm": deterministic,
    }  # fmt: skip
    assert rows.numbers == {"attn_scale": 0.25, "use_causal_mask": True, "generate_stats": True}


def test_may_plan_false_returns_only_cached_plans() -> None:
    cudnn = Cudnn(A=[PLAIN])
    plans, shape = attention_by(cudnn), shape_of(*[half(4, 8)] * 3)
    terms: dict[str, Any] = {"deterministic": False, "workspace": WORKSPACE}
    assert plans.rows(shape, **terms, may_plan=False) is None
    assert not cudnn.asked
    assert plans.rows(shape, **terms)
    assert plans.rows(shape, **terms, may_plan=False)
    assert len(cudnn.asked) == 1


@pytest.mark.card_tests
@pytest.mark.parametrize(
    "of",
    [
        shape_of(*[half(8, 8, 256, 64)] * 3, causal=False),
        shape_of(half(6, 77, 40), half(6, 51, 40), half(6, 51, 64)),
        shape_of(*[half(2, 5, 128)] * 3),
    ],
    ids=["as in a network", "odd extents", "wide rows"],
)
def test_h100_has_forward_and_backward_plans(of: AttentionShape) -> None:
    plans = CudnnAttention(CudnnPlans(described_h100()))
    for deterministic in (False, True):
        assert plans.rows(of, deterministic=deterministic, workspace=WORKSPACE)
        assert plans.gradients(of, deterministic=deterministic, workspace=WORKSPACE)
