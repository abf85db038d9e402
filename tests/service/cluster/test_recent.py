"""What was used last is kept, within so many bytes."""

from __future__ import annotations

from service.cluster.shared_store import RecentlyUsed


def test_what_was_not_used_for_longest_goes() -> None:
    dropped: list[bytes] = []
    recent = RecentlyUsed(10, len, dropped.append)
    for name in "abc":
        recent.put(name, name.encode() * 3)
    assert recent.find("a") == b"aaa"
    recent.put("d", b"dddd")
    assert dropped == [b"bbb"]
    assert [recent.find(name) for name in "abcd"] == [b"aaa", None, b"ccc", b"dddd"]
    assert recent.find(None) is None


def test_a_name_is_counted_once() -> None:
    recent = RecentlyUsed(10, len)
    for size in (9, 4, 4):
        recent.put("a", bytes(size))
    recent.put("b", bytes(6))
    assert (recent.find("a"), recent.find("b")) == (bytes(4), bytes(6))


def test_one_alone_may_be_larger() -> None:
    recent = RecentlyUsed(10, len)
    recent.put("a", bytes(2))
    recent.put("b", bytes(20))
    assert (recent.find("a"), recent.find("b")) == (None, bytes(20))
