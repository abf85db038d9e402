"""Tensors on the wire to arrays and back, without losing a bit.

Shapes and counts are compared before anything is allocated. No message ever contains an element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final, NamedTuple, NotRequired, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np
import pybase64
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from typing_extensions import is_typeddict

from engine import DTYPES, HostArray, Limits, TensorType, printable
from engine.ir.tensor_type import ELEMENT_TYPES, DType, dtype_name, real_dtype
from schemas import Feed, NodeType, StoreEntry, Tensor
from service.api.json_codec import LongList, json_kind
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
        ).get(field) in (Feed, StoreEntry):
            node = request[field][i].get("node")
            return NodePlace(node) if type(node) is int and -(2**63) <= node < 2**63 else None
    return _graph_node(place)


Numbers = list[int | float] | LongList

_EXACT: Final = 2**53  # up to here every reader of JSON keeps integers apart
_JSON_CHARACTERS: Final = {element.name: element.json_characters for element in ELEMENT_TYPES}
_ENVELOPE: Final = 96  # a tensor's braces, keys, dtype and node; extents come on top
_EXTENT: Final = 21
_PLACES: Final = 80  # in safetensors on top: a name, offsets, and the place in the response


def decode(tensor: Tensor, limits: Limits) -> HostArray:
    """Decode a tensor. Raises Refusal (bad_tensor) and the engine's OverBudget."""
    wanted = type_of(tensor, limits)
    data, packed = tensor.get("data"), tensor.get("data_b64")
    if "data_b64" not in tensor or (packed == "" and data):
        numbers = _checked(data, "data" in tensor, wanted)
        with np.errstate(over="ignore"):
            return _from_numbers(numbers, wanted)
    if "data" in tensor and data != []:
        raise _bad("has both data and data_b64; one of them is expected", "one payload", "two payloads")
    return _from_base64(packed, wanted)


def decode_again(payload: tuple[str | None, Any], wanted: TensorType) -> HostArray:
    """Decode a payload, which is `data` or `data_b64`, of a known type. Raises Refusal (bad_tensor).

    The caller suppresses NumPy's overflow warnings.
    """
    name, data = payload
    if name == "data":
        return _from_numbers(_checked(data, True, wanted), wanted)
    return _from_base64(data, wanted)


def encode(array: HostArray, encoding: str) -> dict[str, Any]:
    """Encode an array as a tensor; in base64 if asked for, and if JSON would change elements."""
    tensor: dict[str, Any] = {"dtype": dtype_name(array.dtype), "shape": list(array.shape)}
    if encoding == "base64" or not _json_keeps(array):
        little_endian = array.astype(array.dtype.newbyteorder("<"), copy=False)
        return tensor | {"data_b64": pybase64.b64encode_as_string(little_endian.tobytes())}
    return tensor | {"data": np.ascontiguousarray(numbers_of(array))}


def _json_keeps(array: HostArray) -> bool:
    if array.dtype.kind in "fc":
        return bool(np.isfinite(array).all())
    if array.dtype != np.int64 or not array.size:
        return True
    return int(array.min()) >= -_EXACT and int(array.max()) <= _EXACT


def has_plain_numbers(t: TensorType) -> bool:
    """Return whether JSON has the elements as they are: `numbers_of` then returns the array, flat."""
    return t.dtype.kind not in "bc"


def numbers_of(array: HostArray) -> HostArray:
    """Return the elements as in JSON, flat: bool as 0 and 1, complex numbers as real and imaginary part in a row."""
    flat, kind = array.reshape(-1), array.dtype.kind
    if kind == "b":
        return flat.view(np.uint8)
    return np.ascontiguousarray(flat).view(real_dtype(flat.dtype)) if kind == "c" else flat


