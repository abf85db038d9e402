"""Matrix products that BLAS is not quicker at."""

from __future__ import annotations

import numpy as np

from engine.graph.dtypes import has_loops
from engine.microkernels.product import Product, is_for_blas, product
from engine.microkernels.recipe import Recipe


def product_recipe(of: Product) -> Recipe | None:
    """Tiles in registers, of floats that are summed up in their own dtype, where BLAS is not quicker."""
    return product(of) if has_loops(np.dtype(of.dtype)) and not is_for_blas(of) else None
