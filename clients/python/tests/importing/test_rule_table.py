"""One rule an op."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gradserve_client.importing import RuleTable


def test_a_rule_is_found_by_the_names_it_was_put_under() -> None:
    rules: RuleTable[Callable[[int], int]] = RuleTable()

    @rules("Twice", "Double", since=7)
    def twice(x: int) -> int:
        return 2 * x

    found = rules.find("Double")
    assert found is not None
    assert (found.translate(4), found.since, found.op) == (8, 7, "Double")
    assert rules.find("Thrice") is None
    assert ([*rules], len(rules)) == (["Double", "Twice"], 2)


def test_an_op_has_one_rule() -> None:
    rules: RuleTable[int] = RuleTable()
    rules.put("Add", 1)
    with pytest.raises(ValueError, match="Add has a rule already"):
        rules.put("Add", 2)
