"""Tables with current and pending values, and quotas over both."""

from __future__ import annotations

from typing import NoReturn

import pytest

from service.core.errors import Refusal
from service.store.idempotency import ANSWER_OVERHEAD, AnswerTable, Repetition
from service.store.tables import Quota, Table, Usage
from service.store.writes import AnswerRecord

KEY = ("mine", "a")


def table(most: int = 2, most_bytes: int = 100) -> Table[bytes]:
    return Table(Quota(most, most_bytes), len)


def test_pending_value_is_seen_only_by_latest() -> None:
    entries = table()
    entries.expect(KEY, b"1")
    assert (entries.find(KEY), entries.latest(KEY)) == (None, b"1")
    entries.settle(KEY, b"1")
    assert (entries.find(KEY), entries.latest(KEY)) == (b"1", b"1")
    entries.expect(KEY, None)
    assert (entries.find(KEY), entries.latest(KEY)) == (b"1", None)
    entries.drop(KEY)
    assert (entries.find(KEY), entries.latest(KEY)) == (b"1", b"1")
    assert (entries.count, entries.nbytes) == (1, 1)


def test_settled_value_is_not_pending() -> None:
    entries = table()
    entries.expect(KEY, b"1")
    entries.settle(KEY, b"1")
    entries.load(KEY, None)
    assert entries.latest(KEY) is None
    assert (entries.count, entries.nbytes) == (0, 0)


def test_namespaces_are_separate() -> None:
    entries = table(most=10)
    for namespace in ("mine", "", "other"):
        entries.load((namespace, "a"), namespace.encode())
    assert dict(entries.within("mine")) == {"a": b"mine"}
    assert dict(entries.within("nobody")) == {}
    entries.load(("other", "a"), None)
    assert [key for key, _ in entries] == [("mine", "a"), ("", "a")]


@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        ({"c": b"1"}, False),
        ({"a": b"1" * 40}, True),
        ({"a": b"1" * 100}, False),
        ({"a": None, "c": b"1"}, True),
        ({"a": None, "b": None, "c": b"1" * 101}, False),
        ({"a": b"", "b": b""}, True),
        ({"c": None}, True),
    ],
)
def test_quota_applies_to_all_changes_together(changes: dict[str, bytes | None], *, fits: bool) -> None:
    entries = table()
    entries.load(("", "a"), b"1" * 20)
    entries.expect(("", "b"), b"1" * 20)
    keyed = {("", name): value for name, value in changes.items()}
    if fits:
        entries.admit(keyed)
        return
    with pytest.raises(Refusal, match="delete some that you no longer need") as refused:
        entries.admit(keyed)
    assert refused.value.status == 507


def test_table_over_its_quota_may_shrink() -> None:
    entries = table(most=1, most_bytes=10)
    entries.load(("", "a"), b"1" * 20)
    entries.load(("", "b"), b"1" * 20)
    entries.admit({("", "a"): b"1" * 19})
    with pytest.raises(Refusal):
        entries.admit({("", "a"): b"1" * 21})


class TestAnswers:
    """Recorded answers to calls with an Idempotency-Key."""

    def answers(self, now: list[float]) -> AnswerTable:
        return AnswerTable(Quota(10, 1 << 20), 600.0, lambda: now[0])

    def asked(self, key: str = "k", fingerprint: str = "f", namespace: str = "") -> Repetition:
        return Repetition(namespace, key, fingerprint)

    def record_answer(self, entries: AnswerTable, asked: Repetition) -> AnswerRecord:
        record = entries.record(asked, 201, "application/json", [b"{", b"}"], (("ETag", '"1"'),))
        entries.load((asked.namespace, asked.key), record)
        return record

    def test_recorded_answer_is_replayed_until_it_expires(self) -> None:
        now = [1000.0]
        entries = self.answers(now)
        assert entries.begin(self.asked()) is None
        record = self.record_answer(entries, self.asked())
        entries.end(self.asked())
        assert record.body == b"{}"
        assert entries.begin(self.asked()) is record
        now[0] += 599
        assert entries.begin(self.asked()) is record
        now[0] += 1
        assert entries.begin(self.asked()) is None
        assert (entries.count, entries.nbytes) == (0, 0), "what has had its time takes no room"

    def test_call_under_way_is_a_conflict(self) -> None:
        entries = self.answers([0.0])
        assert entries.begin(self.asked()) is None
        with pytest.raises(Refusal) as conflict:
            entries.begin(self.asked())
        assert (conflict.value.code, conflict.value.retry_after) == ("conflict", 1)
        with pytest.raises(Refusal, match="a different request"):
            entries.begin(self.asked(fingerprint="g"))
        assert entries.begin(self.asked(namespace="other")) is None
        entries.end(self.asked())
        assert entries.begin(self.asked()) is None

    def test_key_belongs_to_one_request(self) -> None:
        entries = self.answers([0.0])
        self.record_answer(entries, self.asked())
        with pytest.raises(Refusal, match="use a new key for a new request"):
            entries.begin(self.asked(fingerprint="g"))

    # ---------------------------------------------------------------- several namespaces

    def test_expiry_does_not_go_through_all_namespaces(self) -> None:
        """A server may store answers in many thousands of namespaces."""

        class Unlisted(dict[str, dict[str, AnswerRecord]]):
            def __iter__(self) -> NoReturn:
                raise AssertionError("all namespaces are listed")

        now = [100.0]
        entries = AnswerTable(Quota(1000, 1 << 20), 10.0, lambda: now[0])
        entries._values = Unlisted()
        for number in range(5):
            now[0] += 1
            self.record_answer(entries, self.asked(namespace=f"ns{number}"))
        replaced = self.asked(namespace="ns0")
        now[0] = 111.0  # the answer of ns0 has just expired
        assert entries.begin(replaced) is None
        assert entries.count == 4
        self.record_answer(entries, replaced)
        now[0] = 115.0
        assert entries.begin(self.asked(key="another")) is None
        assert [entries.find((f"ns{number}", "k")) is not None for number in range(5)] == [True, *[False] * 4]
        assert (entries.count, entries.nbytes) == (1, ANSWER_OVERHEAD + 2)


