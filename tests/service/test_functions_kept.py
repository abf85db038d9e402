"""Functions in registered graphs, their names, and their constants in safetensors bodies."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pytest

from tests.conftest import Client
from tests.service.api.safetensors_support import BINARY, KIND, SENT, answered, array, body
from tests.service.support import feed, node, problem
from tests.service.with_functions import CALLED, DECAY, DOUBLE, IN, P, V, asked, function, result


def test_registered_graph_includes_its_functions(client: Client) -> None:
    response = client.post("/v1/graphs", json={"graph": DECAY["graph"]})
    assert response.status_code in (200, 201), response.text
    record = response.json()
    assert (record["node_count"], record["graph"]) == (10, DECAY["graph"])
    answer = client.post(f"/v1/graphs/{record['graph_id']}/gradients", json={"feeds": DECAY["feeds"]}).json()
    assert answer["gradients"][0]["tensor"]["data"] == [-26.0]
    assert answer["stats"]["graph_id"] == record["graph_id"]
    again = client.get(f"/v1/graphs/{record['graph_id']}").json()["graph"]
    assert client.post("/v1/graphs", json={"graph": again}).json()["graph_id"] == record["graph_id"]


def test_graph_id_ignores_aliases_and_function_names(client: Client) -> None:
    plain = {"opset": 2, "functions": [DOUBLE], "nodes": [IN]}
    nodes = [{"op": "INPUT", "name": "x"}, {"op": "MUL_SCALAR", "operands": [0], "attrs": {"scalar": 2.0}}]
    named = {"opset": 2, "functions": [function([1], *nodes, name="double")], "nodes": [IN]}
    records = [client.post("/v1/graphs", json={"graph": graph}).json() for graph in (named, plain)]
    assert records[0]["graph_id"] == records[1]["graph_id"]
    assert [each["op"] for each in records[0]["graph"]["functions"][0]["nodes"]] == ["input", "mul_scalar"]
    text = (
        '{"functions":[{"nodes":[{"op":"input"},{"attrs":{"scalar":"4000000000000000"},"op":"mul_scalar",'
        '"operands":[0]}],"outputs":[1]}],"nodes":[{"op":"input"}],"opset":2}'
    )
    assert records[0]["graph_id"] == sha256(text.encode()).hexdigest()


CONSTANT = function([2], IN, node("constant"), node("add", 0, 1))
TABLE = np.array([1.0, 2.0, 4.0])


def test_function_constants_are_read_from_safetensors(client: Client) -> None:
    request = asked([DOUBLE, CONSTANT], IN, node("call", 0, body=1), result(1), feeds=[])
    tensors = {"feeds.0": np.ones(3), "functions.1.constants.1": TABLE}
    _, values = answered(client.post("/v1/forward", content=body(request, tensors), headers=BINARY))
    assert values["values.2"].tolist() == [2, 3, 5]
    sent = body({"graph": request["graph"]}, {"functions.1.constants.1": TABLE})
    record = client.post("/v1/graphs", content=sent, headers=SENT).json()
    value = record["graph"]["functions"][1]["nodes"][1]["attrs"]["value"]
    assert array(value).tolist() == TABLE.tolist()
    feeds = {"feeds": [feed(0, [3], [0, 0, 0])]}
    answer = client.post(f"/v1/graphs/{record['graph_id']}/forward", json=feeds).json()
    assert array(answer["values"][0]["tensor"]).tolist() == TABLE.tolist()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("functions.1.constants.0", "function 1, node 0 is not a constant without a value"),
        ("functions.1.constants.3", "function 1 has 3 nodes"),
        ("functions.2.constants.0", "the graph has 2 functions"),
        ("functions.1.feeds.0", "names are ROLE.NODE, such as feeds.0"),
        ("functions.01.constants.1", "names are ROLE.NODE, such as feeds.0"),
        ("constants.1", "node 1 is not a constant without a value"),
    ],
)
def test_misplaced_function_constants_are_refused(client: Client, name: str, why: str) -> None:
    request = asked([DOUBLE, CONSTANT], IN, node("call", 0, body=1), result(1), feeds=[])
    tensors = {"feeds.0": np.ones(3), "functions.1.constants.1": TABLE, name: TABLE}
    report = problem(client.post("/v1/forward", content=body(request, tensors), headers=SENT), 422, "invalid_field")
    assert f"the body has a tensor “{name}”" in report["detail"]
    assert report["detail"].endswith(why)


def test_registered_graph_refuses_function_constants(client: Client) -> None:
    path = client.post("/v1/graphs", json={"graph": DECAY["graph"]}).headers["location"]
    sent = body({}, {"functions.0.constants.2": TABLE})
    report = problem(client.post(f"{path}/forward", content=sent, headers=SENT), 422, "invalid_field")
    assert report["got"] == "functions.0.constants.2"


def test_bad_function_constant_names_its_node(client: Client) -> None:
    request = asked([CONSTANT], *CALLED, feeds=[V])
    name = "functions.0.constants.1"
    sent = body(request, {}, **{name: {"dtype": "F64", "shape": [2], "data_offsets": [0, 8]}}) + bytes(8)
    report = problem(client.post("/v1/forward", content=sent, headers=SENT), 422, "bad_tensor")
    assert (report["function"], report["function_node"]) == (0, 1)
    assert "node" not in report


def test_function_constants_are_returned_as_safetensors(client: Client) -> None:
    graph = {"opset": 2, "functions": [CONSTANT], "nodes": [P, node("call", 0, body=0), result(1), node("sum", 2)]}
    request = {"graph": graph, "types": [{"node": 0, "dtype": "float64", "shape": [3]}]}
    sent = body(request, {"functions.0.constants.1": TABLE})
    answer, tensors = answered(client.post("/v1/differentiate", content=sent, headers=BINARY))
    assert tensors["functions.0.constants.1"].tolist() == TABLE.tolist()
    again = body({"graph": answer["graph"], "outputs": [2]}, {"feeds.0": np.zeros(3), **tensors})
    response = client.post("/v1/forward", content=again, headers=SENT | {"Accept": KIND})
    assert answered(response)[1]["values.2"].tolist() == TABLE.tolist()
