"""Kills of a writer at random moments lose no acknowledged commit and leave no partial one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from service.store.writes import Commit
from tests.service.store.committing import batch_of
from tests.service.store.killing import check_state, kill_often
from tests.service.store.support import journal, reopened


@pytest.mark.smoke
@pytest.mark.slow
def test_kills_lose_no_acknowledged_commit(tmp_path: Path) -> None:
    toll = kill_often(tmp_path / "state", 12, random.Random(11))
    assert not toll.wrong
    assert toll.kills == 12
    assert toll.acknowledged > 12


@pytest.mark.parametrize("missing", ["tensors", "graphs", "answers", "models"])
def test_check_detects_lost_data(tmp_path: Path, missing: str) -> None:
    opened = journal(tmp_path / "state")
    opened.load()
    for number in range(1, 21):
        (whole,) = batch_of(number)
        parts = {name: getattr(whole, name) for name in ("tensors", "graphs", "answers", "models")}
        opened.commit([Commit(**parts | ({missing: ()} if number == 20 else {}))])
    opened.close()
    assert check_state(reopened(tmp_path / "state"), 20)[1]
