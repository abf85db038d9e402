"""Calls in a row, one by one or as one call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.graph.op import KernelCall


def make_calls(calls: Iterable[KernelCall]) -> None:
    """Make them, in order."""
    for function, args in calls:
        function(*args)


def joined(calls: Sequence[KernelCall]) -> KernelCall:
    """One call that makes all of them."""
    return calls[0] if len(calls) == 1 else (make_calls, (tuple(calls),))
