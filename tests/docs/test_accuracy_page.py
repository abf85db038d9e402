"""The accuracy table against measured errors."""

from __future__ import annotations

import re
from importlib.util import find_spec

import pytest

from scripts.accuracy_table import PAGE, figure
from tests.engine.codegen.kernels.accuracy import CASES, DTYPES, PROMISED, farthest
from tests.sampling import sampled

pytestmark = pytest.mark.skipif(find_spec("llvmlite") is None, reason="needs llvmlite")


def table_entry(name: str, dtype: str) -> str:
    row = re.search(rf"^\| `{name}` \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert row is not None
    return row[1].split("|")[DTYPES.index(dtype)].strip()


@pytest.mark.parametrize(("name", "dtype"), sampled(CASES, lambda case: case))
def test_accuracy_table_matches_measured_errors(name: str, dtype: str) -> None:
    ulps = farthest(name, dtype, 100_000 if dtype == "float32" else 2_000).ulps
    # fewer points than for the table, so the measured error may be smaller
    assert float(table_entry(name, dtype)) - 0.6 <= ulps
    assert figure(ulps) <= table_entry(name, dtype) <= figure(PROMISED[dtype])
