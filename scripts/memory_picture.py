"""Draw docs/guide/memory.svg: the arithmetic of two gradients over the bytes that they take, as they are planned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from engine import Compiler, Gradients, Limits, OverBudget, Program, Statement, TensorType, registry
from engine.ir.opset import LATEST
from engine.ir.program import Function

PICTURE = Path(__file__).parents[1] / "docs" / "guide" / "memory.svg"
#: budgets, each so much smaller than the one before
STEP: Final = 0.8
LAYERS, ROWS, WIDTH, STEPS, EXTENT = 60, 5632, 128, 100_000, 100


class Asked(NamedTuple):
    """A program, all of whose gradients are asked for, and the types of its leaves."""

    program: Program
    types: Mapping[int, TensorType]


class Planned(NamedTuple):
    """What one plan takes: bytes, and its FLOPs by those of the fastest."""

    peak_bytes: int
    flops: float


def network() -> Asked:
    """The mean of squares behind residual layers, h + gelu(h w + b), in float32."""
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
    return Asked(Program(registry(), nodes), types)


def simulation() -> Asked:
    """The sum behind so many steps y − 0.001 k sin(y)."""
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
    return Asked(program, {0: TensorType((), float64), 1: TensorType((EXTENT,), float64)})


def curve(asked: Asked) -> Iterator[Planned]:
    """The plans of less and less memory, the fastest first, down to the smallest that there is."""
    compiler, call = Compiler(Limits()), Gradients.of_program(asked.program)
    fastest = compiler.compile(asked.program, asked.types, call).plan
    plan = fastest
    while True:
        yield Planned(plan.peak_bytes, plan.flops / fastest.flops)
        try:
            less = int(plan.peak_bytes * STEP)
            plan = compiler.compile(asked.program, asked.types, call, memory=less).plan
        except OverBudget:
            return


def draw(curves: Mapping[str, list[Planned]], path: Path) -> None:
    """Write it as SVG, the same bytes for the same plans."""
    from matplotlib import rc_context  # noqa: PLC0415 - of the extra `demo`
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
    """Plan both, and draw."""
    asked = {f"a network of {LAYERS} layers": network(), f"a loop of {STEPS:,} steps": simulation()}
    curves = {label: list(curve(each)) for label, each in asked.items()}
    for label, points in curves.items():
        print(label, *(f"{p.peak_bytes / 2**20:.3f} MiB × {p.flops:.2f}" for p in points), sep="\n  ")
    draw(curves, PICTURE)
    print(f"wrote {PICTURE.name}")


if __name__ == "__main__":
    main()
