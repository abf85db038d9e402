"""Pages graded by Mozilla's HTTP Observatory itself, as `make browser-test` installs it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import RunningServer

INSTALLED = Path(__file__).parents[2] / "build" / "observatory"
#: rules that a server with plain HTTP on the loopback cannot meet
TLS_RULES = {"redirection", "strict-transport-security"}

pytestmark = pytest.mark.skipif(
    not (INSTALLED / "node_modules").exists() or shutil.which("node") is None,
    reason="make browser-test installs Mozilla's rules",
)


@pytest.mark.parametrize("path", ["/", "/docs", "/docs/errors", "/docs/errors/forbidden"])
def test_only_tls_rules_fail(server: RunningServer, path: str) -> None:
    command = ["node", str(INSTALLED / "grade.mjs"), str(server.address[1]), path]
    graded = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout)
    assert graded["status"] == 200
    assert {test["name"] for test in graded["tests"] if not test["pass"]} == TLS_RULES
    assert graded["grade"] == "A"
