"""Product recipes; those of `tf32x3` run with kernels built for the CPU and the cuBLASLt stand-in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import registry
from engine.cuda.binding import card_recipe_for, has_card_recipes
from engine.cuda.card_recipe import CardPlace, CardRecipe, LaunchPhase, ProductPhase
from engine.cuda.cublaslt import COMPUTE_32F_FAST_TF32, CublasLt
from engine.cuda.cuda_text import OPTIONS
from engine.cuda.cudnn_recipes import CardTerms
from engine.cuda.launch import Launch
from engine.cuda.products import SPLIT_KERNELS, SPLIT_TEXT, ProductCalls, ProductPlaces
from engine.ir.tensor_type import Strided, TensorType
from engine.ops.linalg.layouts import StridedProduct, StridedProducts
from tests.engine.codegen.kernels import nvrtc
from tests.engine.codegen.kernels.c_compiler import COMPILER, compile_c
from tests.engine.codegen.kernels.cuda_shim import launch_on_host, shimmed
from tests.engine.cuda.cublaslt_stand_in import CublasLtStandIn
from tests.engine.cuda.running import run_card_recipe

Array = np.ndarray[Any, Any]
MATMUL = registry().ops["matmul"]
TERMS = CardTerms("tf32x3", 1 << 20)
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


def recipe_of(a: Array, b: Array, terms: CardTerms = TERMS) -> CardRecipe | None:
    out = TensorType.of(np.matmul(a, b))
    return card_recipe_for(MATMUL, terms, out, *(Strided(TensorType.of(x), x.strides) for x in (a, b)))


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The kernels that split operands, built for the CPU."""
    folder: Path = tmp_path_factory.mktemp("split")
    return compile_c(shimmed("float32", SPLIT_KERNELS), folder, "-O1")


def product_by_recipe(kernels: Any, a: Array, b: Array) -> tuple[Array, list[int]]:
    """The product by its recipe, and the compute types of its partial products."""
    recipe = recipe_of(a, b)
    assert recipe is not None
    assert recipe.text == SPLIT_TEXT
    return run_phases(kernels, recipe, (a, b), np.matmul(a, b).shape)


def run_phases(
    kernels: Any, recipe: CardRecipe, operands: Sequence[Array], shape: tuple[int, ...]
) -> tuple[Array, list[int]]:
    """The result of a recipe, and the compute types of its products."""
    out = np.full(shape, 77, "float32")
    raw = np.full(recipe.workspace + 256, 0x77, np.uint8)
    workspace = raw[-raw.ctypes.data % 256 :]
    library = CublasLtStandIn()
    arrays: list[Array] = []

    def upload(addresses: Sequence[int]) -> tuple[int, Array]:
        arrays.append(np.array(addresses))
        return arrays[-1].ctypes.data, arrays[-1]

    calls = ProductCalls(CublasLt(library), upload)

    def address(place: CardPlace) -> int:
        buffer = {"operand": operands, "result": (out,), "workspace": (workspace,)}[place.kind][place.number]
        return int(buffer.ctypes.data) + place.offset

    for phase in recipe.phases:
        if isinstance(phase, ProductPhase):
            bias = 0 if phase.bias is None else address(phase.bias)
            places = ProductPlaces(address(phase.a), address(phase.b), address(phase.c), bias)
            for call in calls.bound(phase, places, 0):
                call.launch(0, 0)
        else:
            assert isinstance(phase, LaunchPhase)
            table = np.array([x if isinstance(x, int) else address(x) for x in phase.table], np.int64)
            launch_on_host(kernels, Launch(phase.kernel, phase.grid, phase.block, table, ()))
    return out, [call.compute for call in library.calls]


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


