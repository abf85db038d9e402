"""The messages as JSON Schema: the components of the OpenAPI document.

There is one schema for each message, used by requests and answers alike. The vocabulary of ops, which validation
leaves to the engine, is written in here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter

from schemas import answers, requests
from schemas.catalogue import Catalogue
from schemas.problem import Problem

JsonSchema = dict[str, Any]

REFERENCE: Final = "#/components/schemas/{model}"
ROOTS: Final = (
    requests.ForwardRequest,
    requests.GradientsRequest,
    requests.VjpRequest,
    requests.JvpRequest,
    requests.JacobianRequest,
    requests.HvpRequest,
    requests.HessianRequest,
    requests.BatchRequest,
    requests.PlanRequest,
    requests.CheckRequest,
    requests.DifferentiateRequest,
    answers.ForwardAnswer,
    answers.GradientsAnswer,
    answers.JvpAnswer,
    answers.JacobianAnswer,
    answers.HvpAnswer,
    answers.HessianAnswer,
    answers.PlanAnswer,
    answers.CheckAnswer,
    answers.DifferentiateAnswer,
    answers.Health,
    Catalogue,
    Problem,
)

_WHOLE: Final = {"type": "integer", "format": "int64"}
_KINDS: Final[Mapping[str, JsonSchema]] = {
    "int": _WHOLE,
    "float": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "string": {"type": "string"},
    "ints": {"type": "array", "items": _WHOLE},
    "dtype": {"type": "string"},
    "tensor": {"$ref": REFERENCE.format(model="Tensor")},
}


@dataclass(frozen=True)
class Vocabulary:
    """The words of an opset: canonical op names, and for each attribute its kind and what it says in which ops."""

    ops: tuple[str, ...]
    attributes: Mapping[str, str]
    docs: Mapping[str, str]


def components(vocabulary: Vocabulary) -> dict[str, JsonSchema]:
    """Every message by its name, with the vocabulary in it."""
    adapters = [(root.__name__, "validation", TypeAdapter(root)) for root in ROOTS]
    _, generated = TypeAdapter.json_schemas(adapters, ref_template=REFERENCE)  # type: ignore[arg-type]
    messages: dict[str, JsonSchema] = generated["$defs"]
    for message in messages.values():
        _drop_titles(message)
    fields = messages["Node"]["properties"]
    fields["op"]["enum"] = list(vocabulary.ops)
    fields["attrs"] = {"$ref": REFERENCE.format(model="Attrs")}
    messages["Attrs"] = _attrs(vocabulary)
    return dict(sorted(messages.items()))


def _attrs(vocabulary: Vocabulary) -> JsonSchema:
    properties = {
        name: {**_KINDS[kind], "description": vocabulary.docs[name]} for name, kind in vocabulary.attributes.items()
    }
    return {
        "type": "object",
        "title": "Attrs",
        "description": "The attributes of all ops, every one optional; an op refuses those it does not have.",
        "properties": properties,
    }


def _drop_titles(message: JsonSchema) -> None:
    """Only models have a title: generators turn the titles of fields into classes of their own."""
    for field in message.get("properties", {}).values():
        field.pop("title", None)
