"""Infinite and NaN fill values: NumPy is the reference, in every float dtype."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from engine import LATEST, Compiler, Limits, Program, Statement, TensorType, registry
from engine.ir.errors import BadAttribute
from engine.ops.common.numerics import fill_word
from engine.runtime.numpy_backend import NumPyExecutor

WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def run_op(op: str, *operands: Any, opset: int = LATEST, **attrs: Any) -> Any:
    """The value of one node on inputs."""
    ops, n = registry().ops, len(operands)
    statements = [*[Statement(ops["input"])] * n, Statement(ops[op], tuple(range(n)), attrs)]
    types = {i: TensorType.of(x) for i, x in enumerate(operands)}
    plan = Compiler(Limits()).forward(Program(registry(), statements, opset=opset), types, [n]).plan
    return NumPyExecutor().run(plan, dict(enumerate(operands)))[0]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_fill_as_matches_numpy(word: str, dtype: str) -> None:
    actual = run_op("full", shape=[2, 3], dtype=dtype, fill_as=word)
    np.testing.assert_array_equal(actual, np.full((2, 3), WORDS[word], dtype))
    x = np.arange(3, dtype=dtype)
    padded = run_op("pad", x, pad_width=[2, 1], fill_as=word)
    np.testing.assert_array_equal(padded, np.pad(x, (2, 1), constant_values=WORDS[word]))
    assert actual.dtype == padded.dtype == dtype


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64"])
def test_fill_as_needs_a_float_dtype(dtype: str) -> None:
    with pytest.raises(BadAttribute, match=f"fill_as needs a float dtype, but the dtype is {dtype}"):
        run_op("full", shape=[2], dtype=dtype, fill_as="inf")
    with pytest.raises(BadAttribute, match=f"fill_as needs a float dtype, but the dtype is {dtype}"):
        run_op("pad", np.zeros(2, dtype), pad_width=[1, 1], fill_as="nan")


@pytest.mark.parametrize("fill", [0.0, 1.0])
def test_fill_as_and_fill_together_are_refused(fill: float) -> None:
    with pytest.raises(BadAttribute, match="fill_as replaces fill: state only one of them"):
        run_op("full", shape=[2], fill=fill, fill_as="inf")


@pytest.mark.parametrize("word", ["infinity", "-nan", "Inf", ""])
def test_unknown_fill_words_are_refused(word: str) -> None:
    with pytest.raises(BadAttribute, match="fill_as must be one of inf, -inf, nan"):
        run_op("full", shape=[2], fill_as=word)


def test_fill_as_is_refused_in_opset_1() -> None:
    with pytest.raises(BadAttribute, match="the attribute fill_as needs opset 2"):
        run_op("full", opset=1, shape=[2], fill_as="inf")


@pytest.mark.parametrize("word", WORDS)
def test_fill_word_of_special_values(word: str) -> None:
    assert fill_word(WORDS[word]) == word
    assert fill_word(1e308) is None
