"""Opening the place of a setting: created, reopened, or refused with one sentence of advice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from service.core.settings import Settings
from service.store.journal import Loaded, MemoryJournal
from service.store.places import open_state
from tests.service.store.support import names, put, tensor, values

ROOT = Path(__file__).parents[3]


def error_message(place: str) -> str:
    """Return the message with which opening or loading a place is refused."""
    with pytest.raises(RuntimeError) as refused:
        load_state(place)
    message = str(refused.value)
    assert "\n" not in message
    return message


def load_state(place: str) -> Loaded:
    with closing(open_state(place)) as opened:
        return opened.load()


def write_state(place: Path, count: int = 3) -> Path:
    """Write a folder with the tensors t1, t2 and so on, one per commit."""
    opened = open_state(str(place))
    opened.load()
    for number in range(1, count + 1):
        opened.commit(put(tensor(f"t{number}", number)))
    opened.close()
    return place


def commit_file(place: Path, number: int) -> Path:
    return place / "commits" / f"{number:020}"


@pytest.mark.parametrize("place", [None, "memory"])
def test_state_in_memory(place: str | None) -> None:
    assert isinstance(open_state(place), MemoryJournal)


def test_folder_is_created_and_reopened(tmp_path: Path) -> None:
    place = str(tmp_path / "a" / "b")
    opened = open_state(place)
    assert opened.load() == Loaded()
    opened.commit(put(tensor("w", 1)))
    opened.close()
    assert (tmp_path / "a/b/FORMAT").read_text() == "gradserve state 1\n"
    again = open_state(place)
    assert values(again.load()) == {"w": 1}
    again.close()


def test_lost_found_counts_as_empty(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    open_state(str(tmp_path)).close()
    assert (tmp_path / "FORMAT").exists()


def test_interrupted_creation_is_repeated(tmp_path: Path) -> None:
    open_state(str(tmp_path)).close()
    (tmp_path / "FORMAT").unlink()
    open_state(str(tmp_path)).close()
    assert (tmp_path / "FORMAT").exists()


def test_second_server_is_refused(tmp_path: Path) -> None:
    opened = open_state(str(tmp_path))
    message = error_message(str(tmp_path))
    assert message == f"the state folder {tmp_path} is in use by another server; set another --state for this server"
    opened.load()
    opened.commit(put(tensor("w", 1)))
    opened.close()
    assert names(open_state(str(tmp_path)).load().tensors) == ["w"]


def test_foreign_folder_is_refused_and_unchanged(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "draft.txt").write_text("mine")
    message = error_message(str(tmp_path))
    assert message == (
        f"the state folder {tmp_path} was not written by gradserve: it has 'thesis/draft.txt' but no FORMAT; "
        "set --state to an empty or another place"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["thesis"]


def test_unknown_format_is_refused(tmp_path: Path) -> None:
    write_state(tmp_path)
    (tmp_path / "FORMAT").write_text("gradserve state 3\n")
    assert error_message(str(tmp_path)) == (
        f"the state folder {tmp_path} has the format 'gradserve state 3', "
        "but this version of gradserve only reads 'gradserve state 1' and 'gradserve state 2'"
    )


def test_file_instead_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    message = error_message(str(tmp_path / "file"))
    assert message == (
        f"cannot use the state folder {tmp_path / 'file'}: File exists; "
        "set another --state, or memory to store nothing on disk"
    )


@pytest.fixture(params=[".", "commits", "unfinished"])
def read_only(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder with state of which a part is read-only; root needs a mount for that."""
    place = write_state(tmp_path / "state")
    part = place / request.param
    if os.geteuid() == 0:
        if not mount("--bind", str(part), str(part)) or not mount("-o", "remount,bind,ro", str(part)):
            pytest.skip("nothing can be mounted here")
        yield place
        subprocess.run(["umount", str(part)], check=True)
    else:
        (part / "LOCK").unlink(missing_ok=True)
        part.chmod(0o500)
        yield place
        part.chmod(0o700)


def mount(*options: str) -> bool:
    return subprocess.run(["mount", *options], capture_output=True, check=False).returncode == 0


def test_read_only_folder_is_refused(read_only: Path) -> None:
    message = error_message(str(read_only))
    assert message.startswith(f"cannot use the state folder {read_only}: ")
    assert "Read-only file system" in message or "Permission denied" in message
    assert message.endswith("; set another --state, or memory to store nothing on disk")


@pytest.mark.parametrize("part", [".", "commits"])
@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_folder_writable_by_others_is_refused(tmp_path: Path, part: str, mode: int) -> None:
    place = write_state(tmp_path / "state")
    (place / part).chmod(mode)
    assert error_message(str(place)) == (
        f"cannot use the state folder {place}: other users can write to {(place / part)}; run chmod 700; "
        "set another --state, or memory to store nothing on disk"
    )


def test_symlinked_lock_is_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    (tmp_path / "state").mkdir(0o700)
    (tmp_path / "state" / "LOCK").symlink_to(victim)
    assert ": Too many levels of symbolic links" in error_message(str(tmp_path / "state"))
    assert not victim.exists()


