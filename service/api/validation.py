"""Validation of parsed JSON against the schemas: findings become one refusal that names the place and the node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final, NamedTuple, NotRequired, TypeVar, cast, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from typing_extensions import is_typeddict

from engine import printable
from schemas import Feed, StoreEntry, Tensor
from service.api.json_codec import json_kind
from service.core.errors import Refusal
from service.core.spelling import hint

#: advice for null in place of a list that may be absent
OR_LEFT_OUT: Final = "leave the field out or send []"
#: name of a field in other systems → ours, of which a message has one at most
_FAMILIAR: Final[Mapping[str, tuple[str, ...]]] = {
    "args": ("operands",),
    "input": ("operands",),
    "inputs": ("operands", "feeds", "types"),
    "parents": ("operands",),
    "attr": ("attrs",),
    "attributes": ("attrs",),
    "params": ("attrs",),
    "kind": ("op",),
    "type": ("op", "dtype"),
    "label": ("name",),
    "feed": ("feeds",),
    "values": ("feeds", "types", "data"),
    "value": ("tensor", "data"),
    "dims": ("shape",),
    "size": ("shape",),
    "id": ("node",),
    "index": ("node",),
}
_MOST_ERRORS: Final = 10
_EXPECTED: Final = {
    "int_type": "a whole number",
    "string_type": "a string",
    "list_type": "a list",
    "dict_type": "an object",
    "bool_type": "true or false",
    "float_type": "a number",
}


def advice(name: str, fields: Iterable[str]) -> str:
    """Suggest a field for the unknown field `name` of a message with these; empty if none is near."""
    known = {field: field for field in fields}
    word = name.lower()
    if word == "id" and "operands" in known:
        return "a node's id is its index in nodes: leave it out"
    meant = next((field for field in _FAMILIAR.get(word, ()) if field in known), word)
    return hint(meant, known, "")


class FunctionPlace(NamedTuple):
    """A function of the graph, by its index."""

    function: int

    @property
    def location(self) -> tuple[str | int, ...]:
        """The keys that lead there."""
        return ("graph", "functions", self.function)

    @property
    def spoken(self) -> str:
        """Name of the place at the start of messages."""
        return f"function {self.function}"

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of a report that name it."""
        return {"function": self.function}


class NodePlace(NamedTuple):
    """A node of the graph, or of a function of it."""

    node: int
    function: int | None = None

    @property
    def location(self) -> tuple[str | int, ...]:
        """The keys that lead there."""
        around = ("graph",) if self.function is None else FunctionPlace(self.function).location
        return (*around, "nodes", self.node)

    @property
    def spoken(self) -> str:
        """Name of the place at the start of messages."""
        return f"node {self.node}" if self.function is None else f"function {self.function}, node {self.node}"

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of a report that name it: `node` is always one of the graph."""
        if self.function is None:
            return {"node": self.node}
        return {"function": self.function, "function_node": self.node}

    def kind(self, role: str) -> str:
        """Return the name of tensors of this role beside the JSON, without the node."""
        return role if self.function is None else f"functions.{self.function}.{role}"

    def tensor_name(self, role: str) -> str:
        """Return the name of the tensor of this role beside the JSON."""
        return f"{self.kind(role)}.{self.node}"


Location = tuple[str | int, ...]
GraphPlace = NodePlace | FunctionPlace
T = TypeVar("T")


def validate(model: type[T], value: object, at: Location = (), node: NodePlace | None = None) -> T:
    """Validate `value`, at the place `at` of the request, as the TypedDict `model`.

    Raises Refusal: bad_tensor inside a tensor, else invalid_field; with the node, if the place lies in one.
    """
    _check_sizes(model, value, at, node)
    try:
        valid: T = _adapter(cast("Any", model)).validate_python(value)
    except ValidationError as error:
        details = error.errors(include_url=False)[:_MOST_ERRORS]
    else:
        return valid
    # A misspelt field explains the one that is then missing.
    details.sort(key=lambda detail: detail["type"] != "extra_forbidden")
    refusals = [_refusal(model, value, detail, at, node) for detail in details]
    raise replace(refusals[0], errors=refusals if len(refusals) > 1 else [])


@cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


@cache
def _parts(model: type) -> Mapping[str, type | None]:
    """List the fields of a message in alphabetical order, with the message in each, or in its list, if any."""
    return {
        name: next((part for part in (hint, *get_args(hint)) if is_typeddict(part)), None)
        for name, hint in sorted(get_type_hints(model).items())
    }


@cache
def _inner(model: type) -> Mapping[str, type]:
    """List the fields of a message that hold messages."""
    return {name: part for name, part in _parts(model).items() if part is not None}


def _models(model: type, location: Location) -> Iterator[type | None]:
    """Yield the message at every step from `model` along a location in it; None outside of messages."""
    inner: type | None = model
    yield inner
    for key in location:
        if isinstance(key, str):
            inner = None if inner is None else _parts(inner).get(key)
        yield inner


def pointer(place: Location) -> str:
    """Format a place as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in place)


