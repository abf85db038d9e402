"""The case files are current, match their schema, and cover every op, code, dtype and call."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from clients.conformance.bits import SAFETENSORS
from clients.conformance.cases import FOLDER, GENERATED, KINDS, Case, cases, program_input, read
from clients.conformance.make import content
from clients.conformance.making.function_cases import DECAY
from clients.conformance.steps import graph_of
from engine import registry
from engine.ir.tensor_type import ELEMENT_TYPES
from service.api.calls import calls
from service.core.errors import KINDS as CODES
from tests.docs.marked import blocks

SCHEMA = json.loads((FOLDER / "schema.json").read_text(encoding="utf-8"))
#: parts of the ids of cases that name unknown ops
UNKNOWN_OP_IDS = ("unknown", "two-faults", "another-spelling")


@pytest.mark.parametrize("kind", KINDS)
def test_files_are_current(kind: str) -> None:
    stored = (GENERATED / f"{kind}.json").read_text(encoding="utf-8")
    assert stored == content(kind), "python -m clients.conformance.make writes it"


def test_schema_is_valid() -> None:
    jsonschema_rs.meta.validate(SCHEMA)


@pytest.mark.parametrize("kind", KINDS)
def test_files_match_the_schema(kind: str) -> None:
    jsonschema_rs.validate(SCHEMA, read(kind))


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("tensors", {"kind": "build"}),
        ("tensors", {"form": "text"}),
        ("tensors", {"more": 1}),
        ("tensors", {"want": {}}),
        ("graphs", {"steps": [{"op": "input", "operands": ["this"]}]}),
        ("graphs", {"id": "With spaces"}),
        ("exchanges", {"calls": [{"do": "nothing"}]}),
        ("exchanges", {"answers": [{"close": "behind"}]}),
        ("exchanges", {"want": {"results": [{"raised": {"type": "unheard"}}], "waits": []}}),
        ("live", {"client": {"colour": "blue"}}),
    ],
)
def test_schema_refuses_changed_files(kind: str, changes: dict[str, Any]) -> None:
    file = read(kind)
    file["cases"][0] = file["cases"][0] | changes
    assert not jsonschema_rs.is_valid(SCHEMA, file)


@pytest.mark.slow
def test_at_least_400_unique_ids() -> None:
    ids = [case["id"] for case in cases()]
    assert len(ids) == len(set(ids)) >= 400


def test_live_function_matches_the_wire_page() -> None:
    assert graph_of(DECAY) == json.loads(blocks("docs/wire.md", "functions")[0])
    (register, _) = next(case["calls"] for case in cases(["live"], "live-functions-registration"))
    assert {name: register[name] for name in DECAY} == DECAY


def test_dtypes_match_the_wire() -> None:
    assert {element.name: element.safetensors for element in ELEMENT_TYPES} == SAFETENSORS


@pytest.mark.parametrize("dtype", SAFETENSORS)
@pytest.mark.parametrize("kind", ["encode", "decode"])
def test_every_dtype_has_cases_in_every_form(kind: str, dtype: str) -> None:
    ids = {case["id"] for case in cases(["tensors"], f"{kind}-{dtype}-")}
    for form in ("json", "base64", "safetensors"):
        for name in ("zero-d", "empty", "rows"):
            assert f"{kind}-{dtype}-{name}-{form}" in ids


def ops_of(case: Case) -> set[str]:
    steps = [*case.get("steps", ())]
    for call in case.get("calls", ()):
        steps += [*call.get("steps", ()), *call.get("graph", {}).get("steps", ())]
    return {step["op"] for step in steps}


def test_every_op_has_a_build_case() -> None:
    built = {op for case in cases(["graphs"]) for op in ops_of(case)}
    assert set(registry().ops) <= built


def test_cases_name_only_existing_ops() -> None:
    registered = set(registry().ops)
    unknown = {case["id"]: ops_of(case) - registered for case in cases() if ops_of(case) - registered}
    assert not {name for name in unknown if not any(word in name for word in UNKNOWN_OP_IDS)}


def test_every_error_code_has_a_case() -> None:
    covered = {
        result["raised"].get("code")
        for case in cases(["exchanges"])
        for result in case["want"]["results"]
        if "raised" in result
    }
    assert set(CODES) <= covered


@pytest.mark.parametrize("kind", ["exchanges", "live"])
def test_every_call_has_a_case(kind: str) -> None:
    called = {call["do"] for case in cases([kind]) for call in case["calls"]}
    others = {"register", "put", "get", "delete", "list_tensors", "list_graphs", "ops"}
    model_calls = {"put_model", "get_model", "delete_model", "list_models", "delete_graph"}
    assert called == set(calls()) | others | model_calls


def test_program_input_hides_expected_results() -> None:
    for case in cases():
        assert not {"want", "saw", "answers"} & set(program_input(case, "http://127.0.0.1:1"))
