"""Answers: conversion from the engine's results to JSON or safetensors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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

#: bound on the bytes of an answer's fields, with the statistics
FIELD_BYTES: Final = 640
#: bound on the bytes of the entry of a stored tensor
STORE_ENTRY_BYTES: Final = 280
#: names of the fields for the nodes of a result, by its kind
_FIELDS: Final = {"jacobian": ("of", "wrt"), "hessian": ("row", "column")}


@dataclass(frozen=True)
class RunStats:
    """Statistics of an execution, and the versions that reproduce its result."""

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
    #: number of pieces of a sum over examples, and of pieces that were started again
    pieces: int | None = None
    repeated: int = 0
    #: name of the server, if there are several
    server: str | None = None

    def after(self, execute_ms: float, report: RunReport) -> RunStats:
        """Return the statistics of another run of the plan, which is in the cache by then."""
        return replace(self, plan_cached=True, execute_ms=execute_ms, report=report)


def admit_answer(nbytes: int, encoding: str, limit: int) -> None:
    """Raise OverBudget for an answer that may get too long, before anything is computed."""
    if nbytes > limit:
        advice = "ask for fewer outputs or gradients" + (", or for base64" if encoding == "json" else "")
        detail = f"the response may need {nbytes} bytes, and the limit is {limit}; {advice}"
        raise OverBudget(detail, expected=f"at most {limit} bytes", got=f"{nbytes} bytes")


def write_answer(answer: dict[str, Any], encoding: str, tensors: Iterable[tuple[Label, HostArray]] = ()) -> AnswerBody:
    """Write an answer with these fields; `tensors` follow them if the encoding is binary."""
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
    """Write values and derivatives, and the `stored` tensors; `disconnected` is None without gradients."""
    is_binary = encoding == "binary"
    labelled = ((label, {} if is_binary else {"tensor": encode(array, encoding)}) for label, array in arrays)
    fields = result_fields(labelled, disconnected, stats)
    return write_answer(fields | ({"stored": stored} if stored else {}), encoding, arrays)


def result_fields(
    labelled: Iterable[tuple[Label, Mapping[str, Any]]], disconnected: Sequence[int] | None, stats: RunStats
) -> dict[str, Any]:
    """Return the fields of an answer: for each kind of result, a list of tensors or of their placeholders."""
    answer: dict[str, Any] = {}
    for label, tensor in labelled:
        if label.offsets:
            answer |= {"hessian": [], "matrix": {"offsets": [place._asdict() for place in label.offsets], **tensor}}
            continue
        fields = _FIELDS.get(label.kind, ("node",))
        answer.setdefault(label.kind, []).append({**dict(zip(fields, label.nodes, strict=True)), **tensor})
    if disconnected is not None:
        answer["disconnected"] = list(disconnected)
    return answer | {"stats": stats_fields(stats)}


def int64(count: int) -> int:
    """Clip a count to 64 bits: larger ones are beyond every limit, and JSON's readers."""
    return min(count, 2**63 - 1)


def report_fields(report: RunReport) -> dict[str, str]:
    """Return the fields of `stats` for the report of a run."""
    precision = {} if report.precision is None else {"precision": report.precision}
    return {"tier": report.tier, **precision}


def stats_fields(stats: RunStats) -> dict[str, Any]:
    """Return `stats` as a field of an answer."""
    fields: dict[str, Any] = {
        "device": stats.device,
        "plan_cached": stats.plan_cached,
        "execute_ms": stats.execute_ms,
        **report_fields(stats.report),
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
        fields["server"] = stats.server
    if stats.pieces is not None:
        fields |= {"pieces": stats.pieces, "repeated": stats.repeated}
    if stats.first_nonfinite is not None:
        fields["first_nonfinite"] = _nonfinite(stats.first_nonfinite)
    return fields


def _nonfinite(origin: Nonfinite) -> dict[str, Any]:
    function_place = {
        "function": origin.function,
        "function_node": origin.function_node,
        "steps": list(origin.steps) or None,
    }
    bounds = (zip(("low", "high"), ends or (), strict=False) for ends in origin.ranges)
    return {
        "node": origin.node,
        "op": origin.op,
        "backward": origin.backward,
        **{name: value for name, value in function_place.items() if value is not None},
        "computed": origin.computed,
        "operands": [{name: end for name, end in pairs if math.isfinite(end)} for pairs in bounds],
    }