LAYOUTS = {
    "dense": (normal(20, 30), normal(30, 12, seed=1)),
    "transposed": (normal(30, 20).T, normal(12, 30, seed=1).T),
    "columns apart": (normal(20, 50)[:, 7:37], normal(30, 19, seed=1)[:, :12]),
    "a row": (normal(1, 30), normal(30, 1, seed=1)),
    "a column of many": (normal(20, 30), normal(30, 5, seed=1)[:, 2:3]),
    "one for all": (normal(3, 20, 30), np.broadcast_to(normal(30, 12, seed=1), (3, 30, 12))),
    "a batch": (normal(2, 3, 20, 30), normal(2, 3, 12, 30, seed=1).swapaxes(-1, -2)),
    "two axes": (normal(2, 20, 3, 30).swapaxes(1, 2), normal(2, 30, 3, 12, seed=1).swapaxes(1, 2)),
}


@needs_compiler
@pytest.mark.parametrize("lying", LAYOUTS)
def test_tf32x3_is_nearly_as_exact_as_float32(kernels: Any, lying: str) -> None:
    a, b = LAYOUTS[lying]
    actual, computed = product_by_recipe(kernels, a, b)
    assert computed == [COMPUTE_32F_FAST_TF32] * 3
    a, b = a.astype("float64"), b.astype("float64")
    error = np.abs(actual - np.matmul(a, b)) / np.matmul(np.abs(a), np.abs(b))
    # Each part of an operand has 11 bits and a sign; the smaller part is truncated, not rounded, and the product of
    # two smaller parts is omitted. float32 rounds to 2⁻²⁴, TF32 alone to 2⁻¹¹.
    assert error.max() < 2.0**-20


@needs_compiler
def test_exact_split_gives_an_exact_product(kernels: Any) -> None:
    """The operands have 13 significant bits, which TF32 alone would round."""
    a, b = np.full((4, 4), 1 + 2.0**-12, "float32"), np.eye(4, dtype="float32")
    actual, _ = product_by_recipe(kernels, a, b)
    np.testing.assert_array_equal(actual, a)


@needs_compiler
@pytest.mark.parametrize("factor", [1.0, 1.0003, 1.0007])  # whose small part is 0, positive, and negative
@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, np.finfo("float32").max, 1e-30])
def test_extreme_numbers_are_preserved(kernels: Any, number: float, factor: float) -> None:
    a, b = np.eye(4, dtype="float32") * np.float32(factor), np.eye(4, dtype="float32")
    b[1, 2] = number
    a[0, 1] = 0
    with np.errstate(all="ignore"):
        actual, expected = (
            product_by_recipe(kernels, a, b)[0],
            np.matmul(a.astype("float64"), b.astype("float64")).astype("float32"),
        )
    np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-45)


def test_small_workspace_falls_back_to_float32() -> None:
    a, b = LAYOUTS["dense"]
    split = recipe_of(a, b)
    assert split is not None
    recipe = recipe_of(a, b, CardTerms("tf32x3", split.workspace - 1))
    assert recipe is not None
    assert (len(recipe.phases), recipe.text, recipe.workspace) == (1, "", 0)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_dtypes_are_not_split(dtype: str) -> None:
    a, b = (x.astype(dtype) for x in LAYOUTS["dense"])
    recipe = recipe_of(a, b)
    assert recipe is not None
    assert [type(phase) for phase in recipe.phases] == [ProductPhase]


def test_unsupported_axes_are_not_split() -> None:
    a = normal(3, 2, 3, 2, 3, 4, 30)[::2, :, ::2, :, ::2]
    recipe = recipe_of(a, normal(30, 12))
    assert recipe is None or not any(isinstance(phase, LaunchPhase) for phase in recipe.phases)


# ---------------------------------------------------------------- products in the layout of their reader


def strided_recipe(terms: CardTerms, parts: Sequence[StridedProduct], shape: tuple[int, ...], *arrays: Array) -> Any:
    type = TensorType(shape, arrays[0].dtype)
    op = StridedProducts(type, parts)
    return card_recipe_for(op, terms, type, *(Strided(TensorType.of(x), x.strides) for x in arrays))


#: [2, 3, 5, 6] heads side by side, in rows of three; and a product with a bias between them
HEADS = StridedProduct((2, 3, 5, 6), 0, (5 * 54, 6, 54, 1))
LAST = StridedProduct((10, 36), 18, (54, 1), has_bias=True)


