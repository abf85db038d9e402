"""The op registry: unique names, one type per attribute name, and lookup that ignores case."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
from engine import describe, registry
from engine.ir.attributes import REQUIRED, Attr, bind, key
from engine.ir.errors import BadAttribute
from engine.ir.op import Composite, Definition, Kernel, NoGradient, Op, Registry


def twin(op: Definition, **changes: Any) -> Definition:
    """A copy of `op` with some class attributes changed."""
    return type("Twin", (type(op),), changes)()


SUM, CAST = registry().ops["sum"], registry().ops["cast"]


def test_duplicate_op_names_are_refused() -> None:
    with pytest.raises(ValueError, match="two ops are called sum"):
        Registry([SUM, twin(SUM)])


def test_alias_that_names_another_op_is_refused() -> None:
    with pytest.raises(ValueError, match="two ops are called cast"):
        Registry([CAST, twin(SUM, aliases={"CAST": "born"})])


def test_attribute_name_with_two_types_is_refused() -> None:
    with pytest.raises(ValueError, match="attribute axes is int in total and ints elsewhere"):
        Registry([SUM, twin(SUM, name="total", aliases={}, attrs={"axes": Attr("int")})])


@pytest.mark.parametrize("spelling", ["matmul", "MatMul", "BATCHMATMULOP", "batchMatMul"])
def test_lookup_ignores_case(spelling: str) -> None:
    op = registry().find(spelling)
    assert op is not None
    assert op.name == "matmul"


def test_every_alias_finds_its_op() -> None:
    for op in registry().ops.values():
        for alias in op.aliases:
            assert registry().find(alias) is op


def test_catalogue_has_a_row_for_every_op() -> None:
    rows = describe(registry())
    assert [row["name"] for row in rows] == sorted(registry().ops)
    gather = next(row for row in rows if row["name"] == "gather")
    assert gather["operands"] == ["x", "index?"]
    axis, *_, from_end = gather["attributes"]
    assert axis == {"name": "axis", "type": "int", "required": False, "doc": axis["doc"], "since": 1, "default": 0}
    assert (from_end["name"], from_end["since"]) == ("from_end", 2)


@pytest.mark.parametrize(
    ("attr", "value", "message"),
    [
        (Attr("int"), True, "attribute a must be a 64-bit integer, but is true"),
        (Attr("int"), 2**63, "attribute a must be a 64-bit integer, but is 9223372036854775808"),
        (Attr("float"), float("nan"), "attribute a must be a finite number, but is nan"),
        (Attr("float"), 10**400, "attribute a must be a finite number, but is 1000"),
        (Attr("string", choices=("x", "y")), "z", "attribute a must be one of x, y, but is “z”"),
        (Attr("ints"), [1, 2.0], "attribute a must be a list of 64-bit integers, but is"),
        (Attr("dtype"), "float128", "attribute a must be one of bool, int8,"),
        (Attr("tensor"), [1], "attribute a must be a tensor, but is"),
    ],
)
def test_attribute_values_are_checked(attr: Attr, value: Any, message: str) -> None:
    with pytest.raises(BadAttribute) as caught:
        bind({"a": attr}, {"a": value})
    assert caught.value.detail.startswith(message)
    assert len(caught.value.detail) < 250


def test_bound_attributes_are_complete() -> None:
    declared = {"a": Attr("ints", (1,)), "b": Attr("dtype"), "c": Attr("float", None)}
    assert bind(declared, {"b": "int8"}) == {"a": (1,), "b": np.dtype("int8"), "c": None}
    assert Attr("int").default is REQUIRED


def test_keys_distinguish_types_and_bits() -> None:
    values: list[Any] = [1, 1.0, True, 0.0, -0.0, (1,), (1.0,), np.zeros(1), np.zeros(1, "float32"), -np.zeros(1), "1"]
    assert len({key(v) for v in values}) == len(values)


def test_ops_have_only_the_methods_they_implement() -> None:
    for op in registry().ops.values():
        computes, has_rules = isinstance(op, Kernel), isinstance(op, Op)
        is_decomposed = isinstance(op, Composite) or op.name in ("grad", "input", "parameter")
        is_1d_conv = op.name in ("conv1d", "conv_transpose1d")  # they take their types from convolutions that compute
        assert computes != is_decomposed or is_1d_conv, op.name
        assert has_rules == (computes and bool(op.operands)), op.name
        assert hasattr(op, "forward") == computes, op.name
        assert hasattr(op, "batch") == has_rules, op.name


def test_no_gradient_rule_returns_no_cotangents() -> None:
    ops = [op for op in registry().ops.values() if isinstance(op.vjp, NoGradient)]
    assert ops
    assert all(op.vjp("g", "y", "a", "b") == [None, None] for op in ops)


def test_engine_has_no_stubs() -> None:
    stub = re.compile(r"never reached|NotImplementedError", re.IGNORECASE)
    assert not [
        path.name for path in Path(engine.__file__).parent.rglob("*.py") if stub.search(path.read_text("utf-8"))
    ]
