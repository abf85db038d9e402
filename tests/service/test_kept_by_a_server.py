"""Durable state of a started server: after a kill, after a shutdown, beside a second server, and per key."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from safetensors.numpy import load, save

from service.asgi import Application
from service.core.settings import Settings
from tests.conftest import ANNOUNCEMENT, ROOT
from tests.service.application import create_app
from tests.service.support import node, problem, request, tensor

pytestmark = pytest.mark.slow

KIND = "application/vnd.safetensors"
Start = Callable[..., tuple[subprocess.Popen[str], httpx.Client]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start servers on one state folder."""
    started: list[tuple[subprocess.Popen[str], httpx.Client]] = []

    def start_one(*options: str) -> tuple[subprocess.Popen[str], httpx.Client]:
        command = [sys.executable, "-m", "service", "--port", "0", "--device", "cpu", "--workers", "1"]
        command += ["--log-level", "error", "--state", str(tmp_path / "state"), *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(ANNOUNCEMENT), line
        started.append((process, httpx.Client(base_url=line.removeprefix(ANNOUNCEMENT).strip(), timeout=60)))
        return started[-1]

    yield start_one
    for process, client in started:
        client.close()
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def put(client: httpx.Client, name: str, array: Any, query: str = "") -> None:
    answer = client.put(f"/v1/tensors/{name}{query}", content=save({"x": array}), headers={"Content-Type": KIND})
    assert answer.is_success, answer.text


def get(client: httpx.Client, name: str) -> Any:
    answer = client.get(f"/v1/tensors/{name}", headers={"Accept": KIND})
    return load(answer.content)[name] if answer.is_success else None


def step(name: str = "w") -> dict[str, Any]:
    """w ← w + 1, with the old w as the answer."""
    nodes = [node("parameter"), node("add_scalar", 0, scalar=1.0)]
    return request(*nodes, feeds=[{"node": 0, "tensor_id": name}], outputs=[0], store=[{"node": 1, "tensor_id": name}])


def test_acknowledged_writes_survive_a_kill(start: Start) -> None:
    """Several clients write small and large tensors, alone and two at once, while the server is killed."""
    acknowledged: dict[str, int] = {}
    for _ in range(3):
        process, client = start()
        for name, at_least in acknowledged.items():
            array, second = get(client, name), get(client, f"{name}.second")
            assert array[0] >= at_least
            assert np.all(array == array[0]), "not torn"
            assert second is None or array[0] >= second[0], "two of one store are there as one"
        done = threading.Semaphore(0)

        def write(i: int, client: httpx.Client = client, done: threading.Semaphore = done) -> None:
            name, size = f"t{i}", 10 ** (1 + i)
            put(client, name, np.full(size, float(acknowledged.get(name, 0))))
            body = step(name)
            body["store"].append({"node": 1, "tensor_id": f"{name}.second"})
            body["outputs"] = []
            try:
                while True:
                    if not client.post("/v1/forward", json=body | {"outputs": [0] if size < 100 else []}).is_success:
                        return
                    acknowledged[name] = acknowledged.get(name, 0) + 1
                    done.release()
            except httpx.HTTPError:
                return

        writers = [threading.Thread(target=write, args=(i,)) for i in range(4)]
        for writer in writers:
            writer.start()
        for _ in range(60):
            assert done.acquire(timeout=60)
        process.send_signal(signal.SIGKILL)
        for writer in writers:
            writer.join()
        process.wait()
    assert all(count > 3 for count in acknowledged.values())


def test_shutdown_flushes_pending_writes(start: Start) -> None:
    process, client = start("--write-behind-ms", "3600000")
    large = np.arange(300_000.0)
    for i in range(5):
        put(client, "large", large + i, "?durable=false")
    put(client, "small", np.ones(3), "?durable=false")
    process.terminate()
    assert process.wait(60) == 0
    _, client = start()
    assert np.array_equal(get(client, "large"), large + 4)
    assert np.array_equal(get(client, "small"), np.ones(3))


def test_graphs_and_idempotent_answers_survive_a_kill(start: Start) -> None:
    process, client = start()
    put(client, "w", np.zeros(2))
    body = step()
    graph_id = client.post("/v1/graphs", json={"graph": body.pop("graph"), "description": "a step"}).json()["graph_id"]
    path, key = f"/v1/graphs/{graph_id}/forward", {"Idempotency-Key": "one"}
    first = client.post(path, json=body, headers=key)
    created = client.put("/v1/tensors/v", json=tensor([], [1.0]), headers={"Idempotency-Key": "two"})
    process.kill()
    process.wait()
    _, client = start()
    assert client.get("/v1/graphs").json()["graphs"][0]["description"] == "a step"
    again = client.post(path, json=body, headers=key)
    assert (again.content, again.headers["idempotency-replayed"]) == (first.content, "true")
    assert get(client, "w").tolist() == [1.0, 1.0]
    again = client.put("/v1/tensors/v", json=tensor([], [1.0]), headers={"Idempotency-Key": "two"})
    assert (again.status_code, again.headers["etag"]) == (201, created.headers["etag"])
    assert client.post(path, json=body, headers={"Idempotency-Key": "three"}).is_success
    assert get(client, "w").tolist() == [2.0, 2.0]


def test_second_server_on_the_folder_is_refused_in_one_line(start: Start, tmp_path: Path) -> None:
    _, client = start()
    command = [sys.executable, "-m", "service", "--port", "0", "--device", "cpu", "--state", str(tmp_path / "state")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT)
    assert run.returncode == 2
    assert "--state" in run.stderr
    assert len(run.stderr.strip().splitlines()) == 1
    assert client.get("/health/ready").is_success


def test_damaged_state_is_reported_without_a_traceback(start: Start, tmp_path: Path) -> None:
    process, client = start()
    for i in range(3):
        put(client, f"t{i}", np.ones(1000))
    process.terminate()
    process.wait()
    (first, *_) = sorted((tmp_path / "state" / "commits").iterdir())
    first.write_bytes(first.read_bytes()[:-100])
    command = [sys.executable, "-m", "service", "--port", "0", "--device", "cpu", "--state", str(tmp_path / "state")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT)
    assert run.returncode == 2, run.stderr
    assert "Traceback" not in run.stderr


def test_keys_have_separate_tensors_and_graphs(start: Start, tmp_path: Path) -> None:
    file = str(tmp_path / "keys.json")
    keys = {}
    for name, scopes in (("ann", "compute,read,write"), ("bob", "compute,read,write"), ("eve", "compute,read")):
        command = [sys.executable, "-m", "service", "keys", "add", name, "--keys-file", file, "--scopes", scopes]
        keys[name] = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()[0]
    _, client = start("--keys-file", file)

    def ask(name: str, method: str, path: str, **more: Any) -> httpx.Response:
        return client.request(method, path, headers={"Authorization": f"Bearer {keys[name]}"}, **more)

    value = tensor([], [1.0])
    assert ask("ann", "PUT", "/v1/tensors/w", json=value).status_code == 201
    problem(ask("bob", "GET", "/v1/tensors/w"), 404, "not_found")
    problem(ask("bob", "DELETE", "/v1/tensors/w"), 404, "not_found")
    problem(ask("bob", "POST", "/v1/forward", json=step()), 404, "not_found")
    assert ask("bob", "PUT", "/v1/tensors/w", json=tensor([], [5.0])).status_code == 201
    assert ask("ann", "POST", "/v1/forward", json=step()).json()["values"][0]["tensor"]["data"] == [1.0]
    assert ask("bob", "GET", "/v1/tensors").json()["tensors"][0]["tensor_id"] == "w"
    graph_id = ask("ann", "POST", "/v1/graphs", json={"graph": step()["graph"]}).json()["graph_id"]
    problem(ask("bob", "GET", f"/v1/graphs/{graph_id}"), 404, "not_found")
    problem(ask("bob", "POST", f"/v1/graphs/{graph_id}/forward", json={}), 404, "not_found")
    assert ask("bob", "GET", "/v1/graphs").json() == {"graphs": []}
    problem(ask("eve", "PUT", "/v1/tensors/w", json=value), 403, "forbidden")
    stores = request(node("full"), store=[{"node": 0, "tensor_id": "mine"}])
    problem(ask("eve", "POST", "/v1/forward", json=stores), 403, "forbidden")
    assert ask("eve", "POST", "/v1/forward", json=request(node("full"))).is_success


def test_asgi_application_flushes_pending_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {"device": "cpu", "workers": "1", "compile": "off", "confine": "off", "log_level": "error"}
    for name, value in {**variables, "state": str(tmp_path / "state"), "write_behind_ms": "3600000"}.items():
        monkeypatch.setenv(f"GRADSERVE_{name.upper()}", value)
    settings = Settings()

    async def run_lifespan() -> None:
        app = Application()
        to_app: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        from_app: asyncio.Queue[Any] = asyncio.Queue()
        lifespan = asyncio.create_task(app({"type": "lifespan"}, to_app.get, from_app.put))  # type: ignore[arg-type]
        await to_app.put({"type": "lifespan.startup"})
        assert (await from_app.get())["type"] == "lifespan.startup.complete"
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            answer = await client.put("/v1/tensors/w?durable=false", json=tensor([], [4.0]))
            assert json.loads(answer.content)["durable"] is False
        await to_app.put({"type": "lifespan.shutdown"})
        assert (await from_app.get())["type"] == "lifespan.shutdown.complete"
        await lifespan

    async def read_back() -> Any:
        app = create_app(settings)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            return (await client.get("/v1/tensors/w")).json()["tensor"]["data"]

    asyncio.run(run_lifespan())
    assert asyncio.run(read_back()) == [4.0]
