"""The sandbox of a worker: its memory limit follows from its budgets and its share of the machine."""

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


def test_limit_covers_execution_two_answers_and_parsed_json() -> None:
    assert executing_bytes(SETTINGS) == EXECUTING
    assert limit_of(SETTINGS) == EXECUTING + 2 * 10 * MIB + OBJECT_BYTES_PER_JSON_BYTE * MIB


def test_limit_without_a_share_adds_the_budgets_to_used_memory() -> None:
    assert memory_limit(SETTINGS, 7 * MIB, None) == 7 * MIB + limit_of(SETTINGS)


@pytest.mark.parametrize("share", [0, EXECUTING, EXECUTING + 7 * MIB + 1, 1 << 50])
def test_share_lowers_the_limit_but_not_below_an_execution(share: int) -> None:
    least, most = 7 * MIB + EXECUTING, 7 * MIB + limit_of(SETTINGS)
    assert memory_limit(SETTINGS, 7 * MIB, share) == min(most, max(least, share))


def test_data_bytes_match_the_system() -> None:
    (kilobytes,) = re.findall(r"VmData:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert abs(data_bytes() - int(kilobytes) * 1024) < 64 * MIB


@pytest.mark.parametrize("share", [None, 1 << 50, 0])
@pytest.mark.parametrize("hard", [resource.RLIM_INFINITY, 1 << 60, MIB])
def test_limit_is_lowered_but_never_raised(monkeypatch: pytest.MonkeyPatch, hard: int, share: int | None) -> None:
    calls: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (hard, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: calls.append((kind, limits)))
    monkeypatch.setattr(sandbox, "data_bytes", lambda: 7 * MIB)
    monkeypatch.delenv(SHARE, raising=False)
    if share is not None:
        monkeypatch.setitem(os.environ, SHARE, str(share))
    limit_memory(SETTINGS)
    limit = memory_limit(SETTINGS, 7 * MIB, share)
    assert calls == ([] if hard == MIB else [(resource.RLIMIT_DATA, (limit, hard))])
