"""Run the command `gradserve` in the test's own process."""

from __future__ import annotations

import subprocess
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import pytest

from service.cli import main


def called(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command to completion in this process; for commands that start no server."""
    out, err, status = StringIO(), StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in variables.items():
            patch.setenv(name, value)
        try:
            main(arguments)
        except SystemExit as end:
            status = int(end.code or 0)
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())
