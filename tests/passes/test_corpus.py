"""Passes change no result and add no nodes, on every graph of the tests; and the page has the numbers of nodes."""

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
#: the family whose graphs depend on the version of Hypothesis
DRAWN = "random programs"


@cache
def compared(family: str) -> list[Compared]:
    """Compare every question of a family with all passes on, and with two more choices in rotation."""
    return [compare(question, sample(number)) for number, question in enumerate(FAMILIES[family]())]


@pytest.mark.parametrize("family", FAMILIES)
def test_passes_change_no_result(family: str) -> None:
    differing = [
        f"{c.question.name}, {choice}: {distance}"
        for c in compared(family)
        for choice, distance in c.differences.items()
        if not distance <= EXACT
    ]
    assert not differing


@pytest.mark.parametrize("family", FAMILIES)
def test_passes_add_no_nodes(family: str) -> None:
    grown = [
        f"{c.question.name}, {choice}: {nodes} of {c.before}"
        for c in compared(family)
        for choice, nodes in c.nodes.items()
        if nodes > c.before
    ]
    assert not grown
    assert sum(c.after for c in compared(family)) < sum(c.before for c in compared(family))


@pytest.mark.parametrize("family", FAMILIES)
def test_page_has_the_node_counts_of_the_family(family: str) -> None:
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    (row,) = [cell_row for cell_row in rows if cell_row[0] == family]
    comparisons, columns = compared(family), 2 if family == DRAWN else 5
    assert row[:columns] == cells(family, comparisons)[:columns], "run `make docs`"


def test_code_on_the_page_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {"graph": PRODUCT}
    exec(code, names)
    assert [timing.name for timing in names["timings"]] == ["dce", "fold", "cse", "dce"]
    assert len(names["graph"].nodes) == 3


def test_page_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="has no place for the table"):
        written("# Passes\n", [])


# ---------------------------------------------------------------- the comparison itself


def wrong(node: Node, operands: Sequence[Value]) -> Value | None:
    """Rewrite x · 1 as 1, which is wrong."""
    return next((x for x in operands if x.node.op.name == "full" and x.type == node.type), None)


def changed(graph: Graph, x: float) -> float:
    """The largest difference that the passes make to the graph's results at x."""
    question = Question("", graph, {0: np.full(2, x)})
    return max(compare(question).differences.values())


PRODUCT = parse_graph(
    '%0 = parameter {"feed": 0} : float64[2]\n'
    '%1 = full {"shape": [2], "fill": 1.0, "dtype": "float64"} : float64[2]\n'
    "%2 = mul(%0, %1) : float64[2]\n"
    "return %2",
    registry(),
)


def test_wrong_rule_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_difference_of_results(found: list[float], expected: list[float], apart: float) -> None:
    assert difference([np.array(found)], [np.array(expected)]) == pytest.approx(apart)


def test_each_pass_is_enabled_alone_and_disabled_alone() -> None:
    names = ("dce", "fold", "simplify", "cse")
    assert SWITCHED.keys() == {"all", *(f"only {name}" for name in names), *(f"all but {name}" for name in names)}
    tried = {choice: {apply.__name__ for apply in passes} for choice, passes in SWITCHED.items()}
    assert all(tried[f"only {name}"] == {name} for name in names)
    assert all(tried[f"all but {name}"] == set(names) - {name} for name in names)
    assert {choice for number in range(len(names)) for choice in sample(number)} == SWITCHED.keys()
