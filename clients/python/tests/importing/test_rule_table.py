"""A table with one rule for each op."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gradserve_client.importing import RuleTable


def test_rule_is_found_under_its_names() -> None:
    rules: RuleTable[Callable[[int], int]] = RuleTable()

    @rules("Twice", "Double", since=7)
    def twice(x: int) -> int:
        return 2 * x

    rule = rules.find("Double")
    assert rule is not None
    assert (rule.translate(4), rule.since, rule.op) == (8, 7, "Double")
    assert rules.find("Thrice") is None
    assert ([*rules], len(rules)) == (["Double", "Twice"], 2)


def test_second_rule_for_an_op_is_refused() -> None:
    rules: RuleTable[int] = RuleTable()
    rules.put("Add", 1)
    with pytest.raises(ValueError, match="Add already has a rule"):
        rules.put("Add", 2)
