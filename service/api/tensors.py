"""Tensors in messages: conversion to arrays and back, without loss of a bit.

Shapes and counts are compared before anything is allocated. Error messages never contain an element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np
import pybase64
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from typing_extensions import is_typeddict

from engine import DTYPES, HostArray, Limits, TensorType, printable
from engine.ir.spellings import choice_hint, join_hint
from engine.ir.tensor_type import ELEMENT_TYPES, DType, dtype_name, real_dtype
from schemas import Feed, NodeType, StoreEntry, Tensor
from service.api.hints import field_hint, index_hint
from service.api.json_codec import LongList, json_kind
from service.core.errors import Refusal, pointer

_MAX_ERRORS: Final = 10
_EXPECTED_KINDS: Final = {
    "int_type": "a whole number",
    "string_type": "a string",
    "list_type": "a list",
    "dict_type": "an object",
    "bool_type": "true or false",
    "float_type": "a number",
}


class FunctionPlace(NamedTuple):
    """Place of a function of the graph."""

    function: int

    @property
    def location(self) -> tuple[str | int, ...]:
        """Keys that lead to the function."""
        return ("graph", "functions", self.function)

    @property
    def description(self) -> str:
        """Description of the place at the start of messages."""
        return f"function {self.function}"

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of a report that identify the function."""
        return {"function": self.function}


