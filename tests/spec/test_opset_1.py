"""Opset 1 answers what it answered before there was another: the same bits, ids and errors, as they were recorded."""

from __future__ import annotations

import json

import pytest

from engine import graph_id
from tests.contract.cases import Case
from tests.engine.printers import PRINTERS
from tests.sampling import together
from tests.spec.recording import OPS, RECORDED, TIERS, bits, cases, errors, key, machine, program_of

ANSWERS = json.loads(RECORDED.read_text(encoding="utf-8"))
elsewhere = pytest.mark.skipif(
    ANSWERS["machine"] != machine(), reason="bits were recorded by another processor, or other libraries"
)


@together
@elsewhere
@pytest.mark.parametrize("case", cases(), ids=str)
def test_opset_1_gives_the_same_bits(case: Case) -> None:
    assert bits(case, "interpreted") == ANSWERS["bits"]["interpreted"][key(case)]


@together
@elsewhere
@pytest.mark.skipif("llvm" not in PRINTERS, reason="needs llvmlite")
@pytest.mark.parametrize("case", cases(), ids=str)
def test_opset_1_gives_the_same_bits_by_machine_code(case: Case) -> None:
    assert bits(case, "compiled") == ANSWERS["bits"]["compiled"][key(case)]


def test_opset_1_gives_the_same_ids() -> None:
    assert {key(case): graph_id(program_of(case)) for case in cases()} == ANSWERS["ids"]


@pytest.mark.slow
def test_opset_1_gives_the_same_errors() -> None:
    assert {op.name: errors(op.name) for op in OPS} == ANSWERS["errors"]


@pytest.mark.parametrize("tier", TIERS)
def test_all_of_opset_1_was_recorded(tier: str) -> None:
    assert {*ANSWERS["bits"][tier]} == {*map(key, cases())}
