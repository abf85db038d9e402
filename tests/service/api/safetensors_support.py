"""Reader and writer of safetensors that follow the format's description and use no code under test."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping
from typing import Any

import httpx
import numpy as np

from engine.ir.tensor_type import real_dtype
from tests.service.support import Json

KIND = "application/vnd.safetensors"
SENT = {"Content-Type": KIND}
BINARY = {"Content-Type": KIND, "Accept": KIND}
SPELLINGS = {
    "bool": "BOOL", "int8": "I8", "uint8": "U8", "int16": "I16", "int32": "I32", "uint32": "U32", "int64": "I64",
    "float16": "F16", "float32": "F32", "float64": "F64", "complex64": "F32", "complex128": "F64",
}  # fmt: skip
COMPLEX = {"F32": "complex64", "F64": "complex128"}
NAMES = {spelling: name for name, spelling in SPELLINGS.items() if name not in COMPLEX.values()}
Array = np.ndarray[Any, Any]


def framed(header: bytes, data: bytes = b"") -> bytes:
    """Build a body with this header, valid or not."""
    return struct.pack("<Q", len(header)) + header + data


def body(request: Json | None, tensors: Mapping[str, Array], **more: Any) -> bytes:
    """Build a body with these tensors in this order, and `more` in the header."""
    header: Json = {} if request is None else {"__metadata__": {"request": json.dumps(request)}}
    data = b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        offsets = [len(data), len(data) + len(raw)]
        shape = [*array.shape, 2] if array.dtype.kind == "c" else list(array.shape)
        header[name] = {"dtype": SPELLINGS[array.dtype.name], "shape": shape, "data_offsets": offsets}
        data += raw
    if pairs := [name for name, array in tensors.items() if array.dtype.kind == "c"]:
        header.setdefault("__metadata__", {})["complex"] = json.dumps(pairs)
    text = json.dumps(header | more).encode()
    return framed(text + b" " * (-len(text) % 8), data)


def unpacked(content: bytes) -> tuple[Json, dict[str, Array]]:
    """Parse a body into the answer and its tensors."""
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    metadata = header.pop("__metadata__")
    response, pairs = json.loads(metadata["response"]), json.loads(metadata.get("complex", "[]"))
    data, end, tensors = content[8 + length :], 0, {}
    for name, entry in header.items():
        start, stop = entry["data_offsets"]
        assert start == end, "the tensors lie in the order of the header, without gaps"
        end = stop
        flat = np.frombuffer(data[start:stop], NAMES[entry["dtype"]])
        array = flat.reshape(entry["shape"])
        tensors[name] = array.view(COMPLEX[entry["dtype"]])[..., 0] if name in pairs else array
    assert end == len(data)
    return response, tensors


def answered(response: httpx.Response) -> tuple[Json, dict[str, Array]]:
    """Parse a successful response into the answer and its tensors."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == KIND
    assert int(response.headers["content-length"]) == len(response.content)
    return unpacked(response.content)


def array(tensor: Json) -> Array:
    """The array of a tensor in JSON."""
    if "data_b64" in tensor:
        flat = np.frombuffer(base64.b64decode(tensor["data_b64"]), tensor["dtype"])
    else:
        flat = np.array(tensor["data"], real_dtype(np.dtype(tensor["dtype"]))).view(tensor["dtype"])
    return flat.reshape(tensor["shape"])


def tensor(value: Array) -> Json:
    """A tensor in base64."""
    packed = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
    return {"dtype": value.dtype.name, "shape": list(value.shape), "data_b64": packed}


def split(request: Json) -> tuple[Json, dict[str, Array]]:
    """Move the tensors out of a JSON request: feeds, cotangents, tangents, vectors and constants."""
    rest: Json = dict(request)
    tensors: dict[str, Array] = {}
    for role in ("feeds", "cotangents", "tangents", "vectors"):
        for entry in rest.pop(role, []):
            tensors[f"{role}.{entry['node']}"] = array(entry["tensor"])
    if "cotangent" in rest:
        differentiated = rest.get("of", len(rest["graph"]["nodes"]) - 1)
        tensors[f"cotangents.{differentiated}"] = array(rest.pop("cotangent"))
    nodes = list(rest["graph"]["nodes"])
    for i, node in enumerate(nodes):
        if "value" in node.get("attrs", {}):
            tensors[f"constants.{i}"] = array(node["attrs"]["value"])
            nodes[i] = {**node, "attrs": {k: v for k, v in node["attrs"].items() if k != "value"}}
    return {**rest, "graph": {**rest["graph"], "nodes": nodes}}, tensors


def same_bits(a: Array, b: Array) -> bool:
    """Return whether two arrays have the same dtype, shape and bits."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
