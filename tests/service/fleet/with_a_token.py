"""Ray with a token, as `ray start` and `serve deploy` start it: whoever has the token runs code there, and nobody else.

Run by test_fleet.py in namespaces of its own for the network and for processes; prints the exit statuses as JSON.
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

ROOT: Final = Path(__file__).parents[3]
SCRIPTS: Final = Path(sys.executable).parent
DASHBOARD: Final = "http://127.0.0.1:8265"
INGRESS: Final = "http://127.0.0.1:8000"
#: of a machine that does much else beside it
PATIENCE: Final = 300.0
RUN: Final = "import ray; ray.init({!r}, log_to_driver=False); assert ray.get(ray.remote(lambda: 7).remote()) == 7"


def serve_file(folder: Path) -> Path:
    """deploy/ray/gradserve.yaml for this machine: one server, which keeps nothing and asks for no key."""
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
    """Every way in which the control plane is asked to run something."""
    python, submit = [sys.executable, "-c"], [str(SCRIPTS / "ray"), "job", "submit", "--address", DASHBOARD, "--"]
    return {
        "a job": [*submit, "true"],
        "Ray's client": [*python, RUN.format("ray://127.0.0.1:10001")],
        "a driver": [*python, RUN.format("127.0.0.1:6379")],
        "serve deploy": [str(SCRIPTS / "serve"), "deploy", "--address", DASHBOARD, str(serve_file(folder))],
    }


def status_of(command: list[str], folder: Path, variables: dict[str, str]) -> int:
    """The exit status of a command in a home without a token."""
    cleared = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH_")}
    done = subprocess.run(
        command, env={**cleared, "HOME": str(folder), **variables}, capture_output=True, text=True, check=False,
        timeout=PATIENCE,
    )  # fmt: skip
    print(command[:3], sorted(variables), done.returncode, done.stdout[-500:], done.stderr[-500:], file=sys.stderr)
    return done.returncode


def status_at(path: str) -> int:
    """The status of a path of the ingress; 0 if nothing listens there."""
    try:
        return httpx.get(INGRESS + path, timeout=10, trust_env=False).status_code
    except httpx.HTTPError:
        return 0


def main() -> None:
    """Try every command with no token, with another and with the right one."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        secret = folder / "token"
        secret.write_text(token_hex(32), encoding="ascii")
        right = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(secret)}
        start = [str(SCRIPTS / "ray"), "start", "--head", "--num-cpus", "2", "--object-store-memory", str(100 << 20)]
        assert status_of(start, folder, {**right, "PYTHONPATH": str(ROOT)}) == 0
        tokens: dict[str, dict[str, str]] = {
            "none": {},
            "another": {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token_hex(32)},
            "right": right,
        }
        statuses: dict[str, Any] = {
            what: {token: status_of(command, folder, variables) for token, variables in tokens.items()}
            for what, command in commands(folder).items()
        }
        end = time.monotonic() + PATIENCE
        for what, command in commands(folder).items():  # what came too early for a machine that is busy
            while statuses[what]["right"] != 0 and time.monotonic() < end:
                statuses[what]["right"] = status_of(command, folder, right)
        while status_at("/v1/ops") != 200 and time.monotonic() < end:
            time.sleep(0.5)
        statuses["served"] = {path: status_at(path) for path in ("/v1/ops", "/metrics")}
        print(json.dumps(statuses), flush=True)
    os._exit(0)  # Ray's processes end with the namespace


if __name__ == "__main__":
    main()
