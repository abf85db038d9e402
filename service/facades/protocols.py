"""Other systems' protocols as the front knows them: paths, names of calls, and the form of errors.

A `Facade` is one protocol. The front turns a request to one of its paths into a job for the call of that name, and
writes errors in the protocol's form. Workers read and answer the request (`service.facades.foreign_call`).
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
from service.store.tables import MODEL_WANTED

Header = Callable[[str], str | None]  # the value of a header field, None where there is none

#: statuses that most protocols keep: missing rights, missing things, and waiting
KEPT_STATUSES: Final = frozenset({401, 403, 404, 405, 408, 413, 415, 421, 429, 431})


@dataclass(frozen=True, slots=True)
class ForeignAnswer:
    """Answer in the form of a protocol."""

    parts: Sequence[bytes | memoryview]
    media_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FacadeRoute:
    """Path of a protocol, and the name of its call; `said` extracts the part of the head that the call needs.

    `{name}` in a path is the name of the model, and `{version}` the id of its graph; without them, the body has the
    name. Parameters of the query that are `ignored` change nothing.
    """

    method: str
    path: str
    call: str
    said: Callable[[Header], str] = lambda header: ""
    ignored: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """Path that lists models: `write_answer` gets the names of all."""

    path: str
    write_answer: Callable[[Sequence[str]], Mapping[str, Any]]


class Facade(ABC):
    """One protocol."""

    #: name in the setting `--facades`
    name: ClassVar[str]
    places: ClassVar[Sequence[FacadeRoute]]
    listings: ClassVar[Sequence[Listing]] = ()
    #: paths of health checks, for everybody: live or ready
    health: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def owns(self, path: str) -> bool:
        """Return whether a path belongs to the protocol, served or not: its errors have the protocol's form."""

    @abstractmethod
    def write_error(self, problem: Mapping[str, Any]) -> tuple[int, ForeignAnswer]:
        """Return the status and the protocol's form of a problem report of ours."""


# Open Inference, also called KServe v2, over HTTP: models with named tensors, as JSON and as bytes behind it.
#
# The protocol: https://github.com/kserve/open-inference-protocol, with the binary extension of
# https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_binary_data.md

_V2: Final = "/v2"
_V2_MODEL: Final = _V2 + "/models/{name}"
_V2_VERSION: Final = _V2_MODEL + "/versions/{version}"
#: number of bytes of a body, or of an answer, that are JSON; the tensors follow
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
        """Return whether a path begins with `/v2`."""
        return path == _V2 or path.startswith(f"{_V2}/")

    def write_error(self, problem: Mapping[str, Any]) -> tuple[int, ForeignAnswer]:
        """Write `{"error": "…"}`."""
        status: int = problem["status"]
        body = orjson.dumps({"error": problem["detail"]})
        return status if status in KEPT_STATUSES or status >= 500 else 400, ForeignAnswer([body])


# Tesseract over HTTP: models as functions of named arrays, at a path of its own each, with a document of its own.
#
# The protocol: https://docs.pasteurlabs.ai/projects/tesseract-core

_TESSERACT: Final = "/tesseract"
_TESSERACT_MODEL: Final = _TESSERACT + "/{name}"
#: paths of the calls under that of a model
_TESSERACT_CALLS: Final = ("apply", "jacobian", "jacobian_vector_product", "vector_jacobian_product", "abstract_eval")
#: a key of a pointer that counts elements; a name may be made of more digits
_INDEX: Final = re.compile(r"[0-9]{1,18}")


