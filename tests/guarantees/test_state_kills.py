"""Guarantee 9, for the journal alone: acknowledged commits survive 200 kills of the process that commits."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.guarantees.figures import Figures
from tests.service.store.killing import kill_often

pytestmark = pytest.mark.guarantee(9)
KILLS = 200


def test_acknowledged_commits_survive_kills(tmp_path: Path, figures: Figures) -> None:
    toll = kill_often(tmp_path / "state", KILLS, random.Random())
    note = f"{toll.acknowledged} commits were acknowledged; {toll.unacknowledged_kept} others survived"
    figures.at_least("kills of a process that commits", toll.kills, KILLS, "", note)
    figures.at_most("commits lost or torn by these kills", len(toll.wrong), 0, "", "; ".join(toll.wrong[:3]) or note)
    assert toll.acknowledged > KILLS
