"""One rule an op: how each op of another system is said in ops of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

R = TypeVar("R")


@dataclass(frozen=True)
class Rule(Generic[R]):
    """How an op is said. `since` is the first version of the op, as its system counts, that the rule is right for."""

    op: str
    say: R
    since: int = 1


class RuleTable(Generic[R]):
    """The rules of an importer by the names of ops. Each op has one rule.

    @RULES("Add", since=7)
    def add(call): ...
    """

    def __init__(self) -> None:
        self._rules: dict[str, Rule[R]] = {}

    def __call__(self, *ops: str, since: int = 1) -> Callable[[R], R]:
        """Make what is decorated the rule of these ops. Raises ValueError for an op that has one."""

        def put(say: R) -> R:
            for op in ops:
                self.put(op, say, since)
            return say

        return put

    def put(self, op: str, say: R, since: int = 1) -> None:
        """Make this the rule of an op. Raises ValueError for an op that has one."""
        if op in self._rules:
            raise ValueError(f"{op} has a rule already")
        self._rules[op] = Rule(op, say, since)

    def find(self, op: str) -> Rule[R] | None:
        """The rule of an op, or None."""
        return self._rules.get(op)

    def __len__(self) -> int:
        return len(self._rules)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._rules))