class Tesseract(Facade):
    """The protocol. A client is given the path of one model, and knows of no other."""

    name = "tesseract"
    places: ClassVar = [
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
        """Return whether a path is under that of all models."""
        return path == _TESSERACT or path.startswith(f"{_TESSERACT}/")

    def write_error(self, problem: Mapping[str, Any]) -> tuple[int, ForeignAnswer]:
        """Write `{"detail": [{"type", "loc", "msg", "input", "ctx"}]}`, of which clients make an error of pydantic's.

        They put `ctx` into braces of the sentence, so there are none.
        """
        status: int = problem["status"]
        errors = []
        for one in problem.get("errors") or [problem]:
            keys = one.get("pointer", "").split("/")[1:]
            place = [int(key) if _INDEX.fullmatch(key) else key.replace("~1", "/").replace("~0", "~") for key in keys]
            message = one["detail"].replace("{", "(").replace("}", ")")
            errors.append({"type": one["code"], "loc": ["body", *place], "msg": message, "input": None, "ctx": {}})
        body = orjson.dumps({"detail": errors})
        return status if status in KEPT_STATUSES or status >= 500 else 422, ForeignAnswer([body])


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
#: `expected` of the refusal of a request for something that is not served
SUPPORTED: Final = "what is served"
#: statuses whose errors its clients know by their type: missing or unsupported things
_TOLD_BY_TYPE: Final = frozenset({404, 405, 415})
#: types of errors other than InvalidInput, by our code
_UMBRIDGE_TYPES: Final[Mapping[str, str]] = {
    "not_differentiable": "UnsupportedFeature",
    "method_not_allowed": "UnsupportedFeature",
}
#: and by the `expected` of a report, whatever its code
_TYPES_BY_EXPECTATION: Final = {SUPPORTED: "UnsupportedFeature", MODEL_WANTED: "ModelNotFound"}


class UmBridge(Facade):
    """The protocol. Its paths are at the root, since its C++ client knows no prefix."""

    name = "umbridge"
    places: ClassVar = [FacadeRoute("POST", f"/{call}", f"umbridge.{call}") for call in _UMBRIDGE_CALLS]
    listings: ClassVar = [
        Listing(_UMBRIDGE_INFO, lambda names: {"protocolVersion": _UMBRIDGE_VERSION, "models": list(names)})
    ]

    def owns(self, path: str) -> bool:
        """Return whether a path is one of the protocol's."""
        return path in _UMBRIDGE_PATHS

    def write_error(self, problem: Mapping[str, Any]) -> tuple[int, ForeignAnswer]:
        """Write `{"error": {"type", "message"}}`, with 400 unless the status itself says what to do."""
        status, code = problem["status"], problem["code"]
        kind = _UMBRIDGE_TYPES.get(code, "InvalidInput" if status < 500 else "InternalError")
        kind = _TYPES_BY_EXPECTATION.get(problem.get("expected", ""), kind)
        body = {"error": {"type": kind, "message": problem["detail"]}}
        is_kept = status in KEPT_STATUSES - _TOLD_BY_TYPE or status >= 500
        return status if is_kept else 400, ForeignAnswer([orjson.dumps(body)])


#: by the names in the setting `--facades`
FACADES: Final[Mapping[str, Facade]] = {facade.name: facade for facade in (UmBridge(), OpenInference(), Tesseract())}
#: paths of health checks, which need no key
HEALTH_PATHS: Final = frozenset(path for facade in FACADES.values() for path in facade.health)
#: facade and call of each path
_BY_PATH: Final = {place.path: (facade, place.call) for facade in FACADES.values() for place in facade.places}


def foreign_call_of(route: str) -> str | None:
    """Return the name of a facade's call by its route, with names in braces; None for any other route."""
    return _BY_PATH[route][1] if route in _BY_PATH else None


def facade_name_of(route: str) -> str:
    """Return the name of a route's facade; empty for our own routes."""
    return _BY_PATH[route][0].name if route in _BY_PATH else ""


def facades_of(names: Iterable[str]) -> list[Facade]:
    """Return the facades of these names, each once."""
    return [FACADES[name] for name in dict.fromkeys(names)]


def owner_of(path: str, facades: Iterable[Facade]) -> Facade | None:
    """Return the facade that a path belongs to, if any."""
    return next((facade for facade in facades if facade.owns(path)), None)
