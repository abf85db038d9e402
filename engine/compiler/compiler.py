"""The compiler: a call of a program becomes a plan, which is cached.

A `CompileRequest` goes through four stages. `write_call` builds the typed graph and writes derivatives into it,
`runnable` optimises it and plans the bodies of its control flow, `choose_plan` fuses and lays out memory, and
`with_precision` marks the result. A plan over the limits is tried again: sweeps in smaller chunks, long loops in
segments, values recomputed, bodies with less memory, in the order of what costs least.
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
from engine.compiler.body_plans import runnable
from engine.compiler.control_flow import RunsPlans, has_scans, nest
from engine.compiler.fit_memory import choose_plan, is_nearer, rematerialize
from engine.compiler.plan import Plan, peak_memory_node
from engine.ir.errors import EngineError, OverBudget, OverMemory, TooManyNodes
from engine.ir.fairness import FairEviction, current_owner
from engine.ir.graph import Builder, Graph, at_origin
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
    """A value that is being made, or is there. Once it is `done`, a `value` of None says that making it failed."""

    __slots__ = ("done", "nbytes", "value")

    def __init__(self) -> None:
        self.done = Event()
        self.value: _Value | None = None
        self.nbytes = 0

    def wait(self, deadline: Deadline) -> _Value | None:
        """Wait for the value. Raises DeadlineExceeded."""
        while not self.done.is_set():
            self.done.wait(min(max(deadline.at - time.monotonic(), 0), TIMEOUT_MAX))
            deadline.check()
        return self.value


class Cache(Generic[_Value]):
    """Values by key: at most `capacity`, of at most `bytes` in all, as `size` counts them.

    Beyond, the owner that holds most loses the value that it used longest ago. So a single owner keeps what it used
    most recently, and none of several displaces what the others keep within their shares. A value larger than `bytes`
    is returned and not kept, so that it displaces nothing. May be shared by threads.
    """

    def __init__(self, capacity: int, bytes: int, size: Callable[[_Value], int]) -> None:
        self.capacity = capacity
        self.bytes = bytes
        self._size = size
        self._kept: dict[Hashable, Entry[_Value]] = {}
        self._claims = FairEviction()
        self._making: dict[Hashable, Entry[_Value]] = {}
        self._held = 0
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], _Value], deadline: Deadline = NO_DEADLINE) -> tuple[_Value, bool]:
        """Return the value of `key`, and whether somebody else has made it.

        Of several threads that ask for it, one makes it, and the others wait, each within its own `deadline`. If making
        it fails, the next one tries: the deadline may have been the other's, and the message may quote the other's
        request. Raises DeadlineExceeded, and what `make` raises.
        """
        while True:
            entry, is_new = self._entry(key)
            if is_new:
                return self._fill(key, entry, make), False
            value = entry.wait(deadline)
            if value is not None:
                return value, True

    def find(self, key: Hashable) -> _Value | None:
        """Return the value of `key`, if it is cached; it counts as used."""
        with self._lock:
            entry = self._kept.get(key)
            if entry is None:
                return None
            self._claims.use(key, current_owner(), entry.nbytes)
            return entry.value

    def _entry(self, key: Hashable) -> tuple[Entry[_Value], bool]:
        """Return the entry of `key`, and whether it is new: then the caller fills it."""
        with self._lock:
            if entry := self._kept.get(key):
                self._claims.use(key, current_owner(), entry.nbytes)
                return entry, False
            if key in self._making:
                return self._making[key], False
            entry = self._making[key] = Entry()
            return entry, True

    def _fill(self, key: Hashable, entry: Entry[_Value], make: Callable[[], _Value]) -> _Value:
        try:
            value = make()
            entry.nbytes = self._size(value)
            entry.value = value
            return value
        finally:
            with self._lock:
                del self._making[key]
                self._keep(key, entry)
            entry.done.set()

    def _keep(self, key: Hashable, entry: Entry[_Value]) -> None:
        if entry.value is None or entry.nbytes > self.bytes:
            return
        self._kept[key] = entry
        self._held += entry.nbytes
        self._claims.use(key, current_owner(), entry.nbytes)
        while len(self._kept) > self.capacity or self._held > self.bytes:
            gone = self._claims.let_go(by_size=self._held > self.bytes)
            if gone is not None:
                self._held -= self._kept.pop(gone).nbytes


# Pause Python's garbage collector while a plan is made: every node is kept, so that it would find nothing.
#
# Planning makes objects by the ten thousand. The collector would go through all of them, and through all that the
# process holds besides, several times.

#: how long a pause can be joined: threads that plan one after the other must not put the collector off for ever
SECONDS_OPEN: Final = 1.0


class Pause:
    """A pause of the collector that several threads may be in. The last one to leave ends it.

    The collector is left as the first one found it. A thread that comes after SECONDS_OPEN stays out of the pause, and
    plans with the collector as it is.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._begun = 0.0
        self._was_on = False

    def enter(self) -> bool:
        """Enter the pause; return whether the caller is in it, and has to leave it."""
        with self._lock:
            now = time.perf_counter()
            if not self._inside:
                self._begun, self._was_on = now, gc.isenabled()
                gc.disable()
            elif now - self._begun > SECONDS_OPEN:
                return False
            self._inside += 1
            return True

    def leave(self) -> None:
        """Leave the pause; the last one ends it."""
        with self._lock:
            self._inside -= 1
            if not self._inside and self._was_on:
                gc.enable()


