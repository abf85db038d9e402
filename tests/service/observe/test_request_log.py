"""Lines of the log: all of them, in order, and never at the cost of who logs."""

from __future__ import annotations

import re
from threading import Event

from service.observe.lines import MOST_LINES, Lines
from service.observe.request_log import RequestLog

LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO gradserve\.requests: id=(\S+) method=(\S+) path=(.*) "
    r"status=(\d+) ms=(\d+\.\d\d) received=(\d+) sent=(\d+)"
)


def test_every_line_is_written_in_its_order() -> None:
    written: list[str] = []
    lines = Lines(written.append)
    for i in range(1000):
        lines.add(str(i))
    lines.close(60)
    assert "".join(written).splitlines() == [str(i) for i in range(1000)]


def test_who_reads_slowly_costs_lines_and_not_requests() -> None:
    written: list[str] = []
    blocked, reading = Event(), Event()

    def write(text: str) -> None:
        blocked.set()
        assert reading.wait(60)
        written.append(text)

    lines = Lines(write)
    lines.add("first")
    assert blocked.wait(60)
    for i in range(MOST_LINES + 5):
        lines.add(str(i))
    reading.set()
    lines.close(60)
    found = "".join(written).splitlines()
    assert found[:2] == ["first", "0"]
    assert found[-1] == "5 lines were dropped: nobody read them"
    assert len(found) == 1 + MOST_LINES + 1


def test_a_closed_stream_ends_the_log_and_nothing_else() -> None:
    def write(_: str) -> None:
        raise BrokenPipeError

    lines = Lines(write)
    for i in range(3):
        lines.add(str(i))
    lines.close(60)
    lines.add("one more, which nobody hears of")


def test_a_line_has_ids_and_sizes_and_stays_one_line() -> None:
    written: list[str] = []
    lines = Lines(written.append)
    RequestLog(lines).add("abc", "POST", "/v1/\x1b[31m\nx" + "y" * 500, 200, 10, 20, 0.01234)
    lines.close(60)
    (line,) = "".join(written).splitlines()
    found = LINE.fullmatch(line)
    assert found is not None
    assert found.group(1, 2, 4, 5, 6, 7) == ("abc", "POST", "200", "12.34", "10", "20")
    assert "\x1b" not in line
    assert len(found[3]) <= 70
