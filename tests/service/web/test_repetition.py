"""A call that another server has recorded first: the second one gets the answer of the first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.responses import Response

from service.core.errors import Refusal
from service.core.keys.caller import KeyScope
from service.store.idempotency import Repetition, under_way
from service.store.writes import AnswerRecord
from service.web.repetition import answer_once
from tests.service.workers.pools import running


class Store:
    """Store that returns the given records in order and counts calls under way."""

    def __init__(self, *records: AnswerRecord | None) -> None:
        self.records = list(records)
        self.under_way = 0

    async def begin(self, asked: Repetition, expires: float) -> AnswerRecord | None:
        record = self.records.pop(0)
        self.under_way += record is None
        return record

    def end(self, asked: Repetition) -> None:
        self.under_way = 0


FIRST = AnswerRecord("", "k", "", "application/json", b"first", 1e12, 201, (("ETag", "e"),))


def request() -> Any:
    return SimpleNamespace(
        state=SimpleNamespace(caller=SimpleNamespace(scopes=[KeyScope.WRITE], namespace=""), expires=1.0),
        headers=Headers({"Idempotency-Key": "k"}),
        method="POST",
        scope={"path": "/v1/forward", "query_string": b""},
    )


async def answer_call(store: Store, outcome: Response | Refusal) -> Response:
    async def answer(_: Repetition | None) -> Response:
        if isinstance(outcome, Refusal):
            raise outcome
        return outcome

    return await answer_once(request(), store, answer)  # type: ignore[arg-type]


@pytest.mark.parametrize("outcome", [Response(status_code=409), under_way()], ids=["answered", "raised"])
@running
async def test_second_call_gets_the_answer_of_the_first(outcome: Response | Refusal) -> None:
    store = Store(None, FIRST)
    response = await answer_call(store, outcome)
    assert (response.status_code, response.body, response.headers["idempotency-replayed"]) == (201, b"first", "true")
    assert not store.under_way


@running
async def test_other_conflict_is_returned() -> None:
    store = Store(None, None)
    assert (await answer_call(store, Response(status_code=409))).status_code == 409
    assert not store.under_way
    with pytest.raises(Refusal, match="still in progress"):
        await answer_call(Store(None, None), under_way())


@running
async def test_other_outcome_is_returned() -> None:
    store = Store(None)
    assert (await answer_call(store, Response(status_code=412))).status_code == 412
    with pytest.raises(Refusal, match="gone"):
        await answer_call(Store(None), Refusal("not_found", "gone"))
    assert not store.under_way
