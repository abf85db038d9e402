"""Every graph that any test makes is verified as it is made: after every pass, every transform and every call.

A graph comes to be in one place, so that is where the verifier stands; production runs without it. `made` counts the
graphs, so that a test can tell whether it does. What one graph was right to say is not looked at again in the next.
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

made: Counter[str] = Counter()
sound: set[Hashable] = set()


@contextmanager
def untraced() -> Iterator[None]:
    """Who traces the test to count its steps does not count these."""
    trace = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(trace)


@contextmanager
def verified() -> Iterator[None]:
    """Verify graphs from here on; those that a call has written may hold no `grad` nodes any more."""
    construct, write_call = Graph.__init__, compiler.write_call

    def construct_verified(graph: Graph, *fields: Any, **named: Any) -> None:
        construct(graph, *fields, **named)
        with untraced():
            verify(graph, verified=sound)
        made["graphs"] += 1

    def write_verified(*asked: Any, **options: Any) -> compiler.Traced:
        traced = write_call(*asked, **options)
        with untraced():
            verify(traced.graph, expanded=True, verified=sound)
        return traced

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Graph, "__init__", construct_verified)
        patch.setattr(compiler, "write_call", write_verified)
        yield
