"""Time value and gradients of the workloads, the sides taking turns, and print medians and ratios."""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time

import numpy as np

from benchmarks.sides import Call, sides
from benchmarks.workloads import Workload, elementwise_chain, perceptron, scalar_ops


def workloads(device: str) -> list[Workload]:
    """The smaller sizes on a CPU."""
    million = 16 if device == "cuda" else 4
    return [
        scalar_ops(),
        perceptron(784, 256, 128, 10, batch=128),
        perceptron(4096, 4096, 4096, 10, batch=1024) if device == "cuda" else perceptron(64, 64, 10, batch=32),
        elementwise_chain(20, million << 20),
        elementwise_chain(2_000, 8),
    ]


def in_turns(calls: dict[str, Call], repeats: int) -> dict[str, float]:
    """Median milliseconds of each call, after two that are not counted."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for i in range(repeats + 2):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if i >= 2:
                times[name].append(1000 * (time.perf_counter() - start))
    return {name: statistics.median(each) for name, each in times.items()}


def line(work: Workload, device: str, repeats: int) -> str:
    """One row: plan and run times, and how many times ours is of each peer's."""
    made = {name: side(work, device) for name, side in sides()}
    medians = in_turns({name: call for name, (_, call) in made.items()}, repeats)
    ours = medians.pop("gradserve")
    peers = "".join(f"  {name} {ms:9.3f} ms, ratio {ours / ms:5.2f}" for name, ms in medians.items())
    return f"{work.name:38} plan {1000 * made['gradserve'][0]:8.1f} ms  run {ours:9.3f} ms{peers}"


def main() -> None:
    """Measure every workload and print a line each."""
    parser = argparse.ArgumentParser(description="Time value and gradients beside the peers that are installed.")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--repeats", type=int, default=25)
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} CPUs, on {options.device}")
    for work in workloads(options.device):
        print(line(work, options.device, options.repeats), flush=True)


if __name__ == "__main__":
    main()
