"""Draw docs/guide/memory.svg: the FLOPs of two gradients over the bytes of their plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from engine import Compiler, Gradients, Limits, OverBudget, Program, Statement, TensorType, registry
from engine.ir.opset import LATEST
from engine.ir.program import Function

PICTURE = Path(__file__).parents[1] / "docs" / "guide" / "memory.svg"
#: ratio of successive memory budgets
STEP: Final = 0.8
LAYERS, ROWS, WIDTH, STEPS, EXTENT = 60, 5632, 128, 100_000, 100


class Problem(NamedTuple):
    """A program of which all gradients are computed, and the types of its leaves."""

    program: Program
    types: Mapping[int, TensorType]


class Planned(NamedTuple):
    """Peak bytes of a plan, and its FLOPs relative to those of the fastest plan."""

    peak_bytes: int
    flops: float


def network() -> Problem:
    """Return the mean of squares after residual layers, h + gelu(h w + b), in float32."""
    nodes, types = list[Statement](), dict[int, TensorType]()

    def leaf(*shape: int) -> int:
        types[len(nodes)] = TensorType(shape, np.dtype(np.float32))
        return add("parameter")

    def add(op: str, *operands: int) -> int:
        nodes.append(Statement(registry().get(op), operands))
        return len(nodes) - 1

    h = leaf(ROWS, WIDTH)
    for _ in range(LAYERS):
        inner = add("add", add("matmul", h, leaf(WIDTH, WIDTH)), leaf(WIDTH))
        h = add("add", h, add("gelu", inner))
    add("mean", add("square", h))
    return Problem(Program(registry(), nodes), types)


def simulation() -> Problem:
    """Return the sum after STEPS steps of y − 0.001 k sin(y)."""
    ops = registry()
    body = [
        Statement(ops.get("input")),
        Statement(ops.get("input")),
        Statement(ops.get("mul"), (0, 1)),
        Statement(ops.get("sin"), (2,)),
        Statement(ops.get("mul_scalar"), (3,), {"scalar": -0.001}),
        Statement(ops.get("add"), (1, 4)),
    ]
    nodes = [
        Statement(ops.get("parameter")),
        Statement(ops.get("input")),
        Statement(ops.get("scan"), (0, 1), {"body": 0, "carries": 1, "length": STEPS}),
        Statement(ops.get("get_output"), (2,), {"index": 0}),
        Statement(ops.get("sum"), (3,)),
    ]
    program = Program(ops, nodes, opset=LATEST, functions=[Function(ops, body, [5])])
    float64 = np.dtype(np.float64)
    return Problem(program, {0: TensorType((), float64), 1: TensorType((EXTENT,), float64)})


def curve(problem: Problem) -> Iterator[Planned]:
    """Yield plans of decreasing memory, from the fastest to the smallest."""
    compiler, call = Compiler(Limits()), Gradients.of_program(problem.program)
    fastest = compiler.compile(problem.program, problem.types, call).plan
    plan = fastest
    while True:
        yield Planned(plan.peak_bytes, plan.flops / fastest.flops)
        try:
            budget = int(plan.peak_bytes * STEP)
            plan = compiler.compile(problem.program, problem.types, call, memory=budget).plan
        except OverBudget:
            return


def draw(curves: Mapping[str, list[Planned]], path: Path) -> None:
    """Write the picture as SVG, with the same bytes for the same plans."""
    from matplotlib import rc_context  # noqa: PLC0415 - a dependency of the extra `demo`
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for label, points in curves.items():
        axes.plot([p.peak_bytes / 2**20 for p in points], [p.flops for p in points], marker="o", label=label)
    axes.set(xscale="log", xlabel="MiB planned", ylabel="arithmetic, by that of the fastest", ylim=(0.9, 2.1))
    axes.grid(alpha=0.3)
    axes.legend()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "memory"}):
        figure.savefig(path, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))


def main() -> None:
    """Plan both problems, and draw."""
    problems = {f"a network of {LAYERS} layers": network(), f"a loop of {STEPS:,} steps": simulation()}
    curves = {label: list(curve(problem)) for label, problem in problems.items()}
    for label, points in curves.items():
        print(label, *(f"{p.peak_bytes / 2**20:.3f} MiB × {p.flops:.2f}" for p in points), sep="\n  ")
    draw(curves, PICTURE)
    print(f"wrote {PICTURE.name}")


if __name__ == "__main__":
    main()
