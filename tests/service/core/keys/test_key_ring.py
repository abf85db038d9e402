"""Which keys are good now: the file is looked at again, and what is wrong with it locks nobody out."""

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
def _looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.core.keys.authentication.CHECK_SECONDS", 0.0)


def name_of(ring: KeyRing, key: str) -> str | None:
    holder = ring.find(digest_of(key))
    return None if holder is None else holder.caller.name


class TestTheFile:
    """It may change while a server runs."""

    def test_a_key_that_is_added_and_one_that_is_revoked(self, tmp_path: Path) -> None:
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
    def test_what_cannot_be_read_changes_nothing(
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
        (said,) = (line.getMessage() for line in caplog.records)
        assert "cannot be used, so its earlier keys stay good: " in said
        assert OTHER[:8] not in said
        if damage == "a folder":
            path.rmdir()
        write(path, [record("bob", OTHER)])
        assert (name_of(ring, KEY), name_of(ring, OTHER)) == (None, "bob")

    def test_a_server_does_not_start_on_one_that_cannot_be_read(self, tmp_path: Path) -> None:
        with pytest.raises(RuntimeError, match=r"keys\.json cannot be used: No such file or directory$"):
            KeyRing(tmp_path / "keys.json", None)
        write(tmp_path / "keys.json", []).write_text("{", encoding="ascii")
        with pytest.raises(RuntimeError, match=r"keys\.json cannot be used: it is not JSON$"):
            KeyRing(tmp_path / "keys.json", None)

    def test_it_is_not_read_where_it_is_the_same(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        ring = KeyRing(write(tmp_path / "keys.json", [record("alice", KEY)]), None)
        monkeypatch.setattr("service.core.keys.authentication.index_keys", None)
        assert name_of(ring, KEY) == "alice"

    def test_it_is_looked_at_once_a_second(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("service.core.keys.authentication.CHECK_SECONDS", 1000.0)
        path = write(tmp_path / "keys.json", [record("alice", KEY)])
        ring = KeyRing(path, None)
        assert name_of(ring, KEY) == "alice"
        write(path, [])
        assert name_of(ring, KEY) == "alice"

    def test_who_stays_goes_on_with_the_share_that_is_left(self, tmp_path: Path) -> None:
        limited = record("alice", KEY, rate="2/h")
        path = write(tmp_path / "keys.json", [limited])
        ring = KeyRing(path, None)
        for _ in range(2):
            entered(ring)
        write(path, [limited, record("bob", OTHER)])
        with pytest.raises(Refusal):
            entered(ring)
        write(path, [limited.model_copy(update={"rate": "3/h"})])
        entered(ring)


def entered(ring: KeyRing) -> None:
    holder = ring.find(digest_of(KEY))
    assert holder is not None
    holder.enter()


class TestTheEnvironment:
    """One key that may do everything, alone or beside a file."""

    def test_alone(self) -> None:
        ring = KeyRing(None, KEY)
        holder = ring.find(digest_of(KEY))
        assert holder is not None
        assert (holder.caller.name, holder.caller.namespace) == (ENVIRONMENT_KEY_NAME, "")
        assert holder.caller.scopes == frozenset(KeyScope)
        assert ring.find(digest_of(OTHER)) is None
        assert len(ring) == 1

    def test_beside_a_file(self, tmp_path: Path) -> None:
        path = write(tmp_path / "keys.json", [record("alice", OTHER)])
        ring = KeyRing(path, KEY)
        assert (name_of(ring, KEY), name_of(ring, OTHER)) == (ENVIRONMENT_KEY_NAME, "alice")
        write(path, [record("alice", KEY)])
        assert (name_of(ring, KEY), name_of(ring, OTHER)) == (ENVIRONMENT_KEY_NAME, None)


class TestTheGate:
    """What it tells of those that it turns away."""

    def test_every_refusal_is_told(self, tmp_path: Path) -> None:
        told: list[str] = []
        keys = [record("alice", KEY, [KeyScope.COMPUTE], concurrency=1)]
        gate = Gate(KeyRing(write(tmp_path / "keys.json", keys), None), told.append)
        known, unknown = Credential(digest_of(KEY)), Credential(digest_of(OTHER))
        holder = gate.enter(Access(KeyScope.COMPUTE, known))
        for access in (
            Access(KeyScope.COMPUTE, known),
            Access(KeyScope.READ, known),
            Access(KeyScope.READ, unknown),
            Access(KeyScope.READ, Credential(None, "no key")),
        ):
            with pytest.raises(Refusal):
                gate.enter(access)
        assert told == ["rate_limited", "forbidden", "unauthenticated", "unauthenticated"]
        holder.leave()

    def test_without_keys_everybody_is_let_in(self) -> None:
        assert Gate().enter(Access(KeyScope.ADMIN, Credential(None, "no key"))) is ANONYMOUS_HOLDER
