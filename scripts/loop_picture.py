"""A scan and its way back, as the guide draws them from the plan of a gradient: steps, and what is kept."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any, Final

from engine import Compiler, Function, Graph, Limits, Node, Program, Statement, TensorType, registry
from engine.bodies.tidy import tidy
from engine.graph.tensor_type import FLOAT64
from engine.planning.looped import PlannedScan
from engine.planning.plan import Step
from scripts.written_part import rewritten

START: Final = "<!-- drawing: written by `make docs` from the plan of a gradient -->"
END: Final = "<!-- end of the drawing -->"
LENGTH: Final = 1000
#: what a step is given, on the way there and back: its name, and what that is to the loop
THERE: Final = (("k", "const"), ("y", "carry"))
BACK: Final = (("k", "const"), ("ȳ", "carry"), ("k̄", "carry"), ("y", "sequence"))

Inputs = Sequence[tuple[str, str]]


def with_loops(page: str) -> str:
    """The page with the drawing of today."""
    return rewritten(page, START, END, "\n".join(_lines()), "a scan and its way back")


def loops() -> tuple[Step, Step]:
    """The loops of the gradient of the last y of a scan: y ← y − k sin(y) / 2."""
    scan = _statement("scan", 0, 1, body=0, carries=1, length=LENGTH)
    nodes = [_statement("parameter"), _statement("input"), scan, _statement("get_output", 2, index=0)]
    program = Program(registry(), nodes, opset=2, functions=[_step()])
    number = TensorType((), FLOAT64)
    plan = Compiler(Limits()).gradients(program, {0: number, 1: number}).plan
    there, back = (step for step in plan.steps if isinstance(step.op, PlannedScan))
    return there, back


def _step() -> Function:
    k, y = _statement("input"), _statement("input")
    moved = [_statement("sin", 1), _statement("mul", 0, 2), _statement("mul_scalar", 3, scalar=-0.5)]
    return Function(registry(), [k, y, *moved, _statement("add", 1, 4)], [5])


def _statement(op: str, *operands: int, **attrs: Any) -> Statement:
    return Statement(registry().get(op), operands, attrs)


def _lines() -> Iterator[str]:
    there, back = (tidy(step.attrs["body"]).graph for step in loops())
    kept = loops()[0].types[-1]
    yield "<!-- test: drawn -->"
    yield "```mermaid"
    yield "flowchart LR"
    yield from _loop("there", f"each of {LENGTH:,} steps", there, THERE, ())
    yield from _loop("back", "the same steps, from the last", back, BACK, set(_told(there, THERE)))
    yield f'  kept[("y of all steps: {kept}, {kept.nbytes:,} bytes")]'
    yield "  there1 --> kept --> back3"
    yield "  classDef again stroke-dasharray: 4 4"
    yield "```"


def _loop(name: str, title: str, graph: Graph, inputs: Inputs, known: Container[str]) -> Iterator[str]:
    """A step: its nodes, dashed where the way there has the same; its last results are carries again."""
    yield f'  subgraph {name}["{title}"]'
    for i, (node, told) in enumerate(zip(graph.nodes, _told(graph, inputs), strict=True)):
        again = ":::again" if told in known and not node.is_leaf else ""
        yield f"    {name}{i}{_label(node, inputs)}{again}"
        yield from (f"    {name}{operand} --> {name}{i}" for operand in node.operands)
    carries = [at for at, (_, role) in enumerate(inputs) if role == "carry"]
    for output, at in zip(graph.outputs, carries, strict=False):
        yield f"    {name}{output} -. next .-> {name}{at}"
    yield "  end"


def _label(node: Node, inputs: Inputs) -> str:
    if node.is_leaf:
        name, role = inputs[node.attrs["feed"]]
        return f'(["{role} {name}"])'
    return f'["{" ".join([node.op.name, *map(str, node.attrs.values())])}"]'


def _told(graph: Graph, inputs: Inputs) -> list[str]:
    """Each node as a formula of what the step is given."""
    told: list[str] = []
    for node in graph.nodes:
        operands = ", ".join(told[i] for i in node.operands)
        told.append(inputs[node.attrs["feed"]][0] if node.is_leaf else f"{node.op.name}({operands}){dict(node.attrs)}")
    return told
