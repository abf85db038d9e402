"""All OpenAPI documents: they are valid, repeat nothing, and let generated clients survive additions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV30SpecValidator, OpenAPIV31SpecValidator

from engine import DTYPES, registry
from service.web.pages.openapi import DOCUMENT_NAMES
from tests.conftest import Client
from tests.service.described import OPEN, Json, answers, operations, resolved

FULL, SDK = DOCUMENT_NAMES[:2], DOCUMENT_NAMES[2:]
JSON, PROBLEM = "application/json", "application/problem+json"
#: limit on the bytes of each document
MAX_BYTES = 400_000
#: names that collide with other types in generated code: from the DOM, libraries or other messages
COLLIDING = {"Node", "Range", "Store", "Alias", "Encoding", "Planned", "Limits"}
RENAMED = {"GraphNode", "ValueRange", "StoreEntry", "OpAlias", "TensorEncoding", "PlannedCall", "ServerLimits"}
WORDS = {"op": sorted(registry().ops), "dtype": sorted(DTYPES)}


@pytest.fixture(scope="module")
def documents(client: Client) -> dict[str, Json]:
    return {name: client.get(f"/{name}").json() for name in DOCUMENT_NAMES}


@pytest.fixture(params=DOCUMENT_NAMES)
def document(request: pytest.FixtureRequest, documents: dict[str, Json]) -> Json:
    return documents[request.param]


@pytest.fixture(params=FULL)
def full(request: pytest.FixtureRequest, documents: dict[str, Json]) -> Json:
    return documents[request.param]


@pytest.fixture(params=SDK)
def sdk(request: pytest.FixtureRequest, documents: dict[str, Json]) -> Json:
    return documents[request.param]


def objects(described: Any) -> Iterator[Json]:
    """Yield each object of a document, except those inside examples, which are data."""
    if isinstance(described, list):
        for item in described:
            yield from objects(item)
    elif isinstance(described, dict):
        yield described
        if not {"value"} <= set(described) <= {"value", "x-request"}:
            for item in described.values():
                yield from objects(item)


def schemas_under(document: Json, described: Any) -> Iterator[Json]:
    """Yield this schema and all schemas that it contains or refers to."""
    seen, todo = set(), [described]
    while todo:
        for each in objects(todo.pop()):
            yield each
            if each.get("$ref", "") not in ("", *seen):
                seen.add(each["$ref"])
                todo.append(resolved(document, each))


@pytest.mark.slow
def test_document_is_valid(document: Json) -> None:
    newer = document["openapi"].startswith("3.1.")
    assert newer or document["openapi"] == "3.0.3"
    (OpenAPIV31SpecValidator if newer else OpenAPIV30SpecValidator)(document).validate()


def test_references_resolve_and_every_component_is_used(document: Json) -> None:
    referred = {each["$ref"] for each in objects(document) if "$ref" in each}
    for reference in referred:
        resolved(document, {"$ref": reference})
    defined = {
        f"#/components/{kind}/{name}"
        for kind, named in document["components"].items()
        for name in named
        if kind != "securitySchemes"
    }
    assert referred == defined


@pytest.mark.parametrize("name", DOCUMENT_NAMES)
def test_document_size(client: Client, name: str) -> None:
    assert len(client.get(f"/{name}", headers={"Accept-Encoding": "identity"}).content) < MAX_BYTES


def test_refusals_are_shared_components(document: Json) -> None:
    for _, _, operation in operations(document):
        for status, response in operation["responses"].items():
            assert ("$ref" in response) == (status[0] not in "23"), operation["operationId"]


def test_components_are_not_duplicated(document: Json) -> None:
    for kind in ("responses", "examples"):
        texts = [repr(component) for component in document["components"].get(kind, {}).values()]
        assert len(set(texts)) == len(texts)


def test_refusal_examples_are_references_named_by_code(full: Json) -> None:
    for name, response in full["components"]["responses"].items():
        if name == "Refused":  # the default response has no example
            continue
        shown = response["content"][PROBLEM]["examples"]
        assert response["description"] == ", ".join(shown)
        for code, example in shown.items():
            assert resolved(full, example)["value"]["code"] == code
            assert set(example) == {"$ref"}


def test_op_and_dtype_fields_are_open_enumerations(document: Json) -> None:
    fields = [
        (name, field)
        for schema in document["components"]["schemas"].values()
        for name, field in schema.get("properties", {}).items()
        if name in WORDS
    ]
    assert {name for name, _ in fields} == set(WORDS)
    assert len(fields) > 8
    for name, field in fields:
        assert field["type"] == "string"
        assert sorted(field[OPEN]) == WORDS[name]
        assert "enum" not in field


def test_unknown_op_is_refused_with_a_suggestion(client: Client) -> None:
    def refused(**leaf: Any) -> tuple[str, str]:
        report = client.post("/v1/plan", json={"graph": {"nodes": [{"op": "parameter", **leaf}]}}).json()
        return report["code"], report["detail"]

    expected = "node 0 (paramter): there is no op called “paramter”; did you mean parameter?"
    assert refused(op="paramter") == ("unknown_op", expected)
    code, detail = refused(attrs={"dtype": "float31"})
    assert code == "bad_attribute"
    assert ", ".join(DTYPES) in detail


def test_answer_schemas_are_open(documents: dict[str, Json]) -> None:
    """Version 3.0 states additionalProperties. Version 3.1 omits it."""
    for name, document in documents.items():
        older = document["openapi"].startswith("3.0.")
        answer_schemas = [
            schema
            for *_, operation in operations(document)
            for _, response in answers(document, operation)
            for schema in schemas_under(document, response.get("content", {}))
            if schema.get("type") == "object"
        ]
        assert {schema["title"] for schema in answer_schemas} > {
            "GradientsAnswer",
            "Stats",
            "Tensor",
            "Attrs",
            "Problem",
        }
        for schema in answer_schemas:
            assert schema.get("additionalProperties") == (True if older else None), (name, schema["title"])


def test_message_names_do_not_collide(document: Json) -> None:
    names = set(document["components"]["schemas"])
    assert not names & COLLIDING
    assert {
        "GraphNode",
        "ValueRange",
        "StoreEntry",
        "OpAlias",
        "TensorEncoding",
        "PlannedCall",
        "ServerLimits",
    } <= names


def test_sdk_document_has_only_json(sdk: Json) -> None:
    for *_, operation in operations(sdk):
        bodies = [operation["requestBody"]] if "requestBody" in operation else []
        for described in (*bodies, *(response for _, response in answers(sdk, operation))):
            assert set(described.get("content", {})) in ({JSON}, {PROBLEM}, set()), operation["operationId"]


def test_sdk_document_has_no_examples(sdk: Json) -> None:
    properties = [id(each["properties"]) for each in objects(sdk) if "properties" in each]
    for each in objects(sdk):
        assert id(each) in properties or not {"example", "examples", "x-request"} & set(each), each


@pytest.mark.parametrize(("plain", "whole"), list(zip(SDK, FULL, strict=True)))
def test_sdk_document_matches_the_full_document(documents: dict[str, Json], plain: str, whole: str) -> None:
    ours, theirs = documents[plain], documents[whole]
    assert ours["openapi"] == theirs["openapi"]
    for ours_one, theirs_one in zip(operations(ours), operations(theirs), strict=True):
        (*place, operation), (*same_place, full) = ours_one, theirs_one
        assert place == same_place
        mine, whole = json_only(ours, operation), json_only(theirs, full)
        for status in mine["responses"]:  # one refusal for each status, which lists the codes and headers of all
            one, other = mine["responses"][status], whole["responses"][status]
            if status[0] not in "23":
                assert {*other.pop("description").split(", ")} <= {*one.pop("description").split(", ")}
                assert other.pop("headers").items() <= one.pop("headers").items()
        assert mine == whole
    assert list(ours["components"]["schemas"]) == list(theirs["components"]["schemas"])
    for name, schema in ours["components"]["schemas"].items():
        assert without_examples(theirs["components"]["schemas"][name]) == schema
    assert ours["info"]["description"].startswith(theirs["info"]["description"])
    assert "[/openapi.json](/openapi.json)" in ours["info"]["description"]


def json_only(document: Json, operation: Json) -> Json:
    """Return an operation without its examples and without media types other than JSON."""
    described = without_examples(operation)
    described["responses"] = {status: without_examples(response) for status, response in answers(document, operation)}
    for each in objects(described):
        if JSON in each:
            each.pop("application/vnd.safetensors", None)
    return described


def without_examples(described: Any) -> Any:
    """Return a copy of a description without its examples."""
    if isinstance(described, list):
        return [without_examples(item) for item in described]
    if not isinstance(described, dict):
        return described
    return {key: without_examples(item) for key, item in described.items() if key not in ("example", "examples")}
