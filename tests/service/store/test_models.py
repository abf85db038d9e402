"""The table of models, and deletion of graphs that have models."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.errors import Refusal
from service.store.changes import ALWAYS, graph_deletion, model_deletion, new_model
from service.store.tables import (
    MODEL_OVERHEAD,
    GraphStore,
    ModelTable,
    Quota,
    Registered,
    StoredModel,
    graph_of_request,
)

ROOM = Quota(100, 1 << 20)
GRAPH = Registered("g", "key", b"{}", b"{}")


def record(graph_id: str, etag: str = "0" * 16, description: str | None = None) -> bytes:
    described = {} if description is None else {"description": description}
    return orjson.dumps({"name": "m", "etag": etag, "graph_id": graph_id, **described, "inputs": [], "outputs": []})


def tables() -> tuple[GraphStore, ModelTable]:
    """Create a graph table with one graph and an empty model table."""
    graphs, models = GraphStore(ROOM), ModelTable(ROOM)
    graphs.load(("", "g"), GRAPH)
    return graphs, models


@given(st.text() | st.just(',"inputs":') | st.just('","inputs":['))
def test_record_is_parsed_with_any_description(description: str) -> None:
    model = StoredModel.parse(record("g", "e" * 16, description))
    assert (model.graph_id, model.etag) == ("g", "e" * 16)
    assert graph_of_request(orjson.dumps({"graph_id": description, "inputs": []})) == description


def test_size_of_a_model() -> None:
    model = StoredModel.parse(record("g"))
    table = ModelTable(ROOM)
    table.load(("", "m"), model)
    assert table.nbytes == MODEL_OVERHEAD + len(model.record)


@given(st.text())
def test_unknown_name_is_not_found_and_shown_safely(name: str) -> None:
    with pytest.raises(Refusal) as refused:
        ModelTable(ROOM).get("", name)
    assert refused.value.code == "not_found"
    assert (refused.value.got or "").isprintable()


def test_graph_with_a_pending_model_cannot_be_deleted() -> None:
    graphs, models = tables()
    change = new_model(models, graphs, ("", "m"), StoredModel.parse(record("g")), ALWAYS)
    assert change.check(None)
    models.expect(change.key, change.value)
    with pytest.raises(Refusal, match="the graph g is used by the model m;") as refused:
        graph_deletion(graphs, models, ("", "g")).check(GRAPH)
    assert refused.value.code == "in_use"
    models.drop(change.key)
    assert graph_deletion(graphs, models, ("", "g")).check(GRAPH)


def test_graph_with_a_model_being_deleted_can_be_deleted() -> None:
    graphs, models = tables()
    models.load(("", "m"), StoredModel.parse(record("g")))
    change = model_deletion(models, ("", "m"), ALWAYS)
    models.expect(change.key, None)
    assert graph_deletion(graphs, models, ("", "g")).check(GRAPH)


def test_model_of_a_graph_being_deleted_is_refused() -> None:
    graphs, models = tables()
    graphs.expect(("", "g"), None)
    with pytest.raises(Refusal, match="there is no graph") as refused:
        new_model(models, graphs, ("", "m"), StoredModel.parse(record("g")), ALWAYS).check(None)
    assert refused.value.pointer == "/graph_id"


def test_models_of_another_namespace_do_not_block_deletion() -> None:
    graphs, models = tables()
    models.load(("other", "m"), StoredModel.parse(record("g")))
    assert graph_deletion(graphs, models, ("", "g")).check(GRAPH)
