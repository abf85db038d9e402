"""The log's forms: what `logging` writes, as text and as JSON."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from service.core.keys.caller import new_key
from service.core.logs import JsonLines, TextLines


def record(message: str, *arguments: object) -> logging.LogRecord:
    """Something that is logged, with the exception at hand."""
    caught = sys.exc_info()
    return logging.LogRecord("gradserve", logging.ERROR, __file__, 1, message, arguments, caught if caught[0] else None)


def test_a_line_is_one_object() -> None:
    made = record("cannot use %s:\n%d tries", "a \udcff file", 3)
    made.created = 1795356030.25
    line = JsonLines().format(made)
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2026-11-22T14:00:30.250Z",
        "level": "ERROR",
        "logger": "gradserve",
        "message": "cannot use a \\udcff file:\n3 tries",
    }


def test_a_traceback_is_a_part_of_its_line() -> None:
    try:
        raise KeyError("lost")
    except KeyError:
        made = record("request %s failed", "abc")
    made.request_id = "abc"
    line = JsonLines().format(made)
    assert "\n" not in line
    found = json.loads(line)
    assert (found["message"], found["request_id"]) == ("request abc failed", "abc")
    assert found["traceback"].endswith("KeyError: 'lost'")


@pytest.mark.parametrize("lines", [JsonLines(), TextLines("%(message)s")], ids=["json", "text"])
def test_keys_are_masked(lines: logging.Formatter) -> None:
    """Wherever they stand: in a message, in its arguments, and in a traceback."""
    key = new_key()
    try:
        raise KeyError(f"/v1/tensors/{key}")
    except KeyError:
        written = lines.format(record(f"{key}: %s", key))
    assert key[3:] not in written
    assert written.count("gs_…") >= 3
