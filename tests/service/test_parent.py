"""The parent death signal: on Linux, a process exits with its parent."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from service.core.process import parent_death_signal

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such signal")

#: prints the signal that the process gets when its parent dies: PR_GET_PDEATHSIG
PRINT_SIGNAL = """
import ctypes
found = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(found), 0, 0, 0)
print(found.value)
"""


def run_program(program: str, **options: object) -> int:
    command = [sys.executable, "-c", program]
    return int(subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout)  # type: ignore[call-overload]


def test_preexec_fn_sets_the_signal_of_a_child() -> None:
    assert run_program(PRINT_SIGNAL) == 0
    assert run_program(PRINT_SIGNAL, preexec_fn=parent_death_signal(signal.SIGTERM)) == signal.SIGTERM


def test_process_sets_the_signal_for_itself() -> None:
    set_signal = (
        "import signal\nfrom service.core.process import parent_death_signal\nparent_death_signal(signal.SIGKILL)()\n"
    )
    assert run_program(set_signal + PRINT_SIGNAL) == signal.SIGKILL


def test_other_systems_have_no_death_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert parent_death_signal(signal.SIGTERM) is None
