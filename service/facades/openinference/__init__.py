"""Open Inference, also called KServe v2, over HTTP: models with named tensors, as JSON and as bytes behind it.

The protocol: https://github.com/kserve/open-inference-protocol, with the binary extension of
https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_binary_data.md
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import orjson

from service.facades.facade import KEPT_STATUSES, Facade, FacadeRoute, ForeignAnswer, Listing
from service.versions import VERSIONS

_V2: Final = "/v2"
_V2_MODEL: Final = _V2 + "/models/{name}"
_V2_VERSION: Final = _V2_MODEL + "/versions/{version}"
#: how many bytes of a body, or of an answer, are JSON; the tensors follow
LENGTH_HEADER: Final = "Inference-Header-Content-Length"
#: the paths whose bodies may have bytes behind their JSON
BINARY_PATH: Final = re.compile(r"/v2/models/[^/]+(?:/versions/[^/]+)?/infer/?")
_SERVER: Final = {
    "name": "gradserve",
    "version": VERSIONS["gradserve"],
    "extensions": ["binary_tensor_data", "gradserve_gradients"],
}


class OpenInference(Facade):
    """The protocol. A version of a model is the id of its graph."""

    name = "openinference"
    places: ClassVar = [
        *(FacadeRoute("GET", path, "openinference.metadata") for path in (_V2_MODEL, _V2_VERSION)),
        *(FacadeRoute("GET", f"{path}/ready", "openinference.ready") for path in (_V2_MODEL, _V2_VERSION)),
        *(
            FacadeRoute("POST", f"{path}/infer", "openinference.infer", lambda header: header(LENGTH_HEADER) or "")
            for path in (_V2_MODEL, _V2_VERSION)
        ),
    ]
    listings: ClassVar = [Listing(_V2, lambda names: _SERVER)]
    health: ClassVar = {f"{_V2}/health/live": "live", f"{_V2}/health/ready": "ready"}

    def owns(self, path: str) -> bool:
        """Tell whether a path begins with `/v2`."""
        return path == _V2 or path.startswith(f"{_V2}/")

    def write_error(self, problem: Mapping[str, Any]) -> tuple[int, ForeignAnswer]:
        """`{"error": "…"}`."""
        status: int = problem["status"]
        body = orjson.dumps({"error": problem["detail"]})
        return status if status in KEPT_STATUSES or status >= 500 else 400, ForeignAnswer([body])
