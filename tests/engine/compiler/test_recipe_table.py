"""Recipe tables: which nodes get microkernels, and which do not."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

from engine import registry
from engine.compiler.geometry import GEOMETRIES, Geometry
from engine.compiler.recipes import BODY_RECIPES, GEOMETRY_RECIPES, RECIPES, recipe_for
from engine.ir.op import Kernel
from engine.ir.tensor_type import Strided, TensorType
from engine.ops.conv.convolution import KERNEL_GRADIENT


def typed(shape: tuple[int, ...], dtype: str = "float64", strides: tuple[int, ...] | None = None) -> TensorType:
    dense = TensorType(shape, np.dtype(dtype))
    return dense if strides is None else Strided(dense, strides)


#: ops of the opset, and one that only rules emit
OPS = {**registry().ops, KERNEL_GRADIENT.name: KERNEL_GRADIENT}


def has_recipe(op: str, *types: TensorType, device: str = "cpu", in_body: bool = False, **stated: Any) -> bool:
    """Whether an op has a recipe for operands of these types, with attributes as stated or by default."""
    definition = OPS[op]
    assert isinstance(definition, Kernel)
    attrs = {**{name: attr.default for name, attr in definition.attrs.items()}, **stated}
    attrs = definition.canonical(attrs, *types)
    out = definition.infer(*types, **attrs)
    return recipe_for(definition, device, out, *types, in_body=in_body, **attrs) is not None


TABLE = (*RECIPES["cpu"], *GEOMETRIES)
BACKWARDS = typed((4, 40), strides=(320, -8))
PLANE, INDEX = typed((2, 3, 20, 20)), typed((30, 40), "int64")
TAPS = {"taps": (3, 3), "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}

CHOSEN: list[tuple[str, tuple[TensorType, ...], dict[str, Any], bool]] = [
    ("conv2d", (PLANE, typed((4, 3, 3, 3))), {}, True),
    ("conv2d", (typed((2, 3, 20, 20), "float16"), typed((4, 3, 3, 3), "float16")), {}, False),
    ("conv3d", (typed((1, 2, 6, 6, 6)), typed((2, 2, 3, 3, 3))), {}, True),
    ("conv_transpose2d", (PLANE, typed((3, 4, 3, 3))), {"stride": (2, 2)}, True),
    ("conv_transpose2d", (PLANE, typed((3, 4, 3, 3), "float32")), {}, False),
    ("kernel_gradient", (PLANE, typed((2, 4, 18, 18))), TAPS, True),
    ("kernel_gradient", (PLANE, typed((2, 4, 18, 18), "float32")), TAPS, False),
    ("kernel_gradient", (PLANE, typed((2, 4, 18, 18), strides=(32, 8, 0, 0))), TAPS, False),  # not contiguous
    ("matmul", (typed((3, 5)), typed((5, 4))), {}, True),
    ("matmul", (typed((3, 5), "int64"), typed((5, 4), "int64")), {}, False),
    ("matmul", (typed((3, 5), "float16"), typed((5, 4), "float16")), {}, False),
    ("sum", (typed((16, 32, 32)),), {"axes": (0, 2)}, True),
    ("sum", (typed((16, 32, 32), "float16"),), {"axes": (0, 2)}, False),
    ("sum", (typed((2, 3, 4)),), {"axes": (0, 2)}, False),
    ("sum", (typed((16, 32, 32)),), {"axes": (2,)}, False),
    ("identity", (BACKWARDS,), {}, True),
    ("identity", (typed((4, 40)),), {}, False),
    ("identity", (typed((40,), strides=(-8,)),), {}, True),
    ("identity", (typed((4, 5, 40), strides=(1600, 320, -8)),), {}, True),
    ("identity", (typed((4, 40, 5), strides=(1600, -8, 320)),), {}, False),
    ("max_pool2d", (PLANE,), {"kernel_size": (2, 2)}, True),
    ("max_pool2d", (typed((2, 3, 60, 60)),), {"kernel_size": (50, 50)}, False),
    ("max_pool2d", (typed((2, 20, 20), "int32"),), {"kernel_size": (2, 2)}, False),
    ("max_pool2d", (typed((3, 1, 2**31 - 1), "float32"),), {"kernel_size": (1, 2)}, True),  # numbered by an int32
    ("max_pool2d", (typed((3, 2**16, 2**15), "float32"),), {"kernel_size": (2, 2)}, False),
    ("max_pool2d_indices", (PLANE,), {"kernel_size": (2, 2)}, True),
    ("max_pool2d_indices", (typed((2, 20, 20), "int32"),), {"kernel_size": (2, 2)}, False),
    ("avg_pool2d", (typed((2, 20, 20), "int32"),), {"kernel_size": (2, 2)}, False),
    ("max_pool2d_back", (typed((2, 3, 10, 10)), PLANE), {"kernel_size": (2, 2)}, True),
    ("max_pool2d_back", (typed((2, 3, 10, 10), "float32"), PLANE), {"kernel_size": (2, 2)}, False),
    ("avg_pool2d", (PLANE,), {"kernel_size": (2, 2)}, True),
    ("gather", (typed((50, 40)), INDEX), {"axis": 0}, True),
    ("gather", (typed((50, 40)), typed((30, 40), "int64", (8, 0))), {"axis": 0}, False),  # whole rows
    ("gather", (typed((50, 2)), typed((30, 2), "int64")), {"axis": 0}, False),  # short rows
    ("scatter_add", (typed((30, 50)), INDEX, typed((30, 40))), {"axis": 1}, True),
    ("scatter_add", (typed((50, 40)), INDEX, typed((30, 40))), {"axis": 0}, False),
    ("scatter_add", (typed((50,)), typed((40,), "int64"), typed((40,))), {"axis": 0}, False),
    ("scatter_add", (typed((2, 3, 50)), typed((2, 3, 40), "int64"), typed((2, 3, 40))), {"axis": 2}, True),
    ("scatter_add", (typed((2, 3, 50)), typed((2, 2, 40), "int64"), typed((2, 2, 40))), {"axis": 2}, False),
    ("sum", (typed((4, 64, 16)),), {"axes": (0, 2)}, True),  # the smallest worth compiling
    ("sum", (typed((4, 63, 16)),), {"axes": (0, 2)}, False),
    ("max_pool2d", (typed((2, 3, 60, 60)),), {"kernel_size": (16, 16)}, True),  # no more than 8 times as many taps
    ("max_pool2d", (typed((2, 3, 60, 60)),), {"kernel_size": (17, 16)}, False),
    ("scatter_add", (typed((30, 50), "int64"), INDEX, typed((30, 40), "int64")), {"axis": 1}, False),
    ("exp", (typed((3,)),), {}, False),
]


@pytest.mark.parametrize(("op", "types", "attrs", "wanted"), CHOSEN, ids=[f"{i}-{c[0]}" for i, c in enumerate(CHOSEN)])
def test_recipe_selection(op: str, types: tuple[TensorType, ...], attrs: dict[str, Any], wanted: bool) -> None:
    assert has_recipe(op, *types, **attrs) == wanted
    assert not has_recipe(op, *types, device="cuda", **attrs)


def test_cases_cover_every_op_with_and_without_a_recipe() -> None:
    tried = {base: {wanted for op, _, _, wanted in CHOSEN if isinstance(OPS[op], base)} for base in TABLE}
    assert tried == {base: {True, False} for base in TABLE}


def test_cpu_has_a_recipe_for_every_geometry() -> None:
    assert set(GEOMETRY_RECIPES["cpu"]) == set(get_args(Geometry))


SMALL, FEW, SINGLE = typed((3, 3)), typed((3,), "int64"), typed((3, 3), "float32")
LARGE, HALF = typed((64, 64)), typed((3, 3), "float16")
#: ops with recipes only in loop bodies, and ops without recipes even there
IN_BODIES: list[tuple[str, tuple[TensorType, ...], dict[str, Any], bool]] = [
    ("add", (FEW, FEW), {}, True),
    ("add", (FEW, SMALL), {}, False),
    ("mod", (FEW, FEW), {}, False),  # more than a ufunc
    ("relu", (SMALL,), {}, False),  # no ufunc
    ("argmax", (SMALL,), {"axis": 0}, True),
    ("argmax", (HALF,), {"axis": 0}, False),
    ("atan2", (SMALL, SMALL), {}, True),
    ("cast", (SMALL,), {"dtype": np.dtype("int64")}, True),
    ("cast", (HALF,), {"dtype": np.dtype("int64")}, False),
    ("cholesky", (SMALL,), {}, True),
    ("cholesky", (SINGLE,), {}, False),
    ("cumsum", (SMALL,), {"axis": 0}, True),
    ("cumsum", (typed((3,), "int32"),), {"axis": 0}, False),
    ("betainc", (SMALL, SMALL, SMALL), {}, True),
    ("betainc", (SINGLE, SINGLE, SINGLE), {}, False),
    ("erfinv", (SMALL,), {}, True),
    ("erfinv", (SINGLE,), {}, False),
    ("gather", (SMALL, typed((3, 3), "int64")), {"axis": 0}, True),
    ("gather", (HALF, typed((3, 3), "int64")), {"axis": 0}, False),
    ("igamma", (SMALL, SMALL), {}, True),
    ("igammac", (SINGLE, SINGLE), {}, False),
    ("inv", (SMALL,), {}, True),
    ("inv", (LARGE,), {}, False),
    ("pow", (SMALL, SMALL), {}, True),
    ("pow", (FEW, FEW), {}, False),
    ("pow_scalar", (SMALL,), {"exponent": 2.5}, True),
    ("pow_scalar", (FEW,), {"exponent": 2.5}, False),
    ("scatter_add", (SMALL, typed((3, 3), "int64"), SMALL), {"axis": 0}, True),
    ("scatter_add", (SMALL, typed((3, 2), "int64"), typed((3, 2))), {"axis": 0}, False),
    ("solve", (SMALL, SMALL), {}, True),
    ("solve", (LARGE, LARGE), {}, False),
    ("triangular_solve", (SINGLE, SINGLE), {}, True),
    ("triangular_solve", (SMALL, SINGLE), {}, False),
]


@pytest.mark.parametrize(
    ("op", "types", "attrs", "wanted"), IN_BODIES, ids=[f"{i}-{c[0]}" for i, c in enumerate(IN_BODIES)]
)
def test_recipe_selection_in_loop_bodies(
    op: str, types: tuple[TensorType, ...], attrs: dict[str, Any], wanted: bool
) -> None:
    assert has_recipe(op, *types, in_body=True, **attrs) == wanted
    assert not has_recipe(op, *types, **attrs)


def test_in_body_is_false_by_default() -> None:
    op = OPS["exp"]
    assert isinstance(op, Kernel)
    assert recipe_for(op, "cpu", SMALL, SMALL) is None
    assert recipe_for(op, "cpu", SMALL, SMALL, in_body=True) is not None


def test_body_cases_cover_every_op_with_and_without_a_recipe() -> None:
    tried = {
        base: {wanted for op, _, _, wanted in IN_BODIES if isinstance(registry().ops[op], base)}
        for base in BODY_RECIPES["cpu"]
    }
    assert tried == {base: {True, False} for base in BODY_RECIPES["cpu"]}
