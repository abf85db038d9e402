"""Changes are checked against what is there when they are decided."""

from __future__ import annotations

import pytest

from service.errors import Refusal
from service.state.changes import new_answer
from service.state.idempotency import AnswerTable, Repetition
from service.state.table import Quota
from service.state.values import AnswerRecord

ASKED = Repetition("", "k", "f")


def record(expires: float) -> AnswerRecord:
    return AnswerRecord(*ASKED, "text/plain", b"told", expires)


def test_of_two_answers_to_one_call_the_first_stands() -> None:
    """As of servers that had the call both, and computed both."""
    now = [100.0]
    table = AnswerTable(Quota(10, 10_000), 60.0, lambda: now[0])
    change = new_answer(table, record(160.0))
    assert change.check(None)
    with pytest.raises(Refusal) as refused:
        change.check(record(150.0))
    assert (refused.value.code, refused.value.retry_after) == ("conflict", 1)
    now[0] = 151.0
    assert change.check(record(150.0)), "it is given no more"


def test_a_call_of_another_server_is_not_noted() -> None:
    table = AnswerTable(Quota(10, 10_000), 60.0, lambda: 0.0)
    assert table.asked_before(ASKED) is None
    assert table.begin(ASKED) is None
    with pytest.raises(Refusal, match="is under way"):
        table.asked_before(ASKED)
    table.end(ASKED)
    table.load(("", "k"), record(10.0))
    assert table.asked_before(ASKED) == record(10.0)
    with pytest.raises(Refusal, match="another request"):
        table.asked_before(ASKED._replace(fingerprint="g"))
