"""The fleet under Ray: see in_a_cluster.py and with_a_token.py. As root on Linux, where Ray is installed: it needs
namespaces of its own, since Ray takes the machine's address even where it is told another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.service.cluster.ingress.support import needs_haproxy

ROOT = Path(__file__).parents[4]
#: a network with the loopback alone, on which an address that looks like a machine's
NETWORK = 'ip link set lo up; ip addr add 10.77.0.1/32 dev lo; ip route add default dev lo; exec "$@"'
ALONE = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", NETWORK, "fleet"]

pytestmark = [
    needs_haproxy,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed (pip install 'gradserve[ray]')"),
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="namespaces are made by root, on Linux"),
]


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What callers got while servers, replicas, HAProxy, a machine and the head were lost."""
    return printed_by("tests.service.cluster.fleet.in_a_cluster")


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Any]:
    """Outcomes of commands to a control plane with a token, by command and token."""
    return printed_by("tests.service.cluster.fleet.with_a_token")


def printed_by(program: str) -> dict[str, Any]:
    """The last line of a program that runs by itself, which is JSON."""
    done = subprocess.run(
        [*ALONE, sys.executable, "-m", program],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
        timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize("command", ["a job", "Ray's client", "a driver", "serve deploy"])
def test_the_control_plane_runs_nothing_without_its_token(outcomes: dict[str, Any], command: str) -> None:
    assert outcomes[command] == {"right": "ran", "none": "unauthenticated", "another": "unauthenticated"}


def test_what_was_deployed_with_the_token_serves_and_hides_its_metrics(outcomes: dict[str, Any]) -> None:
    assert outcomes["served"] == {"/v1/ops": 200, "/metrics": 404}


@pytest.mark.parametrize("what", ["server", "raylet"])
def test_callers_lose_at_most_what_was_on_the_way(found: dict[str, Any], what: str) -> None:
    """Without an Idempotency-Key it is not sent again; of four callers, one request each, and one more that a process
    takes while it is taken apart.

    They are told so by 503, or by the end of their connection: HAProxy does that where the connection was used before.
    """
    answers = found[what]["answers"]
    assert answers.keys() <= {"200", "503", "RemoteProtocolError"}
    assert answers["200"] > 0
    assert sum(answers.values()) - answers["200"] <= 8


def test_a_server_whose_replica_is_killed_ends_in_order(found: dict[str, Any]) -> None:
    """What it has is answered; who still comes is told to come again, 503, until HAProxy sees that it is stopping."""
    answers = found["replica"]["answers"]
    assert answers.keys() <= {"200", "503"}
    assert answers["200"] > 0


@pytest.mark.parametrize("what", ["update", "head"])
def test_callers_notice_nothing(found: dict[str, Any], what: str) -> None:
    """Of servers that are replaced in order, and of 30 s without Ray's head."""
    assert found[what]["answers"].keys() == {"200"}
