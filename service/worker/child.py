"""A worker process: `python -m service.worker.child`, with the descriptors of its sockets and of its control page.

It is spawned, never forked, so that a GPU can be opened in it, and ends when the front does.
"""

from __future__ import annotations

from service.worker.confinement import confine_as_told

if __name__ == "__main__":
    confine_as_told()  # before NumPy is loaded: what starts threads comes after

from engine import registry, warm
from service.settings import Settings
from service.worker.attending import run_worker
from service.worker.blas import divide
from service.worker.rehearsal import warm_up
from service.worker.worker import Worker
from service.worker.worker_loop import Opened


def computing(settings: Settings) -> Opened:
    """The work of a server."""
    worker = Worker(settings)
    divide(settings.workers)
    worker.calibrate()
    warm(registry())
    warm_up(worker)
    return Opened(worker.attempt, worker.device, worker.vitals, worker.engine.executor.condemn)


if __name__ == "__main__":
    run_worker(computing)
