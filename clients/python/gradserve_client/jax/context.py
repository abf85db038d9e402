"""The state of one import that rules read: its options, budget and remarks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from gradserve_client.importing import Budget, Note
from gradserve_client.jax.values import Scope, Value

#: what differentiates a function with a custom rule: its rule, or its body
CustomRules = Literal["keep", "body"]


class Context(ABC):
    """Options, budget and remarks of one import, and the translation of nested jaxprs.

    A rule reads it as `call.context`. `Translator` implements `walk`: it looks rules up, so rules cannot import it.
    """

    def __init__(self, budget: Budget, max_steps: int | None, unroll: bool, custom_rules: CustomRules) -> None:
        self.budget = budget
        self.max_steps = max_steps
        self.unroll = unroll
        self.custom_rules = custom_rules
        #: notes of rules, beside the counts of ops
        self.remarks: list[Note] = []

    def remark(self, note: Note) -> None:
        """Add a note. The same sentence about the same thing is one note with a count."""
        for i, other in enumerate(self.remarks):
            if (other.about, other.sentence) == (note.about, note.sentence):
                self.remarks[i] = replace(other, times=other.times + 1)
                return
        self.remarks.append(note)

    @abstractmethod
    def walk(self, closed: Any, operands: Sequence[Value], scope: Scope) -> list[Value]:
        """Translate a jaxpr on these operands into the graph of the scope, and return its results."""
