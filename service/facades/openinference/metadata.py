"""Metadata and readiness of a model in Open Inference: nothing runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from service.facades.facade import ForeignAnswer
from service.facades.foreign_call import ForeignCall, ReadLimits
from service.facades.model import Model, Port
from service.facades.openinference.datatypes import DATATYPES


class Metadata(ForeignCall):
    """Names, datatypes and shapes of what goes in and comes out."""

    name = "openinference.metadata"

    def read_request(self, body: bytes, said: str, model: Model, limits: ReadLimits) -> ForeignAnswer:
        """Answer with the model's metadata; -1 stands for a free extent in this protocol, too."""
        told = {
            "name": model.name,
            "versions": [model.graph_id],
            "platform": "gradserve_graph",
            "inputs": _tensors(model.inputs),
            "outputs": _tensors(model.outputs),
        }
        return ForeignAnswer([orjson.dumps(told)])


class ModelReady(ForeignCall):
    """Readiness of a model: it may be asked, where it is there."""

    name = "openinference.ready"

    def read_request(self, body: bytes, said: str, model: Model, limits: ReadLimits) -> ForeignAnswer:
        """The status says it, and so does the body."""
        return ForeignAnswer([orjson.dumps({"name": model.name, "ready": True})])


def _tensors(ports: Sequence[Port]) -> list[dict[str, Any]]:
    return [{"name": port.name, "datatype": DATATYPES[port.dtype], "shape": list(port.shape)} for port in ports]
