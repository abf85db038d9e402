"""Hessians as one matrix over all nodes of `wrt`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conftest import Client
from tests.service.api.safetensors_support import unpacked
from tests.service.support import Json, feed, node, problem, request

A, B = np.array([[0.3, -1.2, 0.7], [1.1, 0.4, -0.6]]), np.array([0.5, -0.25, 2.0])
#: Σ sin(A b)
SINES = request(
    node("parameter"), node("parameter"), node("matmul", 0, 1), node("sin", 2), node("sum", 3),
    feeds=[feed(0, [2, 3], A.ravel().tolist()), feed(1, [3], B.tolist())],
)  # fmt: skip


def exact() -> np.ndarray[Any, Any]:
    """The Hessian by A (row-major), then b, by hand: f″ = −sin y, f′ = cos y at y = A b."""
    y = A @ B
    matrix = np.zeros((9, 9))
    for i in range(2):
        rows = slice(3 * i, 3 * i + 3)
        matrix[rows, rows] = -np.sin(y[i]) * np.outer(B, B)
        mixed = -np.sin(y[i]) * np.outer(B, A[i]) + np.cos(y[i]) * np.eye(3)
        matrix[rows, 6:], matrix[6:, rows] = mixed, mixed.T
        matrix[6:, 6:] -= np.sin(y[i]) * np.outer(A[i], A[i])
    return matrix


def asked(client: Client, **fields: Any) -> Json:
    response = client.post("/v1/hessian", json={**SINES, **fields})
    assert response.status_code == 200, response.text
    answer: Json = response.json()
    return answer


def matrix_of(answer: Json) -> np.ndarray[Any, Any]:
    tensor = answer["matrix"]["tensor"]
    return np.array(tensor["data"]).reshape(tensor["shape"])


def test_matrix_matches_the_closed_form(client: Client) -> None:
    for _ in range(3):  # planned, cached, and from a template
        answer = asked(client, layout="matrix")
        assert answer["hessian"] == []
        assert answer["matrix"]["offsets"] == [{"node": 0, "offset": 0, "size": 6}, {"node": 1, "offset": 6, "size": 3}]
        np.testing.assert_allclose(matrix_of(answer), exact(), atol=1e-14)


def test_order_of_wrt_is_the_order_of_rows(client: Client) -> None:
    answer = asked(client, layout="matrix", wrt=[1, 0])
    assert [place["node"] for place in answer["matrix"]["offsets"]] == [1, 0]
    order = [6, 7, 8, 0, 1, 2, 3, 4, 5]
    np.testing.assert_allclose(matrix_of(answer), exact()[np.ix_(order, order)], atol=1e-14)


def test_blocks_are_the_default(client: Client) -> None:
    plain, stated = asked(client), asked(client, layout="blocks")
    assert "matrix" not in plain
    assert plain["hessian"] == stated["hessian"]
    whole, starts = matrix_of(asked(client, layout="matrix")), {0: slice(0, 6), 1: slice(6, 9)}
    for block in plain["hessian"]:
        part = whole[starts[block["row"]], starts[block["column"]]]
        np.testing.assert_array_equal(part.ravel(), block["tensor"]["data"])


def test_matrix_of_one_node_without_second_derivatives_is_zero(client: Client) -> None:
    linear = request(node("parameter"), node("sum", 0), feeds=[feed(0, [2, 2], [1, 2, 3, 4])])
    answer = client.post("/v1/hessian", json={**linear, "layout": "matrix"}).json()
    np.testing.assert_array_equal(matrix_of(answer), np.zeros((4, 4)))


def test_matrix_in_safetensors(client: Client) -> None:
    accept = {"Accept": "application/vnd.safetensors"}
    response, tensors = unpacked(client.post("/v1/hessian", json={**SINES, "layout": "matrix"}, headers=accept).content)
    assert response["matrix"] == {"offsets": asked(client, layout="matrix")["matrix"]["offsets"]}
    np.testing.assert_allclose(tensors["matrix"], exact(), atol=1e-14)


def test_nodes_of_several_dtypes_are_refused(client: Client) -> None:
    mixed = request(
        node("parameter"), node("parameter"), node("cast", 1, dtype="float64"), node("mul", 0, 2), node("sum", 3),
        feeds=[feed(0, [2], [1, 2]), feed(1, [2], [1, 2], "float32")],
    )  # fmt: skip
    report = problem(client.post("/v1/hessian", json={**mixed, "layout": "matrix"}), 422, "invalid_field")
    assert report["detail"] == (
        "a matrix has one dtype, but the nodes in wrt have float64, float32: cast them, or ask for blocks"
    )


@pytest.mark.parametrize("layout", ["rows", 1, []])
def test_unknown_layouts_are_refused(client: Client, layout: object) -> None:
    report = problem(client.post("/v1/hessian", json={**SINES, "layout": layout}), 422, "invalid_field")
    assert report["pointer"] == "/layout"
    assert "must be one of blocks, matrix" in report["detail"]
