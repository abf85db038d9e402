"""The document of one model, by which clients of Tesseract learn its arrays; and whether it is well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson

from service.facades.facade import ForeignAnswer
from service.facades.foreign_call import ForeignCall, ReadLimits
from service.facades.model import Model, Port
from service.facades.tesseract.arrays import BASE64_FORM, JSON_FORM
from service.facades.tesseract.calls import TESSERACT_CALLS
from service.state.models import FREE

_ARRAY: Final = {
    "type": "object",
    "properties": {
        "object_type": {"const": "array"},
        "shape": {"type": "array", "items": {"type": "integer"}},
        "dtype": {"type": "string"},
        "data": {"type": "object"},
    },
    "required": ["object_type", "shape", "dtype", "data"],
}


class Health(ForeignCall):
    """Health of a model: whether it is there."""

    name = "tesseract.health"

    def read_request(self, body: bytes, said: str, model: Model, limits: ReadLimits) -> ForeignAnswer:
        """Answer that it is well: a model that does not exist never gets here."""
        return ForeignAnswer([b'{"status":"ok"}'])


class Document(ForeignCall):
    """OpenAPI as clients of Tesseract read it: which calls there are, and which arrays are differentiable."""

    name = "tesseract.document"

    def read_request(self, body: bytes, said: str, model: Model, limits: ReadLimits) -> ForeignAnswer:
        """The schemas have the names that clients look for."""
        inputs, outputs = _schema(model.inputs), _schema(model.outputs)
        differentiable = {"differentiable_arrays": inputs["differentiable_arrays"]}
        wrapped = {"type": "object", "properties": {"inputs": inputs}, "required": ["inputs"], **differentiable}
        schemas = {
            "Apply_InputSchema": inputs,
            "Apply_OutputSchema": outputs,
            "ApplyInputSchema": wrapped,
            "ApplyOutputSchema": outputs,
        }
        told: dict[str, Any] = {
            "openapi": "3.1.0",
            "info": {"title": model.name, "version": model.graph_id, "description": model.description},
            "paths": {f"/{path}": {} for path in (*(call.path for call in TESSERACT_CALLS), "health")},
            "components": {"schemas": schemas},
            "x-supported-output-formats": [JSON_FORM, BASE64_FORM],
            "x-supported-gpu-transports": ["none"],
            "x-supported-compressions": ["none"],
        }
        return ForeignAnswer([orjson.dumps(told)])


def _schema(ports: Sequence[Port]) -> dict[str, Any]:
    """Write the schema of inputs or outputs. A free extent is None, as the runtime of Tesseract has it."""
    return {
        "type": "object",
        "properties": {port.name: _ARRAY for port in ports},
        "required": [port.name for port in ports],
        "differentiable_arrays": {
            port.name: {"shape": [None if extent == FREE else extent for extent in port.shape], "dtype": port.dtype}
            for port in ports
            if port.is_differentiable
        },
    }
