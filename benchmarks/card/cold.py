"""Machine code of a workload made with nothing kept: `python3 -m benchmarks.card.cold W4` prints how long it takes."""

from __future__ import annotations

import json
import os
import sys
import time

from benchmarks.launches import card_plan
from benchmarks.suite import find
from engine.cuda.kernels import CudaKernels


def main() -> None:
    """Print seconds, kernels and cores as JSON."""
    import cupy  # noqa: PLC0415 - optional

    plan = card_plan(find(sys.argv[1])())
    cupy.zeros(1)  # the card's context is there
    kernels = CudaKernels(cupy)
    start = time.perf_counter()
    kernels.compile(plan)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "kernels": kernels.compiled, "cores": len(os.sched_getaffinity(0))}))


if __name__ == "__main__":
    main()
