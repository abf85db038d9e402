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
_cache_clearers: Final[list[Callable[[], None]]] = []


def cached_result(make: _Made) -> _Made:
    """Cache a result that depends on a case only. Callers must not modify it."""
    cached = lru_cache(maxsize=4096)(make)
    _cache_clearers.append(cached.cache_clear)
    return cached  # type: ignore[return-value]


def clear_caches() -> None:
    """Clear all caches, for code that changes ops between tests."""
    for each in _cache_clearers:
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
        """Return operands drawn from the sample's domain, the same in every call."""
        return [a.copy() for a in _drawn_arrays(self, dtype, salt)]

    def takes(self, dtype: str) -> bool:
        """Return whether the real operands may have the dtype."""
        return dtype in self.op.dtypes or all(operand.kind != "real" for operand in self.sample.operands)

    @property
    def is_complex(self) -> bool:
        """Return whether operands or results are complex."""
        drawn = any(operand.kind == "complex" for operand in self.sample.operands)
        return drawn or any(t.is_complex for t in self.result_types())

    def program(self) -> Program:
        """Return the inputs, the op, and a `get_output` for each of several outputs."""
        ops, count = registry().ops, len(self.sample.operands)
        statements = [Statement(ops["input"]) for _ in range(count)]
        statements.append(Statement(self.op, tuple(range(count)), self.attrs))
        if self.op.several:
            arity = len(self.result_types())
            statements += [Statement(ops["get_output"], (count,), {"index": k}) for k in range(arity)]
        return Program(registry(), statements, opset=LATEST)

    @property
    def attrs(self) -> dict[str, Any]:
        """Return the attributes as in the node of a client."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in self.sample.attrs.items()}

    def result_types(self) -> tuple[TensorType, ...]:
        """Return the types that `infer` gives for one or several results."""
        return _inferred_types(self)

    def write(self, arrays: Sequence[Array]) -> Written:
        """Return the typed graph of the case for operands like `arrays`, in a new builder."""
        graph = _typed_graph(self, tuple(map(TensorType.of, arrays)))
        writing = Builder(registry(), LIMITS, nodes=list(graph.nodes))
        placed = [writing.value(i) for i in graph.outputs]
        return Written(writing, placed[: len(arrays)], placed[len(arrays) :])


@cached_result
def _drawn_arrays(case: Case, dtype: str, salt: int) -> list[Array]:
    rng = np.random.default_rng(crc32(f"{case.op.name} {case.number} {salt}".encode()))
    return [operand.draw(rng, dtype) for operand in case.sample.operands]


@cached_result
def _inferred_types(case: Case) -> tuple[TensorType, ...]:
    types = [TensorType.of(a) for a in case.arrays()]
    leaves = [Statement(registry().ops["input"])] * len(types)
    statement = Statement(case.op, tuple(range(len(types))), case.attrs)
    checked = Program(registry(), [*leaves, statement], opset=LATEST).attrs[-1]
    inferred = case.op.infer(*types, **case.op.canonical(checked, *types))
    return inferred if isinstance(inferred, tuple) else (inferred,)


@cached_result
def _typed_graph(case: Case, types: tuple[TensorType, ...]) -> Graph:
    """Return the graph of operands and results, with `grad` expanded."""
    program, first = case.program(), len(types)
    outputs = tuple(range(first + 1, len(program.statements))) if case.op.several else (first,)
    builder, values = program.build(dict(enumerate(types)), (*range(first), *outputs))
    return expand_grad(builder.graph([values[i] for i in (*range(first), *outputs)]))


@dataclass(frozen=True)
class Written:
    """Operands and results of a case as values of a builder."""

    builder: Builder
    operands: list[Value]
    outputs: list[Value]

    @property
    def float_operands(self) -> list[Value]:
        return [x for x in self.operands if x.type.is_differentiable]

    @property
    def float_outputs(self) -> list[Value]:
        return [y for y in self.outputs if y.type.is_differentiable and not has_no_own_derivative(y)]


#: complex results without a derivative of their own: a sign, and vectors with arbitrary phases
_WITHOUT_OWN_DERIVATIVE: Final = {("slogdet", 0), ("eigh", 1), ("svd", 0), ("svd", 2)}


def has_no_own_derivative(y: Value) -> bool:
    """Return whether this is a complex result that finite differences cannot check by itself."""
    node = y.node
    if not y.type.is_complex or node.op.name != "get_output":
        return False
    return (y.builder.nodes[node.operands[0]].op.name, node.attrs["index"]) in _WITHOUT_OWN_DERIVATIVE


def run_graph(graph: Graph, feeds: Mapping[Any, Array]) -> list[Array]:
    """Plan a graph and its function bodies, run it, and return its outputs."""
    plan = make_plan(optimise_and_plan_bodies(graph, LIMITS, Allowance(LIMITS.flops)), LIMITS)
    return EXECUTOR.run(plan, feeds)


SLACK = 1 << 19  # casting buffers of NumPy and small objects
LARGE = 50_000_000


def assert_planned_peak_holds(plan: Plan, feeds: Mapping[Any, Array], remedy: str = "", large: int = LARGE) -> None:
    """Assert that a run takes no more bytes than planned, and a `large` one at most a tenth less.

    Run the plan once before, to fill caches; the executor drops its prepared instances. Memory allocated earlier is not
    measured. `remedy` ends the error message.
    """
    executed_plan = run_instead(plan)
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
    planned = executed_plan.peak_bytes
    tensor_bytes = sum(a.nbytes for a in feeds.values()) + sum(executed_plan.buffers)
    declared = (
        f"{max(used - tensor_bytes, 0)} bytes are allocated beside operands and results, "
        f"and {planned - tensor_bytes} declared"
    )
    # a kernel call has a table, buffer bounds and a fallback
    slack = SLACK + (4 if COMPILED else 1) * CALL_BYTES * len(executed_plan.steps)
    assert used <= planned + slack, f"{used} bytes used, {planned} planned: {declared}{remedy}"
    assert planned <= max(large, 1.1 * used), f"{planned} bytes planned, {used} used: {declared}{remedy}"


def feeds_of(arrays: Sequence[Array]) -> dict[Any, Array]:
    """Return feeds keyed by the operand's position."""
    return dict(enumerate(arrays))


