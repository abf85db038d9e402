"""Ray with a token, started by `ray start` and `serve deploy`: only clients with the token can run code.

Run by test_fleet.py in its own network and process namespaces; prints the outcomes as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any, Final

import httpx
import yaml

from tests.deploy.monitoring import names_of, queried

ROOT: Final = Path(__file__).parents[4]
SCRIPTS: Final = Path(sys.executable).parent
DASHBOARD: Final = "http://127.0.0.1:8265"
INGRESS: Final = "http://127.0.0.1:8000"
METRICS: Final = "http://127.0.0.1:8080/metrics"
#: seconds, long enough for a busy machine
PATIENCE: Final = 300.0
DRIVER: Final = (
    "import ray; ray.init('127.0.0.1:6379', log_to_driver=False); assert ray.get(ray.remote(lambda: 7).remote()) == 7"
)
#: the first call of Ray's client; the client itself would retry without a token until it times out
CLIENT: Final = """
import os, grpc
from ray.core.generated import ray_client_pb2 as messages, ray_client_pb2_grpc as services
path = os.environ.get("RAY_AUTH_TOKEN_PATH")
token = open(path).read() if path else os.environ.get("RAY_AUTH_TOKEN", "")
stub = services.RayletDriverStub(grpc.insecure_channel("127.0.0.1:10001"))
ping = messages.ClusterInfoRequest(type=messages.ClusterInfoType.PING)
stub.ClusterInfo(ping, metadata=[("authorization", f"Bearer {token}"), ("client_id", "test")], timeout=60)
"""


def serve_file(folder: Path) -> Path:
    """Adapt deploy/ray/gradserve.yaml to this machine: one server without state and without keys."""
    document = yaml.safe_load((ROOT / "deploy/ray/gradserve.yaml").read_text(encoding="utf-8"))
    servers, ingress = document["applications"]
    servers["args"] = {
        "workers": 1, "device": "cpu", "state": "memory", "insecure": "on", "log_level": "error", "cache_dir": "none",
    }  # fmt: skip
    (deployment,) = servers["deployments"]
    deployment["ray_actor_options"] = {"num_cpus": 0.1}
    deployment["autoscaling_config"] |= {"min_replicas": 1, "max_replicas": 1}
    ingress["args"]["host"] = "127.0.0.1"
    file = folder / "gradserve.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return file


def commands(folder: Path) -> dict[str, list[str]]:
    """List every way to have the control plane run code."""
    python, submit = [sys.executable, "-c"], [str(SCRIPTS / "ray"), "job", "submit", "--address", DASHBOARD, "--"]
    return {
        "a job": [*submit, "true"],
        "Ray's client": [*python, CLIENT],
        "a driver": [*python, DRIVER],
        "serve deploy": [str(SCRIPTS / "serve"), "deploy", "--address", DASHBOARD, str(serve_file(folder))],
    }


def outcome_of(command: list[str], folder: Path, variables: dict[str, str]) -> str:
    """Run a command in a home without a token; return ran, unauthenticated or failed."""
    cleared = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH_")}
    done = subprocess.run(
        command, env={**cleared, "HOME": str(folder), **variables}, capture_output=True, text=True, check=False,
        timeout=PATIENCE,
    )  # fmt: skip
    print(command[:3], sorted(variables), done.returncode, done.stdout[-500:], done.stderr[-500:], file=sys.stderr)
    if done.returncode == 0:
        return "ran"
    return "unauthenticated" if "authenticat" in (done.stdout + done.stderr).lower() else "failed"


def status_at(path: str) -> int:
    """The status of a path of the ingress; 0 if nothing listens there."""
    try:
        return httpx.get(INGRESS + path, timeout=10, trust_env=False).status_code
    except httpx.HTTPError:
        return 0


def exported() -> set[str]:
    """The names of the metrics of Ray's head, which needs no token for them."""
    try:
        return names_of(httpx.get(METRICS, timeout=10, trust_env=False).text)
    except httpx.HTTPError:
        return set()


def main() -> None:
    """Try every command with no token, with another and with the right one."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        secret = folder / "token"
        secret.write_text(token_hex(32), encoding="ascii")
        right = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(secret)}
        start = [str(SCRIPTS / "ray"), "start", "--head", "--num-cpus", "2", "--object-store-memory", str(100 << 20)]
        start += ["--metrics-export-port", "8080"]
        assert outcome_of(start, folder, {**right, "PYTHONPATH": str(ROOT)}) == "ran"
        another = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token_hex(32)}
        outcomes: dict[str, Any] = {}
        end = time.monotonic() + PATIENCE
        for name_of_command, command in commands(folder).items():
            # Run with the token first and retry: on a busy machine, Ray may not be ready for it yet.
            while (outcome := outcome_of(command, folder, right)) != "ran" and time.monotonic() < end:
                pass
            others = {"none": outcome_of(command, folder, {}), "another": outcome_of(command, folder, another)}
            outcomes[name_of_command] = {"right": outcome, **others}
        end = time.monotonic() + PATIENCE
        while status_at("/v1/ops") != 200 and time.monotonic() < end:
            time.sleep(0.5)
        outcomes["served"] = {path: status_at(path) for path in ("/v1/ops", "/metrics")}
        # Ray exports them some seconds later.
        while (missing := queried("ray_") - exported()) and time.monotonic() < end:
            time.sleep(0.5)
        outcomes["missing metrics"] = sorted(missing)
        print(json.dumps(outcomes), flush=True)
    os._exit(0)  # Ray's processes end with the namespace


if __name__ == "__main__":
    main()
