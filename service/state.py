"""What the routes share: made once, read by every request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from engine import Registry, describe
from schemas import Catalogue, OpInfo
from service.pool import Pool
from service.settings import Settings
from service.translate import OPSET


@dataclass(frozen=True)
class State:
    """The settings, the workers, and what the server says about itself."""

    settings: Settings
    registry: Registry
    pool: Pool
    catalogue: Catalogue
    document: bytes
    document30: bytes

    def op(self, spelling: str) -> OpInfo | None:
        """The catalogue's row for an op, under any of its names."""
        op = self.registry.find(spelling)
        return None if op is None else next(row for row in self.catalogue["ops"] if row["name"] == op.name)


def catalogue_of(registry: Registry) -> Catalogue:
    """The op catalogue as it is served: defaults as JSON text, so that they have one type."""
    return Catalogue(opset=OPSET, ops=[_row(row) for row in describe(registry)])


def _row(row: dict[str, Any]) -> OpInfo:
    attributes = [
        attribute | ({"default": orjson.dumps(attribute["default"]).decode()} if "default" in attribute else {})
        for attribute in row["attributes"]
    ]
    return OpInfo(**{**row, "attributes": attributes})  # type: ignore[typeddict-item]
