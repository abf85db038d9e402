"""The table of errors is that of the functions as they are."""

from __future__ import annotations

import re
from importlib.util import find_spec

import pytest

from scripts.accuracy_table import PAGE, figure
from tests.engine.codegen.kernels.accuracy import CASES, DTYPES, PROMISED, farthest

pytestmark = pytest.mark.skipif(find_spec("llvmlite") is None, reason="needs llvmlite")


def said(name: str, dtype: str) -> str:
    row = re.search(rf"^\| `{name}` \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert row is not None
    return row[1].split("|")[DTYPES.index(dtype)].strip()


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_errors_are_what_the_page_says(name: str, dtype: str) -> None:
    found = farthest(name, dtype, 100_000 if dtype == "float32" else 2_000).ulps
    # fewer points than the table is made of, which hide no more than this
    assert float(said(name, dtype)) - 0.6 <= found
    assert figure(found) <= said(name, dtype) <= figure(PROMISED[dtype])
