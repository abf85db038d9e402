"""The tolerance for other ways of running a plan: how far NumPy's results move when its steps round differently.

No constant bounds the difference of two right answers: it is unlimited if numbers cancel, and otherwise a few units in
the last place. So the plan runs several more times, step by step, and the result of each step is perturbed within the
documented accuracy (docs/accuracy.md), up or down at random: by a few units in the last place, and by more if a step
adds up many numbers, in any order. A result may lie where the perturbed ones do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import numpy as np

from engine import Builder, EngineError, Graph, Plan, registry
from engine.codegen.kernels.blocks import WholeArrayKernel
from engine.codegen.kernels.program import REDUCTIONS, KernelBuilder, Level
from engine.compiler.control_flow import RunsPlans
from engine.compiler.plan import graph_of
from engine.ir.attributes import bind
from engine.ir.graph import Node
from engine.ir.op import Definition, Kernel
from engine.ir.run_context import RunContext, RunPlan
from engine.ir.sample import Sample
from engine.ir.tensor_type import TensorType
from engine.ops.elementwise.base import Elementwise
from engine.ops.reduce.sums import Rowwise
from tests.fuzz.values import Array, Random, in_parts, of_parts

Feeds = Mapping[Hashable, Array]
#: units in the last place that always pass
ULPS: Final = 4
#: units in the last place by which one step may be wrong: 2.5 of a kernel, beside 4 of NumPy
STEP_ULPS: Final = 6.0
#: factor by which a result may exceed the largest observed perturbation
BEYOND: Final = 8.0
#: steps of a row's formula that are exact
EXACT_STEPS: Final = frozenset({"neg", "abs", "minimum", "maximum", "copysign", "select", "row_max", "row_min"})
#: perturbed runs at first, and before a difference is reported
FEW, MANY = 4, 32


def same_bits(actual: Array, expected: Array) -> bool:
    """Whether two arrays are bit-identical; all NaNs are equal."""
    if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
        return False
    if actual.dtype.kind not in "fc":
        return bool(np.array_equal(actual, expected))
    actual, expected = in_parts(actual), in_parts(expected)
    integer = f"i{actual.dtype.itemsize}"
    alike = np.ascontiguousarray(actual).view(integer) == np.ascontiguousarray(expected).view(integer)
    return bool((alike | (np.isnan(actual) & np.isnan(expected))).all())


def first_difference(actual: Sequence[Array], expected: Sequence[Array]) -> str | None:
    """Describe where two answers are not bit-identical, or return None."""
    for number, (one, other) in enumerate(zip(actual, expected, strict=True)):
        if not same_bits(one, other):
            return f"result {number}: {_described(one, other, _unlike(one, other))}"
    return None


def _unlike(actual: Array, expected: Array) -> Array:
    if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
        return np.ones(expected.shape, bool)
    if actual.dtype.kind == "c":
        return np.asarray(_unlike(in_parts(actual), in_parts(expected)).any(axis=-1))
    if actual.dtype.kind != "f":
        return np.asarray(actual != expected)
    unlike = (actual != expected) | (np.signbit(actual) != np.signbit(expected))
    return np.asarray(unlike & ~(np.isnan(actual) & np.isnan(expected)))


def _described(actual: Array, expected: Array, mask: Array) -> str:
    """Describe the first of these elements."""
    if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
        return f"{actual.dtype}{list(actual.shape)}, and not {expected.dtype}{list(expected.shape)}"
    pos = tuple(int(i) for i in np.argwhere(mask)[0])
    return (
        f"{int(mask.sum())} of {mask.size} elements, the first at {list(pos)}: "
        f"{actual[pos]!r}, and not {expected[pos]!r}"
    )


@dataclass
class Tolerated:
    """The results of a plan step by step, and their tolerance."""

    plan: Plan
    feeds: Feeds
    expected: Sequence[Array]
    _graph: Graph = field(init=False)
    _runs: list[list[Array]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._graph = graph_of(self.plan, registry())

    def difference(self, actual: Sequence[Array]) -> str | None:
        """Describe where results exceed the tolerance, or return None."""
        for count in (0, FEW, MANY):
            while len(self._runs) < count:
                run = perturbed_results(self._graph, self.feeds, np.random.default_rng(len(self._runs)))
                if run is None:
                    return None  # whether it fails depends on the last bit
                self._runs.append(run)
            message = self._beyond(actual)
            if message is None:
                return None
        return message

    def _beyond(self, actual: Sequence[Array]) -> str | None:
        for number, (one, other) in enumerate(zip(actual, self.expected, strict=True)):
            if (one.shape, one.dtype) != (other.shape, other.dtype):
                return f"result {number}: {_described(one, other, np.ones(other.shape, bool))}"
            beyond = ~allowed(one, other, [run[number] for run in self._runs])
            if beyond.any():
                return f"result {number}: {_described(one, other, beyond)}"
        return None


def allowed(actual: Array, expected: Array, others: Sequence[Array]) -> Array:
    """For each element, whether it is close to the expected one, or about as far off as in other runs.

    Each part of a complex number may be off by units of the whole. If one part is infinite or NaN, the other depends on
    the formula of the product.
    """
    if expected.dtype.kind == "c":
        with np.errstate(all="ignore"):
            sizes = np.abs(expected.astype("complex128"))[..., None]
        by_part = _allowed(in_parts(actual), in_parts(expected), [in_parts(x) for x in others], sizes)
        return np.asarray(by_part.all(axis=-1) | ~(np.isfinite(actual) | np.isfinite(expected)))
    if expected.dtype.kind != "f":
        return np.asarray(np.logical_or.reduce([actual == expected, *(other != expected for other in others)]))
    return _allowed(actual, expected, others, np.abs(expected.astype("float64")))


def _allowed(actual: Array, expected: Array, others: Sequence[Array], sizes: Array) -> Array:
    info = np.finfo(expected.dtype)
    with np.errstate(all="ignore"):
        wide, own = actual.astype("float64"), expected.astype("float64")
        alike = (wide == own) | (np.isnan(wide) & np.isnan(own))
        reach = ULPS * (float(info.eps) * sizes + float(info.smallest_subnormal))
        loose = np.zeros(expected.shape, bool)
        for other in others:
            moved = np.abs(other.astype("float64") - own)
            loose |= ~np.isfinite(other) & np.where(np.isnan(other), ~np.isnan(own), other != own)
            # a number that overflows in only one of the runs must be large in the other
            loose |= np.isfinite(other) & (np.isnan(own) | (np.isinf(own) & ~(2 * np.abs(wide) < np.abs(other))))
            reach = np.maximum(reach, BEYOND * np.nan_to_num(moved, nan=0.0, posinf=0.0))
        near = np.isfinite(wide) & np.isfinite(own) & (np.abs(wide - own) <= reach)
    return np.asarray(alike | loose | near)


# ---------------------------------------------------------------- perturbed runs


def perturbed_results(graph: Graph, feeds: Feeds, rng: Random) -> list[Array] | None:
    """The results with perturbed steps; None if a step fails."""
    try:
        with np.errstate(all="ignore"):
            return _perturbed(graph, feeds, rng)
    except EngineError:
        return None


def _perturbed(graph: Graph, feeds: Feeds, rng: Random) -> list[Array]:
    values: list[Any] = []
    for node in graph.nodes:
        moved = (
            feeds[node.attrs["feed"]]
            if node.is_leaf
            else _perturbed_node(node, [values[i] for i in node.operands], rng)
        )
        values.append(moved)
    return [np.ascontiguousarray(values[i]).reshape(graph.nodes[i].type.shape) for i in graph.outputs]


def _perturbed_node(node: Node, operands: Sequence[Any], rng: Random) -> Any:
    if node.view is not None:
        return node.view.view(np, *operands, **node.attrs)
    if isinstance(node.op, RunsPlans):
        return _computed(node, operands, _perturbing_context(rng))
    exact = _computed(node, operands)
    is_complex = any(type.is_complex for type in node.types) or any(
        isinstance(x, np.ndarray) and x.dtype.kind == "c" for x in operands
    )
    if is_exact(node.op) and not is_complex:
        return _uncertain_casts(node, operands, exact, rng)
    if isinstance(node.op, Elementwise):
        near = _computed(node, [_nudged(x, STEP_ULPS, rng) for x in operands])
        base = near if is_complex or arithmetic_of(node) > 1 else exact
        return _nudged(np.where(np.isinf(exact) & np.isfinite(near), near, base), STEP_ULPS, rng)
    if _has_rows(node, operands) and rng.random() < 0.5:
        return _perturbed_within_rows(node, operands[0], rng)
    scale = added_ulps(terms_of(node, operands))
    read = [_each(x, lambda y: _nudged(y, scale, rng)) for x in operands]
    sizes = _computed(node, [_each(x, _magnitudes) for x in operands])
    again = _each(_computed(node, read), lambda y: _nudged(y, scale, rng))
    return _overflowing(again, sizes, rng)


def _has_rows(node: Node, operands: Sequence[Any]) -> bool:
    """Whether the node is computed row by row, by a formula that kernels have."""
    if not isinstance(node.op, Rowwise):
        return False
    (x,) = operands
    return bool(x.size) and x.dtype.kind == node.type.dtype.kind == "f"


def _perturbed_within_rows(node: Node, x: Array, rng: Random) -> Array:
    """The result by the formula of a row with perturbed steps, since its last steps may cancel most digits."""
    attrs, rest = node.attrs, list(range(x.ndim))
    along = [rest[i] for i in (attrs["axes"] if "axes" in attrs else (attrs["axis"],))]
    order = [i for i in rest if i not in along] + along
    kept = [x.shape[i] for i in order[: x.ndim - len(along)]]
    rows = x.transpose(order).reshape(*kept, -1)
    builder = KernelBuilder("float64" if node.type.dtype.name == "float64" else "float32")
    value = node.op.row_scalar(builder.load(Level.ELEMENT), rows.shape[-1], attrs)
    builder.store("element" if value.level == Level.ELEMENT else "row", value)
    by_rows = value.level == Level.ROW
    result = np.empty((*kept, 1) if by_rows else rows.shape, builder.dtype)
    with np.errstate(all="ignore"):
        _PerturbedKernel(builder, rng).fill(RunContext(np), [rows], [result])
    if by_rows:
        return result.reshape(node.type.shape).astype(node.type.dtype)
    return result.reshape([x.shape[i] for i in order]).transpose(np.argsort(order)).astype(node.type.dtype)


class _PerturbedKernel(WholeArrayKernel):
    """A kernel with perturbed steps."""

    def __init__(self, builder: KernelBuilder, rng: Random) -> None:
        super().__init__(builder.build(), np.dtype(builder.dtype))
        self._rng = rng

    def compute(self, run: RunContext, n: int, read: Sequence[Array], out: Array | None) -> Array:
        op = self.fused.instructions[n].op
        if op in EXACT_STEPS:
            return super().compute(run, n, read, None)
        ulps = added_ulps(read[0].shape[-1]) if op in REDUCTIONS else STEP_ULPS
        terms = [_nudged(x, ulps, self._rng) for x in read] if op in REDUCTIONS else read
        return _nudged(super().compute(run, n, terms, None), ulps, self._rng)


def added_ulps(terms: float) -> float:
    """Units by which a sum in lanes and blocks may be wrong: the fourth root of its terms times those of a step."""
    return STEP_ULPS * float(max(1.0, terms)) ** 0.25


def _perturbing_context(rng: Random) -> RunContext:
    """A run that perturbs the steps of loop bodies as well."""
    context, graphs = RunContext(np), dict[Plan, Graph]()

    def bind_plan(plan: Plan) -> RunPlan:
        graph = graphs.setdefault(plan, graph_of(plan, registry()))
        return lambda fed, _: _perturbed(graph, fed, rng)

    context.bind_plan = bind_plan
    return context


def _computed(node: Node, operands: Sequence[Any], run: RunContext | None = None) -> Any:
    out = tuple(np.empty(type.shape, type.dtype) for type in node.types)
    node.kernel.forward(run or RunContext(np), *operands, out=out if node.op.several else out[0], **node.attrs)
    return out if node.op.several else out[0]


def _each(arrays: Any, change: Callable[[Array], Array]) -> Any:
    """Apply a change to one result, or to each of several."""
    return tuple(change(x) for x in arrays) if isinstance(arrays, tuple) else change(arrays)


def arithmetic_of(node: Node) -> int:
    """The number of functions in an element's formula; a single one is as accurate as documented."""
    assert isinstance(node.op, Elementwise)
    if node.op.scalar is None:
        return 1
    builder = KernelBuilder("float64")
    loads = [builder.load(Level.ELEMENT) for _ in node.operands]
    node.op.write_scalar(loads, node.attrs)
    return sum(each.op not in ("load", "constant") for each in builder.instructions)


