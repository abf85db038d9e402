"""The op catalogue, generated from the registry."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import orjson

from engine import LATEST, Registry, describe
from schemas import Catalogue, OpInfo
from service.web.pages import catalogue

PAGE: Final = Path(catalogue.__file__).parent / "generated" / catalogue.SHIPPED


def catalogue_of(registry: Registry) -> Catalogue:
    """Describe all ops. Defaults become JSON text, so that they have one type."""
    return Catalogue(opset=LATEST, ops=[_row(row) for row in describe(registry)])


def _row(row: dict[str, Any]) -> OpInfo:
    attributes = [
        attribute | ({"default": orjson.dumps(attribute["default"]).decode()} if "default" in attribute else {})
        for attribute in row["attributes"]
    ]
    return OpInfo(**{**row, "attributes": attributes})  # type: ignore[typeddict-item]


def page(registry: Registry) -> str:
    """Return the content of `service/web/pages/generated/catalogue.json`."""
    return orjson.dumps(catalogue_of(registry)).decode() + "\n"
