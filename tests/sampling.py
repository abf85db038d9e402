"""Samples of what tests are made of: `make test` runs these, and `make test-all` the rest as well.

A sample is the same in every run. It covers what a case stands for, as its op or its dtype: a case is in the sample
where no case before it stands for one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Final, TypeVar

import pytest

EXHAUSTIVE: Final = pytest.mark.exhaustive
T = TypeVar("T")
#: of a test that goes through many cases by itself: those of the sample, and all others
each_part: Final = pytest.mark.parametrize("part", ["sample", pytest.param("rest", marks=EXHAUSTIVE)])


def chosen(cases: Iterable[T], stands_for: Callable[[T], Iterable[Hashable]]) -> Iterator[tuple[T, bool]]:
    """Each case, and whether it is in the sample: whether none before it stands for something that it stands for."""
    seen: set[Hashable] = set()
    for case in cases:
        new = {*stands_for(case)} - seen
        seen |= new
        yield case, bool(new)


def sampled(cases: Iterable[Any], stands_for: Callable[[Any], Iterable[Hashable]]) -> list[Any]:
    """The cases, as parameters of a test; those beside the sample are marked. A tuple is several parameters."""
    return [
        pytest.param(*(case if type(case) is tuple else (case,)), marks=() if is_new else EXHAUSTIVE)
        for case, is_new in chosen(cases, stands_for)
    ]


def part_of(part: str, cases: Iterable[T], stands_for: Callable[[T], Iterable[Hashable]]) -> list[T]:
    """The cases of the sample, or all others."""
    return [case for case, is_new in chosen(cases, stands_for) if is_new == (part == "sample")]