def terms_of(node: Node, operands: Sequence[Any]) -> float:
    """About how many terms each element of the result has: by the op's FLOPs, or by the elements it reads."""
    types = [tuple(map(TensorType.of, x)) if isinstance(x, tuple) else TensorType.of(x) for x in operands]
    size = max(1, sum(type.size for type in node.types))
    flops = node.kernel.flops(node.types if node.op.several else node.type, *types, **node.attrs)
    return max(flops, max((x.size for x in operands if isinstance(x, np.ndarray)), default=0)) / size


def _nudged(x: Array, ulps: float, rng: Random) -> Array:
    """Move every float except zero up or down by `ulps` units in the last place; both parts of complex numbers."""
    if not ulps or x.dtype.kind not in "fc":
        return x
    if x.dtype.kind == "c":
        return of_parts(_shifted(in_parts(x), np.abs(x.astype("complex128"))[..., None], ulps, rng), x.dtype)
    return _shifted(x, np.abs(x.astype("float64")), ulps, rng)


def _shifted(x: Array, sizes: Array, ulps: float, rng: Random) -> Array:
    info = np.finfo(x.dtype)
    signs = rng.integers(0, 2, x.shape) * 2 - 1
    step = ulps / 2 * (float(info.eps) * sizes + float(info.smallest_subnormal))
    return np.asarray(np.where((x == 0) | ~np.isfinite(x), x, (x + signs * step).astype(x.dtype)))


