"""The sandbox of a worker: how much memory it may take, by its budgets and its share of what there is."""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path

import pytest

from service.api.json_codec import OBJECT_BYTES_PER_JSON_BYTE
from service.core.settings import Settings, budget_of
from service.workers import sandbox
from service.workers.sandbox import SHARE, data_bytes, executing_bytes, limit_memory, limit_of, memory_limit

MIB = 1 << 20
SETTINGS = Settings(
    device="cpu", max_bytes=100 * MIB, max_response_bytes=10 * MIB, max_body_bytes=MIB, plan_cache_bytes=8 * MIB
)
EXECUTING = 100 * MIB + budget_of(SETTINGS).whole


def test_requests_may_take_an_execution_its_answer_twice_and_what_is_parsed() -> None:
    assert executing_bytes(SETTINGS) == EXECUTING
    assert limit_of(SETTINGS) == EXECUTING + 2 * 10 * MIB + OBJECT_BYTES_PER_JSON_BYTE * MIB


def test_without_a_share_the_budgets_count_on_top_of_what_is_taken() -> None:
    assert memory_limit(SETTINGS, 7 * MIB, None) == 7 * MIB + limit_of(SETTINGS)


@pytest.mark.parametrize("share", [0, EXECUTING, EXECUTING + 7 * MIB + 1, 1 << 50])
def test_a_share_bounds_it_but_never_below_an_execution(share: int) -> None:
    least, most = 7 * MIB + EXECUTING, 7 * MIB + limit_of(SETTINGS)
    assert memory_limit(SETTINGS, 7 * MIB, share) == min(most, max(least, share))


def test_what_is_taken_is_what_the_system_says() -> None:
    (stated,) = re.findall(r"VmData:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert abs(data_bytes() - int(stated) * 1024) < 64 * MIB


@pytest.mark.parametrize("share", [None, 1 << 50, 0])
@pytest.mark.parametrize("hard", [resource.RLIM_INFINITY, 1 << 60, MIB])
def test_the_limit_is_lowered_and_never_raised(monkeypatch: pytest.MonkeyPatch, hard: int, share: int | None) -> None:
    asked: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (hard, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda what, limits: asked.append((what, limits)))
    monkeypatch.setattr(sandbox, "data_bytes", lambda: 7 * MIB)
    monkeypatch.delenv(SHARE, raising=False)
    if share is not None:
        monkeypatch.setitem(os.environ, SHARE, str(share))
    limit_memory(SETTINGS)
    wanted = memory_limit(SETTINGS, 7 * MIB, share)
    assert asked == ([] if hard == MIB else [(resource.RLIMIT_DATA, (wanted, hard))])
