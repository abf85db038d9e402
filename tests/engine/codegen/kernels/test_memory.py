"""Memory accesses of kernels: one module writes them, and bounds checks only add lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from engine.codegen.functions import expansions
from engine.codegen.kernels import assembly as bounds_writer
from engine.codegen.kernels import assembly as memory
from engine.codegen.kernels import program
from engine.codegen.kernels.assembly import Assembly, KernelMemory
from engine.codegen.kernels.llvm_text import llvm_text
from engine.codegen.microkernels import routine
from engine.codegen.microkernels.recipe import KernelPhase
from engine.codegen.microkernels.routine import Routine
from engine.codegen.native import native_call
from engine.codegen.native.machine_code import load_function, machine_code
from engine.codegen.native.native_call import BOUNDS, SIGNATURE, FaultEntry, NativeCall, byte_span
from engine.cuda import ptx_text
from tests.engine.codegen.kernels.cases import Array, random_case

#: a module of each package that writes kernels
PACKAGES = (program.__file__, ptx_text.__file__, routine.__file__, native_call.__file__, expansions.__file__)
#: modules that write memory accesses of kernels
WRITERS = {memory.__file__, bounds_writer.__file__}
ACCESS = re.compile(r"""["' ](load|store|cmpxchg|atomicrmw) (atomic |\{|<|i\d|ptr|float|double)|llvm\.masked""")
#: a checked pointer, and the pointer that it stands for
CHECKED_POINTER = re.compile(r"  (%bounds\.\d+) = call [^(]* @bounded[^(]*\((?:ptr|<\d+ x ptr>) (%[^ ,]+)")
LANES = 4


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Build kernels with bounds checks, and clear their record afterwards."""
    monkeypatch.setattr(BOUNDS, "checked", True)
    yield
    BOUNDS.record[:] = 0


def test_one_module_writes_memory_accesses() -> None:
    files = {path for package in PACKAGES for path in Path(package).parent.glob("*.py")}
    writers = {str(file) for file in files if ACCESS.search(file.read_text("utf-8"))}
    assert writers == WRITERS


def test_pointer_without_a_buffer_is_refused() -> None:
    memory = KernelMemory(Assembly("float32"))
    with pytest.raises(KeyError):
        memory.load("float", "%from.nowhere")
    with pytest.raises(KeyError):
        memory.offset("%from.nowhere", "float", 1)


# ---------------------------------------------------------------- bounds checks


def unchecked(text: str) -> str:
    """Remove the bounds checks from a kernel."""
    lines = text[: text.index("\n}") + 2].splitlines()
    pointers = dict(CHECKED_POINTER.findall(text))
    remaining = [line for line in lines if not line.startswith("  %bounds.")]
    return re.sub(r"%bounds\.\d+", lambda match: pointers[match[0]], "\n".join(remaining))


def kernel(text: str) -> str:
    return text[: text.index("\n}") + 2]


@pytest.mark.parametrize("seed", range(12))
def test_bounds_checks_only_add_lines_to_a_loop(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case(seed)
    usual = llvm_text(case.loop, case.lanes)
    monkeypatch.setattr(BOUNDS, "checked", True)
    assert unchecked(llvm_text(case.loop, case.lanes)) == kernel(usual) != kernel(llvm_text(case.loop, case.lanes))


def access_routine() -> KernelPhase:
    """Write a routine with each kind of access, from x to y."""
    to = Routine("float32", LANES)
    x, y = to.place("operand", 0), to.place("result", 0)
    with to.loop(0, 2, carried=[("ptr", x)]) as each:
        to.store(to.load(each.carried[0]), y, to.first(3))
        each.carry = [to.at(each.carried[0], 4)]
    to.store_row(to.load_row(x, 8, to.first(2)), to.at(y, 4), 8, to.first(1))
    to.store_number(to.load_number(to.at(x, 12)), y)
    return to.phase(1, 0)


def test_bounds_checks_only_add_lines_to_a_routine(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = access_routine().text
    monkeypatch.setattr(BOUNDS, "checked", True)
    text = access_routine().text
    assert unchecked(text) == kernel(usual)
    assert len(re.findall(r"call \S+ @bounded|call <4 x ptr> @bounded", kernel(text))) == 8


# ---------------------------------------------------------------- faults


Write = Callable[[Routine, str, str], None]


def run(write: Write, x: Array, y: Array) -> NativeCall:
    """Run a routine that is bound to exactly two arrays."""
    to = Routine("float32", LANES)
    write(to, to.place("operand", 0), to.place("result", 0))
    code = load_function(machine_code(to.phase(1, 0).text))
    call = NativeCall(SIGNATURE(code.address), code.address, 1, BOUNDS.tables(1, 2), code)
    call.point(0, x)
    call.point(1, y)
    call()
    return call


def masked_load(to: Routine, x: str, y: str) -> None:
    to.store(to.load(x, to.first(3)), y, to.first(3))


def load_of_one_more(to: Routine, x: str, y: str) -> None:
    to.store(to.load(x, to.first(4)), y, to.first(3))


def store_of_one_more(to: Routine, x: str, y: str) -> None:
    to.store(to.load(x, to.first(3)), y)


def store_before(to: Routine, x: str, y: str) -> None:
    to.store_number(to.load_number(x), to.at(y, -4))


def scatter_of_one_more(to: Routine, x: str, y: str) -> None:
    to.scatter(to.load(x, to.first(3)), y, 8, to.first(3))


def gather_across_the_end(to: Routine, x: str, y: str) -> None:
    to.store(to.gather(to.at(x, 2), 4, to.first(3)), y, to.first(3))


def load_beyond_a_part(to: Routine, x: str, y: str) -> None:
    to.memory.part(x, "float", "2")
    to.store(to.load(x, to.first(3)), y, to.first(3))


def part_beyond_a_buffer(to: Routine, x: str, y: str) -> None:
    to.memory.part(x, "float", "9")
    to.store(to.load(x), y, to.first(3))


@pytest.mark.usefixtures("checked")
@pytest.mark.parametrize(
    ("write", "position", "offset", "extent"),
    [
        (masked_load, 0, None, 12),
        (load_of_one_more, 0, 12, 12),
        (store_of_one_more, 1, 12, 12),
        (store_before, 1, -4, 12),
        (scatter_of_one_more, 1, 16, 12),
        (gather_across_the_end, 0, 10, 12),
        (load_beyond_a_part, 0, 8, 8),
        (part_beyond_a_buffer, 0, 12, 12),
    ],
)
def test_out_of_bounds_access_is_recorded_and_skipped(
    write: Write, position: int, offset: int | None, extent: int
) -> None:
    memory = np.full(20, -7, "float32")
    call = run(write, np.arange(3, dtype="float32"), memory[8:11])
    assert (memory[:8] == -7).all()
    assert (memory[11:] == -7).all()
    assert bool(BOUNDS.record[FaultEntry.OCCURRED]) is (offset is not None)
    if offset is not None:
        assert BOUNDS.record[FaultEntry.TABLE] == call.entries.ctypes.data
        assert BOUNDS.record[FaultEntry.POSITION] == position
        assert BOUNDS.record[FaultEntry.OFFSET] == offset
        assert BOUNDS.record[FaultEntry.EXTENT] == extent
        assert BOUNDS.record[FaultEntry.ELEMENT] == 4


@pytest.mark.usefixtures("checked")
def test_first_fault_is_recorded() -> None:
    for write in (store_before, load_of_one_more):
        run(write, np.arange(3, dtype="float32"), np.zeros(3, "float32"))
    assert BOUNDS.record[FaultEntry.OFFSET] == -4


def test_byte_span_of_an_array() -> None:
    x = np.zeros((3, 4), "float32")
    assert byte_span(x) == (0, 48)
    assert byte_span(x[1:, ::2]) == (0, 28)
    assert byte_span(x[::-1, ::-1]) == (44, 4)
    assert byte_span(x[:0]) == (0, 0)
    assert byte_span(np.broadcast_to(np.zeros(()), (5, 6))) == (0, 8)
