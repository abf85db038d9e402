"""Resident tensors over HTTP: put, get, conditions, pages, and calls that store."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from safetensors.numpy import load, save

from service.web.tensor_routes import TENSORS
from tests.conftest import Client
from tests.service.support import node, problem, request, tensor
from tests.service.web.tensors_support import KIND, VECTOR, put, step, value


@pytest.fixture
def client(empty_client: Client) -> Client:
    """A client of an empty server."""
    return empty_client


class TestPutAndGet:
    """Putting, reading and deleting one tensor."""

    def test_tensor_reads_as_it_was_put(self, client: Client) -> None:
        answer = put(client, "w")
        assert answer.status_code == 201
        stored = answer.json()
        assert answer.headers["etag"] == f'"{stored["etag"]}"'
        assert stored == {
            "tensor_id": "w", "dtype": "float64", "shape": [2], "bytes": 16, "etag": stored["etag"], "durable": True,
        }  # fmt: skip
        response = client.get(f"{TENSORS}/w")
        assert response.json() == {"tensor_id": "w", "etag": stored["etag"], "tensor": VECTOR}
        assert response.headers["etag"] == answer.headers["etag"]

    def test_second_version_replaces_the_first(self, client: Client) -> None:
        first, second = put(client, "w"), put(client, "w", tensor([1], [7.0]))
        assert (first.status_code, second.status_code) == (201, 200)
        assert first.headers["etag"] != second.headers["etag"]
        assert value(client, "w") == [7.0]

    @pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"])
    @pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
    def test_every_dtype_in_each_encoding(self, client: Client, dtype: str, shape: tuple[int, ...]) -> None:
        array = (np.arange(int(np.prod(shape)), dtype=np.float64) % 2).reshape(shape).astype(dtype)
        sent = client.request("PUT", f"{TENSORS}/t", content=save({"any": array}), headers={"Content-Type": KIND})
        assert sent.status_code == 201, sent.text
        packed = client.get(f"{TENSORS}/t", headers={"Accept": KIND})
        assert packed.headers["content-type"] == KIND
        assert packed.headers["etag"] == sent.headers["etag"]
        loaded = load(packed.content)["t"]
        assert (loaded.dtype, loaded.shape) == (array.dtype, array.shape)
        assert np.array_equal(loaded, array)
        for encoding in ("json", "base64"):
            again = client.get(f"{TENSORS}/t?encoding={encoding}").json()["tensor"]
            assert put(client, "u", again).status_code in (200, 201)
            assert client.get(f"{TENSORS}/u?encoding={encoding}").json()["tensor"] == again

    def test_head_matches_get(self, client: Client) -> None:
        put(client, "w")
        whole, head = client.get(f"{TENSORS}/w"), client.request("HEAD", f"{TENSORS}/w")
        assert head.status_code == 200
        same = ("etag", "content-length", "content-type")
        assert [head.headers[name] for name in same] == [whole.headers[name] for name in same]
        assert client.request("HEAD", f"{TENSORS}/v").status_code == 404

    def test_deleted_tensor_is_not_found(self, client: Client) -> None:
        stored = put(client, "w").json()
        assert client.request("DELETE", f"{TENSORS}/w").json() == stored
        problem(client.get(f"{TENSORS}/w"), 404, "not_found")
        problem(client.request("DELETE", f"{TENSORS}/w"), 404, "not_found")
        assert put(client, "w").status_code == 201

    def test_invalid_tensor_does_not_replace_the_old_one(self, client: Client) -> None:
        put(client, "w")
        problem(put(client, "w", {"dtype": "float64", "shape": [3], "data": [1]}), 422, "bad_tensor")
        problem(put(client, "w", [1, 2]), 422, "invalid_field")
        problem(client.request("PUT", f"{TENSORS}/w", content=b"{"), 400, "invalid_json")
        many = save({"a": np.zeros(1), "b": np.zeros(1)})
        answer = client.request("PUT", f"{TENSORS}/w", content=many, headers={"Content-Type": KIND})
        assert answer.status_code == 422
        assert value(client, "w") == VECTOR["data"]

    def test_non_durable_write_states_when_it_is_written(self, make_client: Callable[..., Client]) -> None:
        client = make_client(write_behind_ms=60_000)
        stored = put(client, "w?durable=false").json()
        assert (stored["durable"], stored["written_within_ms"]) == (False, 60_000)
        assert value(client, "w") == VECTOR["data"]
        assert client.get(TENSORS).json()["tensors"] == [stored]

    def test_invalid_query_is_refused(self, client: Client) -> None:
        put(client, "w")
        for method, query in [
            ("PUT", "durable=yes"), ("PUT", "encoding=json"), ("PUT", "timeout_ms=0"), ("GET", "encoding=xml"),
            ("GET", "limit=1"), ("DELETE", "durable=true"), ("GET", "encoding=json&encoding=json"),
        ]:  # fmt: skip
            answer = client.request(method, f"{TENSORS}/w?{query}", json=VECTOR if method == "PUT" else None)
            problem(answer, 422, "invalid_field")

    def test_unsupported_media_types_are_refused(self, client: Client) -> None:
        put(client, "w")
        problem(put(client, "w", headers={"Accept": KIND}), 406, "not_acceptable")
        problem(
            client.request("PUT", f"{TENSORS}/w", content=b"1", headers={"Content-Type": "text/csv"}),
            415,
            "unsupported_media_type",
        )
        problem(client.get(f"{TENSORS}/w", headers={"Accept": "text/csv"}), 406, "not_acceptable")


class TestNames:
    """Valid and invalid tensor names."""

    @pytest.mark.parametrize("name", ["a", "_", "0", "a.b-c_d", "x" * 128, "CON", "a..", "__proto__"])
    def test_valid_name_is_accepted(self, client: Client, name: str) -> None:
        assert put(client, name).status_code == 201
        assert value(client, name) == VECTOR["data"]

    @pytest.mark.parametrize(
        "name", ["%2e", "%2e%2e", "-a", ".a", "x" * 129, "a%2Fb", "%2e%2e%2fetc", "a%00", "ä", "a b", "a%0Ab", "a\\b"]
    )
    def test_invalid_name_is_refused(self, client: Client, name: str) -> None:
        for method in ("PUT", "GET", "DELETE"):
            answer = client.request(method, f"{TENSORS}/{name}", json=VECTOR if method == "PUT" else None)
            assert answer.status_code in (400, 404, 405, 422), answer.text
            assert answer.json()["code"] in ("invalid_field", "not_found", "method_not_allowed", "bad_request_framing")
        assert client.get(TENSORS).json() == {"tensors": []}


class TestConditions:
    """If-Match and If-None-Match of RFC 9110."""

    @pytest.fixture
    def etag(self, client: Client) -> str:
        created: str = put(client, "w").headers["etag"]
        return created

    @pytest.mark.parametrize(
        ("field", "stated", "holds"),
        [
            ("If-Match", "{}", True),
            ("If-Match", '"0", {}', True),
            ("If-Match", "*", True),
            ("If-Match", '"0"', False),
            ("If-Match", "W/{}", False),
            ("If-None-Match", "*", False),
            ("If-None-Match", "{}", False),
            ("If-None-Match", "W/{}", False),
            ("If-None-Match", '"0"', True),
            ("If-None-Match", '"0" , W/"1"', True),
        ],
    )
    def test_conditional_write(self, client: Client, etag: str, field: str, stated: str, *, holds: bool) -> None:
        headers = {field: stated.format(etag)}
        if holds:
            assert put(client, "w", tensor([], [3.0]), headers=headers).status_code == 200
            return
        report = problem(put(client, "w", tensor([], [3.0]), headers=headers), 412, "precondition_failed")
        assert "nothing was written" in report["detail"]
        problem(client.request("DELETE", f"{TENSORS}/w", headers=headers), 412, "precondition_failed")
        assert value(client, "w") == VECTOR["data"]

    @pytest.mark.parametrize(("field", "status"), [("If-Match", 412), ("If-None-Match", 201)])
    def test_condition_on_a_missing_tensor(self, client: Client, field: str, status: int) -> None:
        assert put(client, "v", headers={field: "*"}).status_code == status
        assert (value(client, "v") is not None) == (status == 201)

    @pytest.mark.parametrize(
        ("headers", "status"),
        [
            ({"If-None-Match": "{}"}, 304),
            ({"If-None-Match": "W/{}"}, 304),
            ({"If-None-Match": '"0", {}'}, 304),
            ({"If-None-Match": "*"}, 304),
            ({"If-None-Match": '"0"'}, 200),
            ({"If-Match": "{}"}, 200),
            ({"If-Match": '"0"'}, 412),
            ({"If-Match": "{}", "If-None-Match": "{}"}, 304),
            ({"If-Match": '"0"', "If-None-Match": "{}"}, 412),
        ],
    )
    def test_conditional_read(self, client: Client, etag: str, headers: dict[str, str], status: int) -> None:
        stated = {field: text.format(etag) for field, text in headers.items()}
        for method in ("GET", "HEAD"):
            answer = client.request(method, f"{TENSORS}/w", headers=stated)
            assert answer.status_code == status
            if status == 304:
                assert (answer.content, answer.headers["etag"]) == (b"", etag)

    @pytest.mark.parametrize("stated", ["abc", '"abc', '"a" "b"', 'w/"a"', '"a",,"b"', '*, "a"', '"é"'])
    def test_malformed_etag_list_is_refused(self, client: Client, etag: str, stated: str) -> None:
        for field in ("If-Match", "If-None-Match"):
            problem(put(client, "w", headers={field: stated.encode("latin-1")}), 422, "invalid_field")

    def test_conditional_delete(self, client: Client, etag: str) -> None:
        assert client.request("DELETE", f"{TENSORS}/w", headers={"If-Match": etag}).status_code == 200


class TestPages:
    """Lists of tensors and graphs."""

    def test_tensors_are_listed_by_name(self, client: Client) -> None:
        names = ["b", "a", "C", "_", "a.b", "0", "c"]
        for name in names:
            put(client, name)
        listed: list[str] = []
        after = ""
        while True:
            page = client.get(f"{TENSORS}?limit=3{after}").json()
            listed += [tensor["tensor_id"] for tensor in page["tensors"]]
            if "next" not in page:
                break
            assert len(page["tensors"]) == 3
            after = f"&after={page['next']}"
        assert listed == sorted(names)
        assert "next" not in client.get(f"{TENSORS}?limit=7").json()
        assert client.get(f"{TENSORS}?after=zzz").json() == {"tensors": []}

    def test_graphs_are_listed_in_registration_order(self, client: Client) -> None:
        ids = [
            client.post("/v1/graphs", json={"graph": {"nodes": [node("full", shape=[i])]}}).json()["graph_id"]
            for i in range(5)
        ]
        first = client.get("/v1/graphs?limit=2").json()
        assert ([graph["graph_id"] for graph in first["graphs"]], first["next"]) == (ids[:2], ids[1])
        second = client.get(f"/v1/graphs?limit=3&after={first['next']}").json()
        assert [graph["graph_id"] for graph in second["graphs"]] == ids[2:]
        assert "next" not in second
        problem(client.get("/v1/graphs?after=nothing"), 404, "not_found")

    @pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "limit=", "limit=1&limit=1", "offset=1"])
    def test_invalid_page_query_is_refused(self, client: Client, query: str) -> None:
        for path in (TENSORS, "/v1/graphs"):
            problem(client.get(f"{path}?{query}"), 422, "invalid_field")


class TestStore:
    """Calls that store their results."""

    def test_training_step(self, client: Client) -> None:
        put(client, "w")
        for sign in (-1.0, 1.0, -1.0):
            answer = client.post("/v1/forward", json=step())
            assert answer.status_code == 200, answer.text
            (stored,) = answer.json()["stored"]
            assert client.get(f"{TENSORS}/w").json()["etag"] == stored["etag"]
            assert value(client, "w") == [sign * x for x in VECTOR["data"]]

    def test_store_with_a_condition(self, client: Client) -> None:
        etag = put(client, "w").json()["etag"]
        problem(client.post("/v1/forward", json=step(if_match="0" * 16)), 412, "precondition_failed")
        problem(client.post("/v1/forward", json=step(if_match="")), 412, "precondition_failed")
        assert value(client, "w") == VECTOR["data"]
        assert client.post("/v1/forward", json=step(if_match=etag)).status_code == 200
        problem(client.post("/v1/forward", json=step(if_match=etag)), 412, "precondition_failed")
        assert client.post("/v1/forward", json=step(if_match="*")).status_code == 200

    def test_store_is_atomic(self, client: Client) -> None:
        put(client, "w")
        body = step()
        body["store"] = [{"node": 4, "tensor_id": "w"}, {"node": 2, "tensor_id": "v", "if_match": "*"}]
        problem(client.post("/v1/forward", json=body), 412, "precondition_failed")
        assert value(client, "w") == VECTOR["data"]
        assert value(client, "v") is None
        body["store"][1]["if_match"] = ""
        stored = client.post("/v1/forward", json=body).json()["stored"]
        assert [entry["tensor_id"] for entry in stored] == ["w", "v"]
        assert value(client, "v") == [6.25]

    def test_store_through_a_registered_graph(self, client: Client) -> None:
        put(client, "w")
        body = step()
        graph_id = client.post("/v1/graphs", json={"graph": body.pop("graph")}).json()["graph_id"]
        assert client.post(f"/v1/graphs/{graph_id}/forward", json=body).status_code == 200
        assert value(client, "w") == [-1.5, 2.0]

    def test_quotas(self, make_client: Callable[..., Client]) -> None:
        client = make_client(max_tensors=1)
        put(client, "w")
        problem(put(client, "v"), 507, "store_full")
        assert put(client, "w").status_code == 200
        client = make_client(max_tensor_bytes=2000)
        put(client, "w")
        report = problem(put(client, "w", tensor([500], [1.0] * 500)), 507, "store_full")
        assert "500" not in report["detail"].split("bytes")[0]
        assert value(client, "w") == VECTOR["data"], "the old value stands"
        body = request(node("full", shape=[500]), store=[{"node": 0, "tensor_id": "v"}])
        problem(client.post("/v1/forward", json=body), 507, "store_full")
        assert client.post("/v1/forward", json=step()).status_code == 200, "computing goes on"
