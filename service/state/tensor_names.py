"""Names of resident tensors: what may be one, and what is said where one is none, or means nothing."""

from __future__ import annotations

import re
from typing import Final

from engine import printable
from service.errors import Refusal

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_EXPECTED: Final = "1 to 128 of A-Z a-z 0-9 _ . - with neither a dot nor a hyphen first"


def is_name(name: str) -> bool:
    """Return whether a tensor may be called this."""
    return _NAME.fullmatch(name) is not None


def checked_name(name: str, where: str, pointer: str | None = None, node: int | None = None) -> str:
    """`name`, once it may be one; `where` it stands is for the sentence. Raises Refusal: invalid_field."""
    if is_name(name):
        return name
    got = f"“{printable(name)}”" if name else "empty"
    at = "" if node is None else f"node {node}: "
    detail = f"{at}{where} must be {_EXPECTED}, but is {got}"
    raise Refusal("invalid_field", detail, node=node, expected=_EXPECTED, got=got, pointer=pointer)


def unknown_tensor(name: str, pointer: str | None = None, node: int | None = None) -> Refusal:
    """The refusal of a tensor that is not there."""
    at = "" if node is None else f"node {node}: "
    detail = f"{at}there is no resident tensor “{name}”; GET /v1/tensors lists those that are kept"
    return Refusal("not_found", detail, node=node, expected="the name of a resident tensor", got=name, pointer=pointer)
