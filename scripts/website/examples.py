"""An example request for each op, drawn from its samples, and the server's answer."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

import numpy as np

from engine.ir.graph import inferred
from engine.ir.op import Definition
from engine.ir.opset import OPSET
from engine.ir.sample import Operand, Sample
from engine.ir.tensor_type import TensorType, is_complex, is_differentiable
from service.api.tensors import numbers_of
from service.web.pages.error_pages import format_json
from service.workers.task import Task
from service.workers.worker import Worker

Json = dict[str, Any]
Array = np.ndarray[Any, Any]

ADDRESS: Final = "http://127.0.0.1:8000"
_SMALL: Final = 40  # elements that a page shows of the operands
_TIMEOUT: Final = 60.0
_FED: Final = np.array([1.5, -2.0])


def _node(op: str, *operands: int, **attrs: Any) -> Json:
    node = {"op": op, "operands": list(operands), "attrs": attrs}
    return {name: part for name, part in node.items() if part}


def _result(node: int, index: int = 0) -> Json:
    return {"op": "get_output", "operands": [node], "attrs": {"index": index}}


def _running(functions: Sequence[Json], *nodes: Json) -> Json:
    """Return a graph with these functions, and with these nodes after a parameter x."""
    return {"opset": 2, "functions": list(functions), "nodes": [{"op": "parameter", "name": "x"}, *nodes]}


def _function(name: str, parameters: int, *nodes: Json, outputs: int = 1) -> Json:
    """Return a function that returns its last node, `outputs` times."""
    last = parameters + len(nodes) - 1
    return {"name": name, "nodes": [*[{"op": "input"}] * parameters, *nodes], "outputs": [last] * outputs}


_HALF: Final = _function("half", 1, _node("mul_scalar", 0, scalar=0.5))
_STEP: Final = _function("step", 1, _node("mul_scalar", 0, scalar=0.5), outputs=2)
_SQUARE: Final = _function("square", 1, _node("square", 0))
_IS_LONG: Final = _function("is_long", 1, _node("norm", 0), _node("full", fill=1.0), _node("greater", 1, 2))
_NEXT: Final = _function("next", 2, _node("add", 0, 1), _node("cos", 2), _node("mul_scalar", 3, scalar=0.5))
#: graphs of ops without samples, or with an uninformative one; they are fed at node 0
_STATED: Final[dict[str, Json]] = {
    "input": {"nodes": [{"op": "input", "name": "x"}]},
    "parameter": {"nodes": [{"op": "parameter", "name": "w"}]},
    "grad": {"nodes": [{"op": "parameter", "name": "x"}, _node("exp", 0), _node("grad", 1, 0)]},
    "call": _running([_HALF], _node("call", 0, body=0), _result(1)),
    "scan": _running([_STEP], _node("scan", 0, body=0, carries=1, length=3), _result(1, 1)),
    "while": _running([_IS_LONG, _HALF], _node("while", 0, condition=0, body=1, carries=1, max_steps=10), _result(1)),
    "map": _running([_SQUARE], _node("map", 0, body=0, sequences=1), _result(1)),
    "cond": _running(
        [_IS_LONG, _HALF, _SQUARE],
        _node("call", 0, body=0),
        _result(1),
        _node("cond", 2, 0, then=1, otherwise=2),
        _result(3),
    ),
    "fixed_point": _running(
        [_NEXT],
        _node("full", shape=[2]),
        _node("fixed_point", 0, 1, body=0, carries=1, tolerance=1e-9, max_steps=100),
        _result(2),
    ),
}


@dataclass(frozen=True)
class Exchange:
    """A call, its request body, and the answer without its `stats`."""

    call: str
    body: Json
    answer: Json

    @property
    def command(self) -> str:
        """The request as a shell command."""
        head = f"curl -s {ADDRESS}/v1/{self.call} -H 'Content-Type: application/json' -d '"
        return f"{head}\n{format_json(self.body)}'"

    @property
    def program(self) -> str:
        """The request as a program that uses Python's standard library."""
        body = format_json(self.body).replace("'", "\\u0027")
        return (
            f"import json\nimport urllib.request\n\nbody = r'''{body}'''\n"
            f'headers = {{"Content-Type": "application/json"}}\n'
            f'request = urllib.request.Request("{ADDRESS}/v1/{self.call}", body.encode(), headers)\n'
            "with urllib.request.urlopen(request) as answer:\n    print(json.dumps(json.load(answer), indent=1))"
        )


