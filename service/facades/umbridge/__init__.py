"""UM-Bridge 1.0 over HTTP: models as functions of flat vectors, with gradients, Jacobians and Hessians applied.

The protocol: https://um-bridge-benchmarks.readthedocs.io/en/docs/umbridge/protocol.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import orjson

from service.facades.facade import KEPT_STATUSES, Facade, FacadeRoute, ForeignAnswer, Listing
from service.state.models import MODEL_WANTED

_UMBRIDGE_VERSION: Final = 1.0
_UMBRIDGE_INFO: Final = "/Info"
_UMBRIDGE_CALLS: Final = (
    "ModelInfo",
    "InputSizes",
    "OutputSizes",
    "Evaluate",
    "Gradient",
    "ApplyJacobian",
    "ApplyHessian",
)
_UMBRIDGE_PATHS: Final = frozenset({_UMBRIDGE_INFO, *(f"/{call}" for call in _UMBRIDGE_CALLS)})
#: what a report expects of a request that asks for something that is not served
SUPPORTED: Final = "what is served"
#: statuses whose errors its clients know by their type: what is not there, or not served
_TOLD_BY_TYPE: Final = frozenset({404, 405, 415})
#: types of errors other than InvalidInput, by our code
_UMBRIDGE_TYPES: Final[Mapping[str, str]] = {
    "not_differentiable": "UnsupportedFeature",
    "method_not_allowed": "UnsupportedFeature",
}
#: and by what a report expects, whatever its code
_TYPES_BY_EXPECTATION: Final = {SUPPORTED: "UnsupportedFeature", MODEL_WANTED: "ModelNotFound"}


class UmBridge(Facade):
    """The protocol. Its paths are at the root, since its C++ client knows no prefix."""

    name = "umbridge"
    places: ClassVar = [FacadeRoute("POST", f"/{call}", f"umbridge.{call}") for call in _UMBRIDGE_CALLS]
    listings: ClassVar = [
        Listing(_UMBRIDGE_INFO, lambda names: {"protocolVersion": _UMBRIDGE_VERSION, "models": list(names)})
    ]

    def owns(self, path: str) -> bool:
        """Tell whether a path is one of the protocol's."""
        return path in _UMBRIDGE_PATHS

    def write_error(self, problem: Mapping[str, Any]) -> tuple[int, ForeignAnswer]:
        """`{"error": {"type", "message"}}`, with 400 unless the status itself says what to do."""
        status, code = problem["status"], problem["code"]
        kind = _UMBRIDGE_TYPES.get(code, "InvalidInput" if status < 500 else "InternalError")
        kind = _TYPES_BY_EXPECTATION.get(problem.get("expected", ""), kind)
        body = {"error": {"type": kind, "message": problem["detail"]}}
        is_kept = status in KEPT_STATUSES - _TOLD_BY_TYPE or status >= 500
        return status if is_kept else 400, ForeignAnswer([orjson.dumps(body)])
