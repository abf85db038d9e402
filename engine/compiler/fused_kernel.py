"""The fused kernel as an op, the layout of its operands, microkernel selection, and estimates of run times."""

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
from engine.compiler.plan import MemoryBlocks, Plan
from engine.compiler.recipes import recipe_for
from engine.ir.graph import Graph, Node
from engine.ir.op import Kernel, ResultTypes, View
from engine.ir.run_context import DeviceFunction, RunContext
from engine.ir.tensor_type import DTYPES, HostArray, Shape, Strided, TensorType, real_dtype


@dataclass(frozen=True, eq=False)
class Fused(Kernel):
    """The `kernel` over `iteration_space`, with results of `types`. An internal op, made for each group of nodes.

    `work` is the FLOPs of the nodes that it replaces, and `nodes` are their numbers in the original graph. `compiled`
    tells whether the kernel is to be compiled to machine code. At most `threads` threads run it.
    """

    kernel: FusedKernel
    iteration_space: Space
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
        """Run the kernel with ufuncs: NumPy's block by block, or CuPy's on whole arrays."""
        _run_kernel(run, self.kernel, self.iteration_space, arrays, out)

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """FLOPs of the nodes that the kernel replaces."""
        return self.work

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Bytes of values between the passes over a row or block, for each thread, and of partial sums."""
        return self.workspace_for(self.threads)

    def workspace_for(self, threads: int) -> int:
        """Bytes of workspace for `threads` threads. A kernel that NumPy may run gets as much as most compiled ones."""
        if self.compiled:
            return native_workspace(self.expanded, self.iteration_space, threads)
        blocks = block_count(self.iteration_space)
        counts = 8 * blocks if reports_range(self.kernel) else 0
        return workspace_bytes(self.kernel, self.iteration_space, threads, blocks) + counts

    @cached_property
    def expanded(self) -> FusedKernel:
        """The kernel as it is compiled, with its functions expanded to arithmetic."""
        return expand_functions(self.kernel)


_run_kernel = DeviceFunction(run_on_arrays)


@_run_kernel.on("cpu")
def _run_in_blocks(
    run: RunContext, fused: FusedKernel, space: Space, operands: Sequence[HostArray], results: Sequence[HostArray]
) -> None:
    make_calls(run.checked(bind_blocks(fused, space, operands, results, 1)))


# Layout of operands over the rows and columns of a kernel, as the strides of its space.

#: elements of a row in flat arrays: many enough to fill vector lanes, few enough to split a sum into parts
FLAT_ROW: Final = 4096
#: elements of a block; two or three arrays of this size fit in a core's own cache
BLOCK_ELEMENTS: Final = 1 << 14
#: maximum number of partial sums of a sum over rows
MOST_SUMS: Final = 64

Strides = tuple[int, ...]


class RowLayout(NamedTuple):
    """The extents of a kernel's rows, its columns, and the level and strides along the row axes of each operand."""

    rows: Shape
    columns: int
    length: int
    operands: tuple[tuple[Level, Strides], ...]
    #: strides of a result with one value per element, and of one with one value per row
    element: Strides
    row: Strides

    def space(self, results: Sequence[Strides], *, sums_columns: bool) -> Space:
        """Choose a block size, and append the strides of the results to those of the operands."""
        block = max(1, BLOCK_ELEMENTS // max(self.columns, 1))
        if sums_columns:
            block = max(block, -(-math.prod(self.rows) // MOST_SUMS))
        return Space(self.rows, self.columns, self.length, block, (*(s for _, s in self.operands), *results))


def lay_out(shape: Shape, operands: Sequence[TensorType], row_axes: int | None) -> RowLayout | None:
    """Lay out operands that broadcast to `shape`; return None if one does not, or its rows are not contiguous.

    `row_axes` is the number of trailing axes that make a row; with None, it is as large as the operands allow.
    """
    if not all(_broadcasts(operand.shape, shape) for operand in operands):
        return None  # a kernel would read outside the operand
    strides = [_over(shape, operand) for operand in operands]
    if row_axes is not None:
        return _in_rows(shape, strides, row_axes)
    dense = _dense(shape)
    # If every operand is either dense or a single element, shapes do not matter: cut the flat arrays into rows.
    if all(s == dense or not any(s) for s in strides):
        size = math.prod(shape)
        columns = min(size, FLAT_ROW)
        flat = tuple((Level.ELEMENT, (columns,)) if s == dense else (Level.ROW, (0,)) for s in strides)
        return RowLayout((-(-size // columns),), columns, size, flat, (columns,), (1,))
    layouts = (_in_rows(shape, strides, rows) for rows in range(len(shape), 0, -1))
    return next((layout for layout in layouts if layout is not None), None)


def _broadcasts(operand: Shape, shape: Shape) -> bool:
    """Whether each extent of an operand is 1 or that of the corresponding trailing axis of `shape`."""
    lead = len(shape) - len(operand)
    return lead >= 0 and all(e in (1, extent) for e, extent in zip(operand, shape[lead:], strict=True))


def _over(shape: Shape, operand: TensorType) -> Strides:
    """Return the strides of an operand, in elements, along the axes of `shape`; 0 where it is broadcast."""
    lead = len(shape) - operand.ndim
    steps = [s // operand.dtype.itemsize if e != 1 else 0 for e, s in zip(operand.shape, operand.strides, strict=True)]
    return (0,) * lead + tuple(steps)


def _dense(shape: Shape) -> Strides:
    """Return the strides, in elements, of a dense tensor; 0 along axes of extent 1."""
    return tuple(math.prod(shape[i + 1 :]) if e != 1 else 0 for i, e in enumerate(shape))


def _in_rows(shape: Shape, strides: Sequence[Strides], row_axes: int) -> RowLayout | None:
    """Lay out the trailing `row_axes` as columns, and merge the other axes into as few row axes as possible."""
    cut = len(shape) - row_axes
    dense = _dense(shape)
    levels = [_level(s[cut:], dense[cut:]) for s in strides]
    if None in levels:
        return None
    columns = math.prod(shape[cut:])
    row = tuple(step // columns for step in dense[:cut])
    inner_axes = _merged(shape[:cut], [s[:cut] for s in (*strides, dense, row)])
    # Each inner axis is merged with the axes before it, up to the previous inner axis.
    starts = [0, *(a + 1 for a in inner_axes)]
    extents = tuple(math.prod(shape[start : a + 1]) for start, a in zip(starts, inner_axes, strict=False)) or (1,)
    *steps, element, row_strides = (tuple(s[a] for a in inner_axes) or (0,) for s in (*strides, dense, row))
    operands = tuple((level, s) for level, s in zip(levels, steps, strict=True) if level is not None)
    return RowLayout(extents, columns, math.prod(shape), operands, element, row_strides)


def _level(steps: Strides, dense: Strides) -> Level | None:
    if not any(steps):
        return Level.ROW if any(dense) or not dense else Level.ELEMENT
    return Level.ELEMENT if steps == dense else None


def _merged(extents: Shape, strides: Sequence[Strides]) -> list[int]:
    """Return the inner axis of each run of neighbouring axes that all arrays traverse like a single axis."""
    axes = [a for a, extent in enumerate(extents) if extent != 1]
    boundaries = [a for a, b in pairwise(axes) if not all(s[a] == s[b] * extents[b] for s in strides)]
    return boundaries + axes[-1:]


# Selection of microkernels: nodes run them if there is a recipe for their shapes and memory for its workspace.


def read_extents(graph: Graph) -> list[Shape]:
    """Leading-extent analysis: return the extents of the leading part of each node's first result that is read.

    Views know which part of their operand they read; all other ops read everything.
    """
    read_shapes: list[Shape] = [(0,) * node.type.ndim for node in graph.nodes]
    for i in graph.outputs:
        read_shapes[i] = graph.nodes[i].type.shape
    # Backwards, so that the extents that are read of a node are known before those of its operands.
    for i in range(len(graph.nodes) - 1, -1, -1):
        node = graph.nodes[i]
        for operand in node.operands:
            extents = graph.nodes[operand].type.shape
            if isinstance(node.op, View):
                extents = node.op.leading_part(read_shapes[i], extents, node.attrs)
            read_shapes[operand] = tuple(map(max, read_shapes[operand], extents))
    return read_shapes


@dataclass(frozen=True, eq=False, repr=False)
class MicrokernelOp(Kernel):
    """`op` as computed by `recipe` with at most `threads` threads. An internal op; one is made for each node."""

    op: Kernel
    recipe: Recipe
    threads: int

    name = "microkernel"
    operands = ("x...",)
    internal = True
    dtypes = DTYPES

    def __post_init__(self) -> None:
        for name in ("attrs", "is_product"):  # class attributes of other ops
            object.__setattr__(self, name, getattr(self.op, name))

    def infer(self, *types: Any, **attrs: Any) -> ResultTypes:
        """Infer the types of the op."""
        return self.op.infer(*types, **attrs)

    def forward(self, run: RunContext, *arrays: Any, out: Any, **attrs: Any) -> None:
        """Run the op's NumPy implementation, until the microkernels are compiled."""
        self.op.forward(run, *arrays, out=out, **attrs)

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """FLOPs of the op."""
        return self.op.flops(out, *types, **attrs)

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Workspace of the microkernels."""
        return self.recipe.workspace(self.threads)


def select_microkernels(graph: Graph, most_bytes: int, threads: int, *, in_body: bool = False) -> Graph:
    """Replace ops by microkernels with a workspace of at most `most_bytes`, for `threads` threads or one.

    The choice assumes one thread, so that results do not depend on the number of threads. With `in_body`, for the body
    of a loop, ops also get microkernels that only pay off there.
    """
    return _rewritten(
        graph, [_selected(*node_layout, most_bytes, threads, in_body=in_body) for node_layout in _with_layouts(graph)]
    )


def select_alike(graph: Graph, selected: Graph, chosen: Container[Kernel]) -> Graph:
    """Replace nodes of `graph` by the equal microkernels of `selected` that are in `chosen`."""
    microkernels = {
        _recipe_key(node.op.op, node, read_shape, types): node.op
        for node, read_shape, types in _with_layouts(selected)
        if isinstance(node.op, MicrokernelOp) and node.op in chosen
    }
    replacements = (
        (node, microkernels.get(_recipe_key(node.op, node, read_shape, types)))
        for node, read_shape, types in _with_layouts(graph)
    )
    return _rewritten(graph, [node if op is None else node._replace(op=op) for node, op in replacements])


def _with_layouts(graph: Graph) -> Iterator[tuple[Node, Shape, Sequence[object]]]:
    """Yield the nodes, each with its extents that are read and the strided types of its operands."""
    types = MemoryBlocks(graph).types
    for node, read_shape in zip(graph.nodes, read_extents(graph), strict=True):
        yield node, read_shape, [types[i] for i in node.operands]


def _rewritten(graph: Graph, nodes: Sequence[Node]) -> Graph:
    """Replace the nodes of a graph; return the graph itself if all nodes are its own."""
    changed = any(new is not old for new, old in zip(nodes, graph.nodes, strict=True))
    return graph.with_nodes(nodes, graph.outputs) if changed else graph


def _recipe_key(op: object, node: Node, read_shape: Shape, types: Sequence[object]) -> Hashable:
    """Return a key of everything that a recipe depends on. Moved nodes keep their attributes object."""
    return op, id(node.attrs), node.types, read_shape, *types


def _selected(
    node: Node, read_shape: Shape, types: Sequence[object], most_bytes: int, threads: int, *, in_body: bool
) -> Node:
    if not node.op.is_kernel or node.op.several or 0 in read_shape or not node.type.size:
        return node
    if not all(isinstance(type, TensorType) and type.size for type in types):
        return node
    out = (
        Strided(node.type.with_shape(read_shape), node.type.strides)
        if node.kernel.supports_partial_results
        else node.type
    )
    recipe = recipe_for(node.kernel, "cpu", out, *types, in_body=in_body, **node.attrs)
    if recipe is None or recipe.workspace(1) > most_bytes:
        return node
    affordable_threads = threads if recipe.workspace(threads) <= most_bytes else 1
    return node._replace(op=MicrokernelOp(node.kernel, recipe, affordable_threads))


# Rough time estimates, to tell a call of microseconds from one of seconds before it runs.

#: seconds per run, step, FLOP, and byte read or written, on one core of a current processor; accurate within a factor
#: of about four for most steps
RUN_SECONDS: Final = 5e-6
STEP_SECONDS: Final = 1e-6
FLOP_SECONDS: Final = 1e-10
BYTE_SECONDS: Final = 1e-10
#: seconds per FLOP and byte of the dtype in dense steps, and FLOPs per byte moved from which a step is dense. These are
#: matrix products: BLAS works in registers and caches, and is twice as fast for elements of half the size
DENSE_FLOP: Final = 2e-12
DENSE: Final = 8
#: size of the measured matrices, number of products, and maximum factor between measurement and estimate
_SIDE, _TIMES, _MOST = 384, 24, 4.0
#: seconds after which the measurement stops, since 24 products took half a second on a busy machine
_ENOUGH = 0.03
#: seconds of planning per node written by the client, including the nodes that differentiation adds
NODE_SECONDS: Final = 1e-4


def measure_dense_flop() -> float:
    """Measure `DENSE_FLOP` of NumPy's BLAS in this process as the best of several matrix products.

    Each product is too short to be often interrupted by other processes; all together take about 30 ms. This estimate
    varies most between machines, and the long jobs that cannot be interrupted consist of products.
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
    """Estimate the seconds of a run: a fixed cost per step, its arithmetic, and the bytes that it moves."""
    return RUN_SECONDS + sum(step_seconds(plan, dense_flop))


def step_seconds(plan: Plan, dense_flop: float = DENSE_FLOP) -> Iterator[float]:
    """Estimate the seconds of each step."""
    sizes = {slot: plan.feed_types[feed].nbytes for feed, slot in plan.feeds.items()}
    for _, operands, _, result, types, places, _, _, flops in plan.steps:
        seconds = STEP_SECONDS
        moved_bytes = types[0].nbytes if len(types) == 1 else sum([type.nbytes for type in types])
        sizes[result] = moved_bytes
        if places:  # a view moves nothing
            for operand in operands:
                moved_bytes += sizes[operand]
            dense = flops > DENSE * moved_bytes
            seconds += BYTE_SECONDS * moved_bytes + flops * (
                dense_flop * real_dtype(types[0].dtype).itemsize if dense else FLOP_SECONDS
            )
        yield seconds


def planning_seconds(nodes: int) -> float:
    """Estimate an upper bound for the seconds of planning a graph with this number of nodes."""
    return NODE_SECONDS * nodes


# Compile order: kernels that save most time per run come first, and are used before the others are compiled.

#: number of kernels up to which all are compiled before use, which takes about a tenth of a second
FEW: Final = 8
#: fraction of the uncompiled run time that the first kernels account for, after which a run takes about half as long;
#: and the fraction to try if there is no memory for that
FIRST_SHARES: Final = (0.6, 0.8)
#: maximum ratio of measured to estimated seconds of a step; many NumPy calls on few numbers take 30 times the estimate
MOST_WRONG: Final = 100


class SharedKernels(NamedTuple):
    """Ops of a plan that share their kernels, and the seconds per run that these ops take uncompiled."""

    ops: Sequence[Fused | MicrokernelOp]
    seconds: float


def compile_order(compiled: Plan, plan: Plan, seconds: Sequence[float] = ()) -> list[SharedKernels]:
    """Order the kernels of `compiled`, which replaces `plan`, by the seconds that they take uncompiled, longest first.

    `seconds` are measured per step of `plan`; without them, they are estimated. Ties are in the order of steps.
    """
    ops: dict[Hashable, dict[Fused | MicrokernelOp, None]] = {}
    total_seconds: dict[Hashable, float] = {}
    for op, uncompiled_seconds in _uncompiled_seconds(compiled, plan, _plausible_seconds(plan, seconds)):
        key = _kernel_key(op)
        ops.setdefault(key, {})[op] = None
        total_seconds[key] = total_seconds.get(key, 0.0) + uncompiled_seconds
    return sorted((SharedKernels([*ops[key]], total_seconds[key]) for key in ops), key=lambda shared: -shared.seconds)


def first_parts(kernels: Sequence[SharedKernels]) -> list[list[Fused | MicrokernelOp]]:
    """Select the ops whose kernels may be used before the others, one selection for each of FIRST_SHARES.

    Return none if there are only a few kernels.
    """
    return [_first_part(kernels, share) for share in FIRST_SHARES] if len(kernels) > FEW else []


def _first_part(kernels: Sequence[SharedKernels], share: float) -> list[Fused | MicrokernelOp]:
    remaining = share * sum(shared.seconds for shared in kernels)
    ops: list[Fused | MicrokernelOp] = []
    for shared in kernels:
        if remaining <= 0:
            break
        remaining -= shared.seconds
        ops += shared.ops
    return ops


def _plausible_seconds(plan: Plan, seconds: Sequence[float]) -> Sequence[float]:
    """Limit measured seconds: the first steps of a process may have waited for a library to load."""
    estimated = [*step_seconds(plan)]
    if not seconds:
        return estimated
    return [min(measured, MOST_WRONG * estimate) for measured, estimate in zip(seconds, estimated, strict=True)]


def _kernel_key(op: Fused | MicrokernelOp) -> Hashable:
    """Return a key that is equal for ops that share their kernels."""
    if isinstance(op, Fused):
        return op.kernel, lanes_of(op.kernel, op.iteration_space.columns)
    return tuple(phase.text for phase in op.recipe.phases)


def _uncompiled_seconds(
    compiled: Plan, plan: Plan, seconds: Sequence[float]
) -> Iterator[tuple[Fused | MicrokernelOp, float]]:
    """Yield the ops of `compiled` that have kernels, by step, each with its seconds uncompiled.

    Equal steps are assumed to take as long as the fastest of them, since slower ones were delayed by something else.
    """
    keys, fastest = [*_step_keys(plan)], dict[Hashable, float]()
    for key, measured in zip(keys, seconds, strict=True):
        fastest[key] = min(measured, fastest.get(key, measured))
    of_node = {step.result: fastest[each] for step, each in zip(plan.steps, keys, strict=True)}
    for step, key in zip(compiled.steps, _step_keys(compiled), strict=True):
        if isinstance(step.op, Fused) and key not in fastest:
            yield step.op, sum(of_node.get(node, 0.0) for node in step.op.nodes)
        elif isinstance(step.op, Fused | MicrokernelOp):
            yield step.op, fastest.get(key, 0.0)


def _step_keys(plan: Plan) -> Iterator[Hashable]:
    """Yield a key of each step: its op and the types of operands and results."""
    types: dict[int, tuple[TensorType, ...]] = {slot: (plan.feed_types[feed],) for feed, slot in plan.feeds.items()}
    for step in plan.steps:
        types[step.result] = step.types
        op = step.op.op if isinstance(step.op, MicrokernelOp) else step.op
        yield op, step.types, *[types[operand] for operand in step.operands]
