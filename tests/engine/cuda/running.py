"""Card recipes run on the CPU: kernels built by the machine's C compiler, and products by NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.lib.stride_tricks import as_strided

from engine.codegen.microkernels.product import MatrixLayout
from engine.cuda.card_recipe import CardPlace, CardRecipe, LaunchPhase, ProductPhase, card_definitions, compute_dtype
from engine.cuda.cuda_text import OPTIONS
from engine.cuda.launch import Launch
from tests.engine.codegen.kernels import nvrtc
from tests.engine.codegen.kernels.c_compiler import compile_c
from tests.engine.codegen.kernels.cuda_shim import launch_on_host, shimmed

Array = np.ndarray[Any, Any]

#: guard bytes around memory that may be written
GUARD: Final = 512
#: initial content of memory: NaN if read as a float
_UNTOUCHED: Final = 0xFF
#: float16 conversions on the CPU, in place of the card's instructions
HALF_ON_HOST: Final = """\
typedef unsigned short E;
static F WIDEN(E x) { union { E bits; _Float16 number; } u; u.bits = x; return (F)u.number; }
static E NARROW(F x) { union { E bits; _Float16 number; } u; u.number = (_Float16)x; return u.bits; }
"""
_WHOLE: Final = "typedef F E;\n#define WIDEN(x) (x)\n#define NARROW(x) (x)\n"


class CardRun:
    """A recipe with its memory: operands, results, workspace and flag."""

    def __init__(self, recipe: CardRecipe, dtype: str, operands: Sequence[Array], *results: Array) -> None:
        self.recipe, self.dtype, self.operands, self.results = recipe, dtype, operands, results
        self._workspace = np.full(recipe.workspace + 2 * GUARD, _UNTOUCHED, np.uint8)
        self._flag = np.zeros(1, np.int32)

    @property
    def flag(self) -> int:
        """The flag that was set."""
        return int(self._flag[0])

    def run(self) -> None:
        """Run all phases. Asserts that nothing is written around the workspace."""
        for phase in self.recipe.phases:
            if isinstance(phase, LaunchPhase):
                self._launch(phase)
            else:
                assert isinstance(phase, ProductPhase)
                self._multiply(phase)
        assert (self._workspace[:GUARD] == _UNTOUCHED).all()
        assert (self._workspace[len(self._workspace) - GUARD :] == _UNTOUCHED).all()

    def _launch(self, phase: LaunchPhase) -> None:
        table = [self._address(entry) if isinstance(entry, CardPlace) else entry for entry in phase.table]
        assert f"at[{len(table)}]" in self.recipe.text
        launch = Launch(phase.kernel, phase.grid, phase.block, np.array(table, np.int64), ())
        launch_on_host(host_library(self.recipe.text, self.dtype), launch)

    def _multiply(self, phase: ProductPhase) -> None:
        product, dtype = phase.product, np.dtype(phase.product.dtype)
        wide = np.dtype(compute_dtype(product.dtype))
        assert dtype.itemsize == product.itemsize
        assert len(product.batch) <= 2
        a = self._matrices(phase.a, product.a, product.batch, (product.rows, product.inner), dtype)
        b = self._matrices(phase.b, product.b, product.batch, (product.inner, product.columns), dtype)
        c = self._matrices(
            phase.c, product.c, product.batch, (product.rows, product.columns), wide if phase.widens else dtype
        )
        result = a.astype(wide) @ b.astype(wide)
        if phase.bias is not None:
            result += self._numbers(phase.bias, product.columns, dtype)
        c[...] = c.astype(wide) + result if phase.adds else result

    def _matrices(
        self,
        place: CardPlace,
        layout: MatrixLayout,
        batch: tuple[int, ...],
        shape: tuple[int, int],
        number: np.dtype[Any],
    ) -> Array:
        """A view of memory in a layout that cuBLASLt supports: rows or columns contiguous."""
        rows, columns = shape
        size = number.itemsize
        assert (layout.column == size and layout.row >= columns * size) or (
            layout.row == size and layout.column >= rows * size
        )
        assert not any(step < 0 or step % size for step in layout.batch)
        address = self._address(place)
        assert address % size == 0
        first = np.frombuffer((ctypes.c_char * size).from_address(address), number)
        view = as_strided(first, (*batch, *shape), (*layout.batch, layout.row, layout.column))
        low, high = byte_bounds(view)
        begin, end = self._bounds(place)
        assert begin <= low <= high <= end
        return view

    def _numbers(self, place: CardPlace, count: int, number: np.dtype[Any]) -> Array:
        address = self._address(place)
        begin, end = self._bounds(place)
        assert begin <= address <= address + count * number.itemsize <= end
        return np.frombuffer((ctypes.c_char * (count * number.itemsize)).from_address(address), number)

    def _bounds(self, place: CardPlace) -> tuple[int, int]:
        if place.kind == "workspace":
            begin = self._workspace.ctypes.data + GUARD
            return begin, begin + self.recipe.workspace
        return byte_bounds((self.operands if place.kind == "operand" else self.results)[place.number])

    def _address(self, place: CardPlace) -> int:
        starts = {
            "operand": lambda: self.operands[place.number].ctypes.data,
            "result": lambda: self.results[place.number].ctypes.data,
            "workspace": lambda: self._workspace.ctypes.data + GUARD,
            "flag": lambda: self._flag.ctypes.data,
        }
        return int(starts[place.kind]()) + place.offset


def run_card_recipe(
    recipe: CardRecipe, dtype: str, operands: Sequence[Array], shape: tuple[int, ...], result_dtype: Any = None
) -> Array:
    """The dense result. Asserts that nothing is written around it, and that no flag is set."""
    number = np.dtype(result_dtype or dtype)
    nbytes = int(np.prod(shape, dtype=np.int64)) * number.itemsize
    memory = np.full(nbytes + 2 * GUARD, _UNTOUCHED, np.uint8)
    result = memory[GUARD : GUARD + nbytes].view(number).reshape(shape)
    run = CardRun(recipe, dtype, operands, result)
    run.run()
    assert run.flag == 0
    assert (memory[:GUARD] == _UNTOUCHED).all()
    assert (memory[GUARD + nbytes :] == _UNTOUCHED).all()
    return result


@cache
def host_library(text: str, dtype: str) -> ctypes.CDLL:
    """The kernels of a text, built for the CPU."""
    head = card_definitions(dtype)
    assert text.startswith(head)
    kernels = (HALF_ON_HOST if dtype == "float16" else _WHOLE) + text.removeprefix(head)
    return compile_c(shimmed(compute_dtype(dtype), kernels), Path(mkdtemp()), "-O1", "-Wno-unknown-pragmas")


def compiled_for(text: str, architecture: str) -> bytes:
    """The machine code that NVRTC compiles from a text."""
    return nvrtc.compiled(text, (*OPTIONS, f"--gpu-architecture={architecture}"))
