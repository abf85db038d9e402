"""Costs of the clients: counted lines and measured times; calls without an answer are not timed."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import clients
from clients.conformance.languages import LANGUAGES


@pytest.mark.parametrize("name", LANGUAGES)
def test_each_client_has_handwritten_and_generated_lines(name: str) -> None:
    own, written = clients.lines(name)
    assert own > 1000 < written


def test_setup_time_is_not_part_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(clients.time, "perf_counter", lambda: now[0])

    def calls(count: int) -> None:
        now[0] += 5.0 + 0.25 * count

    assert clients.marginal(calls) == 0.25


def test_unanswered_call_is_reported() -> None:
    class Refused:
        def ask(self, case: dict[str, Any]) -> tuple[dict[str, Any], str]:
            return {"id": case["id"], "results": [{"returned": {}}, {"raised": {"type": "graph"}}]}, ""

    with pytest.raises(RuntimeError, match=r"not answered: .*graph"):
        clients.by_client(Refused(), "http://127.0.0.1:1", 2)  # type: ignore[arg-type]


def test_missing_measurement_is_a_dash(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(clients, "PACKAGES", tmp_path)
    assert clients.row("go", {})[3:] == ["–", "nothing", "–", "–"]
    assert clients.row("go", {"go": [3.0, 1.0, 1.0], "curl": [2.0, 2.0, 1.0]})[5:] == ["1.00 ms", "1.00"]
