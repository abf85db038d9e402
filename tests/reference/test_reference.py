"""Every op, under every spelling, through HTTP: values and gradients against an independent computation."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Client
from tests.reference.agreement import check, seed
from tests.reference.case import Case
from tests.reference.client import Graph
from tests.reference.families import ALL
from tests.sampling import sampled, together

OPSET = tomllib.loads((Path(__file__).parents[1] / "spec" / "opset1.toml").read_text(encoding="utf-8"))["op"]
FIRST_PART = {name: op for name, op in OPSET.items() if op.get("part", 1) == 1}


def op_and_kind(case: Case) -> list[tuple[str, ...]]:
    """Return the op with the label of the case, and with the names of its attributes."""
    return [(case.op, case.label), (case.op, "attrs", *sorted(case.attrs))]


@together
@pytest.mark.parametrize("case", sampled(ALL, op_and_kind), ids=str)
def test_values_and_gradients(client: Client, case: Case) -> None:
    check(Graph(client), case, case.op)


def spellings() -> Iterator[tuple[str, Case]]:
    """Every alias, as it is written with one case of its op, and in capitals with another."""
    for name, op in FIRST_PART.items():
        for alias in op.get("aliases", {}):
            first, *others = [c for c in ALL if c.op == name]
            yield alias, first
            yield alias.upper(), next(iter(others), first)


@together
@pytest.mark.parametrize(("alias", "case"), list(spellings()), ids=str)
def test_every_spelling(client: Client, alias: str, case: Case) -> None:
    check(Graph(client), case, alias)


def test_every_op_and_alias_has_a_case() -> None:
    assert not set(FIRST_PART) - {case.op for case in ALL}
    aliases = {alias for op in FIRST_PART.values() for alias in op.get("aliases", {})}
    assert not aliases - {alias for alias, _ in spellings()}


def narrow(case: Case) -> bool:
    """Cases whose operands are float64 alone, at points that float32 can hold."""
    return case.label != "special" and bool(case.arrays) and "dtype" not in case.attrs


def narrow_cases() -> list[Case]:
    """For each op, the first case and every second one after it."""
    of_op: dict[str, list[Case]] = {}
    for case in filter(narrow, ALL):
        of_op.setdefault(case.op, []).append(case)
    return [case for cases in of_op.values() for case in cases[::2]]


@together
@pytest.mark.parametrize("case", sampled(narrow_cases(), op_and_kind), ids=str)
def test_float32_stays_float32(client: Client, case: Case) -> None:
    rounded = replace(case, arrays=tuple(a.astype("float32") if a.dtype.kind == "f" else a for a in case.arrays))
    g = Graph(client)
    leaves, outputs = rounded.written(g, case.op)
    for k, (actual, value) in enumerate(zip(g.forward(*outputs), case.values(), strict=True)):
        if value.dtype.kind == "f" and any(a.dtype.kind == "f" for a in case.arrays):
            assert actual.dtype == np.float32
            np.testing.assert_allclose(actual, value, 2e-5, 2e-5)
            wrt = [i for i in leaves if g.feeds[i].dtype.kind == "f"]
            _, *gradients = g.gradients(outputs[k], wrt, seed(value).astype("float32"))
            assert all(a.dtype == np.float32 for a in gradients)
