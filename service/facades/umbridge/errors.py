"""Errors as UM-Bridge has them: a type and a message, with 400 unless the status itself says what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from service.facades.facade import ForeignAnswer
from service.state.models import MODEL_WANTED

#: codes of ours that are another type than InvalidInput
_TYPES: Final[Mapping[str, str]] = {
    "not_differentiable": "UnsupportedFeature",
    "method_not_allowed": "UnsupportedFeature",
}
#: what a report expects of a request that asks for something that is not served
SUPPORTED: Final = "what is served"
#: and what a report expects that is of a type of its own, whatever its code
_BY_EXPECTATION: Final = {SUPPORTED: "UnsupportedFeature", MODEL_WANTED: "ModelNotFound"}
#: statuses that stay: who may not, who is to wait, and faults that are not the client's
_KEPT: Final = frozenset({401, 403, 408, 413, 421, 429, 431})


def umbridge_error(problem: Mapping[str, Any]) -> tuple[int, ForeignAnswer]:
    """The error that a problem report of ours is, and its status."""
    status, code = problem["status"], problem["code"]
    kind = _TYPES.get(code, "InvalidInput" if status < 500 else "InternalError")
    kind = _BY_EXPECTATION.get(problem.get("expected", ""), kind)
    body = {"error": {"type": kind, "message": problem["detail"]}}
    return status if status in _KEPT or status >= 500 else 400, ForeignAnswer([orjson.dumps(body)])
