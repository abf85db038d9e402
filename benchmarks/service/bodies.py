"""Requests on W1, W2 and a large array, as each server takes them."""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np
import pybase64

from benchmarks.recorder import Recorder
from benchmarks.workload import Array, Question, Workload, normal

Json = dict[str, Any]
#: elements of the large gradient: 4 MB of float32
LARGE: Final = 1 << 20
#: the matrix that a training step changes: 20 KB of float64
WEIGHTS: Final = (64, 40)


def nodes_of(work: Workload) -> list[Json]:
    """Its graph, as a client writes it: parameters first, then data."""
    ops = Recorder()
    leaves = [ops.parameter() for _ in work.parameters] + [ops.input() for _ in work.data]
    work.function_for("gradserve")(ops, *leaves)
    return [{"op": s.op.name, "operands": list(s.operands), "attrs": dict(s.attrs)} for s in ops.statements]


def large() -> Workload:
    """The sum of squares of a million numbers: its gradient is as large as they are, and little work."""
    x = normal(9, LARGE)
    return Workload("large", "4 MB", lambda ops, x: ops.sum(ops.square(x)), [x], [], Question.GRADIENTS)


def in_json(work: Workload, *, graph: bool = True) -> bytes:
    """A request of `gradients`; without a graph, for one that is registered."""
    feeds = [{"node": i, "tensor": _numbers(a)} for i, a in enumerate(work.arrays)]
    whole: Json = {"graph": {"nodes": nodes_of(work)}} if graph else {}
    return json.dumps({**whole, "feeds": feeds}).encode()


def step(*, durable: bool, tensor: Json | None = None) -> bytes:
    """A step of gradient descent on a matrix; resident and stored, or, where `tensor` is given, sent and answered."""
    nodes: list[Json] = [
        {"op": "parameter"},
        {"op": "full", "attrs": {"shape": [WEIGHTS[0]], "fill": 0.5}},
        {"op": "matmul", "operands": [1, 0]},
        {"op": "tanh", "operands": [2]},
        {"op": "square", "operands": [3]},
        {"op": "mean", "operands": [4]},
        {"op": "grad", "operands": [5, 0]},
        {"op": "mul_scalar", "operands": [6], "attrs": {"scalar": 0.01}},
        {"op": "sub", "operands": [0, 7]},
    ]
    if tensor is not None:
        asked = {"feeds": [{"node": 0, "tensor": tensor}], "outputs": [5, 8]}
    else:
        store = [{"node": 8, "tensor_id": "weights", "durable": durable}]
        asked = {"feeds": [{"node": 0, "tensor_id": "weights"}], "outputs": [5], "store": store}
    return json.dumps({"graph": {"nodes": nodes}, **asked}).encode()


def weights() -> Json:
    """What such a step begins with."""
    return _numbers(normal(3, *WEIGHTS).astype("float64"))


def registration(work: Workload) -> bytes:
    """What registers its graph."""
    return json.dumps({"graph": {"nodes": nodes_of(work)}}).encode()


def in_safetensors(work: Workload) -> bytes:
    """A request of `gradients` whose feeds are bytes."""
    entries, start = dict[str, Any](), 0
    for i, a in enumerate(work.arrays):
        dtype = f"{'F' if a.dtype.kind == 'f' else 'I'}{8 * a.itemsize}"
        entries[f"feeds.{i}"] = {"dtype": dtype, "shape": a.shape, "data_offsets": [start, start + a.nbytes]}
        start += a.nbytes
    asked = json.dumps({"graph": {"nodes": nodes_of(work)}})
    header = json.dumps({"__metadata__": {"request": asked}, **entries}).encode()
    header += b" " * (-len(header) % 8)
    return b"".join([len(header).to_bytes(8, "little"), header, *(a.tobytes() for a in work.arrays)])


def for_fastapi(work: Workload) -> bytes:
    """W1, as the model of fastapi_torch.py has it."""
    return json.dumps(dict(zip(("mean", "log_scale", "x"), map(_list, work.arrays), strict=True))).encode()


def for_tesseract(work: Workload, names: tuple[str, ...], *, base64: bool) -> bytes:
    """`vector_jacobian_product` by all parameters."""
    write = _encoded if base64 else _plain
    inputs = {name: write(a) for name, a in zip(names, work.arrays, strict=True)}
    asked = {
        "inputs": inputs,
        "vjp_inputs": list(names[: len(work.parameters)]),
        "vjp_outputs": ["value"],
        "cotangent_vector": {"value": write(np.ones((), "float32"))},
    }
    return json.dumps(asked).encode()


def _list(a: Array) -> list[Any]:
    return a.reshape(-1).tolist()


def _numbers(a: Array) -> Json:
    return {"dtype": a.dtype.name, "shape": list(a.shape), "data": _list(a)}


def _plain(a: Array) -> Json:
    return _array(a, {"buffer": a.tolist(), "encoding": "json"})


def _encoded(a: Array) -> Json:
    return _array(a, {"buffer": pybase64.b64encode_as_string(a.tobytes()), "encoding": "base64"})


def _array(a: Array, data: Json) -> Json:
    return {"object_type": "array", "shape": list(a.shape), "dtype": a.dtype.name, "data": data}