_pause: Final = Pause()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Prevent automatic collections inside the `with`, in all threads."""
    entered = _pause.enter()
    try:
        yield
    finally:
        if entered:
            _pause.leave()


#: bytes that one chunk of a Jacobian's sweep may hold; where the whole is over budget, the next smaller is tried
CHUNK_BYTES: Final = (1 << 28, 1 << 25, 1 << 22, 1)
#: bytes of all cached plans: two of 46,000 nodes, with their gradients, take a quarter of it
PLAN_BYTES: Final = 1 << 30
#: levels that long loops are cut into when memory is short: segments, and segments of segments
MOST_LEVELS_OF_SEGMENTS: Final = 2
#: parts of the memory that are tried for a body that takes too much
_PARTS: Final = (0.75, 0.5, 0.25)
#: bytes of a result's label, and its node
LABEL_BYTES: Final = 150
#: warm-up plans one in so many ops: the first plan of any other takes no longer after these than after all
ONE_OF: Final = 8


def with_precision(plan: Plan, precision: Precision) -> Plan:
    """Set how the products and convolutions of a plan, and of all plans that it runs, may read float32.

    Nothing else of a plan depends on its precision: neither where results lie nor how large they are.
    """
    return _with_precision(plan, precision, {})


def _with_precision(plan: Plan, precision: Precision, made: dict[Plan, Plan]) -> Plan:
    if plan.precision == precision:
        return plan
    if plan not in made:
        steps = list(plan.steps)
        for i, step in enumerate(steps):
            if isinstance(step.op, RunsPlans):
                plans = tuple(_with_precision(each, precision, made) for each in step.op.plans)
                steps[i] = step._replace(op=replace(step.op, plans=plans))
        made[plan] = replace(plan, steps=tuple(steps), precision=precision)
    return made[plan]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A plan, what each of its results is, and the nodes of `wrt` without a path.

    `name` knows the program's `graph_id`, once that was asked for; `dtype` is that of the node that the call is about.
    `key` is what the compiler that made it knows it by.
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
        """Bytes that keeping it takes, as counted by its plan; and of its labels."""
        return self.plan.nbytes + LABEL_BYTES * len(self.labels)


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """A call of a program on feeds of given types, and what its plan is made for.

    The plan takes at most `memory` bytes, where that is given, and recomputes values where it has to. `precision` is
    how its products and convolutions may read float32. At most `loop_threads` threads take part in a fused kernel; with
    0, there are none, and a step for each node. With `splits_sums`, sums over several axes are written in two parts,
    for kernels that the executor may make of the first one later.
    """

    program: Program
    types: FeedTypes
    call: Call
    limits: Limits
    deadline: Deadline = NO_DEADLINE
    loop_threads: int = 1
    memory: int | None = None
    splits_sums: bool = False
    precision: Precision = IEEE
    #: a sweep is made in chunks of the first of these bytes that the limits allow
    chunks: Sequence[int] = CHUNK_BYTES
    #: levels of segments that long loops are cut into
    levels: int = 0
    #: whether `plan_call` recomputes values to fit memory; and in bodies of loops, to fit so many bytes
    recomputes: bool = False
    body_bytes: int | None = None
    #: FLOPs that a graph may take for its constants to be folded; by default those of `limits`
    foldable: int | None = None

    def without_limits(self) -> CompileRequest:
        """Ask for the plan that there would be with endless memory."""
        endless = replace(self.limits, bytes=NO_END, flops=NO_END)
        return replace(self, limits=endless, chunks=(NO_END,), foldable=self.limits.flops)


class Traced(NamedTuple):
    """A call written out: a graph without `grad` nodes that no pass has touched, and what its outputs are.

    Where it is `swept`, smaller chunks are another graph.
    """

    graph: Graph
    labels: tuple[Label, ...]
    disconnected: tuple[int, ...]
    dtype: str
    swept: bool


class PlanWithin(NamedTuple):
    """A call written out, its plan within so many bytes, and the plan that there would be with endless memory."""

    asked: Traced
    plan: Plan
    fastest: Plan


class Compiler:
    """Maker of plans, which keeps the most recently used: at most `capacity`, of at most `bytes` in all.

    A plan larger than that is made anew for each call. Threads may share a compiler; a plan that several of them ask
    for is made once.
    """

    def __init__(
        self,
        limits: Limits,
        capacity: int = 256,
        bytes: int = PLAN_BYTES,
        *,
        loop_threads: int = 1,
        splits_sums: bool = False,
    ) -> None:
        """`loop_threads`: those of the executor, which may run no loops at all; and whether that one `splits_sums`."""
        self.limits = limits
        self.loop_threads = loop_threads
        self.splits_sums = splits_sums
        #: what was compiled, by its key, as long as it is kept
        self.plans: Cache[Compiled] = Cache(capacity, bytes, lambda made: made.nbytes)
        #: how many examples are added up at a time, by what sums over examples were asked
        self.block_sizes: Cache[int] = Cache(capacity, capacity, lambda _: 1)

    def forward(
        self, program: Program, types: FeedTypes, outputs: Sequence[int] | None = None, deadline: Deadline = NO_DEADLINE
    ) -> Compiled:
        """Plan the values of `outputs` (default: the last node). Raises EngineError."""
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

        Defaults: the last node, all parameters, and the value of `of`. `cotangent` is the type of the array that
        will be fed under (COTANGENTS, of). Raises EngineError.
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
        """Plan `call`, on feeds of these types. Raises EngineError."""
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
        """Make a request within the limits of this compiler, for its executor; `node_by_node` for a watched run."""
        return CompileRequest(
            program,
            types,
            call,
            self.limits,
            deadline,
            loop_threads=0 if node_by_node else self.loop_threads,
            memory=memory,
            splits_sums=self.splits_sums,
            precision=precision,
        )

    def compile_request(self, request: CompileRequest) -> Compiled:
        """Plan a request that this compiler has made. Raises EngineError.

        Feeds that the call does not need are checked, and the plan is the same without them.
        """
        program, call, memory, precision = request.program, request.call, request.memory, request.precision
        used = program.used(call.example(program, request.types), call.roots, request.deadline)
        key = (program.digest, frozenset(used.items()), call, request.loop_threads, memory, precision)

        def make() -> Compiled:
            made = compile_call(request)
            # The digest identifies a plan among processes: it is made of all that was asked.
            asked = (program.digest, sorted((node, str(type)) for node, type in used.items()), call)
            digest = sha256(repr((asked, memory, precision)).encode()).digest()
            return replace(made, plan=replace(with_precision(made.plan, precision), digest=digest), key=key)

        compiled, is_hit = self.plans.get(key, make, request.deadline)
        return replace(compiled, cached=is_hit)


def compile_call(request: CompileRequest) -> Compiled:
    """Write, optimise and plan, in this order, within the memory of the request. Raises EngineError."""
    with collector_paused():
        asked, plan, _ = plan_within(request)
    return Compiled(plan, asked.labels, asked.disconnected, GraphName(), asked.dtype)


def plan_within(request: CompileRequest) -> PlanWithin:
    """Plan within `memory`: by `plan_call`, and if that is over it, with less and less.

    Loops go in segments, then in segments of segments; other values that there is no memory for are recomputed.
    `recomputed_flops` of the plan are those beyond the fastest. Raises EngineError: if none fits, it states the least
    that one takes, at the node that most of this is for.
    """
    request = replace(request, limits=request.limits.within(request.memory))
    try:
        asked, plan = plan_call(request)
        return PlanWithin(asked, plan, plan)
    except OverMemory:
        if request.memory is None and request.program.opset <= OPSET:
            raise
    asked, plan = _plan_rematerialized(request)
    _, fastest = plan_call(request.without_limits())
    return PlanWithin(asked, replace(plan, recomputed_flops=max(0, plan.flops - fastest.flops)), fastest)


def _plan_rematerialized(request: CompileRequest) -> tuple[Traced, Plan]:
    """Plan with the fewest levels of segments that there is memory for; then with smaller bodies."""
    request = replace(request, limits=replace(request.limits, keeps=False))
    nearest: OverMemory | None = None
    for body_bytes, levels in _attempts(request):
        try:
            return plan_call(replace(request, levels=levels, recomputes=True, body_bytes=body_bytes))
        except OverMemory as error:
            if body_bytes is not None and error.function is not None:
                break  # a body takes more than its part, whatever it computes again
            nearest = error if nearest is None or is_nearer(error, nearest) else nearest
        except OverBudget:
            if nearest is None:
                raise
    assert nearest is not None
    if nearest.node is None:
        asked, _ = plan_call(request.without_limits())
        raise at_origin(nearest, peak_memory_node(asked.graph))
    raise nearest


def _attempts(request: CompileRequest) -> Iterator[tuple[int | None, int]]:
    """Yield bytes of bodies, and levels of segments, to try in turn: the cheaper comes first."""
    levels = range(1 + (MOST_LEVELS_OF_SEGMENTS if has_scans(request.program) else 0))
    yield from product((None,), levels)
    if request.program.functions:
        asked, _ = plan_call(request.without_limits())
        largest = max([plan.working_bytes for node in asked.graph.nodes for plan in node.op.runs], default=0)
        sizes = [int(request.limits.bytes * part) for part in _PARTS]
        yield from product([body_bytes for body_bytes in sizes if body_bytes < largest], levels)


def plan_call(request: CompileRequest) -> tuple[Traced, Plan]:
    """Write a call out, optimise and plan it; a sweep in smaller chunks if all at once is over budget.

    The plan has fused kernels where these pay at once. It is within the limits of the request; `plan_within` sees to
    `memory`. Raises EngineError.
    """
    limits, deadline, threads = request.limits, request.deadline, request.loop_threads
    allowance = Allowance(limits.flops if request.foldable is None else request.foldable, deadline)
    asked: Traced | None = None
    refused: OverBudget | None = None
    for chunk_bytes in request.chunks if request.call.is_swept else request.chunks[:1]:
        try:
            asked = write_call(request, chunk_bytes)
            graph = runnable(asked.graph, limits, allowance, threads, request.body_bytes)
            check_linear(graph)
            if request.recomputes:
                graph, plan = rematerialize(graph, limits, deadline, threads, splits_sums=request.splits_sums)
            else:
                plan = choose_plan(graph, limits, deadline, threads, splits_sums=request.splits_sums)
            return asked._replace(graph=graph), plan
        except TooManyNodes as error:
            raise refused or error from None
        except OverBudget as error:
            refused = refused or error
            if asked is not None and not asked.swept:
                break
    assert refused is not None
    raise refused


def write_call(request: CompileRequest, chunk_bytes: int = CHUNK_BYTES[0]) -> Traced:
    """Build the program, write `grad` nodes out, then what the call adds. Raises EngineError."""
    program, call = request.program, request.call
    example = call.example(program, request.types)
    scope = open_scope(
        program, example, call.roots, call.wrt_nodes, request.limits, request.deadline, chunk_bytes, request.levels
    )
    results, disconnected = call.write_graph(scope)
    labels = tuple(label for label, _ in results)
    about = scope.nodes[call.roots[-1]].dtype.name
    graph = scope.builder.graph([value for _, value in results])
    return Traced(graph, labels, disconnected, about, call.sweeps_in(scope))


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
    """Build the program for these types, write `grad` nodes out, and cut long loops into so many `levels` of segments.

    The call writes its own nodes behind them. Raises EngineError.
    """
    limits = limits.of_graph(program.size)
    builder, values = program.build(types, roots, deadline, barriers, limits)
    graph = nest(builder.graph([values[root] for root in roots]), levels, limits, deadline)
    expanded = expand_grad(graph, limits, deadline)
    writing = Builder(program.registry, limits, deadline, list(expanded.nodes))
    nodes = {root: writing.value(i) for root, i in zip(roots, expanded.outputs, strict=True)}
    return Scope(program, writing, nodes, chunk_bytes)


def warm(registry: Registry) -> None:
    """Plan a sample of some ops and their gradients, since the first plan of a process takes twice as long as others.

    This takes some 50 ms; the plans are not kept. Ops of opset 1 alone: some later ones ask LAPACK or have SciPy
    transform, which takes half a second and 25 MB to load, in workers that may never need it.
    """
    for op in [op for op in registry.ops.values() if op.samples and op.since == 1][::ONE_OF]:
        _plan(registry, op, op.samples[0])


def _plan(registry: Registry, op: Definition, sample: Sample) -> None:
    random, count = np.random.default_rng(0), len(sample.operands)
    types = {i: TensorType.of(operand.draw(random, "float32")) for i, operand in enumerate(sample.operands)}
    nodes = [Statement(registry.ops["input"]) for _ in types]
    nodes.append(Statement(op, tuple(range(count)), sample.attrs))
    if op.several:
        nodes.append(Statement(registry.ops["get_output"], (count,), {"index": 0}))
    nodes.append(Statement(registry.ops["sum"], (len(nodes) - 1,)))
    program, compiler = Program(registry, nodes, opset=LATEST), Compiler(Limits())
    compiler.forward(program, types)
    with suppress(EngineError):  # what has no derivatives says so
        compiler.gradients(program, types, wrt=[i for i, type in types.items() if type.is_differentiable])
