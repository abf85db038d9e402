"""The op catalogue as it is served."""

from __future__ import annotations

from typing import Any

import orjson

from engine import LATEST, Registry, describe
from schemas import Catalogue, OpInfo


def catalogue_of(registry: Registry) -> Catalogue:
    """The op catalogue as it is served: defaults as JSON text, so that they have one type."""
    return Catalogue(opset=LATEST, ops=[_row(row) for row in describe(registry)])


def _row(row: dict[str, Any]) -> OpInfo:
    attributes = [
        attribute | ({"default": orjson.dumps(attribute["default"]).decode()} if "default" in attribute else {})
        for attribute in row["attributes"]
    ]
    return OpInfo(**{**row, "attributes": attributes})  # type: ignore[typeddict-item]