class NodePlace(NamedTuple):
    """Place of a node of the graph, or of one of its functions."""

    node: int
    function: int | None = None

    @property
    def location(self) -> tuple[str | int, ...]:
        """Keys that lead to the node."""
        prefix = ("graph",) if self.function is None else FunctionPlace(self.function).location
        return (*prefix, "nodes", self.node)

    @property
    def description(self) -> str:
        """Description of the place at the start of messages."""
        return f"node {self.node}" if self.function is None else f"function {self.function}, node {self.node}"

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of a report that identify the node: `node` is always one of the graph."""
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


def validate(
    model: type[T],
    value: object,
    location: Location = (),
    node: NodePlace | None = None,
    graph: Callable[[], Mapping[str, Any]] | None = None,
) -> T:
    """Validate `value`, at this location of the request, as the TypedDict `model`.

    Raises Refusal: bad_tensor inside a tensor, otherwise invalid_field; with the node that the location is in, if any.
    `graph` returns the request's graph for hints, if it is not in `value`.
    """
    _check_sizes(model, value, location, node)
    try:
        valid: T = _adapter(cast("Any", model)).validate_python(value)
    except ValidationError as error:
        details = error.errors(include_url=False)[:_MAX_ERRORS]
    else:
        return valid
    # First: a misspelt field explains why another one is missing.
    details.sort(key=lambda detail: detail["type"] != "extra_forbidden")
    nodes = _nodes(value, graph)
    refusals = [_refusal(model, value, detail, location, node, nodes) for detail in details]
    raise replace(refusals[0], errors=refusals if len(refusals) > 1 else [])


@cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


@cache
def _field_models(model: type) -> Mapping[str, type | None]:
    """Map the fields of a message, sorted, to the message in each or in its list; None if there is none."""
    return {
        name: next((part for part in (hint, *get_args(hint)) if is_typeddict(part)), None)
        for name, hint in sorted(get_type_hints(model).items())
    }


@cache
def _inner_models(model: type) -> Mapping[str, type]:
    """Map the fields of a message that hold messages to these."""
    return {name: part for name, part in _field_models(model).items() if part is not None}


def _models_along(model: type, location: Location) -> Iterator[type | None]:
    """Yield the message at every step of a location, starting with `model`; None outside of messages."""
    current: type | None = model
    yield current
    for key in location:
        if isinstance(key, str):
            current = None if current is None else _field_models(current).get(key)
        yield current


def format_location(place: Location) -> str:
    """Format a location for a sentence: `feeds[0].tensor`."""
    keys = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in place]
    return "".join(keys).removeprefix(".")


def _check_sizes(model: type, value: object, location: Location, node: GraphPlace | None) -> None:
    """Raise Refusal for an object with more fields than exist: pydantic would report each of perhaps millions."""
    if not isinstance(value, dict):
        return
    if len(value) > len(_field_models(model)):
        name = next(name for name in value if name not in _field_models(model))
        place = (*location, printable(name))
        node = _graph_node(place) if node is None else node
        raise _refusal_at(*_unknown_field(model, place, value[name], None), "invalid_field", place, node)
    for field, inner_model in _inner_models(model).items():
        inner_value = value.get(field)
        if isinstance(inner_value, list):
            # Most items are nodes, which hold no messages: they are checked here, without a call for each.
            max_fields = 0 if _inner_models(inner_model) else len(_field_models(inner_model))
            for i, item in enumerate(inner_value):
                if not max_fields or (isinstance(item, dict) and len(item) > max_fields):
                    _check_sizes(inner_model, item, (*location, field, i), node)
        else:
            _check_sizes(inner_model, inner_value, (*location, field), node)


def _nodes(value: object, graph: Callable[[], Mapping[str, Any]] | None) -> object:
    """Return the nodes that `value` refers to by index: those of the graph, or of the function that it is."""
    holder = value if graph is None else graph()
    if isinstance(holder, dict) and "graph" in holder:
        holder = holder["graph"]
    return holder.get("nodes") if isinstance(holder, dict) else None


def _refusal(
    model: type, value: object, detail: ErrorDetails, root: Location, node: GraphPlace | None, nodes: object
) -> Refusal:
    location = tuple(printable(key) if isinstance(key, str) else key for key in detail["loc"])
    models, place = list(_models_along(model, location)), root + location
    # An error about a missing tensor, or a field that should not exist, is about the message around it.
    kind = detail["type"]
    in_tensor = Tensor in models[:-1] or (models[-1] is Tensor and kind != "missing")
    code = "bad_tensor" if in_tensor and kind != "extra_forbidden" else "invalid_field"
    node = _node(model, place, value) if node is None else node
    return _refusal_at(*_describe_error(models[-2] if location else model, detail, place, nodes), code, place, node)


def _refusal_at(expected: str, got: str, sentence: str, code: str, place: Location, node: GraphPlace | None) -> Refusal:
    detail, fields = (sentence, {}) if node is None else (f"{node.description}: {sentence}", node.fields)
    return Refusal(code, detail, expected=expected, got=got, pointer=pointer(place), **fields)


def _describe_error(model: type | None, detail: ErrorDetails, place: Location, nodes: object) -> tuple[str, str, str]:
    """Return what was expected, what was received, and the sentence."""
    place_name = format_location(place)
    if detail["type"] == "missing":
        assert model is not None
        is_list = get_origin(get_type_hints(model)[str(place[-1])]) is list
        advice_text = "; an empty list is []" if is_list else ""
        return f"the field {place[-1]}", "nothing", f"{place_name} is required, but is missing or null{advice_text}"
    if detail["type"] == "extra_forbidden":
        assert model is not None
        return _unknown_field(model, place, detail["input"], nodes)
    expected, got = _expected_and_got(detail)
    field = next((key for key in reversed(place) if isinstance(key, str)), "")
    sentence = f"{place_name} must be {expected}, but is {got}"
    return (
        expected,
        got,
        join_hint(sentence, index_hint(field, detail["input"], nodes, is_list=detail["type"] == "list_type")),
    )


def _expected_and_got(detail: ErrorDetails) -> tuple[str, str]:
    """Return what was expected, and what was received."""
    value, kind = detail["input"], detail["type"]
    if kind == "literal_error":
        choices = str(detail["ctx"]["expected"]).replace(" or ", ", ").replace("'", "")
        return f"one of {choices}", f"“{printable(value)}”" if isinstance(value, str) else json_kind(value)
    if kind == "string_too_long":
        return f"at most {detail['ctx']['max_length']} characters long", f"{len(value)} characters long"
    if kind in ("less_than_equal", "greater_than_equal"):
        return "a 64-bit integer", "out of range"
    return _EXPECTED_KINDS.get(kind, "something else"), json_kind(value)


def _unknown_field(model: type, place: Location, value: object, nodes: object) -> tuple[str, str, str]:
    name, known_fields = str(place[-1]), ", ".join(_field_models(model))
    container = format_location(place[:-1]) or "the request"
    sentence = f"{container} has no field “{name}” (known: {known_fields})"
    advice = field_hint(name, value, model, _field_models(model), nodes)
    return f"one of: {known_fields}", name, join_hint(sentence, advice)


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
    """Return the node of a location: one of the graph, or the one that a feed names."""
    match place:
        case (str(field), int(i), "tensor" | "tensor_id" | "rows" | "if_match" | "durable" | "gradient", *_) if (
            _field_models(model).get(field) in (Feed, StoreEntry)
        ):
            node = request[field][i].get("node")
            return NodePlace(node) if type(node) is int and -(2**63) <= node < 2**63 else None
    return _graph_node(place)


Numbers = list[int | float] | LongList

_MAX_EXACT_INTEGER: Final = 2**53  # JSON readers that use float64 round larger integers
_JSON_CHARACTERS: Final = {element.name: element.json_characters for element in ELEMENT_TYPES}
_ENVELOPE_BYTES: Final = 96  # a tensor's braces, keys, dtype and node, without its extents
_EXTENT_BYTES: Final = 21
_NAME_BYTES: Final = 80  # additional bytes in safetensors: a name, offsets, and the entry in the response


def decode(tensor: Tensor, limits: Limits) -> HostArray:
    """Decode a tensor. Raises Refusal (bad_tensor), and OverBudget of the engine."""
    tensor_type = type_of(tensor, limits)
    data, base64_text = tensor.get("data"), tensor.get("data_b64")
    if "data_b64" not in tensor or (base64_text == "" and data):
        numbers = _check_numbers(data, "data" in tensor, tensor_type)
        with np.errstate(over="ignore"):
            return _from_numbers(numbers, tensor_type)
    if "data" in tensor and data != []:
        raise _bad_tensor((), "has both data and data_b64; one of them is expected", "one payload", "two payloads")
    return _from_base64(base64_text, tensor_type)


def decode_payload(payload: tuple[str | None, Any], tensor_type: TensorType) -> HostArray:
    """Decode a payload, `data` or `data_b64`, of a known type. Raises Refusal (bad_tensor).

    The caller suppresses NumPy's overflow warnings.
    """
    name, data = payload
    if name == "data":
        return _from_numbers(_check_numbers(data, True, tensor_type), tensor_type)
    return _from_base64(data, tensor_type)


def encode(array: HostArray, encoding: str) -> dict[str, Any]:
    """Encode an array as a tensor: in base64 if that is the encoding, or if JSON would change elements."""
    tensor: dict[str, Any] = {"dtype": dtype_name(array.dtype), "shape": list(array.shape)}
    if encoding == "base64" or not _is_exact_in_json(array):
        little_endian = array.astype(array.dtype.newbyteorder("<"), copy=False)
        return tensor | {"data_b64": pybase64.b64encode_as_string(little_endian.tobytes())}
    return tensor | {"data": np.ascontiguousarray(numbers_of(array))}


def _is_exact_in_json(array: HostArray) -> bool:
    if array.dtype.kind in "fc":
        return bool(np.isfinite(array).all())
    if array.dtype != np.int64 or not array.size:
        return True
    return int(array.min()) >= -_MAX_EXACT_INTEGER and int(array.max()) <= _MAX_EXACT_INTEGER


def has_plain_numbers(t: TensorType) -> bool:
    """Return whether JSON has the elements unchanged: `numbers_of` then returns the flat array itself."""
    return t.dtype.kind not in "bc"


def numbers_of(array: HostArray) -> HostArray:
    """Return the elements as in JSON, flat: bool as 0 and 1, complex numbers as pairs of real and imaginary part."""
    flat, kind = array.reshape(-1), array.dtype.kind
    if kind == "b":
        return flat.view(np.uint8)
    return np.ascontiguousarray(flat).view(real_dtype(flat.dtype)) if kind == "c" else flat


def encoded_bytes(types: Sequence[TensorType], encoding: str) -> int:
    """Bound the bytes of tensors of these types in an answer, without the fields that every answer has.

    `encoding` is json, base64, or binary for safetensors.
    """
    nbytes = 0
    for t in types:
        nbytes += _ENVELOPE_BYTES + _EXTENT_BYTES * t.ndim
        base64_bytes = 4 * -(-t.nbytes // 3)
        if encoding == "binary":
            nbytes += _NAME_BYTES + t.nbytes
        elif encoding == "base64":
            nbytes += base64_bytes
        else:
            nbytes += max(base64_bytes, t.size * _JSON_CHARACTERS[dtype_name(t.dtype)])
    return nbytes


def _bad_tensor(place: Location, detail: str, expected: str, got: str) -> Refusal:
    """Return the refusal of a tensor; its pointer starts at the tensor."""
    return Refusal("bad_tensor", detail, expected=expected, got=got, pointer=pointer(place))


def type_of(tensor: Tensor | NodeType, limits: Limits) -> TensorType:
    """Read the type in a message. Raises Refusal (bad_tensor), and OverBudget of the engine."""
    dtype, shape = tensor["dtype"], tensor["shape"]
    if dtype not in DTYPES:
        supported, got = "one of " + ", ".join(DTYPES), printable(dtype)
        suggestion = choice_hint(dtype, DTYPES)
        sentence = f"has the unsupported dtype “{got}”; {suggestion or f'{supported} is expected'}"
        raise _bad_tensor(("dtype",), sentence, supported, got)
    if shape and min(shape) < 0:
        place, got = ("shape", shape.index(min(shape))), str(min(shape))
        raise _bad_tensor(place, "has a negative extent in its shape", "extents of 0 or more", got)
    limits.admit_rank(len(shape))
    t = TensorType(tuple(shape), np.dtype(dtype))
    limits.admit_type(t)
    return t


def _miscounted(tensor_type: TensorType, expected: int, got: int, unit: str) -> Refusal:
    needed = f"{expected} {unit}" if expected == 1 else f"{expected} {unit}s"
    place = ("data_b64",) if unit == "byte" else ("data",)
    return _bad_tensor(place, f"must hold {needed} to be {tensor_type}, but holds {got}", needed, str(got))


def _miscounted_numbers(tensor_type: TensorType, expected: int, got: int) -> Refusal:
    return _miscounted(tensor_type, expected, got, "number" if tensor_type.is_complex else "element")


def _check_numbers(data: object, is_present: bool, tensor_type: TensorType) -> Numbers:
    """Return `data` if it is a list with as many numbers as the type has. Raises Refusal."""
    elements = data if is_present else []
    count = 2 * tensor_type.size if tensor_type.is_complex else tensor_type.size
    if isinstance(elements, LongList):
        if len(elements) != count:
            raise _miscounted_numbers(tensor_type, count, len(elements))
        return elements
    if not isinstance(elements, list):
        got = json_kind(elements)
        detail = f"has data that is {got}; a flat list of numbers is expected"
        raise _bad_tensor(("data",), detail, "a list of numbers", got)
    if len(elements) != count or not {int, float}.issuperset(map(type, elements)):
        raise _numbers_refusal(elements, tensor_type, count)
    return elements


def _numbers_refusal(elements: list[Any], tensor_type: TensorType, count: int) -> Refusal:
    """Return the refusal of a malformed list. Nested lists are reported as such, before elements are counted."""
    if list in map(type, elements):
        detail = "has nested lists in data; data is one flat list of numbers, row by row (row-major)"
        return _bad_tensor(("data",), detail, "a flat list of numbers", "nested lists")
    if len(elements) != count:
        return _miscounted_numbers(tensor_type, count, len(elements))
    position = next(i for i, x in enumerate(elements) if type(x) not in (int, float))
    got = json_kind(elements[position])
    detail = f"has {got} at data[{position}]; data is a flat list of numbers"
    return _bad_tensor(("data", position), detail, "a number", got)


def _from_numbers(numbers: Numbers, tensor_type: TensorType) -> HostArray:
    if tensor_type.is_float:
        flat = _floats(numbers, tensor_type, tensor_type.dtype)
    elif tensor_type.is_complex:
        flat = _floats(numbers, tensor_type, real_dtype(tensor_type.dtype)).view(tensor_type.dtype)
    else:
        flat = _integers(numbers, tensor_type)
    return flat.reshape(tensor_type.shape)


def _floats(numbers: Numbers, tensor_type: TensorType, dtype: DType) -> HostArray:
    try:
        values = numbers.array if isinstance(numbers, LongList) else numbers
        flat = np.asarray(values, np.float64).astype(dtype, copy=False)
    except OverflowError:
        raise _out_of_range(tensor_type) from None
    if b"\0" in np.isfinite(flat).tobytes():  # for few elements, `all` takes twice as long
        raise _out_of_range(tensor_type)
    return flat


def _integers(numbers: Numbers, tensor_type: TensorType) -> HostArray:
    """Convert whole numbers exactly; 1.0 counts as one, since some languages write it like that."""
    flat = _whole_numbers(numbers, tensor_type)
    low, high = _range(tensor_type)
    if flat.size and (flat.min() < low or flat.max() > high):
        raise _out_of_range(tensor_type)
    return flat.astype(tensor_type.dtype, copy=False)


def _whole_numbers(numbers: Numbers, tensor_type: TensorType) -> HostArray:
    if isinstance(numbers, LongList):
        if numbers.is_whole:
            return numbers.array
        numbers = numbers.numbers()
    if float in set(map(type, numbers)):
        if any(type(x) is float and (not x.is_integer() or abs(x) > _MAX_EXACT_INTEGER) for x in numbers):
            detail = f"has a fraction in data, but {tensor_type} can hold only whole numbers"
            raise _bad_tensor(("data",), detail, "whole numbers", "a fraction")
        numbers = list(map(int, numbers))
    try:
        return np.array(numbers, np.int64)
    except OverflowError:
        raise _out_of_range(tensor_type) from None


def _range(tensor_type: TensorType) -> tuple[int, int]:
    if tensor_type.dtype == np.bool_:
        return 0, 1
    info = np.iinfo(tensor_type.dtype)
    return int(info.min), int(info.max)


def _out_of_range(tensor_type: TensorType) -> Refusal:
    name = tensor_type.dtype.name
    if tensor_type.is_float or tensor_type.is_complex:
        detail = f"has a number in data that is too large for {name}"
        return _bad_tensor(("data",), detail, f"finite {name} numbers", "a larger number")
    low, high = _range(tensor_type)
    detail = f"has a number in data that {name} cannot represent"
    return _bad_tensor(("data",), detail, f"{low} to {high}", "a number out of range")


def _from_base64(base64_text: object, tensor_type: TensorType) -> HostArray:
    if not isinstance(base64_text, str):
        got = json_kind(base64_text)
        detail = f"has data_b64 that is {got}; a base64 string is expected"
        raise _bad_tensor(("data_b64",), detail, "a base64 string", got)
    try:
        raw = pybase64.b64decode(base64_text, validate=True)
    except ValueError:
        detail = "has data_b64 that is not base64 (RFC 4648, padded)"
        raise _bad_tensor(("data_b64",), detail, "base64", "something else") from None
    if len(raw) != tensor_type.nbytes:
        raise _miscounted(tensor_type, tensor_type.nbytes, len(raw), "byte")
    if tensor_type.dtype == np.bool_ and raw.strip(b"\0\1"):
        detail = "has a byte in data_b64 that is neither 0 nor 1"
        raise _bad_tensor(("data_b64",), detail, "bytes 0 and 1", "another byte")
    flat = np.frombuffer(raw, tensor_type.dtype.newbyteorder("<"))
    return flat.astype(tensor_type.dtype, copy=False).reshape(tensor_type.shape)
