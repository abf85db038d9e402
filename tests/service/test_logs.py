"""Log formats: text and JSON lines."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from service.core.keys.caller import new_key
from service.core.logs import JsonLines, TextLines


def record(message: str, *arguments: object) -> logging.LogRecord:
    """A log record with the current exception."""
    caught = sys.exc_info()
    return logging.LogRecord("gradserve", logging.ERROR, __file__, 1, message, arguments, caught if caught[0] else None)


def test_json_line_is_one_object() -> None:
    log_record = record("cannot use %s:\n%d tries", "a \udcff file", 3)
    log_record.created = 1795356030.25
    line = JsonLines().format(log_record)
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2026-11-22T14:00:30.250Z",
        "level": "ERROR",
        "logger": "gradserve",
        "message": "cannot use a \\udcff file:\n3 tries",
    }


def test_json_line_includes_the_traceback() -> None:
    try:
        raise KeyError("lost")
    except KeyError:
        log_record = record("request %s failed", "abc")
    log_record.request_id = "abc"
    line = JsonLines().format(log_record)
    assert "\n" not in line
    fields = json.loads(line)
    assert (fields["message"], fields["request_id"]) == ("request abc failed", "abc")
    assert fields["traceback"].endswith("KeyError: 'lost'")


@pytest.mark.parametrize("lines", [JsonLines(), TextLines("%(message)s")], ids=["json", "text"])
def test_keys_are_masked(lines: logging.Formatter) -> None:
    """Keys may occur in a message, in its arguments, and in a traceback."""
    key = new_key()
    try:
        raise KeyError(f"/v1/tensors/{key}")
    except KeyError:
        written = lines.format(record(f"{key}: %s", key))
    assert key[3:] not in written
    assert written.count("gs_…") >= 3
