"""Random input for every field of every op: it compiles or raises EngineError, in few steps and little memory.

Nothing is executed: feeds have types only, so that extents of any size reach the rules.
"""

from __future__ import annotations

import dis
import resource
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from engine import DTYPES, LATEST, Compiler, EngineError, Limits, Program, Statement, TensorType, registry
from engine.ir.attributes import Attr
from engine.ir.op import Definition
from tests.sampling import EXHAUSTIVE

Draw = Callable[[st.SearchStrategy[Any]], Any]
# Far above any machine, so that rules see huge extents before the budget rejects them.
WIDE = Compiler(Limits(bytes=2**90, flops=2**90), capacity=1)
OPS = registry().ops

EXTENTS = st.sampled_from([0, 1, 2, 2, 3, 3, 4, 6, 31, 10**6, 2**31, 2**40])
INTS = st.sampled_from([0, 1, -1, 2, -2, 3, 4, 32, 33, 10**6, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63), 2**63])
FLOATS = st.sampled_from([0.0, -0.0, 1, 1.0, -1.5, 0.5, 2.0, 1e-320, 1e308, -1e308, 2**70, float("inf"), float("nan")])
EQUATIONS = ["ij,jk->ik", "ij->", "ii->i", "i,i->i", "ab,bc,cd->ad", "...i->i", "i", "->", ",", "i j->ij", "é->é"]
STRINGS = st.sampled_from([*EQUATIONS, "", "mean", "sum", "none", "tanh", "x" * 100_000, "\x00\u202e", "->" * 1000])
KINDS: Mapping[str, st.SearchStrategy[Any]] = {
    "int": INTS,
    "float": FLOATS,
    "number": st.one_of(FLOATS, INTS),
    "bool": st.booleans(),
    "string": STRINGS,
    "ints": st.one_of(
        st.lists(st.sampled_from([0, 1, 2, 3, -1, -2]), max_size=5),
        st.lists(INTS, max_size=6),
        st.sampled_from([[1] * 33, [1] * 20_000, [2**62] * 40, [0, 2**63 - 1]]),
    ),
    "dtype": st.sampled_from([*DTYPES, "complex256", "object", "f8", ""]),
    "tensor": st.sampled_from([np.zeros((2, 3)), np.array(2, "int8"), np.zeros((0, 2), "bool")]),
}
WRONG = st.one_of(*KINDS.values(), st.sampled_from([None, 10**5000, [10**5000], {}, {"a": []}, [[1]], b"x", 1j]))


def draw_attribute(draw: Draw, attr: Attr, rank: int) -> Any:
    """Draw a value for an attribute: mostly of its kind, and for lists often one entry per axis."""
    if not draw(st.integers(0, 9)):
        return draw(WRONG)
    if attr.choices and draw(st.booleans()):
        return draw(st.sampled_from(attr.choices))
    if attr.kind == "ints" and draw(st.booleans()):
        length = draw(st.sampled_from([rank, 2, 2 * rank]))
        return draw(st.lists(st.one_of(st.integers(0, 3), INTS), min_size=length, max_size=length))
    return draw(KINDS.get(attr.kind, st.sampled_from(attr.definition.samples)))


@st.composite
def types(draw: Draw) -> TensorType:
    if not draw(st.integers(0, 30)):
        return TensorType((1,) * draw(st.sampled_from([32, 33, 5000])), np.dtype("float64"))
    dtype = draw(st.sampled_from([*DTYPES, "float64", "float64", "float64", "int64"]))
    return TensorType(tuple(draw(st.lists(EXTENTS, max_size=5))), np.dtype(dtype))


@st.composite
def operands(draw: Draw, op: Definition) -> list[TensorType]:
    """Draw operand types, mostly of the right number, and often equal so that they pass the first check."""
    least, most = op.arity
    count = draw(st.integers(0, 5)) if not draw(st.integers(0, 9)) else draw(st.integers(least, min(most, least + 2)))
    first = draw(types())
    return [first if draw(st.booleans()) else draw(types()) for _ in range(count)]


