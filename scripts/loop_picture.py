"""Drawing of a scan and its backward pass for the guide, from the plan of a gradient: steps, and saved values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine import Compiler, Function, Graph, Limits, Node, Plan, Program, Statement, TensorType, registry
from engine.autodiff.bodies import tidy
from engine.compiler.control_flow import PlannedScan
from engine.compiler.plan import Step
from engine.ir.tensor_type import FLOAT64
from scripts.generated_part import replace_part

START: Final = "<!-- drawing: written by `make docs` from the plan of a gradient -->"
END: Final = "<!-- end of the drawing -->"
LENGTH: Final = 1000
#: inputs of a step of the forward pass, and of the backward pass before the saved values
FORWARD: Final = ("const k", "carry y")
BACKWARD: Final = ("const k", "carry ȳ", "carry k̄")


@dataclass(frozen=True)
class Loop:
    """Loop of a plan: its step as a graph, and the formula of each node in terms of the step's inputs."""

    step: Step
    graph: Graph
    inputs: Sequence[str]
    formulas: Sequence[str]

    @classmethod
    def of(cls, step: Step, inputs: Sequence[str]) -> Loop:
        """Return the loop of a planned scan. `inputs` name its operands, each after its role."""
        graph, formulas = tidy(step.attrs["body"]).graph, list[str]()
        for node in graph.nodes:
            formulas.append(_formula(node, inputs, formulas))
        return cls(step, graph, inputs, formulas)


def with_loops(page: str) -> str:
    """Return the page with the current drawing."""
    return replace_part(page, START, END, "\n".join(_lines()), "a scan and its way back")


def gradient() -> Plan:
    """Return the plan of the gradient of the last y of a scan, y ← y − k·y·sin(y)/2."""
    scan = _statement("scan", 0, 1, body=0, carries=1, length=LENGTH)
    nodes = [_statement("parameter"), _statement("input"), scan, _statement("get_output", 2, index=0)]
    program = Program(registry(), nodes, opset=2, functions=[_step()])
    number = TensorType((), FLOAT64)
    return Compiler(Limits()).gradients(program, {0: number, 1: number}).plan


def _step() -> Function:
    inputs = [_statement("input"), _statement("input")]
    slope = [_statement("mul", 0, 1), _statement("sin", 1), _statement("mul", 2, 3)]
    return Function(
        registry(), [*inputs, *slope, _statement("mul_scalar", 4, scalar=-0.5), _statement("add", 1, 5)], [6]
    )


def _statement(op: str, *operands: int, **attrs: Any) -> Statement:
    return Statement(registry().get(op), operands, attrs)


def _lines() -> Iterator[str]:
    plan = gradient()
    first, second = (step for step in plan.steps if isinstance(step.op, PlannedScan))
    forward = Loop.of(first, FORWARD)
    saved = list(_saved(plan, forward, second))
    backward = Loop.of(second, (*BACKWARD, *[f"sequence {forward.formulas[node]}" for node in saved]))
    yield "<!-- test: drawn -->"
    yield "```mermaid"
    yield "flowchart LR"
    yield from _drawn("there", f"each of {LENGTH:,} steps", forward, ())
    yield from _drawn("back", "the same steps, from the last", backward, forward.formulas)
    for i, node in enumerate(saved):
        leaf = backward.formulas.index(forward.formulas[node])
        stack = forward.graph.nodes[node].type.with_shape((LENGTH,))
        yield f'  there{node} --> kept{i}[("{forward.formulas[node]}: {stack}, {stack.nbytes:,} bytes")] --> back{leaf}'
    yield "  classDef again stroke-dasharray: 4 4"
    yield "```"


def _saved(plan: Plan, forward: Loop, backward: Step) -> Iterator[int]:
    """Yield the nodes of the forward step whose values the backward pass reads, in its order."""
    results = {step.result: step.attrs["index"] for step in plan.steps if step.operands == (forward.step.result,)}
    for slot in backward.operands[len(BACKWARD) :]:
        yield forward.graph.outputs[results[slot]]


def _drawn(name: str, title: str, loop: Loop, computed: Sequence[str]) -> Iterator[str]:
    """Yield a step: its nodes, dashed if they are in `computed`, the formulas of the forward pass.

    The step's first results are the next carries.
    """
    yield f'  subgraph {name}["{title}"]'
    for i, (node, formula) in enumerate(zip(loop.graph.nodes, loop.formulas, strict=True)):
        dashed = ":::again" if formula in computed and not node.is_leaf else ""
        yield f"    {name}{i}{_label(node, loop.inputs)}{dashed}"
        yield from (f"    {name}{operand} --> {name}{i}" for operand in node.operands)
    carries = [position for position, label in enumerate(loop.inputs) if label.startswith("carry ")]
    for output, position in zip(loop.graph.outputs, carries, strict=False):
        yield f"    {name}{output} -. next .-> {name}{position}"
    yield "  end"


def _label(node: Node, inputs: Sequence[str]) -> str:
    return f'(["{inputs[node.attrs["feed"]]}"])' if node.is_leaf else f'["{_op_text(node)}"]'


def _op_text(node: Node) -> str:
    return " ".join([node.op.name, *map(str, node.attrs.values())])


def _formula(node: Node, inputs: Sequence[str], before: Sequence[str]) -> str:
    if node.is_leaf:
        name: str = inputs[node.attrs["feed"]]
        return name.partition(" ")[2]
    return f"{_op_text(node)}({', '.join(before[i] for i in node.operands)})"
