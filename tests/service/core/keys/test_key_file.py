"""Key files: replaced atomically, writable only by their owner, and never quoted."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from service.core.keys.caller import digest_of, new_key
from service.core.keys.key_file import Keys, change_keys, read_keys
from tests.service.core.keys.cases import record, write

KEY = new_key()
ALICE = record("alice", KEY)
#: the fields of a valid key
VALID = json.loads(ALICE.model_dump_json(exclude_none=True))


def write_file(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(0o600)
    return path


def key_file_text(*keys: object, **more: object) -> str:
    return json.dumps({"format": 1, "keys": keys, **more})


BROKEN = {
    "nothing": (b"", "it is not JSON"),
    "half": (key_file_text(VALID)[:-20], "it is not JSON"),
    "no text": (b"\xff\xfe{", "it is not JSON"),
    "a list": ("[]", "Input should be an object"),
    "a later format": (key_file_text(format=2), "format: Input should be 1"),
    "a field too many": (key_file_text({**VALID, "expires": 1}), "keys.0.expires: Extra inputs are not permitted"),
    "a field too few": (
        key_file_text({k: v for k, v in VALID.items() if k != "scopes"}),
        "keys.0.scopes: Field required",
    ),
    "no scopes": (key_file_text({**VALID, "scopes": []}), "keys.0.scopes: "),
    "a scope that is none": (key_file_text({**VALID, "scopes": ["root"]}), "keys.0.scopes.0: "),
    "a name that climbs": (key_file_text({**VALID, "name": "../alice"}), "keys.0.name: "),
    "a name and a line": (key_file_text({**VALID, "name": "alice\n"}), "keys.0.name: "),
    "a namespace that climbs": (key_file_text({**VALID, "namespace": "a/b"}), "keys.0.namespace: "),
    "a rate that is none": (key_file_text({**VALID, "rate": "fast"}), "keys.0.rate: "),
    "a rate of nothing": (key_file_text({**VALID, "rate": "0/s"}), "keys.0.rate: "),
    "no concurrency": (key_file_text({**VALID, "concurrency": 0}), "keys.0.concurrency: "),
    "a name twice": (key_file_text(VALID, {**VALID, "sha256": "0" * 64}), "keys.1.name is the same as that of keys.0"),
    "a key twice": (key_file_text(VALID, {**VALID, "name": "bob"}), "keys.1.sha256 is the same as that of keys.0"),
    "a key for its hash": (key_file_text({**VALID, "sha256": KEY}), "keys.0.sha256: "),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_file_is_reported_but_not_quoted(tmp_path: Path, kind: str) -> None:
    text, message = BROKEN[kind]
    with pytest.raises(ValueError, match=f"^{message}") as raised:
        read_keys(write_file(tmp_path / "keys.json", text))
    assert "\n" not in str(raised.value)
    assert KEY[:8] not in str(raised.value)
    assert VALID["sha256"][:8] not in str(raised.value)


def test_written_keys_are_read_back(tmp_path: Path) -> None:
    keys = (ALICE, record("bob", new_key(), rate="600/min", concurrency=3, namespace=""))
    assert read_keys(write(tmp_path / "keys.json", keys)) == keys


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_file_writable_by_others_is_refused(tmp_path: Path, mode: int) -> None:
    path = write(tmp_path / "keys.json", [ALICE])
    path.chmod(mode)
    with pytest.raises(ValueError, match="other users can write to it"):
        read_keys(path)


def test_folder_missing_file_and_device_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_keys(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_keys(tmp_path / "none")
    with pytest.raises(ValueError, match="it is not a regular file"):
        read_keys(Path(os.devnull))


class TestChange:
    """Changes, which replace the file atomically."""

    def test_first_key_creates_the_file(self, tmp_path: Path) -> None:
        path = tmp_path / "keys.json"
        change_keys(path, lambda keys: (*keys, ALICE))
        assert read_keys(path) == (ALICE,)
        assert path.stat().st_mode & 0o777 == 0o600
        assert KEY not in path.read_text(encoding="ascii")
        assert digest_of(KEY).hex() in path.read_text(encoding="ascii")

    def test_failed_change_leaves_the_file_and_no_temporary(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = write(tmp_path / "keys.json", [ALICE])

        def full(_: int) -> None:
            raise OSError(28, "")

        monkeypatch.setattr("service.core.keys.key_file.os.fsync", full)
        with pytest.raises(OSError, match="28"):
            change_keys(path, lambda _: ())
        assert read_keys(path) == (ALICE,)
        assert [each.name for each in tmp_path.iterdir()] == ["keys.json"]

    def test_broken_file_is_not_replaced(self, tmp_path: Path) -> None:
        path = write_file(tmp_path / "keys.json", "{")
        with pytest.raises(ValueError, match="it is not JSON"):
            change_keys(path, lambda _: (ALICE,))
        assert path.read_text(encoding="ascii") == "{"

    def test_file_is_synced_before_it_replaces_the_old_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        steps: list[str] = []
        replace, fsync = Path.replace, os.fsync

        def recorded_replace(self: Path, target: Path) -> Path:
            steps.append("replace")
            return replace(self, target)

        def recorded_fsync(handle: int) -> None:
            steps.append("folder" if Path(f"/proc/self/fd/{handle}").is_dir() else "file")
            fsync(handle)

        monkeypatch.setattr(Path, "replace", recorded_replace)
        monkeypatch.setattr("service.core.keys.key_file.os.fsync", recorded_fsync)
        change_keys(tmp_path / "keys.json", lambda _: (ALICE,))
        assert steps == ["file", "replace", "folder"]

    def test_symlink_is_preserved(self, tmp_path: Path) -> None:
        path, link = write(tmp_path / "keys.json", []), tmp_path / "link.json"
        link.symlink_to(path)
        change_keys(link, lambda _: (ALICE,))
        assert link.is_symlink()
        assert read_keys(path) == (ALICE,)

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file to others")
    def test_owner_is_preserved(self, tmp_path: Path) -> None:
        path = write(tmp_path / "keys.json", [])
        os.chown(path, 10001, 10001)
        change_keys(path, lambda _: (ALICE,))
        assert (path.stat().st_uid, path.stat().st_gid) == (10001, 10001)

    def test_concurrent_changes_are_serialized(self, tmp_path: Path) -> None:
        path, number = tmp_path / "keys.json", 8

        def adding(i: int) -> None:
            def added(keys: Keys) -> Keys:
                return (*keys, record(f"name{i}", new_key()))

            change_keys(path, added)

        threads = [threading.Thread(target=adding, args=(i,)) for i in range(number)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {key.name for key in read_keys(path)} == {f"name{i}" for i in range(number)}
