"""The service against the frozen wire specification wire1.toml."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine import DTYPES, printable, registry
from examples.server import running_server
from service.core.errors import KINDS
from service.core.settings import Settings
from service.web.pages.openapi import DOCUMENT_NAMES
from tests.service.described import resolved

FROZEN = tomllib.loads(Path(__file__).with_name("wire1.toml").read_text(encoding="utf-8"))
SERVED = sorted(name for name, call in FROZEN["call"].items() if call.get("served"))
CODES = [(int(status), code) for status, codes in FROZEN["errors"].items() for code in codes]
METHODS = {"get", "put", "post", "delete"}

JSON_TYPES = {
    "int": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "string": {"type": "string"},
    "dtype": {"type": "string"},
    "op": {"type": "string"},
    "encoding": {"type": "string"},
    "number": {"type": "number", "format": "double"},
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_server("--device", "cpu") as address:
        yield address


@pytest.fixture(scope="module")
def document(url: str) -> dict[str, Any]:
    return httpx.get(url + "/openapi.json").json()


def check_fields(document: dict[str, Any], schema: dict[str, Any], promised: dict[str, str]) -> None:
    """Assert that each promised field exists with its type, and that optional fields are not required."""
    properties, required = schema["properties"], set(schema.get("required", ()))
    for field, promise in promised.items():
        assert field in properties, f"{field} is missing"
        check_type(document, properties[field], promise.partition(" =")[0].rstrip("?"))
        if promise.endswith("?") or "=" in promise:
            assert field not in required, f"{field} was promised to be optional"


def check_type(document: dict[str, Any], schema: dict[str, Any], kind: str) -> None:
    """Assert that the schema has the type `kind`."""
    schema = resolved(document, schema)
    if kind.endswith("[]"):
        assert schema["type"] == "array"
        check_type(document, schema["items"], kind.removesuffix("[]"))
    elif kind.startswith("{"):
        assert set(kind.strip("{}").split(", ")) <= set(schema["properties"])
    elif kind == "NT":
        assert {"node", "tensor"} <= set(schema["properties"])
    elif kind in JSON_TYPES:
        assert {key: schema.get(key) for key in JSON_TYPES[kind]} == JSON_TYPES[kind], kind
    else:
        assert schema["type"] == "object"
        assert schema.get("title", kind) == kind


@pytest.mark.parametrize(("status", "code"), CODES)
def test_error_statuses_match_spec(status: int, code: str) -> None:
    assert KINDS[code].status == status


def test_unspecified_codes_are_server_errors() -> None:
    promised = {code for _, code in CODES}
    added = set(KINDS) - promised
    assert all(KINDS[code].status >= 500 for code in added), f"not promised: {sorted(added)}"


@pytest.mark.slow
@pytest.mark.parametrize("model", sorted(set(FROZEN["model"]) - {"NT"}))
def test_message_fields_match_spec(document: dict[str, Any], model: str) -> None:
    check_fields(document, document["components"]["schemas"][model], FROZEN["model"][model])


@pytest.mark.slow
@pytest.mark.parametrize("call", SERVED)
def test_call_fields_match_spec(document: dict[str, Any], call: str) -> None:
    post = document["paths"][f"/v1/{call}"]["post"]
    request = post["requestBody"]["content"]["application/json"]["schema"]
    answer = post["responses"]["200"]["content"]["application/json"]["schema"]
    check_fields(document, resolved(document, request), FROZEN["call"][call]["request"])
    check_fields(document, resolved(document, answer), FROZEN["call"][call]["answer"])
    assert "timeout_ms" in {parameter["name"] for parameter in post["parameters"]}


def test_paths_match_spec(document: dict[str, Any]) -> None:
    described = {f"/{name}" for name in (*DOCUMENT_NAMES, "docs")}  # the documents need not describe themselves
    for method, paths in FROZEN["served_paths"].items():
        absent = [path for path in paths if path not in described and method not in document["paths"].get(path, {})]
        assert not absent, f"{method} {absent}"


def test_reserved_paths_are_not_documented(document: dict[str, Any]) -> None:
    assert set(document["paths"]).isdisjoint(FROZEN["reserved_paths"]["paths"])


def operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [operation for path in document["paths"].values() for method, operation in path.items() if method in METHODS]


def test_operation_ids_are_single_words(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for operation in operations(document)]
    assert len(set(ids)) == len(ids)
    assert not [name for name in ids if len(name) > 20 or not name.isidentifier()]


def test_op_enum_lists_canonical_names(document: dict[str, Any]) -> None:
    listed = document["components"]["schemas"]["GraphNode"]["properties"]["op"]["x-extensible-enum"]
    assert sorted(listed) == sorted(registry().ops)


def test_attributes_form_one_flat_model(document: dict[str, Any]) -> None:
    attrs = document["components"]["schemas"]["Attrs"]
    assert set(attrs["properties"]) == set(registry().attributes)
    assert not attrs.get("required")


def test_dtype_enum_matches_spec(document: dict[str, Any]) -> None:
    listed = document["components"]["schemas"]["Tensor"]["properties"]["dtype"]["x-extensible-enum"]
    assert listed == [*DTYPES]
    assert [name for name in listed if name in FROZEN["dtypes"]] == FROZEN["dtypes"], "later opsets add to them"


def schemas_in(value: object) -> Iterator[dict[str, Any]]:
    """Yield every object of the document that has a type."""
    if isinstance(value, list):
        for item in value:
            yield from schemas_in(item)
    elif isinstance(value, dict):
        if isinstance(value.get("type"), str | list):
            yield value
        for key, item in value.items():
            if key not in {"example", "examples"}:
                yield from schemas_in(item)


def test_numbers_have_format_and_no_schema_is_null(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    for schema in schemas_in(document):
        assert schema["type"] != "null"
        assert schema["type"] not in {"integer", "number"} or "format" in schema, schema


def test_models_are_not_split_into_input_and_output(document: dict[str, Any]) -> None:
    assert not [name for name in document["components"]["schemas"] if name.endswith(("-Input", "-Output"))]


def test_operations_document_errors(document: dict[str, Any]) -> None:
    for operation in operations(document):
        problems = [
            response
            for status, response in operation["responses"].items()
            if FROZEN["media_types"]["problem"] in resolved(document, response).get("content", {})
            and not status.startswith("2")
        ]
        assert problems, f"{operation['operationId']} documents no error"


def test_default_limits_match_spec() -> None:
    promised, fields = FROZEN["limits"], Settings.model_fields
    assert fields["max_nodes"].default == promised["nodes"]
    assert fields["max_rank"].default == promised["rank"]
    assert fields["max_body_bytes"].default == promised["json_body_bytes"]
    assert fields["json_depth"].default == promised["json_depth"]
    assert promised["echoed_name_characters"] == len(printable("x" * 1000))


def test_name_length_limit_matches_spec(document: dict[str, Any]) -> None:
    name = document["components"]["schemas"]["GraphNode"]["properties"]["name"]
    assert name["maxLength"] == FROZEN["limits"]["name_characters"]


@pytest.mark.slow
def test_worked_example_matches_answer(url: str) -> None:
    answer = httpx.post(url + "/v1/gradients", json=json.loads(FROZEN["example"]["request"]))
    assert answer.status_code == 200, answer.text
    actual, expected = answer.json(), json.loads(FROZEN["example"]["answer"])
    assert {key: actual[key] for key in expected} == expected
    # Nothing in the example is a product of float32 numbers, whose precision would be stated.
    assert set(actual["stats"]) >= set(FROZEN["model"]["Stats"]) - {"precision"}


@pytest.mark.slow
def test_alias_request_matches_op(url: str) -> None:
    """Accept an alias in upper, lower and mixed case."""
    tensor = {"dtype": "float64", "shape": [], "data": [0.5]}
    for spelling in ("ExpOp", "expop", "EXP", "exp"):
        graph = {"nodes": [{"op": "input"}, {"op": spelling, "operands": [0]}]}
        answer = httpx.post(url + "/v1/forward", json={"graph": graph, "feeds": [{"node": 0, "tensor": tensor}]})
        assert answer.json()["values"][0]["tensor"]["data"] == pytest.approx([1.6487212707001282], rel=1e-15)
