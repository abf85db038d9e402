"""Statistics of a pool: one that has done nothing says nothing, no two share what they count, and none changes."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, asdict
from typing import Any

import pytest

from service.workers.pool import Stats


def test_of_a_pool_that_has_done_nothing_all_numbers_are_nothing() -> None:
    assert not any(asdict(Stats()).values())


def test_two_pools_do_not_count_together() -> None:
    one, other = Stats(), Stats()
    assert isinstance(one.queued, dict)
    one.queued["quick"] = 3
    assert other.queued == {}


@pytest.mark.parametrize("name", ["running", "workers", "displaced"])
def test_what_was_said_of_a_moment_stays_said(name: str) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(Stats(), name, 1)


def test_nothing_is_counted_that_has_no_name() -> None:
    with pytest.raises(TypeError):
        Stats(waiting=1)  # type: ignore[call-arg]


def test_every_number_is_told_to_those_who_watch() -> None:
    """Each comes by its own name; the mappings are by lane, reason, signal or place."""
    mappings = {name for name, value in asdict(Stats()).items() if isinstance(value, dict)}
    assert mappings == {"queued", "workers", "restarts", "incidents", "pieces"}
    told: Any = dict.fromkeys(asdict(Stats()).keys() - mappings, 7)
    assert asdict(Stats(**told)) == {**told, **{name: {} for name in mappings}}
