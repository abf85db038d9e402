"""Whole numbers of any size as attributes: taken as what they mean, or refused, and never felt by a machine's word."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest

from tests.conftest import ROOT
from tests.contract.extremes import NUMBERS, attributed, extremes, extremes_in, stand_in
from tests.sampling import each_part

#: how many processes share the ops
_PROCESSES: Final = 4
_LONGEST: Final = 600  # seconds: far more than all of them take


def _lines(first: int, which: str, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """What a process that tries extremes says; the last of it is how it ended."""
    command = [sys.executable, "-m", "tests.contract.extremes", str(first), which, *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_LONGEST, check=False)
    yield from map(json.loads, done.stdout.splitlines())
    yield {"ended": done.returncode, "said": done.stderr[-2000:]}


def wrongs(which: str, names: Sequence[str]) -> Iterator[str]:
    """What is wrong with ops of these names. What ends a process is named, and a next one goes on behind it."""
    first, begun = 0, ""
    while True:
        for line in _lines(first, which, names):
            if "begun" in line:
                first, begun = line["number"] + 1, line["begun"]
            yield from (f"{begun}: {each}" for each in line.get("wrong", ()))
        if not line["ended"]:
            return
        yield f"{begun} ended its process with {line['ended']}. {line['said']}"
        if line["ended"] > 0:  # an exception, which the next one would raise as well
            return


@pytest.mark.slow
@pytest.mark.parametrize("first", range(_PROCESSES))
@each_part
def test_every_number_is_refused_or_means_the_same_to_all_that_run_it(part: str, first: int) -> None:
    pytest.importorskip("llvmlite")
    assert not list(wrongs(part, attributed()[first::_PROCESSES]))


def test_what_stands_in_for_a_number_is_small_and_leaves_the_same_remainders() -> None:
    for number in NUMBERS:
        assert abs(stand_in(number)) < 2**20
        assert all((number - stand_in(number)) % extent == 0 for extent in range(1, 11))
    assert stand_in(2**62) == 2 * stand_in(2**61) == stand_in(2**63 - 1) // 2 + 1


def test_every_whole_number_of_every_op_is_tried() -> None:
    for name in attributed():
        changed = {(place, entry) for each in extremes_in("sample", [name]) for place, entry, _ in each.numbers}
        op = next(each.case.op for each in extremes([name]))
        assert {place for place, _ in changed} == {n for n, a in op.attrs.items() if a.kind in ("int", "ints")}