@st.composite
def op_calls(draw: Draw, op: Definition) -> tuple[list[TensorType], dict[str, Any]]:
    given_types = draw(operands(op))
    rank = given_types[0].ndim if given_types and given_types[0].ndim < 33 else 2
    stated = {name: draw_attribute(draw, a, rank) for name, a in op.attrs.items() if a.required or draw(st.booleans())}
    if not draw(st.integers(0, 20)):
        stated[draw(st.sampled_from(["axis", "x" * 1000, "\n", "__class__"]))] = draw(WRONG)
    return given_types, stated


STEPS = 1_000_000  # calls, and lines of functions that loop: about a second of work


@cache
def has_loop(code: CodeType) -> bool:
    """Return whether the code contains a loop."""
    return any("JUMP_BACKWARD" in each.opname for each in dis.get_instructions(code))


@contextmanager
def step_limit() -> Iterator[None]:
    """Fail after more than STEPS calls and loop iterations in Python."""
    remaining, previous = STEPS, sys.gettrace()

    def trace(frame: FrameType, *_: Any) -> Any:
        nonlocal remaining
        remaining -= 1
        assert remaining > 0, f"more than {STEPS} steps, now in {frame.f_code.co_qualname}"
        return trace if has_loop(frame.f_code) else None

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(previous)


@contextmanager
def address_space_limit() -> Iterator[None]:
    """Limit the address space to 1 GiB more than now."""
    limit = resource.getrlimit(resource.RLIMIT_AS)
    if sys.platform == "linux":
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)


@contextmanager
def memory_limit() -> Iterator[None]:
    """Fail if Python objects and arrays take 64 MiB."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def compile_op(op: Definition, given_types: list[TensorType], stated: dict[str, Any], index: int) -> str:
    """Compile the value of the op, then its gradients, and return the error code or “compiled”."""
    count = len(given_types)
    nodes = [Statement(OPS["input"])] * count + [Statement(op, tuple(range(count)), stated)]
    if op.several:
        nodes.append(Statement(OPS["get_output"], (count,), {"index": index}))
    feeds = dict(enumerate(given_types))
    try:
        program = Program(registry(), nodes, opset=LATEST)
        if op.name in ("input", "parameter"):
            feeds[count] = TensorType((2, 3), np.dtype("float64"))
        result = WIDE.forward(program, feeds).plan.result_types[0]
        WIDE.gradients(program, feeds, wrt=list(range(count)), cotangent=result)
    except EngineError as error:
        check_message(error)
        check_operand(error, count, max(count, len(op.operands)))
        return error.code
    return "compiled"


def check_message(error: EngineError) -> None:
    assert len(error.detail) < 8000, error.detail[:200]  # two shapes with the maximum number of entries
    assert error.detail.isprintable(), error.detail
    for part in (error.expected, error.got):
        assert part is None or (part.isprintable() and len(part) < 4000)


def check_operand(error: EngineError, node: int, operands: int) -> None:
    """Assert that an error of the op under test names one of its operands, or none."""
    assert error.node != node or error.operand is None or 0 <= error.operand < operands


@pytest.mark.parametrize("name", OPS)
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_input_compiles_or_is_rejected(name: str, data: st.DataObject) -> None:
    check_random_input(OPS[name], data)


@EXHAUSTIVE
@pytest.mark.parametrize("name", OPS)
@settings(max_examples=17, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_more_random_input_compiles_or_is_rejected(name: str, data: st.DataObject) -> None:
    check_random_input(OPS[name], data)


def check_random_input(op: Definition, data: st.DataObject) -> None:
    """Compile a drawn call within the step limit, and again within the memory limit."""
    given_types, stated = data.draw(op_calls(op))
    index = data.draw(st.sampled_from([0, 1, 2, -1, 2**63 - 1]))
    with address_space_limit():
        with step_limit():
            outcome = compile_op(op, given_types, stated, index)
        with memory_limit():  # separately, because tracing the steps allocates objects
            assert compile_op(op, given_types, stated, index) == outcome
    event(outcome)
