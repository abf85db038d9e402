"""Third-party protocols as the front sees them: paths, names of calls, and the format of errors.

A `Facade` is one protocol. The front turns a request to one of its paths into a job for the call of that name, and
writes errors in the protocol's format. Workers read and answer the request (`service.facades.foreign_call`).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import orjson

from service.api.media import JSON
from service.core.installed import VERSIONS
from service.store.tables import MODEL_EXPECTED

Header = Callable[[str], str | None]  # lookup of a header field's value, None if it is absent

#: statuses that most protocols use unchanged: missing permissions, missing resources, and retries
UNCHANGED_STATUSES: Final = frozenset({401, 403, 404, 405, 408, 413, 415, 421, 429, 431})


@dataclass(frozen=True, slots=True)
class ForeignAnswer:
    """Response in the format of a protocol."""

    parts: Sequence[bytes | memoryview]
    media_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FacadeRoute:
    """Path of a protocol and the name of its call; `read_head` extracts the part of the head that the call needs.

    `{name}` in a path is the name of the model, and `{version}` the id of its graph; without `{name}`, the body
    contains the name. Query parameters in `ignored` are accepted but have no effect.
    """

    method: str
    path: str
    call: str
    read_head: Callable[[Header], str] = lambda header: ""
    ignored: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """Path that lists models: `write_answer` gets the names of all models."""

    path: str
    write_answer: Callable[[Sequence[str]], Mapping[str, Any]]


class Facade(ABC):
    """Third-party protocol."""

    #: name in the setting `--facades`
    name: ClassVar[str]
    routes: ClassVar[Sequence[FacadeRoute]]
    listings: ClassVar[Sequence[Listing]] = ()
    #: public paths of health checks: live or ready
    health: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def owns(self, path: str) -> bool:
        """Return whether a path belongs to the protocol, even if it is not served: its errors have that format."""

    @abstractmethod
    def write_error(self, problem: Mapping[str, Any]) -> tuple[int, ForeignAnswer]:
        """Convert a problem report to a status and a response in the protocol's format."""


# Open Inference, also called KServe v2, over HTTP: models with named tensors, as JSON or as bytes after the JSON.
#
# The protocol: https://github.com/kserve/open-inference-protocol, with the binary extension of
# https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_binary_data.md

_V2: Final = "/v2"
_V2_MODEL: Final = _V2 + "/models/{name}"
_V2_VERSION: Final = _V2_MODEL + "/versions/{version}"
#: header with the number of leading bytes of a body that are JSON; the tensors follow
LENGTH_HEADER: Final = "Inference-Header-Content-Length"
#: paths whose bodies may have bytes after the JSON
BINARY_PATH: Final = re.compile(r"/v2/models/[^/]+(?:/versions/[^/]+)?/infer/?")
_SERVER: Final = {
    "name": "gradserve",
    "version": VERSIONS["gradserve"],
    "extensions": ["binary_tensor_data", "gradserve_gradients"],
}


