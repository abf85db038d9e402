"""Resident tensors: put, get, delete, conditions, pages, and as feeds and results of calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gradserve_client as gs
from tests.conftest import RunningServer


@pytest.fixture
def client(server: RunningServer) -> Iterator[gs.Client]:
    """A client of a server without tensors."""
    with gs.Client(server.url) as client:
        for tensor in [*client.tensors()]:
            client.delete(tensor)
        yield client


@pytest.mark.parametrize("form", ["json", "base64", "safetensors", None])
def test_put_and_get(client: gs.Client, form: Any) -> None:
    array = np.array([[1.5, np.nan], [-0.0, np.inf]], np.float16)
    handle = client.put("a", array, form=form)
    assert (handle.dtype, handle.shape, handle.nbytes, handle.durable) == ("float16", (2, 2), 8, True)
    fetched = client.get(handle, form=form)
    assert fetched.array.tobytes() == array.tobytes()
    assert fetched.handle.etag == handle.etag


def test_conditions(client: gs.Client) -> None:
    first = client.put("a", [1.0], if_none_match="*")
    with pytest.raises(gs.ConditionError):
        client.put("a", [2.0], if_none_match="*")
    second = client.put("a", [2.0], if_match=first)
    with pytest.raises(gs.ConditionError):
        client.put("a", [3.0], if_match=first)
    with pytest.raises(gs.ConditionError):
        client.get("a", if_match=first)
    with pytest.raises(gs.ConditionError):
        client.delete("a", if_match=first.etag)
    assert client.get_if_changed(second) is None
    changed = client.get_if_changed(first)
    assert changed is not None
    assert changed.array.tolist() == [2.0]
    assert client.delete(second, if_match=second).etag == second.etag
    with pytest.raises(gs.NotFoundError):
        client.get("a")


def test_tensors_are_listed_page_by_page(client: gs.Client) -> None:
    for name in "abcde":
        client.put(name, [1.0])
    assert [tensor.name for tensor in client.tensors(limit=2)] == [*"abcde"]


def test_training_step_on_resident_parameters(client: gs.Client) -> None:
    graph = gs.Graph()
    w = graph.parameter("w")
    loss = (w * w).sum()
    after = w - loss.grad(w) * 0.25
    handle = client.put("w", np.array([4.0, -2.0]))
    model = client.register(graph)
    stored = model.forward({w: handle}, outputs=[loss], store={after: "w"}).stored[after]
    assert stored.name == "w"
    assert stored.etag != handle.etag
    assert client.get(stored).array.tolist() == [2.0, -1.0]
    with pytest.raises(gs.ConditionError):
        model.forward({w: stored}, store={after: gs.Store("w", if_match=handle.etag)})
    soon = model.forward({w: stored}, store={after: gs.Store("new", if_match="", durable=False)}).stored[0]
    assert soon.durable is False
    assert soon.written_within_ms is not None
    assert client.get("new").array.tolist() == [1.0, -0.5]


def test_missing_tensor_names_its_node(client: gs.Client) -> None:
    graph = gs.Graph()
    w = graph.parameter("w")
    model = client.register(graph)
    with pytest.raises(gs.NotFoundError) as caught:
        model.forward({w: gs.Resident("absent", "")})
    assert caught.value.node == 0
