"""Computation of one request inside a worker: from a task to its reply, without state that belongs to the request.

Most requests repeat an earlier one with other numbers. They hit the cache of requests: a template reads their numbers,
the cached plan runs, and a template writes the answer (`_run_cached`). Any other request is parsed, checked, planned
and run by the execution of its call (`_run_uncached`). A request of another protocol (a facade) is translated into a
call of ours first, and the facade writes its answer.

A `Worker` is made from settings alone. It lives in a process of its own, or is shared by threads.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec

from engine import Compiled, Compiler, DeadlineExceeded, EngineError, HostArray, Limits, open_executor, registry
from engine.codegen.native.machine_code import KernelStore
from engine.compiler.compiler import Cache
from engine.compiler.fused_kernel import measure_dense_flop
from engine.ir.fairness import charge_to
from schemas.graph import NAME_CHARACTERS
from schemas.resources import without_graph
from service.api.binary import array_bytes, read_request
from service.api.graphs import GraphSource, Programs, Translator
from service.api.json_codec import parse_tensors
from service.api.json_reader import NO_TENSORS, JsonReader, Message, split_graph
from service.api.media import JSON, PIECE_SUMS, SAFETENSORS
from service.api.request import ParsedRequest, PrecisionChoice, RequestReader, RequestTemplate
from service.api.residents import NewVersion
from service.core import machine
from service.core.budget import REQUESTS_PER_PLAN
from service.core.errors import Refusal, from_engine, internal_error, out_of_memory, unreadable
from service.core.settings import Settings, budget_of
from service.facades.foreign_call import ForeignCall, ReadLimits, ResultArrays
from service.facades.model import Model
from service.facades.openinference import Infer, Metadata, ModelReady
from service.facades.protocols import ForeignAnswer, facades_of
from service.facades.tesseract import TESSERACT_CALLS, Document, Health
from service.facades.umbridge import UMBRIDGE_CALLS
from service.workers.executions import executions
from service.workers.executions.computing import Computing
from service.workers.executions.execution import (
    PLANNING,
    UNPLANNED,
    AnyExecution,
    CachedRequest,
    Engine,
    TaskContext,
    cost_of_analysis,
)
from service.workers.sandbox import kernel_folder
from service.workers.shared_memory import Vitals
from service.workers.store_tasks import ModelTasks, Registration, TensorTasks
from service.workers.sum_tasks import add_pieces_up, check_versions, compute_piece, offer_division, write_peer_request
from service.workers.task import (
    GET_TENSOR,
    PUT_MODEL,
    PUT_TENSOR,
    READ_MODEL,
    REGISTER,
    Estimate,
    NeedsGraph,
    NeedsModel,
    NeedsTensors,
    PieceRequest,
    Reply,
    Task,
    TaskResult,
    TooLong,
    Total,
    refused,
)

_logger = logging.getLogger("gradserve.worker")
_P = ParamSpec("_P")
_KSERVE: Final[Sequence[ForeignCall]] = (Infer(), Metadata(), ModelReady())
_FOREIGN: Final[Sequence[ForeignCall]] = (*UMBRIDGE_CALLS, *_KSERVE, *TESSERACT_CALLS, Document(), Health())


def foreign_calls(names: Iterable[str]) -> dict[str, ForeignCall]:
    """Map the calls of these facades by their names."""
    by_name = {call.name: call for call in _FOREIGN}
    return {route.call: by_name[route.call] for facade in facades_of(names) for route in facade.routes}


def kernel_store(settings: Settings) -> KernelStore | None:
    """Open the store of compiled kernels; None if nothing is to be compiled."""
    return None if settings.compile == "off" else KernelStore(kernel_folder(settings), budget_of(settings).kernels)


def _never_raising(
    step: Callable[Concatenate[Worker, TaskContext, _P], TaskResult],
) -> Callable[Concatenate[Worker, TaskContext, _P], TaskResult]:
    """Make a step of a task return a problem report whatever goes wrong, and charge its work to the task's tenant."""

    @wraps(step)
    def safe(worker: Worker, context: TaskContext, /, *args: _P.args, **kwargs: _P.kwargs) -> TaskResult:
        task = context.task
        charge_to(task.tenant)
        try:
            done = step(worker, context, *args, **kwargs)
        except Refusal as refusal:
            done = refused(refusal, task.request_id)
        except EngineError as error:
            done = refused(from_engine(error, context.fields), task.request_id)
        except MemoryError:
            done = refused(out_of_memory(), task.request_id, recycle="memory")
        except Exception:
            _logger.exception("request %s failed", task.request_id, extra={"request_id": task.request_id})
            # While the request is being read, nothing of it has run: the worker is in order and need not be replaced.
            is_read = not context.is_reading
            done = refused(
                internal_error() if is_read else unreadable(), task.request_id, recycle="fault" if is_read else None
            )
        if task.consulted and isinstance(done, Reply):
            done.consulted = True
        return done

    return safe