def _magnitudes(x: Array) -> Array:
    return np.where(np.isfinite(x), np.abs(x), 0).astype(x.dtype) if x.dtype.kind in "fc" else x


def _overflowing(result: Any, sizes: Any, rng: Random) -> Any:
    """Allow any value where the order of large terms decides whether a partial sum overflows."""
    if isinstance(result, tuple):
        return tuple(_overflowing(y, size, rng) for y, size in zip(result, sizes, strict=True))
    if result.dtype.kind not in "fc":
        return result
    uncertain = ~(np.abs(sizes) < np.finfo(result.dtype).max / 4)
    anything = rng.choice(np.array([np.nan, np.inf, -np.inf, 1.0]), result.shape)
    return np.where(uncertain & (rng.random(result.shape) < 0.5), anything, result).astype(result.dtype)


def _uncertain_casts(node: Node, operands: Sequence[Any], result: Any, rng: Random) -> Any:
    """Perturb casts of floats outside the integer range, whose results depend on the processor."""
    if node.op.name != "cast" or result.dtype.kind not in "iu" or operands[0].dtype.kind != "f":
        return result
    info, x = np.iinfo(result.dtype), operands[0]
    uncertain = ~((x >= info.min) & (x <= info.max))
    return np.where(uncertain, rng.integers(0, 2, result.shape), result).astype(result.dtype)


