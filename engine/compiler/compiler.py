"""The compiler: turn a call of a program into a plan, and cache it.

A `CompileRequest` goes through four stages. For the gradient of y = Σ exp(x · w) with respect to w:

    write_call        build the typed graph of the program, and append what the call asks for:
                          %2 = mul(x, w)   %3 = exp(%2)   %4 = sum(%3)   %5 … %7 = gradient of %4 (`autodiff.vjp`)
    runnable          optimise the graph, and plan the bodies of its control flow (`body_plans`)
    choose_plan       fuse elementwise nodes into kernels, and assign memory to every result (`fusion`, `plan`)
    with_precision    record how products and convolutions may read float32

Everything up to here depends on types and attributes only, never on values. So the digest of the program, the types of
its feeds and the call make a cache key, and one plan serves all calls that differ only in their data.

The limits on memory are known before a run, too. If a plan exceeds them, the request is compiled again with settings
that need less memory and more time, cheapest first:

    1. compute a Jacobian in smaller chunks of rows
    2. cut long loops into segments, whose inner carries are recomputed (`control_flow.nest`)
    3. recompute intermediate values in the backward pass (`fit_memory.rematerialize`)
    4. plan the bodies of control flow within 3/4, 1/2 or 1/4 of the memory

If no plan fits, the error reports the smallest peak that was found, and the node that most of it belongs to.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import product
from threading import TIMEOUT_MAX, Event, Lock
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np

from engine.autodiff.calls import Call, Gradients, Label, Values
from engine.autodiff.calls.call import FeedTypes, Scope
from engine.autodiff.jvp import check_linear
from engine.autodiff.vjp import expand_grad
from engine.compiler.body_plans import optimise_and_plan_bodies
from engine.compiler.control_flow import RunsPlans, has_scans, nest
from engine.compiler.fit_memory import choose_plan, has_lower_peak, rematerialize
from engine.compiler.plan import Plan, peak_memory_node
from engine.ir.errors import EngineError, OverBudget, OverMemory, TooManyNodes
from engine.ir.fairness import FairEviction, current_owner
from engine.ir.graph import Builder, Graph, locate_error
from engine.ir.op import Definition, Registry
from engine.ir.opset import LATEST, OPSET
from engine.ir.passes import Allowance
from engine.ir.program import GraphName, Program, Statement
from engine.ir.run_context import NO_DEADLINE, NO_END, Deadline, Limits
from engine.ir.run_report import IEEE, Precision
from engine.ir.sample import Sample
from engine.ir.tensor_type import TensorType

_Value = TypeVar("_Value")


class Entry(Generic[_Value]):
    """A cache entry. When `done` is set and `value` is still None, making the value has failed."""

    __slots__ = ("done", "nbytes", "value")

    def __init__(self) -> None:
        self.done = Event()
        self.value: _Value | None = None
        self.nbytes = 0

    def wait(self, deadline: Deadline) -> _Value | None:
        """Wait for the value; return None if making it failed. Raises DeadlineExceeded."""
        while not self.done.is_set():
            self.done.wait(min(max(deadline.time - time.monotonic(), 0), TIMEOUT_MAX))
            deadline.check()
        return self.value


class Cache(Generic[_Value]):
    """A cache of at most `capacity` values, of at most `bytes` in total as measured by `size`.

    When the cache is full, the owner that holds the most loses its least recently used value. A single owner thus has
    an LRU cache, and with several owners, none can evict values of another one that stays within its share. A value
    larger than `bytes` is returned without being cached, so that it evicts nothing. Threads may share a cache.
    """

    def __init__(self, capacity: int, bytes: int, size: Callable[[_Value], int]) -> None:
        self.capacity = capacity
        self.bytes = bytes
        self._size = size
        self._entries: dict[Hashable, Entry[_Value]] = {}
        self._claims = FairEviction()
        self._pending: dict[Hashable, Entry[_Value]] = {}
        self._cached_bytes = 0
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], _Value], deadline: Deadline = NO_DEADLINE) -> tuple[_Value, bool]:
        """Return the value of `key`, and whether another thread or an earlier call made it.

        If several threads ask for a missing value, one makes it and the others wait, each within its own `deadline`. If
        making it fails, the next thread tries again: the failure may be due to the first thread's deadline, and its
        message may quote the first thread's request. Raises DeadlineExceeded, and any error of `make`.
        """
        while True:
            entry, is_new = self._entry(key)
            if is_new:
                return self._fill(key, entry, make), False
            value = entry.wait(deadline)
            if value is not None:
                return value, True

    def find(self, key: Hashable) -> _Value | None:
        """Return the value of `key`, or None if it is not cached. Counts as a use."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._claims.use(key, current_owner(), entry.nbytes)
            return entry.value

    def _entry(self, key: Hashable) -> tuple[Entry[_Value], bool]:
        """Return the entry of `key`, and whether it is new. The caller has to fill a new entry."""
        with self._lock:
            if entry := self._entries.get(key):
                self._claims.use(key, current_owner(), entry.nbytes)
                return entry, False
            if key in self._pending:
                return self._pending[key], False
            entry = self._pending[key] = Entry()
            return entry, True

    def _fill(self, key: Hashable, entry: Entry[_Value], make: Callable[[], _Value]) -> _Value:
        try:
            value = make()
            entry.nbytes = self._size(value)
            entry.value = value
            return value
        finally:
            # Also after a failure: threads that wait then try themselves.
            with self._lock:
                del self._pending[key]
                self._insert(key, entry)
            entry.done.set()

    def _insert(self, key: Hashable, entry: Entry[_Value]) -> None:
        if entry.value is None or entry.nbytes > self.bytes:
            return
        self._entries[key] = entry
        self._cached_bytes += entry.nbytes
        self._claims.use(key, current_owner(), entry.nbytes)
        while len(self._entries) > self.capacity or self._cached_bytes > self.bytes:
            evicted = self._claims.evict(by_size=self._cached_bytes > self.bytes)
            if evicted is not None:
                self._cached_bytes -= self._entries.pop(evicted).nbytes


