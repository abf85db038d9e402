"""Tasks that compute nothing: put or get a tensor, put a model, register a graph.

A worker does them, so that the front parses no bodies, and no long body holds up other requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final, cast

import numpy as np
import orjson

from engine import (
    Compiler,
    Deadline,
    DeadlineExceeded,
    EngineError,
    HostArray,
    Limits,
    Program,
    TensorType,
    Values,
    graph_id,
)
from engine.ir.errors import BadReference, MissingFeed, UnexpectedFeed, counted
from engine.ir.run_context import NO_END
from engine.ir.tensor_type import dtype_name
from schemas import Graph, NodeType, Tensor
from schemas.resources import (
    BoundLeaf,
    ModelInput,
    ModelOutput,
    ModelTensor,
    NamedOutput,
    PutModelRequest,
    RegisteredGraph,
    RegisterGraphRequest,
)
from service.api.answers import FIELD_BYTES, AnswerBody, admit_answer, write_answer
from service.api.binary import array_bytes, read_one, write_one
from service.api.calls.description import CallDescription
from service.api.graphs import GraphSource, Programs, with_location, write_graph
from service.api.json_codec import parse_json, parse_tensors
from service.api.media import JSON, SAFETENSORS
from service.api.request import ParsedRequest
from service.api.residents import FindTensor, new_etag
from service.api.tensors import NodePlace, decode, encode, encoded_bytes, type_of, validate
from service.core.errors import Refusal, from_engine
from service.core.settings import Settings
from service.store.tables import FREE, is_name, no_graph, require_name, unknown_tensor
from service.store.writes import Stored
from service.workers.executions.execution import (
    PLANNING,
    UNPLANNED,
    CallExecution,
    Engine,
    TaskContext,
    cost_of_analysis,
)
from service.workers.task import (
    REGISTER,
    TEXT_RATE,
    Estimate,
    NeedsGraph,
    NeedsTensors,
    NotDone,
    Reply,
    Task,
    TaskResult,
    TooLong,
)

#: function that returns the registered graph of a key, given its record if that was sent; None if it is unknown
FindGraph = Callable[[str, bytes | None], GraphSource | None]
_Types = dict[int, TensorType]

#: bytes per second of a tensor's elements that are written unchanged
_COPY_RATE: Final = 2e9
#: values of free extents for which a model is planned: whatever differs between the plans depends on the extents
PLANNED_WITH: Final = (2, 3)
#: most faults in one report
_MOST_FAULTS: Final = 10


class TensorTasks:
    """Tasks that put or get a tensor."""

    def __init__(self, settings: Settings, limits: Limits) -> None:
        self._settings = settings
        self._limits = limits

    def put(self, context: TaskContext) -> Reply:
        """Read the tensor that is to be stored under the name in the task's subject.

        The body is a tensor in JSON, or safetensors with a single one. Raises Refusal if name or body is invalid.
        """
        task = context.task
        name = require_name(task.subject or "", "the name of a tensor")
        array = self._array(task)
        context.deadline.check()
        context.mark_read()
        stored = Stored(name, new_etag(), array.dtype.name, array.shape)
        body = orjson.dumps(stored.summary())
        return Reply(200, JSON, [body], (), context.timings(), stored=[stored], stored_data=[array_bytes(array)])

    def get(self, context: TaskContext) -> Reply | NotDone:
        """Write the tensor that the body names: {"tensor_id": …, "encoding": …}, as the front has written it.

        Its ETag is among the headers. Raises Refusal (not_found), and OverBudget if the answer is too long.
        """
        task = context.task
        fields = orjson.loads(bytes(task.body))
        name, encoding = fields["tensor_id"], fields.get("encoding", "json")
        version = task.tensor(name)
        if version is None:
            if task.may_ask:
                return NeedsTensors([name])
            raise unknown_tensor(name)
        form = "binary" if task.answer_type == SAFETENSORS else encoding
        rate = TEXT_RATE if form == "json" else _COPY_RATE
        array = version.array
        cost = Estimate(array.nbytes / rate, 0, FIELD_BYTES + encoded_bytes([TensorType.of(array)], form))
        if context.is_too_long(cost):
            return TooLong(cost)
        admit_answer(cost.response_bytes, form, self._settings.max_response_bytes)
        context.mark_read()
        if form == "binary":
            parts = write_one(name, array)
        else:
            parts = write_answer({"tensor_id": name, "etag": version.etag, "tensor": encode(array, form)}, form)
        return Reply(200, task.answer_type, parts, (("ETag", f'"{version.etag}"'),), context.timings())

    def _array(self, task: Task) -> HostArray:
        settings = self._settings
        if task.body_type == SAFETENSORS:
            return read_one(task.body, settings.max_body_bytes, settings.json_depth, self._limits)
        tensor = validate(Tensor, parse_tensors(bytes(task.body), settings.json_depth))
        try:
            return decode(tensor, self._limits)
        except (EngineError, Refusal) as error:
            refusal = from_engine(error) if isinstance(error, EngineError) else error
            refusal.detail = f"the tensor {refusal.detail}" if refusal.code == "bad_tensor" else refusal.detail
            refusal.pointer = refusal.pointer or ""
            raise refusal from None


@dataclass(frozen=True)
class TypedModel:
    """Leaves and outputs of a model as the request has them, with the types that were determined."""

    inputs: list[ModelInput]
    outputs: list[ModelOutput]
    bound: list[ModelTensor]


class ModelCheck:
    """Check of a model before it is stored, which reports all faults at once.

    `request` is what the client sent, and `program` its graph; None if there is no such graph, which is a fault.
    """

    def __init__(self, request: PutModelRequest, program: Program | None, limits: Limits) -> None:
        self._request = request
        self._program = program
        self._limits = replace(limits, bytes=NO_END)  # nothing of these types is allocated here
        self._bound: Sequence[BoundLeaf] = request.get("bound", [])

    @property
    def tensor_names(self) -> list[str]:
        """Names of the resident tensors that are bound."""
        return list(dict.fromkeys(entry["tensor_id"] for entry in self._bound if is_name(entry["tensor_id"])))

    def typed(self, find: FindTensor, compiler: Compiler, deadline: Deadline) -> TypedModel:
        """Return all types; `find` returns resident tensors. Raises Refusal with all faults, and DeadlineExceeded."""
        faults = [*_faults_of_names("inputs", self._request["inputs"])]
        faults += [*_faults_of_names("outputs", self._request["outputs"])]
        if not self._request["outputs"]:
            detail = "outputs is empty, but a model needs at least one output"
            faults.append(
                Refusal("invalid_field", detail, expected="at least one output", got="none", pointer="/outputs")
            )
        faults += self._faults_of_leaves()
        faults += (
            self._faults_of_graph(self._program)
            if self._program
            else [no_graph(self._request["graph_id"], "/graph_id")]
        )
        faults += [*self._faults_of_inputs(), *self._faults_of_bound(find)]
        outputs: list[ModelOutput] = []
        # Types are determined only for a model without faults: a plan could report no more than its first.
        if not faults and self._program is not None:
            versions = ((entry["node"], find(entry["tensor_id"])) for entry in self._bound)
            bound = {node: TensorType.of(version.array) for node, version in versions if version is not None}
            try:
                types_by_extent = [
                    self._output_types(self._program, bound, extent, compiler, deadline) for extent in self._extents
                ]
                outputs = [_output(*each) for each in zip(self._request["outputs"], *types_by_extent, strict=True)]
            except Refusal as refusal:
                faults += refusal.errors or [refusal]
        if faults:
            raise replace(faults[0], errors=faults[:_MOST_FAULTS] if len(faults) > 1 else [])
        return TypedModel(
            self._request["inputs"], outputs, [_tensor(entry, bound[entry["node"]]) for entry in self._bound]
        )

    @property
    def _extents(self) -> Sequence[int]:
        """Values of free extents to plan with; one is enough if there are no free extents."""
        is_free = any(FREE in entry["shape"] for entry in self._request["inputs"])
        return PLANNED_WITH if is_free else PLANNED_WITH[:1]

    def _leaves(self) -> Iterator[tuple[str, int]]:
        """Yield the place of each leaf in the request, and its node."""
        for role, listed in (("inputs", self._request["inputs"]), ("bound", self._bound)):
            for i, entry in enumerate(listed):
                yield f"{role}/{i}", entry["node"]

    def _faults_of_leaves(self) -> Iterator[Refusal]:
        """Yield a fault for each leaf that is named twice."""
        seen: dict[int, str] = {}
        for place, node in self._leaves():
            if seen.setdefault(node, place) != place:
                detail = f"node {node}: {_field_path(seen[node])} and {_field_path(place)} both name it"
                where = f"/{place}/node"
                yield Refusal("invalid_field", detail, node, expected="each leaf once", got="twice", pointer=where)

    def _faults_of_graph(self, program: Program) -> Iterator[Refusal]:
        """Yield faults for nodes that do not exist or take no value, and for leaves that are missing."""
        leaves, count, given = set(program.leaves), len(program.statements), set[int]()
        for place, node in self._leaves():
            given.add(node)
            if not 0 <= node < count:
                yield _with_pointer(UnexpectedFeed(_outside(place, node, count)), f"/{place}/node")
            elif node not in leaves:
                wrong = UnexpectedFeed(
                    f"{_field_path(place)} names this node, but only input and parameter nodes take a value"
                )
                yield _with_pointer(program.located(wrong, node), f"/{place}/node")
        outputs = [entry["node"] for entry in self._request["outputs"]]
        for i, node in enumerate(outputs):
            if not 0 <= node < count:
                yield _with_pointer(BadReference(_outside(f"outputs/{i}", node, count)), f"/outputs/{i}/node")
        needed = program.needed(node for node in outputs if 0 <= node < count)
        for node in sorted(leaves.intersection(needed) - given):
            missing = MissingFeed(
                "an output depends on this node, but it is in neither inputs nor bound", expected="an entry in either"
            )
            yield from_engine(program.located(missing, node))

    def _faults_of_inputs(self) -> Iterator[Refusal]:
        """Yield faults for invalid types."""
        for i, entry in enumerate(self._request["inputs"]):
            least = min(entry["shape"], default=0)
            if least < FREE:
                detail = f"inputs[{i}].shape has the extent {least}; extents are 0 or more, or {FREE} if free"
                expected, where = f"extents of 0 or more, or {FREE}", f"/inputs/{i}/shape"
                yield Refusal("invalid_field", detail, entry["node"], expected=expected, got=str(least), pointer=where)
                continue
            try:
                type_of(NodeType(node=entry["node"], dtype=entry["dtype"], shape=_filled(entry, 1)), self._limits)
            except (EngineError, Refusal) as error:
                yield with_location(error, ("inputs", i), NodePlace(entry["node"]))

    def _faults_of_bound(self, find: FindTensor) -> Iterator[Refusal]:
        """Yield faults for missing tensors."""
        for i, entry in enumerate(self._bound):
            place, node = f"/bound/{i}/tensor_id", entry["node"]
            try:
                if find(require_name(entry["tensor_id"], f"bound[{i}].tensor_id", place, node)) is None:
                    raise unknown_tensor(entry["tensor_id"], place, node)
            except Refusal as refusal:
                yield refusal

    def _output_types(
        self, program: Program, bound: _Types, extent: int, compiler: Compiler, deadline: Deadline
    ) -> list[TensorType]:
        """Return the types of the outputs, with `extent` for free extents. Raises Refusal, DeadlineExceeded."""
        inputs = {
            entry["node"]: TensorType(tuple(_filled(entry, extent)), np.dtype(entry["dtype"]))
            for entry in self._request["inputs"]
        }
        nodes = list(dict.fromkeys(entry["node"] for entry in self._request["outputs"]))
        try:
            compiled = compiler.compile(program, inputs | bound, Values(tuple(nodes)), deadline)
        except DeadlineExceeded:
            raise
        except EngineError as error:
            raise self._name_extent(from_engine(error, self._request), extent) from None
        types = dict(zip(nodes, compiled.plan.result_types, strict=True))
        return [types[entry["node"]] for entry in self._request["outputs"]]

    def _name_extent(self, refusal: Refusal, extent: int) -> Refusal:
        if len(self._extents) == 1:
            return refusal
        prefix = f"with {extent} for each free extent, "
        errors = [replace(error, detail=prefix + error.detail) for error in refusal.errors]
        return replace(refusal, detail=prefix + refusal.detail, errors=errors)


def _faults_of_names(role: str, entries: Sequence[ModelInput] | Sequence[NamedOutput]) -> Iterator[Refusal]:
    """Yield faults for invalid names, and for names that are used twice."""
    seen = set[str]()
    for i, entry in enumerate(entries):
        place = f"/{role}/{i}/name"
        try:
            name = require_name(entry["name"], f"{role}[{i}].name", place)
        except Refusal as refusal:
            yield refusal
            continue
        if name in seen:
            detail = f"{role}[{i}].name is “{name}”, which an earlier entry already has"
            yield Refusal("invalid_field", detail, expected="each name once", got=f"“{name}” twice", pointer=place)
        seen.add(name)


def _output(entry: NamedOutput, type: TensorType, *others: TensorType) -> ModelOutput:
    """Return an output with its type: extents that differ are free. Raises Refusal if the ranks differ."""
    for other in others:
        if other.ndim != type.ndim:
            detail = f"node {entry['node']}: the output “{entry['name']}” has a rank that depends on the free extents"
            ranks = f"{type.ndim} and {other.ndim}"
            raise Refusal("shape_mismatch", detail, entry["node"], expected="one rank for all extents", got=ranks)
    shapes = [type.shape, *(other.shape for other in others)]
    shape = [extents[0] if len(set(extents)) == 1 else FREE for extents in zip(*shapes, strict=True)]
    return ModelOutput(name=entry["name"], node=entry["node"], dtype=dtype_name(type.dtype), shape=shape)


def _tensor(entry: BoundLeaf, type: TensorType) -> ModelTensor:
    return ModelTensor(
        node=entry["node"], tensor_id=entry["tensor_id"], dtype=dtype_name(type.dtype), shape=list(type.shape)
    )


def _filled(entry: ModelInput, extent: int) -> list[int]:
    return [extent if size == FREE else size for size in entry["shape"]]


def _field_path(place: str) -> str:
    role, _, i = place.partition("/")
    return f"{role}[{i}]"


def _outside(place: str, node: int, count: int) -> str:
    return f"{_field_path(place)} names node {node}, but the graph has {counted(count, 'node')}"


def _with_pointer(error: EngineError, pointer: str) -> Refusal:
    return replace(from_engine(error), pointer=pointer)


class ModelTasks:
    """Tasks of the two steps that put a model: the first reads the request, the second checks and writes the model.

    In between, the front finds the graph: it parses no bodies, and workers store no graphs.
    """

    def __init__(
        self, settings: Settings, limits: Limits, registered: FindGraph, programs: Programs, compiler: Compiler
    ) -> None:
        self._settings = settings
        self._limits = limits
        self._registered = registered
        self._programs = programs
        self._compiler = compiler

    def read_model(self, context: TaskContext) -> Reply:
        """Write the request with the graph's id ahead of all lists, for the front. Raises Refusal if it is invalid."""
        request = self._read(context)
        return _reply(context, {**_leading_fields(request), "inputs": request["inputs"], **request})

    def put(self, context: TaskContext) -> TaskResult:
        """Write the model that the task's subject names, on its graph, under a new etag.

        Without a graph, raise a Refusal with this and all other faults.
        """
        task = context.task
        request = self._read(context)
        source = None if task.graph is None else self._registered(task.graph, task.graph_bytes)
        if task.graph is not None and source is None:
            return NeedsGraph()
        program = None if source is None else self._programs.program(source)
        check = ModelCheck(request, program, self._limits)
        if task.may_ask and any(task.tensor(name) is None for name in check.tensor_names):
            return NeedsTensors(check.tensor_names)
        if program is not None and context.is_too_long(cost_of_analysis(program, len(PLANNED_WITH)), PLANNING):
            return TooLong(UNPLANNED)
        try:
            typed = check.typed(task.tensor, self._compiler, context.patience(PLANNING))
        except DeadlineExceeded:
            if context.most_seconds is None:
                raise
            context.deadline.check()
            return TooLong(UNPLANNED)
        etag = new_etag()
        return _reply(context, {"name": task.subject, "etag": etag, **_leading_fields(request), **asdict(typed)}, etag)

    def _read(self, context: TaskContext) -> PutModelRequest:
        return validate(PutModelRequest, parse_json(bytes(context.task.body), self._settings.json_depth))


