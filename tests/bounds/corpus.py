"""What is compiled and watched: graphs with their feeds, by name. Every op's samples, networks, and random graphs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import Any, Final, NamedTuple

import numpy as np

from engine import Gradients, Graph, Values
from engine.passes.pipeline import optimise
from engine.planning.compiler import plan_call
from engine.planning.plan import graph_of
from engine.ops import registry
from engine.transforms.vjp import vjp_or_zeros
from tests.bounds.random_graphs import random_graph
from tests.contract.cases import LIMITS, Array, Case, all_cases, has_rule
from tests.engine.calls.asking import Net
from tests.engine.calls.networks import attention, convolution, parts
from tests.engine.tools.real_networks import REAL_NETWORKS

RANDOM_GRAPHS: Final = 2000


class Watched(NamedTuple):
    """A graph to compile and run."""

    name: str
    graph: Graph
    feeds: Mapping[Any, Array]


Make = Callable[[], Iterator[Watched]]


def groups() -> dict[str, Make]:
    """The corpus in groups that take some seconds each, by name."""
    ops = sorted({case.op.name for case in all_cases()})
    found: dict[str, Make] = {f"op {name}": lambda name=name: _samples(name) for name in ops}
    found |= {f"network {name}": lambda name=name: _network(name, REAL_NETWORKS[name]()) for name in REAL_NETWORKS}
    by_hand = {"convolution": convolution, "attention": attention, "parts": parts}
    found |= {f"network {name}": lambda name=name: _network(name, by_hand[name]().net) for name in by_hand}
    return found | {f"random {first}": lambda first=first: _random(first) for first in range(0, RANDOM_GRAPHS, 20)}


def _samples(op: str) -> Iterator[Watched]:
    """Values, and where there is a rule gradients and gradients of these, in both dtypes."""
    for case in all_cases():
        if case.op.name == op:
            for dtype in ("float32", "float64"):
                arrays = case.arrays(dtype)
                feeds = dict(enumerate(arrays))
                for order in range(3 if has_rule(case) else 1):
                    yield Watched(f"{case} {dtype} {order}", _derived(case, arrays, order), feeds)


def _derived(case: Case, arrays: list[Array], order: int) -> Graph:
    written = case.write(arrays)
    found = written.outputs
    for _ in range(order):
        outputs = [y for y in found if y.type.is_float]
        total = reduce(operator.add, ((y * y).sum() for y in outputs))
        found = vjp_or_zeros(written.builder, [(total, total.full_like(1.0))], written.float_operands)
    return optimise(written.builder.graph(found))


def _network(name: str, net: Net) -> Iterator[Watched]:
    """The loss, and its gradients."""
    yield _asked(name, net)
    program = net.program
    _, plan = plan_call(program, net.types, Values.of_program(program, (net.last,)), LIMITS)
    yield Watched(f"{name}, forward", graph_of(plan, registry()), net.feeds)


def _asked(name: str, net: Net) -> Watched:
    _, plan = plan_call(net.program, net.types, Gradients.of_program(net.program), LIMITS)
    return Watched(name, graph_of(plan, registry()), {key: net.feeds[key] for key in plan.feeds})


def _random(first: int) -> Iterator[Watched]:
    for seed in range(first, first + 20):
        yield _asked(f"random graph {seed}", random_graph(seed))
