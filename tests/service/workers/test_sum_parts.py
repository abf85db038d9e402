"""Parts of sums travel as text, and their run reports as a header."""

from __future__ import annotations

import pytest

from engine.ir.run_report import RunReport
from service.workers.task import (
    Piece,
    PieceRequest,
    SumPart,
    Total,
    combine_reports,
    read_part,
    read_run,
    run_header,
    write_part,
)


@pytest.mark.parametrize(
    "part", [Piece(0, 4), PieceRequest(4, 5), Total(3, 1, 0.5, "compiled", "tf32", 7, 24)], ids=repr
)
def test_part_round_trip(part: SumPart) -> None:
    text = write_part(part)
    assert "\n" not in text
    assert read_part(text) == part
    assert type(read_part(text)) is type(part)


def test_run_report_is_read_from_the_headers() -> None:
    report = RunReport("partly_compiled", "tf32x3")
    header = run_header(report, 0.25)
    assert read_run([("Server", "x"), (header[0].lower(), header[1])]) == (report, 0.25)


@pytest.mark.parametrize("stated", ["", "compiled float32", "fast float32 1", "compiled float9 1", "compiled tf32 x"])
def test_malformed_run_header_is_refused(stated: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_run([("Gradserve-Run", stated)])


def test_combined_report_is_the_weakest_of_the_pieces() -> None:
    reports = [RunReport("compiled", "tf32"), RunReport("partly_compiled", "float32"), RunReport("compiled")]
    assert combine_reports(reports) == RunReport("partly_compiled", "tf32")
