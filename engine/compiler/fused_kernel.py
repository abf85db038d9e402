"""The fused kernel: the op that takes the place of a group of nodes, and the layout of its operands."""

from __future__ import annotations

import math
import time
from collections.abc import Container, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from engine.codegen.functions.expansions import expand_functions, reports_range
from engine.codegen.kernels.blocks import bind_blocks, run_on_arrays, workspace_bytes
from engine.codegen.kernels.compiled import block_count, native_workspace
from engine.codegen.kernels.program import FusedKernel, Level, Space, lanes_of
from engine.codegen.microkernels.recipe import Recipe
from engine.codegen.native.native_call import make_calls
from engine.compiler.plan import Plan, Storage
from engine.compiler.recipes import recipe_for
from engine.ir.graph import Graph, Node
from engine.ir.op import Kernel, ResultTypes, View
from engine.ir.run_context import DeviceFunction, RunContext
from engine.ir.tensor_type import DTYPES, HostArray, Shape, Strided, TensorType, real_dtype


@dataclass(frozen=True, eq=False)
class Fused(Kernel):
    """The results of `loop` over `space`, of `types`. No op of the opset: one is made for each group.

    `work` are the FLOPs of the nodes whose place it takes, and `nodes` their numbers in the graph as it was; `compiled`
    says that it is to run as machine code. At most `threads` take part in it.
    """

    loop: FusedKernel
    space: Space
    types: tuple[TensorType, ...]
    work: int
    nodes: tuple[int, ...] = ()
    compiled: bool = False
    threads: int = 1

    name = "fused"
    operands = ("x...",)
    several = True
    internal = True
    dtypes = DTYPES

    def infer(self, *types: Any, **attrs: Any) -> ResultTypes:
        """Return `types`."""
        return self.types

    def forward(self, run: RunContext, *arrays: Any, out: Any, **attrs: Any) -> None:
        """Run NumPy's ufuncs, block by block; on a card, CuPy's, all of it at once."""
        _run_loop(run, self.loop, self.space, arrays, out)

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """FLOPs of the nodes whose place it takes."""
        return self.work

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Bytes between the steps of a row, or of a block, for each thread; and parts of sums."""
        return self.works_in(self.threads)

    def works_in(self, threads: int) -> int:
        """Bytes of workspace for so many threads. A kernel that NumPy may run has as much as most others, too."""
        if self.compiled:
            return native_workspace(self.expanded, self.space, threads)
        blocks = block_count(self.space)
        counts = 8 * blocks if reports_range(self.loop) else 0
        return workspace_bytes(self.loop, self.space, threads, blocks) + counts

    @cached_property
    def expanded(self) -> FusedKernel:
        """The kernel as it is compiled, its functions written out."""
        return expand_functions(self.loop)


_run_loop = DeviceFunction(run_on_arrays)


@_run_loop.on("cpu")
def _run_in_blocks(
    run: RunContext, loop: FusedKernel, space: Space, operands: Sequence[HostArray], results: Sequence[HostArray]
) -> None:
    make_calls(run.through(bind_blocks(loop, space, operands, results, 1)))


# Layout of operands over the rows and columns of a kernel, as the strides of its space.

#: elements of a row where rows mean nothing: long enough for its lanes, short for the sums of its parts
FLAT_ROW: Final = 4096
#: elements of a block: what two or three arrays of are in a core's own cache
BLOCK_ELEMENTS: Final = 1 << 14
#: sums over rows have at most so many parts
MOST_SUMS: Final = 64

Strides = tuple[int, ...]


class RowLayout(NamedTuple):
    """A kernel's rows: their extents and columns, and for each operand its level and its steps along the row axes."""

    rows: Shape
    columns: int
    length: int
    operands: tuple[tuple[Level, Strides], ...]
    #: steps of a result that has one value an element, and of one that has one a row
    element: Strides
    row: Strides

    def space(self, results: Sequence[Strides], *, sums_columns: bool) -> Space:
        """Choose blocks, and append the strides of the results to those of the operands."""
        block = max(1, BLOCK_ELEMENTS // max(self.columns, 1))
        if sums_columns:
            block = max(block, -(-math.prod(self.rows) // MOST_SUMS))
        return Space(self.rows, self.columns, self.length, block, (*(s for _, s in self.operands), *results))


def lay_out(shape: Shape, operands: Sequence[TensorType], row_axes: int | None) -> RowLayout | None:
    """Lay out operands that broadcast to `shape`; return None if one of them does not, or has no rows to read.

    `row_axes` are the trailing axes that make a row; with None, as many as all operands allow.
    """
    if not all(_broadcasts(operand.shape, shape) for operand in operands):
        return None  # a kernel would read beside it
    strides = [_over(shape, operand) for operand in operands]
    if row_axes is not None:
        return _in_rows(shape, strides, row_axes)
    dense = _dense(shape)
    if all(s == dense or not any(s) for s in strides):
        size = math.prod(shape)
        columns = min(size, FLAT_ROW)
        flat = tuple((Level.ELEMENT, (columns,)) if s == dense else (Level.ROW, (0,)) for s in strides)
        return RowLayout((-(-size // columns),), columns, size, flat, (columns,), (1,))
    layouts = (_in_rows(shape, strides, rows) for rows in range(len(shape), 0, -1))
    return next((layout for layout in layouts if layout is not None), None)


def _broadcasts(operand: Shape, shape: Shape) -> bool:
    """Whether extents are those of the trailing axes of `shape`, or 1."""
    lead = len(shape) - len(operand)
    return lead >= 0 and all(e in (1, extent) for e, extent in zip(operand, shape[lead:], strict=True))


def _over(shape: Shape, operand: TensorType) -> Strides:
    """Return the elements to step along each axis of `shape`; 0 where the operand is repeated, or has one element."""
    lead = len(shape) - operand.ndim
    steps = [s // operand.dtype.itemsize if e != 1 else 0 for e, s in zip(operand.shape, operand.strides, strict=True)]
    return (0,) * lead + tuple(steps)


def _dense(shape: Shape) -> Strides:
    """Return the steps of a dense tensor; 0 along axes of extent 1."""
    return tuple(math.prod(shape[i + 1 :]) if e != 1 else 0 for i, e in enumerate(shape))


def _in_rows(shape: Shape, strides: Sequence[Strides], row_axes: int) -> RowLayout | None:
    """Lay out the trailing `row_axes` as columns, and the axes before them as rows, as few as can be."""
    cut = len(shape) - row_axes
    dense = _dense(shape)
    levels = [_level(s[cut:], dense[cut:]) for s in strides]
    if None in levels:
        return None
    columns = math.prod(shape[cut:])
    row = tuple(step // columns for step in dense[:cut])
    kept = _merged(shape[:cut], [s[:cut] for s in (*strides, dense, row)])
    # Each axis that is kept takes in those before it, down to the one that is kept before.
    starts = [0, *(a + 1 for a in kept)]
    extents = tuple(math.prod(shape[start : a + 1]) for start, a in zip(starts, kept, strict=False)) or (1,)
    *steps, element, each = (tuple(s[a] for a in kept) or (0,) for s in (*strides, dense, row))
    operands = tuple((level, s) for level, s in zip(levels, steps, strict=True) if level is not None)
    return RowLayout(extents, columns, math.prod(shape), operands, element, each)


def _level(steps: Strides, dense: Strides) -> Level | None:
    if not any(steps):
        return Level.ROW if any(dense) or not dense else Level.ELEMENT
    return Level.ELEMENT if steps == dense else None


def _merged(extents: Shape, strides: Sequence[Strides]) -> list[int]:
    """Merge neighbouring axes along which all arrays step as along one; return the inner axis of each run."""
    axes = [a for a, extent in enumerate(extents) if extent != 1]
    alone = [a for a, b in pairwise(axes) if not all(s[a] == s[b] * extents[b] for s in strides)]
    return alone + axes[-1:]


# Selection of microkernels: nodes whose ops have some for their shapes, and memory to work in, are made by these.


def read_extents(graph: Graph) -> list[Shape]:
    """Leading-extent analysis: for each node, the extents of the leading part of its (first) result that is ever read.

    Views say what they read of their operand: all other ops read everything.
    """
    read: list[Shape] = [(0,) * node.type.ndim for node in graph.nodes]
    for i in graph.outputs:
        read[i] = graph.nodes[i].type.shape
    for i in range(len(graph.nodes) - 1, -1, -1):
        node = graph.nodes[i]
        for operand in node.operands:
            extents = graph.nodes[operand].type.shape
            if isinstance(node.op, View):
                extents = node.op.leading_part(read[i], extents, node.attrs)
            read[operand] = tuple(map(max, read[operand], extents))
    return read


@dataclass(frozen=True, eq=False, repr=False)
class MicrokernelOp(Kernel):
    """`op`, made by `recipe` with at most `threads` threads. No op of the opset: one is made for each node."""

    op: Kernel
    made_by: Recipe
    threads: int

    name = "microkernel"
    operands = ("x...",)
    internal = True
    dtypes = DTYPES

    def __post_init__(self) -> None:
        object.__setattr__(self, "attrs", self.op.attrs)  # a class attribute elsewhere

    def infer(self, *types: Any, **attrs: Any) -> ResultTypes:
        """Infer as the op does."""
        return self.op.infer(*types, **attrs)

    def forward(self, run: RunContext, *arrays: Any, out: Any, **attrs: Any) -> None:
        """Run the op."""
        self.op.forward(run, *arrays, out=out, **attrs)

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """FLOPs of the op."""
        return self.op.flops(out, *types, **attrs)

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Memory that the kernels work in."""
        return self.made_by.workspace(self.threads)


def select_microkernels(graph: Graph, most_bytes: int, threads: int, *, in_body: bool = False) -> Graph:
    """Select microkernels that work in at most `most_bytes`: with up to so many threads, or with one.

    The choice is made for one thread, so that bits do not depend on how many there are. The body of a loop, `in_body`,
    has microkernels that pay nowhere else.
    """
    return _rewritten(graph, [_selected(*each, most_bytes, threads, in_body=in_body) for each in _as_they_lie(graph)])


def select_alike(graph: Graph, selected: Graph, kept: Container[Kernel]) -> Graph:
    """Put those microkernels of `selected` that are `kept` in the place of equal nodes of `graph`."""
    known = {
        _likeness(node.op.op, node, read, types): node.op
        for node, read, types in _as_they_lie(selected)
        if isinstance(node.op, MicrokernelOp) and node.op in kept
    }
    alike = ((node, known.get(_likeness(node.op, node, read, types))) for node, read, types in _as_they_lie(graph))
    return _rewritten(graph, [node if op is None else node._replace(op=op) for node, op in alike])


def _as_they_lie(graph: Graph) -> Iterator[tuple[Node, Shape, Sequence[object]]]:
    """Yield the nodes, each with its extents that are read, and its operands' types."""
    types = Storage(graph).types
    for node, read in zip(graph.nodes, read_extents(graph), strict=True):
        yield node, read, [types[i] for i in node.operands]


def _rewritten(graph: Graph, nodes: Sequence[Node]) -> Graph:
    """Put these nodes in the place of those of `graph`; return it as it is if they are its own."""
    changed = any(new is not old for new, old in zip(nodes, graph.nodes, strict=True))
    return graph.rewritten(nodes, graph.outputs) if changed else graph


def _likeness(op: object, node: Node, read: Shape, types: Sequence[object]) -> Hashable:
    """Key of all that a recipe is made from; attributes are the same object wherever a node has been moved to."""
    return op, id(node.attrs), node.types, read, *types


def _selected(
    node: Node, read: Shape, types: Sequence[object], most_bytes: int, threads: int, *, in_body: bool
) -> Node:
    if not node.op.is_kernel or node.op.several or 0 in read or not node.type.size:
        return node
    if not all(isinstance(type, TensorType) and type.size for type in types):
        return node
    out = Strided(node.type.with_shape(read), node.type.strides) if node.kernel.makes_parts else node.type
    recipe = recipe_for(node.kernel, "cpu", out, *types, in_body=in_body, **node.attrs)
    if recipe is None or recipe.workspace(1) > most_bytes:
        return node
    fitting = threads if recipe.workspace(threads) <= most_bytes else 1
    return node._replace(op=MicrokernelOp(node.kernel, recipe, fitting))


# Estimates of time, rough ones: enough to tell a call of microseconds from one of seconds before it runs.

#: seconds of a run, a step, a FLOP and a byte that is read or written, on one processor of today: within a factor of
#: four or so, of many kinds of steps. What is known better is measured.
RUN: Final = 5e-6
STEP: Final = 1e-6
FLOP: Final = 1e-10
BYTE: Final = 1e-10
#: of a FLOP, for each byte of an element, where there are many FLOPs for each byte that is moved: products of matrices,
#: which BLAS keeps in registers and caches, and does twice as fast on elements of half the size
DENSE_FLOP: Final = 2e-12
DENSE: Final = 8
#: the side of the matrices whose product is measured, how often, and by what factor the outcome may differ
_SIDE, _TIMES, _MOST = 384, 24, 4.0
#: seconds after which what was measured is enough: on a busy machine 24 products took half a second
_ENOUGH = 0.03
#: seconds that planning takes for each node that a client wrote, with those that differentiation adds
NODE: Final = 1e-4


def measured_dense_flop() -> float:
    """Measure `DENSE_FLOP` of NumPy's BLAS in this process: the best of some products of matrices.

    Each is so short that most are not interrupted by other processes; all together take some 30 ms. Of all estimates,
    this one differs most between machines, and jobs that take seconds and cannot be interrupted consist of products.
    """
    a, seconds = np.ones((_SIDE, _SIDE), np.float32), []
    for _ in range(_TIMES):
        started = time.perf_counter()
        a @ a
        seconds.append(time.perf_counter() - started)
        if sum(seconds) > _ENOUGH:
            break
    measured = min(seconds) / (2 * _SIDE**3 * a.itemsize)
    return min(DENSE_FLOP * _MOST, max(DENSE_FLOP / _MOST, measured))


def run_seconds(plan: Plan, dense_flop: float = DENSE_FLOP) -> float:
    """Estimate the seconds of a run: for each step its call, its arithmetic, and the bytes that it moves."""
    return RUN + sum(step_seconds(plan, dense_flop))


def step_seconds(plan: Plan, dense_flop: float = DENSE_FLOP) -> Iterator[float]:
    """Estimate the seconds of each step."""
    sizes = {slot: plan.feed_types[feed].nbytes for feed, slot in plan.feeds.items()}
    for _, operands, _, result, types, places, _, _, flops in plan.steps:
        seconds = STEP
        moved = types[0].nbytes if len(types) == 1 else sum([type.nbytes for type in types])
        sizes[result] = moved
        if places:  # a view moves nothing
            for operand in operands:
                moved += sizes[operand]
            dense = flops > DENSE * moved
            seconds += BYTE * moved + flops * (dense_flop * real_dtype(types[0].dtype).itemsize if dense else FLOP)
        yield seconds


def planning_seconds(nodes: int) -> float:
    """Estimate the seconds until there is a plan for a graph of so many nodes, at most."""
    return NODE * nodes


# The order in which kernels are compiled: first those that save a run most time. They are used before the rest.

#: kernels up to which all are waited for: they are there within a tenth of a second or so
FEW: Final = 8
#: of the time that a run spends without kernels, what those that come first are for: it takes half as long then, or so;
#: and the same where the first is not to be had
FIRST_SHARES: Final = (0.6, 0.8)
#: how many times its estimate a step may take, at most: what calls NumPy often, for few numbers, takes thirty times it
MOST_WRONG: Final = 100


class SharedKernels(NamedTuple):
    """Ops of a plan that share their kernels, and the seconds that a run spends in them without kernels."""

    ops: Sequence[Fused | MicrokernelOp]
    seconds: float


def compile_order(compiled: Plan, plan: Plan, seconds: Sequence[float] = ()) -> list[SharedKernels]:
    """Order the kernels of `compiled`, which takes the place of `plan`, whose steps took so many seconds.

    Without measured seconds, they are estimated. Of equal ones, the one that runs first comes first.
    """
    ops: dict[Hashable, dict[Fused | MicrokernelOp, None]] = {}
    taken: dict[Hashable, float] = {}
    for op, without in _seconds_without(compiled, plan, _believed(plan, seconds)):
        key = _kernels_of(op)
        ops.setdefault(key, {})[op] = None
        taken[key] = taken.get(key, 0.0) + without
    return sorted((SharedKernels([*ops[key]], taken[key]) for key in ops), key=lambda each: -each.seconds)


def first_parts(kernels: Sequence[SharedKernels]) -> list[list[Fused | MicrokernelOp]]:
    """Select the ops whose kernels may be used before the others, for each of FIRST_SHARES; none of a few in all."""
    return [_first_part(kernels, share) for share in FIRST_SHARES] if len(kernels) > FEW else []


def _first_part(kernels: Sequence[SharedKernels], share: float) -> list[Fused | MicrokernelOp]:
    left = share * sum(each.seconds for each in kernels)
    ops: list[Fused | MicrokernelOp] = []
    for each in kernels:
        if left <= 0:
            break
        left -= each.seconds
        ops += each.ops
    return ops


def _believed(plan: Plan, seconds: Sequence[float]) -> Sequence[float]:
    """Bound the seconds of its steps: the first of a process may have waited for a library to be loaded."""
    estimated = [*step_seconds(plan)]
    if not seconds:
        return estimated
    return [min(took, MOST_WRONG * rough) for took, rough in zip(seconds, estimated, strict=True)]


def _kernels_of(op: Fused | MicrokernelOp) -> Hashable:
    """Key that is equal for ops that share their kernels."""
    if isinstance(op, Fused):
        return op.loop, lanes_of(op.loop, op.space.columns)
    return tuple(phase.text for phase in op.made_by.phases)


def _seconds_without(
    compiled: Plan, plan: Plan, seconds: Sequence[float]
) -> Iterator[tuple[Fused | MicrokernelOp, float]]:
    """Yield the ops of `compiled` that have kernels, step by step, each with its seconds without them.

    Steps that are alike take as long as the quickest of them: a slower one was held up by something else.
    """
    likenesses, quickest = [*_likenesses(plan)], dict[Hashable, float]()
    for likeness, took in zip(likenesses, seconds, strict=True):
        quickest[likeness] = min(took, quickest.get(likeness, took))
    of_node = {step.result: quickest[each] for step, each in zip(plan.steps, likenesses, strict=True)}
    for step, likeness in zip(compiled.steps, _likenesses(compiled), strict=True):
        if isinstance(step.op, Fused) and likeness not in quickest:
            yield step.op, sum(of_node.get(node, 0.0) for node in step.op.nodes)
        elif isinstance(step.op, Fused | MicrokernelOp):
            yield step.op, quickest.get(likeness, 0.0)


def _likenesses(plan: Plan) -> Iterator[Hashable]:
    """Yield for each step its op and the types of what it reads and writes."""
    types: dict[int, tuple[TensorType, ...]] = {slot: (plan.feed_types[feed],) for feed, slot in plan.feeds.items()}
    for step in plan.steps:
        types[step.result] = step.types
        op = step.op.op if isinstance(step.op, MicrokernelOp) else step.op
        yield op, step.types, *[types[operand] for operand in step.operands]
