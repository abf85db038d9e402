"""Full disks: a commit is refused completely, earlier state stays, and freed space is used."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from service.store.journal import Journal, StateFull
from service.store.object_journal import Tidiness
from service.store.places import open_state
from tests.service.store.support import LAZY, ended, journal, put, reopened, tensor, values

SIZE = 2 << 20
#: elements of a tensor that takes a fifth of the disk
FIFTH = SIZE // 5 // 8


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes, in memory."""
    place = tmp_path / "disk"
    place.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(options, capture_output=True, check=False).returncode != 0:
        pytest.skip("nothing can be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_full_disk_refuses_commits_and_keeps_the_state(small_disk: Path) -> None:
    with closing(journal(small_disk)) as opened:
        opened.load()
        written = fill(opened)
        before = dict(written)
        for _ in range(5):
            with pytest.raises(StateFull, match=f"the state folder {small_disk} is full"):
                opened.commit(put(tensor("t0", 99, 2 * FIFTH), tensor("small", 99)))
        assert list((small_disk / "unfinished").iterdir()) == []
        opened.commit(put(ended("t1")))
        del before["t1"]
    assert values(reopened(small_disk)) == before


def fill(opened: Journal) -> dict[str, float]:
    """Write tensors until the disk is full, and return them."""
    written: dict[str, float] = {}
    for number in range(10):
        try:
            opened.commit(put(tensor(f"t{number}", number, FIFTH)))
        except StateFull:
            break
        written[f"t{number}"] = number
    assert 3 <= len(written) < 10
    return written


def write_until_full(file: Path) -> None:
    with file.open("wb", buffering=0) as ballast:
        while ballast.write(bytes(4096)):
            pass


def test_dead_values_are_deleted_to_make_room(small_disk: Path) -> None:
    """Without regular tidying, old values of one tensor fill the disk repeatedly."""
    with closing(journal(small_disk, LAZY)) as opened:
        opened.load()
        for value in range(30):
            opened.commit(put(tensor("w", value, FIFTH)))
    assert values(reopened(small_disk)) == {"w": 29}


def test_rewriting_one_tensor_never_fills_the_disk(small_disk: Path) -> None:
    with closing(journal(small_disk, Tidiness())) as opened:
        opened.load()
        for value in range(300):
            opened.commit(put(tensor("w", value, FIFTH)))
    assert values(reopened(small_disk)) == {"w": 299}


def test_server_starts_on_a_full_disk(small_disk: Path) -> None:
    with closing(journal(small_disk)) as opened:
        opened.load()
        written = fill(opened)
    with pytest.raises(OSError, match="No space left"):
        write_until_full(small_disk / "ballast")
    with closing(open_state(str(small_disk))) as again:
        assert values(again.load()) == written
        with pytest.raises(StateFull):
            again.commit(put(tensor("new", 1, 1000)))
        (small_disk / "ballast").unlink()
        again.commit(put(tensor("new", 1, 1000)))
