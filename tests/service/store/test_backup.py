"""Backup and restore: of any place, while a server writes, and only of undamaged state."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest

from service.cli import main
from service.store import backup as module
from service.store.backup import backup, restore
from service.store.places import open_state
from tests.service.store.killing import check_state
from tests.service.store.support import EAGER, ended, graph, journal, model, put, reopened, tensor, value_of, values

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).parents[3]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with closing(journal(tmp_path / "state")) as opened:
        opened.load()
        opened.commit(put(tensor("a", 1), tensor("gone", 1), graphs=[graph("g", b"[1]")], models=[model("m")]))
        opened.commit(put(tensor("b", 2, 5000), ended("gone")))
    return tmp_path / "state"


def test_restored_state_equals_the_original(place: Path, tmp_path: Path) -> None:
    file, restored = tmp_path / "backup.tar", tmp_path / "there"
    assert backup(str(place), file) == 2
    assert file.stat().st_mode & 0o777 == 0o600
    assert restore(file, str(restored)) == 2
    assert reopened(restored) == reopened(place)
    assert values(reopened(restored)) == {"a": 1, "b": 2}
    assert [stored.name for stored in reopened(restored).models] == ["m"]


def test_backup_replaces_an_earlier_file(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "backup.tar"
    file.write_text("old")
    backup(str(place), file)
    with tarfile.open(file) as archive:
        assert archive.getnames() == ["FORMAT", f"commits/{1:020}", f"commits/{2:020}", "END"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup.tar", "state"]


def test_backup_does_not_follow_links(place: Path, tmp_path: Path) -> None:
    """Others who may write to the folder can neither redirect it by a link nor read it through an open file."""
    victim, held = tmp_path / "victim", tmp_path / "held"
    victim.write_text("mine")
    folder = tmp_path / "backups"
    folder.mkdir()
    (folder / "backup.tar.part").symlink_to(victim)
    backup(str(place), folder / "backup.tar")
    assert victim.read_text() == "mine"
    with (folder / "other.tar.part").open("w+b") as stream:
        backup(str(place), folder / "other.tar")
        assert stream.read() == b""
    assert (folder / "other.tar").stat().st_mode & 0o777 == 0o600
    assert not held.exists()


def test_failed_backup_leaves_no_files(place: Path, tmp_path: Path) -> None:
    (place / "commits" / f"{2:020}").write_bytes(b"torn")
    folder = tmp_path / "backups"
    folder.mkdir()
    with pytest.raises(RuntimeError, match="is damaged"):
        backup(str(place), folder / "backup.tar")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("sparse", [False, True])
def test_member_larger_than_the_archive_is_refused(tmp_path: Path, sparse: bool) -> None:
    """A file of a kilobyte may claim to contain 64 GB, as data or as a hole."""
    member = tarfile.TarInfo(f"commits/{1:020}")
    member.size = 64 << 30
    if sparse:
        member.size, member.pax_headers = 0, {"GNU.sparse.map": "0,0", "GNU.sparse.size": f"{64 << 30}"}
    file = tmp_path / "backup.tar"
    file.write_bytes(member.tobuf(tarfile.PAX_FORMAT) + bytes(1024))
    with pytest.raises(RuntimeError, match=f"{file} is not a backup of gradserve, or is damaged"):
        restore(file, str(tmp_path / "there"))


@pytest.mark.slow
def test_backup_while_a_server_writes(tmp_path: Path) -> None:
    """Each backup is a snapshot: it has all commits acknowledged before it began, and no partial ones."""
    command = [sys.executable, "-m", "tests.service.store.committing", str(tmp_path / "state"), "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        try:
            for number in range(8):
                acknowledged = int([writer.stdout.readline() for _ in range(40)][-1])
                backup(str(tmp_path / "state"), tmp_path / f"{number}.tar")
                restore(tmp_path / f"{number}.tar", str(tmp_path / f"{number}"))
                loaded = reopened(tmp_path / f"{number}")
                last = int(next(value_of(write) for write in loaded.tensors if write.name == "pair_a"))
                assert last >= acknowledged
                assert check_state(loaded, last)[1] == []
        finally:
            writer.kill()
    assert list((tmp_path / "state/holds").iterdir()) == []


def test_backup_fails_if_the_server_drops_its_hold(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from service.store.object_journal import drop_holds

    original = module._listed

    def full(objects: object, name: str) -> list[int]:
        listed = original(objects, name)  # type: ignore[arg-type]
        drop_holds(objects)  # type: ignore[arg-type]
        return listed

    monkeypatch.setattr(module, "_listed", full)
    with pytest.raises(RuntimeError, match="the server ran out of space during the backup"):
        backup(str(place), tmp_path / "backup.tar")
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_long_backup_renews_its_hold(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HOLD_SECONDS", 0.0)
    holds: list[str] = []
    original = module.put_hold
    monkeypatch.setattr(module, "put_hold", lambda objects, _: holds.append(original(objects, 100)) or holds[-1])
    backup(str(place), tmp_path / "backup.tar")
    assert len(holds) == 3
    assert list((place / "holds").iterdir()) == []


def test_damaged_state_is_not_backed_up(place: Path, tmp_path: Path) -> None:
    commit = place / "commits" / f"{2:020}"
    commit.write_bytes(commit.read_bytes()[:-1])
    with pytest.raises(RuntimeError, match=f"the state folder {place} is damaged: commits/{2:020} is truncated"):
        backup(str(place), tmp_path / "backup.tar")
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_truncated_backup_is_refused(place: Path, tmp_path: Path) -> None:
    file, restored = tmp_path / "backup.tar", tmp_path / "there"
    backup(str(place), file)
    whole = file.read_bytes()
    end = whole.index(b"END\0") + 513
    for length in (*range(0, end, 512), *range(1, end, 4999)):
        file.write_bytes(whole[:length])
        with pytest.raises(RuntimeError, match="backup"):
            restore(file, str(restored))
        assert not (restored / "FORMAT").exists()
        assert list((restored / "commits").iterdir()) == []


def test_backup_with_a_missing_commit_is_refused(place: Path, tmp_path: Path) -> None:
    backup(str(place), tmp_path / "backup.tar")
    with tarfile.open(tmp_path / "backup.tar") as whole, tarfile.open(tmp_path / "less.tar", "w") as less:
        for member in whole:
            if member.name != f"commits/{1:020}":
                less.addfile(member, whole.extractfile(member))
    with pytest.raises(RuntimeError, match="some of its commits are missing"):
        restore(tmp_path / "less.tar", str(tmp_path / "there"))


@pytest.mark.parametrize("name", ["../../etc/cron", "commits/../x", "/commits/1", "commits/7", "FORMAT2"])
def test_foreign_names_in_a_backup_are_refused(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / "backup.tar", "w") as archive:
        module._add(archive, name, b"x")
    with pytest.raises(RuntimeError, match="is not a backup of gradserve, or is damaged: unexpected member "):
        restore(tmp_path / "backup.tar", str(tmp_path / "there"))


def test_restore_needs_an_empty_place(place: Path, tmp_path: Path) -> None:
    backup(str(place), tmp_path / "backup.tar")
    with pytest.raises(RuntimeError, match="is not empty; restore to an empty place"):
        restore(tmp_path / "backup.tar", str(place))
    with closing(open_state(str(tmp_path / "other"))), pytest.raises(RuntimeError, match="is in use by another server"):
        restore(tmp_path / "backup.tar", str(tmp_path / "other"))
    with pytest.raises(RuntimeError, match="was not written by gradserve"):
        restore(tmp_path / "backup.tar", str(tmp_path))


def test_backup_of_an_empty_or_missing_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RuntimeError, match="is empty: there is nothing to back up"):
        backup(str(tmp_path / "empty"), tmp_path / "backup.tar")
    with pytest.raises(
        RuntimeError, match=f"cannot use the state folder {tmp_path / 'nowhere'}: No such file or directory"
    ):
        backup(str(tmp_path / "nowhere"), tmp_path / "backup.tar")
    assert not (tmp_path / "nowhere").exists()
    for of_memory in (lambda: backup("memory", tmp_path / "x"), lambda: restore(tmp_path / "x", "memory")):
        with pytest.raises(RuntimeError, match="memory"):
            of_memory()


def test_backup_and_restore_commands(place: Path, tmp_path: Path, capsys: Capture) -> None:
    file, restored = str(tmp_path / "backup.tar"), str(tmp_path / "there")
    main(["backup", file, "--state", str(place)])
    assert capsys.readouterr().out == f"backed up 2 commits from {place} to {file}\n"
    main(["restore", file, "--state", restored])
    assert capsys.readouterr().out == f"restored 2 commits from {file} to {restored}\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["backup", "file"], "state in memory cannot be backed up"),
        (["backup"], "the following arguments are required: file"),
        (["restore", "there/is/none.tar", "--state", "new"], "cannot restore there/is/none.tar to "),
        (["restore", "x", "--port", "1"], "there is no flag --port"),
    ],
)
def test_command_errors_are_one_line(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    line = capsys.readouterr().err
    assert told in line
    assert line.count("\n") == 1


def test_deletions_wait_for_a_running_backup(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listed objects stay until the end of the backup, even if they are replaced meanwhile."""
    listed, resume = Event(), Event()
    original = module._listed

    def slowly(objects: object, name: str) -> list[int]:
        numbers = original(objects, name)  # type: ignore[arg-type]
        listed.set()
        assert resume.wait(60)
        return numbers

    monkeypatch.setattr(module, "_listed", slowly)
    with closing(journal(place, EAGER)) as opened:
        opened.load()
        writing = Thread(target=backup, args=(str(place), tmp_path / "backup.tar"))
        writing.start()
        assert listed.wait(60)
        for value in range(20):
            opened.commit(put(tensor("a", value), tensor("b", value)))
        resume.set()
        writing.join()
    restore(tmp_path / "backup.tar", str(tmp_path / "there"))
    assert values(reopened(tmp_path / "there")) == {"a": 1, "b": 2}