class OpenInference(Facade):
    """Open Inference protocol. A version of a model is the id of its graph."""

    name = "openinference"
    routes: ClassVar = [
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
        """Return whether a path begins with `/v2`."""
        return path == _V2 or path.startswith(f"{_V2}/")

    def write_error(self, problem: Mapping[str, Any]) -> tuple[int, ForeignAnswer]:
        """Return `{"error": "…"}`."""
        status: int = problem["status"]
        body = orjson.dumps({"error": problem["detail"]})
        return status if status in UNCHANGED_STATUSES or status >= 500 else 400, ForeignAnswer([body])


# Tesseract over HTTP: models as functions of named arrays. Each model has its own path and its own OpenAPI document.
#
# The protocol: https://docs.pasteurlabs.ai/projects/tesseract-core

_TESSERACT: Final = "/tesseract"
_TESSERACT_MODEL: Final = _TESSERACT + "/{name}"
#: names of the calls; each is a path below that of the model
_TESSERACT_CALLS: Final = ("apply", "jacobian", "jacobian_vector_product", "vector_jacobian_product", "abstract_eval")
#: a JSON pointer token that is an element's index; a longer string of digits can only be a name
_INDEX: Final = re.compile(r"[0-9]{1,18}")


class Tesseract(Facade):
    """Tesseract protocol. A client is given the path of one model, and sees no other."""

    name = "tesseract"
    routes: ClassVar = [
        *(
            FacadeRoute(
                "POST",
                f"{_TESSERACT_MODEL}/{call}",
                f"tesseract.{call}",
                lambda header: header("Accept") or "",
                ignored=("run_id",),
            )
            for call in _TESSERACT_CALLS
        ),
        FacadeRoute("GET", f"{_TESSERACT_MODEL}/health", "tesseract.health"),
        FacadeRoute("GET", f"{_TESSERACT_MODEL}/openapi.json", "tesseract.document"),
    ]

    def owns(self, path: str) -> bool:
        """Return whether a path is below `/tesseract`."""
        return path == _TESSERACT or path.startswith(f"{_TESSERACT}/")

    def write_error(self, problem: Mapping[str, Any]) -> tuple[int, ForeignAnswer]:
        """Return `{"detail": [{"type", "loc", "msg", "input", "ctx"}]}`, from which clients build a pydantic error.

        They format the message with `ctx`, so braces in it are replaced.
        """
        status: int = problem["status"]
        errors = []
        for report in problem.get("errors") or [problem]:
            keys = report.get("pointer", "").split("/")[1:]
            location = [
                int(key) if _INDEX.fullmatch(key) else key.replace("~1", "/").replace("~0", "~") for key in keys
            ]
            message = report["detail"].replace("{", "(").replace("}", ")")
            errors.append(
                {"type": report["code"], "loc": ["body", *location], "msg": message, "input": None, "ctx": {}}
            )
        body = orjson.dumps({"detail": errors})
        return status if status in UNCHANGED_STATUSES or status >= 500 else 422, ForeignAnswer([body])


# UM-Bridge 1.0 over HTTP: models as functions of flat vectors, with gradients, Jacobians and Hessians applied.
#
# The protocol: https://um-bridge-benchmarks.readthedocs.io/en/docs/umbridge/protocol.html

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
#: `expected` field of a refusal because a feature is not supported
SUPPORTED: Final = "what is served"
#: statuses that become 400, since clients recognise these errors by type: missing or unsupported things
_STATUSES_BY_TYPE: Final = frozenset({404, 405, 415})
#: error types other than InvalidInput, by our code
_UMBRIDGE_TYPES: Final[Mapping[str, str]] = {
    "not_differentiable": "UnsupportedFeature",
    "method_not_allowed": "UnsupportedFeature",
}
#: error types by the `expected` field of a report, whatever its code
_TYPES_BY_EXPECTATION: Final = {SUPPORTED: "UnsupportedFeature", MODEL_EXPECTED: "ModelNotFound"}


class UmBridge(Facade):
    """UM-Bridge protocol. Its paths are at the root, since its C++ client does not support a prefix."""

    name = "umbridge"
    routes: ClassVar = [FacadeRoute("POST", f"/{call}", f"umbridge.{call}") for call in _UMBRIDGE_CALLS]
    listings: ClassVar = [
        Listing(_UMBRIDGE_INFO, lambda names: {"protocolVersion": _UMBRIDGE_VERSION, "models": list(names)})
    ]

    def owns(self, path: str) -> bool:
        """Return whether a path is one of the protocol's."""
        return path in _UMBRIDGE_PATHS

    def write_error(self, problem: Mapping[str, Any]) -> tuple[int, ForeignAnswer]:
        """Return `{"error": {"type", "message"}}`, with status 400 unless the status is one that clients handle."""
        status, code = problem["status"], problem["code"]
        kind = _UMBRIDGE_TYPES.get(code, "InvalidInput" if status < 500 else "InternalError")
        kind = _TYPES_BY_EXPECTATION.get(problem.get("expected", ""), kind)
        body = {"error": {"type": kind, "message": problem["detail"]}}
        keeps_status = status in UNCHANGED_STATUSES - _STATUSES_BY_TYPE or status >= 500
        return status if keeps_status else 400, ForeignAnswer([orjson.dumps(body)])


#: facades by their names in the setting `--facades`
FACADES: Final[Mapping[str, Facade]] = {facade.name: facade for facade in (UmBridge(), OpenInference(), Tesseract())}
#: paths of health checks, which need no key
HEALTH_PATHS: Final = frozenset(path for facade in FACADES.values() for path in facade.health)
#: facade and call of each path
_BY_PATH: Final = {route.path: (facade, route.call) for facade in FACADES.values() for route in facade.routes}


def foreign_call_of(route: str) -> str | None:
    """Return the name of the facade call at a route template; None for any other route."""
    return _BY_PATH[route][1] if route in _BY_PATH else None


def facade_name_of(route: str) -> str:
    """Return the name of a route's facade; "" for our own routes."""
    return _BY_PATH[route][0].name if route in _BY_PATH else ""


def facades_of(names: Iterable[str]) -> list[Facade]:
    """Return the facades with these names, without duplicates."""
    return [FACADES[name] for name in dict.fromkeys(names)]


def owner_of(path: str, facades: Iterable[Facade]) -> Facade | None:
    """Return the facade that a path belongs to, if any."""
    return next((facade for facade in facades if facade.owns(path)), None)
