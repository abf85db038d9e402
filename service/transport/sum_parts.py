"""Parts of a task that is a sum over examples: pieces of its blocks, and the total of their sums.

The sums of a piece travel as the bytes of its arrays, one after the other: whoever has the plan knows their types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from engine.graph.precision import PRECISIONS, Precision, coarsest
from engine.graph.run_report import RunReport
from engine.graph.run_tier import COMPILED, PARTLY_COMPILED, UNCOMPILED, RunTier

#: the header of a piece's reply that says how it was run
RUN_HEADER: Final = "Gradserve-Run"
#: the header of a piece's request that says which go to one server, where that can be
PIECE_HEADER: Final = "Gradserve-Piece"
_TIERS: Final[tuple[RunTier, ...]] = (UNCOMPILED, PARTLY_COMPILED, COMPILED)


class Piece(NamedTuple):
    """The sums over the blocks from `first` to `stop` are asked for, and nothing is kept."""

    first: int
    stop: int


class PieceRequest(NamedTuple):
    """A request is asked for, by which another server answers the sums over these blocks."""

    first: int
    stop: int


class Total(NamedTuple):
    """The answer of the whole is asked for, of the sums of `pieces`, which lie in a buffer one after the other.

    `repeated` of them had to be begun again; they took so many seconds in all.
    """

    pieces: int
    repeated: int
    seconds: float
    tier: RunTier
    precision: Precision
    buffer: int
    nbytes: int

    @property
    def report(self) -> RunReport:
        """How all of them were run."""
        return RunReport(self.tier, self.precision)


SumPart: TypeAlias = Piece | PieceRequest | Total
_KINDS: Final = (Piece, PieceRequest, Total)


def part_text(part: SumPart) -> str:
    """A part, as it travels."""
    return orjson.dumps([_KINDS.index(type(part)), *part]).decode()


def read_part(text: str) -> SumPart:
    """What a text of `part_text` says."""
    fields: list[Any]
    kind, *fields = orjson.loads(text)
    return _KINDS[kind](*fields)


def run_header(report: RunReport, seconds: float) -> tuple[str, str]:
    """The header that says how a piece was run, and for how long."""
    return RUN_HEADER, f"{report.tier} {report.precision} {seconds:.6f}"


def read_run(headers: Sequence[tuple[str, str]]) -> tuple[RunReport, float]:
    """How a piece was run, and for how long, by its headers. Raises ValueError where they do not say so."""
    stated = next((value for name, value in headers if name.lower() == RUN_HEADER.lower()), "")
    tier, precision, seconds = stated.split(" ")
    return RunReport(_TIERS[_TIERS.index(tier)], PRECISIONS[PRECISIONS.index(precision)]), float(seconds)


def least(reports: Sequence[RunReport]) -> RunReport:
    """How pieces were run of which each was run so: no more compiled, and no more exact, than any."""
    tier = min((report.tier for report in reports), key=_TIERS.index)
    return RunReport(tier, coarsest(*(report.precision for report in reports)))