@cache
def is_exact(op: Definition) -> bool:
    """Whether an op only selects, moves or compares: in all samples, its results are among its inputs."""
    if not isinstance(op, Kernel):
        return False
    samples = () if op.internal else op.samples  # internal ops need no samples
    return bool(samples) and all(_selects(op, sample) for sample in samples)


def _selects(op: Kernel, sample: Sample) -> bool:
    rng, builder = np.random.default_rng(5), Builder(registry())
    arrays = [operand.draw(rng) for operand in sample.operands]
    value = builder.emit(op, [builder.leaf(TensorType.of(x), i) for i, x in enumerate(arrays)], _stated(op, sample))
    if value.node.operands != tuple(range(len(arrays))):
        return value.node.op is op  # an alias of other ops, or of itself with constants
    results = _computed(value.node, arrays)
    whole = [np.abs(y).astype("float64").ravel() for y in (results if isinstance(results, tuple) else (results,))]
    input_sizes = [np.abs(x.astype("float64")).ravel() for x in arrays]
    numbers = [abs(float(v)) for v in sample.attrs.values() if isinstance(v, int | float)]
    outputs, inputs = np.abs(np.concatenate(whole)), np.concatenate([*input_sizes, np.asarray(numbers)])
    return bool((np.isin(outputs, inputs) | (outputs == np.rint(outputs))).all())


def _stated(op: Kernel, sample: Sample) -> dict[str, Any]:
    attrs = {name: list(v) if isinstance(v, tuple) else v for name, v in sample.attrs.items()}
    return bind(op.attrs, attrs)
