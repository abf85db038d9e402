"""Passes change no result and write no more nodes, on every graph that the tests have; and the page says how many."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from engine import Graph, Value
from engine.ir.graph import Node
from engine.ir.op import RewriteRule
from engine.ir.text import parse_graph
from engine.ops import registry
from scripts.passes_table import PAGE, cells, written
from tests.passes.compare import SWITCHED, Compared, compare, difference, sample
from tests.passes.corpus import FAMILIES
from tests.passes.questions import Question

pytestmark = pytest.mark.slow

EXACT = 1e-12
#: whose graphs another version of Hypothesis draws differently
DRAWN = "random programs"


@cache
def compared(family: str) -> list[Compared]:
    """Every question of a family: with all switches on, and with two more choices of them, in turn."""
    return [compare(question, sample(number)) for number, question in enumerate(FAMILIES[family]())]


@pytest.mark.parametrize("family", FAMILIES)
def test_no_switch_changes_a_result(family: str) -> None:
    apart = [
        f"{c.question.name}, {choice}: {found}"
        for c in compared(family)
        for choice, found in c.differences.items()
        if not found <= EXACT
    ]
    assert not apart


@pytest.mark.parametrize("family", FAMILIES)
def test_no_switch_leaves_more_nodes(family: str) -> None:
    grown = [
        f"{c.question.name}, {choice}: {nodes} of {c.before}"
        for c in compared(family)
        for choice, nodes in c.nodes.items()
        if nodes > c.before
    ]
    assert not grown
    assert sum(c.after for c in compared(family)) < sum(c.before for c in compared(family))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_page_has_the_nodes_of_the_family(family: str) -> None:
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    (shown,) = [row for row in rows if row[0] == family]
    found, counted = compared(family), 2 if family == DRAWN else 5
    assert shown[:counted] == cells(family, found)[:counted], "run `make docs`"


def test_the_code_of_the_page_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {"graph": PRODUCT}
    exec(code, names)
    assert [timing.name for timing in names["timings"]] == ["dce", "fold", "cse", "dce"]
    assert len(names["graph"].nodes) == 3


def test_a_page_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="has no place for the table"):
        written("# Passes\n", [])


# ---------------------------------------------------------------- the comparison itself


def wrong(node: Node, operands: Sequence[Value]) -> Value | None:
    """x · 1 = 1."""
    return next((x for x in operands if x.node.op.name == "full" and x.type == node.type), None)


def changed(graph: Graph, x: float) -> float:
    """How far a mistaken rule moves the graph's results at x."""
    question = Question("", graph, {0: np.full(2, x)})
    return max(compare(question).differences.values())


PRODUCT = parse_graph(
    '%0 = parameter {"feed": 0} : float64[2]\n'
    '%1 = full {"shape": [2], "fill": 1.0, "dtype": "float64"} : float64[2]\n'
    "%2 = mul(%0, %1) : float64[2]\n"
    "return %2",
    registry(),
)


def test_a_mistaken_rule_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert changed(PRODUCT, 3.0) == 0
    monkeypatch.setattr(type(registry().ops["mul"]), "rewrites", (RewriteRule(wrong),))
    assert changed(PRODUCT, 3.0) > EXACT
    assert changed(PRODUCT, np.nan) == np.inf
    assert changed(PRODUCT, 1 + 1e-11) > EXACT


@pytest.mark.parametrize(
    ("found", "expected", "apart"),
    [
        ([1.0, np.nan, np.inf], [1.0, np.nan, np.inf], 0),
        ([1.0, 2.0], [1.0, np.nan], np.inf),
        ([np.inf], [-np.inf], np.inf),
        ([1e300, 1.0], [1e300, 1.1], 0.1 / 1.1),
        ([1.0, 1e-20], [1.0, 0.0], 1e-17),
        ([0.0], [1e-20], 1),
        ([1], [2], np.inf),
    ],
)
def test_what_counts_as_apart(found: list[float], expected: list[float], apart: float) -> None:
    assert difference([np.array(found)], [np.array(expected)]) == pytest.approx(apart)


def test_each_pass_is_tried_alone_and_left_out_alone() -> None:
    names = ("dce", "fold", "simplify", "cse")
    assert SWITCHED.keys() == {"all", *(f"only {name}" for name in names), *(f"all but {name}" for name in names)}
    tried = {choice: {apply.__name__ for apply in passes} for choice, passes in SWITCHED.items()}
    assert all(tried[f"only {name}"] == {name} for name in names)
    assert all(tried[f"all but {name}"] == set(names) - {name} for name in names)
    assert {choice for number in range(len(names)) for choice in sample(number)} == SWITCHED.keys()
