"""What another way of running a plan may give: how far NumPy's own results move when its steps round otherwise.

There is no constant that says how far two right answers may be apart: where numbers cancel, it is as far as one likes;
where they do not, a few units in the last place. So the plan is run some times more, step by step, and what each step
gives is moved by what the documented accuracy allows it (docs/accuracy.md), up or down at random: a few units in the
last place, and more where a step adds up many numbers, in whatever order. Where that moves a result, it may lie there.
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
#: units in the last place that are no difference at all
ULPS: Final = 4
#: those that one step may be wrong by: 2.5 of a kernel, beside 4 of NumPy
STEP_ULPS: Final = 6.0
#: how far a result may be beyond the farthest that was seen
BEYOND: Final = 8.0
#: steps of a row's formula that are as right as what they get
CHOOSING: Final = frozenset({"neg", "abs", "minimum", "maximum", "copysign", "select", "row_max", "row_min"})
#: runs that a difference is held against at first, and before it is called one
FEW, MANY = 4, 32


def same_bits(found: Array, expected: Array) -> bool:
    """Whether two arrays are alike to the last bit; all NaN are."""
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        return False
    if found.dtype.kind not in "fc":
        return bool(np.array_equal(found, expected))
    found, expected = in_parts(found), in_parts(expected)
    integer = f"i{found.dtype.itemsize}"
    alike = np.ascontiguousarray(found).view(integer) == np.ascontiguousarray(expected).view(integer)
    return bool((alike | (np.isnan(found) & np.isnan(expected))).all())


def first_difference(found: Sequence[Array], expected: Sequence[Array]) -> str | None:
    """Where two answers are not alike to the last bit."""
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        if not same_bits(one, other):
            return f"result {number}: {_shown(one, other, _unlike(one, other))}"
    return None


def _unlike(found: Array, expected: Array) -> Array:
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        return np.ones(expected.shape, bool)
    if found.dtype.kind == "c":
        return np.asarray(_unlike(in_parts(found), in_parts(expected)).any(axis=-1))
    if found.dtype.kind != "f":
        return np.asarray(found != expected)
    unlike = (found != expected) | (np.signbit(found) != np.signbit(expected))
    return np.asarray(unlike & ~(np.isnan(found) & np.isnan(expected)))


def _shown(found: Array, expected: Array, where: Array) -> str:
    """The first of some elements."""
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        return f"{found.dtype}{list(found.shape)}, and not {expected.dtype}{list(expected.shape)}"
    at = tuple(int(i) for i in np.argwhere(where)[0])
    return (
        f"{int(where.sum())} of {where.size} elements, the first at {list(at)}: {found[at]!r}, and not {expected[at]!r}"
    )


@dataclass
class Tolerated:
    """The results of a plan step by step, and what else they could be."""

    plan: Plan
    feeds: Feeds
    expected: Sequence[Array]
    _graph: Graph = field(init=False)
    _runs: list[list[Array]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._graph = graph_of(self.plan, registry())

    def difference(self, found: Sequence[Array]) -> str | None:
        """Where results are not what they could be."""
        for count in (0, FEW, MANY):
            while len(self._runs) < count:
                made = wobbled(self._graph, self.feeds, np.random.default_rng(len(self._runs)))
                if made is None:
                    return None  # whether it is an error hangs on the last bit
                self._runs.append(made)
            said = self._beyond(found)
            if said is None:
                return None
        return said

    def _beyond(self, found: Sequence[Array]) -> str | None:
        for number, (one, other) in enumerate(zip(found, self.expected, strict=True)):
            if (one.shape, one.dtype) != (other.shape, other.dtype):
                return f"result {number}: {_shown(one, other, np.ones(other.shape, bool))}"
            beyond = ~allowed(one, other, [run[number] for run in self._runs])
            if beyond.any():
                return f"result {number}: {_shown(one, other, beyond)}"
        return None


def allowed(found: Array, expected: Array, others: Sequence[Array]) -> Array:
    """For each element, whether it may be there: near what is expected, or as far off as other runs are, or so.

    Of complex numbers each part may be off by units of the whole. Where one part is infinite, or no number, the other
    hangs on how a product is written.
    """
    if expected.dtype.kind == "c":
        with np.errstate(all="ignore"):
            sizes = np.abs(expected.astype("complex128"))[..., None]
        by_part = _allowed(in_parts(found), in_parts(expected), [in_parts(x) for x in others], sizes)
        return np.asarray(by_part.all(axis=-1) | ~(np.isfinite(found) | np.isfinite(expected)))
    if expected.dtype.kind != "f":
        return np.asarray(np.logical_or.reduce([found == expected, *(other != expected for other in others)]))
    return _allowed(found, expected, others, np.abs(expected.astype("float64")))


def _allowed(found: Array, expected: Array, others: Sequence[Array], sizes: Array) -> Array:
    info = np.finfo(expected.dtype)
    with np.errstate(all="ignore"):
        wide, own = found.astype("float64"), expected.astype("float64")
        alike = (wide == own) | (np.isnan(wide) & np.isnan(own))
        reach = ULPS * (float(info.eps) * sizes + float(info.smallest_subnormal))
        loose = np.zeros(expected.shape, bool)
        for other in others:
            moved = np.abs(other.astype("float64") - own)
            loose |= ~np.isfinite(other) & np.where(np.isnan(other), ~np.isnan(own), other != own)
            # what overflows here and not there is large wherever it does not
            loose |= np.isfinite(other) & (np.isnan(own) | (np.isinf(own) & ~(2 * np.abs(wide) < np.abs(other))))
            reach = np.maximum(reach, BEYOND * np.nan_to_num(moved, nan=0.0, posinf=0.0))
        near = np.isfinite(wide) & np.isfinite(own) & (np.abs(wide - own) <= reach)
    return np.asarray(alike | loose | near)


# ---------------------------------------------------------------- runs that round otherwise


def wobbled(graph: Graph, feeds: Feeds, rng: Random) -> list[Array] | None:
    """The results, each step's moved by what it may be wrong by; None for an error."""
    try:
        with np.errstate(all="ignore"):
            return _wobbled(graph, feeds, rng)
    except EngineError:
        return None