@cache
def samples_of(op: Definition) -> tuple[Sample, ...]:
    """Return the declared samples, and complex and mixed variants of them if the op takes complex operands."""
    if "complex128" not in op.dtypes:
        return op.samples
    real = [
        sample for sample in op.samples if any(o.kind == "real" for o in sample.operands) and may_be_complex(op, sample)
    ]
    complex_samples = [Sample(*(o.as_complex for o in sample.operands), **sample.attrs) for sample in real]
    for sample in real:
        first, *others = sample.operands
        if first.kind == "real" and any(o.kind == "real" for o in others):
            complex_samples.append(Sample(first, *(o.as_complex for o in others), **sample.attrs))
    return (*op.samples, *complex_samples)


#: activations of `linear` that accept complex numbers
_ACTIVATIONS = ("none", "tanh", "sigmoid", "sin")


def may_be_complex(op: Definition, sample: Sample) -> bool:
    """Return whether the attributes of a sample allow complex operands."""
    attrs = sample.attrs
    if op.name == "grad":
        return False
    return not {"dtype", "fill_as"} & {*attrs} and attrs.get("activation", "none") in _ACTIVATIONS


def all_cases() -> Iterator[Case]:
    """Yield every declared sample of every op."""
    for op in registry().ops.values():
        for number in range(len(op.samples)):
            yield Case(op, number)


def complex_cases() -> Iterator[Case]:
    """Yield the complex variants of the samples of every op."""
    for op in registry().ops.values():
        for number in range(len(op.samples), len(samples_of(op))):
            yield Case(op, number)


def definition_place(op: Definition) -> str:
    """Return where an op is defined, for error messages."""
    return f"class {type(op).__name__} ({type(op).__module__.replace('.', '/')}.py)"


#: operands with a first derivative only
ONCE: Final[Mapping[str, tuple[int, ...]]] = {"igamma": (0,), "igammac": (0,)}


@cached_result
def with_gradient(case: Case) -> Graph:
    """Return the results of a case, and the gradients of their sum if it has a gradient rule."""
    written = case.write(case.arrays())
    outputs = list(written.outputs)
    if has_rule(case):
        ones = [(y, y.full_like(1.0)) for y in written.float_outputs]
        outputs += vjp_or_zeros(written.builder, ones, written.float_operands)
    return written.builder.graph(outputs)


def has_rule(case: Case) -> bool:
    """Return whether the case has a gradient rule."""
    is_drawn = any(o.kind in ("real", "complex") for o in case.sample.operands)
    return (
        is_drawn and not isinstance(case.op.vjp, NoGradient) and any(t.is_differentiable for t in case.result_types())
    )


def accept_all(_: Case) -> bool:
    """Accept every case."""
    return True


def each(choose: Callable[[Case], bool] = accept_all) -> pytest.MarkDecorator:
    """Parametrise a test with the cases that `choose` accepts."""
    return pytest.mark.parametrize("case", _chosen_cases(choose), ids=str)


@cache
def _chosen_cases(choose: Callable[[Case], bool]) -> list[Case]:
    """Return the accepted cases, cached for tests with the same filter."""
    return [case for case in (*all_cases(), *complex_cases()) if choose(case)]


def aspects(case: Case) -> Iterator[Hashable]:
    """Yield the aspects of a case: its op with the operand kinds, and each attribute, lists without values."""
    kinds = tuple(operand.kind for operand in case.sample.operands)
    yield case.op.name, kinds
    for name, value in case.sample.attrs.items():
        yield case.op.name, name, value if isinstance(value, str | bool | float) else None


def sample(choose: Callable[[Case], bool] = accept_all) -> pytest.MarkDecorator:
    """Parametrise a slow test like `each`, with a sample of the cases that has all their aspects."""
    return pytest.mark.parametrize("case", sampled(_chosen_cases(choose), aspects), ids=str)
