"""The store of registered graphs: what it keeps, how much, and what it says when it cannot."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import Refusal
from service.state.graphs import OVERHEAD, GraphStore, Registered


def record(graph_id: str, description: str | None = None, nodes: int = 1) -> bytes:
    described = {} if description is None else {"description": description}
    graph = {"nodes": [{"op": "input"}] * nodes}
    return orjson.dumps({"graph_id": graph_id, **described, "node_count": nodes, "graph": graph})


def graph(graph_id: str, description: str | None = None, nodes: int = 1) -> Registered:
    return Registered.of(record(graph_id, description, nodes))


def test_what_was_put_is_there_until_it_is_deleted() -> None:
    store, kept = GraphStore(10, 1 << 20), graph("a")
    assert store.put(kept) == (kept, True)
    assert store.get("a") is kept
    assert store.delete("a") is kept
    with pytest.raises(Refusal, match="there is no graph “a”"):
        store.get("a")
    with pytest.raises(Refusal, match="there is no graph “a”"):
        store.delete("a")


def test_the_first_to_come_stands() -> None:
    store = GraphStore(10, 1 << 20)
    first, second = graph("a", "one"), graph("a", "two")
    assert store.put(first) == (first, True)
    assert store.put(second) == (first, False)
    store.delete("a")
    assert store.put(second) == (second, True)


def test_the_order_is_that_of_arrival() -> None:
    store = GraphStore(10, 1 << 20)
    for name in ("b", "c", "a", "b"):
        store.put(graph(name))
    assert [kept.graph_id for kept in store] == ["b", "c", "a"]


def test_one_too_many_is_refused_and_nothing_dropped() -> None:
    store = GraphStore(2, 1 << 20)
    store.put(graph("a"))
    store.put(graph("b"))
    with pytest.raises(Refusal, match="keeps 2 graphs already") as refused:
        store.put(graph("c"))
    assert refused.value.status == 507
    assert [kept.graph_id for kept in store] == ["a", "b"]
    assert store.put(graph("b")) == (store.get("b"), False), "what is there needs no room"
    store.delete("a")
    assert store.put(graph("c"))[1]


def test_bytes_are_counted_and_given_back() -> None:
    small, large = graph("a"), graph("b", nodes=100)
    store = GraphStore(10, small.nbytes + large.nbytes)
    assert small.nbytes >= OVERHEAD + len(small.record)
    for _ in range(3):
        assert store.put(small)[1]
        assert store.put(large)[1]
        with pytest.raises(Refusal, match=f"and this one takes {graph('c').nbytes} bytes"):
            store.put(graph("c"))
        store.delete("a")
        store.delete("b")


def test_a_store_of_nothing_keeps_nothing() -> None:
    for store in (GraphStore(0, 1 << 20), GraphStore(10, 0)):
        with pytest.raises(Refusal, match="the server keeps"):
            store.put(graph("a"))


@given(st.text())
def test_a_name_that_is_no_id_is_not_found_and_shown_safely(name: str) -> None:
    with pytest.raises(Refusal) as refused:
        GraphStore(1, 1).get(name)
    assert refused.value.status == 404
    assert (refused.value.got or "").isprintable()
    assert len(refused.value.got or "") <= 64


@given(st.text() | st.just('","graph":{') | st.just(',"graph":'), st.integers(1, 3))
def test_a_summary_is_the_record_without_the_graph(description: str, nodes: int) -> None:
    made = record("0" * 64, description, nodes)
    whole, summary = orjson.loads(made), orjson.loads(Registered.of(made).summary)
    assert summary == {name: value for name, value in whole.items() if name != "graph"}


def test_a_key_tells_apart_what_an_id_does_not() -> None:
    assert graph("a", "one").key != graph("a", "two").key
    assert graph("a", "one").key == graph("a", "one").key
