"""The OpenAPI 3.0.3 document is equivalent to the 3.1 document."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema_rs
import pytest
from openapi_spec_validator import OpenAPIV30SpecValidator
from openapi_spec_validator.validation.exceptions import OpenAPIValidationError

from service.web.pages.openapi import version30
from tests.conftest import Client

Json = dict[str, Any]


@pytest.fixture(scope="module")
def document31(client: Client) -> Json:
    return client.get("/openapi.json").json()


@pytest.fixture(scope="module")
def document30(client: Client) -> Json:
    response = client.get("/openapi-3.0.json")
    assert response.headers["content-type"] == "application/json"
    return response.json()


def document_with(**schemas: Json) -> Json:
    """Return a document with these schemas and no paths."""
    info = {"title": "t", "version": "1"}
    return {"openapi": "3.1.0", "info": info, "paths": {}, "components": {"schemas": schemas}}


def convert(schema: Json) -> Json:
    """Convert a schema to OpenAPI 3.0.3."""
    return version30(document_with(M=schema))["components"]["schemas"]["M"]


def test_untranslated_keyword_fails_validation(document31: Json) -> None:
    """A keyword that only 3.1 has must not reach the 3.0 document unnoticed."""
    changed = copy.deepcopy(document31)
    changed["components"]["schemas"]["Health"]["properties"]["status"] = {"const": "live"}
    with pytest.raises(OpenAPIValidationError):
        OpenAPIV30SpecValidator(version30(changed)).validate()


def test_both_documents_have_the_same_paths_and_schemas(document31: Json, document30: Json) -> None:
    assert {path: list(methods) for path, methods in document30["paths"].items()} == {
        path: list(methods) for path, methods in document31["paths"].items()
    }
    assert list(document30["components"]["schemas"]) == list(document31["components"]["schemas"])
    assert {key: document30[key] for key in ("info", "servers", "tags")} == {
        key: document31[key] for key in ("info", "servers", "tags")
    }


def test_examples_are_unchanged_in_the_30_document(document31: Json, document30: Json) -> None:
    for path, methods in document31["paths"].items():
        for method, operation in methods.items():
            converted = document30["paths"][path][method]
            assert {**converted, "requestBody": None, "responses": None} == {
                **operation, "requestBody": None, "responses": None,
            }  # fmt: skip
            assert converted.get("requestBody") == operation.get("requestBody")
            assert converted["responses"] == operation["responses"]
    assert document30["components"]["examples"] == document31["components"]["examples"]


@pytest.mark.parametrize("call", ["gradients", "forward"])
def test_30_schemas_accept_the_request_examples(document30: Json, call: str) -> None:
    described = document30["paths"][f"/v1/{call}"]["post"]["requestBody"]["content"]["application/json"]
    check = jsonschema_rs.Draft4Validator({**described["schema"], "components": document30["components"]})
    assert described["examples"]
    for example in described["examples"].values():
        check.validate(example["value"])
        assert not check.is_valid({**example["value"], "unknown": 1})


def test_reference_with_a_description_becomes_all_of(document30: Json) -> None:
    cotangent = document30["components"]["schemas"]["GradientsRequest"]["properties"]["cotangent"]
    assert cotangent["allOf"] == [{"$ref": "#/components/schemas/Tensor"}]
    assert cotangent["description"]
    assert "$ref" not in cotangent


def test_first_of_several_examples_is_used() -> None:
    assert convert({"type": "integer", "examples": [1, 2]}) == {"type": "integer", "example": 1}
    assert convert({"type": "array", "items": {"examples": [3]}}) == {"type": "array", "items": {"example": 3}}


def test_open_objects_state_additional_properties() -> None:
    assert convert({"type": "object"}) == {"type": "object", "additionalProperties": True}
    nested = convert({"type": "array", "items": {"type": "object", "additionalProperties": False}})
    assert nested["items"]["additionalProperties"] is False


def test_bare_reference_is_unchanged() -> None:
    assert convert({"$ref": "#/components/schemas/M"}) == {"$ref": "#/components/schemas/M"}


def test_properties_may_be_named_like_keywords() -> None:
    fields = {"type": "array", "properties": {"examples": {"type": "string"}, "$ref": {"type": "string"}}}
    assert convert(fields) == fields
    shown = {"examples": {"e": {"value": {"schema": {"$ref": "a", "examples": [1]}}}}}
    assert version30(document_with() | {"components": shown})["components"] == shown
    document = document_with()
    document["paths"] = {"/p": {"get": {"example": {"schema": {"$ref": "a", "examples": [1]}}}}}
    assert version30(document)["paths"] == document["paths"]


def test_parameter_schemas_are_converted() -> None:
    document = document_with()
    document["paths"] = {"/p": {"parameters": [{"name": "n", "in": "query", "schema": {"examples": [1]}}]}}
    assert version30(document)["paths"]["/p"]["parameters"][0]["schema"] == {"example": 1}


def test_input_document_is_not_modified(document31: Json) -> None:
    before = copy.deepcopy(document31)
    version30(document31)
    assert document31 == before
