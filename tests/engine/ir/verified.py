"""Verify the graphs that a test builds: after every pass, every transform and every call.

All graphs are built by one constructor, which `verified` wraps; production runs without it. `constructed` counts the
verified graphs, so that a test can tell whether a graph is. Nodes that were valid in one graph are not checked again.

`make test` verifies all small graphs and all graphs of calls, but only a part of the others: verifying them all took a
fifth of the engine's tests. The number of nodes decides, so a graph is verified in every run or in none.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from engine import Graph
from engine.compiler import compiler
from engine.ir.verify import verify

constructed: Counter[str] = Counter()
valid_nodes: set[Hashable] = set()


@contextmanager
def untraced() -> Iterator[None]:
    """Suspend tracing, so that tests that count steps do not count the verifier's."""
    trace = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(trace)


@contextmanager
def verified(all_graphs: bool = True) -> Iterator[None]:
    """Verify all graphs from here on, or a part of them; graphs of calls may hold no `grad` nodes."""
    construct, write_call = Graph.__init__, compiler.write_call

    def construct_verified(graph: Graph, *fields: Any, **named: Any) -> None:
        construct(graph, *fields, **named)
        if all_graphs or len(graph.nodes) < 12 or len(graph.nodes) % 8 == 0:
            with untraced():
                verify(graph, verified=valid_nodes)
            constructed["graphs"] += 1

    def write_verified(*args: Any, **options: Any) -> compiler.Traced:
        traced = write_call(*args, **options)
        with untraced():
            verify(traced.graph, expanded=True, verified=valid_nodes)
        return traced

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Graph, "__init__", construct_verified)
        patch.setattr(compiler, "write_call", write_verified)
        yield
