"""`CardRuns` counts the runs on a card and waits until it is idle."""

from __future__ import annotations

import threading

import pytest

from engine.cuda.autotuning import CardRuns


def test_runs_are_counted_and_active_until_they_end() -> None:
    runs = CardRuns()
    assert runs.wait_until_idle(0) == 0
    with runs:
        assert runs.started == 1
        assert runs.wait_until_idle(0) is None
        with runs:
            assert runs.started == 2
        assert runs.wait_until_idle(0) is None
    assert runs.wait_until_idle(0) == 2


def test_failed_run_has_ended() -> None:
    runs = CardRuns()
    with pytest.raises(KeyError), runs:
        raise KeyError
    assert runs.wait_until_idle(0) == 1


def test_waiter_is_notified_when_the_run_ends() -> None:
    runs, counts = CardRuns(), list[int | None]()
    waiting = threading.Thread(target=lambda: counts.append(runs.wait_until_idle(600)), daemon=True)
    with runs:
        waiting.start()
    waiting.join(60)
    assert counts == [1]
