"""State in a local folder: system calls, locks, unfinished files, and file systems without some features."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from service.store.folder import Folder
from service.store.objects import Exists

ROOT = Path(__file__).parents[3]
ONE_COMMIT = """
import os, sys
from pathlib import Path
from tests.service.store.support import journal, put, tensor
opened = journal(Path(sys.argv[1]))
opened.load()
opened.commit(put(tensor("before", 1)))
os.write(1, b"begin\\n")
opened.commit(put(tensor("w", 2, 300)))
os.write(1, b"acknowledged\\n")
"""
CALLS = (
    "openat,write,writev,pwrite64,pwritev,fsync,fdatasync,link,linkat,rename,renameat,renameat2,unlink,unlinkat,close"
)


def trace_commit(folder: Path, output: Path) -> list[str]:
    """Trace the system calls between the start of a commit and its acknowledgement, with paths of descriptors."""
    command = ["strace", "-f", "-y", "-s", "16", "-e", f"trace={CALLS}", "-o", str(output)]
    run = subprocess.run(
        [*command, sys.executable, "-c", ONE_COMMIT, str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if "ptrace" in run.stderr.lower():
        pytest.skip("this system does not let a process be traced")
    assert run.stdout.splitlines() == ["begin", "acknowledged"], run.stderr
    lines = [line.split(maxsplit=1)[1] for line in output.read_text("utf-8").splitlines()]
    begin = next(number for number, line in enumerate(lines) if '"begin' in line)
    end = next(number for number, line in enumerate(lines) if '"acknowledged' in line)
    return [line for line in lines[begin + 1 : end] if str(folder) in line]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace shows the system calls")
def test_system_calls_of_a_commit(tmp_path: Path) -> None:
    """A commit is acknowledged after the file is written and synced, linked to its name, and the folder synced."""
    calls = trace_commit(tmp_path / "state", tmp_path / "trace")
    unfinished = r"\S*/state/unfinished"
    part = rf"{unfinished}/[0-9a-f]{{16}}"
    expected = [
        rf'openat\(\d+<{unfinished}>, "[0-9a-f]{{16}}", O_WRONLY\|O_CREAT\|O_EXCL.* = \d+<{part}>',
        rf"writev\(\d+<{part}>",
        rf"fsync\(\d+<{part}>\) += 0",
        rf"close\(\d+<{part}>\) += 0",
        rf'linkat\(\d+<{unfinished}>, "[0-9a-f]{{16}}", \d+<\S*/state/commits>, "[0-9]{{20}}", 0\) += 0',
        rf'unlinkat\(\d+<{unfinished}>, "[0-9a-f]{{16}}", 0\) += 0',
        r"fsync\(\d+<\S*/state/commits>\) += 0",
    ]
    assert len(calls) == len(expected), calls
    for call, pattern in zip(calls, expected, strict=True):
        assert re.match(pattern, call), (call, pattern)


def test_second_lock_is_refused(tmp_path: Path) -> None:
    first, second = Folder(tmp_path), Folder(tmp_path)
    first.lock()
    assert first.exclusive
    with pytest.raises(BlockingIOError):
        second.lock()
    assert not second.exclusive
    first.close()
    second.lock()
    second.close()


def test_lock_ends_with_its_process(tmp_path: Path) -> None:
    program = "import sys, time; from pathlib import Path; from service.store.folder import Folder\n"
    program += "folder = Folder(Path(sys.argv[1])); folder.lock(); print('locked', flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, cwd=ROOT) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        folder = Folder(tmp_path)
        with pytest.raises(BlockingIOError):
            folder.lock()
        holder.kill()
        holder.wait()
        folder.lock()
        folder.close()


def test_unfinished_files_are_removed(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.put_new("commits/1", [b"whole"])
    (tmp_path / "unfinished" / "0123456789abcdef").write_bytes(b"ha")
    folder.lock()
    folder.clean()
    assert list((tmp_path / "unfinished").iterdir()) == []
    assert folder.get("commits/1") == b"whole"
    folder.close()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace shows the system calls")
def test_new_folders_are_synced(tmp_path: Path) -> None:
    """If a power loss removes the entry of a folder, all of its files are lost."""
    program = "import sys; from service.store.places import open_state; open_state(sys.argv[1])"
    command = ["strace", "-y", "-e", "trace=mkdir,mkdirat,fsync", "-o", str(tmp_path / "trace")]
    place = tmp_path / "a" / "b"
    subprocess.run([*command, sys.executable, "-c", program, str(place)], cwd=ROOT, capture_output=True, check=False)
    if not place.exists():
        pytest.skip("this system does not let a process be traced")
    calls = [line for line in (tmp_path / "trace").read_text("utf-8").splitlines() if str(tmp_path) in line]
    for folder, parent in ((place.parent, tmp_path), (place, place.parent)):
        begin = next(number for number, call in enumerate(calls) if "mkdir" in call and f'"{folder}"' in call)
        assert re.match(rf"fsync\(\d+<{parent}>\) += 0", calls[begin + 1])
    for name in ("unfinished", "commits"):
        begin = next(number for number, call in enumerate(calls) if "mkdirat" in call and f'"{name}"' in call)
        assert re.match(rf"fsync\(\d+<{place}>\) += 0", calls[begin + 1])
    assert any(re.match(rf"fsync\(\d+<{place}/commits>\) += 0", call) for call in calls)


def test_files_are_readable_only_by_their_owner(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "new" / "state")
    folder.put_new("commits/1", [b"whole"])
    assert (tmp_path / "new" / "state").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "new" / "state/commits/1").stat().st_mode & 0o777 == 0o600
    folder.close()


RACE = """
import sys
from pathlib import Path
from service.store.folder import Folder
from service.store.objects import Exists
folder = Folder(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
won = []
for number in range(100):
    try:
        folder.put_new(f"commits/{number}", [sys.argv[2].encode()])
        won.append(number)
    except Exists:
        pass
print(*won)
"""


def test_only_one_of_racing_processes_wins(tmp_path: Path) -> None:
    """Without a lock, as on some file systems, each name is created by exactly one process."""
    command = [sys.executable, "-c", RACE, str(tmp_path)]
    racers = [
        subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        for n in range(3)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    won = [set(map(int, racer.communicate()[0].split())) for racer in racers]
    assert set.union(*won) == set(range(100))
    assert sum(map(len, won)) == 100
    folder = Folder(tmp_path)
    assert all(folder.get(f"commits/{name}") == b"%d" % number for number, names in enumerate(won) for name in names)
    folder.close()


def test_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refused)
    folder = Folder(tmp_path)
    folder.put_new("commits/1", [b"first"])
    with pytest.raises(Exists):
        folder.put_new("commits/1", [b"second"])
    assert folder.get("commits/1") == b"first"
    assert list((tmp_path / "unfinished").iterdir()) == []
    folder.close()


@pytest.mark.parametrize("call", ["writev", "fsync", "link"])
def test_failed_write_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    folder = Folder(tmp_path)
    folder.put_new("commits/1", [b"x"])

    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(OSError, match="full"):
            folder.put_new("commits/2", [b"x"])
    assert list(folder.list("")) == ["commits/1"]
    assert list((tmp_path / "unfinished").iterdir()) == []
    folder.close()


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = os.writev
    monkeypatch.setattr(os, "writev", lambda file, pieces: original(file, [memoryview(pieces[0])[:3]]))
    folder = Folder(tmp_path)
    folder.put_new("commits/1", [b"0123456789", b"", b"abcdef"])
    assert folder.get("commits/1") == b"0123456789abcdef"
    folder.close()


def test_symlinks_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"of somebody else")
    folder = Folder(tmp_path / "state")
    folder.put_new("commits/1", [b"x"])
    (tmp_path / "state/commits/2").symlink_to(secret)
    with pytest.raises(OSError, match="symbolic links"):
        folder.get("commits/2")
    folder.close()


def test_moved_folder_can_still_be_written(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "state")
    folder.put_new("commits/1", [b"x"])
    (tmp_path / "state").rename(tmp_path / "moved")
    folder.put_new("commits/2", [b"y"])
    assert (tmp_path / "moved/commits/2").read_bytes() == b"y"
    folder.close()


def test_module_imports_without_fcntl() -> None:
    program = "import sys; sys.modules['fcntl'] = None\nimport service.store.folder as it\nassert it.fcntl is None"
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
