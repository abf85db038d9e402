"""UM-Bridge 1.0 over HTTP: models as functions of flat vectors, with gradients, Jacobians and Hessians applied.

The protocol: https://um-bridge-benchmarks.readthedocs.io/en/docs/umbridge/protocol.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from service.facades.facade import Facade, FacadeRoute, ForeignAnswer, Listing
from service.facades.umbridge.errors import umbridge_error

_VERSION: Final = 1.0
_INFO: Final = "/Info"
_CALLS: Final = (
    "ModelInfo",
    "InputSizes",
    "OutputSizes",
    "Evaluate",
    "Gradient",
    "ApplyJacobian",
    "ApplyHessian",
)
_PATHS: Final = frozenset({_INFO, *(f"/{call}" for call in _CALLS)})


class UmBridge(Facade):
    """The protocol. Its paths are at the root, since its C++ client knows no prefix."""

    name = "umbridge"
    places: ClassVar = [FacadeRoute("POST", f"/{call}", f"umbridge.{call}") for call in _CALLS]
    listings: ClassVar = [Listing(_INFO, lambda names: {"protocolVersion": _VERSION, "models": list(names)})]

    def owns(self, path: str) -> bool:
        """Whether it is one of its paths."""
        return path in _PATHS

    def write_error(self, problem: Mapping[str, Any]) -> tuple[int, ForeignAnswer]:
        """`{"error": {"type", "message"}}`."""
        return umbridge_error(problem)
