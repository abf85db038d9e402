"""Changes of the table of servers while HAProxy runs."""

from __future__ import annotations

import pytest

from service.cluster.ingress.process import HaproxyProcess
from tests.service.cluster.ingress.support import Node, RunningIngress, ingress, needs_haproxy, nodes, wait_until

pytestmark = [needs_haproxy, pytest.mark.slow]


def places(*servers: Node) -> set[tuple[str, int]]:
    return {("127.0.0.1", node.port) for node in servers}


def answering(running: RunningIngress) -> set[bytes]:
    return {running.ask("GET", "/v1/ops", Authorization=f"Bearer {number}").body for number in range(40)}


def test_servers_are_added_and_removed() -> None:
    with nodes(3) as (first, second, third), ingress(slots=3) as running:
        table = running.process.table
        assert table.ready() == []
        table.set_servers(places(first, second))
        wait_until(lambda: len(table.ready()) == 2)
        assert answering(running) == {b"node1", b"node2"}
        table.set_servers(places(second, third))
        wait_until(lambda: "gs3" in table.ready())
        assert answering(running) == {b"node2", b"node3"}
        table.set_servers(places(first, second, third))
        running.settle("gs1", "gs2", "gs3")
        assert answering(running) == {b"node1", b"node2", b"node3"}
        table.set_servers(())
        running.settle()
        assert running.ask("GET", "/v1/ops").status == 503


def test_slot_of_a_removed_server_is_reused() -> None:
    with nodes(2) as (first, second), ingress(slots=1) as running:
        running.process.table.set_servers(places(first))
        running.settle("gs1")
        running.process.table.set_servers(places(second))
        running.settle("gs1")
        assert answering(running) == {b"node2"}


def test_server_that_is_not_ready_gets_no_requests() -> None:
    """This includes the time before its first health check."""
    with nodes(1) as (node,), ingress(slots=1) as running:
        node.ready = False
        running.process.table.set_servers(places(node))
        assert running.ask("GET", "/v1/ops").status == 503
        assert node.requests == []
        node.ready = True
        running.settle("gs1")


def test_configured_servers_can_be_removed() -> None:
    with nodes(2) as (stated, more), ingress(nodes=(stated.place,), slots=2) as running:
        running.process.table.set_servers(places(stated, more))
        running.settle("gs1", "gs2")
        running.process.table.set_servers(places(more))
        running.settle("gs2")
        running.process.table.set_servers(())
        running.settle()


def test_more_servers_than_slots_are_refused() -> None:
    with nodes(2) as started, ingress(slots=1) as running:
        with pytest.raises(
            RuntimeError, match=r"^the number of servers exceeds the slots of the ingress \(1\); raise --slots$"
        ):
            running.process.table.set_servers(places(*started))
        running.settle("gs1")


def test_refusal_of_haproxy_is_reported() -> None:
    with (
        ingress() as running,
        pytest.raises(RuntimeError, match="HAProxy rejects “set server servers/gs1 addr no-such"),
    ):
        running.process.table.set_servers({("no-such-host.invalid", 1)})


def test_dead_haproxy_raises_os_error() -> None:
    with ingress() as running:
        end(running.process)
        with pytest.raises(OSError, match=r"refused|No such file"):
            running.process.table.ready()


def end(process: HaproxyProcess) -> None:
    process.drain()
    process.drain()
    process.wait()
