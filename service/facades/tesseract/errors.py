"""Errors as Tesseract has them: 422 with a list such as pydantic's, since its clients make that into an exception."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from service.facades.facade import ForeignAnswer

#: statuses that stay: who may not, what is not there, and who is to wait
_KEPT: Final = frozenset({401, 403, 404, 405, 408, 413, 415, 421, 429, 431})
#: a key of a pointer that counts elements; a name may be made of more digits
_INDEX: Final = re.compile(r"[0-9]{1,18}")


def tesseract_error(problem: Mapping[str, Any]) -> tuple[int, ForeignAnswer]:
    """The error that a problem report of ours is, and its status."""
    status: int = problem["status"]
    found = [_finding(one) for one in problem.get("errors") or [problem]]
    return status if status in _KEPT or status >= 500 else 422, ForeignAnswer([orjson.dumps({"detail": found})])


def _finding(problem: Mapping[str, Any]) -> dict[str, Any]:
    """One of them. The client puts `ctx` into the sentence where that has braces, so it is empty."""
    keys = problem.get("pointer", "").split("/")[1:]
    place = [int(key) if _INDEX.fullmatch(key) else key.replace("~1", "/").replace("~0", "~") for key in keys]
    message = problem["detail"].replace("{", "(").replace("}", ")")
    return {"type": problem["code"], "loc": ["body", *place], "msg": message, "input": None, "ctx": {}}
