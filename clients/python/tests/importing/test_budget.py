"""An import uses no more nodes, steps and bytes than its limits allow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradserve_client as gs
from gradserve_client.importing import Budget, ImportLimits, ImportRefused, SourceGraph


def budget(**limits: int) -> Budget:
    return Budget(ImportLimits(**limits), "the model 'm'")


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, None])
def test_limit_must_be_a_positive_integer(wrong: Any) -> None:
    with pytest.raises(gs.InputError, match="the limit on steps must be a positive integer, not"):
        ImportLimits(steps=wrong)


def test_refusal_names_node_limit_and_option() -> None:
    used = budget(steps=3)
    used.locate("Loop", lambda: "'decode'")
    used.add_steps(3)
    with pytest.raises(ImportRefused) as caught:
        used.add_steps()
    assert str(caught.value) == (
        "cannot import the model 'm' because of one obstacle:\n"
        "  Loop (at 'decode'): the import would exceed its limit of 3 steps; "
        "raise it with limits=ImportLimits(steps=...), or --limit-steps, if you trust the model"
    )


def test_temporary_bytes_are_released() -> None:
    used = budget(bytes=10)
    with used.temporary():
        used.hold(8)
    used.hold(8)
    used.require(2)
    with pytest.raises(ImportRefused, match="its limit of 10 bytes"):
        used.require(3)


def test_nodes_and_constants_of_functions_count() -> None:
    used = budget(nodes=4, bytes=16)
    graph = SourceGraph(budget=used)
    graph.constant(np.ones(2))
    graph.function(lambda inner: inner.input().neg())
    assert (used.nodes, used.bytes) == (3, 16)
    with pytest.raises(ImportRefused, match="its limit of 16 bytes"):
        graph.constant(np.ones(1))
    with pytest.raises(ImportRefused, match="its limit of 4 nodes"):
        graph.input()


def test_subgraph_is_not_charged() -> None:
    used = budget(nodes=2)
    graph = SourceGraph(budget=used)
    output = graph.input().neg()
    assert len(graph.subgraph([output]).graph) == 2
    assert used.nodes == 2
