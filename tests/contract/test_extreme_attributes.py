"""Integer attributes of any size: interpreted exactly or rejected, without overflow of machine words."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest

from tests.conftest import ROOT
from tests.contract.extremes import NUMBERS, extremes, extremes_in, ops_with_integer_attributes, stand_in
from tests.sampling import each_part

#: number of processes that share the ops
_PROCESSES: Final = 4
_LONGEST: Final = 600  # seconds


def _process_output(first: int, part: str, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the output lines of a process that tries extremes, then its exit status."""
    command = [sys.executable, "-m", "tests.contract.extremes", str(first), part, *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_LONGEST, check=False)
    yield from map(json.loads, done.stdout.splitlines())
    yield {"ended": done.returncode, "said": done.stderr[-2000:]}


def failures(part: str, names: Sequence[str]) -> Iterator[str]:
    """Yield the failures of the ops. If a case ends its process, report it and continue after it in a new process."""
    first, begun = 0, ""
    while True:
        for line in _process_output(first, part, names):
            if "begun" in line:
                first, begun = line["number"] + 1, line["begun"]
            yield from (f"{begun}: {each}" for each in line.get("wrong", ()))
        if not line["ended"]:
            return
        yield f"{begun} ended its process with {line['ended']}. {line['said']}"
        if line["ended"] > 0:  # an exception, which a new process would raise again
            return


@pytest.mark.slow
@pytest.mark.parametrize("first", range(_PROCESSES))
@each_part
def test_extreme_integers_match_across_backends(part: str, first: int) -> None:
    pytest.importorskip("llvmlite")
    assert not list(failures(part, ops_with_integer_attributes()[first::_PROCESSES]))


def test_stand_in_is_small_and_preserves_remainders() -> None:
    for number in NUMBERS:
        assert abs(stand_in(number)) < 2**20
        assert all((number - stand_in(number)) % extent == 0 for extent in range(1, 11))
    assert stand_in(2**62) == 2 * stand_in(2**61) == stand_in(2**63 - 1) // 2 + 1


def test_extremes_cover_every_integer_attribute() -> None:
    for name in ops_with_integer_attributes():
        changed = {(place, entry) for each in extremes_in("sample", [name]) for place, entry, _ in each.numbers}
        op = next(each.case.op for each in extremes([name]))
        assert {place for place, _ in changed} == {n for n, a in op.attrs.items() if a.kind in ("int", "ints")}
