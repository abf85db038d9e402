"""Helpers that read the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Json = dict[str, Any]

#: extension that lists the values of a string to which more may be added
OPEN = "x-extensible-enum"


def operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Json]]:
    """Yield path, method and description of each operation."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def resolved(document: Mapping[str, Any], described: Json) -> Json:
    """Follow a reference into `components`. KeyError if it refers to nothing."""
    if "$ref" not in described:
        return described
    root, *steps = described["$ref"].split("/")
    assert root == "#", described
    target: Any = document
    for step in steps:
        target = target[step]
    return resolved(document, target)


def answers(document: Mapping[str, Any], operation: Json) -> Iterator[tuple[str, Json]]:
    """Yield each status with its response."""
    for status, response in operation["responses"].items():
        yield status, resolved(document, response)


def refusals(document: Mapping[str, Any], operation: Json) -> Iterator[tuple[str, str, Json]]:
    """Yield the status, the code and the example of each refusal."""
    for status, response in answers(document, operation):
        shown = response.get("content", {}).get("application/problem+json", {}).get("examples", {})
        for code, example in shown.items():
            yield status, code, resolved(document, example)


def closed(described: Any) -> Any:
    """Return the same schema with its extensible enums closed."""
    if isinstance(described, list):
        return [closed(item) for item in described]
    if not isinstance(described, dict):
        return described
    return {"enum" if key == OPEN else key: closed(item) for key, item in described.items()}
