"""Jobs and replies: their defaults, tensors that a job has consulted, and refusals as replies."""

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


def test_job_defaults() -> None:
    task = job()
    assert (task.body_type, task.answer_type, task.tenant, task.namespace) == (JSON, JSON, "", "")
    assert (task.graph, task.graph_bytes, task.memory, task.subject) == (None,) * 4
    assert task.stop is NEVER
    assert not task.stop[0]


def test_equal_jobs_are_distinct() -> None:
    """The pool identifies jobs by identity."""
    assert job() != job()
    assert len({job(): 1, job(): 2}) == 2


def test_lookup_of_a_missing_tensor_counts_as_consulted() -> None:
    version = Version("tag", np.ones(2))
    versions: dict[str, Version] = {"w": version}
    for name, expected in (("v", None), ("w", version)):
        task = job()
        before = task.consulted
        task.resident = versions.get
        assert task.tensor(name) is expected
        assert (before, task.consulted) == (False, True)


def test_body_joins_the_parts_in_order() -> None:
    assert Reply(200, JSON, [b"a", memoryview(b"bc"), b"", b"d"]).body == b"abcd"
    assert Reply(200, JSON, []).body == b""


def test_reply_defaults() -> None:
    reply = Reply(200, JSON, [])
    reply.release()
    assert (reply.headers, reply.stored, reply.stored_data, reply.claim, reply.recycle) == ((), (), (), None, None)
    assert not any((reply.cached, reply.consulted, reply.begun))


@pytest.mark.parametrize("recycle", [None, "memory"])
def test_refusal_becomes_a_problem_with_headers(recycle: str | None) -> None:
    reply = refused(Refusal("queue_full", "too many", retry_after=7), "id of it", recycle)
    problem = orjson.loads(reply.body)
    assert (reply.status, reply.media_type, reply.headers) == (503, PROBLEM, (("Retry-After", "7"),))
    assert (problem["code"], problem["detail"], problem["request_id"]) == ("queue_full", "too many", "id of it")
    assert reply.recycle == recycle
