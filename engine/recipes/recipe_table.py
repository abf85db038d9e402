"""Recipes: which microkernels compute a node, by device and by geometry or op; None where the op is as quick itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from engine.graph.op import Kernel
from engine.graph.tensor_type import TensorType
from engine.microkernels.convolution import DirectedConvolution
from engine.microkernels.product import Product
from engine.microkernels.recipe import Recipe
from engine.microkernels.windows import DirectedPool
from engine.oplib.elementwise import Elementwise
from engine.oplib.library_function import LibraryUfunc
from engine.ops.cast import Cast
from engine.ops.cholesky import Cholesky
from engine.ops.cumsum import CumSum
from engine.ops.erfinv import Erfinv
from engine.ops.gather import Gather, ScatterAdd
from engine.ops.identity import PassThrough
from engine.ops.max_min import ArgExtremum
from engine.ops.power import Pow, PowScalar
from engine.ops.solve import Inv, Solve
from engine.ops.sum import Sum
from engine.ops.triangular_solve import TriangularSolve
from engine.recipes.by_class import of_class
from engine.recipes.convolutions import convolution_recipe
from engine.recipes.copies import copy_recipe
from engine.recipes.geometry import Geometry, geometry_of
from engine.recipes.indexing import body_gather_recipe, body_scatter_recipe, gather_recipe, scatter_recipe
from engine.recipes.pools import pool_recipe
from engine.recipes.products import product_recipe
from engine.recipes.sums import sum_recipe
from engine.recipes.ufuncs import (
    cast_recipe,
    cholesky_recipe,
    erfinv_recipe,
    library_recipe,
    matrix_recipe,
    power_recipe,
    running_recipe,
    search_recipe,
    triangle_recipe,
    ufunc_recipe,
)

#: of an op, its result's type, its operands' and its attributes: the recipe; None where there is none, or no use in it
RecipeOf = Callable[..., Recipe | None]

#: device → kind of geometry → what makes the recipe of a node that is such; None where there is none, or no use in it
GEOMETRY_RECIPES: Final[Mapping[str, Mapping[type[Geometry], Callable[[Any], Recipe | None]]]] = MappingProxyType(
    {
        "cpu": {
            DirectedConvolution: convolution_recipe,
            DirectedPool: pool_recipe,
            Product: product_recipe,
        }
    }
)
#: device → class of ops → what makes their recipes
RECIPES: Final[Mapping[str, Mapping[type[Kernel], RecipeOf]]] = MappingProxyType(
    {
        "cpu": {
            Gather: gather_recipe,
            PassThrough: copy_recipe,
            ScatterAdd: scatter_recipe,
            Sum: sum_recipe,
        }
    }
)
#: those of what is as quick by itself, but for Python: in bodies of loops, where one such step slows all others
BODY_RECIPES: Final[Mapping[str, Mapping[type[Kernel], RecipeOf]]] = MappingProxyType(
    {
        "cpu": {
            ArgExtremum: search_recipe,
            Cast: cast_recipe,
            Cholesky: cholesky_recipe,
            CumSum: running_recipe,
            Elementwise: ufunc_recipe,
            Erfinv: erfinv_recipe,
            Gather: body_gather_recipe,
            Inv: matrix_recipe,
            LibraryUfunc: library_recipe,
            Pow: power_recipe,
            PowScalar: power_recipe,
            ScatterAdd: body_scatter_recipe,
            Solve: matrix_recipe,
            TriangularSolve: triangle_recipe,
        }
    }
)


def recipe_for(
    op: Kernel, device: str, out: TensorType, *types: Any, in_body: bool = False, **attrs: Any
) -> Recipe | None:
    """The recipe of a result on a device, of operands of these types, which lie as their strides say.

    Of an op that `makes_parts`, `out` may be a leading part of the result, lying in the whole. None where there are no
    such kernels, or the op is quicker by itself, and is not in a body.
    """
    by_geometry = GEOMETRY_RECIPES.get(device)
    geometry = by_geometry and geometry_of(op, out, *types, **attrs)
    if by_geometry and geometry:
        return by_geometry[type(geometry)](geometry)
    for tables in (RECIPES, BODY_RECIPES) if in_body else (RECIPES,):
        made_by = of_class(tables.get(device, {}), op)
        found = made_by and made_by(op, out, *types, **attrs)
        if found is not None:
            return found
    return None
