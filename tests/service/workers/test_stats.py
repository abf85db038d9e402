"""Statistics of a pool: zero defaults, separate instances, and immutability."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, asdict
from typing import Any

import pytest

from service.workers.pool import Stats


def test_defaults_are_zero() -> None:
    assert not any(asdict(Stats()).values())


def test_stats_share_no_state() -> None:
    one, other = Stats(), Stats()
    assert isinstance(one.queued, dict)
    one.queued["quick"] = 3
    assert other.queued == {}


@pytest.mark.parametrize("name", ["running", "workers", "displaced"])
def test_stats_are_immutable(name: str) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(Stats(), name, 1)


def test_unknown_field_is_refused() -> None:
    with pytest.raises(TypeError):
        Stats(waiting=1)  # type: ignore[call-arg]


def test_every_number_is_a_field() -> None:
    """Each number has its own name; the mappings are by lane, reason, signal or place."""
    mappings = {name for name, value in asdict(Stats()).items() if isinstance(value, dict)}
    assert mappings == {"queued", "workers", "restarts", "incidents", "pieces"}
    numbers: Any = dict.fromkeys(asdict(Stats()).keys() - mappings, 7)
    assert asdict(Stats(**numbers)) == {**numbers, **{name: {} for name in mappings}}
