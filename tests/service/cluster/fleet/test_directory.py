"""The directory: a server is there for as long as its entry goes on changing."""

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
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_servers_are_there_once_they_are_entered_and_until_they_say_that_they_go() -> None:
    store = Store()
    directory = Directory(store, Time())
    first, second = DirectoryEntry(store, "a", FIRST), DirectoryEntry(store, "b", SECOND)
    assert directory.living() == set()
    first.renew()
    second.renew()
    assert directory.living() == {FIRST, SECOND}
    first.remove()
    assert directory.living() == {SECOND}


def test_one_whose_entry_does_not_change_is_gone_and_forgotten_in_the_end() -> None:
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


def test_who_begins_to_read_later_gives_each_its_time() -> None:
    """Of clocks nothing is assumed but that they go on."""
    store, clock = Store(), Time()
    DirectoryEntry(store, "a", FIRST).renew()
    clock.now += 10 * FORGOTTEN_AFTER
    assert Directory(store, clock).living() == {FIRST}


def test_what_others_keep_in_the_store_is_no_server() -> None:
    store = Store({b"serve:checkpoint": b"\0"})
    assert Directory(store, Time()).living() == set()
    assert store == {b"serve:checkpoint": b"\0"}
