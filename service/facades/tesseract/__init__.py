"""Tesseract over HTTP: models as functions of named arrays, at a path of its own each, with a document of its own.

The protocol: https://docs.pasteurlabs.ai/projects/tesseract-core
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from service.facades.facade import Facade, FacadeRoute, ForeignAnswer, Header
from service.facades.tesseract.errors import tesseract_error

_ROOT: Final = "/tesseract"
_MODEL: Final = _ROOT + "/{name}"
#: paths of the calls under that of a model
_CALLS: Final = ("apply", "jacobian", "jacobian_vector_product", "vector_jacobian_product", "abstract_eval")


def _accept(header: Header) -> str:
    return header("Accept") or ""


class Tesseract(Facade):
    """The protocol. A client is given the path of one model, and knows of no other."""

    name = "tesseract"
    places: ClassVar = [
        *(FacadeRoute("POST", f"{_MODEL}/{call}", f"tesseract.{call}", _accept, ("run_id",)) for call in _CALLS),
        FacadeRoute("GET", f"{_MODEL}/health", "tesseract.health"),
        FacadeRoute("GET", f"{_MODEL}/openapi.json", "tesseract.document"),
    ]

    def owns(self, path: str) -> bool:
        """Whether it is under the path of all models."""
        return path == _ROOT or path.startswith(f"{_ROOT}/")

    def write_error(self, problem: Mapping[str, Any]) -> tuple[int, ForeignAnswer]:
        """`{"detail": [{"type", "loc", "msg", "input", "ctx"}]}`."""
        return tesseract_error(problem)
