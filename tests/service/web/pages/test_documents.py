"""All OpenAPI documents: they are valid, say each thing once, and generated clients outlive what is added."""

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
#: bytes of the largest
MOST = 400_000
#: names that other types of generated code have: of the DOM, of libraries, of other messages
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
    """Every object of a document but for what is in examples, which is data."""
    if isinstance(described, list):
        for item in described:
            yield from objects(item)
    elif isinstance(described, dict):
        yield described
        if not {"value"} <= set(described) <= {"value", "x-request"}:
            for item in described.values():
                yield from objects(item)


def schemas_under(document: Json, described: Any) -> Iterator[Json]:
    """Every schema that this is, has, or refers to."""
    seen, todo = set(), [described]
    while todo:
        for each in objects(todo.pop()):
            yield each
            if each.get("$ref", "") not in ("", *seen):
                seen.add(each["$ref"])
                todo.append(resolved(document, each))


@pytest.mark.slow
def test_it_is_valid(document: Json) -> None:
    newer = document["openapi"].startswith("3.1.")
    assert newer or document["openapi"] == "3.0.3"
    (OpenAPIV31SpecValidator if newer else OpenAPIV30SpecValidator)(document).validate()


def test_every_reference_leads_somewhere_and_to_every_component(document: Json) -> None:
    referred = {each["$ref"] for each in objects(document) if "$ref" in each}
    for reference in referred:
        resolved(document, {"$ref": reference})
    there = {
        f"#/components/{kind}/{name}"
        for kind, named in document["components"].items()
        for name in named
        if kind != "securitySchemes"
    }
    assert referred == there


@pytest.mark.parametrize("name", DOCUMENT_NAMES)
def test_its_size(client: Client, name: str) -> None:
    assert len(client.get(f"/{name}", headers={"Accept-Encoding": "identity"}).content) < MOST


def test_no_refusal_stands_where_it_is_answered(document: Json) -> None:
    for _, _, operation in operations(document):
        for status, response in operation["responses"].items():
            assert ("$ref" in response) == (status[0] not in "23"), operation["operationId"]


def test_components_stand_once(document: Json) -> None:
    for kind in ("responses", "examples"):
        texts = [repr(component) for component in document["components"].get(kind, {}).values()]
        assert len(set(texts)) == len(texts)


def test_examples_of_refusals_are_referred_to_by_their_codes(full: Json) -> None:
    for response in full["components"]["responses"].values():
        shown = response["content"][PROBLEM]["examples"]
        assert response["description"] == ", ".join(shown)
        for code, example in shown.items():
            assert resolved(full, example)["value"]["code"] == code
            assert set(example) == {"$ref"}


def test_words_are_open(document: Json) -> None:
    found = [
        (name, field)
        for schema in document["components"]["schemas"].values()
        for name, field in schema.get("properties", {}).items()
        if name in WORDS
    ]
    assert {name for name, _ in found} == set(WORDS)
    assert len(found) > 8
    for name, field in found:
        assert field["type"] == "string"
        assert sorted(field[OPEN]) == WORDS[name]
        assert "enum" not in field


def test_what_is_unknown_is_refused_with_the_nearest_name(client: Client) -> None:
    def refused(**leaf: Any) -> tuple[str, str]:
        report = client.post("/v1/plan", json={"graph": {"nodes": [{"op": "parameter", **leaf}]}}).json()
        return report["code"], report["detail"]

    told = "node 0 (paramter): there is no op called “paramter”; did you mean parameter?"
    assert refused(op="paramter") == ("unknown_op", told)
    code, detail = refused(attrs={"dtype": "float31"})
    assert code == "bad_attribute"
    assert ", ".join(DTYPES) in detail


def test_what_answers_hold_is_open(documents: dict[str, Json]) -> None:
    """In 3.0 it says so. In 3.1 it says nothing: no message there takes fields that nobody has described."""
    for name, document in documents.items():
        older = document["openapi"].startswith("3.0.")
        held = [
            schema
            for *_, operation in operations(document)
            for _, response in answers(document, operation)
            for schema in schemas_under(document, response.get("content", {}))
            if schema.get("type") == "object"
        ]
        assert {schema["title"] for schema in held} > {"GradientsAnswer", "Stats", "Tensor", "Attrs", "Problem"}
        for schema in held:
            assert schema.get("additionalProperties") == (True if older else None), (name, schema["title"])


def test_names_of_messages_are_nobody_else_s(document: Json) -> None:
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


def test_one_for_generators_has_json_alone(sdk: Json) -> None:
    for *_, operation in operations(sdk):
        bodies = [operation["requestBody"]] if "requestBody" in operation else []
        for described in (*bodies, *(response for _, response in answers(sdk, operation))):
            assert set(described.get("content", {})) in ({JSON}, {PROBLEM}, set()), operation["operationId"]


def test_one_for_generators_has_no_examples(sdk: Json) -> None:
    properties = [id(each["properties"]) for each in objects(sdk) if "properties" in each]
    for each in objects(sdk):
        assert id(each) in properties or not {"example", "examples", "x-request"} & set(each), each


@pytest.mark.parametrize(("plain", "whole"), list(zip(SDK, FULL, strict=True)))
def test_one_for_generators_says_what_the_full_one_says(documents: dict[str, Json], plain: str, whole: str) -> None:
    ours, theirs = documents[plain], documents[whole]
    assert ours["openapi"] == theirs["openapi"]
    for ours_one, theirs_one in zip(operations(ours), operations(theirs), strict=True):
        (*place, operation), (*same_place, full) = ours_one, theirs_one
        assert place == same_place
        assert said(ours, operation) == said(theirs, full)
    assert list(ours["components"]["schemas"]) == list(theirs["components"]["schemas"])
    for name, schema in ours["components"]["schemas"].items():
        assert without_examples(theirs["components"]["schemas"][name]) == schema
    assert ours["info"]["description"].startswith(theirs["info"]["description"])
    assert "[/openapi.json](/openapi.json)" in ours["info"]["description"]


def said(document: Json, operation: Json) -> Json:
    """All of an operation that is neither an example nor in another media type than JSON."""
    described = without_examples(operation)
    described["responses"] = {status: without_examples(response) for status, response in answers(document, operation)}
    for each in objects(described):
        if JSON in each:
            each.pop("application/vnd.safetensors", None)
    return described


def without_examples(described: Any) -> Any:
    """The same without them."""
    if isinstance(described, list):
        return [without_examples(item) for item in described]
    if not isinstance(described, dict):
        return described
    return {key: without_examples(item) for key, item in described.items() if key not in ("example", "examples")}
