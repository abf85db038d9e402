"""A request that comes again with other numbers: all that its shape decides was decided the first time."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from engine import HostArray, Label, TensorType
from service.wire.answers import Body, RunStats, write_result
from service.wire.template import AnswerTemplate
from service.wire.tensors import decode_again

#: bytes of one, beside its template
BYTES: Final = 2000


class Cost(NamedTuple):
    """What doing a task will take, about: seconds, and bytes at the peak and, at most, in the answer."""

    seconds: float
    peak_bytes: int = 0
    response_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Repeated:
    """What is left of a request that was answered: its plan by name, what it fed, and how its answer is written.

    It holds no tensors, no graph and no plan. `disconnected` is None where there are no gradients; `stats` are those
    of the answer, but for the time.
    """

    plan: Hashable
    feeds: tuple[tuple[Hashable, TensorType], ...]
    disconnected: Sequence[int] | None
    encoding: str
    stats: RunStats
    cost: Cost
    template: AnswerTemplate | None

    def read(self, data: Sequence[tuple[str | None, Any]]) -> dict[Hashable, HostArray]:
        """The tensors that these data stand for, in the order of `feeds`. Raises Refusal, which does not say where."""
        with np.errstate(over="ignore"):
            return {feed: decode_again(one, type) for (feed, type), one in zip(self.feeds, data, strict=True)}

    def write(self, labels: Sequence[Label], arrays: Sequence[HostArray], execute_ms: float) -> Body:
        """The answer with these results."""
        filled = None if self.template is None else self.template.fill(arrays, execute_ms)
        if filled is not None:
            return filled
        stats = self.stats.after(execute_ms)
        return write_result(list(zip(labels, arrays, strict=True)), self.disconnected, stats, self.encoding)

    @property
    def nbytes(self) -> int:
        """What keeping it takes, about."""
        return BYTES + (0 if self.template is None else self.template.nbytes)
