"""Two recordings of one server are equal, and a byte, a header or an answer less is seen."""

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
    """Some requests, and two recordings of what a server answers."""

    requests: list[Request]
    first: Path
    second: Path


@pytest.fixture(scope="module")
def recorded(start_server: Callable[..., RunningServer], tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    url = start_server("--workers", "1", "--compile", "off").url
    sent = islice(corpus(1500), 0, 1500, 15)  # of what is drawn, which takes long to draw, ten
    requests = [request for request in sent if request.path != "/v1/graphs"]  # which keeps what was not kept before
    folder = tmp_path_factory.mktemp("exchanges")
    for name in ("first", "second"):
        record(url, requests, folder / name)
    return Recorded(requests, folder / "first", folder / "second")


def test_what_is_written_down_comes_back() -> None:
    for request in islice(corpus(200), 150, 200):
        assert Request.of(request.line()) == request


def test_a_server_answers_the_same_twice(recorded: Recorded) -> None:
    assert list(differences(recorded.requests, recorded.first, recorded.second)) == []


@pytest.mark.parametrize("change", ["status", "header", "byte", "missing"])
def test_what_differs_is_seen(recorded: Recorded, tmp_path: Path, change: str) -> None:
    lines = recorded.second.read_text().splitlines()
    status, headers, content = Answer.from_line(lines[-1])
    changed = {
        "status": Answer(status + 1, headers, content),
        "header": Answer(status, headers | {"content-type": "text/html"}, content),
        "byte": Answer(status, headers, content[:-1] + b"?"),
    }
    lines[-1:] = [changed[change].line()] if change in changed else []
    (tmp_path / "changed").write_text("\n".join(lines))
    (found,) = differences(recorded.requests, recorded.first, tmp_path / "changed")
    assert found.request == recorded.requests[-1]


def test_a_document_may_have_its_fields_in_any_order_and_no_others(recorded: Recorded, tmp_path: Path) -> None:
    assert recorded.requests[0].path == "/openapi.json"
    first, *rest = recorded.second.read_text().splitlines()
    status, headers, content = Answer.from_line(first)
    backwards = dict(reversed(json.loads(content).items()))
    for changed, seen in ((backwards, 0), (backwards | {"openapi": "3.2.0"}, 1)):
        answer = Answer(status, headers, json.dumps(changed).encode())
        (tmp_path / "changed").write_text("\n".join([answer.line(), *rest]))
        assert len(list(differences(recorded.requests, recorded.first, tmp_path / "changed"))) == seen
