"""Golden tests: the graph before and after each pass and transform, from the `*.txt` files in this folder.

A case is an input graph, a line `---`, and the output graph. `GRADSERVE_UPDATE_GOLDEN=1` rewrites the output graphs;
then read the diff.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from engine import Builder, Graph, registry
from engine.autodiff.jvp import jvp
from engine.autodiff.vjp import expand_grad, vjp_or_zeros
from engine.autodiff.vmap import vmap
from engine.ir.passes import cse, dce, fold, optimise, simplify
from engine.ir.text import parse_graph, print_graph

HERE = Path(__file__).parent
CASES = sorted(HERE.glob("*/*.txt"))


def gradients(graph: Graph) -> Graph:
    """Return the gradients of the first output with respect to all parameters, without dead code."""
    builder = Builder(registry(), nodes=list(graph.nodes))
    y = builder.value(graph.outputs[0])
    parameters = [builder.value(i) for i, node in enumerate(graph.nodes) if node.op.name == "parameter"]
    return dce(builder.graph(vjp_or_zeros(builder, [(y, y.full_like(1.0))], parameters)))


def tangent(graph: Graph) -> Graph:
    """Return the tangents of the outputs in the direction of ones for all parameters, without dead code."""
    builder = Builder(registry(), nodes=list(graph.nodes))
    parameters = [builder.value(i) for i, node in enumerate(graph.nodes) if node.op.name == "parameter"]
    tangents = jvp(builder, [builder.value(i) for i in graph.outputs], [(x, x.full_like(1.0)) for x in parameters])
    return dce(builder.graph([t for t in tangents if t is not None]))


def batched(graph: Graph) -> Graph:
    """Map over two examples: the leaves with even feed numbers are mapped."""
    return vmap(graph, {feed for feed in graph.feeds if isinstance(feed, int) and feed % 2 == 0}, 2)


APPLY: dict[str, Callable[[Graph], Graph]] = {
    "dce": dce,
    "cse": cse,
    "simplify": lambda graph: dce(simplify(graph)),
    "fold": lambda graph: dce(fold(graph)),
    "optimise": optimise,
    "expand_grad": lambda graph: dce(expand_grad(graph)),
    "gradients": gradients,
    "jvp": tangent,
    "vmap": batched,
}


@pytest.mark.parametrize("path", CASES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_output_matches_golden_file(path: Path) -> None:
    before, _, after = path.read_text().partition("---\n")
    graph = parse_graph(before, registry())
    assert print_graph(graph) == before
    actual = print_graph(APPLY[path.stem.partition("-")[0]](graph))
    if os.environ.get("GRADSERVE_UPDATE_GOLDEN"):
        path.write_text(f"{before}---\n{actual}")
    else:
        assert actual == after


def test_every_pass_has_a_golden_file() -> None:
    assert {path.stem.partition("-")[0] for path in CASES} == set(APPLY)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%1 = input : float64[2]\nreturn %0", "line 0: expected “%0 = op"),
        ("%0 = nonsense\nreturn %0", "line 0: expected “%0 = op"),
        ('%0 = input {"feed": 0} : float64[2]\n%1 = sum(%0) : float64[2]\nreturn %1', "line 1: states float64"),
        ('%0 = input {"feed": 0} : floaty\nreturn %0', "expected a type such as float64"),
    ],
)
def test_parse_error_names_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_graph(text, registry())
