"""Runs on a card, as who wants to be alone with it sees them."""

from __future__ import annotations

import threading

import pytest

from engine.cuda.autotuning import CardRuns


def test_what_has_begun_is_counted_and_is_under_way_until_it_ends() -> None:
    runs = CardRuns()
    assert runs.wait_until_idle(0) == 0
    with runs:
        assert runs.started == 1
        assert runs.wait_until_idle(0) is None
        with runs:
            assert runs.started == 2
        assert runs.wait_until_idle(0) is None
    assert runs.wait_until_idle(0) == 2


def test_a_run_that_fails_has_ended() -> None:
    runs = CardRuns()
    with pytest.raises(KeyError), runs:
        raise KeyError
    assert runs.wait_until_idle(0) == 1


def test_who_waits_is_told_of_the_end() -> None:
    runs, found = CardRuns(), list[int | None]()
    waiting = threading.Thread(target=lambda: found.append(runs.wait_until_idle(600)), daemon=True)
    with runs:
        waiting.start()
    waiting.join(60)
    assert found == [1]
