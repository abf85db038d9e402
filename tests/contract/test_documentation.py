"""Documentation of every op, and coverage of its attributes and choices by its samples."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from engine import registry
from engine.ir.attributes import Attr
from engine.ir.op import Definition
from tests.engine.ops.run import run
from tests.sampling import together

OPS = list(registry().ops.values())
LEAVES = {"input", "parameter", "get_output"}
#: samples cannot contain functions: tests/engine/ops has programs with these ops
WITH_FUNCTIONS = {op.name for op in OPS if op.functions}


@together
@pytest.mark.parametrize("op", OPS, ids=str)
def test_op_is_documented(op: Definition) -> None:
    doc = inspect.cleandoc(type(op).__doc__ or "")
    assert doc.endswith((".", ")"))
    assert op.gradient
    assert all(attr.doc for attr in op.attrs.values())
    assert set(", ".join(op.aliases.values()).split(", ")) <= {"", "born", "cjc", "minima", "sadl"}


@together
@pytest.mark.parametrize("op", [op for op in OPS if op.name not in LEAVES | WITH_FUNCTIONS], ids=str)
def test_samples_cover_every_attribute_and_choice(op: Definition) -> None:
    assert op.samples
    for name, attr in op.attrs.items():
        used = [sample.attrs[name] for sample in op.samples if name in sample.attrs]
        assert used, f"no sample of {op.name} sets {name}"
        for choice in attr.choices:
            assert choice in [*used, *_default(op, name, attr)], f"no sample of {op.name} has {name}={choice}"


def _default(op: Definition, name: str, attr: Attr) -> list[object]:
    return [attr.default] if any(name not in s.attrs for s in op.samples) else []


def test_samples_include_and_omit_optional_operands() -> None:
    for op in OPS:
        least, most = op.arity
        counts = {len(sample.operands) for sample in op.samples}
        if op.name not in LEAVES and least != most:
            assert len(counts) > 1 or most == float("inf"), f"samples of {op.name} have only {counts} operands"


def test_commutative_ops_are_exact() -> None:
    """Compare bit by bit, because one node may serve for both orders."""
    commuting = {op.name for op in OPS if op.commutative}
    assert commuting == {"add", "mul", "equal", "not_equal", "logical_and", "logical_or"}
    numbers = np.array([0, -0.0, 1, -2.5, 1e300, np.inf, np.nan, 0.1])
    for name in commuting:
        for other in (numbers[::-1], np.roll(numbers, 1)):
            np.testing.assert_array_equal(run(name, numbers, other), run(name, other, numbers))
