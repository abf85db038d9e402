"""What a client of the tests here has asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import httpx
import pytest

import gradserve_client as gs


class Sent(NamedTuple):
    """A call, and how many bytes it sent."""

    call: str
    size: int


@pytest.fixture
def sent(client: gs.Client) -> Iterator[list[Sent]]:
    """The calls that are sent from now on, but registrations of graphs."""
    calls: list[Sent] = []

    def note(request: httpx.Request) -> None:
        call = request.url.path.rpartition("/")[2]
        if call != "graphs":
            calls.append(Sent(call, int(request.headers.get("content-length", 0))))

    hooks = client._transport._http.event_hooks
    client._transport._http.event_hooks = {"request": [note]}
    yield calls
    client._transport._http.event_hooks = hooks


def names(calls: list[Sent]) -> list[str]:
    return [each.call for each in calls]
