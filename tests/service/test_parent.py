"""A process ends with the one that started it: it is given a signal for that, where Linux has one."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from service.core.process import parent_death_signal

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such signal")

#: prints what the process gets once its parent is gone: PR_GET_PDEATHSIG
SAID = """
import ctypes
found = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(found), 0, 0, 0)
print(found.value)
"""


def printed(program: str, **options: object) -> int:
    command = [sys.executable, "-c", program]
    return int(subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout)  # type: ignore[call-overload]


def test_a_child_is_given_the_signal_before_its_program_begins() -> None:
    assert printed(SAID) == 0
    assert printed(SAID, preexec_fn=parent_death_signal(signal.SIGTERM)) == signal.SIGTERM


def test_a_process_asks_for_it_itself() -> None:
    asked = (
        "import signal\nfrom service.core.process import parent_death_signal\nparent_death_signal(signal.SIGKILL)()\n"
    )
    assert printed(asked + SAID) == signal.SIGKILL


def test_elsewhere_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert parent_death_signal(signal.SIGTERM) is None
