"""No kernel reads or writes outside of its buffers, in a corpus of graphs; and an extent that is one off is noticed.

`make test-bounds` runs all of it; `make test` what is quick.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bounds.breaking import BREAKS
from tests.bounds.children import parts, watched

pytest.importorskip("llvmlite")

PARTS = parts()
#: what `make test` runs, too: one process, and extents that kernels and that binding them have
QUICK = "kernels of 32 bytes"
QUICK_BREAKS = ("tail vector", "packed panel", "table")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == QUICK else pytest.mark.bounds) for name in PARTS]
)
def test_nothing_outside_of_a_buffer_is_read_or_written(name: str, tmp_path: Path) -> None:
    groups, options = PARTS[name]
    found = watched(groups, tmp_path, *options)
    assert not found.died
    assert found.said == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK_BREAKS else pytest.mark.bounds) for name in BREAKS]
)
def test_an_extent_that_is_one_off_is_noticed(name: str, tmp_path: Path) -> None:
    found = watched(BREAKS[name].groups, tmp_path, "--break", name)
    assert found.checked
    assert found.died.startswith("SIGSEGV") is not BREAKS[name].stated
