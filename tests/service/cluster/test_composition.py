"""What `--cluster on` needs: each thing that is missing or wrong is one sentence, and status 2."""

from __future__ import annotations

import subprocess
import sys

import pytest

from service.cluster.composition import Cluster
from service.core.settings import Settings
from service.store.places import open_state
from service.store.remote import open_remote
from service.store.writes import Commit, TensorWrite
from tests.service.cluster.serving import SECRET
from tests.service.command_support import called

GIVEN = {"GRADSERVE_CLUSTER": "on", "GRADSERVE_CLUSTER_SECRET": SECRET, "GRADSERVE_STATE": "s3://bucket/folder"}
ADDRESS = {"GRADSERVE_CLUSTER_ADDRESS": "http://10.0.0.7:8000"}


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"GRADSERVE_STATE": "memory"}, "a state in memory is one server's; with --cluster on, name a place in s3://"),
        ({"GRADSERVE_STATE": "/tmp/x"}, "the folder /tmp/x is one server's; with --cluster on, name a place in s3://"),
        ({"GRADSERVE_CLUSTER_ADDRESS": ""}, "--cluster on needs --cluster-address http://HOST:PORT"),
        ({"GRADSERVE_CLUSTER_ADDRESS": "http://0.0.0.0:8000"}, "others reach no server at a wildcard address"),
        ({"GRADSERVE_CLUSTER_ADDRESS": "http://[::]:8000"}, "others reach no server at a wildcard address"),
        ({"GRADSERVE_CLUSTER_ADDRESS": "https://a:8000"}, "the address of this server was expected"),
        ({"GRADSERVE_CLUSTER_ADDRESS": "http://a"}, "the address of this server was expected"),
        ({"GRADSERVE_CLUSTER_SECRET": SECRET[:31]}, "a secret of servers has 32 to 512 visible ASCII characters"),
        ({"GRADSERVE_CLUSTER": "of"}, "setting --cluster (GRADSERVE_CLUSTER) is 'of'"),
    ],
)
def test_what_is_wrong_is_said(stated: dict[str, str], said: str) -> None:
    ended = called("serve", "--port", "0", **(GIVEN | ADDRESS | stated))
    assert ended.returncode == 2
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert SECRET[:31] not in ended.stderr


def test_without_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADSERVE_CLUSTER_SECRET", raising=False)
    stated = {name: value for name, value in (GIVEN | ADDRESS).items() if "SECRET" not in name}
    ended = called("serve", "--port", "0", **stated)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "--cluster on needs the variable GRADSERVE_CLUSTER_SECRET, the same for all servers" in ended.stderr


def test_the_secret_is_no_flag() -> None:
    ended = called("serve", "--cluster-secret", SECRET)
    assert ended.returncode == 2
    assert "GRADSERVE_CLUSTER_SECRET" in ended.stderr


def test_a_place_of_one_server_is_refused(s3_place: str) -> None:
    open_state(s3_place).close()
    ended = called("serve", "--port", "0", **(GIVEN | ADDRESS | {"GRADSERVE_STATE": s3_place}))
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "is in the format 'gradserve state 1', which is one server's, and not for --cluster on" in ended.stderr


@pytest.mark.slow
def test_an_ordinary_server_has_none_of_it() -> None:
    found = subprocess.run(
        [sys.executable, "-c", "import sys, service.app; print(*sorted(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "service.app" in found
    assert not [name for name in found if name.startswith(("service.cluster", "httpx", "aiohttp", "yarl"))]


@pytest.mark.slow
def test_whoever_takes_a_shard_has_few_objects_to_read(s3_place: str) -> None:
    """However many small commits there were: what they say that is current is moved together."""
    stated = {"state": s3_place, "cluster": "on", "cluster_secret": SECRET, "cluster_address": "http://10.0.0.7:8000"}
    journal = Cluster(Settings(**stated, lease_ms=0))._journal(3)
    journal.load()
    for number in range(300):
        journal.commit([Commit([TensorWrite("", f"t{number}", "e", "float64", (), memoryview(bytes(8)))])])
    journal._thread.submit(lambda: None).result()
    journal.close()
    left = [key for key in open_remote(s3_place).list("") if "shards/03/commits/" in key]
    assert len(left) < 200
