"""Dtypes are listed in one table; what else is kept by dtype, as a printer's words, is for some of those."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import DTYPES
from tests.architecture.source import PACKAGES, files, name, parsed

TABLE = "engine/ir/tensor_type.py"
#: name formats that operands are rounded to, which are no dtypes of tensors
PRECISIONS = ("engine/ir/run_report.py", "schemas/request.py")
DTYPE = re.compile(r"bool|u?int\d+|b?float\d+|complex\d+")
SPELLING = re.compile(r"BOOL|[IUFC]\d+|BF\d+")


def literals(path: Path, like: re.Pattern[str]) -> Iterator[tuple[str, set[str]]]:
    """Where a file has a list or a table of such strings, and which: elements, or keys."""
    for node in ast.walk(parsed(path)):
        parts = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", ())
        strings = {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
        if found := {string for string in strings if like.fullmatch(string)}:
            yield f"{name(path)}:{getattr(node, 'lineno', 0)}", found


@pytest.mark.slow
def test_no_other_list_says_the_same() -> None:
    """Two of them, float32 and float64, may be what a printer has."""
    places = [place for path in files(*PACKAGES) if name(path) != TABLE for place in literals(path, DTYPE)]
    assert places
    assert not {where: found for where, found in places if len(found & {*DTYPES}) > 2}


@pytest.mark.slow
def test_what_is_kept_by_dtype_is_for_dtypes_of_the_table() -> None:
    kinds = {"bool", "int", "float"}
    places = [place for path in files(*PACKAGES) if name(path) not in PRECISIONS for place in literals(path, DTYPE)]
    assert not {where: found for where, found in places if not found <= {*DTYPES, *kinds}}


@pytest.mark.slow
def test_nobody_else_spells_them_as_safetensors_does() -> None:
    others = [path for path in files(*PACKAGES) if name(path) != TABLE]
    assert not [where for path in others for where, _ in literals(path, SPELLING)]
