"""The graphs that are compiled and watched, with their feeds: every op's samples, networks, and random graphs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import reduce
from typing import Any, Final, NamedTuple

import numpy as np

from engine import Compiler, Gradients, Graph, Values
from engine.autodiff.vjp import vjp_or_zeros
from engine.compiler.compiler import CompileRequest, plan_call
from engine.compiler.plan import graph_of
from engine.ir.errors import NotDifferentiable
from engine.ir.passes import optimise
from engine.ops import registry
from tests.bounds.loops import LOOPS
from tests.bounds.random_graphs import random_graph
from tests.contract.cases import LIMITS, Array, Case, all_cases, has_rule
from tests.engine.analysis.real_networks import REAL_NETWORKS
from tests.engine.autodiff.calls.asking import Net
from tests.engine.autodiff.calls.networks import attention, convolution, parts

RANDOM_GRAPHS: Final = 2000
#: ops, the shapes of their operands, and attributes
SHAPES: Final = [
    ("matmul", [(37, 1100), (1100, 70)], {}),
    ("matmul", [(5, 33, 20), (20, 17)], {}),
    ("flip", [(6, 37)], {"axes": [1]}),
    ("sum", [(3, 7, 331)], {"axes": [0, 2]}),
    ("conv2d", [(2, 5, 19, 23), (7, 5, 3, 3)], {"padding": [1, 2]}),
    ("conv2d", [(2, 3, 17, 16), (4, 3, 2, 5)], {"stride": [2, 3], "dilation": [1, 2]}),
    ("conv2d", [(2, 6, 15, 18), (6, 1, 3, 3)], {"groups": 6, "padding": [1, 1]}),
    ("conv1d", [(1, 3, 300), (5, 3, 9)], {}),
    ("conv_transpose2d", [(2, 3, 9, 11), (3, 4, 3, 3)], {"stride": [2, 2]}),
    # fewer taps than steps: parts of the result have no tap
    ("conv_transpose2d", [(16, 15, 17, 16), (15, 3, 1, 5)], {"stride": [2, 1]}),
    ("max_pool2d", [(2, 3, 21, 34)], {"kernel_size": [3, 3], "stride": [2, 2], "padding": [1, 1]}),
    ("avg_pool2d", [(2, 3, 21, 34)], {"kernel_size": [2, 3], "padding": [1, 1]}),
    ("softmax", [(9, 517)], {}),
    ("cumsum", [(9, 35)], {"axis": 1}),
    ("max", [(130, 35)], {"axes": [1]}),
]


class Watched(NamedTuple):
    """A graph to compile and run."""

    name: str
    graph: Graph
    feeds: Mapping[Any, Array]


Make = Callable[[], Iterator[Watched]]


def groups() -> dict[str, Make]:
    """The corpus by the name of a group, each of which takes some seconds."""
    ops = sorted({case.op.name for case in all_cases()})
    by_name: dict[str, Make] = {f"op {name}": lambda name=name: _samples(name) for name in ops}
    by_name |= {f"network {name}": lambda name=name: _network(name, REAL_NETWORKS[name]()) for name in REAL_NETWORKS}
    by_hand = {"convolution": convolution, "attention": attention, "parts": parts}
    by_name |= {f"network {name}": lambda name=name: _network(name, by_hand[name]().net) for name in by_hand}
    by_name |= {f"kernels of {name}": lambda name=name: _kernels_of(name) for name, _, _ in SHAPES}
    by_name |= {"far arguments": _far_arguments, "indices outside": _indices_outside}
    by_name |= {f"loops of {name}": lambda name=name: _loops_of(name) for name in LOOPS}
    return by_name | {f"random {first}": lambda first=first: _random(first) for first in range(0, RANDOM_GRAPHS, 20)}


def _samples(op: str) -> Iterator[Watched]:
    """Values, and if there is a rule, gradients, and gradients of gradients in float32."""
    for case in all_cases():
        if case.op.name == op:
            for dtype, orders in (("float32", 3), ("float64", 2)):
                arrays = case.arrays(dtype)
                feeds = dict(enumerate(arrays))
                for order in range(orders if has_rule(case) else 1):
                    with suppress(NotDifferentiable):  # the incomplete gamma functions, twice by their shape
                        yield Watched(f"{case} {dtype} {order}", _derived(case, arrays, order), feeds)


def _derived(case: Case, arrays: list[Array], order: int) -> Graph:
    written = case.write(arrays)
    values = written.outputs
    for _ in range(order):
        outputs = [y for y in values if y.type.is_differentiable]
        total = reduce(operator.add, ((y * y).sum() for y in outputs))
        values = vjp_or_zeros(written.builder, [(total, total.full_like(1.0))], written.float_operands)
    return optimise(written.builder.graph(values))


def _network(name: str, net: Net) -> Iterator[Watched]:
    """The loss of a network, and its gradients."""
    yield _with_gradients(name, net)
    program = net.program
    _, plan = plan_call(CompileRequest(program, net.types, Values.of_program(program, (net.last,)), LIMITS))
    yield Watched(f"{name}, forward", graph_of(plan, registry()), net.feeds)


def _with_gradients(name: str, net: Net) -> Watched:
    _, plan = plan_call(CompileRequest(net.program, net.types, Gradients.of_program(net.program), LIMITS))
    return Watched(name, graph_of(plan, registry()), {key: net.feeds[key] for key in plan.feeds})


def _kernels_of(op: str) -> Iterator[Watched]:
    """Shapes for which kernels pack panels, reverse rows, or read overlapping windows."""
    for dtype in ("float32", "float64"):
        for name, shapes, attrs in SHAPES:
            if name != op:
                continue
            net = Net()
            rng = np.random.default_rng(0)
            leaves = [net.leaf(rng.normal(size=shape).astype(dtype)) for shape in shapes]
            net.add("sum", net.add("tanh", net.add(name, *leaves, **attrs)))
            yield _with_gradients(f"{name} of {shapes} {attrs} {dtype}", net)


def _far_arguments() -> Iterator[Watched]:
    """Lines cut into rows of 4096, with a short last row, and an argument that NumPy computes."""
    for length in (4095, 16_385, 16_484, 20_479):
        for op, far in (("sin", 1e7), ("cos", -1e9), ("lgamma", -2.5)):
            net = Net()
            x = np.linspace(0.5, 3, length)
            x[length // 2] = far
            net.add("sum", net.add(op, net.leaf(x)))
            yield _with_gradients(f"{op} of {length} numbers, one of them {far}", net)


def _indices_outside() -> Iterator[Watched]:
    """An index one beyond its axis, behind valid ones: the result is an error, and no other memory is accessed."""
    x, updates = np.ones((40, 17)), np.ones((9, 17))
    for axis, extent in ((0, 40), (1, 17)):
        index = np.zeros((9, 17), np.int64) if axis == 0 else np.zeros((40, 9), np.int64)
        index[-1, -1] = extent
        for op in ("gather", "scatter_add"):
            net = Net()
            given = [net.leaf(x), net.leaf(index, "input")]
            given += [net.leaf(updates if axis == 0 else np.ones((40, 9)))] if op == "scatter_add" else []
            net.add("sum", net.add("tanh", net.add(op, *given, axis=axis)))
            yield _with_gradients(f"{op} of an index {extent} on axis {axis}", net)


def _loops_of(name: str) -> Iterator[Watched]:
    """Values and gradients of a program with loops; each loop is a step whose bodies are plans."""
    looped = LOOPS[name]()
    calls = Values.of_program(looped.program, looped.results), Gradients.of_program(looped.program)
    for order, call in enumerate(calls):
        plan = Compiler(LIMITS).compile(looped.program, looped.types, call).plan
        feeds = {key: looped.feeds[key] for key in plan.feeds}
        yield Watched(f"loops of {name} {order}", graph_of(plan, registry()), feeds)


def _random(first: int) -> Iterator[Watched]:
    for seed in range(first, first + 20):
        yield _with_gradients(f"random graph {seed}", random_graph(seed))
