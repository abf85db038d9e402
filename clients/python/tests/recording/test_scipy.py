"""Unmodified SciPy and array-api-extra, recorded: values, and gradients against differences."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import RunningServer

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("record_libraries.py")
#: functions that do not read values, and functions that do
NEVER = {
    "logsumexp", "softmax", "log_softmax", "rosen", "rosen_der", "gmean", "skew", "kurtosis", "zscore", "variation",
    "sem", "gstd", "zmap", "describe", "kstat", "directional_stats", "differential_entropy", "trim_mean", "rel_entr",
    "xlogy", "pearsonr", "ttest_1samp", "jarque_bera", "bartlett",
}  # fmt: skip
GUARDED = {"hmean", "pmean", "moment"}
EXTRA = {"cov", "kron", "sinc", "pad", "create_diagonal"}
#: if SciPy can read values, it uses a mask whose result has a data-dependent shape
UNGUARDED = {"ttest_1samp"}
#: its implementation asks NumPy for elements
BEYOND = {"entropy"}


def recorded(server: RunningServer, library: str, values: str) -> set[str]:
    """The functions that agree, run in a process that configures SciPy before its import."""
    command = [sys.executable, str(PROGRAM), server.url, library, values]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return {*run.stdout.split()}


def test_scipy_without_reading_values(server: RunningServer) -> None:
    pytest.importorskip("scipy", minversion="1.17", reason="SciPy is not installed")
    assert recorded(server, "scipy", "never") == NEVER


def test_scipy_with_guards(server: RunningServer) -> None:
    pytest.importorskip("scipy", minversion="1.17", reason="SciPy is not installed")
    names = recorded(server, "scipy", "guarded")
    assert names == (NEVER | GUARDED) - UNGUARDED
    assert not names & BEYOND


def test_array_api_extra(server: RunningServer) -> None:
    pytest.importorskip("array_api_extra", reason="array-api-extra is not installed")
    names = recorded(server, "array_api_extra", "never")
    assert names == EXTRA
    assert len(NEVER | GUARDED) + len(names) >= 26
