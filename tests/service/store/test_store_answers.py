"""What a store like S3 may answer, by HTTP: what is certain, what is in doubt, and what means to look again."""

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


class Answering:
    """An S3 server that answers puts with the statuses that it is given, and then makes them."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.kept: dict[str, bytes] = {}
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
        if path in self.kept and environ.get("HTTP_IF_NONE_MATCH") == "*":
            return 412, b""
        self.kept[path] = body
        return 200, b""

    def get(self, path: str, body: bytes, environ: dict[str, Any]) -> tuple[int, bytes]:
        if "list-type" in environ["QUERY_STRING"]:
            keys = "".join(
                f"<Contents><Key>{key}</Key><Size>{len(data)}</Size><ETag>0</ETag>"
                "<LastModified>2026-11-23T00:00:00Z</LastModified></Contents>"
                for key, data in sorted(self.kept.items())
            )
            return 200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{keys}</ListBucketResult>".encode()
        if path not in self.kept:
            return 404, b""
        return 206, self.kept[path]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Answering]:
    class Quiet(WSGIRequestHandler):
        def log_request(self, *_: object) -> None:
            pass

    answering = Answering()
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
def test_what_is_refused_was_not_made(store: Answering, status: int) -> None:
    store.statuses = [status]
    with pytest.raises(Denied):
        open_remote("s3://bucket/x").put_new("commits/1", [b"1"])
    assert store.puts == 1


@pytest.mark.slow
@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_is_not_refused_is_in_doubt_and_sent_once(store: Answering, status: int) -> None:
    """Whoever repeats it has to know that it was sent before."""
    store.statuses = [status]
    with pytest.raises(OSError, match=str(status)) as raised:
        open_remote("s3://bucket/x").put_new("commits/1", [b"1"])
    assert not isinstance(raised.value, Denied)
    assert store.puts == 1


@pytest.mark.slow
@pytest.mark.parametrize("statuses", [[409], [409, 409], [500], [503, 409, 500]])
def test_a_race_and_a_fault_mean_to_look_again(
    store: Answering, statuses: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.store.ownership._FIRST_PAUSE", 0.001)
    journal = ObjectJournal(open_remote("s3://bucket/x"), "the place", LAZY)
    store.statuses = list(statuses)
    assert values(journal.load()) == {}
    store.statuses = list(statuses)
    journal.commit(put(tensor("a", 1)))
    assert len(store.kept) == 2, "an opening and a commit"
    journal.close()


@pytest.mark.slow
@pytest.mark.usefixtures("store")
def test_what_is_there_is_told() -> None:
    remote = open_remote("s3://bucket/x")
    remote.put_new("commits/1", [b"1"])
    with pytest.raises(Exists):
        remote.put_new("commits/1", [b"2"])


@pytest.mark.slow
def test_what_is_too_large_for_one_request_is_not_sent(store: Answering, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.store.remote._SIZES", (4, 8))
    remote = open_remote("s3://bucket/x")
    with pytest.raises(Denied, match="9 bytes are more than one request may have, 8"):
        remote.put_new("commits/1", [b"12345", b"6789"])
    assert not store.puts


def test_the_time_of_a_request_follows_its_size() -> None:
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
