"""Error messages of every op, recorded in `messages.txt`: one line for each misuse.

The misuses are derived from the declaration of each op of the frozen opset, so that none is forgotten.
`GRADSERVE_UPDATE_GOLDEN=1` rewrites the file; then read the diff as a client would read the messages.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Compiler, EngineError, Limits, Program, Statement, TensorType, registry
from engine.ir.op import Definition
from engine.ir.sample import Operand
from tests.sampling import together

GOLDEN_FILE = Path(__file__).parent / "messages.txt"
FROZEN = tomllib.loads((Path(__file__).parents[1] / "spec/opset1.toml").read_text())
OPS = [op for name, op in registry().ops.items() if name in FROZEN["op"] and op.samples]
WRONG_KIND = {
    "int": "x", "float": "x", "number": "x", "bool": 1, "string": 7, "ints": [1.5], "dtype": "float8", "tensor": [1],
}  # fmt: skip

Misuse = tuple[str, list[TensorType], dict[str, Any]]


def operand_type(operand: Operand) -> TensorType:
    dtype = {"real": "float64", "int": "int64", "bool": "bool"}[operand.kind]
    return TensorType(operand.shape, np.dtype(dtype))


def misuses(op: Definition) -> Iterator[Misuse]:
    """Yield wrong counts, dtypes, attributes and shapes for the largest sample of an op."""
    first = [sample for sample in op.samples if all(op.attrs[name].since == 1 for name in sample.attrs)]
    sample = max(first, key=lambda s: (len(s.operands), sum(len(o.shape) for o in s.operands)))
    types, attrs = [operand_type(o) for o in sample.operands], dict(sample.attrs)
    yield "no operands at all", [], attrs
    yield "nine operands too many", [*types, *[TensorType((), np.dtype("float64"))] * 9], attrs
    yield "an unknown attribute", types, {**attrs, "colour": 1}
    for name, attr in op.attrs.items():
        if attr.since > 1:
            continue
        yield f"{name} of another kind", types, {**attrs, name: WRONG_KIND[attr.kind]}
        yield f"without {name}", types, {k: v for k, v in attrs.items() if k != name}
        yield from attribute_misuses(name, attr.kind, types, attrs)
    for i, type in enumerate(types):
        yield from operand_misuses(i, type, types, attrs)


def attribute_misuses(name: str, kind: str, types: list[TensorType], attrs: dict[str, Any]) -> Iterator[Misuse]:
    values: dict[str, list[Any]] = {"int": [-99, 99], "ints": [[99], [0, 0], [-2, -2, -2]], "string": ["?"]}
    for value in values.get(kind, []):
        yield f"{name} = {value}", types, {**attrs, name: value}


def operand_misuses(i: int, type: TensorType, types: list[TensorType], attrs: dict[str, Any]) -> Iterator[Misuse]:
    def replaced(other: TensorType) -> list[TensorType]:
        return [other if j == i else t for j, t in enumerate(types)]

    for dtype in FROZEN["dtypes"]:
        yield f"operand {i} of {dtype}", replaced(type.with_dtype(dtype)), attrs
    yield f"operand {i} of one more axis", replaced(type.with_shape((7, *type.shape))), attrs
    yield f"operand {i} of no axes", replaced(type.with_shape(())), attrs
    if type.shape:
        yield f"operand {i} longer", replaced(type.with_shape((*type.shape[:-1], type.shape[-1] + 5))), attrs


def error_of(op: Definition, types: list[TensorType], attrs: dict[str, Any]) -> str | None:
    """Return the code and message of the error, or None if the use is valid."""
    ops = registry().ops
    statements = [Statement(ops["input"]) for _ in types]
    attributes = {name: list(v) if isinstance(v, tuple) else v for name, v in attrs.items()}
    target = len(types)
    statements.append(Statement(op, tuple(range(target)), attributes))
    if op.several:
        statements.append(Statement(ops["get_output"], (target,), {"index": 0}))
    try:
        Compiler(Limits()).forward(Program(registry(), statements), dict(enumerate(types)))
    except EngineError as error:
        return f"{error.code} | {error.detail}"
    return None


def error_lines(op: Definition) -> list[str]:
    errors = ((misuse, error_of(op, types, attrs)) for misuse, types, attrs in misuses(op))
    return [f"{op.name} | {misuse} | {error}" for misuse, error in errors if error is not None]


def golden_lines() -> dict[str, list[str]]:
    by_op: dict[str, list[str]] = {}
    for line in GOLDEN_FILE.read_text().splitlines():
        by_op.setdefault(line.partition(" | ")[0], []).append(line)
    return by_op


@pytest.mark.skipif("GRADSERVE_UPDATE_GOLDEN" not in os.environ, reason="writes the golden file")
def test_update_messages() -> None:
    GOLDEN_FILE.write_text("".join(f"{line}\n" for op in OPS for line in error_lines(op)))


@together
@pytest.mark.parametrize("op", OPS, ids=str)
def test_error_messages_match_golden_file(op: Definition) -> None:
    assert error_lines(op) == golden_lines().get(op.name, [])


def test_golden_file_covers_ops_with_operands() -> None:
    assert {op.name for op in OPS if op.operands} <= set(golden_lines())


@together
@pytest.mark.parametrize("op", OPS, ids=str)
def test_error_messages_are_short(op: Definition) -> None:
    for line in golden_lines().get(op.name, []):
        assert len(line) < 400
        assert f"({op.name}): " in line
        assert "None" not in line.replace("none", "")
