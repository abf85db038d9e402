"""Random recurrences, memory to bind them to, and their results step by step, to the last bit."""

from __future__ import annotations

import ctypes
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from engine.codegen.kernels.program import ARITHMETIC, BITS, KernelBuilder, Level, Scalar, Space, lanes_of
from engine.codegen.kernels.recurrence import Carry, Recurrence, recurrence_layout, recurrence_table, recurrence_text
from engine.codegen.native.machine_code import load_function, machine_code
from engine.codegen.native.native_call import SIGNATURE
from engine.cuda.cuda_text import cuda_steps
from engine.cuda.launch import recurrence_launch
from engine.cuda.ptx_text import ptx_recurrence_text
from tests.engine.codegen.kernels.c_compiler import compile_c
from tests.engine.codegen.kernels.c_text import c_recurrence_text
from tests.engine.codegen.kernels.cases import COLUMNS, Array, Case, expected, random_primitive, values
from tests.engine.codegen.kernels.cuda_shim import launch_on_host, shimmed
from tests.engine.codegen.kernels.ptx_shim import host_library

#: operands of a random recurrence: three carries, two that move from step to step, and two that are fixed
_LEVELS: Final = (*[Level.ELEMENT] * 4, Level.ROW, Level.ELEMENT, Level.ROW)
_CARRIES: Final = (Carry(0, 0), Carry(1, 1), Carry(2, 2))
_MOVING: Final = (3, 4)


@dataclass
class Steps:
    """A recurrence, its space, and its operands, which are [steps, …] if they move.

    Stored results in `overwritten` have a single entry, which each step writes.
    """

    recurrence: Recurrence
    space: Space
    steps: int
    operands: list[Array]
    overwritten: tuple[int, ...] = ()
    backwards: bool = False

    def results(self) -> list[Array]:
        """Allocate memory for the results, filled with a number that no kernel computes."""
        loop, shape = self.recurrence.fused, (*self.space.rows, self.space.columns)
        dtypes = [bool if loop.instructions[result.value].type == "bool" else loop.dtype for result in loop.results]
        leads = [(self.steps,) if n in self._stacked else () for n in range(len(dtypes))]
        return [np.full((*lead, *shape), 77, dtype) for lead, dtype in zip(leads, dtypes, strict=True)]

    @property
    def _stacked(self) -> set[int]:
        return {*self.recurrence.stored} - {*self.overwritten}

    def entries(self, results: list[Array]) -> list[int]:
        """Return the strides from step to step of operands and results, in elements."""
        moved = [(array, n in self.recurrence.moving) for n, array in enumerate(self.operands)]
        moved += [(array, n in self._stacked) for n, array in enumerate(results)]
        return [(-1 if self.backwards else 1) * array[:1].size if moves else 0 for array, moves in moved]

    def first_step(self, results: list[Array]) -> tuple[list[Array], list[Array]]:
        """Return operands and results as views of the first step."""
        first = -1 if self.backwards else 0
        moving = {*self.recurrence.moving} if self.steps else set()
        operands = [array[first] if n in moving else array for n, array in enumerate(self.operands)]
        stacked = self._stacked if self.steps else set()
        return operands, [array[first] if n in stacked else array for n, array in enumerate(results)]


def random_steps(seed: int) -> Steps:
    """Draw a recurrence of random primitives on rows of one to three axes."""
    rng = np.random.default_rng(seed)
    builder = KernelBuilder(str(rng.choice(["float32", "float64"])), int(rng.integers(1, 4)))
    loads = [builder.load(level, "bool" if n == 2 else "float") for n, level in enumerate(_LEVELS)]
    _compute(rng, builder, loads)
    recurrence = Recurrence(builder.build(), _CARRIES, _MOVING)
    rows = tuple(int(n) for n in rng.integers(1, 4, builder.row_axes))
    columns, steps = int(rng.choice(COLUMNS)), int(rng.integers(0, 6))
    operands = [_operand(rng, n, steps, rows, columns, builder.dtype) for n in range(len(_LEVELS))]
    shape = (*rows, columns)
    strides = [_strides(shape) if level == Level.ELEMENT else _strides((*rows, 1)) for level in _LEVELS] + [
        _strides(shape)
    ] * len(recurrence.fused.results)
    count = int(np.prod(rows))
    space = Space(rows, columns, count * columns, int(rng.integers(1, count + 2)), tuple(strides))
    return Steps(recurrence, space, steps, operands, (6,), bool(rng.random() < 0.5))


