"""Index of a key file: compact, and built by another process if the file is large."""

from __future__ import annotations

import os
from pathlib import Path

import orjson
import pytest

from service.core.keys.authentication import KeyRing
from service.core.keys.caller import KeyScope, digest_of, new_key
from service.core.keys.key_file import KeyRecord, Keys
from service.core.keys.key_index import IN_PROCESS_BYTES, KeyIndex, SortedTable, index_keys
from tests.service.core.keys.cases import record, write

KEY, OTHER = new_key(), new_key()
PATIENCE = 60.0


def many(count: int) -> Keys:
    """Make `count` records with random hashes."""
    scopes = (KeyScope.COMPUTE, KeyScope.READ, KeyScope.WRITE)
    return tuple(
        KeyRecord(name=f"customer-{i}", sha256=os.urandom(32).hex(), namespace=f"customer-{i}", scopes=scopes)
        for i in range(count)
    )


def large(path: Path, *keys: KeyRecord) -> Path:
    """Write a file that is too large to be read at once."""
    write(path, [*keys, *many(400)])
    assert path.stat().st_size > IN_PROCESS_BYTES
    return path


def test_sorted_table_finds_only_its_rows() -> None:
    rows = {os.urandom(32): os.urandom(i % 7) for i in range(300)}
    table = SortedTable.build(rows)
    assert len(table) == 300
    assert all(table.find(digest) == text for digest, text in rows.items())
    neighbours = [bytes([*digest[:-1], digest[-1] ^ 1]) for digest in rows]
    assert not any(table.find(digest) for digest in [*neighbours, bytes(32), b"\xff" * 32])
    assert SortedTable.build({}).find(bytes(32)) is None


def test_index_has_the_permissions_and_survives_serialization() -> None:
    limited = record("alice", KEY, rate="2/h", concurrency=3, max_tensors=7)
    index = KeyIndex.build([limited, *many(20), record("bob", OTHER)])
    for each in (index, KeyIndex.of_bytes(index.to_bytes())):
        assert len(each) == 22
        assert orjson.loads(each.record(digest_of(KEY)) or b"") == {
            "name": "alice", "namespace": limited.namespace, "scopes": list(limited.scopes), "rate": "2/h",
            "concurrency": 3, "max_tensors": 7,
        }  # fmt: skip
        assert each.record(digest_of(new_key())) is None


def test_largest_limit_of_a_namespace_holds() -> None:
    keys = [record(f"k{limit}", new_key(), namespace="n", max_tensors=limit) for limit in (3, 9, 5)]
    index = KeyIndex.build([*keys, record("other", KEY, namespace="m", max_graphs=1)])
    assert (index.limits("n"), index.limits("m"), index.limits("none")) == ({"max_tensors": 9}, {"max_graphs": 1}, {})


def test_index_takes_at_most_128_bytes_a_key() -> None:
    assert len(KeyIndex.build(many(2000)).to_bytes()) <= 128 * 2000


def test_large_file_is_read_by_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading the file in this process would raise."""
    monkeypatch.setattr("service.core.keys.key_index.read_keys", None)
    index = index_keys(large(tmp_path / "keys.json", record("alice", KEY)))
    assert len(index) == 401
    assert index.record(digest_of(KEY)) is not None


def test_errors_of_a_large_file_are_reported(tmp_path: Path) -> None:
    twice = large(tmp_path / "twice.json", record("alice", KEY), record("alice", OTHER))
    with pytest.raises(ValueError, match=r"^keys\.1\.name is the same as that of keys\.0$"):
        index_keys(twice)
    twice.chmod(0o666)
    with pytest.raises(RuntimeError, match=r"cannot use the key file .*: other users can write to it"):
        KeyRing(twice, None)


def test_ring_reads_a_large_file_beside_its_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.core.keys.authentication.CHECK_SECONDS", 0.0)
    alice = record("alice", KEY, rate="2/h")
    path = write(tmp_path / "keys.json", [alice])
    ring = KeyRing(path, None)
    holder = ring.find(digest_of(KEY))
    assert ring.find(digest_of(OTHER)) is None
    large(path, alice, record("bob", OTHER))
    assert ring.find(digest_of(KEY)) is holder, "the earlier keys stay valid while the file is read"
    assert ring._reading is not None
    ring._reading.result(PATIENCE)
    assert ring.find(digest_of(KEY)) is holder, "who stays keeps what is left of the rate"
    other = ring.find(digest_of(OTHER))
    assert other is not None
    assert other.caller.name == "bob"
    assert len(ring) == 402
