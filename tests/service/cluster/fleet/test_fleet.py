"""The fleet under Ray: see in_a_cluster.py and with_a_token.py. These tests need Ray, and root on Linux for
namespaces, since Ray uses the machine's address even if it is given another.
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
#: a network with only a loopback, which also has an address that looks like a machine's
NETWORK = 'ip link set lo up; ip addr add 10.77.0.1/32 dev lo; ip route add default dev lo; exec "$@"'
ALONE = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", NETWORK, "fleet"]

pytestmark = [
    needs_haproxy,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed (pip install 'gradserve[ray]')"),
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="namespaces are made by root, on Linux"),
]


@pytest.fixture(scope="module")
def losses() -> dict[str, Any]:
    """Answers to callers while servers, replicas, HAProxy, a machine and the head were lost."""
    return printed_by("tests.service.cluster.fleet.in_a_cluster")


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Any]:
    """Outcomes of commands to a control plane with a token, by command and token."""
    return printed_by("tests.service.cluster.fleet.with_a_token")


def printed_by(program: str) -> dict[str, Any]:
    """Run a program in namespaces, and parse its last line as JSON."""
    done = subprocess.run(
        [*ALONE, sys.executable, "-m", program],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
        timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize("command", ["a job", "Ray's client", "a driver", "serve deploy"])
def test_control_plane_needs_its_token(outcomes: dict[str, Any], command: str) -> None:
    assert outcomes[command] == {"right": "ran", "none": "unauthenticated", "another": "unauthenticated"}


def test_deployed_server_answers_and_hides_its_metrics(outcomes: dict[str, Any]) -> None:
    assert outcomes["served"] == {"/v1/ops": 200, "/metrics": 404}


def test_head_exports_the_metrics_of_the_alerts(outcomes: dict[str, Any]) -> None:
    assert outcomes["missing metrics"] == []


@pytest.mark.parametrize("what", ["server", "raylet"])
def test_callers_lose_only_requests_in_flight(losses: dict[str, Any], what: str) -> None:
    """Requests without an Idempotency-Key are not repeated. Each of four callers may lose one request, and one more
    that a process accepts while it is being terminated.

    Callers get a 503, or HAProxy closes their connection if it was used before.
    """
    answers = losses[what]["answers"]
    assert answers.keys() <= {"200", "503", "RemoteProtocolError"}
    assert answers["200"] > 0
    assert sum(answers.values()) - answers["200"] <= 8


def test_server_of_a_killed_replica_stops_in_order(losses: dict[str, Any]) -> None:
    """Accepted requests are answered; new ones get a 503 until HAProxy sees that the server is stopping."""
    answers = losses["replica"]["answers"]
    assert answers.keys() <= {"200", "503"}
    assert answers["200"] > 0


@pytest.mark.parametrize("what", ["update", "head"])
def test_callers_do_not_notice(losses: dict[str, Any], what: str) -> None:
    """Covers an orderly update of the servers, and 30 s without Ray's head."""
    assert losses[what]["answers"].keys() == {"200"}
