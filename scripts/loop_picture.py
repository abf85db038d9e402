"""A scan and its way back, as the guide draws them from the plan of a gradient: steps, and what is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine import Compiler, Function, Graph, Limits, Node, Plan, Program, Statement, TensorType, registry
from engine.autodiff.bodies import tidy
from engine.compiler.control_flow import PlannedScan
from engine.compiler.plan import Step
from engine.ir.tensor_type import FLOAT64
from scripts.written_part import rewritten

START: Final = "<!-- drawing: written by `make docs` from the plan of a gradient -->"
END: Final = "<!-- end of the drawing -->"
LENGTH: Final = 1000
#: what a step is given on the way there, and on the way back before what is kept
THERE: Final = ("const k", "carry y")
BACK: Final = ("const k", "carry ȳ", "carry k̄")


@dataclass(frozen=True)
class Loop:
    """A loop of a plan: its step as a graph, and the formula of each node of that, of what the step is given."""

    step: Step
    graph: Graph
    inputs: Sequence[str]
    formulas: Sequence[str]

    @classmethod
    def of(cls, step: Step, inputs: Sequence[str]) -> Loop:
        """Of a planned scan; `inputs` are what its operands are called, behind a word that says what they are."""
        graph, formulas = tidy(step.attrs["body"]).graph, list[str]()
        for node in graph.nodes:
            formulas.append(_formula(node, inputs, formulas))
        return cls(step, graph, inputs, formulas)


def with_loops(page: str) -> str:
    """The page with the drawing of today."""
    return rewritten(page, START, END, "\n".join(_lines()), "a scan and its way back")


def gradient() -> Plan:
    """The plan of the gradient of the last y of a scan, y ← y − k·y·sin(y)/2."""
    scan = _statement("scan", 0, 1, body=0, carries=1, length=LENGTH)
    nodes = [_statement("parameter"), _statement("input"), scan, _statement("get_output", 2, index=0)]
    program = Program(registry(), nodes, opset=2, functions=[_step()])
    number = TensorType((), FLOAT64)
    return Compiler(Limits()).gradients(program, {0: number, 1: number}).plan


def _step() -> Function:
    given = [_statement("input"), _statement("input")]
    slope = [_statement("mul", 0, 1), _statement("sin", 1), _statement("mul", 2, 3)]
    return Function(
        registry(), [*given, *slope, _statement("mul_scalar", 4, scalar=-0.5), _statement("add", 1, 5)], [6]
    )


def _statement(op: str, *operands: int, **attrs: Any) -> Statement:
    return Statement(registry().get(op), operands, attrs)


def _lines() -> Iterator[str]:
    plan = gradient()
    first, second = (step for step in plan.steps if isinstance(step.op, PlannedScan))
    there = Loop.of(first, THERE)
    kept = list(_kept(plan, there, second))
    back = Loop.of(second, (*BACK, *[f"sequence {there.formulas[at]}" for at in kept]))
    yield "<!-- test: drawn -->"
    yield "```mermaid"
    yield "flowchart LR"
    yield from _drawn("there", f"each of {LENGTH:,} steps", there, ())
    yield from _drawn("back", "the same steps, from the last", back, there.formulas)
    for place, at in enumerate(kept):
        leaf = back.formulas.index(there.formulas[at])
        stack = there.graph.nodes[at].type.with_shape((LENGTH,))
        yield f'  there{at} --> kept{place}[("{there.formulas[at]}: {stack}, {stack.nbytes:,} bytes")] --> back{leaf}'
    yield "  classDef again stroke-dasharray: 4 4"
    yield "```"


def _kept(plan: Plan, there: Loop, back: Step) -> Iterator[int]:
    """The nodes of a step there whose values the way back goes through, in its order."""
    results = {step.result: step.attrs["index"] for step in plan.steps if step.operands == (there.step.result,)}
    for slot in back.operands[len(BACK) :]:
        yield there.graph.outputs[results[slot]]


def _drawn(name: str, title: str, loop: Loop, known: Sequence[str]) -> Iterator[str]:
    """A step: its nodes, dashed where they are `known` from the way there; its first results are carries again."""
    yield f'  subgraph {name}["{title}"]'
    for i, (node, formula) in enumerate(zip(loop.graph.nodes, loop.formulas, strict=True)):
        again = ":::again" if formula in known and not node.is_leaf else ""
        yield f"    {name}{i}{_label(node, loop.inputs)}{again}"
        yield from (f"    {name}{operand} --> {name}{i}" for operand in node.operands)
    carries = [at for at, given in enumerate(loop.inputs) if given.startswith("carry ")]
    for output, at in zip(loop.graph.outputs, carries, strict=False):
        yield f"    {name}{output} -. next .-> {name}{at}"
    yield "  end"


def _label(node: Node, inputs: Sequence[str]) -> str:
    return f'(["{inputs[node.attrs["feed"]]}"])' if node.is_leaf else f'["{_said(node)}"]'


def _said(node: Node) -> str:
    return " ".join([node.op.name, *map(str, node.attrs.values())])


def _formula(node: Node, inputs: Sequence[str], before: Sequence[str]) -> str:
    if node.is_leaf:
        name: str = inputs[node.attrs["feed"]]
        return name.partition(" ")[2]
    return f"{_said(node)}({', '.join(before[i] for i in node.operands)})"
