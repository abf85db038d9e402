"""Requests for the same plan, executed as one: each is answered as if alone."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
import pytest

from service.pool.cost_model import QUICK
from service.pool.pool import awaited
from service.pool.process_pool import ProcessPool
from service.settings import Settings
from service.transport import frames
from service.transport.control_page import ControlPage
from service.transport.frames import Inbox, Whereabouts
from service.transport.job import Job, Reply
from service.transport.shared_buffers import DescriptorChannel
from service.wire.media import JSON, SAFETENSORS
from service.worker.child import computing
from service.worker.sharing import FEWEST
from service.worker.sharing_loop import SharingLoop
from service.worker.together import Together
from service.worker.worker import KnownRequest, Worker
from service.worker.worker_loop import Opened
from tests.service.pool.pools import running, settled, together, until
from tests.service.support import Json, feed, node, request

SETTINGS = Settings(device="cpu", workers=1, compile="off", coalesce="on", log_level="error")
WORKER = Worker(SETTINGS)
EXTENT = 8
#: coalesced beside alone, relatively, in float64
TOLERANCE = 1e-12


def norm(values: Sequence[float], **more: Any) -> Json:
    """The value and the gradient of log(sum(exp(x · x))), the sum by a matrix product."""
    nodes = [node("parameter"), node("mul", 0, 0), node("exp", 1), node("matmul", 2, 2), node("log", 3)]
    return request(*nodes, feeds=[feed(0, [EXTENT], list(values))], **more)


def taken(index: int) -> Json:
    """The element of x at an index that is fed, and its gradient; refused where there is none."""
    nodes = [node("parameter"), node("input"), node("gather", 0, 1, axis=0), node("sum", 2)]
    return request(*nodes, feeds=[feed(0, [EXTENT], list(range(EXTENT))), feed(1, [1], [index], "int64")])


def numbers(count: int, seed: int = 0) -> list[list[float]]:
    drawn: list[list[float]] = np.random.default_rng(seed).uniform(-1, 1, (count, EXTENT)).tolist()
    return drawn


def asked(body: Json, accepted: str = JSON, seconds: float = 60.0, call: str = "gradients") -> Job:
    return Job(call, json.dumps(body).encode(), "id", seconds, time.monotonic() + seconds, JSON, accepted)


def tensors(reply: Reply) -> list[list[float]]:
    """All tensors of an answer in JSON."""
    assert reply.status == 200, reply.body
    answer = orjson.loads(reply.body)
    return [entry["tensor"]["data"] for name in ("values", "gradients") for entry in answer[name]]


def assert_like(found: Reply, alone: Reply) -> None:
    one, other = tensors(found), tensors(alone)
    assert len(one) == len(other) == 2
    for left, right in zip(one, other, strict=True):
        np.testing.assert_allclose(left, right, TOLERANCE, 0)


def at_once(
    jobs: Sequence[Job], bound: float | None = QUICK, stopped: Sequence[int] = (), before: bytes = b""
) -> list[Reply | None]:
    """What a worker says to jobs that it finds in its socket, behind other frames; None where it skips one."""
    (front, back), (ours, theirs), page = socket.socketpair(), socket.socketpair(), ControlPage.create()
    with front, back, ours, theirs:
        sent = [frames.job_frame(k, one, Whereabouts(0, len(one.body)), bound, None) for k, one in enumerate(jobs)]
        front.sendall(before + b"".join(sent))
        front.shutdown(socket.SHUT_WR)
        for slot in stopped:
            page.stops[slot][0] = 1
        opened = Opened(WORKER.attempt, "cpu", WORKER.vitals, Together(WORKER, SETTINGS))
        SharingLoop(back, DescriptorChannel(theirs), page, opened).serve()
        back.close()
        said: dict[int, Reply | None] = {}
        inbox = Inbox()
        while data := front.recv(1 << 20):
            for kind, frame, at in inbox.feed(data):
                reply = frames.read_reply(frame, at, 0.0)[0] if kind == frames.REPLY else None
                said[frames.slot_of(frame, at) if reply else frames.read_note(frame, at)] = reply
    assert not page.executed
    page.close()
    return [said[slot] for slot in range(len(jobs))]


def answered(replies: Sequence[Reply | None]) -> list[Reply]:
    found = [reply for reply in replies if reply is not None]
    assert len(found) == len(replies)
    return found


@pytest.fixture(autouse=True)
def _known() -> None:
    """Requests of these kinds have come before."""
    for body in (norm([0.5] * EXTENT), taken(0)):
        for accepted in (JSON, SAFETENSORS):
            assert WORKER(asked(body, accepted)).status == 200


@pytest.mark.parametrize("count", [FEWEST, 5, 8, 33, 64])
def test_answers_are_those_alone(count: int) -> None:
    bodies = [norm(values) for values in numbers(count)]
    found = answered(at_once([asked(body) for body in bodies]))
    assert all(reply.coalesced and reply.cached for reply in found)
    for reply, body in zip(found, bodies, strict=True):
        assert_like(reply, WORKER(asked(body)))


def test_fewer_are_done_alone() -> None:
    found = answered(at_once([asked(norm(values)) for values in numbers(FEWEST - 1)]))
    assert not any(reply.coalesced for reply in found)


def test_what_is_bound_to_be_alone_is() -> None:
    """The pool says so of long jobs, and of those that died in company, by giving them all the time there is."""
    found = answered(at_once([asked(norm(values)) for values in numbers(8)], bound=None))
    assert [(reply.status, reply.coalesced) for reply in found] == [(200, False)] * 8


def test_plans_do_not_mix_and_answers_are_in_the_form_that_was_asked_for() -> None:
    forms = [JSON, SAFETENSORS]
    jobs = [asked(norm(v) if k % 3 else taken(k % EXTENT), forms[k % 2]) for k, v in enumerate(numbers(24))]
    again = [asked(norm(v) if k % 3 else taken(k % EXTENT), forms[k % 2]) for k, v in enumerate(numbers(24))]
    found = answered(at_once(jobs))
    assert all(reply.coalesced for reply in found)
    for reply, job in zip(found, again, strict=True):
        alone = WORKER(job)
        assert reply.media_type == alone.media_type == job.accepted
        if job.accepted == JSON:
            assert_like(reply, alone)


def test_one_that_is_new_or_odd_is_answered_beside_them() -> None:
    bodies = [norm(values) for values in numbers(8)]
    odd = [SQUARE, {}, norm([1.0] * 3), norm([1e400] * EXTENT) | {"encoding": "none"}]
    found = answered(at_once([*map(asked, bodies[:4]), *map(asked, odd), *map(asked, bodies[4:])]))
    together_, apart = found[:4] + found[8:], found[4:8]
    assert all(reply.coalesced for reply in together_)
    assert not any(reply.coalesced for reply in apart)
    for reply, body in zip(apart, odd, strict=True):
        assert reply.status == WORKER(asked(body)).status
    for reply, body in zip(together_, bodies, strict=True):
        assert_like(reply, WORKER(asked(body)))


SQUARE = request(node("parameter"), node("square", 0), node("sum", 1), feeds=[feed(0, [3], [1, 2, 3])])


@pytest.mark.parametrize("bad", [0, 5, 7])
def test_a_bad_index_is_its_own_error(bad: int) -> None:
    found = answered(at_once([asked(taken(99 if k == bad else k)) for k in range(8)]))
    problem = orjson.loads(found[bad].body)
    assert (problem["code"], problem["node"]) == ("index_out_of_range", 2)
    assert problem == orjson.loads(WORKER(asked(taken(99))).body)
    for k in set(range(8)) - {bad}:
        assert tensors(found[k]) == [[k], [float(i == k) for i in range(EXTENT)]]


def test_infinities_and_nothing_stay_where_they_are() -> None:
    bodies = [norm(values) for values in numbers(8)]
    bodies[3] = norm([1e200] * EXTENT)
    found = answered(at_once([asked(body) for body in bodies]))
    for k, (reply, body) in enumerate(zip(found, bodies, strict=True)):
        alone = WORKER(asked(body))
        if k == 3:
            assert orjson.loads(reply.body)["gradients"] == orjson.loads(alone.body)["gradients"]
        else:
            assert_like(reply, alone)


def test_who_is_late_gets_that_for_an_answer() -> None:
    jobs = [asked(norm(values)) for values in numbers(8)]
    reads = [WORKER.read_job(job, QUICK) for job in jobs]
    tasks = [task for task in reads if isinstance(task, KnownRequest)]
    assert len(tasks) == 8
    sharing = Together(WORKER, SETTINGS)
    assert sharing.groups(tasks) == [list(range(8))]
    tasks[2].context.deadline.at = 0.0
    tasks[6].context.deadline.stop = b"\1"
    replies = sharing.run_tasks(tasks)
    assert replies is not None
    assert [reply.status for reply in replies] == [200, 200, 504, 200, 200, 200, 504, 200]
    for task in tasks:
        task.context.deadline.at = 0.0
    assert sharing.run_tasks(tasks) is None


def test_who_has_left_is_skipped() -> None:
    bodies = [norm(values) for values in numbers(8)]
    found = at_once([asked(body) for body in bodies], stopped=[0, 5])
    assert [k for k, reply in enumerate(found) if reply is None] == [0, 5]
    for reply, body in zip(found, bodies, strict=True):
        if reply is not None:
            assert reply.coalesced
            assert_like(reply, WORKER(asked(body)))


def test_a_group_takes_no_longer_than_one_may() -> None:
    """By what its plan says; with half of the time there are half as many in a group, or fewer."""
    tasks = [WORKER.read_job(asked(norm(values)), QUICK) for values in numbers(64)]
    again = [task for task in tasks if isinstance(task, KnownRequest)]
    sharing = Together(WORKER, SETTINGS)
    largest = sharing._many(again[0], 64).seconds
    assert list(map(len, sharing.groups(again))) == [64]
    for task in again:
        task.context.most_seconds = 0.9 * largest
    sizes = list(map(len, sharing.groups(again)))
    assert sizes == [32, 32]
    for task in again:
        task.context.most_seconds = 0.0
    assert sharing.groups(again) == []


def test_its_time_is_its_share() -> None:
    """Parts add up to the whole, however many were read before it was executed."""
    started = time.monotonic()
    found = answered(at_once([asked(norm(values)) for values in numbers(64)]))
    elapsed = time.monotonic() - started
    worked = [sum(reply.timings[1:4]) + reply.timings.encode for reply in found]
    assert min(min(reply.timings) for reply in found[1:]) >= 0
    assert sum(worked) <= elapsed
    shares = {round(1000 * reply.timings.execute, 4) for reply in found}
    said = {orjson.loads(reply.body)["stats"]["execute_ms"] for reply in found}
    assert len(shares | said) == 1


def test_a_plan_that_cannot_be_made_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def failing(*_: Any) -> None:
        tried.append(1)
        raise ZeroDivisionError

    monkeypatch.setattr("service.worker.together.plan_of_many", failing)
    tasks = [task for v in numbers(4) if isinstance(task := WORKER.read_job(asked(norm(v)), QUICK), KnownRequest)]
    sharing = Together(WORKER, SETTINGS)
    assert sharing.groups(tasks) == sharing.groups(tasks) == []
    assert len(tried) == 1


@pytest.mark.slow
def test_only_where_it_is_wanted() -> None:
    assert computing(SETTINGS).sharing is not None
    assert computing(SETTINGS.model_copy(update={"coalesce": "off"})).sharing is None
    assert computing(SETTINGS.model_copy(update={"determinism": "bitwise"})).sharing is None
    assert Settings().coalesce == "off"


async def answers(bodies: Sequence[Json], rounds: int, **stated: Any) -> list[list[Reply]]:
    """What a pool of real workers replies to all of them at once, round after round."""
    pool = ProcessPool(Settings(device="cpu", workers=1, log_level="error", **stated))
    await pool.start()
    try:
        found = [list(await together(*(awaited(pool, asked(body)) for body in bodies))) for _ in range(rounds)]
        await until(lambda: settled(pool))
        return found
    finally:
        await pool.close(5)


@pytest.mark.slow
@running
async def test_64_callers_at_once() -> None:
    """On and off give equal answers; and only where it is on and may be are any executed together."""
    bodies = [norm(values) for values in numbers(64, 1)]
    bodies[17], bodies[40] = taken(3), taken(-99)
    on, off, bitwise = await asyncio.gather(
        answers(bodies, 8, coalesce="on"),
        answers(bodies, 2),
        answers(bodies, 2, coalesce="on", determinism="bitwise"),
    )
    assert sum(reply.coalesced for replies in on for reply in replies) > 64
    assert not any(reply.coalesced for replies in (*off, *bitwise) for reply in replies)
    for replies in (*on, *bitwise):
        for k, (found, alone) in enumerate(zip(replies, off[0], strict=True)):
            if k == 40:
                assert found.body == alone.body
                assert orjson.loads(found.body)["code"] == "index_out_of_range"
            else:
                assert_like(found, alone)
    assert len({str(tensors(reply)) for k, reply in enumerate(on[-1]) if k != 40}) == 63


def named(array: np.ndarray) -> bytes:
    """A frame that says what the tensor x is."""
    told = frames.TensorFrame("", "x", "0" * 16, array.dtype.name, array.shape, 0, array.tobytes())
    return frames.tensor_frame(told)


def test_resident_tensors_may_be_among_the_feeds() -> None:
    nodes = [node("parameter"), node("input"), node("mul", 0, 1), node("exp", 2), node("matmul", 3, 3)]
    weights = np.linspace(0.5, 1.5, EXTENT)
    sent = [
        request(*nodes, feeds=[feed(0, [EXTENT], values), feed(1, [EXTENT], weights.tolist())]) for values in numbers(9)
    ]
    by_name = [body | {"feeds": [body["feeds"][0], {"node": 1, "tensor_id": "x"}]} for body in sent]
    assert answered(at_once([asked(by_name[0])], None, (), named(weights)))[0].status == 200
    found = answered(at_once([asked(body) for body in by_name], QUICK, (), named(weights)))
    assert all(reply.coalesced for reply in found)
    for reply, body in zip(found, sent, strict=True):
        assert_like(reply, WORKER(asked(body)))


def test_so_may_rows_of_one_and_each_has_its_own() -> None:
    nodes = [node("parameter"), node("input"), node("mul", 0, 1), node("exp", 2), node("matmul", 3, 3)]
    weights = np.linspace(0.5, 1.5, EXTENT + 9)
    sent = [
        request(*nodes, feeds=[feed(0, [EXTENT], values), feed(1, [EXTENT], weights[k : k + EXTENT].tolist())])
        for k, values in enumerate(numbers(9))
    ]
    by_rows = [
        body | {"feeds": [body["feeds"][0], {"node": 1, "tensor_id": "x", "rows": [k, k + EXTENT]}]}
        for k, body in enumerate(sent)
    ]
    assert answered(at_once([asked(by_rows[0])], None, (), named(weights)))[0].status == 200
    found = answered(at_once([asked(body) for body in by_rows], QUICK, (), named(weights)))
    assert all(reply.coalesced for reply in found)
    for reply, body in zip(found, sent, strict=True):
        assert_like(reply, WORKER(asked(body)))


def test_large_ones_are_not_copied_for_each() -> None:
    nodes = [node("input"), node("select", 0, index=3, axis=0), node("parameter"), node("mul", 1, 2), node("sum", 3)]
    large = np.arange(9000.0)
    bodies = [request(*nodes, feeds=[{"node": 0, "tensor_id": "x"}, feed(2, [2], values[:2])]) for values in numbers(8)]
    for _ in range(2):
        found = answered(at_once([asked(body) for body in bodies], QUICK, (), named(large)))
        assert [(reply.status, reply.coalesced) for reply in found] == [(200, False)] * 8


def test_what_stores_is_done_alone() -> None:
    bodies = [norm(values, store=[{"node": 4, "tensor_id": f"n{i}"}]) for i, values in enumerate(numbers(8))]
    bodies += [norm(values) for values in numbers(8)]
    for _ in range(2):
        found = answered(at_once([asked(body) for body in bodies]))
        assert [reply.coalesced for reply in found] == [False] * 8 + [True] * 8
        for i, (reply, body) in enumerate(zip(found[:8], bodies, strict=False)):
            assert [stored.name for stored in reply.stored] == [f"n{i}"]
            (value,) = np.frombuffer(reply.kept[0])
            assert value == tensors(WORKER(asked({k: v for k, v in body.items() if k != "store"})))[0][0]
