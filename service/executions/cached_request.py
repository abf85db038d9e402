from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from engine import HostArray, Label, TensorType
from engine.graph.run_report import RunReport
from service.calls.estimate import Estimate
from service.wire.answers import AnswerBody, RunStats, write_result
from service.wire.resident_feed import ResidentFeed, rows_from
from service.wire.storing import Kept, Storing
from service.wire.template import AnswerTemplate
from service.wire.tensors import decode_again
from service.wire.version import Find

#: bytes of one, beside its template
BYTES: Final = 2000


@dataclass(frozen=True, slots=True)
class CachedRequest:
    """Rest of a request that was answered: its plan by name, what it fed, and how its answer is written.

    It holds no tensors, no graph and no plan. `feeds` are those that came, and `residents` have a name each.
    `disconnected` is None where there are no gradients; `stats` are those of the answer, but for the time and the
    report; `storing` is None where nothing is kept.
    """

    plan: Hashable
    feeds: tuple[tuple[Hashable, TensorType], ...]
    residents: tuple[tuple[Hashable, TensorType, ResidentFeed], ...]
    disconnected: Sequence[int] | None
    encoding: str
    stats: RunStats
    cost: Estimate
    template: AnswerTemplate | None
    storing: Storing | None

    def read_tensors(
        self, data: Sequence[tuple[str | None, Any]], starts: Sequence[int | None], find: Find
    ) -> dict[Hashable, HostArray] | None:
        """The tensors that these data stand for, in the order of `feeds`, and the resident ones, whose rows so start.

        None where one of these is not there, or of another type. Raises Refusal, which does not say where.
        """
        with np.errstate(over="ignore"):
            tensors = {feed: decode_again(one, type) for (feed, type), one in zip(self.feeds, data, strict=True)}
        for (feed, type, resident), start in zip(self.residents, starts, strict=True):
            array = _resident(resident, type, start, find)
            if array is None or array.shape != type.shape or array.dtype != type.dtype:
                return None
            tensors[feed] = array
        return tensors

    def kept(self, arrays: Sequence[HostArray], conditions: Sequence[str | None]) -> list[Kept]:
        """What is to be kept of these results, upon these conditions."""
        assert self.storing is not None
        return self.storing.kept(arrays[len(arrays) - len(self.storing.sources) :], conditions)

    def write_body(
        self,
        labels: Sequence[Label],
        arrays: Sequence[HostArray],
        execute_ms: float,
        report: RunReport,
        kept: Sequence[Kept],
    ) -> AnswerBody:
        """The answer with these results; those that are kept come last, and are not in it."""
        if self.storing is not None:
            count = len(arrays) - len(self.storing.sources)
            labels, arrays = labels[:count], arrays[:count]
        stored = [one.told for one in kept] if kept else ()
        filled = None if self.template is None else self.template.fill(arrays, execute_ms, report, stored)
        if filled is not None:
            return filled
        stats = self.stats.after(execute_ms, report)
        return write_result(list(zip(labels, arrays, strict=True)), self.disconnected, stats, self.encoding, stored)

    @property
    def nbytes(self) -> int:
        """What keeping it takes, about."""
        return BYTES + (0 if self.template is None else self.template.nbytes)


def _resident(resident: ResidentFeed, type: TensorType, start: int | None, find: Find) -> HostArray | None:
    """The resident tensor, or so many of its rows as the type has; None where there is no such thing."""
    version = find(resident.name)
    if version is None or resident.is_cut != (start is not None):
        return None
    return version.array if start is None else rows_from(version.array, start, type.shape[0])
