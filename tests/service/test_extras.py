"""A feature whose extra is missing fails with one sentence that names the extra."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

SERVE = ("serve", "--port", "0")
CLUSTER = {"GRADSERVE_CLUSTER_SECRET": "s" * 32, "GRADSERVE_CLUSTER_ADDRESS": "http://10.0.0.7:8000"}
S3 = "state in s3:// needs obstore: pip install 'gradserve[s3]' ("


def without(module: str, program: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process that cannot import this module."""
    blocked = f"import sys; sys.modules[{module!r}] = None; {program}"
    return subprocess.run(
        [sys.executable, "-c", blocked, *arguments],
        cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("module", "arguments", "said"),
    [
        ("obstore", (*SERVE, "--state", "s3://bucket/x"), S3),
        ("obstore", ("backup", "--state", "s3://bucket/x", "backup.tar"), S3),
        (
            "aiohttp",
            (*SERVE, "--state", "s3://bucket/x", "--cluster", "on"),
            "--cluster on needs aiohttp: pip install 'gradserve[cluster]' (",
        ),
        ("aiohttp", (*SERVE, "--ingress", "http://h:1"), "--ingress needs aiohttp: pip install 'gradserve[cluster]' ("),
        ("yarl", (*SERVE, "--ingress", "http://h:1"), "--ingress needs aiohttp: pip install 'gradserve[cluster]' ("),
        (
            "opentelemetry.sdk",
            (*SERVE, "--trace-endpoint", "http://h:1"),
            "--trace-endpoint needs OpenTelemetry: pip install 'gradserve[otel]' (",
        ),
    ],
)
def test_command_names_the_missing_extra(module: str, arguments: tuple[str, ...], said: str) -> None:
    result = without(module, "from service.cli import main; main()", *arguments, **CLUSTER)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1), result.stderr
    assert result.stderr.startswith(f"gradserve: {said}")


def test_fleet_names_the_missing_extra() -> None:
    result = without("ray", "import service.cluster.fleet.application")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("RuntimeError: a fleet needs Ray: pip install 'gradserve[ray]' (")
