"""Time planning and execution on this machine: the value and all gradients of a few graphs.

Prints a table. Figures depend on the machine and its load: compare only what one run printed.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from engine import Compiler, Limits, Program, Statement, TensorType, open_executor, registry

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Workload:
    """A graph that is being written, and its feeds. The last node is differentiated by all parameters."""

    name: str
    statements: list[Statement] = field(default_factory=list)
    feeds: dict[int, Array] = field(default_factory=dict)

    def op(self, name: str, *operands: int, **attrs: Any) -> int:
        """Append a node; its id comes back."""
        self.statements.append(Statement(registry().ops[name], operands, attrs))
        return len(self.statements) - 1

    def leaf(self, name: str, array: Array) -> int:
        """Append a leaf and its feed."""
        node = self.op(name)
        self.feeds[node] = array
        return node


def chain(length: int) -> Workload:
    """One parameter of 8 elements through `length` elementwise nodes, then a sum."""
    work = Workload(f"chain of {length:,} nodes")
    node = work.leaf("parameter", np.linspace(0.1, 0.8, 8))
    for i in range(length):
        node = work.op("sin" if i % 2 else "square", node)
    work.op("sum", node)
    return work


def perceptron(widths: tuple[int, ...], batch: int) -> Workload:
    """Linear layers with relu between them, cross-entropy at the end, float32."""
    rng = np.random.default_rng(0)
    work = Workload(f"MLP {'-'.join(map(str, widths))}, batch {batch}")
    node = work.leaf("input", rng.random((batch, widths[0]), np.float32))
    for i, (into, out) in enumerate(pairwise(widths)):
        weight = work.leaf("parameter", rng.normal(0, into**-0.5, (into, out)).astype(np.float32))
        bias = work.leaf("parameter", np.zeros(out, np.float32))
        activation = "relu" if i < len(widths) - 2 else "none"
        node = work.op("linear", node, weight, bias, activation=activation)
    work.op("cross_entropy", node, work.leaf("input", rng.integers(0, widths[-1], batch)))
    return work


def median_ms(call: Callable[[], object], repeats: int) -> float:
    """The median time of `repeats` calls, after one that is not counted."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def measure(work: Workload, device: str, repeats: int) -> tuple[float, float, int]:
    """Milliseconds to check and plan, milliseconds to run the plan, and its peak bytes."""
    types = {node: TensorType.of(array) for node, array in work.feeds.items()}
    feeds: Mapping[Hashable, Array] = dict(work.feeds.items())
    limits = Limits(nodes=1_000_000)

    def plan() -> Any:
        return Compiler(limits, capacity=0).gradients(Program(work.statements, limits), types).plan

    made, executor = plan(), open_executor(device)
    planning = median_ms(plan, max(1, repeats // 5))
    return planning, median_ms(lambda: executor.run(made, feeds), repeats), made.peak_bytes


def main() -> None:
    """Measure every workload and print a table."""
    parser = argparse.ArgumentParser(description="Time planning and execution on this machine.")
    parser.add_argument("--device", default="cpu", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--repeats", type=int, default=25)
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} CPUs, {platform.machine()}")
    print(f"{'value and all gradients':34}{'plan ms':>10}{'run ms':>10}{'peak kB':>10}")
    for work in (chain(20), chain(2_000), chain(20_000), perceptron((784, 256, 128, 10), 128)):
        planning, running, peak = measure(work, options.device, options.repeats)
        print(f"{work.name:34}{planning:10.2f}{running:10.2f}{peak / 1e3:10.1f}", flush=True)


if __name__ == "__main__":
    main()
