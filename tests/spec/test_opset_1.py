"""Opset 1 regression: bits, ids and errors match the recording made before opset 2."""

from __future__ import annotations

import json

import pytest

from engine import graph_id
from tests.contract.cases import Case
from tests.engine.printers import PRINTERS
from tests.sampling import sampled, together
from tests.spec.recording import (
    OPS,
    RECORDING,
    TIERS,
    case_key,
    error_digest,
    machine_digest,
    opset_1_cases,
    program_of,
    result_digest,
)

ANSWERS = json.loads(RECORDING.read_text(encoding="utf-8"))
needs_recording_machine = pytest.mark.skipif(
    ANSWERS["machine"] != machine_digest(), reason="bits were recorded by another processor, or other libraries"
)


@together
@needs_recording_machine
@pytest.mark.parametrize("case", opset_1_cases(), ids=str)
def test_opset_1_interpreted_bits_match_recording(case: Case) -> None:
    assert result_digest(case, "interpreted") == ANSWERS["bits"]["interpreted"][case_key(case)]


@together
@needs_recording_machine
@pytest.mark.skipif("llvm" not in PRINTERS, reason="needs llvmlite")
@pytest.mark.parametrize("case", sampled(opset_1_cases(), lambda case: [case.op.name]), ids=str)
def test_opset_1_compiled_bits_match_recording(case: Case) -> None:
    assert result_digest(case, "compiled") == ANSWERS["bits"]["compiled"][case_key(case)]


def test_opset_1_graph_ids_match_recording() -> None:
    assert {case_key(case): graph_id(program_of(case)) for case in opset_1_cases()} == ANSWERS["ids"]


@pytest.mark.slow
def test_opset_1_errors_match_recording() -> None:
    assert {op.name: error_digest(op.name) for op in OPS} == ANSWERS["errors"]


@pytest.mark.parametrize("tier", TIERS)
def test_recording_covers_opset_1(tier: str) -> None:
    assert {*ANSWERS["bits"][tier]} == {*map(case_key, opset_1_cases())}
