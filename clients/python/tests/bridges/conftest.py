"""A record of the calls that a client sends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import httpx
import pytest

import gradserve_client as gs


class Sent(NamedTuple):
    """A call, and the number of bytes it sent."""

    call: str
    size: int


@pytest.fixture
def sent(client: gs.Client) -> Iterator[list[Sent]]:
    """The calls that are sent from now on, except registrations of graphs."""
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
