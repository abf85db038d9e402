"""Bad requests of every kind for each protocol; each must be refused in the protocol's own form."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from service.facades.openinference import LENGTH_HEADER
from tests.service.facades.fitting import FIT, INPUTS
from tests.service.support import Json

JSON, OCTETS = "application/json", "application/octet-stream"
_POINT = [value.reshape(-1).tolist() for value in INPUTS.values()]
_GRADIENT = {"name": FIT, "input": _POINT, "outWrt": 1, "inWrt": 1, "sens": [1.0, 2.0, 3.0], "config": {}}
_HESSIAN = {"name": FIT, "input": _POINT, "outWrt": 1, "inWrt1": 1, "inWrt2": 1, "sens": [1.0] * 3, "vec": [1.0] * 2}
_TENSORS = [
    {"name": name, "shape": list(value.shape), "datatype": "FP64", "data": value.reshape(-1).tolist()}
    for name, value in INPUTS.items()
]
_INFER: Json = {"inputs": _TENSORS, "outputs": [{"name": "loss"}]}
_ARRAYS = {
    name: {
        "object_type": "array",
        "shape": list(value.shape),
        "dtype": "float64",
        "data": {"buffer": base64.b64encode(value.tobytes()).decode(), "encoding": "base64"},
    }
    for name, value in INPUTS.items()
}
_APPLY = {"inputs": _ARRAYS}
_VJP = _APPLY | {"vjp_inputs": ["w"], "vjp_outputs": ["loss"], "cotangent_vector": {"loss": 1.0}}


@dataclass(frozen=True)
class BadRequest:
    """A bad request and its name."""

    name: str
    path: str
    body: bytes
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": JSON})
    method: str = "POST"

    @property
    def facade(self) -> str:
        """The protocol."""
        if self.path.startswith("/v2"):
            return "openinference"
        return "tesseract" if self.path.startswith("/tesseract") else "umbridge"


#: a good request of each protocol, from which the bad ones are derived
GOOD = {"/Gradient": _GRADIENT, f"/v2/models/{FIT}/infer": _INFER, f"/tesseract/{FIT}/vector_jacobian_product": _VJP}


def bad_requests() -> list[BadRequest]:
    """Return the bad requests of all kinds."""
    makers = (_malformed_json, _wrong_types, _missing, _heads, _umbridge, _openinference, _tesseract)
    return [case for make in makers for case in make()]


def _malformed_json() -> Iterator[BadRequest]:
    for path, good in GOOD.items():
        text = json.dumps(good).encode()
        texts = {
            "nothing": b"",
            "a brace": b"{",
            "null": b"null",
            "a list": b"[]",
            "a word": b'"x"',
            "an empty object": b"{}",
            "cut off": text[:-3],
            "twice": text + text,
            "a comma too many": text[:-1] + b",}",
            "not UTF-8": text.replace(b'"', b"\xff", 1),
            "UTF-16": text.decode().encode("utf-16"),
            "NUL": b"\x00" + text,
            "NaN": text.replace(b"1.0", b"NaN", 1),
            "Infinity": text.replace(b"1.0", b"-Infinity", 1),
            "a key twice": text[:-1] + b"," + text[1:],
            "nested deeply": b'{"a":' * 500 + b"1" + b"}" * 500,
            "a list nested deeply": b"[" * 100_000,
            "a million braces": b"{" * 1_000_000,
        }
        yield from (BadRequest(f"{path}: {kind}", path, body) for kind, body in texts.items())


def _wrong_types() -> Iterator[BadRequest]:
    """Replace each field of each request by values of other types."""
    for path, good in GOOD.items():
        for key in good:
            for other in (None, 1.5, "x", True, -1, [], [[]], {"a": {}}):
                nulls = path.startswith("/v2") and other is None and key != "inputs"
                fits = nulls or (key == "config" and other is None) or (key == "outputs" and other == [])
                same = type(other) is type(good[key]) and key == "config"
                if not fits and not same:
                    body = json.dumps({**good, key: other}).encode()
                    yield BadRequest(f"{path}: {key} is {other!r}", path, body)


def _missing() -> Iterator[BadRequest]:
    for path, good in GOOD.items():
        for key in good:
            if key not in ("config", "outputs"):
                body = {name: value for name, value in good.items() if name != key}
                yield BadRequest(f"{path}: no {key}", path, json.dumps(body).encode())
        yield BadRequest(f"{path}: another field", path, json.dumps({**good, "more": 1}).encode())


def _heads() -> Iterator[BadRequest]:
    for path, good in GOOD.items():
        body = json.dumps(good).encode()
        yield BadRequest(f"{path}: GET", path, b"", method="GET")
        yield BadRequest(f"{path}: DELETE", path, b"", method="DELETE")
        yield BadRequest(f"{path}: compressed", path, body, {"Content-Type": JSON, "Content-Encoding": "gzip"})
        yield BadRequest(f"{path}: a parameter that there is not", f"{path}?x=1", body)
        yield BadRequest(f"{path}: no time", f"{path}?timeout_ms=0", body)


def _umbridge() -> Iterator[BadRequest]:
    changes: dict[str, Json] = {
        "another model": {"name": "nobody"},
        "a name that cannot be": {"name": "../" * 50},
        "a long name": {"name": "x" * 100_000},
        "a configuration": {"config": {"a": 1}},
        "no vectors": {"input": []},
        "too many vectors": {"input": [*_POINT, []]},
        "an empty vector": {"input": [_POINT[0], [], _POINT[2]]},
        "a vector too long": {"input": [_POINT[0], [1.0, 2, 3], _POINT[2]]},
        "vectors within vectors": {"input": [[_POINT[0]], *_POINT[1:]]},
        "strings": {"input": [["1"] * 6, *_POINT[1:]]},
        "truths": {"input": [[True] * 6, *_POINT[1:]]},
        "nulls": {"input": [[None] * 6, *_POINT[1:]]},
        "numbers beyond float64": {"input": [[10**400] * 6, *_POINT[1:]]},
        "an output too far": {"outWrt": 2},
        "an output before the first": {"outWrt": -1},
        "an input too far": {"inWrt": 3},
        "an input far too far": {"inWrt": 2**70},
        "sens too short": {"sens": [1.0]},
        "sens of words": {"sens": ["a", "b", "c"]},
    }
    for kind, changed in changes.items():
        yield BadRequest(f"umbridge: {kind}", "/Gradient", json.dumps({**_GRADIENT, **changed}).encode())
    for kind, changed in {"inWrt2 too far": {"inWrt2": 3}, "vec too long": {"vec": [1.0] * 3}}.items():
        yield BadRequest(f"umbridge: {kind}", "/ApplyHessian", json.dumps({**_HESSIAN, **changed}).encode())
    for path in ("/ModelInfo", "/InputSizes", "/OutputSizes", "/Evaluate"):
        yield BadRequest(f"umbridge: no name at {path}", path, b'{"config": {}}')
        yield BadRequest(f"umbridge: nobody at {path}", path, b'{"name": "nobody", "input": []}')


def _openinference() -> Iterator[BadRequest]:
    path, first = f"/v2/models/{FIT}/infer", _TENSORS[0]

    def with_first(**changed: Any) -> Json:
        return _INFER | {"inputs": [first | changed, *_TENSORS[1:]]}

    bodies: dict[str, Json] = {
        "a negative extent": with_first(shape=[-3, -2]),
        "an extent of 2^70": with_first(shape=[2**70, 2]),
        "another rank": with_first(shape=[6]),
        "forty axes": with_first(shape=[1] * 40),
        "another datatype": with_first(datatype="FP32"),
        "BYTES": with_first(datatype="BYTES"),
        "a datatype that is none": with_first(datatype="fp64"),
        "too few elements": with_first(data=[1.0]),
        "words": with_first(data=["a"] * 6),
        "nulls": with_first(data=[None] * 6),
        "beyond float64": with_first(data=[10**400] * 6),
        "lists nested deeply": with_first(data=json.loads("[" * 90 + "]" * 90)),
        "names that repeat": _INFER | {"inputs": [*_TENSORS, first]},
        "an input that there is not": _INFER | {"inputs": [*_TENSORS, first | {"name": "v"}]},
        "an input that is missing": _INFER | {"inputs": _TENSORS[:2]},
        "an output that there is not": _INFER | {"outputs": [{"name": "v"}]},
        "a gradient by nothing": _INFER | {"outputs": [{"name": "gradient.v"}]},
        "a gradient of nothing": _INFER | {"outputs": [{"name": "gradient.w"}], "parameters": {"gradient_of": "v"}},
        "a gradient of one of several": _INFER | {"outputs": [{"name": "gradient.w"}]},
        "bytes that do not come": with_first(parameters={"binary_data_size": 48}),
    }
    yield from (BadRequest(f"openinference: {w}", path, json.dumps(body).encode()) for w, body in bodies.items())
    binary = first | {"parameters": {"binary_data_size": 48}}
    del binary["data"]
    text = json.dumps(_INFER | {"inputs": [binary, *_TENSORS[1:]]}).encode()
    raw = np.ones(6).tobytes()
    heads = {
        "a length of words": ("many", text + raw),
        "a negative length": ("-1", text + raw),
        "a length beyond the body": (str(10**9), text + raw),
        "a length of many digits": ("9" * 5000, text + raw),
        "a length that cuts the JSON": (str(len(text) - 5), text + raw),
        "no length": ("", text + raw),
        "too few bytes": (str(len(text)), text + raw[:-1]),
        "too many bytes": (str(len(text)), text + raw + b"x"),
        "no bytes": (str(len(text)), text),
    }
    for kind, (length, body) in heads.items():
        yield BadRequest(f"openinference: {kind}", path, body, {"Content-Type": OCTETS, LENGTH_HEADER: length})
    for size in (-1, 47, "48", 48.0, True, 2**70, [48]):
        one = binary | {"parameters": {"binary_data_size": size}}
        text = json.dumps(_INFER | {"inputs": [one, *_TENSORS[1:]]}).encode()
        headers = {"Content-Type": OCTETS, LENGTH_HEADER: str(len(text))}
        yield BadRequest(f"openinference: {size!r} bytes", path, text + raw, headers)
    for other in ("/v2/models/nobody/infer", f"/v2/models/{FIT}/versions/1/infer", "/v2/models//infer", "/v2/x"):
        yield BadRequest(f"openinference: {other}", other, json.dumps(_INFER).encode())


def _tesseract() -> Iterator[BadRequest]:
    path, array = f"/tesseract/{FIT}/apply", _ARRAYS["w"]

    def with_w(**changed: Any) -> Json:
        return {"inputs": _ARRAYS | {"w": {**array, **changed}}}

    def with_data(**changed: Any) -> Json:
        return with_w(data={**array["data"], **changed})

    bodies: dict[str, Json] = {
        "a negative extent": with_w(shape=[-2]),
        "an extent of 2^70": with_w(shape=[2**70]),
        "many large extents": with_w(shape=[2**40] * 20),
        "a shape of words": with_w(shape=["2"]),
        "no shape": with_w(shape=None),
        "another shape": with_w(shape=[1, 2]),
        "another dtype": with_w(dtype="complex128"),
        "a dtype that is none": with_w(dtype="float65"),
        "no data": with_w(data=None),
        "data that are a list": with_w(data=[1, 2]),
        "an encoding that is none": with_data(encoding="binref"),
        "no encoding": with_data(encoding=None),
        "no base64": with_data(buffer="!!!!"),
        "base64 of too few bytes": with_data(buffer="AAAA"),
        "a buffer that is a number": with_data(buffer=7),
        "words": with_data(buffer=["a", "b"], encoding="json"),
        "too few numbers": with_data(buffer=[1.0], encoding="json"),
        "beyond float64": with_data(buffer=[10**400, 1], encoding="json"),
        "rows of other lengths": {"inputs": _ARRAYS | {"x": [[1, 2], [3], [4, 5]]}},
        "lists nested deeply": {"inputs": _ARRAYS | {"x": json.loads("[" * 90 + "]" * 90)}},
        "an input that is missing": {"inputs": {"x": _ARRAYS["x"]}},
        "an input that there is not": {"inputs": _ARRAYS | {"v": 1.0}},
        "an input that is null": {"inputs": _ARRAYS | {"w": None}},
    }
    yield from (BadRequest(f"tesseract: {kind}", path, json.dumps(body).encode()) for kind, body in bodies.items())
    calls: dict[str, Json] = {
        "jacobian": _APPLY | {"jac_inputs": ["w", "w"], "jac_outputs": ["loss"]},
        "jacobian_vector_product": _APPLY | {"jvp_inputs": ["w"], "jvp_outputs": ["loss"], "tangent_vector": {}},
        "vector_jacobian_product": _VJP | {"cotangent_vector": {"loss": [1.0, 2.0]}},
        "abstract_eval": {"inputs": {name: {"shape": [-1], "dtype": "float64"} for name in INPUTS}},
        "nothing": _APPLY,
    }
    for call, body in calls.items():
        yield BadRequest(f"tesseract: {call}", f"/tesseract/{FIT}/{call}", json.dumps(body).encode())
    for other in ("/tesseract/nobody/apply", "/tesseract//apply", "/tesseract/x"):
        yield BadRequest(f"tesseract: {other}", other, json.dumps(_APPLY).encode())
