"""The card report: figures merged over runs, phases that did not run, and the generated page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pytest

from benchmarks.card import page
from benchmarks.card.__main__ import main, run_phase
from benchmarks.card.closed import measure
from benchmarks.card.figures import KEPT, WHOLE, CardFigures
from benchmarks.card.phases import PHASES, Lacking, Phase, errors, outcomes, run
from benchmarks.goals import card_verdict
from engine.cuda.cupy_backend import is_available

CARD: Final = {"name": "NVIDIA H100 80GB HBM3", "driver_version": "580.1"}
WHERE: Final[dict[str, Any]] = {
    "card": CARD, "processor": "a processor", "cores": 16, "versions": {"torch": "2.11.0"}, "commit": "abc"
}  # fmt: skip
SIDES: Final = {
    "gradserve": {"median": 0.2, "lower": 0.19, "upper": 0.21, "ratio": 1.0},
    "torch": {"median": 0.4, "lower": 0.39, "upper": 0.41, "ratio": 0.5},
}


def figures(path: Path, **where: Any) -> CardFigures:
    return CardFigures(path, {**WHERE, **where})


def recorded(path: Path) -> CardFigures:
    """The figures of a run without JAX, and without time for the sanitizer."""
    report = figures(path)
    report.add("tests", "engine and contract", {"passed": 20000, "failed": 0, "skipped": 488, "seconds": 112.4})
    report.add("sanitizer", "memcheck", {"not_run": "it was given 150 s, which was too little"})
    report.add("bench", "jax", {"not_run": "jax is not installed"})
    report.add("bench", "W2", {"title": "W2: perceptron", "sides": SIDES, "without": {}})
    row = {"workload": "W1", "clients": 64, "rate": 12345.6, "p50": 1.5, "p99": 2.75}
    report.add("requests", "W1, 64 clients", row)
    report.add("compile", "W6", {"seconds": 4.56, "kernels": 16, "cores": 16})
    return report


# ---------------------------------------------------------------- stored figures


def test_single_phase_is_merged_into_the_report(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    before = recorded(path).phases
    figures(path, card={"name": "H200"}).add("compile", "W4", {"seconds": 0.5, "kernels": 10, "cores": 16})
    merged = json.loads(path.read_text("utf-8"))
    assert merged["compile"]["W4"]["where"]["card"] == {"name": "H200"}
    assert merged["compile"].pop("W4")
    assert merged == before


def test_figure_is_replaced_only_by_a_newer_figure(tmp_path: Path) -> None:
    report = recorded(tmp_path / "report.json")
    report.add("compile", "W6", {"not_run": "there is no card"})
    report.add("compile", WHOLE, {"not_run": "there is no card"})
    assert {name: row["seconds"] for name, row in report.phases["compile"].items()} == {"W6": 4.56}
    report.add("compile", "W6", {"seconds": 3.0, "kernels": 16, "cores": 16})
    assert report.phases["compile"]["W6"]["seconds"] == 3.0


def test_not_run_entry_is_dropped_after_a_run(tmp_path: Path) -> None:
    report = figures(tmp_path / "report.json")
    report.add("sanitizer", WHOLE, {"not_run": "there is no card"})
    assert report.phases["sanitizer"][WHOLE]["not_run"] == "there is no card"
    report.add("sanitizer", "memcheck", {"not_run": "late"})
    report.add("sanitizer", "memcheck", {"errors": 0})
    assert {name: row.get("not_run") for name, row in report.phases["sanitizer"].items()} == {"memcheck": None}


def test_rows_before_a_failure_are_stored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def rows(seconds: float) -> Iterator[tuple[str, Any]]:
        yield "one", {"seconds": seconds}
        raise RuntimeError("the rest went wrong")

    report = figures(tmp_path / "report.json")
    run_phase("compile", Phase(0.1, rows), 5.0, report)
    assert [*report.phases["compile"]] == ["one"]
    assert capsys.readouterr().out == "compile, one: seconds 5\ncompile: not run: the rest went wrong\n"


@pytest.mark.skipif(is_available(), reason="there is a card")
@pytest.mark.parametrize("phase", ["", *PHASES])
def test_without_a_card_each_phase_reports_not_run(
    phase: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--minutes", "1", "--phase", phase, "--output", str(tmp_path / "report.json")])
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.startswith("no card; ")
    assert [line.partition(": not run: ")[0] for line in lines] == ([phase] if phase else [*PHASES])


@pytest.mark.parametrize(
    ("name", "milliseconds", "said"),
    [
        ("W1-host", 0.079, "met: 0.08 ms"),
        ("W1-host", 0.0811, "missed: 0.081 ms > 0.08 ms"),
        ("W2", 0.2, "missed: torch"),
    ],
)
def test_goal_is_a_ratio_or_a_time(name: str, milliseconds: float, said: str) -> None:
    sides = {**SIDES, "gradserve": {**SIDES["gradserve"], "median": milliseconds}}
    assert card_verdict(name, {"sides": sides}).startswith(said)


# ---------------------------------------------------------------- output of tools


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("..\n19961 passed, 488 skipped in 112.01s (0:01:52)\n", (19961, 0, 488)),
        ("1 passed in 1s\n=== 2 failed, 3 passed, 1 error in 4.00s ===\n", (3, 3, 0)),
    ],
)
def test_pytest_summary_is_parsed(text: str, counts: tuple[int, int, int]) -> None:
    assert tuple(outcomes(text).values()) == counts


def test_aborted_test_run_is_refused() -> None:
    with pytest.raises(Lacking, match=r"pytest did not end: .*Segmentation fault"):
        outcomes("....Segmentation fault\n")


def test_errors_of_all_processes_are_summed() -> None:
    assert errors("== ERROR SUMMARY: 0 errors\n== ERROR SUMMARY: 3 errors\n") == 3
    assert errors("== RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n") == 1
    with pytest.raises(Lacking, match="has not summed up"):
        errors("no device")


def test_slow_command_is_killed() -> None:
    with pytest.raises(Lacking, match="given 0 s"):
        run(["sleep", "60"], 0.2)


@pytest.fixture
def answering() -> Iterator[ThreadingHTTPServer]:
    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200 if body == b"right" else 422)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.slow
def test_closed_loop_measures_rate_and_latency(answering: ThreadingHTTPServer) -> None:
    url = f"http://127.0.0.1:{answering.server_port}/"
    measured = measure(url, b"right", 3, 0.2)
    assert measured["rate"] * 0.2 >= 3 - 1e-9
    assert 0 < measured["p50"] <= measured["p99"]
    with pytest.raises(RuntimeError, match="answers 422"):
        measure(url, b"wrong", 1, 0.2)


# ---------------------------------------------------------------- the page


def rows_of(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]


def test_page_has_a_table_per_phase_and_the_phases_not_run(tmp_path: Path) -> None:
    text = page.measured(recorded(tmp_path / "report.json").phases)
    day = recorded(tmp_path / "other.json").phases["compile"]["W6"]["when"]
    where = [CARD["name"], day]
    rows = rows_of(text)
    assert ["engine and contract", "20,000", "0", "488", "112", *where] in rows
    assert ["W2: perceptron", "0.200", "0.50", "–", "–", "missed: torch 0.50 > 0.4", *where] in rows
    assert ["W1", "64", "12,346", "1.50", "2.75", *where] in rows
    assert ["W6", "4.56", "16", "16", *where] in rows
    assert [line for line in text.splitlines() if line.startswith("- ")] == [
        "- sanitizer, memcheck: it was given 150 s, which was too little",
        "- bench, jax: jax is not installed",
    ]
    assert "NVIDIA H100 80GB HBM3, 580.1" in text
    assert "torch 2.11.0; commit abc" in text


def test_page_without_markers_is_refused() -> None:
    assert page.written(f"before\n{page.START}old{page.END}after", {}).count("old") == 0
    with pytest.raises(ValueError, match="no place for figures of a card"):
        page.written("nothing", {})


def test_page_is_current() -> None:
    stored = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    text = page.PAGE.read_text("utf-8")
    assert page.written(text, stored) == text