def encoded_bytes(types: Sequence[TensorType], encoding: str) -> int:
    """Bound the bytes of tensors of these types in an answer, without the fields that every answer has.

    `encoding` is json, base64 or, for safetensors, binary.
    """
    nbytes = 0
    for t in types:
        nbytes += _ENVELOPE + _EXTENT * t.ndim
        base64 = 4 * -(-t.nbytes // 3)
        if encoding == "binary":
            nbytes += _PLACES + t.nbytes
        elif encoding == "base64":
            nbytes += base64
        else:
            nbytes += max(base64, t.size * _JSON_CHARACTERS[dtype_name(t.dtype)])
    return nbytes


def _bad(detail: str, expected: str | None = None, got: str | None = None) -> Refusal:
    return Refusal("bad_tensor", detail, expected=expected, got=got)


def type_of(tensor: Tensor | NodeType, limits: Limits) -> TensorType:
    """Read the type that a message states. Raises Refusal (bad_tensor) and the engine's OverBudget."""
    dtype, shape = tensor["dtype"], tensor["shape"]
    if dtype not in DTYPES:
        known, got = "one of " + ", ".join(DTYPES), printable(dtype)
        raise _bad(f"has the dtype “{got}”; {known} is expected", known, got)
    if shape and min(shape) < 0:
        raise _bad("has a negative extent in its shape", "extents of 0 or more", str(min(shape)))
    limits.admit_rank(len(shape))
    t = TensorType(tuple(shape), np.dtype(dtype))
    limits.admit_type(t)
    return t


def _miscounted(wanted: TensorType, expected: int, got: int, unit: str) -> Refusal:
    needed = f"{expected} {unit}" if expected == 1 else f"{expected} {unit}s"
    return _bad(f"must hold {needed} to be {wanted}, but holds {got}", needed, str(got))


def _miscounted_numbers(wanted: TensorType, expected: int, got: int) -> Refusal:
    return _miscounted(wanted, expected, got, "number" if wanted.is_complex else "element")


def _checked(data: object, stated: bool, wanted: TensorType) -> Numbers:
    """Return `data` if it is a list of as many numbers as the type has. Raises Refusal."""
    elements = data if stated else []
    count = 2 * wanted.size if wanted.is_complex else wanted.size
    if isinstance(elements, LongList):
        if len(elements) != count:
            raise _miscounted_numbers(wanted, count, len(elements))
        return elements
    if not isinstance(elements, list):
        got = json_kind(elements)
        instead = f"; {OR_LEFT_OUT}" if elements is None else ""
        raise _bad(f"has data that is {got}; a flat list of numbers is expected{instead}", "a list of numbers", got)
    if len(elements) != count or not {int, float}.issuperset(map(type, elements)):
        raise _misfit(elements, wanted, count)
    return elements


def _misfit(elements: list[Any], wanted: TensorType, count: int) -> Refusal:
    """Return the refusal of a malformed list. Nested rows are reported as such, before elements are counted."""
    if list in map(type, elements):
        detail = "has nested lists in data; data is one flat list of numbers, row by row (row-major)"
        return _bad(detail, "a flat list of numbers", "nested lists")
    if len(elements) != count:
        return _miscounted_numbers(wanted, count, len(elements))
    position = next(i for i, x in enumerate(elements) if type(x) not in (int, float))
    got = json_kind(elements[position])
    return _bad(f"has {got} at data[{position}]; data is a flat list of numbers", "a number", got)


def _from_numbers(numbers: Numbers, wanted: TensorType) -> HostArray:
    if wanted.is_float:
        flat = _floats(numbers, wanted, wanted.dtype)
    elif wanted.is_complex:
        flat = _floats(numbers, wanted, real_dtype(wanted.dtype)).view(wanted.dtype)
    else:
        flat = _integers(numbers, wanted)
    return flat.reshape(wanted.shape)


def _floats(numbers: Numbers, wanted: TensorType, dtype: DType) -> HostArray:
    try:
        values = numbers.array if isinstance(numbers, LongList) else numbers
        flat = np.asarray(values, np.float64).astype(dtype, copy=False)
    except OverflowError:
        raise _out_of_range(wanted) from None
    if b"\0" in np.isfinite(flat).tobytes():  # for few elements, `all` takes twice as long
        raise _out_of_range(wanted)
    return flat


def _integers(numbers: Numbers, wanted: TensorType) -> HostArray:
    """Convert whole numbers exactly; 1.0 is one, as some languages write it."""
    flat = _whole_numbers(numbers, wanted)
    low, high = _range(wanted)
    if flat.size and (flat.min() < low or flat.max() > high):
        raise _out_of_range(wanted)
    return flat.astype(wanted.dtype, copy=False)


def _whole_numbers(numbers: Numbers, wanted: TensorType) -> HostArray:
    if isinstance(numbers, LongList):
        if numbers.is_whole:
            return numbers.array
        numbers = numbers.numbers()
    if float in set(map(type, numbers)):
        if any(type(x) is float and (not x.is_integer() or abs(x) > _EXACT) for x in numbers):
            raise _bad(f"has a fraction in data, but holds whole numbers ({wanted})", "whole numbers", "a fraction")
        numbers = list(map(int, numbers))
    try:
        return np.array(numbers, np.int64)
    except OverflowError:
        raise _out_of_range(wanted) from None


def _range(wanted: TensorType) -> tuple[int, int]:
    if wanted.dtype == np.bool_:
        return 0, 1
    info = np.iinfo(wanted.dtype)
    return int(info.min), int(info.max)


def _out_of_range(wanted: TensorType) -> Refusal:
    name = wanted.dtype.name
    if wanted.is_float or wanted.is_complex:
        return _bad(f"has a number in data that is beyond {name}", f"finite {name} numbers", "a larger one")
    low, high = _range(wanted)
    return _bad(f"has a number in data that {name} does not hold", f"{low} to {high}", "a number outside")


def _from_base64(packed: object, wanted: TensorType) -> HostArray:
    if not isinstance(packed, str):
        got = json_kind(packed)
        raise _bad(f"has data_b64 that is {got}; a base64 string is expected", "a base64 string", got)
    try:
        raw = pybase64.b64decode(packed, validate=True)
    except ValueError:
        raise _bad("has data_b64 that is not base64 (RFC 4648, padded)", "base64", "something else") from None
    if len(raw) != wanted.nbytes:
        raise _miscounted(wanted, wanted.nbytes, len(raw), "byte")
    if wanted.dtype == np.bool_ and raw.strip(b"\0\1"):
        raise _bad("has a byte in data_b64 that is neither 0 nor 1", "bytes 0 and 1", "another byte")
    flat = np.frombuffer(raw, wanted.dtype.newbyteorder("<"))
    return flat.astype(wanted.dtype, copy=False).reshape(wanted.shape)
