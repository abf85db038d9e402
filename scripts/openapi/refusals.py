"""Refusals in the OpenAPI document: each response, and each example in it, stands once and is referred to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import orjson

from service.api.calls.description import Json
from service.api.media import PROBLEM


def shared_refusals(paths: Json) -> dict[str, Json]:
    """The components `responses` and `examples`, to which these paths refer from now on in place of having them."""
    examples, responses = _Shared("examples"), _Shared("responses")
    refused = list(_refused(paths))
    for one in refused:
        for code, example in one.examples.items():
            examples.add(code, f".{one.operation}", example)
    for one in refused:
        one.examples.update({code: examples.reference(example) for code, example in one.examples.items()})
        responses.add(f"Refused{one.status}", one.operation[:1].upper() + one.operation[1:], one.response)
    for one in refused:
        one.answers[one.status] = responses.reference(one.response)
    return {"responses": responses.named(), "examples": examples.named()}


class _Refused(NamedTuple):
    """A response with refusals: of which operation, and among which answers of it."""

    operation: str
    answers: Json
    status: str
    response: Json

    @property
    def examples(self) -> Json:
        """The examples by their codes."""
        shown: Json = self.response["content"][PROBLEM]["examples"]
        return shown


def _refused(paths: Mapping[str, Json]) -> Iterator[_Refused]:
    for methods in paths.values():
        for operation in methods.values():
            for status, response in operation["responses"].items():
                if PROBLEM in response.get("content", {}):
                    yield _Refused(operation["operationId"], operation["responses"], status, response)


class _Shared:
    """Components of one kind, each once.

    One that is alone with its word has that for a name, and others have the first operation that they are of as well.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._found: dict[bytes, tuple[str, str, Json]] = {}

    def add(self, word: str, operation: str, component: Json) -> None:
        """A component, which may be there already."""
        self._found.setdefault(_content(component), (word, operation, component))

    def reference(self, component: Json) -> Json:
        """What stands in its place, once all have been added."""
        word, operation, _ = self._found[_content(component)]
        return {"$ref": f"#/components/{self._kind}/{self._name(word, operation)}"}

    def named(self) -> Json:
        """All of them by their names, in the order of these."""
        return dict(sorted((self._name(word, operation), one) for word, operation, one in self._found.values()))

    def _name(self, word: str, operation: str) -> str:
        alone = Counter(known for known, *_ in self._found.values())[word] == 1
        return word if alone else f"{word}{operation}"


def _content(component: Json) -> bytes:
    return orjson.dumps(component, option=orjson.OPT_SORT_KEYS)
