"""Memory of a cached program: its nodes, its functions and the tensors in both."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import orjson
import pytest

from engine import Limits, registry
from service.api.graphs import CachedProgram, GraphSource, Translator

INPUT, HALVED = {"op": "input"}, {"op": "mul_scalar", "operands": [0], "attrs": {"scalar": 0.5}}
TRANSLATOR = Translator(registry(), Limits())


def source(nodes: list[Any], functions: list[Any]) -> GraphSource:
    graph = {"opset": 2, "nodes": nodes, "functions": functions}
    return GraphSource("name", orjson.dumps(graph), 99)


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [
        {"nodes": [INPUT], "outputs": [0]},
        {"nodes": [INPUT, HALVED, {"op": "add", "operands": [0, 1]}], "outputs": [2]},
        {"nodes": [INPUT, *[HALVED] * 30], "outputs": [30]},
    ],
    ids=["one node", "three", "thirty-one"],
)
def test_estimated_size_of_functions_is_close(function: dict[str, Any]) -> None:
    text = source([INPUT], [function] * 1000)
    graph = text.graph
    gc.collect()
    tracemalloc.start()
    try:
        program = TRANSLATOR.program(graph, {})
        gc.collect()
        allocated, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert allocated / 1.5 < CachedProgram(program, b"").nbytes < 1.5 * allocated


def test_estimated_size_includes_tensors_in_functions() -> None:
    value = {"dtype": "float64", "shape": [1000], "data": [0.0] * 1000}
    constant = {"op": "constant", "attrs": {"value": value}}
    sizes = [CachedProgram(TRANSLATOR.program(source(*parts).graph, {}), b"").nbytes for parts in (
        ([constant], [{"nodes": [INPUT], "outputs": [0]}]),
        ([INPUT], [{"nodes": [constant], "outputs": [0]}]),
    )]  # fmt: skip
    assert sizes[0] == sizes[1] > 8000
