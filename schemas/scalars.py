"""Numbers with a stated width, and the ways in which a message may be open to what a later release has."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, WithJsonSchema

# Without a format, generated Go clients read float32 and Java clients BigDecimal.
Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1), WithJsonSchema({"type": "integer", "format": "int64"})]
Double = Annotated[float, WithJsonSchema({"type": "number", "format": "double"})]
NodeId = Annotated[
    int,
    Field(ge=-(2**63), le=2**63 - 1),
    WithJsonSchema({"type": "integer", "format": "int64", "description": "index of a node in `nodes`"}),
]

#: keyword of a string of which the document lists the words that there are: a later release has more, and answers them.
#: A type says which they are, by the field of the vocabulary; the document has the words in place of its name
OPEN: Final = "x-extensible-enum"


def _leave_open(schema: dict[str, Any]) -> None:
    schema.pop("additionalProperties", None)


CLOSED: Final = ConfigDict(strict=True, extra="forbid")
# Refused all the same, but by the server: a client generated today must read the answers of a later release.
OPEN_IN_DOCUMENT: Final = ConfigDict(strict=True, extra="forbid", json_schema_extra=_leave_open)
