"""Entry point of a worker process: `python -m service.workers.child`, with the descriptors of sockets and control page.

The process is spawned, never forked, so that it can open a GPU. It ends when the front does.
"""

from __future__ import annotations

from service.workers.confinement import confine_from_environment

if __name__ == "__main__":
    confine_from_environment()  # before NumPy is loaded: threads that exist already would not be confined

from engine import registry, warm
from service.core.settings import Settings
from service.workers.worker import Worker
from service.workers.worker_main import Opened, divide, run_worker, warm_up


def computing(settings: Settings) -> Opened:
    """Open the device, and make everything ready for the first task."""
    worker = Worker(settings)
    divide(settings.workers)
    worker.calibrate()
    warm(registry())
    warm_up(worker)
    return Opened(worker.attempt, worker.device, worker.vitals, worker.engine.executor.condemn)


if __name__ == "__main__":
    run_worker(computing)
