"""Matrix products as cases: operands in many layouts, the result, and a bound on its error."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from engine.codegen.microkernels.product import MatrixLayout, Product, product_kernel
from engine.codegen.microkernels.recipe import Recipe
from tests.engine.codegen.microkernels.running import Array, run_recipe

Lie = Literal["dense", "transposed", "flipped", "flipped columns", "strided", "apart"]
#: layouts of the matrices of an operand
LIES: tuple[Lie, ...] = ("dense", "transposed", "flipped", "flipped columns", "strided", "apart")
#: guard bytes around a result and behind the workspace
GUARD = 256
#: bytes of untouched memory, which is NaN when read
_UNTOUCHED = 0xFF


class Case(NamedTuple):
    """Operands a[…, i, k] and b[…, k, j]."""

    a: Array
    b: Array

    @property
    def batch(self) -> tuple[int, ...]:
        """The batch axes of the result."""
        return np.broadcast_shapes(self.a.shape[:-2], self.b.shape[:-2])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return (*self.batch, self.a.shape[-2], self.b.shape[-1])

    def recipe(self) -> Recipe:
        """Build the recipe of the product."""
        (rows, inner), columns = self.a.shape[-2:], self.b.shape[-1]
        out = np.empty(self.shape, self.a.dtype)
        layouts = [self._layout(x) for x in (self.a, self.b, out)]
        return product_kernel(Product(self.a.dtype.name, self.a.itemsize, self.batch, rows, inner, columns, *layouts))

    def _layout(self, x: Array) -> MatrixLayout:
        row, column = x.strides[-2:]
        steps = [0 if extent == 1 else step for extent, step in zip(x.shape[:-2], x.strides[:-2], strict=True)]
        return MatrixLayout(row, column, (0,) * (len(self.batch) - len(steps)) + tuple(steps))


def with_layout(x: Array, lie: Lie, beside: float = np.nan) -> Array:
    """Copy x to a view with a layout, in memory that holds `beside` around it."""
    lead, (rows, columns) = x.shape[:-2], x.shape[-2:]
    whole = np.full((*lead, 2 * rows + 40, 2 * columns + 40), beside, x.dtype)
    match lie:
        case "transposed":
            view = np.full((*lead, columns + 3, rows + 40), beside, x.dtype).swapaxes(-1, -2)[..., 2 : rows + 2, 1:-2]
        case "flipped":
            view = whole[..., rows + 1 : 1 : -1, 5 : columns + 5]
        case "flipped columns":
            view = whole[..., 2 : rows + 2, columns + 4 : 4 : -1]
        case "strided":
            view = whole[..., 3 : 2 * rows + 3 : 2, 7 : 2 * columns + 7 : 2]
        case "apart":
            view = whole[..., 1 : rows + 1, 3 : columns + 3]
        case "dense":
            view = np.empty_like(x)
    view[...] = x
    assert view.shape == x.shape
    return view


def random_case(
    dtype: str,
    extents: tuple[int, int, int],
    lies: tuple[Lie, Lie] = ("dense", "dense"),
    batches: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
    seed: int = 0,
) -> Case:
    """Draw normal numbers: a of rows × inner, b of inner × columns, `extents` in the order of rows, inner, columns."""
    (rows, inner, columns), random = extents, np.random.default_rng(seed)
    a = random.normal(size=(*batches[0], rows, inner)).astype(dtype)
    b = random.normal(size=(*batches[1], inner, columns)).astype(dtype)
    return Case(with_layout(a, lies[0]), with_layout(b, lies[1]))


def computed(
    case: Case, threads: int = 1, processor: tuple[str, str] | None = None, order: Sequence[int] | None = None
) -> Array:
    """Run the kernel, item by item if there is an `order`. Only the result and the workspace may be written."""
    one_by_one = None if order is None else lambda _: order
    recipe, dtype = case.recipe(), case.a.dtype
    return run_recipe(recipe, case, case.shape, dtype, threads=threads, processor=processor, order=one_by_one)


def items(case: Case) -> int:
    """Return the number of items of the only phase."""
    (phase,) = case.recipe().phases
    return phase.items


def reference(case: Case) -> Array:
    """Compute the product in float64 for float32, in longdouble for float64."""
    wide = np.float64 if case.a.dtype == np.float32 else np.longdouble
    with np.errstate(all="ignore"):
        return np.asarray(np.matmul(case.a.astype(wide), case.b.astype(wide)))


def assert_near(actual: Array, case: Case) -> None:
    """Assert errors within K·ε·Σ|a||b|, the bound of a sum from first to last (Higham 2002, §3.1)."""
    bound = case.a.shape[-1] * np.finfo(case.a.dtype).eps * reference(Case(abs(case.a), abs(case.b)))
    assert np.all(abs(actual - reference(case)) <= bound)


def before_unreadable_page(x: Array) -> Array:
    """Copy x to the end of a page that is followed by an unreadable page."""
    size = -(-x.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, size + mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    library = ctypes.CDLL(None)
    assert library.mprotect(ctypes.c_void_p(start + size), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    view: Array = np.frombuffer(memory, x.dtype, x.size, size - x.nbytes).reshape(x.shape)
    view[...] = x
    return view
