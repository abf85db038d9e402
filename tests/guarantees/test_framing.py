"""Guarantee 2, for HTTP framing: attacks are refused with a problem report, and no second request is smuggled."""

from __future__ import annotations

import contextlib
import time

import pytest

from tests.guarantees.figures import Figures
from tests.guarantees.framing import Frame, frames
from tests.guarantees.jobs import is_right, small
from tests.guarantees.started import Started
from tests.guarantees.talk import Address, Connection, Hangup, once

pytestmark = pytest.mark.guarantee(2)


def outcome(address: Address, frame: Frame) -> str | None:
    """The fault of the response, or None."""
    start = time.perf_counter()
    with Connection(address, timeout=frame.seconds) as connection:
        with contextlib.suppress(OSError):  # may be refused while it is sent; only the response matters
            connection.send(frame.sent)
        try:
            answer = connection.answer(start)
        except (OSError, Hangup) as error:
            return f"{frame.name}: {type(error).__name__} {error} after {time.perf_counter() - start:.1f} s"
        reported = answer.status == 200 or "problem+json" in answer.headers.get("content-type", "")
        if answer.status not in frame.statuses or not reported:
            return f"{frame.name}: {answer.status} {answer.body[:200]!r}"
        return _smuggled(connection, frame)


def _smuggled(connection: Connection, frame: Frame) -> str | None:
    """The fault if the bytes after the first request got a response, too."""
    if not frame.ends:
        return None
    with contextlib.suppress(OSError, Hangup):
        connection.send(b"\r\n")
        second = connection.answer()
        return f"{frame.name}: a second response, {second.status}"
    return None


def test_every_framing_attack_is_refused(attacked: Started, figures: Figures) -> None:
    wrong = [fault for frame in frames() if (fault := outcome(attacked.address, frame))]
    for line in wrong:
        print(line)
    figures.at_most(f"framing attacks not refused, of {len(frames())}", len(wrong), 0, "", "; ".join(wrong))
    assert is_right(once(attacked.address, "/v1/gradients", small()).body)
