from __future__ import annotations

import os

from threadpoolctl import ThreadpoolController

from service import machine


def divide(workers: int) -> None:
    """Let each BLAS of this process use as many threads as there are processors for each worker, and one at least.

    It is the process that is limited, and only ever further: what the environment or another application in it asked
    for stands where it is less.
    """
    loaded = ThreadpoolController().select(user_api="blas")
    present = (library["num_threads"] for library in loaded.info())  # None where a library does not say
    threads = min([machine.cpus_each(workers), *filter(None, present)])
    loaded.limit(limits=threads)
    # SciPy has a BLAS of its own, which comes when a graph first needs it, and reads this then.
    os.environ["OPENBLAS_NUM_THREADS"] = str(threads)
