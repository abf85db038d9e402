"""The OpenAPI document in version 3.0.3, for generators that do not read 3.1.

Schemas differ in two ways that this document meets: there is no list of `examples` but one `example`, and nothing may
stand beside a `$ref`.
"""

from __future__ import annotations

from typing import Any, Final

from service.calls.definition import Json

VERSION: Final = "3.0.3"


def version30(document: Json) -> Json:
    """The same calls and messages as the 3.1 document, which is left as it is."""
    schemas = {name: _schema(schema) for name, schema in document["components"]["schemas"].items()}
    return {
        **document,
        "openapi": VERSION,
        "paths": _around(document["paths"]),
        "components": {**document["components"], "schemas": schemas},
    }


def _around(value: Any) -> Any:
    """What stands around schemas; an example is data, whatever its keys are called."""
    if isinstance(value, list):
        return [_around(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _member(key, item) for key, item in value.items()}


def _member(key: str, value: Any) -> Any:
    if key in {"example", "examples"}:
        return value
    return _schema(value) if key == "schema" else _around(value)


def _schema(schema: Json) -> Json:
    changed = {key: _keyword(key, value) for key, value in schema.items() if key != "examples"}
    if "examples" in schema:
        changed["example"] = schema["examples"][0]
    if "$ref" in changed and len(changed) > 1:
        changed["allOf"] = [{"$ref": changed.pop("$ref")}]
    return changed


def _keyword(key: str, value: Any) -> Any:
    if key == "properties":
        return {name: _schema(schema) for name, schema in value.items()}
    return _schema(value) if key == "items" else value