@pytest.mark.parametrize("mask", [0o000, 0o277, 0o077])
def test_folders_are_private_with_any_umask(tmp_path: Path, mask: int) -> None:
    place = tmp_path / "a" / "state"
    before = os.umask(mask)
    try:
        write_state(place)
    finally:
        os.umask(before)
    for folder in (place.parent, place, place / "commits", place / "unfinished"):
        assert folder.stat().st_mode & 0o777 == 0o700


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def flip(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[:-2] + bytes([raw[-2] ^ 0x40]) + raw[-1:])


def flip_head(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[:100] + bytes([raw[100] ^ 0x01]) + raw[101:])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def foreign(path: Path) -> None:
    path.write_text("dear diary, " * 30)


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut, "is truncated"),
        (empty, "is truncated"),
        (flip, "is corrupt: the checksum of its tensor does not match"),
        (flip_head, "is corrupt: its checksum does not match"),
        (foreign, "is truncated, or was not written by gradserve"),
    ],
)
def test_damaged_commit_is_named(tmp_path: Path, number: int, damage: Callable[[Path], None], said: str) -> None:
    """This includes the last one: a file was complete when it got its name, so it may have been acknowledged."""
    damage(commit_file(write_state(tmp_path), number))
    assert error_message(str(tmp_path)) == (
        f"the state folder {tmp_path} is damaged: commits/{number:020} {said}; "
        "restore a backup, or move the damaged state elsewhere to start empty"
    )


def test_moving_a_damaged_commit_away_loses_only_that(tmp_path: Path) -> None:
    cut(commit_file(write_state(tmp_path / "state"), 2))
    commit_file(tmp_path / "state", 2).rename(tmp_path / "damaged")
    opened = open_state(str(tmp_path / "state"))
    assert values(opened.load()) == {"t1": 1, "t3": 3}
    opened.close()


def test_unfinished_commit_is_ignored(tmp_path: Path) -> None:
    write_state(tmp_path)
    torn = commit_file(tmp_path, 3).read_bytes()[:50]
    (tmp_path / "unfinished" / "0123456789abcdef").write_bytes(torn)
    opened = open_state(str(tmp_path))
    assert values(opened.load()) == {"t1": 1, "t2": 2, "t3": 3}
    assert list((tmp_path / "unfinished").iterdir()) == []
    opened.close()


def test_commit_under_another_name_is_refused(tmp_path: Path) -> None:
    write_state(tmp_path)
    commit_file(tmp_path, 2).rename(commit_file(tmp_path, 9))
    assert "contains commit 2" in error_message(str(tmp_path))


@pytest.mark.parametrize("name", ["notes.txt", "7", f"{7:020}.bak", f"{7:021}", "٠" * 20])
def test_foreign_file_among_the_commits_is_refused(tmp_path: Path, name: str) -> None:
    write_state(tmp_path)
    (tmp_path / "commits" / name).write_text("x")
    assert error_message(str(tmp_path)) == (
        f"the state folder {tmp_path} has {'commits/' + name!r}, which is not a commit of gradserve; move it elsewhere"
    )


def test_foreign_folder_among_the_commits_is_refused(tmp_path: Path) -> None:
    (write_state(tmp_path) / "commits" / f"{7:020}").mkdir()
    message = error_message(str(tmp_path))
    assert message == f"cannot read the state folder {tmp_path}: commits/{7:020}: it is not a regular file"


@pytest.mark.parametrize(
    "place", ["http://host/x", "s3://", "s3:///folder", "ftp://a/b", "s3://key:secret@bucket/x", "s3://b?x=1"]
)
def test_unsupported_url_is_refused(place: str) -> None:
    message = error_message(place)
    assert message == (
        "--state is not a supported URL; use s3://BUCKET/FOLDER, gs://BUCKET/FOLDER or az://CONTAINER/FOLDER"
    )


def test_missing_obstore_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    assert error_message("s3://bucket/x").startswith("state in s3:// needs obstore: pip install 'gradserve[s3]' (")


def test_default_and_values_of_the_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GRADSERVE_STATE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert Settings().state == str(tmp_path / ".local/state/gradserve")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    assert Settings().state == str(tmp_path / "elsewhere/gradserve")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    assert Settings().state == "memory"
    monkeypatch.chdir(tmp_path)
    assert Settings(state="here").state == str(tmp_path / "here")
    assert Settings(state="~/x").state == str(tmp_path / "nowhere/x")
    assert Settings(state="s3://bucket/folder").state == "s3://bucket/folder"
    assert Settings(state="").state == Settings(state="memory").state == "memory"


@pytest.mark.slow
def test_folder_does_not_import_obstore(tmp_path: Path) -> None:
    program = "import sys; from service.store.places import open_state; open_state(sys.argv[1]).close()\n"
    program += "assert 'obstore' not in sys.modules"
    run = subprocess.run([sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, capture_output=True, check=False)
    assert run.returncode == 0, run.stderr
