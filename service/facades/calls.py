"""Table of the calls of all facades, by which workers read and answer them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from service.facades.foreign_call import ForeignCall
from service.facades.known import facades_of
from service.facades.openinference.infer import Infer
from service.facades.openinference.metadata import Metadata, ModelReady
from service.facades.tesseract.calls import TESSERACT_CALLS
from service.facades.tesseract.document import Document, Health
from service.facades.umbridge.calls import UMBRIDGE_CALLS

_CALLS: Final[Sequence[ForeignCall]] = (
    *UMBRIDGE_CALLS,
    Infer(),
    Metadata(),
    ModelReady(),
    *TESSERACT_CALLS,
    Document(),
    Health(),
)
_BY_NAME: Final[Mapping[str, ForeignCall]] = {call.name: call for call in _CALLS}


def foreign_calls(names: Iterable[str]) -> dict[str, ForeignCall]:
    """Map the calls of the facades of these names by their own."""
    return {place.call: _BY_NAME[place.call] for facade in facades_of(names) for place in facade.places}
