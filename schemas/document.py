"""The messages as JSON Schema: the components of the OpenAPI document.

Requests and responses share one schema per message. The names of ops and dtypes, which pydantic does not validate, are
added here from the vocabulary.
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
#: reference to the schema of tensors
TENSOR: Final[JsonSchema] = {"$ref": REFERENCE.format(model="Tensor")}


@dataclass(frozen=True)
class Vocabulary:
    """Names of an opset: its ops, and for each attribute its schema and its documentation in each op.

    `kinds` are the kinds of attributes as documentation spells them, `dtypes` the dtypes of tensors in the order of
    lists, and `calls` the calls that run a graph.
    """

    ops: tuple[str, ...]
    attributes: Mapping[str, JsonSchema]
    docs: Mapping[str, str]
    kinds: tuple[str, ...]
    dtypes: tuple[str, ...]
    calls: tuple[str, ...]


def components(vocabulary: Vocabulary, messages_of_calls: Iterable[type]) -> dict[str, JsonSchema]:
    """Return the schema of every message by its name, with the vocabulary; the caller passes the messages of calls."""
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
        "description": "The attributes of all ops, all optional here. An op rejects attributes that it does not have.",
        "properties": properties,
    }


def _complete(field: JsonSchema, vocabulary: Vocabulary) -> None:
    """Insert the vocabulary, and remove titles of fields: generators would turn them into classes."""
    field.pop("title", None)
    for words in (field, field.get("items", {})):
        if OPEN in words:
            words[OPEN] = list(getattr(vocabulary, words[OPEN]))