def example(op: Definition, ops: Iterable[Definition], worker: Worker) -> Exchange:
    """Return one use of the op: its gradients, weighted by a cotangent, or only its values if it has no gradient.

    Raises RuntimeError if the server refuses the request, as it does if a sample does not fit its op.
    """
    if op.name in _STATED:
        return _ask(op, {"graph": _STATED[op.name], "feeds": [_feed(0, _FED)]}, worker)
    used = op if op.samples else next(other for other in ops if other.several and other.samples)
    return _ask(op, _request(used, _chosen(used.samples)), worker)


def _chosen(samples: Sequence[Sample]) -> Sample:
    """Return the first sample that is small and not empty, or the smallest."""
    sizes = [sum(int(np.prod(operand.shape)) for operand in sample.operands) for sample in samples]
    small = [i for i, size in enumerate(sizes) if 0 < size <= _SMALL or not samples[i].operands]
    return samples[small[0] if small else sizes.index(min(sizes))]


def _request(op: Definition, sample: Sample) -> Json:
    rng = np.random.default_rng(crc32(op.name.encode()))
    count = len(sample.operands)
    leaves = [_leaf(op, i, operand) for i, operand in enumerate(sample.operands)]
    node = {"op": op.name, "operands": list(range(count)), "attrs": _attributes(sample)}
    arrays = [_drawn(operand, rng) for operand in sample.operands]
    read = [_result(count, _output_index(op, sample, arrays))] if op.several else []
    nodes = [*leaves, {name: value for name, value in node.items() if value}, *read]
    feeds = [_feed(i, array) for i, array in enumerate(arrays)]
    opset = {"opset": op.since} if op.since > OPSET else {}
    return {"graph": {**opset, "nodes": nodes}} | ({"feeds": feeds} if feeds else {})


def _output_index(op: Definition, sample: Sample, arrays: Sequence[Array]) -> int:
    """Return which of several results to read: the first that has a gradient, or else the first."""
    types = inferred(op, tuple(map(TensorType.of, arrays)), sample.attrs).types
    return next((i for i, type in enumerate(types) if type.is_differentiable), 0)


def _leaf(op: Definition, i: int, operand: Operand) -> Json:
    return {"op": "parameter" if operand.kind == "real" else "input", "name": op.operand_name(i)}


def _attributes(sample: Sample) -> Json:
    """Return the attributes as JSON values."""
    attributes: Json = json.loads(json.dumps(sample.attrs, default=_tensor))
    return attributes


def _drawn(operand: Operand, rng: np.random.Generator) -> Array:
    """Draw an operand, rounded to two decimals. All elements but a diagonal are clipped to its bounds."""
    drawn = operand.draw(rng)
    if operand.kind != "real":
        return drawn
    return drawn.round(2) if operand.diagonal else np.clip(drawn.round(2), operand.low, operand.high)


def _feed(node: int, array: Array) -> Json:
    return {"node": node, "tensor": _tensor(array)}


def _tensor(array: Array) -> Json:
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": numbers_of(array).tolist()}


def _ask(op: Definition, body: Json, worker: Worker) -> Exchange:
    answer = _answer("forward", body, worker)
    value = answer["values"][0]["tensor"]
    has_parameters = any(node["op"] == "parameter" for node in body["graph"]["nodes"])
    dtype = np.dtype(value["dtype"])
    if not (has_parameters and is_differentiable(dtype) and _has_gradient(op)):
        return Exchange("forward", body, answer)
    if value["shape"] or is_complex(dtype):
        weights = np.arange(1, 1 + np.prod(value["shape"]), dtype=dtype).reshape(value["shape"])
        body = body | {"cotangent": _tensor(weights)}
    return Exchange("gradients", body, _answer("gradients", body, worker))


def _has_gradient(op: Definition) -> bool:
    return op.name == "parameter" or not op.gradient.startswith("none")


def _answer(call: str, body: Json, worker: Worker) -> Json:
    sent = json.dumps(body).encode()
    reply = worker(Task(call, sent, "example", _TIMEOUT, time.monotonic() + _TIMEOUT))
    answer: Json = json.loads(reply.body)
    if reply.status != 200:
        raise RuntimeError(f"{answer['detail']}: {json.dumps(body)}")
    return {name: part for name, part in answer.items() if name != "stats"}
