"""UM-Bridge 1.0 over HTTP: models as functions of flat vectors, with gradients, Jacobians and Hessians applied.

The protocol: https://um-bridge-benchmarks.readthedocs.io/en/docs/umbridge/protocol.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from service.facades.facade import Facade, FacadeRoute, Listing
from service.facades.foreign_call import ForeignAnswer
from service.facades.umbridge.calls import UMBRIDGE_CALLS
from service.facades.umbridge.errors import umbridge_error

_VERSION: Final = 1.0
_INFO: Final = "/Info"
_PATHS: Final = frozenset({_INFO, *(f"/{call.path}" for call in UMBRIDGE_CALLS)})


class UmBridge(Facade):
    """The protocol. Its paths are at the root, since its C++ client knows no prefix."""

    name = "umbridge"
    places: ClassVar = [FacadeRoute("POST", f"/{call.path}", call) for call in UMBRIDGE_CALLS]
    listings: ClassVar = [Listing(_INFO, lambda names: {"protocolVersion": _VERSION, "models": list(names)})]

    def owns(self, path: str) -> bool:
        """Whether it is one of its paths."""
        return path in _PATHS

    def write_error(self, problem: Mapping[str, Any]) -> tuple[int, ForeignAnswer]:
        """`{"error": {"type", "message"}}`."""
        return umbridge_error(problem)