class Worker:
    """Computation of tasks: it parses, checks, plans and executes requests, and writes answers. For many threads."""

    def __init__(self, settings: Settings) -> None:
        """Open the device. Raises RuntimeError if that fails."""
        limits = Limits(
            nodes=settings.max_expanded_nodes,
            rank=settings.max_rank,
            bytes=settings.max_bytes,
            flops=settings.max_flops,
            expansion=settings.max_expansion,
            depth=settings.max_depth,
        )
        budget = budget_of(settings)
        executor = open_executor(
            settings.device,
            threads=machine.cpus_per_worker(settings.workers),
            determinism=settings.determinism,
            compile=settings.compile,
            store=kernel_store(settings),
            instance_bytes=budget.ready,
            device_bytes=settings.device_bytes or None,
            device_workspace=settings.device_workspace,
        )
        self._executor = executor
        self.device = executor.device
        self._settings = settings
        self._limits = limits
        self._read_limits = ReadLimits(settings.max_body_bytes, settings.json_depth, limits)
        translator = Translator(registry(), limits)
        self._programs = programs = Programs(translator, settings.plan_cache, budget.graphs, settings.json_depth - 1)
        self._json = JsonReader(programs, settings.json_depth, settings.max_nodes)
        precisions = PrecisionChoice(settings.precision, settings.least_precision)
        self._reader = RequestReader(translator, programs, limits, settings.max_nodes, precisions)
        self._cached_requests: Cache[CachedRequest] = Cache(
            REQUESTS_PER_PLAN * settings.plan_cache, budget.cached_requests, lambda entry: entry.nbytes
        )
        self._calls: dict[str, AnyExecution] = {**executions(), REGISTER: Registration()}
        self._foreign = foreign_calls(settings.facades)
        tensors = TensorTasks(settings, limits)
        self.engine = Engine(
            Compiler(
                limits,
                settings.plan_cache,
                budget.plans,
                kernel_threads=executor.kernel_threads,
                splits_sums=executor.splits_sums,
            ),
            executor,
            settings.max_response_bytes,
            settings.write_behind_ms,
            limits_of(settings),
            settings.server_name,
        )
        models = ModelTasks(settings, limits, self._registered, programs, self.engine.compiler)
        self._store_tasks: dict[str, Callable[[TaskContext], TaskResult]] = {
            PUT_TENSOR: tensors.put,
            GET_TENSOR: tensors.get,
            READ_MODEL: models.read_model,
            PUT_MODEL: models.put,
        }

    def __call__(self, task: Task) -> Reply:
        """Do a task that comes with all it needs, however long it takes. Never raises: see `attempt`."""
        outcome = self.attempt(task)
        if isinstance(outcome, NeedsModel):
            outcome = self._with_model(TaskContext(task, None), outcome.name)
        assert isinstance(outcome, Reply), "it has its graph and its tensors, and all the time that it wants"
        return outcome

    @_never_raising
    def _with_model(self, context: TaskContext, name: str) -> TaskResult:
        context.task.set_model(name)
        return self.attempt(context.task)

    def attempt(self, task: Task, most_seconds: float | None = None) -> TaskResult:
        """Do a task, unless it would take longer than `most_seconds`, or lacks its graph, tensors or model.

        Never raises: whatever goes wrong is reported as a problem.
        """
        return self._attempt(TaskContext(task, most_seconds))

    @_never_raising
    def _attempt(self, context: TaskContext) -> TaskResult:
        looked_up = self._read_request(context)
        if isinstance(looked_up, CacheHit):
            return self._run_cached(looked_up)
        return self._run_uncached(*looked_up) if isinstance(looked_up, CacheMiss) else looked_up

    def vitals(self) -> Vitals:
        """Return the vital signs of this process."""
        return Vitals(self._executor.kernels, self._executor.device_bytes)

    def calibrate(self) -> None:
        """Measure this machine for the cost model; call this when BLAS has its final number of threads."""
        if self.device == "cpu":
            self.engine = replace(self.engine, dense_flop=measure_dense_flop())

    def _read_request(self, context: TaskContext) -> CacheHit | CacheMiss | TaskResult:
        task = context.task
        foreign, call = self._foreign.get(task.call), self._calls.get(task.call)
        if foreign is not None:
            return self._read_foreign(context, foreign)
        if call is None:
            return self._store_tasks[task.call](context)
        source = None if task.graph is None else self._registered(task.graph, task.graph_bytes)
        if task.graph is not None and source is None:
            return NeedsGraph()
        return self._look_up(context, call, self._parse(task, source))

    def _read_foreign(self, context: TaskContext, foreign: ForeignCall) -> CacheHit | CacheMiss | TaskResult:
        """Translate a task of another protocol into a call on the graph of its model."""
        task, limits = context.task, self._read_limits
        if task.model is None:
            # Only the body names the model, and the front, which has the models, parses no bodies.
            return NeedsModel(foreign.model_name(bytes(task.body), limits))
        assert task.graph is not None, "it came with the model"
        model = Model.parse(task.model)
        model.require_real()
        model.require_bound(task.tensor)
        translated = foreign.read_request(bytes(task.body), task.subject or "", model, limits)
        if isinstance(translated, ForeignAnswer):
            context.mark_read()
            return _foreign_reply(translated, context)
        source = self._registered(task.graph, task.graph_bytes)
        if source is None:
            return NeedsGraph()
        context.translated, fields = translated, translated.fields
        if translated.weighted is not None:
            source, first = translated.weighted.extend_graph(source, self._programs)
            fields = translated.weighted.request_fields(fields, first)
        return self._look_up(context, self._calls[translated.call], Message(fields, translated.tensors, source))

    def _look_up(self, context: TaskContext, call: AnyExecution, message: Message) -> CacheHit | CacheMiss | TaskResult:
        context.deadline.check()
        key = _key_of(context.task, call, message)
        return (key and self._find_cached(context, key)) or CacheMiss(context, call, message, key)

    def _find_cached(self, context: TaskContext, key: RequestKey) -> CacheHit | TooLong | None:
        """Look up a request in the cache; return None if there is no entry that fits it exactly."""
        cached = self._cached_requests.find(key.question)
        # A plan may have been evicted while its requests are still cached: they hold only its name.
        compiled = None if cached is None else self.engine.compiler.plans.find(cached.plan)
        if cached is None or compiled is None:
            return None
        # Whatever does not fit the template goes to the full parser, which finds the error and words it.
        try:
            tensors = cached.read_tensors(key.template.data, key.template.starts, context.task.tensor)
        except Refusal:
            return None
        if tensors is None:
            return None
        context.mark()
        if context.is_too_long(cached.cost):
            return TooLong(cached.cost)
        return CacheHit(context, cached, compiled, tensors, key.template.conditions)

    def _run_cached(self, hit: CacheHit) -> Reply:
        """Run the plan of a cached request, and write the reply by its template."""
        context, cached, labels = hit.context, hit.cached, hit.compiled.labels
        started = context.mark()
        arrays = self.engine.executor.run(hit.compiled.plan, hit.tensors, context.deadline)
        seconds = context.ran() - started
        if context.translated is not None:
            results = ResultArrays(zip(labels, arrays, strict=True), self.engine.max_response_bytes)
            return _foreign_reply(context.translated.write_answer(results), context, cached=True)
        stored = cached.stored_values(arrays, hit.conditions) if cached.store_targets is not None else ()
        parts = cached.write_body(labels, arrays, round(1000 * seconds, 4), context.deadline.report, stored)
        reply = Reply(200, context.task.answer_type, parts, (), context.timings(), True)
        return _add_stored(reply, stored) if stored else reply

    def _run_uncached(
        self, context: TaskContext, call: AnyExecution, message: Message, key: RequestKey | None
    ) -> TaskResult:
        """Parse, check, plan and run a request that is not cached. Its graph and its plan may be."""
        if key is not None:
            # To make the key, the numbers were taken out of the message.
            key.template.put_back()
        request = self._open(context, call, message)
        # Once asked for, None means that there is no such tensor: reading the call reports it.
        if context.task.may_ask and (names := request.residents_to_fetch(call.description.roles)):
            return NeedsTensors(names)
        parsed = call.read_call(request)
        context.mark()
        # Planning takes about this long, which alone may be too long for the quick worker.
        if context.task.part is None and context.is_too_long(planning := cost_of_analysis(request.program), PLANNING):
            return TooLong(planning)
        try:
            ready = call.prepare(parsed, self.engine, context.patience(PLANNING))
        except DeadlineExceeded:
            # Either the client's time is over, which `check` reports, or only the time for planning a short task.
            if context.most_seconds is None:
                raise
            context.deadline.check()
            return TooLong(UNPLANNED)
        context.mark()
        if (instead := self._instead(context, request, ready, cost := call.cost(ready))) is not None:
            return instead
        if isinstance(context.task.part, Total):
            ready = add_pieces_up(ready, context.task.part, context.task.sums, self.engine)
        outcome = call.run_call(ready, self.engine, context.deadline)
        context.ran()
        translated = context.translated
        parts = call.write_body(outcome, ready, request.encoding) if translated is None else ()
        cached = None if key is None else call.cache_entry(ready, outcome, self.engine, cost)
        if key is not None and cached is not None:
            self._cached_requests.get(key.question, lambda: cached)
        if translated is not None:
            results = _results(call, outcome, ready, self.engine.max_response_bytes)
            return _foreign_reply(translated.write_answer(results), context, cached=call.is_cached(ready))
        reply = Reply(200, context.task.answer_type, parts, (), context.timings(), call.is_cached(ready))
        return _add_stored(reply, call.stored_values(outcome))

    def _instead(self, context: TaskContext, request: ParsedRequest, ready: Any, cost: Estimate) -> TaskResult | None:
        """Return the reply to a piece of a sum, or the reason why the task is not run here and now; None to run it."""
        part = context.task.part
        if isinstance(part, Total):
            return None
        if isinstance(part, PieceRequest):
            return write_peer_request(ready, context, request)
        if part is not None or context.task.answer_type == PIECE_SUMS:
            check_versions(request.message.versions, context.task)
            return compute_piece(ready, context, self.engine)
        divisible = offer_division(ready, context, cost.response_bytes)
        return TooLong(cost) if divisible is None and context.is_too_long(cost) else divisible

    def _open(self, context: TaskContext, call: AnyExecution, message: Message) -> ParsedRequest:
        """Check a request, with its own graph or a registered one."""
        task, model, roles = context.task, call.description.request, call.description.roles
        if task.graph is not None:
            model, roles = without_graph(model), tuple(role for role in roles if role != "constants")
        packed = task.answer_type in (SAFETENSORS, PIECE_SUMS)
        request = self._reader.open(message, model, roles, task.tensor, packed=packed)
        if context.translated is None:
            context.fields = request.fields
        return request

    def _registered(self, key: str, record: bytes | None) -> GraphSource | None:
        """Return the registered graph of this key; None if this worker does not have it, and was not sent it."""
        known = self._programs.cached(key)
        if known is not None or record is None:
            return known
        parts = split_graph(record)
        assert parts is not None, "a worker has written it"
        return self._programs.source(key, parts.graph)

    def _parse(self, task: Task, source: GraphSource | None) -> Message:
        """Split a request into its parts; its graph is `source` if that is registered."""
        if task.body_type == SAFETENSORS:
            message = read_request(task.body, self._settings.max_body_bytes, self._json, self._limits)
            return message if source is None else message._replace(source=source)
        if source is not None:
            return Message(parse_tensors(bytes(task.body), self._settings.json_depth), NO_TENSORS, source)
        return self._json.read_request(bytes(task.body))


