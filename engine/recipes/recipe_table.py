"""The table of recipes: by device and op, what is asked for a node's kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from engine.graph.op import Kernel
from engine.graph.tensor_type import TensorType
from engine.microkernels.recipe import Recipe
from engine.ops.conv import Correlation
from engine.ops.conv_transpose import TransposedConvolution
from engine.ops.gather import Gather, ScatterAdd
from engine.ops.identity import PassThrough
from engine.ops.matmul import MatMul
from engine.ops.pooling import AvgPool2D, MaxPool2D, MaxPool2DBack, MaxPool2DIndices
from engine.ops.sum import Sum
from engine.recipes.convolutions import convolution_recipe, transposed_recipe
from engine.recipes.copies import copy_recipe
from engine.recipes.indexing import gather_recipe, scatter_recipe
from engine.recipes.pools import avg_pool_recipe, max_pool_back_recipe, max_pool_indices_recipe, max_pool_recipe
from engine.recipes.products import product_recipe
from engine.recipes.sums import sum_recipe

#: of an op, its result's type, its operands' and its attributes: the recipe; None where there is none, or no use in it
RecipeOf = Callable[..., Recipe | None]

#: device → class of ops → what makes their recipes
RECIPES: Final[Mapping[str, Mapping[type[Kernel], RecipeOf]]] = MappingProxyType(
    {
        "cpu": {
            AvgPool2D: avg_pool_recipe,
            Correlation: convolution_recipe,
            Gather: gather_recipe,
            MatMul: product_recipe,
            MaxPool2D: max_pool_recipe,
            MaxPool2DBack: max_pool_back_recipe,
            MaxPool2DIndices: max_pool_indices_recipe,
            PassThrough: copy_recipe,
            ScatterAdd: scatter_recipe,
            Sum: sum_recipe,
            TransposedConvolution: transposed_recipe,
        }
    }
)


def recipe_for(op: Kernel, device: str, out: TensorType, *types: Any, **attrs: Any) -> Recipe | None:
    """How compiled kernels make the result on a device, of operands of these types, which lie as their strides say.

    Of an op that `makes_parts`, `out` may be a leading part of the result, lying in the whole. None where there are no
    such kernels, or the op is quicker by itself.
    """
    table = RECIPES.get(device, {})
    made_by = next((table[base] for base in type(op).__mro__ if base in table), None)
    return made_by and made_by(op, out, *types, **attrs)
