"""Directory of servers: a server is alive as long as its entry keeps changing."""

from __future__ import annotations

from service.cluster.fleet.directory import FORGOTTEN_AFTER, GONE, Directory, DirectoryEntry

FIRST, SECOND = ("10.0.0.7", 8000), ("10.0.0.8", 8001)


class Store(dict[bytes, bytes]):
    """A store in memory."""

    def put(self, key: bytes, value: bytes) -> None:
        self[key] = value

    def delete(self, key: bytes) -> None:
        self.pop(key, None)

    def keys(self, prefix: bytes) -> list[bytes]:  # type: ignore[override]
        return [key for key in self if key.startswith(prefix)]


class Time:
    """Clock that only the test advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_servers_are_listed_from_entry_to_removal() -> None:
    store = Store()
    directory = Directory(store, Time())
    first, second = DirectoryEntry(store, "a", FIRST), DirectoryEntry(store, "b", SECOND)
    assert directory.living() == set()
    first.renew()
    second.renew()
    assert directory.living() == {FIRST, SECOND}
    first.remove()
    assert directory.living() == {SECOND}


def test_unchanged_entry_expires_and_is_deleted() -> None:
    store, clock = Store(), Time()
    directory = Directory(store, clock)
    silent, steady = DirectoryEntry(store, "a", FIRST), DirectoryEntry(store, "b", SECOND)
    silent.renew()
    for _ in range(int(FORGOTTEN_AFTER) + 2):
        steady.renew()
        living = directory.living()
        assert SECOND in living
        assert (FIRST in living) == (clock.now - 1000.0 <= GONE)
        clock.now += 1.0
    assert len(store) == 1
    silent.renew()
    assert directory.living() == {FIRST, SECOND}


def test_new_reader_gives_each_entry_its_full_time() -> None:
    """Clocks are only assumed to advance."""
    store, clock = Store(), Time()
    DirectoryEntry(store, "a", FIRST).renew()
    clock.now += 10 * FORGOTTEN_AFTER
    assert Directory(store, clock).living() == {FIRST}


def test_other_keys_of_the_store_are_ignored() -> None:
    store = Store({b"serve:checkpoint": b"\0"})
    assert Directory(store, Time()).living() == set()
    assert store == {b"serve:checkpoint": b"\0"}