def shared(most: int = 10, most_bytes: int = 100) -> Table[bytes]:
    """Create a table in which each namespace may have three items of 30 bytes in total, and “large” everything."""
    return Table(
        Quota(most, most_bytes), len, lambda name: Quota(most, most_bytes) if name == "large" else Quota(3, 30)
    )


def test_namespace_fills_only_its_own_share() -> None:
    entries = shared()
    for name in "abc":
        entries.load(("mine", name), b"1")
    with pytest.raises(Refusal) as refused:
        entries.admit({("mine", "d"): b"1"})
    assert refused.value.code == "store_full"
    assert refused.value.detail.startswith("your namespace already stores 3 things, of at most 3 things; ")
    entries.admit({("other", "d"): b"1"})
    entries.admit({("mine", "a"): None, ("mine", "d"): b"1"})
    entries.load(("mine", "a"), None)
    entries.admit({("mine", "d"): b"1"})


def test_share_limits_bytes() -> None:
    entries = shared()
    entries.load(("mine", "a"), b"1" * 20)
    with pytest.raises(
        Refusal, match="your namespace already stores 20 bytes of things, of at most 30 bytes, and this"
    ):
        entries.admit({("mine", "b"): b"1" * 11})
    entries.admit({("mine", "b"): b"1" * 10})


def test_reduced_share_deletes_no_entries() -> None:
    entries = shared()
    for name in "abcde":
        entries.load(("mine", name), b"1" * 9)
    entries.admit({("mine", "a"): b"2" * 9})
    entries.admit({("mine", "a"): None})
    with pytest.raises(Refusal):
        entries.admit({("mine", "a"): b"2" * 10})


def test_refusal_does_not_reveal_other_namespaces() -> None:
    entries = shared(most=4)
    for name in "abcd":
        entries.load(("large", name), b"1")
    with pytest.raises(Refusal) as refused:
        entries.admit({("mine", "a"): b"1"})
    report = refused.value
    assert report.detail == "the server has no room for more things, though your namespace has not filled its share"
    assert not {"4", "large"} & set(f"{report.detail} {report.expected} {report.got}".split())


def test_pending_values_count_in_their_namespace() -> None:
    entries = shared()
    for name in "abc":
        entries.expect(("mine", name), b"1")
    with pytest.raises(Refusal):
        entries.admit({("mine", "d"): b"1"})
    entries.drop(("mine", "a"))
    entries.settle(("mine", "b"), b"1")
    entries.admit({("mine", "d"): b"1"})


def test_usage_of_other_tables_counts_towards_the_quota() -> None:
    table, other, total = Table[bytes](Quota(5, 100), len), Table[bytes](Quota(5, 100), len), Usage()
    other.load(("", "before"), bytes(50))
    for each in (table, other):
        each.share_quota(total)
    for name, size in (("later", 9), ("last", 1)):
        other.load(("", name), bytes(size))
    assert total == Usage(3, 60)
    table.admit({("", "a"): bytes(40), ("", "b"): b""})
    for changes in ({("", "a"): bytes(41)}, {("", name): b"" for name in "abc"}):
        with pytest.raises(Refusal):
            table.admit(changes)
    table.load(("", "a"), bytes(90))
    table.admit({("", "a"): bytes(90)})
    assert total == Usage(4, 150)
    other.share_quota(Usage())
    assert total == Usage(1, 90)
    table.admit({("", name): b"" for name in "abcde"})
