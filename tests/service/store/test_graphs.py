"""The table of registered graphs."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.errors import Refusal
from service.store.tables import GraphStore, Quota, Registered


def record(graph_id: str, description: str | None = None, nodes: int = 1) -> bytes:
    described = {} if description is None else {"description": description}
    graph = {"nodes": [{"op": "input"}] * nodes}
    return orjson.dumps({"graph_id": graph_id, **described, "node_count": nodes, "graph": graph})


def graph(graph_id: str, description: str | None = None, nodes: int = 1) -> Registered:
    return Registered.parse(record(graph_id, description, nodes))


@pytest.mark.slow
@given(st.text())
def test_unknown_id_is_not_found_and_shown_safely(name: str) -> None:
    with pytest.raises(Refusal) as refused:
        GraphStore(Quota(1, 1)).get("", name)
    assert refused.value.status == 404
    assert (refused.value.got or "").isprintable()
    assert len(refused.value.got or "") <= 64


@given(st.text() | st.just('","graph":{') | st.just(',"graph":'), st.integers(1, 3))
def test_summary_is_the_record_without_the_graph(description: str, nodes: int) -> None:
    text = record("0" * 64, description, nodes)
    whole, summary = orjson.loads(text), orjson.loads(Registered.parse(text).summary)
    assert summary == {name: value for name, value in whole.items() if name != "graph"}


def test_key_depends_on_the_description() -> None:
    assert graph("a", "one").key != graph("a", "two").key
    assert graph("a", "one").key == graph("a", "one").key
