"""No kernel reads or writes outside of its buffers, in a corpus of graphs; and off-by-one extents are detected.

`make test-bounds` runs all of it; `make test` runs the quick part.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bounds.breaking import BREAKS
from tests.bounds.children import parts, watched

pytest.importorskip("llvmlite")

PARTS = parts()
#: the part that `make test` runs: one process, and extents of kernels and of their bindings
QUICK = "kernels of 32 bytes"
QUICK_BREAKS = ("tail vector", "packed panel", "table")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == QUICK else pytest.mark.bounds) for name in PARTS]
)
def test_kernels_stay_within_their_buffers(name: str, tmp_path: Path) -> None:
    groups, options = PARTS[name]
    outcome = watched(groups, tmp_path, *options)
    assert not outcome.died
    assert outcome.lines == []


def test_breaks_replace_what_exists() -> None:
    """Most of them only run in `make test-all`, long after a function was renamed."""
    assert [name for name, each in BREAKS.items() if each.name not in vars(each.owner)] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK_BREAKS else pytest.mark.bounds) for name in BREAKS]
)
def test_off_by_one_extent_is_detected(name: str, tmp_path: Path) -> None:
    outcome = watched(BREAKS[name].groups, tmp_path, "--break", name)
    assert outcome.checked
    assert outcome.died.startswith("SIGSEGV") is not BREAKS[name].stated
