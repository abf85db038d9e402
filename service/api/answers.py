"""Answers: from the engine's terms to JSON, or to safetensors where these were asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from engine import HostArray, Label, OverBudget
from engine.analysis.diagnose import Nonfinite
from engine.ir.run_report import RunReport
from service.api.binary import write_response
from service.api.tensors import encode
from service.core.installed import VERSIONS, installed_version

AnswerBody = list[bytes | memoryview]

#: bytes that answers have in common: their fields, and the statistics
FIELD_BYTES: Final = 640
#: and bytes for a tensor that was stored
PLACE_BYTES: Final = 280
#: how the nodes of a result are called, by its kind
_FIELDS: Final = {"jacobian": ("of", "wrt"), "hessian": ("row", "column")}


@dataclass(frozen=True)
class RunStats:
    """Statistics of an execution, and what it takes to have the same again."""

    device: str
    plan_cached: bool
    execute_ms: float
    report: RunReport
    peak_bytes: int
    recomputed_flops: int
    graph_id: str
    opset: int
    dtype: str
    first_nonfinite: Nonfinite | None = None
    #: of a sum over examples, how many pieces it was cut into, and how often one was begun again
    pieces: int | None = None
    repeated: int = 0
    #: where there are several servers
    server: str | None = None

    def after(self, execute_ms: float, report: RunReport) -> RunStats:
        """The same of another run of the plan, which is known then."""
        return replace(self, plan_cached=True, execute_ms=execute_ms, report=report)


def admit_answer(count: int, encoding: str, limit: int) -> None:
    """Refuse an answer that could get too long, before anything is computed."""
    if count > limit:
        shorter = ", or for base64" if encoding == "json" else ""
        raise OverBudget(
            f"the answer may need {count} bytes, and the limit is {limit}; ask for fewer outputs or gradients{shorter}",
            expected=f"at most {limit} bytes",
            got=f"{count} bytes",
        )


def write_answer(answer: dict[str, Any], encoding: str, tensors: Iterable[tuple[Label, HostArray]] = ()) -> AnswerBody:
    """An answer of these fields; `tensors` go beside them where the encoding is binary."""
    if encoding == "binary":
        return write_response(answer, tensors)
    return [orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)]


def write_result(
    arrays: Sequence[tuple[Label, HostArray]],
    disconnected: Sequence[int] | None,
    stats: RunStats,
    encoding: str,
    stored: Sequence[Mapping[str, Any]] = (),
) -> AnswerBody:
    """Values and derivatives; `disconnected` is None where there are no gradients. Last, what is `stored`."""
    is_beside = encoding == "binary"
    named = ((label, {} if is_beside else {"tensor": encode(array, encoding)}) for label, array in arrays)
    fields = result_fields(named, disconnected, stats)
    return write_answer(fields | ({"stored": stored} if stored else {}), encoding, arrays)


def result_fields(
    named: Iterable[tuple[Label, Mapping[str, Any]]], disconnected: Sequence[int] | None, stats: RunStats
) -> dict[str, Any]:
    """The fields of an answer: for each kind of result a list of tensors, or of what stands for them."""
    answer: dict[str, Any] = {}
    for label, tensor in named:
        fields = _FIELDS.get(label.kind, ("node",))
        answer.setdefault(label.kind, []).append({**dict(zip(fields, label.nodes, strict=True)), **tensor})
    if disconnected is not None:
        answer["disconnected"] = list(disconnected)
    return answer | {"stats": stats_fields(stats)}


def int64(count: int) -> int:
    """The count; what is beyond 64 bits is beyond every limit, and JSON's readers."""
    return min(count, 2**63 - 1)


def stats_fields(stats: RunStats) -> dict[str, Any]:
    """`stats` as it is answered."""
    found: dict[str, Any] = {
        "device": stats.device,
        "plan_cached": stats.plan_cached,
        "execute_ms": stats.execute_ms,
        "tier": stats.report.tier,
        "precision": stats.report.precision,
        "peak_bytes": stats.peak_bytes,
        "recomputed_flops": int64(stats.recomputed_flops),
        "graph_id": stats.graph_id,
        "opset": stats.opset,
        "dtype": stats.dtype,
        "versions": VERSIONS
        if stats.device == "cpu"
        else VERSIONS | {"cupy": installed_version("cupy-cuda13x", "cupy-cuda12x", "cupy")},
    }
    if stats.server is not None:
        found["server"] = stats.server
    if stats.pieces is not None:
        found |= {"pieces": stats.pieces, "repeated": stats.repeated}
    return found | ({} if stats.first_nonfinite is None else {"first_nonfinite": _nonfinite(stats.first_nonfinite)})


def _nonfinite(found: Nonfinite) -> dict[str, Any]:
    inside = {"function": found.function, "function_node": found.function_node, "steps": list(found.steps) or None}
    return {
        "node": found.node,
        "op": found.op,
        "backward": found.backward,
        **{name: told for name, told in inside.items() if told is not None},
        "computed": found.computed,
        "operands": [dict(_bounds(both)) for both in found.ranges],
    }


def _bounds(both: tuple[float, float] | None) -> Iterator[tuple[str, float]]:
    """The ends of a range that are finite: JSON has no others."""
    return ((name, end) for name, end in zip(("low", "high"), both or (), strict=False) if math.isfinite(end))
