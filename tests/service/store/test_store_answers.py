"""HTTP answers of a store such as S3: definite refusals, unknown outcomes, and races that need another look."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from threading import Thread
from typing import Any

import pytest
from werkzeug.serving import WSGIRequestHandler, make_server

from service.store.object_journal import ObjectJournal
from service.store.objects import Denied, Exists
from service.store.remote import Remote, open_remote
from tests.service.store.support import LAZY, put, tensor, values


class ScriptedStore:
    """S3 server that answers puts with the given statuses, and then executes them."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.objects: dict[str, bytes] = {}
        self.puts = 0

    def __call__(self, environ: dict[str, Any], start: Any) -> list[bytes]:
        path = environ["PATH_INFO"].removeprefix("/bucket/")
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        status, answer = getattr(self, environ["REQUEST_METHOD"].lower())(path, body, environ)
        length = len(answer)
        fields = {"ETag": '"0"', "Last-Modified": "Mon, 23 Nov 2026 00:00:00 GMT", "Content-Length": f"{length}"}
        if status == 206:
            fields["Content-Range"] = f"bytes 0-{length - 1}/{length}"
        start(f"{status} .", list(fields.items()))
        return [answer]

    def put(self, path: str, body: bytes, environ: dict[str, Any]) -> tuple[int, bytes]:
        self.puts += 1
        if self.statuses:
            return self.statuses.pop(0), b"<Error><Code>Some</Code></Error>"
        if path in self.objects and environ.get("HTTP_IF_NONE_MATCH") == "*":
            return 412, b""
        self.objects[path] = body
        return 200, b""

    def get(self, path: str, body: bytes, environ: dict[str, Any]) -> tuple[int, bytes]:
        if "list-type" in environ["QUERY_STRING"]:
            keys = "".join(
                f"<Contents><Key>{key}</Key><Size>{len(data)}</Size><ETag>0</ETag>"
                "<LastModified>2026-11-23T00:00:00Z</LastModified></Contents>"
                for key, data in sorted(self.objects.items())
            )
            return 200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{keys}</ListBucketResult>".encode()
        if path not in self.objects:
            return 404, b""
        return 206, self.objects[path]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedStore]:
    class Quiet(WSGIRequestHandler):
        def log_request(self, *_: object) -> None:
            pass

    answering = ScriptedStore()
    server = make_server("127.0.0.1", 0, answering, threaded=True, request_handler=Quiet)
    serving = Thread(target=server.serve_forever)
    serving.start()
    access = {"AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": "anything", "AWS_REGION": "us-east-1"}
    for name, value in {**access, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}"}.items():
        monkeypatch.setenv(name, value)
    yield answering
    server.shutdown()
    serving.join()
    server.server_close()


@pytest.mark.slow
@pytest.mark.parametrize("status", [400, 401, 403, 404, 413])
def test_refused_put_is_not_repeated(store: ScriptedStore, status: int) -> None:
    store.statuses = [status]
    with pytest.raises(Denied):
        open_remote("s3://bucket/x").put_new("commits/1", [b"1"])
    assert store.puts == 1


@pytest.mark.slow
@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_put_in_doubt_is_sent_once(store: ScriptedStore, status: int) -> None:
    """A repeated request must know that it was sent before."""
    store.statuses = [status]
    with pytest.raises(OSError, match=str(status)) as raised:
        open_remote("s3://bucket/x").put_new("commits/1", [b"1"])
    assert not isinstance(raised.value, Denied)
    assert store.puts == 1


@pytest.mark.slow
@pytest.mark.parametrize("statuses", [[409], [409, 409], [500], [503, 409, 500]])
def test_conflicts_and_server_errors_are_resolved_by_a_look(
    store: ScriptedStore, statuses: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.store.ownership._FIRST_PAUSE", 0.001)
    journal = ObjectJournal(open_remote("s3://bucket/x"), "the place", LAZY)
    store.statuses = list(statuses)
    assert values(journal.load()) == {}
    store.statuses = list(statuses)
    journal.commit(put(tensor("a", 1)))
    assert len(store.objects) == 2, "an opening and a commit"
    journal.close()


@pytest.mark.slow
@pytest.mark.usefixtures("store")
def test_existing_object_is_reported() -> None:
    remote = open_remote("s3://bucket/x")
    remote.put_new("commits/1", [b"1"])
    with pytest.raises(Exists):
        remote.put_new("commits/1", [b"2"])


@pytest.mark.slow
def test_object_too_large_for_one_request_is_not_sent(store: ScriptedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.store.remote._SIZES", (4, 8))
    remote = open_remote("s3://bucket/x")
    with pytest.raises(Denied, match="9 bytes are more than one request may have, 8"):
        remote.put_new("commits/1", [b"12345", b"6789"])
    assert not store.puts


def test_request_timeout_depends_on_the_size() -> None:
    from obstore.store import MemoryStore

    opened: list[tuple[float, bool]] = []
    store = MemoryStore()

    def opens(time: timedelta, repeats: bool) -> Any:
        opened.append((time.total_seconds(), repeats))
        return store

    remote = Remote(opens)
    for nbytes in (10, 1 << 20, 5 << 20, 20 << 20):
        remote.put_new(f"commits/{nbytes}", [bytes(nbytes)])
        assert len(remote.get(f"commits/{nbytes}", 0, nbytes)) == nbytes
    assert opened == [(6.0, True), (6.0, False), (21.0, False), (21.0, True), (261.0, False), (261.0, True)]