# Pause Python's garbage collector while planning. Planning allocates tens of thousands of objects, which would trigger
# several collections of the whole heap. They would free nothing, since the plan refers to all of these objects.

#: seconds for which a pause can be joined, so that overlapping threads cannot put off collections forever
JOIN_SECONDS: Final = 1.0


class Pause:
    """A pause of the garbage collector that several threads may join. The last one to leave ends it.

    The end restores the collector's state from before the pause. A thread that comes later than JOIN_SECONDS does not
    join, and plans with the collector running.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._begun = 0.0
        self._was_on = False

    def enter(self) -> bool:
        """Join the pause. Return whether the caller has joined it, and so has to leave it."""
        with self._lock:
            now = time.perf_counter()
            if not self._inside:
                self._begun, self._was_on = now, gc.isenabled()
                gc.disable()
            elif now - self._begun > JOIN_SECONDS:
                return False
            self._inside += 1
            return True

    def leave(self) -> None:
        """Leave the pause. The last thread to leave ends it."""
        with self._lock:
            self._inside -= 1
            if not self._inside and self._was_on:
                gc.enable()


_pause: Final = Pause()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Prevent automatic garbage collections in all threads inside the `with` block."""
    entered = _pause.enter()
    try:
        yield
    finally:
        if entered:
            _pause.leave()