def _wobbled(graph: Graph, feeds: Feeds, rng: Random) -> list[Array]:
    values: list[Any] = []
    for node in graph.nodes:
        moved = feeds[node.attrs["feed"]] if node.is_leaf else _moved(node, [values[i] for i in node.operands], rng)
        values.append(moved)
    return [np.ascontiguousarray(values[i]).reshape(graph.nodes[i].type.shape) for i in graph.outputs]


def _moved(node: Node, operands: Sequence[Any], rng: Random) -> Any:
    if node.view is not None:
        return node.view.view(np, *operands, **node.attrs)
    if isinstance(node.op, RunsPlans):
        return _made(node, operands, _wobbling(rng))
    made = _made(node, operands)
    is_complex = any(type.is_complex for type in node.types) or any(
        isinstance(x, np.ndarray) and x.dtype.kind == "c" for x in operands
    )
    if is_exact(node.op) and not is_complex:
        return _uncertain_casts(node, operands, made, rng)
    if isinstance(node.op, Elementwise):
        near = _made(node, [_nudged(x, STEP_ULPS, rng) for x in operands])
        found = near if is_complex or arithmetic_of(node) > 1 else made
        return _nudged(np.where(np.isinf(made) & np.isfinite(near), near, found), STEP_ULPS, rng)
    if _has_rows(node, operands) and rng.random() < 0.5:
        return _moved_within_rows(node, operands[0], rng)
    scale = added_ulps(terms_of(node, operands))
    read = [_each(x, lambda y: _nudged(y, scale, rng)) for x in operands]
    sizes = _made(node, [_each(x, _magnitudes) for x in operands])
    again = _each(_made(node, read), lambda y: _nudged(y, scale, rng))
    return _overflowing(again, sizes, rng)


def _has_rows(node: Node, operands: Sequence[Any]) -> bool:
    """Whether it is made row by row, by a formula that loops have."""
    if not isinstance(node.op, Rowwise):
        return False
    (x,) = operands
    return bool(x.size) and x.dtype.kind == node.type.dtype.kind == "f"


