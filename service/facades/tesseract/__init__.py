"""Tesseract over HTTP: models as functions of named arrays, at a path of its own each, with a document of its own.

The protocol: https://docs.pasteurlabs.ai/projects/tesseract-core
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import orjson

from service.facades.facade import KEPT_STATUSES, Facade, FacadeRoute, ForeignAnswer

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
        """Tell whether a path is under that of all models."""
        return path == _TESSERACT or path.startswith(f"{_TESSERACT}/")

    def write_error(self, problem: Mapping[str, Any]) -> tuple[int, ForeignAnswer]:
        """`{"detail": [{"type", "loc", "msg", "input", "ctx"}]}`: clients make an exception of pydantic's out of it."""
        status: int = problem["status"]
        findings = [_finding(one) for one in problem.get("errors") or [problem]]
        body = orjson.dumps({"detail": findings})
        return status if status in KEPT_STATUSES or status >= 500 else 422, ForeignAnswer([body])


def _finding(problem: Mapping[str, Any]) -> dict[str, Any]:
    """Write one error. The client puts `ctx` into the sentence where that has braces, so it is empty."""
    keys = problem.get("pointer", "").split("/")[1:]
    place = [int(key) if _INDEX.fullmatch(key) else key.replace("~1", "/").replace("~0", "~") for key in keys]
    message = problem["detail"].replace("{", "(").replace("}", ")")
    return {"type": problem["code"], "loc": ["body", *place], "msg": message, "input": None, "ctx": {}}
