"""OpenAPI documents as they are served. One is generated in advance, since it depends on no setting."""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from hashlib import blake2b
from importlib.resources import files
from typing import Any, Final, NamedTuple

import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from service.api.calls.description import Json
from service.api.media import GZIP, JSON, takes_gzip
from service.core.errors import with_prefixed_links
from service.store.changes import header_condition
from service.web.state import state_of

VERSION: Final = "3.0.3"
_EXAMPLES: Final = ("example", "examples")
_RESPONSE: Final = "#/components/responses/"
_REMARK: Final = (
    " This document is for client generators: it describes only JSON, without examples. [/openapi.json](/openapi.json) "
    "has the examples and safetensors."
)
#: file of the wheel that `make docs` writes
SHIPPED: Final = "openapi.json"
#: names of the full document and of the one for generators of clients, each in OpenAPI 3.1 and 3.0
DOCUMENT_NAMES: Final = (SHIPPED, "openapi-3.0.json", "openapi-sdk.json", "openapi-sdk-3.0.json")
_ETAG_BYTES: Final = 8


def version30(document: Json) -> Json:
    """Convert the document to OpenAPI 3.0.3, for generators that do not read 3.1.

    Schemas differ in three ways. Two are differences of the versions: `example` replaces the list `examples`, and
    `$ref` has no siblings. The third: schemas of everything in responses state that further fields are allowed. Go
    clients generated from 3.0 refuse such fields otherwise. In 3.1 this is left out, since TypeScript would accept
    misspelt fields then.
    """
    return {
        **document,
        "openapi": VERSION,
        "paths": _convert(document["paths"]),
        "components": {kind: _convert_member(kind, of_kind) for kind, of_kind in document["components"].items()},
    }


def _convert(value: Any) -> Any:
    """Convert everything around schemas, except examples, which are data."""
    if isinstance(value, list):
        return [_convert(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _convert_member(key, item) for key, item in value.items()}


def _convert_member(key: str, value: Any) -> Any:
    if key in {"example", "examples"}:
        return value
    if key == "schemas":
        return {name: _convert_schema(schema) for name, schema in value.items()}
    return _convert_schema(value) if key == "schema" else _convert(value)


def _convert_schema(schema: Json) -> Json:
    converted = {key: value for key, value in schema.items() if key != "examples"}
    if "properties" in schema:
        converted["properties"] = {
            name: _convert_schema(property_schema) for name, property_schema in schema["properties"].items()
        }
    if "items" in schema:
        converted["items"] = _convert_schema(schema["items"])
    if "examples" in schema:
        converted["example"] = schema["examples"][0]
    if "$ref" in converted and len(converted) > 1:
        converted["allOf"] = [{"$ref": converted.pop("$ref")}]
    if converted.get("type") == "object":
        converted.setdefault("additionalProperties", True)
    return converted


def sdk_version(document: Json) -> Json:
    """Make the document for generators of clients: the same operations in JSON alone, without examples.

    Generators choose one type for a body with two media types, or send the wrong one.
    """
    plain = _without_examples(document)
    components = plain["components"]
    responses: dict[str, Json] = {}
    paths = {path: {**methods} for path, methods in plain["paths"].items()}
    for methods in paths.values():
        for method, operation in methods.items():
            answers = {
                status: _merge_refusal(status, response, components["responses"], responses)
                for status, response in operation["responses"].items()
            }
            methods[method] = {**operation, "responses": answers}
    return {
        **plain,
        "info": {**plain["info"], "description": plain["info"]["description"] + _REMARK},
        "paths": paths,
        "components": {**components, "responses": dict(sorted(responses.items()))},
    }


def _merge_refusal(status: str, response: Json, refusals: Mapping[str, Json], merged: dict[str, Json]) -> Json:
    """Add the refusal that `response` refers to, if it is one, to the only one of its status in `merged`.

    Return a reference to that one. Generators would make a type of each refusal, though all have the same schema.
    """
    if "$ref" not in response:
        return response
    refusal = refusals[response["$ref"].removeprefix(_RESPONSE)]
    name = "Refused" if status == "default" else f"Refused{status}"
    known = merged.setdefault(name, {**refusal, "description": "", "headers": {}})
    codes = [*known["description"].split(", "), *refusal["description"].split(", ")]
    known["description"] = ", ".join(dict.fromkeys(filter(None, codes)))
    known["headers"] |= refusal["headers"]
    return {"$ref": _RESPONSE + name}


def _without_examples(value: Any) -> Any:
    """Remove examples, and other media types than JSON wherever JSON is one."""
    if isinstance(value, list):
        return [_without_examples(item) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {}
    for key, item in value.items():
        if key == "properties":  # whose names may be any of these keys
            plain[key] = {name: _without_examples(schema) for name, schema in item.items()}
        elif key == "content" and JSON in item:
            plain[key] = {JSON: _without_examples(item[JSON])}
        elif key not in _EXAMPLES:
            plain[key] = _without_examples(item)
    return plain


class Representation(NamedTuple):
    """A document as it is sent, and its etag."""

    content: bytes
    etag: str


def shipped_document() -> Json:
    """Read the document of this version, in OpenAPI 3.1."""
    document: Json = orjson.loads((files(__package__) / "generated" / SHIPPED).read_bytes())
    return document


def documents(described: Json) -> Mapping[str, bytes]:
    """Write all documents, by name, as JSON, from this one in OpenAPI 3.1."""
    plain = sdk_version(described)
    converted = (described, version30(described), plain, version30(plain))
    return {name: orjson.dumps(document) for name, document in zip(DOCUMENT_NAMES, converted, strict=True)}


@lru_cache(maxsize=4 * len(DOCUMENT_NAMES))
def represented(document: bytes, prefix: str, *, zipped: bool) -> Representation:
    """Write a document as it is served under a prefix such as /grad ("" for none), with or without gzip."""
    content = document
    if prefix:
        described = orjson.loads(document)
        described["servers"] = [{**server, "url": prefix} for server in described["servers"]]
        described["info"]["description"] = described["info"]["description"].replace("](/", f"]({prefix}/")
        content = with_prefixed_links(orjson.dumps(described), prefix)
    if zipped:
        content = gzip.compress(content, mtime=0)
    return Representation(content, blake2b(content, digest_size=_ETAG_BYTES).hexdigest())


document_router: Final = APIRouter()


def _endpoint(name: str) -> Callable[[Request], Awaitable[Response]]:
    """Make the endpoint of a document, which answers 304 if the client has it."""

    async def endpoint(request: Request) -> Response:
        zipped = takes_gzip(",".join(request.headers.getlist("accept-encoding")))
        content, etag = represented(state_of(request).documents[name], request.state.prefix, zipped=zipped)
        headers = {"ETag": f'"{etag}"', "Vary": "Accept-Encoding", "Cache-Control": "no-cache"}
        if not header_condition((), request.headers.getlist("if-none-match")).holds(etag):
            return Response(None, 304, headers)
        coded = {"Content-Encoding": GZIP} if zipped else {}
        return Response(content, headers=headers | coded, media_type=JSON)

    return endpoint


for _name in DOCUMENT_NAMES:
    document_router.add_api_route(f"/{_name}", _endpoint(_name), include_in_schema=False)
