"""Guarantee 18, in virtual time: histories of servers that take over from each other, or share state."""

from __future__ import annotations

import os

import pytest

from tests.guarantees.figures import Figures
from tests.simulation.__main__ import tolls

pytestmark = pytest.mark.guarantee(18)
HISTORIES = int(os.environ.get("GRADSERVE_TEST_HISTORIES", "10000"))


@pytest.mark.parametrize("lease", [1.0, 0.0])
@pytest.mark.parametrize("servers", ["that take over from each other", "that share state"])
def test_histories_are_linearizable(servers: str, lease: float, figures: Figures) -> None:
    """Servers are paused, killed, cut off and stopped; the store is slow, loses answers and applies puts late."""
    toll = tolls(range(HISTORIES), lease=lease, cluster=servers == "that share state")
    name = f"histories of servers {servers}, lease {lease:g} s: not linearizable or undecided, of {HISTORIES:,}"
    note = f"{toll.asked} operations, {toll.answered / toll.asked:.1%} answered"
    note += f"; seeds {toll.wrong[:10]}, {toll.undecided[:10]}"
    figures.at_most(name, len(toll.wrong) + len(toll.undecided), 0, "", note)
    assert toll.answered > 0.6 * toll.asked, "too few operations got a response: the check would prove little"