class CacheHit(NamedTuple):
    """Cached request with new numbers: what is left is to run its plan and to write the answer."""

    context: TaskContext
    cached: CachedRequest
    compiled: Compiled
    tensors: dict[Hashable, HostArray]
    conditions: Sequence[str | None]


class CacheMiss(NamedTuple):
    """Request that is not in the cache; its graph and its plan may be cached."""

    context: TaskContext
    call: AnyExecution
    message: Message
    key: RequestKey | None


def _results(call: AnyExecution, outcome: Any, ready: Any, most_bytes: int) -> ResultArrays:
    if isinstance(call, Computing):
        return ResultArrays(outcome.arrays, most_bytes)
    return ResultArrays((), most_bytes, b"".join(call.write_body(outcome, ready, "json")))


def _foreign_reply(answer: ForeignAnswer, context: TaskContext, *, cached: bool = False) -> Reply:
    return Reply(200, answer.media_type, answer.parts, answer.headers, context.timings(), cached)


def _add_stored(reply: Reply, stored: Sequence[NewVersion]) -> Reply:
    """Add the tensors that are to be stored to a reply."""
    reply.stored = [entry.stored for entry in stored]
    reply.stored_data = [array_bytes(entry.array) for entry in stored]
    return reply


class RequestKey(NamedTuple):
    """Key of a request, and the numbers taken out of it; requests with equal questions differ only in numbers."""

    question: Hashable
    template: RequestTemplate


def _key_of(task: Task, call: AnyExecution, message: Message) -> RequestKey | None:
    """Take the numbers out of a request; return None if it has to be parsed as a whole."""
    if task.body_type != JSON or not call.description.tensor_fields or message.source is None or message.tensors:
        return None
    template = RequestTemplate.split(message.body, call.description.tensor_fields)
    if template is None:
        return None
    return RequestKey((task.call, message.source.name, task.answer_type, template.shape), template)


def limits_of(settings: Settings) -> dict[str, int]:
    """Return the limits of one request, as the plan call reports them."""
    return {
        "nodes": settings.max_nodes,
        "rank": settings.max_rank,
        "peak_bytes": settings.max_bytes,
        "flops": settings.max_flops,
        "response_bytes": settings.max_response_bytes,
        "body_bytes": settings.max_body_bytes,
        "binary_body_bytes": settings.max_binary_bytes,
        "json_depth": settings.json_depth,
        "function_depth": settings.max_depth,
        "name_characters": NAME_CHARACTERS,
        "timeout_ms": settings.timeout_ms,
    }
