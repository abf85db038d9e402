"""The OpenAPI document as the tests read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Json = dict[str, Any]

#: lists the words of a string that may come to have more
OPEN = "x-extensible-enum"


def operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Json]]:
    """Path, method and description of each."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def resolved(document: Mapping[str, Any], described: Json) -> Json:
    """What stands under `components`, where this refers to it. KeyError where nothing does."""
    if "$ref" not in described:
        return described
    root, *steps = described["$ref"].split("/")
    assert root == "#", described
    found: Any = document
    for step in steps:
        found = found[step]
    return resolved(document, found)


def answers(document: Mapping[str, Any], operation: Json) -> Iterator[tuple[str, Json]]:
    """Each status with its response."""
    for status, response in operation["responses"].items():
        yield status, resolved(document, response)


def refusals(document: Mapping[str, Any], operation: Json) -> Iterator[tuple[str, str, Json]]:
    """The status, the code and the example of each refusal."""
    for status, response in answers(document, operation):
        shown = response.get("content", {}).get("application/problem+json", {}).get("examples", {})
        for code, example in shown.items():
            yield status, code, resolved(document, example)


def closed(described: Any) -> Any:
    """The same, with the words that there are as the only ones."""
    if isinstance(described, list):
        return [closed(item) for item in described]
    if not isinstance(described, dict):
        return described
    return {"enum" if key == OPEN else key: closed(item) for key, item in described.items()}