def _moved_within_rows(node: Node, x: Array, rng: Random) -> Array:
    """The result by the formula of a row, each of whose steps is moved: of its last ones, few digits may be left."""
    attrs, rest = node.attrs, list(range(x.ndim))
    along = [rest[i] for i in (attrs["axes"] if "axes" in attrs else (attrs["axis"],))]
    order = [i for i in rest if i not in along] + along
    kept = [x.shape[i] for i in order[: x.ndim - len(along)]]
    rows = x.transpose(order).reshape(*kept, -1)
    builder = KernelBuilder("float64" if node.type.dtype.name == "float64" else "float32")
    value = node.op.row_scalar(builder.load(Level.ELEMENT), rows.shape[-1], attrs)
    builder.store("element" if value.level == Level.ELEMENT else "row", value)
    by_rows = value.level == Level.ROW
    found = np.empty((*kept, 1) if by_rows else rows.shape, builder.dtype)
    with np.errstate(all="ignore"):
        _Moving(builder, rng).fill(RunContext(np), [rows], [found])
    if by_rows:
        return found.reshape(node.type.shape).astype(node.type.dtype)
    return found.reshape([x.shape[i] for i in order]).transpose(np.argsort(order)).astype(node.type.dtype)


class _Moving(WholeArrayKernel):
    """A loop, each of whose steps is moved by what it may be wrong by."""

    def __init__(self, builder: KernelBuilder, rng: Random) -> None:
        super().__init__(builder.build(), np.dtype(builder.dtype))
        self._rng = rng

    def compute(self, run: RunContext, n: int, read: Sequence[Array], out: Array | None) -> Array:
        op = self.fused.instructions[n].op
        if op in CHOOSING:
            return super().compute(run, n, read, None)
        ulps = added_ulps(read[0].shape[-1]) if op in REDUCTIONS else STEP_ULPS
        terms = [_nudged(x, ulps, self._rng) for x in read] if op in REDUCTIONS else read
        return _nudged(super().compute(run, n, terms, None), ulps, self._rng)


def added_ulps(terms: float) -> float:
    """What is added up in lanes and blocks is wrong by the root of how many follow one another: some hundreds."""
    return STEP_ULPS * float(max(1.0, terms)) ** 0.25


def _wobbling(rng: Random) -> RunContext:
    """A run in which each step of a loop rounds otherwise, as steps outside do."""
    context, graphs = RunContext(np), dict[Plan, Graph]()

    def bind_plan(plan: Plan) -> RunPlan:
        graph = graphs.setdefault(plan, graph_of(plan, registry()))
        return lambda fed, _: _wobbled(graph, fed, rng)

    context.bind_plan = bind_plan
    return context


def _made(node: Node, operands: Sequence[Any], run: RunContext | None = None) -> Any:
    out = tuple(np.empty(type.shape, type.dtype) for type in node.types)
    node.kernel.forward(run or RunContext(np), *operands, out=out if node.op.several else out[0], **node.attrs)
    return out if node.op.several else out[0]


def _each(arrays: Any, change: Callable[[Array], Array]) -> Any:
    """A result, or each of several."""
    return tuple(change(x) for x in arrays) if isinstance(arrays, tuple) else change(arrays)


def arithmetic_of(node: Node) -> int:
    """How many functions an element's formula is made of; what is one alone is as near to its exact value as stated."""
    assert isinstance(node.op, Elementwise)
    if node.op.scalar is None:
        return 1
    builder = KernelBuilder("float64")
    loads = [builder.load(Level.ELEMENT) for _ in node.operands]
    node.op.write_scalar(loads, node.attrs)
    return sum(each.op not in ("load", "constant") for each in builder.instructions)


def terms_of(node: Node, operands: Sequence[Any]) -> float:
    """About how many numbers each element of the result is made of: by the op's FLOPs, or by what it reads."""
    types = [tuple(map(TensorType.of, x)) if isinstance(x, tuple) else TensorType.of(x) for x in operands]
    size = max(1, sum(type.size for type in node.types))
    flops = node.kernel.flops(node.types if node.op.several else node.type, *types, **node.attrs)
    return max(flops, max((x.size for x in operands if isinstance(x, np.ndarray)), default=0)) / size


