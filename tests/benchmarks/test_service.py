"""The load generator counts every answer, and its requests match the workloads. No time is tested."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.service import bodies
from benchmarks.service.__main__ import Bench
from benchmarks.service.goals import verdict
from benchmarks.service.load import Target
from benchmarks.service.open_loop import WARM, Times, open_loop
from benchmarks.service.page import closed, sections
from benchmarks.suite import find
from tests.conftest import Client, RunningServer
from tests.guarantees.known import plain

SQUARE = {"graph": {"nodes": [{"op": "parameter"}, {"op": "square", "operands": [0]}]}}


def target(server: RunningServer, folder: Path, x: object) -> Target:
    feeds = [{"node": 0, "tensor": {"dtype": "float64", "shape": [], "data": [x]}}]
    file = folder / "body"
    file.write_text(json.dumps({**SQUARE, "feeds": feeds}), "utf-8")
    return Target(f"{server.url}/v1/gradients", "application/json", "application/json", file)


@pytest.mark.slow
def test_open_loop_counts_every_answer(server: RunningServer, tmp_path: Path) -> None:
    times = open_loop(target(server, tmp_path, 3.0), rate=50, seconds=1)  # no more than fit the queue
    assert times.refused == 0
    assert len(times.sorted) == pytest.approx(50 * (1 - WARM), abs=15)
    assert times.sorted == sorted(times.sorted)


@pytest.mark.slow
def test_open_loop_counts_refusals(server: RunningServer, tmp_path: Path) -> None:
    assert open_loop(target(server, tmp_path, "no number"), rate=50, seconds=1).refused == 50


def test_percentiles() -> None:
    times = Times([float(i) for i in range(100)], 1.0, 0)
    assert (times.at(0.5), times.at(0.99), times.at(1.0)) == (50.0, 99.0, 99.0)


def test_w1_is_the_same_in_json_and_in_safetensors(client: Client) -> None:
    work = find("W1")()
    mean, scale, x = (a.astype("float64") for a in work.arrays)
    expected = np.sum(-0.5 * ((x - mean) / np.exp(scale)) ** 2 - scale - 0.1 * np.tanh(mean) ** 2)
    answer = client.post("/v1/gradients", content=bodies.in_json(work), headers={"Content-Type": "application/json"})
    results = plain(answer.content)
    assert np.isclose(next(iter(results.values())), expected, rtol=1e-5)
    assert len(results) == 4
    binary = {"Content-Type": "application/vnd.safetensors"}
    packed = plain(client.post("/v1/gradients", content=bodies.in_safetensors(work), headers=binary).content)
    assert all(np.allclose(packed[name], results[name]) for name in results)


def test_servers_start_with_the_first_row_that_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr("benchmarks.service.servers.bare", lambda *_: pytest.fail("it lacks its parser"))
    monkeypatch.setattr("benchmarks.service.servers.has_bare", lambda: False)
    monkeypatch.setattr("benchmarks.service.servers.gradserve", lambda *_: nullcontext(SimpleNamespace(url="http://x")))
    monkeypatch.setattr("benchmarks.service.__main__.send", lambda url, *_: started.append(url))
    bench = Bench(peers=False)
    rows = bench.rows()
    assert len(rows) == 9
    assert not started
    for name in ("isolation-8", "large-1"):
        assert list(rows[name]().sides) == ["gradserve"]
    assert len(started) == 2


def test_verdict_reports_goals_met_and_missed() -> None:
    sides = {"gradserve": {"rate": {"median": 31_000.0}}, "FastAPI + PyTorch": {"rate": {"median": 2_000.0}}}
    text = verdict("registered-8", sides)
    assert text == "met: 3.1e+04/s, ≥ 30,000; **missed**: 15.5 × FastAPI + PyTorch, ≥ 25"
    assert verdict("no goals", sides) == ""


def test_page_has_a_line_per_side_and_reports_absent_ones() -> None:
    spread = {"median": 2.0, "lower": 1.0, "upper": 4.0}
    side = {"rate": spread, "p50": spread, "p99": spread}
    row = {"title": "a row", "connections": 8, "absent": "", "sides": {"ours": side, "theirs": side}}
    assert [line[2] for line in closed("a row", row)] == ["ours", "theirs"]
    assert next(closed("a row", row))[3] == "2 (0.50 to 2.00)"
    assert "Nothing has been measured yet." in "".join(sections({"x": {**row, "absent": "the server cannot"}}))
