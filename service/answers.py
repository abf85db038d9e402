"""Answers, from the engine's terms to the fields of the wire: JSON, or safetensors where these were asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, cast

import numpy as np
import orjson

from engine import Certificate, Exported, Label
from engine.tools.diagnose import Nonfinite
from schemas import Tensor
from schemas.graph import NAME_CHARACTERS
from service.asks import Differentiate, Plan
from service.binary import write
from service.handlers import Forecast, Result, Stats
from service.settings import Settings
from service.tensors import Array, encode
from service.translate import OPSET, written

Json = dict[str, Any]
Body = list[bytes | memoryview]

#: how the nodes of a result are called, by its kind
_FIELDS: Final = {"jacobian": ("of", "wrt"), "hessian": ("row", "column")}


def result(found: Result, encoding: str) -> Body:
    """Values and derivatives."""
    if encoding == "binary":
        return write(_result(found, lambda array: {}), found.arrays)
    return _json(_result(found, lambda array: {"tensor": encode(array, encoding)}))


def _result(found: Result, tensor: Callable[[Array], Json]) -> Json:
    answer: Json = {}
    for label, array in found.arrays:
        fields = _FIELDS.get(label.kind, ("node",))
        entry = dict(zip(fields, label.nodes, strict=True)) | tensor(array)
        answer.setdefault(label.kind, []).append(entry)
    if found.disconnected is not None:
        answer["disconnected"] = list(found.disconnected)
    return answer | {"stats": _stats(found.stats)}


def forecast(found: Forecast, ask: Plan, limits: Mapping[str, int], binary: bool) -> Body:
    """What a request would take."""
    analysis, statements = found.analysis, ask.program.statements
    nodes = [
        {
            "node": cost.node,
            "op": statements[cost.node].op.name,
            "dtype": cost.type.dtype.name,
            "shape": list(cost.type.shape),
            "flops": _int64(cost.flops),
            "bytes": _int64(cost.type.nbytes),
        }
        for cost in analysis.nodes
    ]
    answer = {
        "nodes": nodes,
        "forward_flops": _int64(analysis.forward_flops),
        "backward_flops": _int64(analysis.backward_flops),
        "saved_bytes": _int64(analysis.saved_bytes),
        "peak_bytes": _int64(analysis.peak_bytes),
        "response_bytes": _int64(found.response_bytes),
        "stops_gradient": list(analysis.stops_gradient),
        "admitted": found.admitted,
        "limits": dict(limits),
    }
    return write(answer, []) if binary else _json(answer)


def _int64(count: int) -> int:
    """The count; what is beyond 64 bits is beyond every limit, and JSON's readers."""
    return min(count, 2**63 - 1)


def certificate(found: Certificate, stats: Stats, directions: int, binary: bool) -> Body:
    """How far gradients are from differences."""
    answer = {
        "passed": found.passed,
        "errors": [{"node": node, "relative_error": error} for node, error in found.errors],
        "uncertified": [open_._asdict() for open_ in found.uncertified],
        "directions": directions,
        "tolerance": found.tolerance,
        "stats": _stats(stats),
    }
    return write(answer, []) if binary else _json(answer)


def exported(found: Exported, ask: Differentiate, binary: bool) -> Body:
    """A gradient as a graph; constants that came beside the JSON go back beside it."""
    constants: list[tuple[Label, Array]] = []

    def value(node: int, array: Array) -> Tensor | None:
        if not binary:
            return cast("Tensor", encode(array, "json"))
        constants.append((Label("constants", (node,)), array))
        return None

    graph = written(ask.graph, found.statements, value)
    answer = {
        "graph": graph,
        "gradients": [{"node": node, "gradient_node": gradient} for node, gradient in found.gradients],
        "disconnected": list(found.disconnected),
    }
    return write(answer, constants) if binary else _json(answer)


def limits_of(settings: Settings) -> dict[str, int]:
    """What one request may take."""
    return {
        "nodes": settings.max_nodes,
        "rank": settings.max_rank,
        "peak_bytes": settings.max_bytes,
        "flops": settings.max_flops,
        "response_bytes": settings.max_response_bytes,
        "body_bytes": settings.max_body_bytes,
        "binary_body_bytes": settings.max_binary_bytes,
        "json_depth": settings.json_depth,
        "name_characters": NAME_CHARACTERS,
        "timeout_ms": settings.timeout_ms,
    }


def _stats(stats: Stats) -> Json:
    found: Json = {
        "device": stats.device,
        "plan_cached": stats.plan_cached,
        "execute_ms": stats.execute_ms,
        "peak_bytes": stats.peak_bytes,
        "graph_id": stats.graph_id,
        "opset": OPSET,
        "dtype": stats.dtype,
        "versions": _versions(stats.device),
    }
    return found | ({} if stats.first_nonfinite is None else {"first_nonfinite": _nonfinite(stats.first_nonfinite)})


def _versions(device: str) -> Json:
    return VERSIONS if device == "cpu" else VERSIONS | {"cupy": _version("cupy-cuda13x", "cupy-cuda12x", "cupy")}


def _nonfinite(found: Nonfinite) -> Json:
    ranges = [dict(_bounds(both)) for both in found.ranges]
    return {
        "node": found.node,
        "op": found.op,
        "backward": found.backward,
        "computed": found.computed,
        "operands": ranges,
    }


def _bounds(both: tuple[float, float] | None) -> Iterator[tuple[str, float]]:
    """The ends of a range that are finite: JSON has no others."""
    return ((name, end) for name, end in zip(("low", "high"), both or (), strict=False) if math.isfinite(end))


def _version(*packages: str) -> str:
    for package in packages:
        try:
            return version(package)
        except PackageNotFoundError:
            continue
    return "0"


VERSIONS: Final[Json] = {"gradserve": _version("gradserve"), "numpy": np.__version__}


def _json(answer: Json) -> Body:
    return [orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)]
