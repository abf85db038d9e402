"""Helpers that build graphs with functions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.conftest import Client
from tests.docs.marked import blocks
from tests.service.api.safetensors_support import array
from tests.service.support import Json, feed, node, tensor

IN, P = node("input"), node("parameter")
X, V = feed(0, [], [1.0]), feed(0, [3], [1.0, 2.0, 3.0])
#: four steps of a decay: 8 + 4 + 2 + 1; the derivative with respect to k is −26
DECAY: Json = {
    "graph": json.loads(blocks("docs/wire.md", "functions")[0]),
    "feeds": [feed(0, [], [1.0]), feed(1, [], [16.0])],
}


def function(outputs: Sequence[int], *nodes: Json, **more: Any) -> Json:
    """A function of these nodes."""
    return {"nodes": list(nodes), "outputs": list(outputs), **more}


def result(i: int, index: int = 0) -> Json:
    """One result of a node that has several."""
    return node("get_output", i, index=index)


def asked(functions: Sequence[Json], *nodes: Json, feeds: Sequence[Json] = (X,), **more: Any) -> Json:
    """A request on a graph of opset 2."""
    return {"graph": {"opset": 2, "functions": list(functions), "nodes": list(nodes)}, "feeds": list(feeds), **more}


DOUBLE = function([1], IN, node("mul_scalar", 0, scalar=2.0))
NARROW = function([1], IN, node("cast", 0, dtype="float32"))
CALLED = (IN, node("call", 0, body=0), result(1))
#: adds two numbers to its input
ADDS = function([2], IN, node("constant", value=tensor([2], [1, 2])), node("add", 0, 1))


def values(client: Client, request: Json, call: str = "forward") -> list[Any]:
    """The arrays that a call answers."""
    answer = client.post(f"/v1/{call}", json=request)
    assert answer.status_code == 200, answer.text
    kind = "gradients" if call == "gradients" else "values"
    return [array(each["tensor"]) for each in answer.json()[kind]]
