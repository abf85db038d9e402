"""Templates of answers: what is the same in all is written once, and numbers are put in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product, starmap
from typing import Any, Final, Self, get_args

import numpy as np
import orjson

from engine import HostArray, Label, TensorType
from engine.graph.precision import PRECISIONS
from engine.graph.run_report import RunReport
from engine.graph.run_tier import RunTier
from engine.graph.tensor_type import dtype_name
from service.wire.answers import AnswerBody, RunStats, result_fields
from service.wire.tensors import has_plain_numbers, numbers_of

#: bytes of the numbers of an answer, up to which it is put together from texts: beyond, copies cost more than is saved
MOST_ELEMENT_BYTES: Final = 1 << 16
_NO_DATA: Final = b'"data":[]'
_TIME: Final = b'"execute_ms":0.0,"tier":"uncompiled","precision":"float32"'
_REPORTS: Final = {
    report: f',"tier":"{report.tier}","precision":"{report.precision}"'.encode()
    for report in starmap(RunReport, product(get_args(RunTier), PRECISIONS))
}


class AnswerTemplate:
    """A JSON answer without the elements of its tensors, and without the time that it took, and how it was computed."""

    def __init__(self, parts: Sequence[bytes], *, plain: bool) -> None:
        """`parts` stand around the elements, each up to `"data":[`, and the last two around the time.

        `plain`: all tensors have plain numbers.
        """
        self._is_plain = plain
        self._texts = [text for part in parts for text in (part, b"")][:-1]

    @classmethod
    def of(
        cls,
        labels: Sequence[Label],
        types: Sequence[TensorType],
        disconnected: Sequence[int] | None,
        stats: RunStats,
    ) -> Self | None:
        """The template of answers of these types; None where elements may need another form, or are many."""
        if sum(t.nbytes for t in types) > MOST_ELEMENT_BYTES or any(t.dtype == np.int64 for t in types):
            return None
        empty = [{"tensor": {"dtype": dtype_name(t.dtype), "shape": list(t.shape), "data": []}} for t in types]
        named = zip(labels, empty, strict=True)
        text = orjson.dumps(result_fields(named, disconnected, stats.after(0.0, RunReport())))
        first, *rest = text.split(_NO_DATA)
        before, _, after = rest[-1].partition(_TIME)
        around = [first, *(b"]" + part for part in (*rest[:-1], before))]
        parts = [*(part + b'"data":[' for part in around[:-1]), around[-1] + b'"execute_ms":', after]
        return cls(parts, plain=all(map(has_plain_numbers, types)))

    @property
    def nbytes(self) -> int:
        """Bytes of what is the same in all answers."""
        return sum(map(len, self._texts))

    def fill(
        self,
        arrays: Sequence[HostArray],
        execute_ms: float,
        report: RunReport,
        stored: Sequence[Mapping[str, Any]] = (),
    ) -> AnswerBody | None:
        """The answer with these elements, and what is `stored`; None where JSON has no number for one of them."""
        flat = [array.reshape(-1) for array in arrays] if self._is_plain else list(map(numbers_of, arrays))
        elements = orjson.dumps(flat, option=orjson.OPT_SERIALIZE_NUMPY)
        if b"n" in elements:  # null
            return None
        texts = self._texts.copy()
        texts[1:-2:2] = elements[2:-2].split(b"],[")
        texts[-2] = orjson.dumps(execute_ms) + _REPORTS[report]
        if stored:
            texts[-1] = b"".join((texts[-1][:-1], b',"stored":', orjson.dumps(stored), b"}"))
        return [b"".join(texts)]