def _compute(rng: np.random.Generator, builder: KernelBuilder, loads: list[Scalar]) -> None:
    bits = 32 if builder.dtype == "float32" else 64
    pool: dict[str, list[Scalar]] = {"float": [], "bool": [], "int": []}
    for scalar in loads:
        pool[scalar.type].append(scalar)
    pool["float"] += [builder.constant(float(rng.normal())), builder.constant(-0.0)]
    pool["int"] += [builder.integer(int(rng.integers(-9, 9))), builder.integer(-(1 << (bits - 1)))]
    names = [name for name in (*ARITHMETIC, *BITS) if name != "fma"]
    for _ in range(int(rng.integers(5, 40))):
        scalar = random_primitive(rng, builder, str(rng.choice(names)), pool, bits)
        pool[scalar.type].append(scalar)
    for scalar in (pool["float"][-1], loads[0], pool["bool"][-1], pool["float"][-2], pool["bool"][-1], loads[1]):
        builder.store("element", scalar)
    builder.store("element", pool["float"][-int(rng.integers(1, 5))])


def _operand(rng: np.random.Generator, n: int, steps: int, rows: tuple[int, ...], columns: int, dtype: str) -> Array:
    shape = (*rows, columns if _LEVELS[n] == Level.ELEMENT else 1)
    lead = (steps,) if n in _MOVING else ()
    return values(rng, (*lead, *shape), np.dtype(bool if n == 2 else dtype))


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a dense array along its rows."""
    return tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape) - 1))


def step_by_step(given: Steps) -> list[Array]:
    """Compute the results with each step as a loop of its own."""
    results = given.results()
    carries = {carry.operand: given.operands[carry.operand] for carry in given.recurrence.carries}
    order = range(given.steps - 1, -1, -1) if given.backwards else range(given.steps)
    for t in order:
        operands = [
            carries.get(n, array[t] if n in given.recurrence.moving else array)
            for n, array in enumerate(given.operands)
        ]
        computed = expected(Case(given.recurrence.fused, given.space, operands))
        carries = {carry.operand: computed[carry.result] for carry in given.recurrence.carries}
        for n in given.recurrence.stored:
            results[n][... if n in given.overwritten else t] = computed[n]
    for carry in given.recurrence.carries:
        results[carry.result][...] = carries[carry.operand]
    return results


def run_llvm(given: Steps, results: list[Array]) -> bool:
    """Run the LLVM kernel."""
    lanes = lanes_of(given.recurrence.fused, given.space.columns)
    code = load_function(machine_code(recurrence_text(given.recurrence, lanes)))
    return _call(SIGNATURE(code.address), given, results)


def run_c(given: Steps, results: list[Array]) -> bool:
    """Run the kernel of the machine's C compiler."""
    with tempfile.TemporaryDirectory() as folder:
        library = compile_c(c_recurrence_text(given.recurrence), Path(folder), "-O1")
    return _call(SIGNATURE(("kernel", library)), given, results)


def run_cuda(given: Steps, results: list[Array]) -> bool:
    """Run the CUDA C kernel on the CPU."""
    with tempfile.TemporaryDirectory() as folder:
        text = shimmed(given.recurrence.fused.dtype, cuda_steps(given.recurrence))
        library = compile_c(text, Path(folder), "-O1", "-Wno-unknown-pragmas")
    return _launch(library, given, results)


def run_ptx(given: Steps, results: list[Array]) -> bool:
    """Run the GPU kernel in LLVM IR on the CPU."""
    with tempfile.TemporaryDirectory() as folder:
        text = ptx_recurrence_text(given.recurrence)
        library = host_library(given.recurrence.fused.dtype, [text], Path(folder))
    return _launch(library, given, results)


def _launch(library: ctypes.CDLL, given: Steps, results: list[Array]) -> bool:
    recurrence, flag = given.recurrence, np.zeros(1, np.uint8)
    entries = given.entries(results)
    addresses = [[array.ctypes.data for array in arrays] for arrays in given.first_step(results)]
    launch_on_host(
        library, recurrence_launch(recurrence, given.space, given.steps, entries, *addresses, flag.ctypes.data)
    )
    return bool(flag[0])


def _call(kernel: Any, given: Steps, results: list[Array]) -> bool:
    layout, flag = recurrence_layout(given.recurrence), np.zeros(1, np.uint8)
    table = recurrence_table(given.recurrence, given.space, given.steps, given.entries(results))
    positions = [*layout.kernel.operands, *layout.kernel.results]
    table[positions] = [array.ctypes.data for arrays in given.first_step(results) for array in arrays]
    table[layout.flag] = flag.ctypes.data
    kernel(0, -(-int(np.prod(given.space.rows)) // given.space.block), table.ctypes.data)
    return bool(flag[0])
