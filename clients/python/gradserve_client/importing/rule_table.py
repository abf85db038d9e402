"""A table with one rule for each op of another system."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

R = TypeVar("R")


@dataclass(frozen=True)
class Rule(Generic[R]):
    """The function `translate` that expresses an op. `since` is the first version of the op that it is right for."""

    op: str
    translate: R
    since: int = 1


class RuleTable(Generic[R]):
    """The rules of an importer by op name. Each op has one rule.

    @RULES("Add", since=7)
    def add(call): ...
    """

    def __init__(self) -> None:
        self._rules: dict[str, Rule[R]] = {}

    def __call__(self, *ops: str, since: int = 1) -> Callable[[R], R]:
        """Return a decorator that makes a function the rule of these ops. Raises ValueError for an op with a rule."""

        def put(function: R) -> R:
            for op in ops:
                self.put(op, function, since)
            return function

        return put

    def put(self, op: str, translate: R, since: int = 1) -> None:
        """Add the rule of an op. Raises ValueError if the op has a rule."""
        if op in self._rules:
            raise ValueError(f"{op} already has a rule")
        self._rules[op] = Rule(op, translate, since)

    def find(self, op: str) -> Rule[R] | None:
        """Return the rule of an op, or None."""
        return self._rules.get(op)

    def __len__(self) -> int:
        return len(self._rules)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._rules))
