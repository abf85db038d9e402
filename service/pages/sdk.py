"""The OpenAPI document for generators of clients: the same operations in JSON alone, without examples.

Of a body or an answer in two media types, generators make what has two types, or send the wrong one.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from service.calls.description import Json
from service.wire.media import JSON

_EXAMPLES: Final = ("example", "examples")
_RESPONSE: Final = "#/components/responses/"
_REMARK: Final = (
    " This document is for generators of clients: it has JSON alone, and no examples. Those, and safetensors, are in "
    "[/openapi.json](/openapi.json)."
)


def sdk_version(document: Json) -> Json:
    """The same operations and messages as the full document in OpenAPI 3.1, which is left as it is."""
    plain = _plain(document)
    responses, kept = _merged(plain["components"]["responses"])
    paths = {
        path: {method: _led(operation, kept) for method, operation in methods.items()}
        for path, methods in plain["paths"].items()
    }
    return {
        **plain,
        "info": {**plain["info"], "description": plain["info"]["description"] + _REMARK},
        "paths": paths,
        "components": {**plain["components"], "responses": responses},
    }


def _plain(value: Any) -> Any:
    """Without examples, and in JSON alone where that is spoken."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _member(key, item) for key, item in value.items() if key not in _EXAMPLES}


def _member(key: str, value: Any) -> Any:
    if key == "properties":  # by their names, whatever these are
        return {name: _plain(schema) for name, schema in value.items()}
    if key == "content" and JSON in value:
        return {JSON: _plain(value[JSON])}
    return _plain(value)


def _merged(responses: Json) -> tuple[Json, dict[str, str]]:
    """Responses that differed by their examples alone, once; and for each name the one that it has now."""
    first: dict[bytes, str] = {}
    kept = {
        name: first.setdefault(orjson.dumps(response, option=orjson.OPT_SORT_KEYS), name)
        for name, response in responses.items()
    }
    return {name: responses[name] for name in first.values()}, kept


def _led(operation: Json, kept: dict[str, str]) -> Json:
    """With references to the responses that are kept."""
    answers = {status: _reference(response, kept) for status, response in operation["responses"].items()}
    return {**operation, "responses": answers}


def _reference(response: Json, kept: dict[str, str]) -> Json:
    if "$ref" not in response:
        return response
    return {"$ref": _RESPONSE + kept[response["$ref"].removeprefix(_RESPONSE)]}
