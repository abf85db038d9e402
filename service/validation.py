"""Parsed JSON against the wire's schemas, and pydantic's findings as a refusal that says where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Final, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from schemas import (
    BatchRequest,
    CheckRequest,
    DifferentiateRequest,
    Feed,
    ForwardRequest,
    GradientsRequest,
    Graph,
    HessianRequest,
    HvpRequest,
    JacobianRequest,
    JvpRequest,
    Node,
    NodeType,
    PlanRequest,
    Tensor,
    VjpRequest,
)
from service.errors import Refusal, printable
from service.jsonio import json_kind

Place = tuple[str | int, ...]
T = TypeVar("T")

_REQUESTS: Final = (
    ForwardRequest,
    GradientsRequest,
    VjpRequest,
    JvpRequest,
    JacobianRequest,
    HvpRequest,
    HessianRequest,
    BatchRequest,
    PlanRequest,
    CheckRequest,
    DifferentiateRequest,
)
#: lists of tensors that belong to nodes
_LISTS: Final = ("feeds", "cotangents", "tangents", "vectors")
_ADAPTERS: Final[Mapping[type, TypeAdapter[Any]]] = {model: TypeAdapter(model) for model in (*_REQUESTS, Tensor)}
_NAMES: Final[Mapping[type, list[str]]] = {
    model: sorted(get_type_hints(model)) for model in (*_REQUESTS, Graph, Node, Feed, NodeType, Tensor)
}
_WITHIN: Final[Mapping[str, type]] = {
    "graph": Graph,
    "nodes": Node,
    "types": NodeType,
    "tensor": Tensor,
    "cotangent": Tensor,
    **dict.fromkeys(_LISTS, Feed),
}
_PARTS: Final[Mapping[type, Mapping[str, type]]] = {
    model: {name: _WITHIN[name] for name in names if name in _WITHIN} for model, names in _NAMES.items()
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
_TENSORS: Final = frozenset({"tensor", "cotangent", "value"})
_OBJECTS: Final[Mapping[str, type]] = {**_WITHIN, "value": Tensor}


def validate(model: type[T], value: object, at: Place = (), node: int | None = None) -> T:
    """`value`, which stands at the place `at` of the request, as the TypedDict `model`.

    Raises Refusal: bad_tensor inside a tensor, else invalid_field; with the node, where the place lies in one.
    """
    _check_sizes(model, value, at, node)
    try:
        valid: T = _ADAPTERS[model].validate_python(value)
    except ValidationError as error:
        details = error.errors(include_url=False)[:_MOST_ERRORS]
    else:
        return valid
    # A misspelt field explains the one that is then missing.
    details.sort(key=lambda detail: detail["type"] != "extra_forbidden")
    found = [_refusal(model, value, detail, at, node) for detail in details]
    raise replace(found[0], errors=found if len(found) > 1 else [])


def pointer(place: Place) -> str:
    """The place as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in place)


def spoken(place: Place) -> str:
    """The place as it is written in messages: `feeds[0].tensor`."""
    keys = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in place]
    return "".join(keys).removeprefix(".")


def _check_sizes(model: type, value: object, at: Place, node: int | None) -> None:
    """Refuse an object with more fields than there are: pydantic would report each, and there may be millions."""
    if not isinstance(value, dict):
        return
    if len(value) > len(_NAMES[model]):
        name = next(name for name in value if name not in _NAMES[model])
        place = (*at, printable(name))
        node = _graph_node(place) if node is None else node
        raise _located(*_unknown_field(model, place), "invalid_field", place, node)
    for key, part in _PARTS.get(model, {}).items():
        inner = value.get(key)
        if isinstance(inner, list):
            for i, item in enumerate(inner):
                _check_sizes(part, item, (*at, key, i), node)
        else:
            _check_sizes(part, inner, (*at, key), node)


def _refusal(model: type, value: object, detail: ErrorDetails, at: Place, node: int | None) -> Refusal:
    place = at + tuple(printable(key) if isinstance(key, str) else key for key in detail["loc"])
    code = "bad_tensor" if _in_tensor(place, detail["type"]) else "invalid_field"
    node = _node(place, value) if node is None else node
    return _located(*_finding(model, detail, place), code, place, node)


def _located(expected: str, got: str, sentence: str, code: str, place: Place, node: int | None) -> Refusal:
    return Refusal(
        code,
        sentence if node is None else f"node {node}: {sentence}",
        node=node,
        expected=expected,
        got=got,
        pointer=pointer(place),
    )


def _finding(model: type, detail: ErrorDetails, place: Place) -> tuple[str, str, str]:
    """What was expected, what came, and the sentence."""
    where = spoken(place)
    if detail["type"] == "missing":
        return f"the field {place[-1]}", "nothing", f"{where} is missing, and required"
    if detail["type"] == "extra_forbidden":
        return _unknown_field(model, place)
    expected, got = _sides(detail)
    return expected, got, f"{where} must be {expected}, but is {got}"


def _sides(detail: ErrorDetails) -> tuple[str, str]:
    """What was expected, and what came."""
    value, kind = detail["input"], detail["type"]
    if kind == "literal_error":
        choices = str(detail["ctx"]["expected"]).replace(" or ", ", ").replace("'", "")
        return f"one of {choices}", f"“{printable(value)}”" if isinstance(value, str) else json_kind(value)
    if kind == "string_too_long":
        return f"at most {detail['ctx']['max_length']} characters long", f"{len(value)} characters long"
    if kind in ("less_than_equal", "greater_than_equal"):
        return "a whole number of 64 bits", "outside their range"
    return _EXPECTED.get(kind, "something else"), json_kind(value)


def _unknown_field(model: type, place: Place) -> tuple[str, str, str]:
    known = _NAMES[_object_at(model, place[:-1])]
    name = str(place[-1])
    near = get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    inside = spoken(place[:-1]) or "the request"
    listed = ", ".join(known)
    return f"one of: {listed}", name, f"{inside} has no field “{name}” (known: {listed}){hint}"


def _object_at(model: type, place: Place) -> type:
    names = [key for key in place if isinstance(key, str)]
    return _OBJECTS[names[-1]] if names else model


def _in_tensor(place: Place, finding: str) -> bool:
    if finding == "extra_forbidden":
        return False
    inside = _TENSORS.intersection(map(str, place[:-1]))
    return bool(inside) or (place[-1] in _TENSORS and finding != "missing")


def _graph_node(place: Place) -> int | None:
    match place:
        case ("graph", "nodes", int(node), *_):
            return node
    return None


def _node(place: Place, request: Any) -> int | None:
    """The node that the place speaks of: one of the graph, or the one that a feed names."""
    match place:
        case (str(field), int(i), "tensor", *_) if field in _LISTS:
            node = request[field][i].get("node")
            return node if type(node) is int and -(2**63) <= node < 2**63 else None
    return _graph_node(place)
