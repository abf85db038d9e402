"""Facades in the server: off by default, scoped, counted in metrics, and reachable over sockets."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from service.core.keys.caller import KeyScope, new_key
from service.core.settings import FacadeName
from service.facades.protocols import FACADES
from service.web.routing import scope_of
from tests.conftest import Client, RunningServer
from tests.service.core.keys.cases import record, write
from tests.service.facades.bad_requests import GOOD
from tests.service.facades.fitting import FIT, put_models

ALL = ("umbridge", "openinference", "tesseract")


def test_facades_are_off_by_default(make_client: Callable[..., Client]) -> None:
    client = make_client()
    for path, body in GOOD.items():
        answer = client.post(path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert client.get("/Info").status_code == 404
    one_facade = make_client(facades="tesseract")
    assert one_facade.get("/v2").json()["code"] == "not_found"
    assert "detail" in one_facade.get("/tesseract/x/health").json()


def test_setting_lists_all_facades() -> None:
    assert get_args(FacadeName) == tuple(FACADES)


def test_facades_do_not_change_the_openapi_document(make_client: Callable[..., Client]) -> None:
    client = make_client(facades=ALL)
    assert client.get("/openapi.json").content == make_client().get("/openapi.json").content


def test_posts_need_the_compute_scope() -> None:
    routes = [route for facade in FACADES.values() for route in facade.routes]
    assert {route.method for route in routes} == {"GET", "POST"}
    for route in routes:
        scope = KeyScope.COMPUTE if route.method == "POST" else KeyScope.READ
        assert scope_of(route.method, route.path) is scope
    assert scope_of("GET", "/Info") is KeyScope.READ
    assert scope_of("GET", "/v2/health/ready") is None


def test_facades_show_only_models_of_the_namespace(make_client: Callable[..., Client], tmp_path: Path) -> None:
    keys = {"alice": new_key(), "bob": new_key()}
    client = make_client(
        facades=ALL, keys_file=write(tmp_path / "keys.json", [record(name, key) for name, key in keys.items()])
    )

    class Alice:
        @staticmethod
        def request(method: str, path: str, **more: object) -> object:
            return client.request(method, path, headers={"Authorization": f"Bearer {keys['alice']}"}, **more)

        @classmethod
        def post(cls, path: str, **more: object) -> object:
            return cls.request("POST", path, **more)

    put_models(Alice)
    for path, body in GOOD.items():
        for name, status in (("alice", 200), ("bob", {"/Gradient": 400}.get(path, 404))):
            answer = client.post(path, json=body, headers={"Authorization": f"Bearer {keys[name]}"})
            assert answer.status_code == status, answer.text
    assert client.get("/Info", headers={"Authorization": f"Bearer {keys['bob']}"}).json()["models"] == []


@pytest.mark.slow
class TestServer:
    """Facades of a server process with worker processes."""

    @pytest.fixture
    def server(self, start_server: Callable[..., RunningServer]) -> RunningServer:
        return start_server("--facades", ",".join(ALL), "--workers", "1", "--device", "cpu")

    def test_requests_are_answered_and_counted(self, server: RunningServer) -> None:
        import httpx

        with httpx.Client(base_url=server.url, timeout=60) as client:
            put_models(client)
            for path, body in GOOD.items():
                for _ in range(2):
                    answer = client.post(path, json=body)
                    assert answer.status_code == 200, answer.text
            lines = client.get("/metrics").text.splitlines()
        for facade in ALL:
            counted = [line for line in lines if f'facade="{facade}",status="200"' in line]
            assert [line.rpartition(" ")[2] for line in counted] == ["2.0"]

    def test_bad_framing_is_refused_in_the_format_of_the_facade(self, server: RunningServer) -> None:
        """The connection itself refuses it; the application is not called."""
        host, port = server.address
        head = b"POST /v2/models/%b/infer HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" % FIT.encode()
        for rest in (b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"Content-Length: 9\r\n\r\nabc"):
            with socket.create_connection((host, port), 30) as connection:
                connection.sendall(head + rest)
                connection.shutdown(socket.SHUT_WR)
                answer = b""
                while piece := connection.recv(65536):
                    answer += piece
            if answer:  # a truncated body may get no answer
                assert list(json.loads(answer.partition(b"\r\n\r\n")[2])) == ["error"]
