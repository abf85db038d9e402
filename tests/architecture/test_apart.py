"""Optional packages: a plain server imports neither the ingress, the fleet nor the extras `s3` and `cluster`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.source import ROOT

OPTIONAL_MODULES = ("service.cluster.ingress", "service.cluster.fleet", "ray", "obstore", "aiohttp", "yarl")


@pytest.mark.slow
def test_server_does_not_import_optional_packages() -> None:
    program = (
        "import sys, service.cli, service.app, service.asgi, service.web.server, service.workers.child\n"
        f"print([name for name in sys.modules if name.startswith({OPTIONAL_MODULES!r})])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
