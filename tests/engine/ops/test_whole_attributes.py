"""Integers that no double represents, as attributes: ops of integer dtypes use every digit that was sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Builder, Graph, Program, Statement, TensorType, graph_id, registry
from engine.ir.passes import optimise
from engine.ir.text import parse_graph, print_graph
from tests.engine.ops.run import error, run

OPS = registry().ops
#: not representable as doubles
NOT_DOUBLES = [2**53 + 1, -(2**53) - 1, 2**62 + 1, 2**63 - 1, 1 - 2**63]
#: number of elements beyond which kernels run in blocks
MANY = 1 << 16


@pytest.mark.parametrize("number", NOT_DOUBLES)
def test_full_is_exact(number: int) -> None:
    actual = run("full", shape=[2], fill=number, dtype="int64")
    assert actual.tolist() == [number, number]


@pytest.mark.parametrize("number", NOT_DOUBLES)
def test_pad_fill_is_exact(number: int) -> None:
    assert run("pad", np.array([7]), pad_width=[1, 1], fill=number).tolist() == [number, 7, number]


@pytest.mark.parametrize("count", [1, MANY])
@pytest.mark.parametrize("number", NOT_DOUBLES)
def test_clamp_bound_is_exact(number: int, count: int) -> None:
    x = np.full(count, number)
    for bound, beyond in (("min", -1), ("max", 1)):
        actual = run("clamp", x if abs(number + beyond) >= 2**63 else x + beyond, **{bound: number})
        assert (actual.dtype, set(actual.tolist())) == ("int64", {number})


def test_clamp_to_the_largest_int64() -> None:
    actual = run("clamp", np.array([2**63 - 1, 0]), min=1, max=2**63 - 1)
    assert (actual.dtype, actual.tolist()) == ("int64", [2**63 - 1, 1])


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
def test_arange_is_exact(limits: tuple[int, float, int]) -> None:
    start, stop, step = limits
    end = int(np.ceil(stop) if step > 0 else np.floor(stop)) if isinstance(stop, float) else stop
    assert run("arange", start=start, stop=stop, step=step).tolist() == list(range(start, end, step))


def test_range_beyond_its_dtype_is_refused() -> None:
    refused = error("arange", start=2**63 - 1, stop=2.0**63 + 4096)
    assert refused.detail.startswith("node 0 (arange): the range must lie between -9223372036854775808 and")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_float_dtypes_round_the_number(dtype: str) -> None:
    """Same result and same graph id as the nearest double."""
    for number in NOT_DOUBLES:
        np.testing.assert_array_equal(
            run("full", fill=number, dtype=dtype), run("full", fill=float(number), dtype=dtype), strict=True
        )
        assert graph_id_of("full", fill=number, dtype=dtype) == graph_id_of("full", fill=float(number), dtype=dtype)
        x = np.zeros(1, dtype)
        for attrs in ({"max": number}, {"min": number}):
            nearest = {bound: float(value) for bound, value in attrs.items()}
            np.testing.assert_array_equal(run("clamp", x, **attrs), run("clamp", x, **nearest), strict=True)
        padded = [run("pad", x, pad_width=[1, 0], fill=fill) for fill in (number, float(number))]
        np.testing.assert_array_equal(*padded, strict=True)


def graph_id_of(op: str, **attrs: Any) -> str:
    return graph_id(Program(registry(), [Statement(OPS[op], (), attrs)]))


def test_graph_ids_distinguish_every_digit() -> None:
    numbers = [2**53, 2**53 + 1, 2**53 + 2]
    assert len({graph_id_of("full", fill=n, dtype="int64") for n in numbers}) == 3
    assert len({graph_id_of("arange", stop=n) for n in numbers}) == 3
    assert graph_id_of("full", fill=2**53, dtype="int64") == graph_id_of("full", fill=2.0**53, dtype="int64")


@pytest.mark.parametrize("name", ["scalar", "exponent"])
def test_scalar_attributes_are_floats(name: str) -> None:
    """For operands of any dtype, so that graph ids do not change."""
    op = "mul_scalar" if name == "scalar" else "pow_scalar"
    programs = [
        Program(registry(), [Statement(OPS["input"]), Statement(OPS[op], (0,), {name: n})])
        for n in (2**53 + 1, 2.0**53)
    ]
    assert graph_id(programs[0]) == graph_id(programs[1])


def build_graph(number: int) -> Graph:
    """Build nodes with the number in their attributes, as rules do."""
    builder = Builder(registry())
    x = builder.leaf(TensorType((2,), np.dtype("int64")), 0)
    full = builder.full((2,), number, "int64")
    values = x.pad(pad_width=(1, 1), fill=number), x.clamp(min=number, max=None), x.maximum(number), full + full
    return builder.graph([*values, builder.arange(number + 1, start=number)])


@pytest.mark.parametrize("number", NOT_DOUBLES[:2])
def test_rules_text_and_passes_are_exact(number: int) -> None:
    graph = build_graph(number)
    text = print_graph(graph)
    assert text.count(f": {number}") == 5
    assert print_graph(parse_graph(text, registry())) == text
    folded = optimise(graph)
    doubled = folded.nodes[folded.outputs[3]]
    assert (doubled.op.name, doubled.attrs["fill"]) == ("full", 2 * number)


def test_cse_distinguishes_adjacent_integers() -> None:
    builder = Builder(registry())
    x = builder.leaf(TensorType((1,), np.dtype("int64")), 0)
    actual = optimise(builder.graph([x.pad(pad_width=(1, 0), fill=n) for n in (2**53 + 1, 2**53, 2**53 + 1)]))
    assert (len(set(actual.outputs)), actual.outputs[0]) == (2, actual.outputs[2])
