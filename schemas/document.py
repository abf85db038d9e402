"""The messages as JSON Schema: the components of the OpenAPI document.

There is one schema for each message, used by requests and answers alike. The vocabulary of ops and dtypes, which
validation leaves to the engine, is written in here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter

from schemas.answer import Catalogue, Health, Problem
from schemas.graph import OPEN, GraphFunction

JsonSchema = dict[str, Any]

REFERENCE: Final = "#/components/schemas/{model}"
#: where a message has a tensor
TENSOR: Final[JsonSchema] = {"$ref": REFERENCE.format(model="Tensor")}


@dataclass(frozen=True)
class Vocabulary:
    """The words of an opset: canonical op names, and for each attribute its schema and what it says in which ops.

    `kinds` are those that attributes are of, as people are shown them, `dtypes` the names of those that tensors may
    have, in the order in which they are listed, and `calls` those of the calls that compute.
    """

    ops: tuple[str, ...]
    attributes: Mapping[str, JsonSchema]
    docs: Mapping[str, str]
    kinds: tuple[str, ...]
    dtypes: tuple[str, ...]
    calls: tuple[str, ...]


def components(vocabulary: Vocabulary, messages_of_calls: Iterable[type]) -> dict[str, JsonSchema]:
    """Every message by its name, with the vocabulary in it; those of the calls are handed in."""
    roots = (*dict.fromkeys(messages_of_calls), GraphFunction, Health, Catalogue, Problem)
    adapters: list[Any] = [(root.__name__, "validation", TypeAdapter(root)) for root in roots]
    _, generated = TypeAdapter.json_schemas(adapters, ref_template=REFERENCE)
    messages: dict[str, JsonSchema] = generated["$defs"]
    for message in messages.values():
        for field in message.get("properties", {}).values():
            _complete(field, vocabulary)
    fields = messages["GraphNode"]["properties"]
    messages["PlannedCall"]["enum"] = list(vocabulary.calls)
    *kinds, last = vocabulary.kinds
    messages["AttributeInfo"]["properties"]["type"]["description"] = f"{', '.join(kinds)} or {last}"
    fields["attrs"] = {"$ref": REFERENCE.format(model="Attrs")}
    messages["Graph"]["properties"]["functions"]["items"] = {"$ref": REFERENCE.format(model="GraphFunction")}
    messages["Attrs"] = _attrs(vocabulary)
    return dict(sorted(messages.items()))


def _attrs(vocabulary: Vocabulary) -> JsonSchema:
    properties = {
        name: {**schema, "description": vocabulary.docs[name]} for name, schema in vocabulary.attributes.items()
    }
    return {
        "type": "object",
        "title": "Attrs",
        "description": "The attributes of all ops, every one optional; an op refuses those it does not have.",
        "properties": properties,
    }


def _complete(field: JsonSchema, vocabulary: Vocabulary) -> None:
    """Write in the words; and only models have a title: generators turn those of fields into classes of their own."""
    field.pop("title", None)
    for words in (field, field.get("items", {})):
        if OPEN in words:
            words[OPEN] = list(getattr(vocabulary, words[OPEN]))