def _nudged(x: Array, ulps: float, rng: Random) -> Array:
    """Every float up or down by so many units in the last place; zero stays. Of complex numbers, both parts."""
    if not ulps or x.dtype.kind not in "fc":
        return x
    if x.dtype.kind == "c":
        return of_parts(_moved_by(in_parts(x), np.abs(x.astype("complex128"))[..., None], ulps, rng), x.dtype)
    return _moved_by(x, np.abs(x.astype("float64")), ulps, rng)


def _moved_by(x: Array, sizes: Array, ulps: float, rng: Random) -> Array:
    info = np.finfo(x.dtype)
    signs = rng.integers(0, 2, x.shape) * 2 - 1
    step = ulps / 2 * (float(info.eps) * sizes + float(info.smallest_subnormal))
    return np.asarray(np.where((x == 0) | ~np.isfinite(x), x, (x + signs * step).astype(x.dtype)))


def _magnitudes(x: Array) -> Array:
    return np.where(np.isfinite(x), np.abs(x), 0).astype(x.dtype) if x.dtype.kind in "fc" else x


def _overflowing(made: Any, sizes: Any, rng: Random) -> Any:
    """Where the terms are so large that it hangs on their order whether one overflows on the way, anything may be."""
    if isinstance(made, tuple):
        return tuple(_overflowing(y, size, rng) for y, size in zip(made, sizes, strict=True))
    if made.dtype.kind not in "fc":
        return made
    uncertain = ~(np.abs(sizes) < np.finfo(made.dtype).max / 4)
    anything = rng.choice(np.array([np.nan, np.inf, -np.inf, 1.0]), made.shape)
    return np.where(uncertain & (rng.random(made.shape) < 0.5), anything, made).astype(made.dtype)


def _uncertain_casts(node: Node, operands: Sequence[Any], made: Any, rng: Random) -> Any:
    """A float that is no whole number of the dtype has none: processors differ, and NumPy's loops with them."""
    if node.op.name != "cast" or made.dtype.kind not in "iu" or operands[0].dtype.kind != "f":
        return made
    info, x = np.iinfo(made.dtype), operands[0]
    uncertain = ~((x >= info.min) & (x <= info.max))
    return np.where(uncertain, rng.integers(0, 2, made.shape), made).astype(made.dtype)


@cache
def is_exact(op: Definition) -> bool:
    """Whether an op only chooses, moves or compares: of all samples, all that it gives is among what it got."""
    if not isinstance(op, Kernel):
        return False
    samples = () if op.internal else op.samples  # which internal ops need not have
    return bool(samples) and all(_chooses(op, sample) for sample in samples)


def _chooses(op: Kernel, sample: Sample) -> bool:
    rng, builder = np.random.default_rng(5), Builder(registry())
    arrays = [operand.draw(rng) for operand in sample.operands]
    made = builder.emit(op, [builder.leaf(TensorType.of(x), i) for i, x in enumerate(arrays)], _stated(op, sample))
    if made.node.operands != tuple(range(len(arrays))):
        return made.node.op is op  # a spelling for other ops, or for itself on constants
    results = _made(made.node, arrays)
    whole = [np.abs(y).astype("float64").ravel() for y in (results if isinstance(results, tuple) else (results,))]
    known = [np.abs(x.astype("float64")).ravel() for x in arrays]
    numbers = [abs(float(v)) for v in sample.attrs.values() if isinstance(v, int | float)]
    given, got = np.abs(np.concatenate(whole)), np.concatenate([*known, np.asarray(numbers)])
    return bool((np.isin(given, got) | (given == np.rint(given))).all())


def _stated(op: Kernel, sample: Sample) -> dict[str, Any]:
    attrs = {name: list(v) if isinstance(v, tuple) else v for name, v in sample.attrs.items()}
    return bind(op.attrs, attrs)
