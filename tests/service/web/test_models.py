"""Models over HTTP: put, get, refusals with all errors at once, conditions, pages, and graphs in use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from service.web.model_routes import MODELS
from tests.conftest import Client
from tests.service.support import Json, node, problem, request, tensor
from tests.service.web.tensors_support import KIND, put

#: x ⋅ w + b, the mean of its squares, and an unused leaf
LINEAR = request(
    node("input"), node("parameter"), node("parameter"), node("input"),
    node("matmul", 0, 1), node("add", 4, 2), node("square", 5), node("mean", 6),
)["graph"]  # fmt: skip
X: Json = {"name": "x", "node": 0, "dtype": "float64", "shape": [-1, 3]}
Y: Json = {"name": "y", "node": 5}
LOSS: Json = {"name": "loss", "node": 7}
BOUND: list[Json] = [{"node": 1, "tensor_id": "w"}, {"node": 2, "tensor_id": "b"}]


@pytest.fixture
def client(empty_client: Client) -> Client:
    """A client of a server that stores only the tensors w and b."""
    put(empty_client, "w", tensor([3, 2], [1, 2, 3, 4, 5, 6]))
    put(empty_client, "b", tensor([2], [0.5, -0.5]))
    return empty_client


def register_graph(client: Client, graph: Json = LINEAR) -> str:
    """Register a graph and return its id."""
    graph_id: str = client.post("/v1/graphs", json={"graph": graph}).json()["graph_id"]
    return graph_id


def model_body(graph_id: str, **changed: Any) -> Json:
    """Build the body that puts a model."""
    return {"graph_id": graph_id, "inputs": [X], "outputs": [Y, LOSS], "bound": BOUND} | changed


def put_model(client: Client, name: str, body: Json, **more: Any) -> httpx.Response:
    """Put a model."""
    return client.request("PUT", f"{MODELS}/{name}", json=body, **more)


class TestPutAndGet:
    """Putting, reading and deleting one model."""

    def test_model_reads_as_it_was_put(self, client: Client) -> None:
        graph_id = register_graph(client)
        answer = put_model(client, "linear", model_body(graph_id, description="a line"))
        assert answer.status_code == 201, answer.text
        stored = answer.json()
        assert stored == {
            "name": "linear", "etag": stored["etag"], "graph_id": graph_id, "description": "a line",
            "inputs": [X],
            "outputs": [Y | {"dtype": "float64", "shape": [-1, 2]}, LOSS | {"dtype": "float64", "shape": []}],
            "bound": [BOUND[0] | {"dtype": "float64", "shape": [3, 2]}, BOUND[1] | {"dtype": "float64", "shape": [2]}],
        }  # fmt: skip
        assert answer.headers["etag"] == f'"{stored["etag"]}"'
        response = client.get(f"{MODELS}/linear")
        assert (response.json(), response.headers["etag"]) == (stored, answer.headers["etag"])
        head = client.request("HEAD", f"{MODELS}/linear")
        assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", answer.headers["etag"])

    def test_second_version_replaces_the_first(self, client: Client) -> None:
        graph_id = register_graph(client)
        first = put_model(client, "m", model_body(graph_id))
        second = put_model(client, "m", model_body(graph_id, outputs=[LOSS]))
        assert (first.status_code, second.status_code) == (201, 200)
        assert first.json()["etag"] != second.json()["etag"]
        assert client.get(f"{MODELS}/m").json() == second.json()

    def test_fields_may_be_in_any_order(self, client: Client) -> None:
        body = model_body(register_graph(client), description='","inputs":[')
        backwards = dict(reversed(body.items()))
        assert put_model(client, "m", backwards).status_code == 201
        assert client.get(f"{MODELS}/m").json()["description"] == '","inputs":['

    def test_model_without_bound_leaves_or_inputs(self, client: Client) -> None:
        graph_id = register_graph(client, request(node("full", shape=[2], fill=3.0), node("square", 0))["graph"])
        stored = put_model(client, "m", {"graph_id": graph_id, "inputs": [], "outputs": [{"name": "y", "node": 1}]})
        assert stored.json()["bound"] == []
        assert stored.json()["outputs"] == [{"name": "y", "node": 1, "dtype": "float64", "shape": [2]}]

    def test_node_may_have_two_output_names(self, client: Client) -> None:
        stored = put_model(client, "m", model_body(register_graph(client), outputs=[Y, Y | {"name": "z"}])).json()
        assert [output["shape"] for output in stored["outputs"]] == [[-1, 2], [-1, 2]]

    def test_delete_keeps_the_graph_and_tensors(self, client: Client) -> None:
        graph_id = register_graph(client)
        stored = put_model(client, "m", model_body(graph_id)).json()
        gone = client.request("DELETE", f"{MODELS}/m")
        assert (gone.status_code, gone.json()) == (200, stored)
        for method in ("GET", "DELETE"):
            assert problem(client.request(method, f"{MODELS}/m"), 404, "not_found")["got"] == "m"
        assert client.get(f"/v1/graphs/{graph_id}").status_code == 200
        assert client.get("/v1/tensors/w").status_code == 200

    @pytest.mark.parametrize("name", ["-w", ".w", "a/b", "ä", "a" * 129, "%00"])
    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
    def test_invalid_name_is_refused(self, client: Client, method: str, name: str) -> None:
        answer = client.request(method, f"{MODELS}/{name}", json=model_body("0" * 64))
        assert answer.status_code in (400, 404, 422), answer.text
        assert answer.json()["code"] in ("bad_request_framing", "not_found", "invalid_field")


class TestFreeExtents:
    """Extents of -1, which stand for any extent."""

    def test_only_dependent_output_extents_are_free(self, client: Client) -> None:
        nodes = [
            node("input"),
            node("input"),
            node("cat", 0, 1, axis=0),
            node("transpose", 2),
            node("sum", 2, axes=[0]),
        ]
        free = [{"name": n, "node": i, "dtype": "float32", "shape": [-1, 4]} for i, n in enumerate("ab")]
        outputs = [{"name": f"o{i}", "node": i} for i in (2, 3, 4)]
        graph_id = register_graph(client, request(*nodes)["graph"])
        stored = put_model(client, "m", {"graph_id": graph_id, "inputs": free, "outputs": outputs}).json()
        assert [output["shape"] for output in stored["outputs"]] == [[-1, 4], [4, -1], [4]]
        assert {output["dtype"] for output in stored["outputs"]} == {"float32"}

    def test_graph_that_fits_only_some_extents_is_refused(self, client: Client) -> None:
        graph_id = register_graph(client, request(node("input"), node("reshape", 0, shape=[2, 2]))["graph"])
        body = {
            "graph_id": graph_id,
            "inputs": [{"name": "x", "node": 0, "dtype": "float64", "shape": [-1, 2]}],
            "outputs": [{"name": "y", "node": 1}],
        }
        refused = problem(put_model(client, "m", body), 422, "shape_mismatch")
        assert refused["detail"].startswith("with 3 for each free extent, node 1")
        assert refused["node"] == 1

    @pytest.mark.parametrize("shape", [[-2, 3], [-1, -7], [1] * 40])
    def test_invalid_extent_is_refused(self, client: Client, shape: list[int]) -> None:
        answer = put_model(client, "m", model_body(register_graph(client), inputs=[X | {"shape": shape}]))
        report = answer.json()
        assert (answer.status_code, report["code"]) in ((422, "invalid_field"), (413, "over_budget"))
        assert report["pointer"].startswith("/inputs/0")


#: changed fields, code, status, pointer
FAULTS: list[tuple[Json, str, int, str | None]] = [
    ({"graph_id": "0" * 64}, "not_found", 404, "/graph_id"),
    ({"outputs": []}, "invalid_field", 422, "/outputs"),
    ({"outputs": [Y, LOSS | {"name": "y"}]}, "invalid_field", 422, "/outputs/1/name"),
    ({"outputs": [Y | {"name": "a b"}]}, "invalid_field", 422, "/outputs/0/name"),
    ({"outputs": [Y | {"node": 8}]}, "bad_reference", 422, "/outputs/0/node"),
    ({"outputs": [Y | {"node": -1}]}, "bad_reference", 422, "/outputs/0/node"),
    ({"inputs": [X, X | {"node": 3}]}, "invalid_field", 422, "/inputs/1/name"),
    ({"inputs": [X, X | {"name": "z"}]}, "invalid_field", 422, "/inputs/1/node"),
    ({"inputs": [X | {"name": ""}]}, "invalid_field", 422, "/inputs/0/name"),
    ({"inputs": [X, X | {"name": "z", "node": 4}]}, "unexpected_feed", 422, "/inputs/1/node"),
    ({"inputs": [X, X | {"name": "z", "node": 99}]}, "unexpected_feed", 422, "/inputs/1/node"),
    ({"inputs": [X | {"dtype": "float31"}]}, "bad_tensor", 422, "/inputs/0/dtype"),
    ({"inputs": []}, "missing_feed", 422, "/graph/nodes/0"),
    ({"inputs": [X | {"shape": [-1, 4]}]}, "shape_mismatch", 422, "/graph/nodes/4/operands/1"),
    ({"inputs": [X | {"feed": 1}]}, "invalid_field", 422, "/inputs/0/feed"),
    ({"bound": BOUND[:1]}, "missing_feed", 422, "/graph/nodes/2"),
    ({"bound": [*BOUND, {"node": 0, "tensor_id": "w"}]}, "invalid_field", 422, "/bound/2/node"),
    ({"bound": [BOUND[0], {"node": 2, "tensor_id": "c"}]}, "not_found", 404, "/bound/1/tensor_id"),
    ({"bound": [BOUND[0], {"node": 2, "tensor_id": "-"}]}, "invalid_field", 422, "/bound/1/tensor_id"),
    ({"bound": [BOUND[0], {"node": 2}]}, "invalid_field", 422, "/bound/1/tensor_id"),
    ({"description": "x" * 1001}, "invalid_field", 422, "/description"),
]  # fmt: skip


class TestRefusals:
    """All errors are reported, and nothing is stored."""

    @pytest.mark.parametrize(("changed", "code", "status", "pointer"), FAULTS)
    def test_single_error(self, client: Client, changed: Json, code: str, status: int, pointer: str | None) -> None:
        report = problem(put_model(client, "m", model_body(register_graph(client)) | changed), status, code)
        assert report.get("pointer") == pointer
        assert "errors" not in report
        problem(client.get(f"{MODELS}/m"), 404, "not_found")

    def test_all_errors_are_reported_at_once(self, client: Client) -> None:
        inputs = [X | {"dtype": "float31"}, X | {"node": 4, "shape": [-2]}, X | {"name": "z", "node": 3}]
        body = model_body(
            register_graph(client),
            inputs=inputs,
            outputs=[Y, Y, LOSS | {"node": 70}],
            bound=[{"node": 1, "tensor_id": "c"}],
        )
        report = put_model(client, "m", body).json()
        errors = {(error["code"], error.get("pointer")) for error in report["errors"]}
        assert errors == {
            ("invalid_field", "/inputs/1/name"), ("invalid_field", "/outputs/1/name"),
            ("unexpected_feed", "/inputs/1/node"), ("bad_reference", "/outputs/2/node"),
            ("missing_feed", "/graph/nodes/2"), ("bad_tensor", "/inputs/0/dtype"),
            ("invalid_field", "/inputs/1/shape"), ("not_found", "/bound/0/tensor_id"),
        }  # fmt: skip
        assert report["detail"] == report["errors"][0]["detail"]

    def test_other_errors_are_reported_without_the_graph(self, client: Client) -> None:
        body = model_body("nothing", outputs=[Y, Y], bound=[{"node": 1, "tensor_id": "c"}])
        report = put_model(client, "m", body).json()
        pointers = [error["pointer"] for error in report["errors"]]
        assert sorted(pointers) == ["/bound/0/tensor_id", "/graph_id", "/outputs/1/name"]

    @pytest.mark.parametrize("body", [b"", b"[]", b"{", b"null", b'{"graph_id": 1}', b"\xff", b'{"graph_id": NaN}'])
    def test_malformed_body_is_refused(self, client: Client, body: bytes) -> None:
        answer = client.request("PUT", f"{MODELS}/m", content=body)
        assert answer.status_code in (400, 422), answer.text

    def test_safetensors_body_is_refused(self, client: Client) -> None:
        answer = client.request("PUT", f"{MODELS}/m", content=b"", headers={"Content-Type": KIND})
        problem(answer, 415, "unsupported_media_type")

    def test_number_of_models_is_limited(self, make_client: Callable[..., Client]) -> None:
        client = make_client(max_models=1)
        graph_id = register_graph(client, request(node("input"), node("neg", 0))["graph"])
        body = {"graph_id": graph_id, "inputs": [X | {"shape": [2]}], "outputs": [{"name": "y", "node": 1}]}
        assert put_model(client, "a", body).status_code == 201
        assert problem(put_model(client, "b", body), 507, "store_full")["expected"] == "at most 1 models"
        assert put_model(client, "a", body).status_code == 200
        client.request("DELETE", f"{MODELS}/a")
        assert put_model(client, "b", body).status_code == 201


class TestGraphsInUse:
    """A graph with models cannot be deleted."""

    def test_deleting_a_graph_in_use_names_its_models(self, client: Client) -> None:
        graph_id = register_graph(client)
        for i in range(12):
            put_model(client, f"m{i:02}", model_body(graph_id))
        answer = client.request("DELETE", f"/v1/graphs/{graph_id}")
        report = problem(answer, 409, "in_use")
        assert "m00, m01, m02, m03, m04, m05, m06, m07, m08, m09 and 2 more" in report["detail"]
        assert "retry-after" not in answer.headers
        for i in range(12):
            client.request("DELETE", f"{MODELS}/m{i:02}")
        assert client.request("DELETE", f"/v1/graphs/{graph_id}").status_code == 200

    def test_replaced_model_releases_its_former_graph(self, client: Client) -> None:
        first, second = register_graph(client), register_graph(client, {"nodes": [*LINEAR["nodes"], node("neg", 7)]})
        put_model(client, "m", model_body(first))
        put_model(client, "m", model_body(second))
        assert client.request("DELETE", f"/v1/graphs/{first}").status_code == 200
        problem(client.request("DELETE", f"/v1/graphs/{second}"), 409, "in_use")


class TestConditions:
    """If-Match, If-None-Match, Idempotency-Key."""

    def test_if_match_of_a_replaced_version_fails(self, client: Client) -> None:
        body = model_body(register_graph(client))
        etag = put_model(client, "m", body).headers["etag"]
        assert put_model(client, "m", body, headers={"If-Match": etag}).status_code == 200
        report = problem(put_model(client, "m", body, headers={"If-Match": etag}), 412, "precondition_failed")
        assert "the model “m” has the version" in report["detail"]
        gone = client.request("DELETE", f"{MODELS}/m", headers={"If-Match": etag})
        problem(gone, 412, "precondition_failed")

    def test_if_none_match_creates_only(self, client: Client) -> None:
        body, headers = model_body(register_graph(client)), {"If-None-Match": "*"}
        assert put_model(client, "m", body, headers=headers).status_code == 201
        problem(put_model(client, "m", body, headers=headers), 412, "precondition_failed")

    def test_conditional_read(self, client: Client) -> None:
        etag = put_model(client, "m", model_body(register_graph(client))).headers["etag"]
        unchanged = client.get(f"{MODELS}/m", headers={"If-None-Match": etag})
        assert (unchanged.status_code, unchanged.content, unchanged.headers["etag"]) == (304, b"", etag)
        problem(client.get(f"{MODELS}/m", headers={"If-Match": '"0"'}), 412, "precondition_failed")

    def test_repeated_call_replays_its_answer(self, client: Client) -> None:
        body, headers = model_body(register_graph(client)), {"Idempotency-Key": "once"}
        first, again = (put_model(client, "m", body, headers=headers) for _ in range(2))
        assert (again.status_code, again.json()) == (201, first.json())
        assert again.headers["idempotency-replayed"] == "true"
        assert again.headers["etag"] == first.headers["etag"]
        gone = [client.request("DELETE", f"{MODELS}/m", headers={"Idempotency-Key": "twice"}) for _ in range(2)]
        assert [answer.status_code for answer in gone] == [200, 200]


class TestPages:
    """Lists of models."""

    def test_pages_are_sorted_by_name(self, client: Client) -> None:
        body = model_body(register_graph(client))
        stored = {name: put_model(client, name, body).json() for name in ("c", "a", "b")}
        assert client.get(MODELS).json() == {"models": [stored["a"], stored["b"], stored["c"]]}
        first = client.get(f"{MODELS}?limit=2").json()
        assert first == {"models": [stored["a"], stored["b"]], "next": "b"}
        assert client.get(f"{MODELS}?limit=2&after=b").json() == {"models": [stored["c"]]}

    def test_empty_list_and_bad_queries(self, client: Client) -> None:
        assert client.get(MODELS).json() == {"models": []}
        problem(client.get(f"{MODELS}?limit=0"), 422, "invalid_field")
        problem(client.get(f"{MODELS}?of=x"), 422, "invalid_field")
