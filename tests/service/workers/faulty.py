"""A worker whose compiled kernels crash it: the runner calls an unmapped address. For `python -c`."""

from __future__ import annotations

from service.workers.confinement import confine_from_environment

if __name__ == "__main__":
    confine_from_environment()

import os
import signal

from engine.codegen.native.native_call import StepEntry
from engine.runtime import prepared_plan
from service.workers.child import computing
from service.workers.worker_main import run_worker

_step_rows = prepared_plan._step_rows


def write_badly(steps):
    """Write correct rows, except for the address of the function."""
    rows = _step_rows(steps)
    rows[:, StepEntry.FUNCTION] = 8
    return rows


prepared_plan._step_rows = write_badly

if __name__ == "__main__":
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    if not os.environ.get("GRADSERVE_TEST_SOUND"):
        run_worker(computing)
