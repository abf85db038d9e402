"""Every graph of the tests, before passes: families of questions in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import Phase, given, settings

from benchmarks.problems.networks import perceptron, scalar_ops, wide_graph
from benchmarks.recorder import Recorder
from engine import Builder, Program, registry
from engine.autodiff.vjp import expand_grad
from engine.ir.text import parse_graph
from tests.contract.cases import all_cases, feeds_of, has_rule
from tests.contract.test_derivatives import directional_gradient, directions, weights_for
from tests.engine.strategies import Sketch, sketches
from tests.passes import wire
from tests.passes.questions import Array, Question, ask, float64, with_gradients

GOLDEN = Path(__file__).parents[1] / "golden"
#: a graph that fails with and without passes
REFUSED = GOLDEN / "passes" / "fold-leaves-what-is-refused.txt"


def samples() -> Iterator[Question]:
    """Each sample of each op: its results, and its derivatives, if any."""
    for case in all_cases():
        arrays = case.arrays()
        written = case.write(arrays)
        if has_rule(case):
            graph = with_gradients(written.builder, written.outputs, written.operands)
        else:
            graph = written.builder.graph(written.outputs)
        yield Question(str(case), graph, feeds_of(arrays))


def second_derivatives() -> Iterator[Question]:
    """Each sample that has derivatives: the gradient along a direction, and the gradients of that."""
    for case in filter(has_rule, all_cases()):
        arrays = case.arrays()
        weights = weights_for(case.write(arrays))
        written = directional_gradient(case, arrays, weights, directions(arrays, 3))
        graph = with_gradients(written.builder, written.outputs, written.operands)
        yield Question(str(case), graph, feeds_of(arrays))


def random() -> Iterator[Question]:
    """Reproducible random programs with inner gradients: the last node and its gradients with respect to all leaves."""
    for number, sketch in enumerate(drawn(200)):
        of = sketch.singles()[-1]
        cotangent = np.asarray(np.random.default_rng(7).uniform(0.5, 1.5, sketch.shape(of)))
        program = sketch.program()
        wrt = [i for i in sketch.leaves if i in program.needed([of])] or [of]
        yield ask(f"number {number}", program, sketch.feeds, of=of, wrt=wrt, cotangent=cotangent)


def drawn(count: int) -> list[Sketch]:
    """The first programs that Hypothesis draws."""
    collected: list[Sketch] = []

    @settings(max_examples=count, derandomize=True, database=None, phases=[Phase.generate])
    @given(sketches(largest=20))
    def collect(sketch: Sketch) -> None:
        collected.append(sketch)

    collect()
    return collected


def golden() -> Iterator[Question]:
    """The graphs before the passes of the goldens, with the gradients of all results with respect to all leaves."""
    for path in sorted(set(GOLDEN.glob("*/*.txt")) - {REFUSED}):
        graph = expand_grad(parse_graph(path.read_text(encoding="utf-8").partition("---\n")[0], registry()))
        builder = Builder(registry(), nodes=list(graph.nodes))
        leaves = {feed: builder.value(i) for feed, i in graph.feeds.items()}
        rng = np.random.default_rng(3)
        feeds: dict[Any, Array] = {
            feed: np.asarray(rng.uniform(0.5, 1.5, x.shape)).astype(x.dtype) for feed, x in leaves.items()
        }
        outputs = [builder.value(i) for i in graph.outputs]
        yield Question(path.stem, with_gradients(builder, outputs, list(leaves.values())), feeds)


def workloads() -> Iterator[Question]:
    """Small versions of the workloads of `make bench`."""
    for work in (scalar_ops(8), perceptron(64, 16, 10, batch=8), wide_graph(200)):
        ops = Recorder()
        leaves = [ops.parameter() for _ in work.parameters] + [ops.input() for _ in work.data]
        work.function(ops, *leaves)
        feeds = {leaf.node: float64(a) for leaf, a in zip(leaves, work.arrays, strict=True)}
        of, wrt = len(ops.statements) - 1, [leaf.node for leaf in leaves[: len(work.parameters)]]
        yield ask(work.name, Program(registry(), ops.statements), feeds, of=of, wrt=wrt)


FAMILIES: dict[str, Callable[[], Iterator[Question]]] = {
    "samples of ops": samples,
    "second derivatives of samples": second_derivatives,
    "reference cases": wire.reference,
    "derivatives of derivatives": wire.higher_order,
    "random programs": random,
    "goldens": golden,
    "examples": wire.examples,
    "documentation": wire.documentation,
    "benchmarks": workloads,
}
