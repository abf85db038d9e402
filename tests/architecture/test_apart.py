"""A server alone loads neither the ingress, nor the fleet, nor what the extras `s3` and `cluster` install."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.source import ROOT

APART = ("service.cluster.ingress", "service.cluster.fleet", "ray", "obstore", "aiohttp", "yarl")


@pytest.mark.slow
def test_a_server_alone_loads_none_of_it() -> None:
    program = (
        "import sys, service.cli, service.app, service.asgi, service.web.server, service.workers.child\n"
        f"print([name for name in sys.modules if name.startswith({APART!r})])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
