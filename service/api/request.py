"""Validated requests, whose parts are read when a call needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, product, starmap
from typing import Any, Final, NamedTuple, Self, get_args

import numpy as np
import orjson

from engine import NO_END, EngineError, HostArray, Label, Limits, Program, TensorType
from engine.ir.run_report import IEEE, PRECISIONS, Precision, RunReport, RunTier
from engine.ir.tensor_type import dtype_name
from schemas import Feed, Graph, NodeType
from service.api.answers import AnswerBody, RunStats, report_fields, result_fields
from service.api.graphs import Programs, Translator, read_array, unexpected_tensor, with_location
from service.api.json_reader import Message, admit_nodes
from service.api.residents import FindTensor, ResidentFeed, fed_rows, is_condition, is_span, rows_refusal
from service.api.tensors import NodePlace, has_plain_numbers, numbers_of, type_of, validate
from service.core.errors import Refusal
from service.store.tables import is_name, require_name, unknown_tensor


class PrecisionChoice(NamedTuple):
    """Precision of requests that state none, and the coarsest that a request may state."""

    default: Precision = IEEE
    coarsest: Precision = PRECISIONS[-1]

    def choose(self, precision_of_request: Precision | None) -> Precision:
        """Return the precision of a request that states this one, or none. Raises Refusal."""
        precision = self.default if precision_of_request is None else precision_of_request
        allowed = PRECISIONS[: PRECISIONS.index(self.coarsest) + 1]
        if precision in allowed:
            return precision
        expected, got = f"one of {', '.join(allowed)}" if len(allowed) > 1 else allowed[0], f"“{precision}”"
        sentence = f"precision must be {expected} on this server, but is {got}"
        raise Refusal("invalid_field", sentence, expected=expected, got=got, pointer="/precision")


class RequestReader:
    """Validator of requests within limits."""

    def __init__(
        self, translator: Translator, programs: Programs, limits: Limits, max_nodes: int, precisions: PrecisionChoice
    ) -> None:
        self.limits = limits
        self.translator = translator
        self.programs = programs
        self._max_nodes = max_nodes
        self._precisions = precisions

    def open(
        self, message: Message, model: type, roles: Sequence[str], find: FindTensor, *, packed: bool
    ) -> ParsedRequest:
        """Validate a request against `model`; `roles` are those of tensors that may be sent beside its JSON.

        `find` returns resident tensors. With `packed`, the answer is in safetensors. Raises Refusal.
        """
        self._admit(message.body)
        source = message.source
        fields: Mapping[str, Any] = validate(
            model, message.body, graph=None if source is None else lambda: source.graph
        )
        for role, place in message.tensors:
            if role not in roles:
                expected_names = ", ".join(f"{name}.NODE" for name in roles)
                raise unexpected_tensor(place.tensor_name(role), f"this call takes {expected_names}")
        encoding = "binary" if packed else fields.get("encoding", "json")
        return ParsedRequest(fields, message, self, encoding, find, self._precisions.choose(fields.get("precision")))

    def _admit(self, body: Mapping[str, Any]) -> None:
        """Raise Refusal for a graph that is too long, before its nodes are validated."""
        graph = body.get("graph")
        if isinstance(graph, dict):
            functions = graph.get("functions")
            function_lengths = map(_length, functions) if isinstance(functions, list) else ()
            admit_nodes(_length(graph), self._max_nodes, function_lengths)


@dataclass(frozen=True)
class ParsedRequest:
    """Fields of a request, and their values in the engine's terms. Properties raise Refusal and EngineError.

    `encoding` is that of tensors in the answer: json, base64, or binary for safetensors. `find` returns resident
    tensors. `precision` is how products and convolutions may read float32: stated by the request, or the server's
    default.
    """

    fields: Mapping[str, Any]
    message: Message
    reader: RequestReader
    encoding: str
    find: FindTensor
    precision: Precision

    def get(self, *names: str) -> list[Any]:
        """Return fields of the request, None for absent ones."""
        return [self.fields.get(name) for name in names]

    @cached_property
    def program(self) -> Program:
        """Program of the graph."""
        constants, source = self.message.placed("constants"), self.message.source
        if source is None or constants:
            return self.reader.translator.program(self.graph, constants)
        return self.reader.programs.program(source)

    @cached_property
    def graph(self) -> Graph:
        """Graph as it was sent."""
        graph: Graph = self.fields["graph"] if self.message.source is None else self.message.source.graph
        return graph

    @cached_property
    def feeds(self) -> dict[int, HostArray]:
        """Values of leaves, by node."""
        return self.tensors("feeds")

    def tensors(self, role: str) -> dict[int, HostArray]:
        """Read the tensors of a role, by node: those sent beside the JSON, and those in the field of that name."""
        arrays = self.message.of_role(role)
        entries: Sequence[Feed] = self.fields.get(role, [])
        for i, entry in enumerate(entries):
            if entry["node"] in arrays:
                raise _named_twice(role, i, entry["node"])
            arrays[entry["node"]] = self._tensor(entry, role, i)
        return arrays

    def _tensor(self, entry: Feed, role: str, i: int) -> HostArray:
        if ("tensor" in entry) == ("tensor_id" in entry):
            raise _not_one_tensor(entry, role, i)
        if entry.get("rows") and "tensor" in entry:
            raise rows_refusal(entry, role, i, "absent if tensor is given", str(entry["rows"]))
        if "tensor" in entry:
            return read_array(entry["tensor"], self.reader.limits, (role, i, "tensor"), NodePlace(entry["node"]))
        place = f"/{role}/{i}/tensor_id"
        name = require_name(entry["tensor_id"], f"{role}[{i}].tensor_id", place, entry["node"])
        version = self.find(name)
        if version is None:
            raise unknown_tensor(name, place, entry["node"])
        return fed_rows(version.array, entry, role, i) if entry.get("rows") else version.array

    def residents(self, role: str) -> dict[int, ResidentFeed]:
        """Return the resident tensors of a role, by node."""
        entries: Sequence[Feed] = self.fields.get(role, [])
        return {
            entry["node"]: ResidentFeed(entry["tensor_id"], bool(entry.get("rows")))
            for entry in entries
            if "tensor_id" in entry
        }

    def residents_to_fetch(self, roles: Sequence[str]) -> list[str]:
        """Return the names of all resident tensors of these roles, if any of them is unknown here; otherwise none."""
        feeds = chain.from_iterable(self.residents(role).values() for role in roles)
        names = [name for name in dict.fromkeys(entry.name for entry in feeds) if is_name(name)]
        return names if any(self.find(name) is None for name in names) else []

    @cached_property
    def types(self) -> dict[int, TensorType]:
        """Types of leaves, by node, if the request has types instead of values."""
        types: dict[int, TensorType] = {}
        limits = replace(self.reader.limits, bytes=NO_END)  # nothing of these types is allocated
        entries: Sequence[NodeType] = self.fields.get("types", [])
        for i, entry in enumerate(entries):
            if entry["node"] in types:
                raise _named_twice("types", i, entry["node"])
            try:
                types[entry["node"]] = type_of(entry, limits)
            except (EngineError, Refusal) as error:
                raise with_location(error, ("types", i), NodePlace(entry["node"])) from None
        return types

    @cached_property
    def memory_budget(self) -> int | None:
        """Limit of the peak memory in bytes, None if the request has none."""
        budget: int | None = self.number("memory_budget", None, 1, self.reader.limits.bytes, "d")
        return budget

    def number(self, field: str, default: float | None, low: float, high: float, form: str = "g") -> Any:
        """Return a field that must be from `low` to `high`; `form` formats numbers in errors. Raises Refusal."""
        value = self.fields.get(field)
        if value is None:
            return default
        if low <= value <= high:
            return value
        expected, got = f"{low:{form}} to {high:{form}}", f"{value:{form}}"
        detail = f"{field} must be {expected}, but is {got}"
        raise Refusal("invalid_field", detail, expected=expected, got=got, pointer=f"/{field}")


def _length(nodes_of: object) -> int:
    """Count the nodes of a graph or a function; 0 if it has no list of nodes."""
    nodes = nodes_of.get("nodes") if isinstance(nodes_of, dict) else None
    return len(nodes) if isinstance(nodes, list) else 0


def types_of(arrays: Mapping[int, HostArray]) -> dict[int, TensorType]:
    """Return the types of arrays, by node."""
    return {node: TensorType.of(array) for node, array in arrays.items()}


def _not_one_tensor(feed: Feed, role: str, i: int) -> Refusal:
    node = feed["node"]
    got, problem, field = "neither", "neither tensor nor tensor_id", "tensor"
    if "tensor" in feed:
        got, problem, field = "both", "both tensor and tensor_id", "tensor_id"
    detail, pointer = f"node {node}: {role}[{i}] has {problem}; one of them is expected", f"/{role}/{i}/{field}"
    return Refusal("invalid_field", detail, node=node, expected="tensor or tensor_id", got=got, pointer=pointer)


def _named_twice(role: str, i: int, node: int) -> Refusal:
    detail, expected = f"{role} name node {node} twice", "one entry per node"
    return Refusal("invalid_field", detail, node=node, expected=expected, got="two", pointer=f"/{role}/{i}/node")


# Templates: fast paths for requests and answers that are repeated with other numbers, as in a training loop.
#
# A request is split into its numbers and the rest, its *shape*. The shape is the key under which a worker caches the
# plan, and everything that it has validated:
#
#     {"graph": …, "feeds": [{"node": 0, "tensor": {"dtype": "float64", "shape": [2], "data": [1.5, 2.0]}}]}
#     the shape: {"graph": …, "feeds": [{"node": 0, "tensor": {"dtype": "float64", "shape": [2]}}]}
#     the data: [("data", [1.5, 2.0])]
#
# The conditions of `store` count as numbers, too: a client that updates a tensor in a loop states another etag each
# time. The template of an answer is its text, cut at the elements of its tensors; `fill` inserts new elements.

#: most bytes of a cached shape
LONGEST_SHAPE: Final = 1 << 14
#: most bytes of the elements in a template's answer: beyond that, copies cost more than the template saves
MOST_ELEMENT_BYTES: Final = 1 << 16
_NO_DATA: Final = b'"data":[]'
_TIME_TEXT: Final = b'"execute_ms":0.0,"tier":"uncompiled"'
_REPORT_TEXTS: Final = {
    report: b"," + orjson.dumps(report_fields(report))[1:-1]
    for report in starmap(RunReport, product(get_args(RunTier), (None, *PRECISIONS)))
}


class RequestTemplate:
    """Fields of a request without the data of its tensors.

    `shape` is the rest, as bytes: equal for requests that differ in data alone. It distinguishes 1 from 1.0 and from
    true. `data` are the payloads, each with the name of its field. Resident tensors have none; if rows of one are fed,
    `shape` has their number and `starts` the first row, otherwise None. `conditions` are those of `store`.
    """

    __slots__ = ("_residents", "_rows", "_store_entries", "_tensors", "conditions", "data", "shape", "starts")

    def __init__(
        self,
        tensors: Sequence[dict[str, Any]],
        residents: Sequence[dict[str, Any]],
        store_entries: Sequence[dict[str, Any]],
        fields: Mapping[str, Any],
    ) -> None:
        self._tensors = tensors
        self._residents = residents
        self._store_entries = store_entries
        self._rows = [_take_rows(resident) for resident in residents] if residents else ()
        self.starts = [None if rows is None else rows[0] for rows in self._rows] if residents else ()
        self.data = [_take_payload(tensor) for tensor in tensors]
        self.conditions: Sequence[str | None] = (
            [entry.pop("if_match", None) for entry in store_entries] if store_entries else ()
        )
        self.shape = _shape_bytes(fields)

    @classmethod
    def split(cls, fields: Mapping[str, Any], names: Sequence[str]) -> Self | None:
        """Split the fields of these names; return None if one is neither a tensor nor a list of tensors of nodes.

        Data and conditions are removed from `fields` until `put_back`.
        """
        tensors: list[Any] = []
        for name in names:
            part = fields.get(name)
            if type(part) is list:
                tensors += [entry.get("tensor") if type(entry) is dict else None for entry in part]
            elif part is not None:
                tensors.append(part)
        residents: list[dict[str, Any]] = []
        if not {dict}.issuperset(map(type, tensors)):
            parted = _split_residents(fields, names)
            if parted is None:
                return None
            tensors, residents = parted
        store_entries = fields.get("store", ())
        if store_entries:
            if type(store_entries) is not list or not {dict}.issuperset(map(type, store_entries)):
                return None
            if not all(is_condition(entry["if_match"]) for entry in store_entries if "if_match" in entry):
                return None
        template = cls(tensors, residents, store_entries, fields)
        if template.shape is None:
            template.put_back()
            return None
        return template

    def put_back(self) -> None:
        """Restore the fields."""
        for tensor, (name, data) in zip(self._tensors, self.data, strict=True):
            if name is not None:
                tensor[name] = data
        for resident, rows in zip(self._residents, self._rows, strict=True):
            if rows is not None:
                resident["rows"] = rows
        if self._store_entries:
            for entry, condition in zip(self._store_entries, self.conditions, strict=True):
                if condition is not None:
                    entry["if_match"] = condition


def _split_residents(
    fields: Mapping[str, Any], names: Sequence[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]] | None:
    """Separate tensors from feeds of resident ones; return None if an entry is neither."""
    tensors: list[Any] = []
    residents: list[dict[str, Any]] = []
    for name in names:
        part = fields.get(name)
        entries = part if type(part) is list else [] if part is None else [{"tensor": part}]
        for entry in entries:
            if type(entry) is not dict:
                return None
            if "tensor" in entry or type(entry.get("tensor_id")) is not str:
                tensors.append(entry.get("tensor"))
            else:
                residents.append(entry)
    return (tensors, residents) if {dict}.issuperset(map(type, tensors)) else None


def _take_rows(resident: dict[str, Any]) -> list[int] | None:
    """Replace the rows of a feed by their number, and return them; without rows, return None and change nothing."""
    rows: list[int] | None = resident.get("rows")
    if rows is None or not is_span(rows):
        return None
    start, stop = rows
    resident["rows"] = stop - start
    return [start, stop]


def _take_payload(tensor: dict[str, Any]) -> tuple[str | None, Any]:
    """Remove the payload of a tensor, and return it with its field's name; (None, None) unless there is exactly one."""
    name = "data" if "data" in tensor else "data_b64"
    if name not in tensor or (name == "data" and "data_b64" in tensor):
        return None, None
    return name, tensor.pop(name)


