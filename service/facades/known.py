"""The table of facades, and what routes and paths say of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from service.facades.facade import Facade
from service.facades.openinference import OpenInference
from service.facades.tesseract import Tesseract
from service.facades.umbridge import UmBridge

#: by the names that the setting `--facades` knows
FACADES: Final[Mapping[str, Facade]] = {facade.name: facade for facade in (UmBridge(), OpenInference(), Tesseract())}


#: what says whether the server is well, which anybody may ask
HEALTH_PATHS: Final = frozenset(path for facade in FACADES.values() for path in facade.health)
#: the calls of all of them, by the path that each has
_BY_PATH: Final = {place.path: (facade, place.call) for facade in FACADES.values() for place in facade.places}


def foreign_call_of(route: str) -> str | None:
    """Return the name of a facade's call by its route, with names in braces; None for any other route."""
    found = _BY_PATH.get(route)
    return None if found is None else found[1]


def facade_name_of(route: str) -> str:
    """Return the name of a route's facade; empty for our own routes."""
    found = _BY_PATH.get(route)
    return "" if found is None else found[0].name


def facades_of(names: Iterable[str]) -> list[Facade]:
    """Return the facades of these names, each once."""
    return [FACADES[name] for name in dict.fromkeys(names)]


def owner_of(path: str, facades: Iterable[Facade]) -> Facade | None:
    """Return the facade that a path belongs to, if any."""
    return next((facade for facade in facades if facade.owns(path)), None)