def spoken(place: Location) -> str:
    """Format a place for a sentence: `feeds[0].tensor`."""
    keys = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in place]
    return "".join(keys).removeprefix(".")


def _check_sizes(model: type, value: object, at: Location, node: GraphPlace | None) -> None:
    """Raise Refusal for an object with more fields than exist: pydantic would report each of maybe millions."""
    if not isinstance(value, dict):
        return
    if len(value) > len(_parts(model)):
        name = next(name for name in value if name not in _parts(model))
        place = (*at, printable(name))
        node = _graph_node(place) if node is None else node
        raise _located(*_unknown_field(model, place), "invalid_field", place, node)
    for key, part in _inner(model).items():
        inner = value.get(key)
        if isinstance(inner, list):
            most = 0 if _inner(part) else len(_parts(part))  # most are nodes, which hold no others
            for i, item in enumerate(inner):
                if not most or (isinstance(item, dict) and len(item) > most):
                    _check_sizes(part, item, (*at, key, i), node)
        else:
            _check_sizes(part, inner, (*at, key), node)


def _refusal(model: type, value: object, detail: ErrorDetails, at: Location, node: GraphPlace | None) -> Refusal:
    location = tuple(printable(key) if isinstance(key, str) else key for key in detail["loc"])
    models, place = list(_models(model, location)), at + location
    # A finding on a field that holds a tensor, or should not exist, is about the message around it.
    kind = detail["type"]
    in_tensor = Tensor in models[:-1] or (models[-1] is Tensor and kind != "missing")
    code = "bad_tensor" if in_tensor and kind != "extra_forbidden" else "invalid_field"
    node = _node(model, place, value) if node is None else node
    return _located(*_finding(models[-2] if location else model, detail, place), code, place, node)


def _located(expected: str, got: str, sentence: str, code: str, place: Location, node: GraphPlace | None) -> Refusal:
    detail, fields = (sentence, {}) if node is None else (f"{node.spoken}: {sentence}", node.fields)
    return Refusal(code, detail, expected=expected, got=got, pointer=pointer(place), **fields)


def _finding(model: type | None, detail: ErrorDetails, place: Location) -> tuple[str, str, str]:
    """Return what was expected, what came, and the sentence."""
    where = spoken(place)
    if detail["type"] == "missing":
        return f"the field {place[-1]}", "nothing", f"{where} is missing, and required"
    if detail["type"] == "extra_forbidden":
        assert model is not None
        return _unknown_field(model, place)
    expected, got = _sides(detail)
    sentence = f"{where} must be {expected}, but is {got}"
    if detail["type"] == "list_type" and detail["input"] is None:
        stated = get_type_hints(model, include_extras=True)[str(place[-1])]
        sentence += f"; {OR_LEFT_OUT if get_origin(stated) is NotRequired else 'an empty list is []'}"
    return expected, got, sentence


def _sides(detail: ErrorDetails) -> tuple[str, str]:
    """Return what was expected, and what came."""
    value, kind = detail["input"], detail["type"]
    if kind == "literal_error":
        choices = str(detail["ctx"]["expected"]).replace(" or ", ", ").replace("'", "")
        return f"one of {choices}", f"“{printable(value)}”" if isinstance(value, str) else json_kind(value)
    if kind == "string_too_long":
        return f"at most {detail['ctx']['max_length']} characters long", f"{len(value)} characters long"
    if kind in ("less_than_equal", "greater_than_equal"):
        return "a whole number of 64 bits", "outside their range"
    return _EXPECTED.get(kind, "something else"), json_kind(value)


def _unknown_field(model: type, place: Location) -> tuple[str, str, str]:
    name, listed = str(place[-1]), ", ".join(_parts(model))
    inside = spoken(place[:-1]) or "the request"
    sentence = f"{inside} has no field “{name}” (known: {listed})"
    return f"one of: {listed}", name, "; ".join(filter(None, [sentence, advice(name, _parts(model))]))


def _graph_node(place: Location) -> GraphPlace | None:
    match place:
        case ("graph", "nodes", int(node), *_):
            return NodePlace(node)
        case ("graph", "functions", int(function), "nodes", int(node), *_):
            return NodePlace(node, function)
        case ("graph", "functions", int(function), *_):
            return FunctionPlace(function)
    return None


def _node(model: type, place: Location, request: Any) -> GraphPlace | None:
    """Return the node of a place: one of the graph, or the one that a feed names."""
    match place:
        case (str(field), int(i), "tensor" | "tensor_id" | "rows" | "if_match" | "durable" | "gradient", *_) if _parts(
            model
        ).get(field) in (
            Feed,
            StoreEntry,
        ):
            node = request[field][i].get("node")
            return NodePlace(node) if type(node) is int and -(2**63) <= node < 2**63 else None
    return _graph_node(place)
