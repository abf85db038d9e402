"""A rule of simplification, declared by the op whose nodes it rewrites."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

#: of a Node and Values, which ops do not know: they are written in terms of ops
Rewriting = Callable[[Any, Sequence[Any]], Any]


@dataclass(frozen=True, eq=False, slots=True)
class RewriteRule:
    """`find(node, operands)`: what a node on these operands comes down to, of the same value and type; or None."""

    find: Rewriting
    #: the ops of which an operand must be one for it to find anything; None where it is to be tried always
    needs: frozenset[str] | None = None
    #: one that is known to be a number everywhere will do as well
    needs_number: bool = False
    #: the operand that nobody else may read, since nothing would be saved then
    alone: int | None = None
    #: whether an output may be rewritten, too; not where it would no longer lie densely, and be copied for it
    of_outputs: bool = True


def rewrite(
    *,
    needs: Sequence[str] | None = None,
    needs_number: bool = False,
    alone: int | None = None,
    of_outputs: bool = True,
) -> Callable[[Rewriting], RewriteRule]:
    """A function made a rule; see `RewriteRule`."""
    return lambda find: RewriteRule(
        find, None if needs is None else frozenset(needs), needs_number, alone=alone, of_outputs=of_outputs
    )
