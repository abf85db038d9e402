"""Jobs and replies: what one is if nothing else is said, what it has looked at, and what a refusal is as a reply."""

from __future__ import annotations

import numpy as np
import orjson
import pytest

from service.api.media import JSON, PROBLEM
from service.api.residents import Version
from service.core.errors import Refusal
from service.workers.task import NEVER, Reply, Task, refused


def job() -> Task:
    return Task("forward", b"{}", "id", 1.0, 0.0)


def test_a_job_is_json_of_nobody_that_nobody_stops() -> None:
    made = job()
    assert (made.body_type, made.answer_type, made.tenant, made.namespace) == (JSON, JSON, "", "")
    assert (made.graph, made.graph_bytes, made.memory, made.subject) == (None,) * 4
    assert made.stop is NEVER
    assert not made.stop[0]


def test_two_jobs_are_two_though_they_say_the_same() -> None:
    """The pool finds them by themselves."""
    assert job() != job()
    assert len({job(): 1, job(): 2}) == 2


def test_a_job_that_asks_for_a_tensor_has_consulted_them_also_for_one_that_is_not_there() -> None:
    version = Version("tag", np.ones(2))
    known: dict[str, Version] = {"w": version}
    for name, found in (("v", None), ("w", version)):
        made = job()
        before = made.consulted
        made.resident = known.get
        assert made.tensor(name) is found
        assert (before, made.consulted) == (False, True)


def test_a_body_is_its_pieces_in_their_order() -> None:
    assert Reply(200, JSON, [b"a", memoryview(b"bc"), b"", b"d"]).body == b"abcd"
    assert Reply(200, JSON, []).body == b""


def test_a_reply_that_holds_nothing_may_be_given_back_and_says_so_of_itself() -> None:
    reply = Reply(200, JSON, [])
    reply.release()
    assert (reply.headers, reply.stored, reply.stored_data, reply.claim, reply.recycle) == ((), (), (), None, None)
    assert not any((reply.cached, reply.consulted, reply.begun))


@pytest.mark.parametrize("recycle", [None, "memory"])
def test_a_refusal_is_a_problem_with_its_headers(recycle: str | None) -> None:
    found = refused(Refusal("queue_full", "too many", retry_after=7), "id of it", recycle)
    told = orjson.loads(found.body)
    assert (found.status, found.media_type, found.headers) == (503, PROBLEM, (("Retry-After", "7"),))
    assert (told["code"], told["detail"], told["request_id"]) == ("queue_full", "too many", "id of it")
    assert found.recycle == recycle
