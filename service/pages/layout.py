"""JSON as a person would write it: what fits on a line stands on one."""

from __future__ import annotations

import json
from textwrap import wrap
from typing import Any, Final

WIDTH: Final = 96
_LONGEST: Final = 160  # characters of a string or a header that are shown


def laid_out(value: Any, indent: int = 0, before: int = 0) -> str:
    """The JSON of `value`: objects and lists are broken only where a line would get too long.

    The line starts with `indent` spaces and has `before` more characters in front of the value.
    """
    flat = json.dumps(value, ensure_ascii=False)
    if indent + before + len(flat) <= WIDTH or not isinstance(value, dict | list):
        return flat
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        return _numbers(flat, indent)
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    return f"{opened}\n{_inner(value, indent + 2)}\n{' ' * indent}{closed}"


def _inner(value: dict[str, Any] | list[Any], indent: int) -> str:
    space = " " * indent
    if isinstance(value, list):
        return ",\n".join(space + laid_out(item, indent) for item in value)
    keyed = ((f"{json.dumps(key, ensure_ascii=False)}: ", item) for key, item in value.items())
    return ",\n".join(f"{space}{key}{laid_out(item, indent, len(key))}" for key, item in keyed)


def _numbers(flat: str, indent: int) -> str:
    """A long list of plain values, filled as a paragraph."""
    inside = wrap(flat[1:-1], WIDTH - indent - 2, break_long_words=False, break_on_hyphens=False)
    space = " " * indent
    return "[\n" + "\n".join(f"{space}  {line}" for line in inside) + f"\n{space}]"


def shortened(text: str) -> str:
    """`text`, or its beginning and its length where it is long."""
    return text if len(text) <= _LONGEST else f"{text[:40]}… ({len(text)} characters)"
