"""Requirements of `--cluster on`: each missing or invalid setting gives one sentence and status 2."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from threading import Event

import pytest

from service.cluster import composition
from service.cluster.composition import Cluster
from service.cluster.owners import FREE
from service.core.errors import Refusal
from service.core.settings import Settings
from service.observe.store import StoreService
from service.store.changes import new_graph
from service.store.journal import Loaded
from service.store.places import open_state
from service.store.remote import open_remote
from service.store.tables import Registered, Usage
from service.store.writes import Commit, TensorWrite
from tests.service.cluster.serving import SECRET
from tests.service.command_support import called
from tests.service.store.memory_objects import MemoryObjects
from tests.service.store.support import open_shared

SETTINGS = {"GRADSERVE_CLUSTER": "on", "GRADSERVE_CLUSTER_SECRET": SECRET, "GRADSERVE_STATE": "s3://bucket/folder"}
ADDRESS = {"GRADSERVE_CLUSTER_ADDRESS": "http://10.0.0.7:8000"}
STATED = {
    "state": "s3://b/f", "cluster": "on", "cluster_secret": SECRET, "cluster_address": "http://10.0.0.7:8000"
}  # fmt: skip


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        (
            {"GRADSERVE_STATE": "memory"},
            "servers cannot share state in memory; with --cluster on, set --state to an s3://",
        ),
        (
            {"GRADSERVE_STATE": "/tmp/x"},
            "servers cannot share the folder /tmp/x; with --cluster on, set --state to an s3://",
        ),
        ({"GRADSERVE_CLUSTER_ADDRESS": ""}, "--cluster on needs --cluster-address http://HOST:PORT"),
        ({"GRADSERVE_CLUSTER_ADDRESS": "http://0.0.0.0:8000"}, "other servers cannot reach a wildcard address"),
        ({"GRADSERVE_CLUSTER_ADDRESS": "http://[::]:8000"}, "other servers cannot reach a wildcard address"),
        ({"GRADSERVE_CLUSTER_ADDRESS": "https://a:8000"}, "expected the address of this server"),
        ({"GRADSERVE_CLUSTER_ADDRESS": "http://a"}, "expected the address of this server"),
        ({"GRADSERVE_CLUSTER_SECRET": SECRET[:31]}, "a cluster secret has 32 to 512 visible ASCII characters"),
        ({"GRADSERVE_CLUSTER": "of"}, "--cluster (GRADSERVE_CLUSTER) must be on or off, but is “of”"),
        (
            {"GRADSERVE_SHARDS": "4097"},
            "--shards (GRADSERVE_SHARDS) must be a whole number of at least 1 and at most 4096, as in --shards 16",
        ),
    ],
)
def test_invalid_settings_are_refused(stated: dict[str, str], said: str) -> None:
    ended = called("serve", "--port", "0", **(SETTINGS | ADDRESS | stated))
    assert ended.returncode == 2
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert SECRET[:31] not in ended.stderr


def test_missing_secret_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADSERVE_CLUSTER_SECRET", raising=False)
    stated = {name: value for name, value in (SETTINGS | ADDRESS).items() if "SECRET" not in name}
    ended = called("serve", "--port", "0", **stated)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert (
        "--cluster on needs the variable GRADSERVE_CLUSTER_SECRET, with the same value on all servers" in ended.stderr
    )


def test_secret_is_not_a_flag() -> None:
    ended = called("serve", "--cluster-secret", SECRET)
    assert ended.returncode == 2
    assert "GRADSERVE_CLUSTER_SECRET" in ended.stderr


@pytest.mark.slow
def test_place_of_a_single_server_is_refused(s3_place: str) -> None:
    open_state(s3_place).close()
    ended = called("serve", "--port", "0", **(SETTINGS | ADDRESS | {"GRADSERVE_STATE": s3_place}))
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "has the format 'gradserve state 1', which is for a single server, without --cluster on" in ended.stderr


@pytest.mark.slow
def test_state_with_another_number_of_shards_is_refused(s3_place: str) -> None:
    open_shared(s3_place, 64).close()
    ended = called("serve", "--port", "0", **(SETTINGS | ADDRESS | {"GRADSERVE_STATE": s3_place}))
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert f"the state at {s3_place} has 64 shards, but --shards is 16; set --shards 64, or convert" in ended.stderr


@pytest.mark.slow
def test_single_server_imports_no_cluster_modules() -> None:
    modules = subprocess.run(
        [sys.executable, "-c", "import sys, service.app; print(*sorted(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "service.app" in modules
    assert not [name for name in modules if name.startswith(("service.cluster", "httpx", "aiohttp", "yarl"))]


@pytest.mark.slow
def test_new_owner_of_a_shard_reads_few_objects(s3_place: str) -> None:
    """Many small commits are merged into few objects."""
    stated = {"state": s3_place, "cluster": "on", "cluster_secret": SECRET, "cluster_address": "http://10.0.0.7:8000"}
    journal = Cluster(Settings(**stated, lease_ms=0))._journal(3)
    journal.load()
    for number in range(300):
        journal.commit([Commit([TensorWrite("", f"t{number}", "e", "float64", (), memoryview(bytes(8)))])])
    journal._thread.submit(lambda: None).result()
    journal.close()
    keys = [key for key in open_remote(s3_place).list("") if "shards/03/commits/" in key]
    assert len(keys) < 200


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """The parts of a server whose state is in memory, in 200 shards."""
    monkeypatch.setattr(composition, "open_objects", lambda place: MemoryObjects())
    return Cluster(Settings(**STATED, shards=200, lease_ms=0))


def test_threads_do_not_grow_with_shards(cluster: Cluster) -> None:
    """Each shard has been committed to, looked at and tidied."""
    before = {*threading.enumerate()}

    async def use_all() -> bool:
        store = cluster.open_store(lambda *_: None, None)
        owned = cluster._owners.owned_shards
        for shard in range(200):
            service = await owned.open(shard, FREE)
            graph = Registered.parse(b'{"graph_id":"g","graph":{}}')
            await service.commit([new_graph(service.graphs, ("", "g"), graph)], float("inf"), 60.0)
            await service.current(float("inf"))
        assert len({*owned}) == 200
        assert {thread.name.rpartition("_")[0] for thread in {*threading.enumerate()} - before} >= {
            "gradserve-opening", "gradserve-commit", "gradserve-look"
        }  # fmt: skip
        assert len({*threading.enumerate()} - before) <= 4 * 32
        return await store.close(60.0)

    assert asyncio.run(use_all())


def test_limits_are_for_all_shards_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composition, "open_objects", lambda place: MemoryObjects())
    cluster = Cluster(Settings(**STATED, lease_ms=0, max_graphs=3))

    async def fill() -> None:
        store = cluster.open_store(lambda *_: None, None)
        owned = cluster._owners.owned_shards

        async def put(shard: int, name: str) -> None:
            service = await owned.open(shard, FREE)
            graph = Registered.parse(b'{"graph_id":"%s","graph":{}}' % name.encode())
            await service.commit([new_graph(service.graphs, ("", name), graph)], float("inf"), 60.0)

        for shard, name in ((1, "a"), (1, "b"), (2, "c")):
            await put(shard, name)
        for shard in (1, 2, 3):
            with pytest.raises(Refusal, match="at most"):
                await put(shard, "d")
        assert [table.count for table in (service.graphs for service in owned)] == [2, 1, 0]
        owned.release(1, 60.0, "http://b:1")
        await asyncio.gather(*owned._leaving.values())
        await put(2, "d")
        await owned.open(1, FREE)
        with pytest.raises(Refusal, match="at most"):
            await put(3, "e")
        assert await store.close(60.0)
        assert owned._totals == (Usage(), Usage(), Usage(), Usage())

    asyncio.run(fill())


def test_look_ups_of_owners_do_not_wait_for_openings(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Openings may block for as long as the store does, more of them than there are threads."""
    begun, resume = Event(), Event()

    def load(_: StoreService) -> Loaded:
        begun.set()
        assert resume.wait(60)
        return Loaded()

    monkeypatch.setattr(StoreService, "load", load)

    async def look_up() -> None:
        cluster.open_store(lambda *_: None, None)
        owners = cluster._owners
        openings = [asyncio.create_task(owners.owned_shards.open(shard, FREE)) for shard in range(100)]
        await asyncio.get_running_loop().run_in_executor(None, begun.wait, 60)
        try:
            async with asyncio.timeout(60):
                assert await owners._look_up(150, float("inf")) is None
        finally:
            resume.set()
        await asyncio.gather(*openings)

    asyncio.run(look_up())