#: memory limits, in bytes, for one chunk of a Jacobian's sweep; if a plan is over budget, the next one is tried
CHUNK_BYTES: Final = (1 << 28, 1 << 25, 1 << 22, 1)
#: bytes of all cached plans; two plans of 46,000 nodes with their gradients take a quarter of this
PLAN_BYTES: Final = 1 << 30
#: maximum nesting of segments when memory is short: segments, and segments of segments
MOST_LEVELS_OF_SEGMENTS: Final = 2
#: fractions of the memory limit to try for a body that is too large
_PARTS: Final = (0.75, 0.5, 0.25)
#: bytes of a result's label and its node
LABEL_BYTES: Final = 150
#: fraction of ops that warm-up plans, as one in N; planning all of them would not make later first plans faster
WARM_UP_SHARE: Final = 8


def with_precision(plan: Plan, precision: Precision) -> Plan:
    """Set how products and convolutions of a plan, and of the plans that it runs, may read float32.

    Nothing else in a plan depends on the precision: neither the places of results nor their sizes.
    """
    return _with_precision(plan, precision, {})


def _with_precision(plan: Plan, precision: Precision, converted: dict[Plan, Plan]) -> Plan:
    if plan.precision == precision:
        return plan
    if plan not in converted:
        steps = list(plan.steps)
        for i, step in enumerate(steps):
            if isinstance(step.op, RunsPlans):
                plans = tuple(_with_precision(body, precision, converted) for body in step.op.plans)
                steps[i] = step._replace(op=replace(step.op, plans=plans))
        converted[plan] = replace(plan, steps=tuple(steps), precision=precision)
    return converted[plan]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A plan, the labels of its results, and the nodes of `wrt` that the differentiated node does not depend on.

    `name` caches the program's `graph_id`, which is computed on first use. `dtype` is that of the node that the call is
    about. `key` is the cache key of the compiler that made the plan. `cached` tells whether this was a cache hit.
    """

    plan: Plan
    labels: tuple[Label, ...]
    disconnected: tuple[int, ...]
    name: GraphName
    dtype: str
    cached: bool = False
    key: Hashable = None

    @property
    def nbytes(self) -> int:
        """Bytes of the plan, as it counts them, and of the labels."""
        return self.plan.nbytes + LABEL_BYTES * len(self.labels)


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """A call of a program on feeds of given types, and the options for its plan.

    `memory` limits the plan's bytes, if given; the plan recomputes values to fit. `precision` states how products and
    convolutions may read float32. At most `kernel_threads` threads run one fused kernel; 0 disables fusion, so that the
    plan has a step for each node. `splits_sums` writes sums over several axes in two parts, so that the executor may
    later compile the first part into a kernel.
    """

    program: Program
    types: FeedTypes
    call: Call
    limits: Limits
    deadline: Deadline = NO_DEADLINE
    kernel_threads: int = 1
    memory: int | None = None
    splits_sums: bool = False
    precision: Precision = IEEE
    #: bytes per chunk of a Jacobian's sweep, tried in this order until a plan is within the limits
    chunks: Sequence[int] = CHUNK_BYTES
    #: levels of segments that long loops are cut into; 0: not cut
    levels: int = 0
    #: whether `plan_call` rematerializes values to fit memory, and the bytes that each body of a loop has to fit in
    rematerializes: bool = False
    body_bytes: int | None = None
    #: FLOPs that constant folding may spend; by default those of `limits`
    foldable: int | None = None

    def without_limits(self) -> CompileRequest:
        """Return the request without limits on memory and FLOPs."""
        endless = replace(self.limits, bytes=NO_END, flops=NO_END)
        return replace(self, limits=endless, chunks=(NO_END,), foldable=self.limits.flops)


class Traced(NamedTuple):
    """A call written as a graph without `grad` nodes and before any pass, and the labels of its outputs.

    `depends_on_chunks` tells whether the graph depends on the size of chunks, so that retrying with smaller ones makes
    sense.
    """

    graph: Graph
    labels: tuple[Label, ...]
    disconnected: tuple[int, ...]
    dtype: str
    depends_on_chunks: bool


class PlanWithin(NamedTuple):
    """A traced call, its plan within the memory limit, and the plan that it would have without limits."""

    traced: Traced
    plan: Plan
    fastest: Plan


class Compiler:
    """A compiler with a cache of at most `capacity` plans, of at most `bytes` in total.

    A plan larger than `bytes` is not cached, and is made for each call. Threads may share a compiler. If several
    threads ask for the same plan, it is made once.
    """

    def __init__(
        self,
        limits: Limits,
        capacity: int = 256,
        bytes: int = PLAN_BYTES,
        *,
        kernel_threads: int = 1,
        splits_sums: bool = False,
    ) -> None:
        """Create a compiler with an empty cache.

        `kernel_threads` is the executor's number of threads per fused kernel, 0 if it runs none. `splits_sums` is the
        executor's attribute of that name.
        """
        self.limits = limits
        self.kernel_threads = kernel_threads
        self.splits_sums = splits_sums
        #: cache of compiled calls
        self.plans: Cache[Compiled] = Cache(capacity, bytes, lambda compiled: compiled.nbytes)
        #: cache of block sizes for sums over examples
        self.block_sizes: Cache[int] = Cache(capacity, capacity, lambda _: 1)

    def forward(
        self, program: Program, types: FeedTypes, outputs: Sequence[int] | None = None, deadline: Deadline = NO_DEADLINE
    ) -> Compiled:
        """Plan the values of `outputs`, by default of the last node. Raises EngineError."""
        return self.compile(program, types, Values.of_program(program, outputs), deadline)

    def gradients(
        self,
        program: Program,
        types: FeedTypes,
        of: int | None = None,
        wrt: Sequence[int] | None = None,
        outputs: Sequence[int] | None = None,
        cotangent: TensorType | None = None,
        deadline: Deadline = NO_DEADLINE,
    ) -> Compiled:
        """Plan the values of `outputs` and the gradients of `of` with respect to `wrt`.

        By default, `of` is the last node, `wrt` are all parameters, and `outputs` is `of`. `cotangent` is the type of
        the array that will be fed as (COTANGENTS, of). Raises EngineError.
        """
        return self.compile(program, types, Gradients.of_program(program, of, wrt, outputs, cotangent), deadline)

    def compile(
        self,
        program: Program,
        types: FeedTypes,
        call: Call,
        deadline: Deadline = NO_DEADLINE,
        *,
        node_by_node: bool = False,
        memory: int | None = None,
        precision: Precision = IEEE,
    ) -> Compiled:
        """Plan `call` on feeds of these types. Raises EngineError."""
        return self.compile_request(
            self.request(program, types, call, deadline, node_by_node=node_by_node, memory=memory, precision=precision)
        )

    def request(
        self,
        program: Program,
        types: FeedTypes,
        call: Call,
        deadline: Deadline = NO_DEADLINE,
        *,
        node_by_node: bool = False,
        memory: int | None = None,
        precision: Precision = IEEE,
    ) -> CompileRequest:
        """Create a request with the limits of this compiler and the options of its executor.

        `node_by_node` disables fusion, for runs that observe every node.
        """
        return CompileRequest(
            program,
            types,
            call,
            self.limits,
            deadline,
            kernel_threads=0 if node_by_node else self.kernel_threads,
            memory=memory,
            splits_sums=self.splits_sums,
            precision=precision,
        )

    def compile_request(self, request: CompileRequest) -> Compiled:
        """Plan a request of this compiler, or return the cached plan. Raises EngineError.

        Feeds that the call does not need are checked, but do not affect the plan.
        """
        program, call, memory, precision = request.program, request.call, request.memory, request.precision
        used = program.used(call.example(program, request.types), call.roots, request.deadline)
        key = (program.digest, frozenset(used.items()), call, request.kernel_threads, memory, precision)

        def make() -> Compiled:
            result = compile_call(request)
            # The digest identifies a plan across processes, whose hashes differ: hash the text of the whole request.
            identity = (program.digest, sorted((node, str(type)) for node, type in used.items()), call)
            digest = sha256(repr((identity, memory, precision)).encode()).digest()
            return replace(result, plan=replace(with_precision(result.plan, precision), digest=digest), key=key)

        compiled, is_hit = self.plans.get(key, make, request.deadline)
        return replace(compiled, cached=is_hit)


def compile_call(request: CompileRequest) -> Compiled:
    """Write, optimise and plan a call within the memory of the request, uncached. Raises EngineError."""
    with collector_paused():
        traced, plan, _ = plan_within(request)
    return Compiled(plan, traced.labels, traced.disconnected, GraphName(), traced.dtype)


def plan_within(request: CompileRequest) -> PlanWithin:
    """Plan a call within `memory`: without rematerialization if that fits, else with as little as fits.

    Loops are cut into segments, then into segments of segments; other values are recomputed if there is no memory for
    them. The plan's `recomputed_flops` are its FLOPs beyond those of the fastest plan. Raises EngineError: if no plan
    fits, it states the smallest peak that was found, at the node that most of it belongs to.
    """
    request = replace(request, limits=request.limits.within(request.memory))
    try:
        traced, plan = plan_call(request)
        return PlanWithin(traced, plan, plan)
    except OverMemory:
        if request.memory is None and request.program.opset <= OPSET:
            raise
    traced, plan = _plan_rematerialized(request)
    _, fastest = plan_call(request.without_limits())
    return PlanWithin(traced, replace(plan, recomputed_flops=max(0, plan.flops - fastest.flops)), fastest)


def _plan_rematerialized(request: CompileRequest) -> tuple[Traced, Plan]:
    """Plan with the fewest levels of segments that fit, and with smaller bodies if none fits."""
    # Without memory to spare, loops should not save values that their backward pass could recompute.
    request = replace(request, limits=replace(request.limits, checkpointing=False))
    smallest_error: OverMemory | None = None
    for body_bytes, levels in _attempts(request):
        try:
            return plan_call(replace(request, levels=levels, rematerializes=True, body_bytes=body_bytes))
        except OverMemory as error:
            if body_bytes is not None and error.function is not None:
                break  # a body exceeds its share even with all of its values recomputed
            smallest_error = (
                error if smallest_error is None or has_lower_peak(error, smallest_error) else smallest_error
            )
        except OverBudget:
            if smallest_error is None:
                raise
    assert smallest_error is not None
    if smallest_error.node is None:
        traced, _ = plan_call(request.without_limits())
        raise locate_error(smallest_error, peak_memory_node(traced.graph))
    raise smallest_error


def _attempts(request: CompileRequest) -> Iterator[tuple[int | None, int]]:
    """Yield pairs of memory limits for bodies and levels of segments to try, cheapest first."""
    levels = range(1 + (MOST_LEVELS_OF_SEGMENTS if has_scans(request.program) else 0))
    yield from product((None,), levels)
    if request.program.functions:
        traced, _ = plan_call(request.without_limits())
        largest = max([plan.working_bytes for node in traced.graph.nodes for plan in node.op.runs], default=0)
        limits = [int(request.limits.bytes * fraction) for fraction in _PARTS]
        yield from product([body_bytes for body_bytes in limits if body_bytes < largest], levels)


def plan_call(request: CompileRequest) -> tuple[Traced, Plan]:
    """Write a call as a graph, optimise and plan it, with a sweep in smaller chunks if it is over budget.

    The plan has those fused kernels that pay off without being compiled. It is within the request's `limits`; its
    `memory` is up to `plan_within`. Raises EngineError.
    """
    limits, deadline, threads = request.limits, request.deadline, request.kernel_threads
    allowance = Allowance(limits.flops if request.foldable is None else request.foldable, deadline)
    traced: Traced | None = None
    refused: OverBudget | None = None
    for chunk_bytes in request.chunks if request.call.is_swept else request.chunks[:1]:
        try:
            traced = write_call(request, chunk_bytes)
            graph = optimise_and_plan_bodies(traced.graph, limits, allowance, threads, request.body_bytes)
            check_linear(graph)
            if request.rematerializes:
                graph, plan = rematerialize(graph, limits, deadline, threads, splits_sums=request.splits_sums)
            else:
                plan = choose_plan(graph, limits, deadline, threads, splits_sums=request.splits_sums)
            return traced._replace(graph=graph), plan
        except TooManyNodes as error:
            # Smaller chunks need more nodes, so stop here. The first refusal is more useful to the client.
            raise refused or error from None
        except OverBudget as error:
            refused = refused or error
            if traced is not None and not traced.depends_on_chunks:
                break
    assert refused is not None
    raise refused


def write_call(request: CompileRequest, chunk_bytes: int = CHUNK_BYTES[0]) -> Traced:
    """Build the program, expand its `grad` nodes, and append the nodes of the call. Raises EngineError."""
    program, call = request.program, request.call
    example = call.example(program, request.types)
    scope = open_scope(
        program, example, call.roots, call.wrt_nodes, request.limits, request.deadline, chunk_bytes, request.levels
    )
    results, disconnected = call.write_graph(scope)
    labels = tuple(label for label, _ in results)
    dtype = scope.nodes[call.roots[-1]].dtype.name
    graph = scope.builder.graph([value for _, value in results])
    return Traced(graph, labels, disconnected, dtype, call.sweeps_in(scope))


def open_scope(
    program: Program,
    types: FeedTypes,
    roots: Sequence[int],
    barriers: Sequence[int],
    limits: Limits,
    deadline: Deadline = NO_DEADLINE,
    chunk_bytes: int = CHUNK_BYTES[0],
    levels: int = 0,
) -> Scope:
    """Build the program for these types, expand `grad` nodes, and cut long loops into `levels` of segments.

    Return the scope in which the call appends its own nodes. Raises EngineError.
    """
    limits = limits.of_graph(program.size)
    builder, values = program.build(types, roots, deadline, barriers, limits)
    # Nest before differentiating: the rule of a scan then saves only the carries between segments.
    graph = nest(builder.graph([values[root] for root in roots]), levels, limits, deadline)
    expanded = expand_grad(graph, limits, deadline)
    writer = Builder(program.registry, limits, deadline, list(expanded.nodes))
    nodes = {root: writer.value(i) for root, i in zip(roots, expanded.outputs, strict=True)}
    return Scope(program, writer, nodes, chunk_bytes)


def warm(registry: Registry) -> None:
    """Plan a sample of ops and their gradients, because the first plan of a process takes twice as long as others.

    This takes about 50 ms, and the plans are not cached. Only ops of opset 1 are planned: some later ones load LAPACK
    or SciPy, which takes half a second and 25 MB, in workers that may never need them.
    """
    for op in [op for op in registry.ops.values() if op.samples and op.since == 1][::WARM_UP_SHARE]:
        _plan(registry, op, op.samples[0])


def _plan(registry: Registry, op: Definition, sample: Sample) -> None:
    rng, count = np.random.default_rng(0), len(sample.operands)
    types = {i: TensorType.of(operand.draw(rng, "float32")) for i, operand in enumerate(sample.operands)}
    nodes = [Statement(registry.ops["input"]) for _ in types]
    nodes.append(Statement(op, tuple(range(count)), sample.attrs))
    if op.several:
        nodes.append(Statement(registry.ops["get_output"], (count,), {"index": 0}))
    nodes.append(Statement(registry.ops["sum"], (len(nodes) - 1,)))
    program, compiler = Program(registry, nodes, opset=LATEST), Compiler(Limits())
    compiler.forward(program, types)
    with suppress(EngineError):  # some ops have no derivatives
        compiler.gradients(program, types, wrt=[i for i, type in types.items() if type.is_differentiable])
