"""Every sample of every op in the registry, ready to be written into a graph and run."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final, TypeVar
from zlib import crc32

import numpy as np
import pytest

from engine import LATEST, Builder, Graph, Limits, Program, Statement, TensorType, Value, open_executor, registry
from engine.autodiff.vjp import expand_grad, vjp_or_zeros
from engine.compiler.body_plans import optimise_and_plan_bodies
from engine.compiler.plan import Plan, make_plan
from engine.ir.op import Definition, NoGradient
from engine.ir.passes import Allowance
from engine.ir.sample import Sample
from engine.runtime.numpy_backend import NumPyExecutor
from engine.runtime.prepared_plan import CALL_BYTES
from tests.engine.printers import COMPILED, run_instead
from tests.sampling import sampled

Array = np.ndarray[Any, Any]
EXECUTOR = open_executor(os.environ.get("GRADSERVE_TEST_DEVICE", "cpu"))
LIMITS = Limits()
_Made = TypeVar("_Made", bound=Callable[..., Any])
_forgetting: Final[list[Callable[[], None]]] = []


def kept(make: _Made) -> _Made:
    """What is made of a case alone, once for the tests that ask for it; nobody writes to it."""
    found = lru_cache(maxsize=4096)(make)
    _forgetting.append(found.cache_clear)
    return found  # type: ignore[return-value]


def forget() -> None:
    """Let go of all that is kept: for who changes ops between tests."""
    for each in _forgetting:
        each()


@dataclass(frozen=True)
class Case:
    """One op with one of its samples."""

    op: Definition
    number: int

    @property
    def sample(self) -> Sample:
        return samples_of(self.op)[self.number]

    def __str__(self) -> str:
        return f"{self.op.name}{self.sample}"

    def arrays(self, dtype: str = "float64", salt: int = 0) -> list[Array]:
        """Operands drawn from the sample's domain: the same ones every time."""
        return [a.copy() for a in _drawn(self, dtype, salt)]

    def takes(self, dtype: str) -> bool:
        """Whether its real operands may be of this dtype."""
        return dtype in self.op.dtypes or all(operand.kind != "real" for operand in self.sample.operands)

    @property
    def is_complex(self) -> bool:
        """Whether operands or results are complex."""
        drawn = any(operand.kind == "complex" for operand in self.sample.operands)
        return drawn or any(t.is_complex for t in self.result_types())

    def program(self) -> Program:
        """Inputs, the op, and a projection for each of several outputs."""
        ops, count = registry().ops, len(self.sample.operands)
        statements = [Statement(ops["input"]) for _ in range(count)]
        statements.append(Statement(self.op, tuple(range(count)), self.attrs))
        if self.op.several:
            arity = len(self.result_types())
            statements += [Statement(ops["get_output"], (count,), {"index": k}) for k in range(arity)]
        return Program(registry(), statements, opset=LATEST)

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes, as a client's node would carry them."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in self.sample.attrs.items()}

    def result_types(self) -> tuple[TensorType, ...]:
        """What `infer` says of a single or several results."""
        return _inferred(self)

    def write(self, arrays: Sequence[Array]) -> Written:
        """The typed graph of this case for operands like `arrays`, in a builder of its own."""
        graph = _typed(self, tuple(map(TensorType.of, arrays)))
        writing = Builder(registry(), LIMITS, nodes=list(graph.nodes))
        placed = [writing.value(i) for i in graph.outputs]
        return Written(writing, placed[: len(arrays)], placed[len(arrays) :])


@kept
def _drawn(case: Case, dtype: str, salt: int) -> list[Array]:
    rng = np.random.default_rng(crc32(f"{case.op.name} {case.number} {salt}".encode()))
    return [operand.draw(rng, dtype) for operand in case.sample.operands]


@kept
def _inferred(case: Case) -> tuple[TensorType, ...]:
    types = [TensorType.of(a) for a in case.arrays()]
    leaves = [Statement(registry().ops["input"])] * len(types)
    statement = Statement(case.op, tuple(range(len(types))), case.attrs)
    checked = Program(registry(), [*leaves, statement], opset=LATEST).attrs[-1]
    inferred = case.op.infer(*types, **case.op.canonical(checked, *types))
    return inferred if isinstance(inferred, tuple) else (inferred,)


@kept
def _typed(case: Case, types: tuple[TensorType, ...]) -> Graph:
    """Operands and results, in which `grad` is written out."""
    program, first = case.program(), len(types)
    outputs = tuple(range(first + 1, len(program.statements))) if case.op.several else (first,)
    builder, values = program.build(dict(enumerate(types)), (*range(first), *outputs))
    return expand_grad(builder.graph([values[i] for i in (*range(first), *outputs)]))


@dataclass(frozen=True)
class Written:
    """A case in a builder: its operands and results as values."""

    builder: Builder
    operands: list[Value]
    outputs: list[Value]

    @property
    def float_operands(self) -> list[Value]:
        return [x for x in self.operands if x.type.is_differentiable]

    @property
    def float_outputs(self) -> list[Value]:
        return [y for y in self.outputs if y.type.is_differentiable and not is_of_no_meaning(y)]


#: complex results that are not constant and have no derivative of their own: a sign that has no path, and vectors
#: whose phases are as LAPACK leaves them
_OF_NO_MEANING: Final = {("slogdet", 0), ("eigh", 1), ("svd", 0), ("svd", 2)}


def is_of_no_meaning(y: Value) -> bool:
    """Whether it is a complex result that cannot be compared with differences by itself."""
    node = y.node
    if not y.type.is_complex or node.op.name != "get_output":
        return False
    return (y.builder.nodes[node.operands[0]].op.name, node.attrs["index"]) in _OF_NO_MEANING


