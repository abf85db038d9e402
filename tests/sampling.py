"""Selection of the cases of a parametrized test that `make test` runs, and grouping of cases into items.

`sampled` marks the cases beside a sample: `make test` runs the sample, `make test-all` runs all. A sample is the same
in every run. It has each aspect of the cases, such as an op or a dtype: a case is in the sample if it has an aspect
that no earlier case has.

Tests with several `parametrize` marks that multiply to many cases are sampled without being asked.

`together` makes an item of many cases, since an item costs more than most cases. A failure names its case.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import wraps
from itertools import product
from typing import Any, Final, TypeVar
from zlib import crc32

import pytest

EXHAUSTIVE: Final = pytest.mark.exhaustive
T = TypeVar("T")
#: parametrizes a test that goes through its cases by itself: by the sample, and by the rest
each_part: Final = pytest.mark.parametrize("part", ["sample", pytest.param("rest", marks=EXHAUSTIVE)])


def chosen(cases: Iterable[T], aspects: Callable[[T], Iterable[Hashable]]) -> Iterator[tuple[T, bool]]:
    """Yield each case, and whether it is in the sample."""
    seen: set[Hashable] = set()
    for case in cases:
        new = {*aspects(case)} - seen
        seen |= new
        yield case, bool(new)


def sampled(cases: Iterable[Any], aspects: Callable[[Any], Iterable[Hashable]]) -> list[Any]:
    """Return the cases as parameters of a test, those beside the sample with a mark. A tuple is several parameters."""
    return [
        pytest.param(*(case if type(case) is tuple else (case,)), marks=() if is_new else EXHAUSTIVE)
        for case, is_new in chosen(cases, aspects)
    ]


def part_of(part: str, cases: Iterable[T], aspects: Callable[[T], Iterable[Hashable]]) -> list[T]:
    """Return the cases of the sample, or all others."""
    return [case for case, is_new in chosen(cases, aspects) if is_new == (part == "sample")]


def sample_of_product(cases: Sequence[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """Return the cases of a test that `make test` runs: a sample if `parametrize` marks multiply to more than four.

    A case is given by the row that it has of each mark. Every row of each mark is in the sample; which rows go together
    is chosen by a hash, the same in every run.
    """
    if len(cases) <= 4:
        return {*cases}
    by_hash = sorted(cases, key=lambda case: crc32(repr(case).encode()))
    return {case for case, is_new in chosen(by_hash, enumerate) if is_new}


def together(test: Callable[..., None]) -> Callable[..., None]:
    """Run the cases of a parametrized test in one item for each op, or in one item if they have no op.

    Stands above the `parametrize` marks. Cases with marks of their own are items apart. An item ends at the first case
    that fails, and is skipped if all of its cases are. Each case has a `monkeypatch` of its own; cases share all other
    fixtures.
    """
    marks = list(getattr(test, "pytestmark", []))
    axes = [mark for mark in marks if mark.name == "parametrize"]
    groups: dict[tuple[str, tuple[str, ...]], tuple[list[pytest.Mark], list[dict[str, Any]]]] = {}
    rows = [*product(*(enumerate(_parameters(*mark.args[:2])) for mark in axes))]
    unmarked = [row for row in rows if not any(own for _, (_, own) in row)]
    sample = sample_of_product([tuple(i for i, _ in row) for row in unmarked])
    for row in rows:
        values = {name: value for _, (part, _) in row for name, value in part.items()}
        own = [mark for _, (_, part) in row for mark in part]
        op = next((name for value in values.values() if (name := _op_name(value))), "all")
        if not own and op == "all" and tuple(i for i, _ in row) not in sample:
            own = [pytest.mark.slow.mark]
        groups.setdefault((op, tuple(mark.name for mark in own)), (own, []))[1].append(values)
    names = {name for mark in axes for name in _names(mark.args[0])}
    signature = inspect.signature(test)
    patches = "monkeypatch" in signature.parameters

    @wraps(test)
    def run(*self: Any, cases: list[dict[str, Any]], **fixtures: Any) -> None:
        skipped: list[str] = []
        for case in cases:
            try:
                with pytest.MonkeyPatch.context() as patch:
                    test(*self, **case, **fixtures, **({"monkeypatch": patch} if patches else {}))
            except pytest.skip.Exception as reason:
                skipped.append(str(reason))
            except BaseException as error:
                error.add_note("case: " + ", ".join(f"{name} = {value}" for name, value in case.items()))
                raise
        if len(skipped) == len(cases):
            pytest.skip(skipped[0])

    supplied = {*names, "monkeypatch"}
    fixtures = [parameter for name, parameter in signature.parameters.items() if name not in supplied]
    added = inspect.Parameter("cases", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__signature__ = signature.replace(parameters=[*fixtures, added])  # type: ignore[attr-defined]
    run.pytestmark = [mark for mark in marks if mark not in axes]  # type: ignore[attr-defined]
    items = [pytest.param(cases, id="-".join((op, *kinds)), marks=own) for (op, kinds), (own, cases) in groups.items()]
    return pytest.mark.parametrize("cases", items)(run)


def _names(argument: str | tuple[str, ...]) -> list[str]:
    return [name.strip() for name in argument.split(",")] if isinstance(argument, str) else list(argument)


def _parameters(argument: str | tuple[str, ...], rows: Iterable[Any]) -> list[tuple[dict[str, Any], list[pytest.Mark]]]:
    """Return the values of each row of a `parametrize` mark by name, and the row's own marks."""
    names, parameters = _names(argument), []
    for row in rows:
        if isinstance(row, type(pytest.param())):
            values, marks = row.values, [getattr(mark, "mark", mark) for mark in row.marks]
        else:
            values, marks = (row,) if len(names) == 1 else row, []
        parameters.append((dict(zip(names, values, strict=True)), marks))
    return parameters


def _op_name(value: Any) -> str:
    """Return the name of an op, or of a case's op; empty if the value has none."""
    name = getattr(getattr(value, "op", value), "name", "")
    return name if isinstance(name, str) and hasattr(getattr(value, "op", value), "infer") else ""
