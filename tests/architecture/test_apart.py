"""What only several servers need is no part of one: starting it loads neither the ingress nor the fleet."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.source import ROOT

APART = ("service.ingress", "service.fleet", "ray")


@pytest.mark.slow
def test_a_server_loads_nothing_of_the_ingress_or_the_fleet() -> None:
    program = (
        "import sys, service.cli, service.app, service.asgi, service.web.server, service.worker.child\n"
        f"print([name for name in sys.modules if name.startswith({APART!r})])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