def run_graph(graph: Graph, feeds: Mapping[Any, Array]) -> list[Array]:
    """The outputs of a graph, by way of the passes and plans of it and of its bodies."""
    plan = make_plan(optimise_and_plan_bodies(graph, LIMITS, Allowance(LIMITS.flops)), LIMITS)
    return EXECUTOR.run(plan, feeds)


SLACK = 1 << 19  # NumPy's casting buffers and small objects
LARGE = 50_000_000


def assert_planned_peak_holds(plan: Plan, feeds: Mapping[Any, Array], remedy: str = "", large: int = LARGE) -> None:
    """A run takes no more bytes than planned, feeds included; a `large` one at most a tenth less.

    It should not be the first of its kind, which fills caches; what executors keep for it is let go. What was there
    before is not measured, so garbage may lie about. `remedy` ends the sentence where it does not hold.
    """
    instead = run_instead(plan)
    if isinstance(EXECUTOR, NumPyExecutor):
        EXECUTOR.instances.clear()
    tracemalloc.start()
    try:
        results = EXECUTOR.run(plan, feeds)
        measured = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    del results
    used = measured + sum(a.nbytes for a in feeds.values())
    planned = instead.peak_bytes
    kept = sum(a.nbytes for a in feeds.values()) + sum(instead.buffers)
    declared = f"{max(used - kept, 0)} bytes are allocated beside operands and results, and {planned - kept} declared"
    # a kernel's call has its table, the bounds of its buffers, and what runs in its place
    slack = SLACK + (4 if COMPILED else 1) * CALL_BYTES * len(instead.steps)
    assert used <= planned + slack, f"{used} bytes used, {planned} planned: {declared}{remedy}"
    assert planned <= max(large, 1.1 * used), f"{planned} bytes planned, {used} used: {declared}{remedy}"


def feeds_of(arrays: Sequence[Array]) -> dict[Any, Array]:
    """Feeds by the position of the operand."""
    return dict(enumerate(arrays))


@cache
def samples_of(op: Definition) -> tuple[Sample, ...]:
    """Those that it states; of an op that takes complex operands, the same with these, and with some that are real."""
    if "complex128" not in op.dtypes:
        return op.samples
    real = [
        sample for sample in op.samples if any(o.kind == "real" for o in sample.operands) and may_be_complex(op, sample)
    ]
    found = [Sample(*(o.as_complex for o in sample.operands), **sample.attrs) for sample in real]
    for sample in real:
        first, *others = sample.operands
        if first.kind == "real" and any(o.kind == "real" for o in others):
            found.append(Sample(first, *(o.as_complex for o in others), **sample.attrs))
    return (*op.samples, *found)


#: activations of `linear` that take complex numbers
_ACTIVATIONS = ("none", "tanh", "sigmoid", "sin")


def may_be_complex(op: Definition, sample: Sample) -> bool:
    """Whether attributes leave an op its complex operands; those of `grad` have to be alike."""
    attrs = sample.attrs
    if op.name == "grad":
        return False
    return not {"dtype", "fill_as"} & {*attrs} and attrs.get("activation", "none") in _ACTIVATIONS


def all_cases() -> Iterator[Case]:
    """Of every op, what it states."""
    for op in registry().ops.values():
        for number in range(len(op.samples)):
            yield Case(op, number)


def complex_cases() -> Iterator[Case]:
    """Of every op that takes complex operands, the same with some."""
    for op in registry().ops.values():
        for number in range(len(op.samples), len(samples_of(op))):
            yield Case(op, number)


def place(op: Definition) -> str:
    """Where an op is defined, for messages."""
    return f"class {type(op).__name__} ({type(op).__module__.replace('.', '/')}.py)"


#: operands by which an op has no second derivative, but a refusal
ONCE: Final[Mapping[str, tuple[int, ...]]] = {"igamma": (0,), "igammac": (0,)}


@kept
def with_gradient(case: Case) -> Graph:
    """The results of a case, and, where it has a rule, the gradients of their sum by its float operands."""
    written = case.write(case.arrays())
    asked = list(written.outputs)
    if has_rule(case):
        ones = [(y, y.full_like(1.0)) for y in written.float_outputs]
        asked += vjp_or_zeros(written.builder, ones, written.float_operands)
    return written.builder.graph(asked)


def has_rule(case: Case) -> bool:
    """Whether derivatives pass through this case."""
    is_drawn = any(o.kind in ("real", "complex") for o in case.sample.operands)
    return (
        is_drawn and not isinstance(case.op.vjp, NoGradient) and any(t.is_differentiable for t in case.result_types())
    )


def every(_: Case) -> bool:
    """The choice of all cases."""
    return True


def each(choose: Callable[[Case], bool] = every) -> pytest.MarkDecorator:
    """Parametrise a test by the cases that `choose` accepts."""
    return pytest.mark.parametrize("case", _chosen(choose), ids=str)


@cache
def _chosen(choose: Callable[[Case], bool]) -> list[Case]:
    """Asked once for all the tests that choose alike, while they are collected."""
    return [case for case in (*all_cases(), *complex_cases()) if choose(case)]


def aspects(case: Case) -> Iterator[Hashable]:
    """What a case stands for: its op on such operands, and each attribute that it states, lists without values."""
    kinds = tuple(operand.kind for operand in case.sample.operands)
    yield case.op.name, kinds
    for name, value in case.sample.attrs.items():
        yield case.op.name, name, value if isinstance(value, str | bool | float) else None


def sample(choose: Callable[[Case], bool] = every) -> pytest.MarkDecorator:
    """Parametrise a test as `each` does; by a sample of the cases, that has all their aspects, where it is slow."""
    return pytest.mark.parametrize("case", sampled(_chosen(choose), aspects), ids=str)