def strided_operands(dtype: str) -> list[Array]:
    """Integer operands, whose products are exact."""
    shapes = (2, 3, 5, 4), (2, 3, 4, 6), (10, 4), (4, 36), (36,)
    draws = np.random.default_rng(5)
    return [draws.integers(-4, 5, shape).astype(dtype) for shape in shapes]


def strided_reference(a: Array, b: Array, c: Array, d: Array, bias: Array) -> Array:
    heads = (a @ b).swapaxes(1, 2).reshape(10, 18)
    return np.concatenate([heads, c @ d + bias], axis=1).reshape(2, 5, 54)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_parts_are_written_in_the_layout_of_their_reader(dtype: str) -> None:
    arrays = strided_operands(dtype)
    recipe = strided_recipe(CardTerms(), (HEADS, LAST), (2, 5, 54), *arrays)
    assert [type(phase) for phase in recipe.phases] == [ProductPhase] * 2
    actual = run_card_recipe(recipe, dtype, arrays, (2, 5, 54))
    np.testing.assert_array_equal(actual, strided_reference(*arrays))


@needs_compiler
def test_tf32x3_parts_are_written_in_the_same_layout(kernels: Any) -> None:
    """Infinite results are corrected in place, and their neighbours do not change."""
    arrays = strided_operands("float32")
    arrays[0][1, 2, 3, 0] = np.inf
    arrays[1][1, 2, 0] = 3
    recipe = strided_recipe(TERMS, (HEADS, LAST), (2, 5, 54), *arrays)
    assert recipe.precision == "tf32x3"
    with np.errstate(all="ignore"):
        actual, expected = run_phases(kernels, recipe, arrays, (2, 5, 54))[0], strided_reference(*arrays)
    assert np.isinf(expected).sum() == 6
    np.testing.assert_array_equal(actual, expected)


def test_parts_share_one_precision() -> None:
    """If the workspace is too small for one part, all parts use float32."""
    arrays = strided_operands("float32")
    small, large = (strided_recipe(TERMS, (part,), (2, 5, 54), *operands) for part, operands in _with_operands(arrays))
    assert small.workspace != large.workspace
    terms = TERMS._replace(workspace=max(small.workspace, large.workspace) - 1)
    recipe = strided_recipe(terms, (HEADS, LAST), (2, 5, 54), *arrays)
    assert (recipe.precision, recipe.workspace, len(recipe.phases)) == ("float32", 0, 2)


def _with_operands(arrays: Sequence[Array]) -> list[tuple[StridedProduct, Sequence[Array]]]:
    return [(HEADS, arrays[:2]), (LAST, arrays[2:])]


def test_one_unsupported_part_makes_the_recipe_unavailable() -> None:
    arrays = strided_operands("float32")
    transposed = StridedProduct((10, 36), 0, (1, 10))
    assert strided_recipe(CardTerms(), (HEADS, transposed), (2, 5, 54), *arrays[:4]) is None
    strided_bias = np.zeros((72,), "float32")[::2]
    assert strided_recipe(CardTerms(), (HEADS, LAST), (2, 5, 54), *arrays[:4], strided_bias) is None


def test_integers_have_no_recipe() -> None:
    a = np.ones((3, 3), "int64")
    assert recipe_of(a, a) is None
    assert has_card_recipes(MATMUL)
    assert not has_card_recipes(registry().ops["exp"])
    floats = TensorType((3,), np.dtype("float32"))
    assert card_recipe_for(registry().ops["exp"], TERMS, floats, floats) is None


@pytest.mark.skipif(nvrtc.library() is None, reason="the wheel nvidia-cuda-nvrtc is not installed")
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_nvrtc_compiles_the_kernels(architecture: str) -> None:
    code = nvrtc.compiled(SPLIT_TEXT, (*OPTIONS, f"--gpu-architecture={architecture}"))
    assert code.startswith(b"\x7fELF")
