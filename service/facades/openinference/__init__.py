"""Open Inference, also called KServe v2, over HTTP: models with named tensors, as JSON and as bytes behind it.

The protocol: https://github.com/kserve/open-inference-protocol, with the binary extension of
https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_binary_data.md
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import orjson

from service.facades.facade import Facade, FacadeRoute, ForeignAnswer, Listing
from service.versions import VERSIONS

_ROOT: Final = "/v2"
_MODEL: Final = _ROOT + "/models/{name}"
_VERSION: Final = _MODEL + "/versions/{version}"
#: how many bytes of a body, or of an answer, are JSON; the tensors follow
LENGTH_HEADER: Final = "Inference-Header-Content-Length"
#: the paths whose bodies may have bytes behind their JSON
BINARY_PATH: Final = re.compile(r"/v2/models/[^/]+(?:/versions/[^/]+)?/infer/?")
_SERVER: Final = {
    "name": "gradserve",
    "version": VERSIONS["gradserve"],
    "extensions": ["binary_tensor_data", "gradserve_gradients"],
}
#: statuses that stay: who may not, what is not there, who is to wait, and faults that are not the client's
_KEPT: Final = frozenset({401, 403, 404, 405, 408, 413, 415, 421, 429, 431})


class OpenInference(Facade):
    """The protocol. A version of a model is the id of its graph."""

    name = "openinference"
    places: ClassVar = [
        *(FacadeRoute("GET", path, "openinference.metadata") for path in (_MODEL, _VERSION)),
        *(FacadeRoute("GET", f"{path}/ready", "openinference.ready") for path in (_MODEL, _VERSION)),
        *(
            FacadeRoute("POST", f"{path}/infer", "openinference.infer", lambda header: header(LENGTH_HEADER) or "")
            for path in (_MODEL, _VERSION)
        ),
    ]
    listings: ClassVar = [Listing(_ROOT, lambda names: _SERVER)]
    health: ClassVar = {f"{_ROOT}/health/live": "live", f"{_ROOT}/health/ready": "ready"}

    def owns(self, path: str) -> bool:
        """Whether it begins with its version."""
        return path == _ROOT or path.startswith(f"{_ROOT}/")

    def write_error(self, problem: Mapping[str, Any]) -> tuple[int, ForeignAnswer]:
        """`{"error": "…"}`."""
        status: int = problem["status"]
        body = orjson.dumps({"error": problem["detail"]})
        return status if status in _KEPT or status >= 500 else 400, ForeignAnswer([body])
