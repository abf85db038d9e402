"""Currently valid keys: the file is checked again, and a broken file does not invalidate the earlier keys."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from service.core.errors import Refusal
from service.core.keys.authentication import ANONYMOUS_HOLDER, ENVIRONMENT_KEY_NAME, Access, Gate, KeyRing
from service.core.keys.caller import Credential, KeyScope, digest_of, new_key
from tests.service.core.keys.cases import record, write

KEY, OTHER = new_key(), new_key()


@pytest.fixture(autouse=True)
def _check_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.core.keys.authentication.CHECK_SECONDS", 0.0)


def name_of(ring: KeyRing, key: str) -> str | None:
    holder = ring.find(digest_of(key))
    return None if holder is None else holder.caller.name


class TestKeyFile:
    """Changes of the file while a server runs."""

    def test_added_and_revoked_keys_take_effect(self, tmp_path: Path) -> None:
        path = write(tmp_path / "keys.json", [record("alice", KEY)])
        ring = KeyRing(path, None)
        assert (name_of(ring, KEY), name_of(ring, OTHER)) == ("alice", None)
        write(path, [record("alice", KEY), record("bob", OTHER)])
        assert (name_of(ring, KEY), name_of(ring, OTHER)) == ("alice", "bob")
        write(path, [record("bob", OTHER)])
        assert (name_of(ring, KEY), name_of(ring, OTHER)) == (None, "bob")
        write(path, [])
        assert (name_of(ring, KEY), name_of(ring, OTHER)) == (None, None)

    @pytest.mark.parametrize("damage", ["broken", "gone", "open to others", "a folder"])
    def test_unreadable_file_keeps_the_earlier_keys(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
    ) -> None:
        path = write(tmp_path / "keys.json", [record("alice", KEY)])
        ring = KeyRing(path, None)
        if damage == "open to others":
            path.chmod(0o666)
        elif damage == "broken":
            path.write_text('{"format": 1, "keys": [{"name": "alice", "sha256": "' + OTHER, encoding="ascii")
        else:
            path.unlink()
        if damage == "a folder":
            path.mkdir()
        with caplog.at_level(logging.DEBUG):
            for _ in range(3):
                assert name_of(ring, KEY) == "alice"
        (message,) = (line.getMessage() for line in caplog.records)
        assert ", so its previous keys stay valid: " in message
        assert OTHER[:8] not in message
        if damage == "a folder":
            path.rmdir()
        write(path, [record("bob", OTHER)])
        assert (name_of(ring, KEY), name_of(ring, OTHER)) == (None, "bob")

    def test_unreadable_file_prevents_the_start(self, tmp_path: Path) -> None:
        with pytest.raises(RuntimeError, match=r"cannot use the key file .*keys\.json: No such file or directory$"):
            KeyRing(tmp_path / "keys.json", None)
        write(tmp_path / "keys.json", []).write_text("{", encoding="ascii")
        with pytest.raises(RuntimeError, match=r"cannot use the key file .*keys\.json: it is not JSON$"):
            KeyRing(tmp_path / "keys.json", None)

    def test_unchanged_file_is_not_read_again(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        ring = KeyRing(write(tmp_path / "keys.json", [record("alice", KEY)]), None)
        monkeypatch.setattr("service.core.keys.authentication.index_keys", None)
        assert name_of(ring, KEY) == "alice"

    def test_file_is_checked_at_intervals(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("service.core.keys.authentication.CHECK_SECONDS", 1000.0)
        path = write(tmp_path / "keys.json", [record("alice", KEY)])
        ring = KeyRing(path, None)
        assert name_of(ring, KEY) == "alice"
        write(path, [])
        assert name_of(ring, KEY) == "alice"

    def test_remaining_rate_survives_a_reload(self, tmp_path: Path) -> None:
        limited = record("alice", KEY, rate="2/h")
        path = write(tmp_path / "keys.json", [limited])
        ring = KeyRing(path, None)
        for _ in range(2):
            enter(ring)
        write(path, [limited, record("bob", OTHER)])
        with pytest.raises(Refusal):
            enter(ring)
        write(path, [limited.model_copy(update={"rate": "3/h"})])
        enter(ring)


def enter(ring: KeyRing) -> None:
    holder = ring.find(digest_of(KEY))
    assert holder is not None
    holder.enter()


class TestEnvironmentKey:
    """A key with all scopes from the environment, alone or in addition to a file."""

    def test_environment_key_alone(self) -> None:
        ring = KeyRing(None, KEY)
        holder = ring.find(digest_of(KEY))
        assert holder is not None
        assert (holder.caller.name, holder.caller.namespace) == (ENVIRONMENT_KEY_NAME, "")
        assert holder.caller.scopes == frozenset(KeyScope)
        assert ring.find(digest_of(OTHER)) is None
        assert len(ring) == 1

    def test_environment_key_with_a_file(self, tmp_path: Path) -> None:
        path = write(tmp_path / "keys.json", [record("alice", OTHER)])
        ring = KeyRing(path, KEY)
        assert (name_of(ring, KEY), name_of(ring, OTHER)) == (ENVIRONMENT_KEY_NAME, "alice")
        write(path, [record("alice", KEY)])
        assert (name_of(ring, KEY), name_of(ring, OTHER)) == (ENVIRONMENT_KEY_NAME, None)


class TestGate:
    """Reports of refused requests."""

    def test_every_refusal_is_reported(self, tmp_path: Path) -> None:
        reasons: list[str] = []
        keys = [record("alice", KEY, [KeyScope.COMPUTE], concurrency=1)]
        gate = Gate(KeyRing(write(tmp_path / "keys.json", keys), None), reasons.append)
        valid, invalid = Credential(digest_of(KEY)), Credential(digest_of(OTHER))
        holder = gate.enter(Access(KeyScope.COMPUTE, valid))
        for access in (
            Access(KeyScope.COMPUTE, valid),
            Access(KeyScope.READ, valid),
            Access(KeyScope.READ, invalid),
            Access(KeyScope.READ, Credential(None, "no key")),
        ):
            with pytest.raises(Refusal):
                gate.enter(access)
        assert reasons == ["rate_limited", "forbidden", "unauthenticated", "unauthenticated"]
        holder.leave()

    def test_without_keys_every_request_is_accepted(self) -> None:
        assert Gate().enter(Access(KeyScope.ADMIN, Credential(None, "no key"))) is ANONYMOUS_HOLDER
