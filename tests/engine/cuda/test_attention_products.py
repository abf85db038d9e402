"""Attention as matrix products with kernels between them: matches the formula for any layout and workspace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.cuda.binding import card_recipe_for
from engine.cuda.card_recipe import CardRecipe, LaunchPhase, ProductPhase
from engine.cuda.cudnn_recipes import CardTerms
from engine.ir.tensor_type import Strided, TensorType
from engine.ops.linalg.layouts import PermutedResults
from engine.ops.nn.attention_tiles import GRADIENTS, ROWS, ScoreOp
from tests.engine.codegen.kernels import nvrtc
from tests.engine.codegen.kernels.c_compiler import COMPILER
from tests.engine.cuda.running import Array, CardRun, compiled_for

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
PLENTY = CardTerms(workspace=1 << 22)
TOLERANCES = {"float32": 2e-6, "float64": 1e-14}
SCALE = 0.3


def drawn(lead: tuple[int, ...], queries: int, keys: int, dtype: str, width: int = 5, values: int = 7) -> list[Array]:
    """Random q, k, v and the cotangent of y, with heads side by side as products leave them."""
    random = np.random.default_rng(len(lead))
    shapes = (queries, width), (keys, width), (keys, values), (queries, values)
    whole = [random.normal(size=(*lead[:-1], rows, *lead[-1:], columns)).astype(dtype) for rows, columns in shapes]
    return [x.swapaxes(-2, -3) if lead else x for x in whole]


def reference_results(q: Array, k: Array, v: Array, g: Array, *, causal: bool) -> dict[str, Array]:
    """Compute the reference results from the formulas, in float64."""
    q, k, v, g = (x.astype("float64") for x in (q, k, v, g))
    scores = SCALE * q @ k.swapaxes(-1, -2)
    hidden = np.triu(np.ones(scores.shape[-2:], bool), 1) if causal else np.zeros(scores.shape[-2:], bool)
    scores[..., hidden] = -np.inf
    lse = np.log(np.exp(scores).sum(axis=-1, keepdims=True))
    p = np.exp(scores - lse)
    y = p @ v
    delta = (g * y).sum(axis=-1, keepdims=True)
    ds = p * (g @ v.swapaxes(-1, -2) - delta)
    dq, dk, dv = SCALE * ds @ k, SCALE * ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ g
    return {"y": y, "lse": lse, "delta": delta, "dq": dq, "dk": dk, "dv": dv}


def types(*arrays: Array) -> list[TensorType]:
    return [Strided(TensorType.of(x), x.strides) for x in arrays]


def dense(terms: CardTerms, op: ScoreOp, *arrays: Array, causal: bool, scale: float) -> CardRecipe | None:
    """The recipe that writes dense results."""
    out = op.infer(*(TensorType.of(x) for x in arrays), causal=causal, scale=scale)
    return card_recipe_for(op, terms, out, *types(*arrays), causal=causal, scale=scale)


def forward_recipe(terms: CardTerms, *arrays: Array, causal: bool, scale: float) -> CardRecipe | None:
    return dense(terms, ROWS, *arrays, causal=causal, scale=scale)


def gradients_recipe(terms: CardTerms, *arrays: Array, causal: bool, scale: float) -> CardRecipe | None:
    return dense(terms, GRADIENTS, *arrays, causal=causal, scale=scale)


def run(recipe: CardRecipe | None, operands: list[Array], *expected: Array, atol: float) -> None:
    assert recipe is not None
    results = [np.full(x.shape, np.nan, operands[0].dtype) for x in expected]
    CardRun(recipe, operands[0].dtype.name, operands, *results).run()
    for actual, desired in zip(results, expected, strict=True):
        np.testing.assert_allclose(actual, desired, rtol=0, atol=atol * max(1.0, np.abs(desired).max()))


def check(operands: list[Array], *, causal: bool, terms: CardTerms = PLENTY) -> list[CardRecipe]:
    """Compare forward and backward with the formulas; return both recipes."""
    dtype = operands[0].dtype
    expected, atol = reference_results(*operands, causal=causal), TOLERANCES[dtype.name]
    q, k, v, g = operands
    saved = [q, k, v, expected["lse"].astype(dtype), expected["delta"].astype(dtype), g]
    forward = forward_recipe(terms, q, k, v, scale=SCALE, causal=causal)
    backward = gradients_recipe(terms, *saved, scale=SCALE, causal=causal)
    run(forward, [q, k, v], expected["y"], expected["lse"], atol=atol)
    run(backward, saved, *(expected[name] for name in ("dq", "dk", "dv")), atol=4 * atol)
    assert forward
    assert backward
    return [forward, backward]


@needs_compiler
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(6, 6), (1, 40), (70, 3), (33, 65)])
def test_forward_and_backward_match_the_formulas(dtype: str, causal: bool, queries: int, keys: int) -> None:
    recipes = check(drawn((2, 3), queries, keys, dtype), causal=causal)
    kinds = [[type(phase) for phase in recipe.phases] for recipe in recipes]
    assert kinds[0] == [ProductPhase, LaunchPhase, ProductPhase]
    assert kinds[1] == [ProductPhase] * 2 + [LaunchPhase] + [ProductPhase] * 3


@needs_compiler
@pytest.mark.parametrize("lead", [(), (4,), (2, 3)])
@pytest.mark.parametrize("matrices", [1, 2, 3, 5])
def test_small_workspace_processes_matrices_in_chunks(lead: tuple[int, ...], matrices: int) -> None:
    """Each matrix takes 512 bytes; the backward pass needs two per entry."""
    operands = drawn(lead, 8, 8, "float64")
    q, k, v, _ = operands
    terms = CardTerms(workspace=2 * matrices * 512)
    forward, backward = check(operands, causal=True, terms=terms)
    assert max(forward.workspace, backward.workspace) <= terms.workspace
    assert len(backward.phases) >= 6 * -(-int(np.prod(lead)) // matrices)
    assert forward_recipe(CardTerms(workspace=511), q, k, v, scale=1.0, causal=False) is None


@needs_compiler
def test_one_key_shared_by_all_heads() -> None:
    q, k, v, g = drawn((2, 3), 4, 6, "float64")
    shared_k, shared_v = (np.broadcast_to(x[:, :1], x.shape) for x in (k, v))
    check([q, shared_k, shared_v, g], causal=False)
    recipe = forward_recipe(PLENTY, q, k[:1, 0], v, scale=SCALE, causal=False)
    expected = reference_results(q, np.broadcast_to(k[:1, 0], k.shape), v, g, causal=False)
    run(recipe, [q, k[:1, 0], v], expected["y"], expected["lse"], atol=1e-14)


@needs_compiler
@pytest.mark.parametrize("matrices", [1, 4, 100])
def test_results_are_written_in_the_requested_layout(matrices: int) -> None:
    """Heads are interleaved or contiguous, with any workspace."""
    q, k, v, g = drawn((2, 3), 8, 8, "float64")
    references = reference_results(q, k, v, g, causal=False)
    saved = [q, k, v, references["lse"], references["delta"], g]
    orders = ((0, 2, 1, 3), (1, 2, 0, 3), (0, 1, 2, 3))
    op = PermutedResults(GRADIENTS, orders)
    attrs = {"causal": False, "scale": SCALE}
    out = op.infer(*(TensorType.of(x) for x in saved), **attrs)
    recipe = card_recipe_for(op, CardTerms(workspace=2 * 512 * matrices), out, *types(*saved), **attrs)
    expected = [references[name].transpose(order) for name, order in zip(("dq", "dk", "dv"), orders, strict=True)]
    run(recipe, saved, *expected, atol=1e-13)


@needs_compiler
def test_large_scores_do_not_overflow_and_nan_stays_in_its_row() -> None:
    q, k, v, _ = drawn((2,), 5, 6, "float32")
    q[0, 1] *= np.float32(1e4)
    q[1, 2, 0] = np.nan
    recipe = forward_recipe(PLENTY, q, k, v, scale=SCALE, causal=False)
    assert recipe is not None
    y, lse = np.zeros((2, 5, 7), "float32"), np.zeros((2, 5, 1), "float32")
    CardRun(recipe, "float32", [q, k, v], y, lse).run()
    assert np.isnan(y[1, 2]).all()
    assert np.isnan(lse[1, 2]).all()
    is_number = np.ones((2, 5), bool)
    is_number[1, 2] = False
    assert np.isfinite(y[is_number]).all()
    largest = (SCALE * q[0, 1].astype("float64") @ k[0].T.astype("float64")).max()
    assert lse[0, 1, 0] == pytest.approx(largest, rel=1e-5)


def test_precision_is_passed_to_the_products() -> None:
    q, k, v, _ = drawn((2,), 5, 6, "float32")
    for requested, used in (("float32", "float32"), ("tf32x3", "float32"), ("tf32", "tf32"), ("bfloat16", "bfloat16")):
        terms: Any = PLENTY._replace(precision=requested)
        recipe = forward_recipe(terms, q, k, v, scale=SCALE, causal=False)
        assert recipe is not None
        assert recipe.precision == used
        assert {p.precision for p in recipe.phases if isinstance(p, ProductPhase)} == {used}


def test_unsupported_operands_have_no_recipe() -> None:
    q, k, v, g = drawn((2,), 5, 6, "float32")
    mask, rows = np.zeros((5, 6), "float32"), np.zeros((2, 5, 1), "float32")
    attrs: Any = {"scale": 1.0, "causal": False}
    assert forward_recipe(PLENTY, q, k, v, mask, **attrs) is None
    assert gradients_recipe(PLENTY, q, k, v, rows, rows, g, mask, **attrs) is None
    strided = np.zeros((2, 5, 2), "float32")[..., :1]
    assert gradients_recipe(PLENTY, q, k, v, strided, rows, g, **attrs) is None
    halves = [x.astype("float16") for x in (q, k, v)]
    assert forward_recipe(PLENTY, *halves, **attrs) is None
    assert forward_recipe(PLENTY, q, k[:, :0], v[:, :0], **attrs) is None
    assert forward_recipe(PLENTY, q[..., ::2], k[..., ::2], v, **attrs) is None


@pytest.mark.skipif(nvrtc.library() is None, reason="the wheel nvidia-cuda-nvrtc is not installed")
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_nvrtc_compiles_the_kernels(dtype: str) -> None:
    recipe = forward_recipe(PLENTY, *drawn((2,), 5, 6, dtype)[:3], scale=SCALE, causal=True)
    assert recipe is not None
    assert compiled_for(recipe.text, "sm_90").startswith(b"\x7fELF")
