"""Eighteenth guarantee, on virtual time: histories of servers that take a place from each other, or share it."""

from __future__ import annotations

import os

import pytest

from tests.guarantees.figures import Figures
from tests.simulation.__main__ import tolls

pytestmark = pytest.mark.guarantee(18)
HISTORIES = int(os.environ.get("GRADSERVE_TEST_HISTORIES", "10000"))


@pytest.mark.parametrize("lease", [1.0, 0.0])
@pytest.mark.parametrize("what", ["that take a place from each other", "that share a state"])
def test_histories_are_linearizable(what: str, lease: float, figures: Figures) -> None:
    """Servers are paused, killed, cut off and told to go; the store delays, loses answers and makes puts late."""
    found = tolls(range(HISTORIES), lease=lease, cluster=what == "that share a state")
    name = f"of {HISTORIES:,} histories of servers {what}, L = {lease:g} s: not linearizable, or not decided"
    note = f"{found.asked} operations, {found.answered / found.asked:.1%} answered"
    note += f"; seeds {found.wrong[:10]}, {found.undecided[:10]}"
    figures.at_most(name, len(found.wrong) + len(found.undecided), 0, "", note)
    assert found.answered > 0.6 * found.asked, "a checker is content with servers that do not answer"
