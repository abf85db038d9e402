"""Check of a model before it is kept. It reports all faults at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from engine import Compiler, Deadline, DeadlineExceeded, EngineError, Limits, Program, TensorType, Values
from engine.graph.errors import BadReference, MissingFeed, UnexpectedFeed, counted
from engine.graph.limits import NO_END
from engine.graph.tensor_type import dtype_name
from schemas import NodeType
from schemas.models import BoundLeaf, ModelInput, ModelOutput, ModelTensor, NamedOutput, PutModelRequest
from service.errors import Refusal, from_engine
from service.state.graphs import no_graph
from service.state.models import FREE
from service.state.tensor_names import checked_name, is_name, unknown_tensor
from service.wire.node_place import NodePlace
from service.wire.tensors import type_of
from service.wire.translate import located
from service.wire.version import Find

#: what free extents are while a model is planned, one after the other: what comes out differently depends on them
PLANNED_WITH: Final = (2, 3)

#: faults of one report
_MOST: Final = 10
_Types = dict[int, TensorType]


@dataclass(frozen=True)
class TypedModel:
    """Leaves and outputs of a model, as it says them, with the types that were found."""

    inputs: list[ModelInput]
    outputs: list[ModelOutput]
    bound: list[ModelTensor]


class ModelCheck:
    """Check of what is `asked`, on the program of its graph. None: there is no such graph, which is a fault."""

    def __init__(self, asked: PutModelRequest, program: Program | None, limits: Limits) -> None:
        self._asked = asked
        self._program = program
        self._limits = replace(limits, bytes=NO_END)  # nothing of these types is allocated here
        self._bound: Sequence[BoundLeaf] = asked.get("bound", [])

    @property
    def tensor_names(self) -> list[str]:
        """The resident tensors that are bound."""
        return list(dict.fromkeys(one["tensor_id"] for one in self._bound if is_name(one["tensor_id"])))

    def typed(self, find: Find, compiler: Compiler, deadline: Deadline) -> TypedModel:
        """All of it, typed; `find` gives resident tensors. Raises Refusal with all faults, and DeadlineExceeded."""
        faults = [*self._faults_of_names(), *self._faults_of_leaves()]
        faults += (
            self._faults_of_graph(self._program) if self._program else [no_graph(self._asked["graph_id"], "/graph_id")]
        )
        faults += [*self._faults_of_inputs(), *self._faults_of_bound(find)]
        outputs: list[ModelOutput] = []
        if not faults and self._program is not None:
            bound = self._bound_types(find)
            try:
                planned = [self._planned(self._program, bound, extent, compiler, deadline) for extent in self._extents]
                outputs = [_output(*each) for each in zip(self._asked["outputs"], *planned, strict=True)]
            except Refusal as refusal:
                faults += refusal.errors or [refusal]
        if faults:
            raise replace(faults[0], errors=faults[:_MOST] if len(faults) > 1 else [])
        tensors = [_tensor(one, bound[one["node"]]) for one in self._bound]
        return TypedModel(self._asked["inputs"], outputs, tensors)

    @property
    def _extents(self) -> Sequence[int]:
        """What free extents are to be, one after the other; where there are none, the first will do."""
        is_free = any(FREE in one["shape"] for one in self._asked["inputs"])
        return PLANNED_WITH if is_free else PLANNED_WITH[:1]

    def _leaves(self) -> Iterator[tuple[str, int]]:
        """The places where leaves are named, and the nodes there."""
        for role, listed in (("inputs", self._asked["inputs"]), ("bound", self._bound)):
            for i, one in enumerate(listed):
                yield f"{role}/{i}", one["node"]

    def _faults_of_names(self) -> Iterator[Refusal]:
        yield from _faults_of_names("inputs", self._asked["inputs"])
        yield from _faults_of_names("outputs", self._asked["outputs"])
        if not self._asked["outputs"]:
            detail = "outputs is empty, where a model has at least one"
            yield Refusal("invalid_field", detail, expected="at least one output", got="none", pointer="/outputs")

    def _faults_of_leaves(self) -> Iterator[Refusal]:
        """Leaves that are named twice."""
        seen: dict[int, str] = {}
        for place, node in self._leaves():
            if seen.setdefault(node, place) != place:
                detail = f"node {node}: {_spoken(place)} names it, and so does {_spoken(seen[node])}"
                where = f"/{place}/node"
                yield Refusal("invalid_field", detail, node, expected="each leaf once", got="twice", pointer=where)

    def _faults_of_graph(self, program: Program) -> Iterator[Refusal]:
        """Nodes that are not there or take no value, and leaves that are missing."""
        leaves, count, given = set(program.leaves), len(program.statements), set[int]()
        for place, node in self._leaves():
            given.add(node)
            if not 0 <= node < count:
                yield _at(UnexpectedFeed(_outside(place, node, count)), f"/{place}/node")
            elif node not in leaves:
                wrong = UnexpectedFeed(f"{_spoken(place)} names it, but only input and parameter nodes take a value")
                yield _at(program.located(wrong, node), f"/{place}/node")
        outputs = [one["node"] for one in self._asked["outputs"]]
        for i, node in enumerate(outputs):
            if not 0 <= node < count:
                yield _at(BadReference(_outside(f"outputs/{i}", node, count)), f"/outputs/{i}/node")
        needed = program.needed(node for node in outputs if 0 <= node < count)
        for node in sorted(leaves.intersection(needed) - given):
            missing = MissingFeed("an output needs it, but it is neither among inputs nor bound", expected="either")
            yield from_engine(program.located(missing, node))

    def _faults_of_inputs(self) -> Iterator[Refusal]:
        """Types that there are not."""
        for i, one in enumerate(self._asked["inputs"]):
            least = min(one["shape"], default=0)
            if least < FREE:
                detail = f"inputs[{i}].shape has the extent {least}; 0 or more is expected, or {FREE} for a free one"
                expected, where = f"extents of 0 or more, or {FREE}", f"/inputs/{i}/shape"
                yield Refusal("invalid_field", detail, one["node"], expected=expected, got=str(least), pointer=where)
                continue
            try:
                type_of(NodeType(node=one["node"], dtype=one["dtype"], shape=_filled(one, 1)), self._limits)
            except (EngineError, Refusal) as error:
                yield located(error, ("inputs", i), NodePlace(one["node"]))

    def _faults_of_bound(self, find: Find) -> Iterator[Refusal]:
        """Tensors that there are not."""
        for i, one in enumerate(self._bound):
            place, node = f"/bound/{i}/tensor_id", one["node"]
            try:
                if find(checked_name(one["tensor_id"], f"bound[{i}].tensor_id", place, node)) is None:
                    raise unknown_tensor(one["tensor_id"], place, node)
            except Refusal as refusal:
                yield refusal

    def _bound_types(self, find: Find) -> _Types:
        found = ((one["node"], find(one["tensor_id"])) for one in self._bound)
        return {node: TensorType.of(version.array) for node, version in found if version is not None}

    def _planned(
        self, program: Program, bound: _Types, extent: int, compiler: Compiler, deadline: Deadline
    ) -> list[TensorType]:
        """The types of the outputs, with this extent in place of free ones. Raises Refusal, DeadlineExceeded."""
        inputs = {
            one["node"]: TensorType(tuple(_filled(one, extent)), np.dtype(one["dtype"]))
            for one in self._asked["inputs"]
        }
        nodes = list(dict.fromkeys(one["node"] for one in self._asked["outputs"]))
        try:
            compiled = compiler.compile(program, inputs | bound, Values(tuple(nodes)), deadline)
        except DeadlineExceeded:
            raise
        except EngineError as error:
            raise self._unplanned(from_engine(error), extent) from None
        types = dict(zip(nodes, compiled.plan.result_types, strict=True))
        return [types[one["node"]] for one in self._asked["outputs"]]

    def _unplanned(self, refusal: Refusal, extent: int) -> Refusal:
        if len(self._extents) == 1:
            return refusal
        said = f"with {extent} in place of each free extent, "
        errors = [replace(error, detail=said + error.detail) for error in refusal.errors]
        return replace(refusal, detail=said + refusal.detail, errors=errors)


def _faults_of_names(role: str, named: Sequence[ModelInput] | Sequence[NamedOutput]) -> Iterator[Refusal]:
    """Names that cannot be, and such that are there twice."""
    seen = set[str]()
    for i, one in enumerate(named):
        place = f"/{role}/{i}/name"
        try:
            name = checked_name(one["name"], f"{role}[{i}].name", place)
        except Refusal as refusal:
            yield refusal
            continue
        if name in seen:
            detail = f"{role}[{i}].name is “{name}”, as that of another is"
            yield Refusal("invalid_field", detail, expected="each name once", got=f"“{name}” twice", pointer=place)
        seen.add(name)


def _output(one: NamedOutput, type: TensorType, *others: TensorType) -> ModelOutput:
    """An output, typed: what is not the same in all of these is free. Raises Refusal where their ranks differ."""
    for other in others:
        if other.ndim != type.ndim:
            detail = f"node {one['node']}: the output “{one['name']}” has another rank where free extents are others"
            ranks = f"{type.ndim} and {other.ndim}"
            raise Refusal("shape_mismatch", detail, one["node"], expected="one rank for all extents", got=ranks)
    shapes = [type.shape, *(other.shape for other in others)]
    shape = [extents[0] if len(set(extents)) == 1 else FREE for extents in zip(*shapes, strict=True)]
    return ModelOutput(name=one["name"], node=one["node"], dtype=dtype_name(type.dtype), shape=shape)


def _tensor(one: BoundLeaf, type: TensorType) -> ModelTensor:
    return ModelTensor(
        node=one["node"], tensor_id=one["tensor_id"], dtype=dtype_name(type.dtype), shape=list(type.shape)
    )


def _filled(one: ModelInput, extent: int) -> list[int]:
    return [extent if stated == FREE else stated for stated in one["shape"]]


def _spoken(place: str) -> str:
    role, _, i = place.partition("/")
    return f"{role}[{i}]"


def _outside(place: str, node: int, count: int) -> str:
    return f"{_spoken(place)} names node {node}, but the graph has {counted(count, 'node')}"


def _at(error: EngineError, pointer: str) -> Refusal:
    return replace(from_engine(error), pointer=pointer)
