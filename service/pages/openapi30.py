"""The OpenAPI document in version 3.0.3, for generators that do not read 3.1.

Schemas differ in three ways. Two are the version's, as far as this document meets them: there is no list of `examples`
but one `example`, and nothing may stand beside a `$ref`. And whatever is open to further fields, as all is that answers
hold, says so: clients in Go that are generated from this version refuse such fields where nothing is said. The newer
one says nothing, since in TypeScript such a message would take misspelt fields.
"""

from __future__ import annotations

from typing import Any, Final

from service.calls.description import Json

VERSION: Final = "3.0.3"


def version30(document: Json) -> Json:
    """The same calls and messages as the 3.1 document, which is left as it is."""
    return {
        **document,
        "openapi": VERSION,
        "paths": _around(document["paths"]),
        "components": {kind: _member(kind, of_kind) for kind, of_kind in document["components"].items()},
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
    if key == "schemas":
        return {name: _schema(schema) for name, schema in value.items()}
    return _schema(value) if key == "schema" else _around(value)


def _schema(schema: Json) -> Json:
    changed = {key: _keyword(key, value) for key, value in schema.items() if key != "examples"}
    if "examples" in schema:
        changed["example"] = schema["examples"][0]
    if "$ref" in changed and len(changed) > 1:
        changed["allOf"] = [{"$ref": changed.pop("$ref")}]
    if changed.get("type") == "object":
        changed.setdefault("additionalProperties", True)
    return changed


def _keyword(key: str, value: Any) -> Any:
    if key == "properties":
        return {name: _schema(schema) for name, schema in value.items()}
    return _schema(value) if key == "items" else value
