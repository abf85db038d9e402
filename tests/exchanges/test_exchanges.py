"""Two recordings of one server are equal, and a changed or missing answer is detected."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pytest

from tests.conftest import RunningServer
from tests.exchanges.corpus import Request, corpus
from tests.exchanges.recording import Answer, differences, record

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Recorded:
    """Some requests, and two recordings of a server's answers."""

    requests: list[Request]
    first: Path
    second: Path


@pytest.fixture(scope="module")
def recorded(start_server: Callable[..., RunningServer], tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    url = start_server("--workers", "1", "--compile", "off").url
    sent = islice(corpus(1500), 0, 1500, 15)  # includes about ten random requests, which are slow to draw
    requests = [request for request in sent if request.path != "/v1/graphs"]  # a graph is new only once
    folder = tmp_path_factory.mktemp("exchanges")
    for name in ("first", "second"):
        record(url, requests, folder / name)
    return Recorded(requests, folder / "first", folder / "second")


def test_request_round_trips_through_its_line() -> None:
    for request in islice(corpus(200), 150, 200):
        assert Request.of(request.line()) == request


def test_two_recordings_of_one_server_are_equal(recorded: Recorded) -> None:
    assert list(differences(recorded.requests, recorded.first, recorded.second)) == []


@pytest.mark.parametrize("change", ["status", "header", "byte", "missing"])
def test_changed_answer_is_detected(recorded: Recorded, tmp_path: Path, change: str) -> None:
    lines = recorded.second.read_text().splitlines()
    status, headers, content = Answer.from_line(lines[-1])
    changed = {
        "status": Answer(status + 1, headers, content),
        "header": Answer(status, headers | {"content-type": "text/html"}, content),
        "byte": Answer(status, headers, content[:-1] + b"?"),
    }
    lines[-1:] = [changed[change].line()] if change in changed else []
    (tmp_path / "changed").write_text("\n".join(lines))
    (difference,) = differences(recorded.requests, recorded.first, tmp_path / "changed")
    assert difference.request == recorded.requests[-1]


def test_document_fields_may_be_reordered_but_not_changed(recorded: Recorded, tmp_path: Path) -> None:
    assert recorded.requests[0].path == "/openapi.json"
    first, *rest = recorded.second.read_text().splitlines()
    status, headers, content = Answer.from_line(first)
    backwards = dict(reversed(json.loads(content).items()))
    for changed, count in ((backwards, 0), (backwards | {"openapi": "3.2.0"}, 1)):
        answer = Answer(status, headers, json.dumps(changed).encode())
        (tmp_path / "changed").write_text("\n".join([answer.line(), *rest]))
        assert len(list(differences(recorded.requests, recorded.first, tmp_path / "changed"))) == count
