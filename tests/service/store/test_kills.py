"""A writer is killed at any moment: nothing that it acknowledged is lost, and nothing is torn."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from service.store.writes import Commit
from tests.service.store.committing import batch_of
from tests.service.store.killing import kill_often, looked_at
from tests.service.store.support import journal, reopened


@pytest.mark.smoke
@pytest.mark.slow
def test_kills(tmp_path: Path) -> None:
    toll = kill_often(tmp_path / "state", 12, random.Random(11))
    assert not toll.wrong
    assert toll.kills == 12
    assert toll.acknowledged > 12


@pytest.mark.parametrize("missing", ["tensors", "graphs", "answers", "models"])
def test_what_is_lost_is_noticed(tmp_path: Path, missing: str) -> None:
    opened = journal(tmp_path / "state")
    opened.load()
    for number in range(1, 21):
        (whole,) = batch_of(number)
        parts = {name: getattr(whole, name) for name in ("tensors", "graphs", "answers", "models")}
        opened.commit([Commit(**parts | ({missing: ()} if number == 20 else {}))])
    opened.close()
    assert looked_at(reopened(tmp_path / "state"), 20)[1]