def _leading_fields(request: PutModelRequest) -> dict[str, str]:
    """Return the fields of a model that precede its leaves: the front reads these."""
    fields = {"graph_id": request["graph_id"]}
    return fields | {"description": request["description"]} if "description" in request else fields


def _reply(context: TaskContext, fields: dict[str, object], etag: str | None = None) -> Reply:
    context.mark_read()
    headers = () if etag is None else (("ETag", f'"{etag}"'),)
    return Reply(200, JSON, [orjson.dumps(fields)], headers, context.timings())


@dataclass(frozen=True)
class Registering:
    """Graph to be checked and named."""

    program: Program
    graph: Graph
    description: str | None


class RegistrationDescription(CallDescription):
    """Registration of a graph. It is no call of the API: it computes nothing."""

    name = REGISTER
    request = RegisterGraphRequest
    answer = RegisteredGraph
    roles = ("constants",)


class Registration(CallExecution[Registering, Registering, RegisteredGraph]):
    """Execution that checks a graph, and writes the record that is answered and stored."""

    description = RegistrationDescription

    def read_call(self, request: ParsedRequest) -> Registering:
        """Return the graph."""
        return Registering(request.program, request.graph, request.fields.get("description"))

    def run_call(self, ready: Registering, engine: Engine, deadline: Deadline) -> RegisteredGraph:
        """Return the record: the graph's id, and the graph with all of its tensors."""
        program = ready.program
        described = {} if ready.description is None else {"description": ready.description}
        graph = write_graph(
            ready.graph, program.statements, program.functions, lambda _, array: cast("Tensor", encode(array, "base64"))
        )
        record = {"graph_id": graph_id(program), **described, "node_count": program.size, "graph": graph}
        return cast("RegisteredGraph", record)

    def write_body(self, outcome: RegisteredGraph, ready: Registering, encoding: str) -> AnswerBody:
        """Write the record, with the graph last."""
        return write_answer(dict(outcome), encoding)
