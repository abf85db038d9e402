"""The request log: lines stay in order, and a slow or closed reader never blocks requests."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Literal

from service.observe.request_log import MAX_WAITING_LINES, AnsweredRequest, Lines, RequestLog, log_message_formatter

LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO gradserve\.requests: id=(\S+) method=(\S+) path=(.*) "
    r"status=(\d+) ms=(\d+\.\d\d) received=(\d+) sent=(\d+)"
)

ANSWERED = AnsweredRequest(
    "abc", "", "POST", "/v1/\x1b[31m\nx" + "y" * 500, "", "", "", 200, received=10, sent=20, seconds=0.01234
)


def lines_of(form: Literal["text", "json"], answered: AnsweredRequest, trace_id: str = "") -> list[str]:
    """Lines that are written for a request."""
    written: list[str] = []
    lines = Lines(written.append)
    RequestLog(lines, form).add(answered, trace_id)
    lines.close(60)
    return "".join(written).splitlines()


def test_lines_are_written_in_order() -> None:
    written: list[str] = []
    lines = Lines(written.append)
    for i in range(1000):
        lines.add(str(i))
    lines.close(60)
    assert "".join(written).splitlines() == [str(i) for i in range(1000)]


def test_slow_reader_costs_lines_and_not_requests() -> None:
    written: list[str] = []
    blocked, reading = Event(), Event()

    def write(text: str) -> None:
        blocked.set()
        assert reading.wait(60)
        written.append(text)

    lines = Lines(write)
    lines.add("first")
    assert blocked.wait(60)
    for i in range(MAX_WAITING_LINES + 5):
        lines.add(str(i))
    reading.set()
    lines.close(60)
    lines_written = "".join(written).splitlines()
    assert lines_written[:2] == ["first", "0"]
    assert lines_written[-1] == "5 lines were dropped, because the log was not read fast enough"
    assert len(lines_written) == 1 + MAX_WAITING_LINES + 1


def test_closed_stream_only_ends_the_log() -> None:
    def write(_: str) -> None:
        raise BrokenPipeError

    lines = Lines(write)
    for i in range(3):
        lines.add(str(i))
    lines.close(60)
    lines.add("one more, which nobody hears of")


def test_text_line_has_ids_and_sizes() -> None:
    (line,) = lines_of("text", ANSWERED)
    match = LINE.fullmatch(line)
    assert match is not None
    assert match.group(1, 2, 4, 5, 6, 7) == ("abc", "POST", "200", "12.34", "10", "20")
    assert "\x1b" not in line
    assert len(match[3]) <= 70


def test_text_line_names_caller_and_trace() -> None:
    (line,) = lines_of("text", ANSWERED._replace(caller="ana"), "4bf9")
    assert " id=abc caller=ana method=POST " in line
    assert line.endswith(" sent=20 trace=4bf9")


def test_json_line_has_the_same_fields() -> None:
    before = datetime.now(UTC)
    (line,) = lines_of("json", ANSWERED._replace(caller="ana"), "4bf9")
    fields = json.loads(line)
    assert "\x1b" not in line
    assert abs(datetime.fromisoformat(fields.pop("time")) - before) < timedelta(minutes=10)
    assert len(fields.pop("path")) <= 70
    assert fields == {
        "level": "INFO", "logger": "gradserve.requests", "request_id": "abc", "caller": "ana", "method": "POST",
        "status": 200, "ms": 12.34, "received": 10, "sent": 20, "trace_id": "4bf9",
    }  # fmt: skip
    assert "trace_id" not in json.loads(lines_of("json", ANSWERED)[0])


def test_messages_of_the_log_itself_are_json() -> None:
    fields = json.loads(log_message_formatter("json")("5 lines were dropped"))
    assert (fields["level"], fields["message"]) == ("WARNING", "5 lines were dropped")
    assert log_message_formatter("text")("5 lines were dropped") == "5 lines were dropped"
