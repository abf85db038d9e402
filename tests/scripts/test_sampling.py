"""Cases that share an item are as independent as in items of their own, and samples of products have every value."""

from __future__ import annotations

from itertools import product

import pytest

from tests.sampling import EXHAUSTIVE, sample_of_product, together

PATCHED = {"value": 0}


@together
@pytest.mark.parametrize("number", [1, 2])
def test_each_case_has_its_own_patches(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PATCHED == {"value": 0}
    monkeypatch.setitem(PATCHED, "value", number)


def test_a_failure_names_its_case() -> None:
    @together
    @pytest.mark.parametrize("number", [1, 2])
    def is_one(number: int) -> None:
        assert number == 1

    with pytest.raises(AssertionError) as caught:
        is_one(cases=[{"number": 1}, {"number": 2}])
    assert caught.value.__notes__ == ["case: number = 2"]


def test_an_item_is_skipped_if_all_of_its_cases_are() -> None:
    @together
    @pytest.mark.parametrize("number", [1, 2])
    def is_skipped(number: int) -> None:
        if number == 1:
            pytest.skip("one")

    is_skipped(cases=[{"number": 1}, {"number": 2}])
    with pytest.raises(pytest.skip.Exception, match="one"):
        is_skipped(cases=[{"number": 1}])


@pytest.mark.parametrize(("first", "second", "largest"), [(3, 3, 5), (12, 5, 16), (20, 1, 20)])
def test_sample_of_a_product_has_every_value(first: int, second: int, largest: int) -> None:
    cases = [*product(range(first), range(second))]
    sample = sample_of_product(cases)
    assert ({a for a, _ in sample}, {b for _, b in sample}) == ({*range(first)}, {*range(second)})
    assert len(sample) <= largest


def test_few_cases_all_run() -> None:
    cases = [*product(range(2), range(2))]
    assert sample_of_product(cases) == {*cases}


def test_sample_is_of_the_unmarked_cases() -> None:
    """Otherwise a value could have a marked partner alone, and run in no test of `make test`."""

    @together
    @pytest.mark.parametrize("first", [0, pytest.param(1, marks=EXHAUSTIVE)])
    @pytest.mark.parametrize("second", range(9))
    def product_of_marks(first: int, second: int) -> None:
        raise NotImplementedError

    (mark,) = product_of_marks.pytestmark  # type: ignore[attr-defined]
    plain = [case for parameters in mark.args[1] if not parameters.marks for case in parameters.values[0]]
    assert {case["second"] for case in plain} == {*range(9)}
