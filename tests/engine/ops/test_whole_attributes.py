"""Whole numbers that no double is, in attributes: an op of an integer dtype takes every digit that was sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Builder, Graph, Program, Statement, TensorType, graph_id, registry
from engine.ir.passes import optimise
from engine.ir.text import parse_graph, print_graph
from tests.engine.ops.run import error, run

OPS = registry().ops
#: none of these is a double
ODD = [2**53 + 1, -(2**53) - 1, 2**62 + 1, 2**63 - 1, 1 - 2**63]
#: elements beyond which loops are run in blocks
MANY = 1 << 16


@pytest.mark.parametrize("number", ODD)
def test_full_holds_it(number: int) -> None:
    found = run("full", shape=[2], fill=number, dtype="int64")
    assert found.tolist() == [number, number]


@pytest.mark.parametrize("number", ODD)
def test_what_is_around_a_tensor_is_it(number: int) -> None:
    assert run("pad", np.array([7]), pad_width=[1, 1], fill=number).tolist() == [number, 7, number]


@pytest.mark.parametrize("count", [1, MANY])
@pytest.mark.parametrize("number", ODD)
def test_a_bound_is_it(number: int, count: int) -> None:
    x = np.full(count, number)
    for bound, beyond in (("min", -1), ("max", 1)):
        found = run("clamp", x if abs(number + beyond) >= 2**63 else x + beyond, **{bound: number})
        assert (found.dtype, set(found.tolist())) == ("int64", {number})


def test_the_largest_number_is_a_bound_that_its_dtype_holds() -> None:
    found = run("clamp", np.array([2**63 - 1, 0]), min=1, max=2**63 - 1)
    assert (found.dtype, found.tolist()) == ("int64", [2**63 - 1, 1])


RANGES = [
    (2**53 + 1, 2**53 + 4, 1),
    (2**53 + 1, 2**53 - 2, -1),
    (1, 2**54 + 4, 2**53 + 1),
    (-(2**63), 2**63 - 1, 2**62 - 1),
    (2**63 - 3, 2**63 - 1, 1),
    (2**62 + 1, 2**62 + 1, 1),
    (2**62 + 1, 2**62 + 2, 2**62),
    (0, 2.5, 1),
    (0, -2.5, -1),
]


@pytest.mark.parametrize("limits", RANGES, ids=str)
def test_a_range_counts_by_it(limits: tuple[int, float, int]) -> None:
    start, stop, step = limits
    end = int(np.ceil(stop) if step > 0 else np.floor(stop)) if isinstance(stop, float) else stop
    assert run("arange", start=start, stop=stop, step=step).tolist() == list(range(start, end, step))


def test_a_range_that_ends_beyond_its_dtype_is_refused() -> None:
    found = error("arange", start=2**63 - 1, stop=2.0**63 + 4096)
    assert found.detail.startswith("node 0 (arange): the range must lie between -9223372036854775808 and")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats_round_it(dtype: str) -> None:
    """As they would the nearest double, under the same name."""
    for number in ODD:
        np.testing.assert_array_equal(
            run("full", fill=number, dtype=dtype), run("full", fill=float(number), dtype=dtype), strict=True
        )
        assert name_of("full", fill=number, dtype=dtype) == name_of("full", fill=float(number), dtype=dtype)
        x = np.zeros(1, dtype)
        for attrs in ({"max": number}, {"min": number}):
            nearest = {bound: float(value) for bound, value in attrs.items()}
            np.testing.assert_array_equal(run("clamp", x, **attrs), run("clamp", x, **nearest), strict=True)
        around = [run("pad", x, pad_width=[1, 0], fill=fill) for fill in (number, float(number))]
        np.testing.assert_array_equal(*around, strict=True)


def name_of(op: str, **attrs: Any) -> str:
    return graph_id(Program(registry(), [Statement(OPS[op], (), attrs)]))


def test_graphs_that_differ_by_one_digit_have_names_of_their_own() -> None:
    numbers = [2**53, 2**53 + 1, 2**53 + 2]
    assert len({name_of("full", fill=n, dtype="int64") for n in numbers}) == 3
    assert len({name_of("arange", stop=n) for n in numbers}) == 3
    assert name_of("full", fill=2**53, dtype="int64") == name_of("full", fill=2.0**53, dtype="int64")


@pytest.mark.parametrize("name", ["scalar", "exponent"])
def test_numbers_of_ops_that_compute_in_floats_are_floats(name: str) -> None:
    """Of any operand: so that a graph keeps the name that it has."""
    op = "mul_scalar" if name == "scalar" else "pow_scalar"
    programs = [
        Program(registry(), [Statement(OPS["input"]), Statement(OPS[op], (0,), {name: n})])
        for n in (2**53 + 1, 2.0**53)
    ]
    assert graph_id(programs[0]) == graph_id(programs[1])


def written(number: int) -> Graph:
    """Nodes that have the number in their attributes, as rules write them."""
    builder = Builder(registry())
    x = builder.leaf(TensorType((2,), np.dtype("int64")), 0)
    held = builder.full((2,), number, "int64")
    values = x.pad(pad_width=(1, 1), fill=number), x.clamp(min=number, max=None), x.maximum(number), held + held
    return builder.graph([*values, builder.arange(number + 1, start=number)])


@pytest.mark.parametrize("number", ODD[:2])
def test_rules_text_and_passes_keep_it(number: int) -> None:
    graph = written(number)
    text = print_graph(graph)
    assert text.count(f": {number}") == 5
    assert print_graph(parse_graph(text, registry())) == text
    folded = optimise(graph)
    doubled = folded.nodes[folded.outputs[3]]
    assert (doubled.op.name, doubled.attrs["fill"]) == ("full", 2 * number)


def test_a_pass_tells_such_a_number_from_its_neighbour() -> None:
    builder = Builder(registry())
    x = builder.leaf(TensorType((1,), np.dtype("int64")), 0)
    found = optimise(builder.graph([x.pad(pad_width=(1, 0), fill=n) for n in (2**53 + 1, 2**53, 2**53 + 1)]))
    assert (len(set(found.outputs)), found.outputs[0]) == (2, found.outputs[2])
