"""Send tensors as bytes: a safetensors codec of a few lines, and what it saves, through HTTP.

The format (https://github.com/huggingface/safetensors#format) is the length of a JSON header in 8 bytes, the header,
and the bytes of the tensors. `__metadata__.request` holds the JSON request without its tensors, which are named by
their place in it: `feeds.0` is the feed of node 0. The answer has the same form, with `__metadata__.response`.

    python examples/binary.py                starts a server of its own, and stops it
    python examples/binary.py --url URL      uses one that is running
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
from client import Array, Client, Graph, pack, unpack
from run import run

JSON, SAFETENSORS = "application/json", "application/vnd.safetensors"
DTYPES = {
    "BOOL": "bool", "I8": "int8", "U8": "uint8", "I32": "int32", "I64": "int64",
    "F16": "float16", "F32": "float32", "F64": "float64",
}  # fmt: skip


def encode(request: dict[str, Any], tensors: dict[str, Array]) -> bytes:
    """The body of a request. Little-endian machines only."""
    header: dict[str, Any] = {"__metadata__": {"request": json.dumps(request)}}
    spelled = {name: spelling for spelling, name in DTYPES.items()}
    end = 0
    for name, array in tensors.items():
        start, end = end, end + array.nbytes
        header[name] = {"dtype": spelled[array.dtype.name], "shape": array.shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *(array.tobytes() for array in tensors.values())])


def decode(body: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """The answer that a body holds, and its tensors, which are views of the body."""
    data = 8 + int.from_bytes(body[:8], "little")
    header = json.loads(body[8:data])
    response = json.loads(header.pop("__metadata__")["response"])
    tensors = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        flat = np.frombuffer(memoryview(body)[data + start : data + end], DTYPES[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return response, tensors


def work(client: Client, kilobytes: int) -> None:
    """One gradient in three forms, with what each takes."""
    g = Graph()
    x = g.parameter()
    g.op("mean", g.op("square", x))
    array = np.random.default_rng(0).normal(size=kilobytes * 256).astype(np.float32)
    request: dict[str, Any] = {"graph": {"nodes": g.nodes}}
    numbers = {"node": x, "tensor": {"dtype": "float32", "shape": array.shape, "data": array.tolist()}}
    answers = [
        sent(client, "JSON numbers", json.dumps(request | {"feeds": [numbers]}).encode(), JSON),
        sent(client, "base64", json.dumps(request | {"feeds": pack({x: array}), "encoding": "base64"}).encode(), JSON),
        sent(client, "safetensors", encode(request, {f"feeds.{x}": array}), SAFETENSORS),
    ]
    plain = json.loads(answers[0])["gradients"][0]["tensor"]["data"]
    gradients = [
        np.array(plain, np.float32),
        unpack(json.loads(answers[1])["gradients"])[x],
        decode(answers[2])[1][f"gradients.{x}"],
    ]
    print(f"largest gradient: {gradients[-1].max():.9e}")
    print(f"the same bits: {len({gradient.tobytes() for gradient in gradients}) == 1}")


def sent(client: Client, name: str, body: bytes, media: str) -> bytes:
    """The answer to one POST. Prints how many bytes went both ways, and how long it took."""
    start = time.perf_counter()
    response = client.http.post("/v1/gradients", content=body, headers={"Content-Type": media, "Accept": media})
    ms = 1000 * (time.perf_counter() - start)
    response.raise_for_status()
    print(f"{name}: {len(body) + len(response.content)} bytes, {ms:.0f} ms")
    return response.content


if __name__ == "__main__":
    run(work, __doc__, kilobytes=4096)
