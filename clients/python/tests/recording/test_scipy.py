"""SciPy and array-api-extra, as they are, recorded: values, and gradients against differences."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import RunningServer

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("record_libraries.py")
#: what is recorded without a look at values, and what needs one
NEVER = {
    "logsumexp", "softmax", "log_softmax", "rosen", "rosen_der", "gmean", "skew", "kurtosis", "zscore", "variation",
    "sem", "gstd", "zmap", "describe", "kstat", "directional_stats", "differential_entropy", "trim_mean", "rel_entr",
    "xlogy", "pearsonr", "ttest_1samp", "jarque_bera", "bartlett",
}  # fmt: skip
GUARDED = {"hmean", "pmean", "moment"}
EXTRA = {"cov", "kron", "sinc", "pad", "create_diagonal"}
#: where it may look at values, SciPy goes by a mask whose result has a shape that depends on data
UNGUARDED = {"ttest_1samp"}
#: it asks NumPy for elements inside
BEYOND = {"entropy"}


def recorded(server: RunningServer, library: str, values: str) -> set[str]:
    """The functions that agree, run where SciPy was told before it was imported."""
    command = [sys.executable, str(PROGRAM), server.url, library, values]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return {*run.stdout.split()}


def test_scipy_without_a_look(server: RunningServer) -> None:
    pytest.importorskip("scipy", minversion="1.17", reason="SciPy is not installed")
    assert recorded(server, "scipy", "never") == NEVER


def test_scipy_with_guards(server: RunningServer) -> None:
    pytest.importorskip("scipy", minversion="1.17", reason="SciPy is not installed")
    found = recorded(server, "scipy", "guarded")
    assert found == (NEVER | GUARDED) - UNGUARDED
    assert not found & BEYOND


def test_array_api_extra_and_how_many_these_are(server: RunningServer) -> None:
    pytest.importorskip("array_api_extra", reason="array-api-extra is not installed")
    found = recorded(server, "array_api_extra", "never")
    assert found == EXTRA
    assert len(NEVER | GUARDED) + len(found) >= 26
