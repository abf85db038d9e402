"""Two server processes that share a state, on a store that serializes writes."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import httpx
import orjson
import pytest

from service.cluster.protocol import PROTOCOL_HEADER, SECRET_HEADER
from tests.guarantees.processes import workers
from tests.service.cluster.ingress.support import wait_until
from tests.service.cluster.serving import SECRET, Node, adding_one, owner_of, raced

pytestmark = pytest.mark.slow


def test_servers_see_each_others_writes(nodes: list[Node]) -> None:
    first, second = nodes
    assert first.put("w", 1).status_code < 300
    assert second.get("w").json() == first.get("w").json()
    assert second.get("w").headers["etag"] == first.get("w").headers["etag"]
    assert [node.add_one("w").json()["values"][0]["tensor"]["data"] for node in nodes] == [[2.0], [3.0]]
    assert [node.value("w") for node in nodes] == [3.0, 3.0]
    listed = [node.asked("GET", "/v1/tensors").json() for node in nodes]
    assert listed[0] == listed[1]
    big = {"dtype": "float64", "shape": [50_000], "data": [1.5] * 50_000}
    assert second.asked("PUT", "/v1/tensors/big", big).status_code == 201
    graph = {"nodes": [{"op": "input"}, {"op": "sum", "operands": [0]}]}
    body = {"feeds": [{"node": 0, "tensor_id": "big"}], "outputs": [1]}
    graph_id = second.asked("POST", "/v1/graphs", {"graph": graph}).json()["graph_id"]
    for node in (*nodes, *nodes):  # the second time from the cache
        answer = node.asked("POST", f"/v1/graphs/{graph_id}/forward", body)
        assert answer.json()["values"][0]["tensor"]["data"] == [75_000.0]
    _, other = owner_of(*nodes)
    assert other.asked("DELETE", f"/v1/graphs/{graph_id}").status_code == 200
    for node in nodes:
        assert node.asked("POST", f"/v1/graphs/{graph_id}/forward", body).status_code == 404
    assert sum(node.figure("gradserve_shards") for node in nodes) >= 1
    assert sum(node.figure('gradserve_passed_on_total{what="versions"}') for node in nodes) > 0


def test_repeated_call_runs_once_on_any_server(nodes: list[Node]) -> None:
    assert nodes[0].put("w", 1).status_code < 300
    key = {"Idempotency-Key": "the-same"}
    answers = [node.add_one("w", **key) for node in (*nodes[::-1], *nodes)]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert len({answer.content for answer in answers}) == 1
    assert nodes[0].value("w") == 2
    assert nodes[1].put("w", 5, **key).json()["code"] == "invalid_field"


def test_concurrent_calls_with_one_key_run_once(nodes: list[Node]) -> None:
    """Two servers get the call at once: it is executed once, and both return the same answer."""
    assert nodes[0].put("w", 0).status_code < 300
    rounds = 20
    with ThreadPoolExecutor(2) as threads:
        for number in range(rounds):
            key = {"Idempotency-Key": f"first-{number}"}
            answers = [*threads.map(lambda node, key=key: node.add_one("w", **key), nodes)]
            assert [answer.status_code for answer in answers] == [200, 200]
            assert len({answer.content for answer in answers}) == 1
            assert sum("idempotency-replayed" in answer.headers for answer in answers) == 1
    assert [node.value("w") for node in nodes] == [rounds, rounds]


def test_call_under_way_at_its_owner_is_a_conflict_elsewhere(nodes: list[Node]) -> None:
    """The other server returns 409, and later the first answer."""
    assert nodes[0].put("w", 0).status_code < 300
    owner, other = owner_of(*nodes)
    key = {"Idempotency-Key": "under-way"}
    stopped = workers(owner.process.pid)
    with ThreadPoolExecutor(1) as threads:
        try:
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            first = threads.submit(lambda: owner.add_one("w", **key))
            wait_until(lambda: owner.figure("gradserve_running") > 0)
            conflict = other.client.post("/v1/forward", json=adding_one("w"), headers=key)
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        assert (conflict.status_code, conflict.json()["code"]) == (409, "conflict")
        assert conflict.headers["retry-after"] == "1"
        answers = [first.result(), *(node.add_one("w", **key) for node in (other, owner))]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert len({answer.content for answer in answers}) == 1
    assert other.value("w") == 1


def test_racing_writers_replace_each_version_once(nodes: list[Node]) -> None:
    """Each winner has read the version that it replaced, and every loser gets a 412."""
    statuses = raced(nodes, 40)
    assert set(statuses) <= {200, 412}
    assert [node.value("raced") for node in nodes] == [statuses[200], statuses[200]]


@pytest.mark.smoke
def test_cluster_paths_need_the_secret_and_protocol(nodes: list[Node]) -> None:
    node = nodes[0]
    ours = {SECRET_HEADER: SECRET, PROTOCOL_HEADER: "1"}
    unknown = node.client.get("/cluster/alivf").json()

    def normalized(answer: httpx.Response) -> object:
        return {**answer.json(), "request_id": "", "got": "", "detail": ""}

    for wrong in ({}, {SECRET_HEADER: SECRET[:-1]}, {SECRET_HEADER: SECRET + "é"}):
        headers = {name: value.encode() for name, value in (ours | wrong).items()} if wrong else {}
        answer = node.client.get("/cluster/alive", headers=headers)
        assert answer.status_code == 404
        assert normalized(answer) == {**unknown, "request_id": "", "got": "", "detail": ""}
    assert node.client.get("/cluster/alive", headers=ours).status_code == 200
    for version, status in [("0", 200), ("2", 200), ("3", 409), ("", 409), ("x", 409)]:
        assert node.client.get("/cluster/alive", headers=ours | {PROTOCOL_HEADER: version}).status_code == status
    assert node.put("w", 1).status_code < 300
    head = orjson.dumps({"namespace": "", "names": ["w"], "known": [], "left": 10})
    question = len(head).to_bytes(4, "little") + head
    answers = [node.client.post("/cluster/versions", headers=ours, content=question) for node in nodes]
    by_status = {answer.status_code: (node, answer) for node, answer in zip(nodes, answers, strict=True)}
    assert set(by_status) == {200, 421}, "one has it, and the other knows who"
    assert by_status[421][1].json() == {"owner": by_status[200][0].url}


def test_killed_owner_loses_no_writes(nodes: list[Node], shared_place: str) -> None:
    """Acknowledged writes are neither lost nor repeated, and the restarted server works normally."""
    assert nodes[0].put("w", 0).status_code < 300
    owner, other = owner_of(*nodes)
    before = [other.add_one("w").status_code for _ in range(5)]
    owner.end()
    after = [other.add_one("w").status_code for _ in range(20)]
    assert {*before, *after} == {200}
    assert other.value("w") == 25
    assert other.figure("gradserve_shards") == 1
    nodes[nodes.index(owner)] = back = Node(shared_place, int(owner.url.rpartition(":")[2])).await_start()
    assert back.value("w") == 25


def test_paused_owner_does_not_use_its_old_state(nodes: list[Node]) -> None:
    """After its pause, the former owner neither answers from its old state nor writes it."""
    assert nodes[0].put("w", 0).status_code < 300
    owner, other = owner_of(*nodes)
    owner.send_signal(signal.SIGSTOP)
    assert other.put("w", 8).status_code == 200
    owner.send_signal(signal.SIGCONT)
    assert owner.value("w") == 8
    assert owner.add_one("w").json()["values"][0]["tensor"]["data"] == [9.0]
    assert other.value("w") == 9


def test_stopping_server_releases_its_shards(nodes: list[Node], shared_place: str) -> None:
    """Non-durable writes are handed over, too, and no server waits for a lease or takes over."""
    assert nodes[0].put("w", 1).status_code < 300
    owner, other = owner_of(*nodes)
    body = {"dtype": "float64", "shape": [], "data": [2.0]}
    assert owner.client.put("/v1/tensors/v", json=body, params={"durable": "false"}).status_code == 201
    before = other.figure("gradserve_takeovers_total")
    owner.end(signal.SIGTERM)
    assert (other.value("w"), other.value("v")) == (1.0, 2.0)
    assert other.figure("gradserve_takeovers_total") == before
    nodes[nodes.index(owner)] = Node(shared_place, int(owner.url.rpartition(":")[2])).await_start()
