"""The single table of dtypes: other tables keyed by dtype only use its names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import DTYPES
from tests.architecture.source import PACKAGES, files, name, parsed

TABLE = "engine/ir/tensor_type.py"
#: files that name rounding formats, which are not tensor dtypes
PRECISIONS = ("engine/ir/run_report.py", "schemas/request.py")
DTYPE = re.compile(r"bool|u?int\d+|b?float\d+|complex\d+")
SPELLING = re.compile(r"BOOL|[IUFC]\d+|BF\d+")


def literals(path: Path, pattern: re.Pattern[str]) -> Iterator[tuple[str, set[str]]]:
    """Yield the location and the matching strings of each list or table: its elements or keys."""
    for node in ast.walk(parsed(path)):
        parts = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", ())
        strings = {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
        if names := {string for string in strings if pattern.fullmatch(string)}:
            yield f"{name(path)}:{getattr(node, 'lineno', 0)}", names


@pytest.mark.slow
def test_dtypes_are_listed_once() -> None:
    """Allow two dtypes, because a printer may list float32 and float64."""
    places = [place for path in files(*PACKAGES) if name(path) != TABLE for place in literals(path, DTYPE)]
    assert places
    assert not {where: names for where, names in places if len(names & {*DTYPES}) > 2}


@pytest.mark.slow
def test_dtype_tables_use_known_dtypes() -> None:
    kinds = {"bool", "int", "float"}
    places = [place for path in files(*PACKAGES) if name(path) not in PRECISIONS for place in literals(path, DTYPE)]
    assert not {where: names for where, names in places if not names <= {*DTYPES, *kinds}}


@pytest.mark.slow
def test_safetensors_spellings_are_defined_once() -> None:
    others = [path for path in files(*PACKAGES) if name(path) != TABLE]
    assert not [where for path in others for where, _ in literals(path, SPELLING)]
