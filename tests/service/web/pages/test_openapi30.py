"""The 3.0.3 document says what the 3.1 one says."""

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
def newer(client: Client) -> Json:
    return client.get("/openapi.json").json()


@pytest.fixture(scope="module")
def older(client: Client) -> Json:
    response = client.get("/openapi-3.0.json")
    assert response.headers["content-type"] == "application/json"
    return response.json()


def around(**schemas: Json) -> Json:
    """A document that has these messages and no calls."""
    info = {"title": "t", "version": "1"}
    return {"openapi": "3.1.0", "info": info, "paths": {}, "components": {"schemas": schemas}}


def converted(schema: Json) -> Json:
    """The message as 3.0.3 has it."""
    return version30(around(M=schema))["components"]["schemas"]["M"]


def test_what_the_copy_does_not_translate_is_noticed(newer: Json) -> None:
    """A keyword of 3.1 alone, used one day, must not pass unseen into the copy."""
    changed = copy.deepcopy(newer)
    changed["components"]["schemas"]["Health"]["properties"]["status"] = {"const": "live"}
    with pytest.raises(OpenAPIValidationError):
        OpenAPIV30SpecValidator(version30(changed)).validate()


def test_both_have_the_same_calls_and_messages(newer: Json, older: Json) -> None:
    assert {path: list(methods) for path, methods in older["paths"].items()} == {
        path: list(methods) for path, methods in newer["paths"].items()
    }
    assert list(older["components"]["schemas"]) == list(newer["components"]["schemas"])
    assert {key: older[key] for key in ("info", "servers", "tags")} == {
        key: newer[key] for key in ("info", "servers", "tags")
    }


def test_every_example_is_in_the_copy_unchanged(newer: Json, older: Json) -> None:
    for path, methods in newer["paths"].items():
        for method, operation in methods.items():
            again = older["paths"][path][method]
            assert {**again, "requestBody": None, "responses": None} == {
                **operation, "requestBody": None, "responses": None,
            }  # fmt: skip
            assert again.get("requestBody") == operation.get("requestBody")
            assert again["responses"] == operation["responses"]
    assert older["components"]["examples"] == newer["components"]["examples"]


@pytest.mark.parametrize("call", ["gradients", "forward"])
def test_the_messages_of_the_copy_take_the_request_examples(older: Json, call: str) -> None:
    shown = older["paths"][f"/v1/{call}"]["post"]["requestBody"]["content"]["application/json"]
    check = jsonschema_rs.Draft4Validator({**shown["schema"], "components": older["components"]})
    assert shown["examples"]
    for example in shown["examples"].values():
        check.validate(example["value"])
        assert not check.is_valid({**example["value"], "unknown": 1})


def test_a_referred_message_keeps_its_description_and_its_type(older: Json) -> None:
    cotangent = older["components"]["schemas"]["GradientsRequest"]["properties"]["cotangent"]
    assert cotangent["allOf"] == [{"$ref": "#/components/schemas/Tensor"}]
    assert cotangent["description"]
    assert "$ref" not in cotangent


def test_a_list_of_examples_becomes_its_first() -> None:
    assert converted({"type": "integer", "examples": [1, 2]}) == {"type": "integer", "example": 1}
    assert converted({"type": "array", "items": {"examples": [3]}}) == {"type": "array", "items": {"example": 3}}


def test_what_is_open_says_so() -> None:
    assert converted({"type": "object"}) == {"type": "object", "additionalProperties": True}
    nested = converted({"type": "array", "items": {"type": "object", "additionalProperties": False}})
    assert nested["items"]["additionalProperties"] is False


def test_a_reference_alone_stays_one() -> None:
    assert converted({"$ref": "#/components/schemas/M"}) == {"$ref": "#/components/schemas/M"}


def test_fields_and_data_may_be_called_as_keywords_are() -> None:
    fields = {"type": "array", "properties": {"examples": {"type": "string"}, "$ref": {"type": "string"}}}
    assert converted(fields) == fields
    shown = {"examples": {"e": {"value": {"schema": {"$ref": "a", "examples": [1]}}}}}
    assert version30(around() | {"components": shown})["components"] == shown
    document = around()
    document["paths"] = {"/p": {"get": {"example": {"schema": {"$ref": "a", "examples": [1]}}}}}
    assert version30(document)["paths"] == document["paths"]


def test_schemas_of_parameters_are_translated_too() -> None:
    document = around()
    document["paths"] = {"/p": {"parameters": [{"name": "n", "in": "query", "schema": {"examples": [1]}}]}}
    assert version30(document)["paths"]["/p"]["parameters"][0]["schema"] == {"example": 1}


def test_the_document_given_is_left_as_it_is(newer: Json) -> None:
    before = copy.deepcopy(newer)
    version30(newer)
    assert newer == before
