"""What clients cost: lines and times as they are counted, and a call that is not answered is no time."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import clients
from clients.conformance.languages import LANGUAGES


@pytest.mark.parametrize("name", LANGUAGES)
def test_each_client_has_lines_of_both_kinds(name: str) -> None:
    own, written = clients.lines(name)
    assert own > 1000 < written


def test_what_is_done_once_is_no_part_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(clients.time, "perf_counter", lambda: now[0])

    def calls(count: int) -> None:
        now[0] += 5.0 + 0.25 * count

    assert clients.marginal(calls) == 0.25


def test_a_call_that_is_not_answered_is_said() -> None:
    class Refused:
        def ask(self, case: dict[str, Any]) -> tuple[dict[str, Any], str]:
            return {"id": case["id"], "results": [{"returned": {}}, {"raised": {"type": "graph"}}]}, ""

    with pytest.raises(RuntimeError, match=r"not answered: .*graph"):
        clients.by_client(Refused(), "http://127.0.0.1:1", 2)  # type: ignore[arg-type]


def test_what_was_not_measured_is_a_dash(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(clients, "PACKAGES", tmp_path)
    assert clients.row("go", {})[3:] == ["–", "nothing", "–", "–"]
    assert clients.row("go", {"go": [3.0, 1.0, 1.0], "curl": [2.0, 2.0, 1.0]})[5:] == ["1.00 ms", "1.00"]