def _shape_bytes(fields: Mapping[str, Any]) -> bytes | None:
    """Write the fields as bytes; None if they are too long, or have integers beyond 64 bits."""
    try:
        shape = orjson.dumps(fields)
    except TypeError:
        return None
    return shape if len(shape) <= LONGEST_SHAPE else None


class AnswerTemplate:
    """JSON answer without the elements of its tensors, its execution time, and its run report."""

    def __init__(self, parts: Sequence[bytes], *, plain: bool) -> None:
        """`parts` surround the elements, each up to `"data":[`; the last two surround the time.

        With `plain`, all tensors have plain numbers.
        """
        self._is_plain = plain
        self._texts = [text for part in parts for text in (part, b"")][:-1]

    @classmethod
    def from_types(
        cls, labels: Sequence[Label], types: Sequence[TensorType], disconnected: Sequence[int] | None, stats: RunStats
    ) -> Self | None:
        """Make the template of answers with these types; None if elements may need another form, or are many."""
        if sum(t.nbytes for t in types) > MOST_ELEMENT_BYTES or any(t.dtype == np.int64 for t in types):
            return None
        placeholders = [{"tensor": {"dtype": dtype_name(t.dtype), "shape": list(t.shape), "data": []}} for t in types]
        labelled = zip(labels, placeholders, strict=True)
        text = orjson.dumps(result_fields(labelled, disconnected, stats.after(0.0, RunReport())))
        first, *following = text.split(_NO_DATA)
        before, _, after = following[-1].partition(_TIME_TEXT)
        parts_around = [first, *(b"]" + part for part in (*following[:-1], before))]
        parts = [*(part + b'"data":[' for part in parts_around[:-1]), parts_around[-1] + b'"execute_ms":', after]
        return cls(parts, plain=all(map(has_plain_numbers, types)))

    @property
    def nbytes(self) -> int:
        """Bytes of the text."""
        return sum(map(len, self._texts))

    def fill(
        self,
        arrays: Sequence[HostArray],
        execute_ms: float,
        report: RunReport,
        stored: Sequence[Mapping[str, Any]] = (),
    ) -> AnswerBody | None:
        """Write the answer with these elements and the `stored` tensors; None if an element is not finite."""
        flat = [array.reshape(-1) for array in arrays] if self._is_plain else list(map(numbers_of, arrays))
        elements = orjson.dumps(flat, option=orjson.OPT_SERIALIZE_NUMPY)
        if b"n" in elements:  # null
            return None
        texts = self._texts.copy()
        texts[1:-2:2] = elements[2:-2].split(b"],[")
        texts[-2] = orjson.dumps(execute_ms) + _REPORT_TEXTS[report]
        if stored:
            texts[-1] = b"".join((texts[-1][:-1], b',"stored":', orjson.dumps(stored), b"}"))
        return [b"".join(texts)]
