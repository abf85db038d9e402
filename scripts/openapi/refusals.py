"""Deduplication of error responses in the OpenAPI document: each response and each example is a component."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import orjson

from service.api.calls.description import Json
from service.api.media import PROBLEM


def shared_refusals(paths: Json) -> dict[str, Json]:
    """Move error responses and their examples to components, and replace them in the paths with references.

    Return the components `responses` and `examples`.
    """
    examples, responses = _Shared("examples"), _Shared("responses")
    refusals = list(_refused(paths))
    for response in refusals:
        for code, example in response.examples.items():
            examples.add(code, f".{response.operation}", example)
    for response in refusals:
        response.examples.update({code: examples.reference(example) for code, example in response.examples.items()})
        responses.add(
            f"Refused{response.status}", response.operation[:1].upper() + response.operation[1:], response.response
        )
    for response in refusals:
        response.answers[response.status] = responses.reference(response.response)
    return {"responses": responses.named(), "examples": examples.named()}


class _Refused(NamedTuple):
    """An error response, its operation, and all responses of that operation."""

    operation: str
    answers: Json
    status: str
    response: Json

    @property
    def examples(self) -> Json:
        """Examples by their codes."""
        shown: Json = self.response["content"][PROBLEM]["examples"]
        return shown


def _refused(paths: Mapping[str, Json]) -> Iterator[_Refused]:
    for methods in paths.values():
        for operation in methods.values():
            for status, response in operation["responses"].items():
                if PROBLEM in response.get("content", {}):
                    yield _Refused(operation["operationId"], operation["responses"], status, response)


class _Shared:
    """Deduplicated components of one kind.

    A component is named by its word if no other has the same word, else by the word and its first operation.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._components: dict[bytes, tuple[str, str, Json]] = {}

    def add(self, word: str, operation: str, component: Json) -> None:
        """Add a component, unless it is known."""
        self._components.setdefault(_content(component), (word, operation, component))

    def reference(self, component: Json) -> Json:
        """Return the reference to a component. Call this after all have been added."""
        word, operation, _ = self._components[_content(component)]
        return {"$ref": f"#/components/{self._kind}/{self._name(word, operation)}"}

    def named(self) -> Json:
        """Return all components, sorted by name."""
        return dict(
            sorted((self._name(word, operation), component) for word, operation, component in self._components.values())
        )

    def _name(self, word: str, operation: str) -> str:
        is_unique = Counter(word_of_component for word_of_component, *_ in self._components.values())[word] == 1
        return word if is_unique else f"{word}{operation}"


def _content(component: Json) -> bytes:
    return orjson.dumps(component, option=orjson.OPT_SORT_KEYS)
