"""Tables: what is there, what is coming, and quotas that know both."""

from __future__ import annotations

import pytest

from service.core.errors import Refusal
from service.store.idempotency import AnswerTable, Repetition
from service.store.tables import Quota, Table
from service.store.writes import AnswerRecord

KEY = ("mine", "a")


def table(most: int = 2, most_bytes: int = 100) -> Table[bytes]:
    return Table(Quota(most, most_bytes), len)


def test_what_is_coming_is_seen_by_who_decides_alone() -> None:
    of = table()
    of.expect(KEY, b"1")
    assert (of.find(KEY), of.latest(KEY)) == (None, b"1")
    of.settle(KEY, b"1")
    assert (of.find(KEY), of.latest(KEY)) == (b"1", b"1")
    of.expect(KEY, None)
    assert (of.find(KEY), of.latest(KEY)) == (b"1", None)
    of.drop(KEY)
    assert (of.find(KEY), of.latest(KEY)) == (b"1", b"1")
    assert (of.count, of.nbytes) == (1, 1)


def test_what_has_settled_is_not_coming_any_more() -> None:
    of = table()
    of.expect(KEY, b"1")
    of.settle(KEY, b"1")
    of.load(KEY, None)
    assert of.latest(KEY) is None
    assert (of.count, of.nbytes) == (0, 0)


def test_namespaces_see_nothing_of_each_other() -> None:
    of = table(most=10)
    for namespace in ("mine", "", "other"):
        of.load((namespace, "a"), namespace.encode())
    assert dict(of.within("mine")) == {"a": b"mine"}
    assert dict(of.within("nobody")) == {}
    of.load(("other", "a"), None)
    assert [key for key, _ in of] == [("mine", "a"), ("", "a")]


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
def test_quotas_judge_changes_together(changes: dict[str, bytes | None], *, fits: bool) -> None:
    of = table()
    of.load(("", "a"), b"1" * 20)
    of.expect(("", "b"), b"1" * 20)
    keyed = {("", name): value for name, value in changes.items()}
    if fits:
        of.admit(keyed)
        return
    with pytest.raises(Refusal, match="delete what is no longer needed") as refused:
        of.admit(keyed)
    assert refused.value.status == 507


def test_what_is_over_its_quota_since_a_restart_may_shrink() -> None:
    of = table(most=1, most_bytes=10)
    of.load(("", "a"), b"1" * 20)
    of.load(("", "b"), b"1" * 20)
    of.admit({("", "a"): b"1" * 19})
    with pytest.raises(Refusal):
        of.admit({("", "a"): b"1" * 21})


class TestAnswers:
    """Answers that may be asked for again."""

    def answers(self, now: list[float]) -> AnswerTable:
        return AnswerTable(Quota(10, 1 << 20), 600.0, lambda: now[0])

    def asked(self, key: str = "k", fingerprint: str = "f", namespace: str = "") -> Repetition:
        return Repetition(namespace, key, fingerprint)

    def keep(self, of: AnswerTable, asked: Repetition) -> AnswerRecord:
        record = of.record(asked, 201, "application/json", [b"{", b"}"], (("ETag", '"1"'),))
        of.load((asked.namespace, asked.key), record)
        return record

    def test_the_first_answer_is_given_until_its_time_is_over(self) -> None:
        now = [1000.0]
        of = self.answers(now)
        assert of.begin(self.asked()) is None
        record = self.keep(of, self.asked())
        of.end(self.asked())
        assert record.body == b"{}"
        assert of.begin(self.asked()) is record
        now[0] += 599
        assert of.begin(self.asked()) is record
        now[0] += 1
        assert of.begin(self.asked()) is None
        assert (of.count, of.nbytes) == (0, 0), "what has had its time takes no room"

    def test_a_call_that_is_under_way(self) -> None:
        of = self.answers([0.0])
        assert of.begin(self.asked()) is None
        with pytest.raises(Refusal) as conflict:
            of.begin(self.asked())
        assert (conflict.value.code, conflict.value.retry_after) == ("conflict", 1)
        with pytest.raises(Refusal, match="another request"):
            of.begin(self.asked(fingerprint="g"))
        assert of.begin(self.asked(namespace="other")) is None
        of.end(self.asked())
        assert of.begin(self.asked()) is None

    def test_a_key_is_of_one_request(self) -> None:
        of = self.answers([0.0])
        self.keep(of, self.asked())
        with pytest.raises(Refusal, match="a new request needs a key of its own"):
            of.begin(self.asked(fingerprint="g"))


# ---------------------------------------------------------------- several namespaces


def shared(most: int = 10, most_bytes: int = 100) -> Table[bytes]:
    """Each namespace may keep three things of 30 bytes together; “large” all."""
    return Table(
        Quota(most, most_bytes), len, lambda name: Quota(most, most_bytes) if name == "large" else Quota(3, 30)
    )


def test_a_namespace_fills_its_share_and_nobody_elses() -> None:
    of = shared()
    for name in "abc":
        of.load(("mine", name), b"1")
    with pytest.raises(Refusal) as refused:
        of.admit({("mine", "d"): b"1"})
    assert refused.value.code == "store_full"
    assert refused.value.detail.startswith("your namespace keeps 3 things already, of at most 3 things; ")
    of.admit({("other", "d"): b"1"})
    of.admit({("mine", "a"): None, ("mine", "d"): b"1"})
    of.load(("mine", "a"), None)
    of.admit({("mine", "d"): b"1"})


def test_bytes_have_shares_too() -> None:
    of = shared()
    of.load(("mine", "a"), b"1" * 20)
    with pytest.raises(Refusal, match="your namespace keeps things of 20 bytes already, of at most 30 bytes, and this"):
        of.admit({("mine", "b"): b"1" * 11})
    of.admit({("mine", "b"): b"1" * 10})


def test_a_share_that_has_become_smaller_takes_nothing_away() -> None:
    of = shared()
    for name in "abcde":
        of.load(("mine", name), b"1" * 9)
    of.admit({("mine", "a"): b"2" * 9})
    of.admit({("mine", "a"): None})
    with pytest.raises(Refusal):
        of.admit({("mine", "a"): b"2" * 10})


def test_what_others_keep_is_not_told() -> None:
    of = shared(most=4)
    for name in "abcd":
        of.load(("large", name), b"1")
    with pytest.raises(Refusal) as refused:
        of.admit({("mine", "a"): b"1"})
    report = refused.value
    assert report.detail == "the server has no room for more things, though your namespace has not filled its share"
    assert not {"4", "large"} & set(f"{report.detail} {report.expected} {report.got}".split())


def test_what_is_coming_counts_in_its_namespace() -> None:
    of = shared()
    for name in "abc":
        of.expect(("mine", name), b"1")
    with pytest.raises(Refusal):
        of.admit({("mine", "d"): b"1"})
    of.drop(("mine", "a"))
    of.settle(("mine", "b"), b"1")
    of.admit({("mine", "d"): b"1"})


def test_what_others_have_of_one_quota_counts() -> None:
    table: Table[bytes] = Table(Quota(5, 100), len)
    table.other_usage = lambda: Quota(3, 60)
    table.admit({("", "a"): bytes(40), ("", "b"): b""})
    for crowd in ({("", "a"): bytes(41)}, {("", name): b"" for name in "abc"}):
        with pytest.raises(Refusal):
            table.admit(crowd)
    table.load(("", "a"), bytes(90))
    table.admit({("", "a"): bytes(90)})
