"""Sizes in bytes, as people write and read them: 4GiB, 64MiB, 500MB, 1024."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

_DECIMAL: Final = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BINARY: Final = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_UNITS: Final = {name.upper(): factor for name, factor in (_DECIMAL | _BINARY).items()}
_WITH_UNIT: Final = re.compile(r"([0-9]{1,30})\s*([A-Za-z]+)")
_LETTER: Final = re.compile(r"[A-Za-z]")
_READABLE: Final = 10_000  # from here on a number of units is as hard to read as one of bytes


def parsed(value: object) -> object:
    """The bytes of a text with a unit, in any case; all else as it is. Raises PydanticCustomError for other text.

    A letter alone (4G) is refused: some programs mean powers of 1000 by it, others powers of 1024.
    """
    if not isinstance(value, str) or not _LETTER.search(value):
        return value
    found = _WITH_UNIT.fullmatch(value.strip())
    factor = found and _UNITS.get(found[2].upper())
    if not found or not factor:
        units = ", ".join(_DECIMAL | _BINARY)
        raise PydanticCustomError("size", "a size is a whole number, alone or with one of {units}", {"units": units})
    return int(found[1]) * factor


def readable(size: int) -> str:
    """The size exactly, in the largest binary unit that divides it; where that is hard to read, with a rounding."""
    fitting = [(size // factor, name) for name, factor in _BINARY.items() if size and size % factor == 0]
    count, unit = fitting[-1] if fitting else (size, "")
    if count < _READABLE:
        return f"{count}{unit}"
    unit, factor = [(name, factor) for name, factor in _BINARY.items() if factor <= size][-1]
    return f"{size}, about {size / factor:.1f}{unit}"


#: marks a setting as a size; it is found again in the metadata of its field
SIZE: Final = BeforeValidator(parsed)
Size = Annotated[int, SIZE]
