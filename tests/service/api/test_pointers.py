"""Pointers of refusals: each names the innermost place of the error, and that place is in the request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine import LATEST, EngineError, Program, Statement, TensorType, registry
from engine.ir.errors import BadAttribute
from engine.ir.op import Definition
from tests.conftest import Client
from tests.contract.cases import Case
from tests.service.api.safetensors_support import BINARY, body
from tests.service.support import Json, feed, node, request, tensor
from tests.service.with_functions import IN, asked, function, result

W = node("parameter")
X, Y = feed(0, [2], [1, 2]), feed(1, [2], [1, 2])
TYPE = {"node": 0, "dtype": "float64", "shape": [2]}
#: w, x, w · x and its sum
NODES = (W, IN, node("mul", 0, 1), node("sum", 2))
BASE = request(*NODES, feeds=[X, Y])
TYPED = {"graph": BASE["graph"], "types": [TYPE, TYPE | {"node": 1}]}
#: integers, which have no derivatives, and their sum
WHOLE = request(W, node("sum", 0), feeds=[feed(0, [2], [1, 2], "int64")])
COMPLEX = asked([], W, node("abs", 0), node("sum", 1), feeds=[feed(0, [1], [1, 2], "complex128")])
#: three examples for both leaves
EXAMPLES = request(*NODES, feeds=[feed(0, [3, 2], [0] * 6), feed(1, [3, 2], [0] * 6)], mapped=[0, 1])
SPLIT = (IN, node("split", 0, sizes=[1, 1]))
RESHAPES = function([1], IN, node("reshape", 0, shape=[-1, -1]))


def op(*operands: int, name: str = "sum", opset: int = 1, feeds: Any = (X,), **attrs: Any) -> Json:
    """A request with one node after a leaf."""
    node_json = node(name, *operands or (0,), **attrs)
    return {"graph": {"nodes": [W, node_json], "opset": opset}, "feeds": list(feeds)}


#: call, request and pointer; the place exists in the request
STATED: list[tuple[str, Json, str]] = [
    # ops
    ("forward", op(name="swish"), "/graph/nodes/1/op"),
    ("forward", op(name="angle"), "/graph/nodes/1/op"),
    ("gradients", op(name="nope"), "/graph/nodes/1/op"),
    ("plan", {"graph": {"nodes": [W, node("nope", 0)]}, "types": [TYPE]}, "/graph/nodes/1/op"),
    ("forward", asked([function([1], IN, node("nope", 0))], IN), "/graph/functions/0/nodes/1/op"),
    ("forward", asked([function([0], W)], IN), "/graph/functions/0/nodes/0/op"),
    # operands
    ("forward", op(7), "/graph/nodes/1/operands/0"),
    ("forward", op(0, 0), "/graph/nodes/1/operands"),
    ("forward", op(0, 0, name="matmul", feeds=[feed(0, [2, 3], [0] * 6)]), "/graph/nodes/1/operands/1"),
    # attributes: unknown, needing opset 2, of the wrong type, out of range, contradicting others or the operands
    ("forward", op(axis=0), "/graph/nodes/1/attrs/axis"),
    ("forward", request(W, {"op": "sum", "operands": [0], "attrs": {"a/b~": 0}}), "/graph/nodes/1/attrs/a~1b~0"),
    ("forward", op(name="cumsum", axis=0, reverse=True), "/graph/nodes/1/attrs/reverse"),
    ("forward", op(axes="all"), "/graph/nodes/1/attrs/axes"),
    ("forward", op(name="softmax", axis={}), "/graph/nodes/1/attrs/axis"),
    ("forward", op(axes=[7]), "/graph/nodes/1/attrs/axes"),
    ("forward", op(axes=[0, -1]), "/graph/nodes/1/attrs/axes"),
    ("forward", op(name="softmax", axis=1), "/graph/nodes/1/attrs/axis"),
    ("forward", op(name="reshape", shape=[-1, -1]), "/graph/nodes/1/attrs/shape"),
    ("forward", op(name="reshape", shape=[1] * 129), "/graph/nodes/1/attrs/shape"),
    ("forward", op(name="reshape", shape=[2], original_shape=[3]), "/graph/nodes/1/attrs/original_shape"),
    ("forward", op(name="cat", axis=0, sizes=[3]), "/graph/nodes/1/attrs/sizes"),
    ("forward", op(name="cast", dtype="int16"), "/graph/nodes/1/attrs/dtype"),
    ("forward", op(name="cast", dtype="f8"), "/graph/nodes/1/attrs/dtype"),
    ("forward", op(name="one_hot", classes=2, dtype="complex64", opset=2, feeds=[feed(0, [1], [0], "int64")]),
     "/graph/nodes/1/attrs/dtype"),
    ("forward", op(name="pad", pad_width=[0, 0], fill=1.0, fill_as="inf", opset=2), "/graph/nodes/1/attrs/fill_as"),
    ("forward", request(node("constant", value=[1])), "/graph/nodes/0/attrs/value"),
    ("gradients", op(axes=[7]), "/graph/nodes/1/attrs/axes"),
    ("differentiate", {"graph": op(axes=[7])["graph"], "types": [TYPE]}, "/graph/nodes/1/attrs/axes"),
    # functions
    ("forward", asked([function([1], IN, node("sum", 0, axis=0))], IN), "/graph/functions/0/nodes/1/attrs/axis"),
    ("forward", asked([RESHAPES], IN, node("call", 0, body=0), result(1)), "/graph/functions/0/nodes/1/attrs/shape"),
    ("forward", asked([], IN, node("call", 0, body=0), result(1)), "/graph/nodes/1/attrs/body"),
    ("forward", asked([function([0, 5], IN)], IN), "/graph/functions/0/outputs/1"),
    ("forward", asked([function([0, 1], *SPLIT)], IN), "/graph/functions/0/outputs/1"),
    ("forward", asked([function([0], IN)], IN, node("call", 0, 0, body=0), result(1)), "/graph/functions/0"),
    ("forward", asked([function([0, 0], IN), function([0], IN)],
                      node("constant", value=tensor([], [1], "bool")), IN,
                      node("cond", 0, 1, then=0, otherwise=1), result(2), feeds=[Y]), "/graph/functions/1/outputs"),
    # nodes that fields of the call name
    ("gradients", BASE | {"of": 9}, "/of"),
    ("gradients", BASE | {"of": -1}, "/of"),
    ("gradients", BASE | {"wrt": [0, 9]}, "/wrt/1"),
    ("gradients", BASE | {"wrt": [1, 0, 1]}, "/wrt/2"),
    ("gradients", BASE | {"outputs": [9]}, "/outputs/0"),
    ("forward", BASE | {"outputs": [0, 0]}, "/outputs/1"),
    ("forward", request(*SPLIT, feeds=[X], outputs=[0, 1]), "/outputs/1"),
    ("check", BASE | {"of": 9}, "/of"),
    ("differentiate", TYPED | {"wrt": [9]}, "/wrt/0"),
    ("vjp", BASE | {"cotangents": [feed(9, [], [1])]}, "/cotangents/0/node"),
    ("vjp", BASE | {"outputs": [2, 3], "cotangents": [feed(3, [], [1])]}, "/cotangents"),
    ("hvp", BASE | {"vectors": [X, feed(3, [], [1])]}, "/vectors/1/node"),
    ("jvp", BASE | {"tangents": [X, feed(9, [], [1])]}, "/tangents/1/node"),
    ("jvp", BASE | {"tangents": [X, feed(2, [2], [1, 2])]}, "/tangents/1/node"),
    ("plan", TYPED | {"call": "jvp", "wrt": [0, 2]}, "/wrt/1"),
    ("batch", EXAMPLES | {"mapped": [0, 9]}, "/mapped/1"),
    ("batch", EXAMPLES | {"mapped": [2, 0]}, "/mapped/0"),
    ("batch", EXAMPLES | {"mapped": []}, "/mapped"),
    ("batch", EXAMPLES | {"reduce": "sum", "wrt": [1]}, "/wrt/0"),
    ("forward", BASE | {"store": [{"node": 1, "tensor_id": "a"}, {"node": 9, "tensor_id": "b"}]}, "/store/1/node"),
    # derivatives that do not exist
    ("gradients", BASE | {"of": 2}, "/of"),
    ("hvp", BASE | {"of": 2, "vectors": [X]}, "/of"),
    ("batch", EXAMPLES | {"of": 2}, "/of"),
    ("gradients", WHOLE | {"wrt": [0]}, "/wrt/0"),
    ("gradients", request(W, node("cast", 0, dtype="int64"), feeds=[X], of=1), "/of"),
    ("vjp", WHOLE | {"wrt": [0], "cotangents": [feed(1, [], [1])]}, "/wrt/0"),
    ("jvp", WHOLE | {"tangents": [feed(0, [2], [1, 2])]}, "/tangents/0/node"),
    ("jacobian", COMPLEX | {"wrt": [0]}, "/wrt/0"),
    ("jacobian", request(W, node("cast", 0, dtype="int64"), feeds=[X], outputs=[0, 1]), "/outputs/1"),
    ("batch", request(IN, node("cast", 0, dtype="int64"), feeds=[X], mapped=[0], reduce="sum", outputs=[1]),
     "/outputs/0"),
    ("hessian", request(W, W, node("cast", 0, dtype="float32"), node("mul", 2, 1), node("sum", 3),
                        feeds=[X, feed(1, [2], [1, 2], "float32")], layout="matrix"), "/layout"),
    # tensors of the wrong type
    ("gradients", BASE | {"of": 2, "cotangent": tensor([3], [1, 2, 3])}, "/cotangent"),
    ("vjp", BASE | {"cotangents": [feed(3, [1], [1])]}, "/cotangents/0/tensor"),
    ("vjp", BASE | {"batched": True, "cotangents": [feed(3, [], [1])]}, "/cotangents/0/tensor"),
    ("hvp", BASE | {"vectors": [feed(0, [2], [1, 2], "float32")]}, "/vectors/0/tensor"),
    ("jvp", BASE | {"tangents": [Y, feed(0, [1], [1])]}, "/tangents/1/tensor"),
    ("batch", EXAMPLES | {"feeds": [EXAMPLES["feeds"][0], feed(1, [], [1])]}, "/feeds/1/tensor"),
    ("batch", EXAMPLES | {"feeds": [feed(1, [2, 2], [0] * 4), EXAMPLES["feeds"][0]]}, "/feeds/0/tensor"),
    # feeds
    ("forward", BASE | {"feeds": [X, Y, feed(9, [], [1])]}, "/feeds/2/node"),
    ("forward", BASE | {"feeds": [feed(2, [2], [1, 2]), X, Y]}, "/feeds/0/node"),
    ("forward", request(W, node("input", dtype="float32"), feeds=[X, Y], outputs=[1]), "/feeds/1/tensor"),
    ("forward", request(W, node("input", shape=[3]), feeds=[Y, X]), "/feeds/0/tensor"),
    ("forward", request(W, node("input", shape=[3]), feeds=[Y, X], outputs=[0]), "/feeds/0/tensor"),
    ("forward", request(W, feeds=[feed(0, [1], [1], "uint32")]), "/feeds/0/tensor"),
    ("check", BASE | {"feeds": [X, Y, feed(9, [], [1])]}, "/feeds/2/node"),
    ("forward", BASE | {"feeds": [Y]}, "/graph/nodes/0"),
    # types
    ("plan", TYPED | {"types": [*TYPED["types"], TYPE | {"node": 9}]}, "/types/2/node"),
    ("plan", TYPED | {"types": [TYPE | {"node": 2}, *TYPED["types"]]}, "/types/0/node"),
    ("plan", {"graph": {"nodes": [node("input", shape=[3])]}, "types": [TYPE]}, "/types/0/shape"),
    ("plan", {"graph": {"nodes": [node("input", dtype="int8")]}, "types": [TYPE]}, "/types/0/dtype"),
    ("plan", TYPED | {"types": [TYPE]}, "/graph/nodes/1"),
    ("differentiate", TYPED | {"types": [*TYPED["types"], TYPE | {"node": 9}]}, "/types/2/node"),
    # fields that have a default: the node that the default names
    ("gradients", request(W, feeds=[X]), "/graph/nodes/0"),
    ("gradients", WHOLE, "/graph/nodes/0"),
    ("jacobian", COMPLEX, "/graph/nodes/0"),
    ("forward", request(*SPLIT, feeds=[X]), "/graph/nodes/1"),
    ("forward", request(), "/graph/nodes"),
]  # fmt: skip

#: call, request and pointer; the field is missing, and its parent exists
MISSING: list[tuple[str, Json, str]] = [
    ("forward", op(name="one_hot"), "/graph/nodes/1/attrs/classes"),
    ("forward", op(name="unsqueeze"), "/graph/nodes/1/attrs/axes"),
    ("forward", op(name="softmax", feeds=[feed(0, [], [1])]), "/graph/nodes/1/attrs/axis"),
    ("forward", asked([function([1], IN, node("one_hot", 0))], IN), "/graph/functions/0/nodes/1/attrs/classes"),
    ("gradients", request(IN, feeds=[X]), "/wrt"),
    ("vjp", BASE, "/cotangents"),
    ("hvp", BASE, "/vectors"),
    ("jvp", BASE, "/tangents"),
    ("batch", BASE, "/mapped"),
]


def resolve(document: Any, pointer: str) -> Any:
    """Return the value at a JSON pointer (RFC 6901). Raises LookupError if there is none."""
    assert not pointer or pointer.startswith("/")
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        document = document[int(key) if isinstance(document, list) else key]
    return document


def ids(cases: list[tuple[str, Json, str]]) -> list[str]:
    return [f"{call}{pointer}" for call, _, pointer in cases]


def report_of(client: Client, path: str, sent: Json, **more: Any) -> Json:
    """Send a request that is refused with a single error; return the report."""
    answer = client.post(path, json=sent, **more)
    report: Json = answer.json()
    assert answer.status_code in (413, 422), report
    assert "errors" not in report, report["errors"]
    return report


@pytest.mark.parametrize(("call", "sent", "pointer"), STATED, ids=ids(STATED))
def test_pointer_names_the_innermost_place(client: Client, call: str, sent: Json, pointer: str) -> None:
    assert report_of(client, f"/v1/{call}", sent)["pointer"] == pointer
    resolve(sent, pointer)


@pytest.mark.parametrize(("call", "sent", "pointer"), MISSING, ids=ids(MISSING))
def test_pointer_names_a_missing_field(client: Client, call: str, sent: Json, pointer: str) -> None:
    assert report_of(client, f"/v1/{call}", sent)["pointer"] == pointer
    parent, _, name = pointer.rpartition("/")
    assert name not in resolve(sent, parent)


def test_every_error_of_a_report_has_its_pointer(client: Client) -> None:
    nodes = [W, node("nope", 0), node("mean", 0, axis=0, keepdim=3), node("neg", 7)]
    errors = client.post("/v1/forward", json=request(*nodes)).json()["errors"]
    assert {error["pointer"] for error in errors} == {
        "/graph/nodes/1/op",
        "/graph/nodes/2/attrs/axis",
        "/graph/nodes/2/attrs/keepdim",
        "/graph/nodes/3/operands/0",
    }
    feeds = [feed(2, [2], [1, 2]), X, feed(9, [], [1]), Y]
    errors = client.post("/v1/forward", json=BASE | {"feeds": feeds}).json()["errors"]
    assert [error["pointer"] for error in errors] == ["/feeds/0/node", "/feeds/2/node"]


def test_pointer_in_a_request_on_a_registered_graph(client: Client) -> None:
    """A pointer into the graph is into the registered one."""
    graph_id = client.post("/v1/graphs", json={"graph": BASE["graph"]}).json()["graph_id"]

    def refused(call: str, **fields: Any) -> str:
        return str(report_of(client, f"/v1/graphs/{graph_id}/{call}", {"feeds": [X, Y]} | fields)["pointer"])

    assert refused("gradients", wrt=[0, 9]) == "/wrt/1"
    assert refused("gradients", of=2) == "/of"
    assert refused("forward", feeds=[Y, X, feed(9, [], [1])]) == "/feeds/2/node"
    assert refused("forward", feeds=[Y]) == "/graph/nodes/0"
    wide = feed(1, [3], [1, 2, 3])
    assert refused("forward", feeds=[X, wide]) == "/graph/nodes/2"
    graph = op(name="softmax", axis=1)["graph"]
    graph_id = client.post("/v1/graphs", json={"graph": graph}).json()["graph_id"]
    assert refused("forward", feeds=[X]) == "/graph/nodes/1/attrs/axis"


BAD_TENSORS: list[tuple[Json, str]] = [
    ({"dtype": "double"}, "/dtype"),
    ({"shape": [2, -1]}, "/shape/1"),
    ({"data": [1]}, "/data"),
    ({"data": 5}, "/data"),
    ({"data": [1, "a"]}, "/data/1"),
    ({"data": [[1], [2]]}, "/data"),
    ({"dtype": "float32", "data": [1, 1e300]}, "/data"),
    ({"dtype": "int8", "data": [1, 300]}, "/data"),
    ({"dtype": "int64", "data": [1, 0.5]}, "/data"),
    ({"data": [], "data_b64": "?"}, "/data_b64"),
    ({"data": [], "data_b64": "AAAA"}, "/data_b64"),
    ({"dtype": "bool", "data": [], "data_b64": "AAI="}, "/data_b64"),
    ({"data_b64": "AAAA"}, ""),
]


@pytest.mark.parametrize(("fields", "pointer"), BAD_TENSORS)
def test_pointer_names_a_place_inside_a_tensor(client: Client, fields: Json, pointer: str) -> None:
    bad = tensor([2], [1, 2]) | fields
    assert report_of(client, "/v1/forward", request(W, feeds=[{"node": 0, "tensor": bad}]))["pointer"] == (
        f"/feeds/0/tensor{pointer}"
    )
    constant = request(node("constant", value=bad))
    assert report_of(client, "/v1/forward", constant)["pointer"] == f"/graph/nodes/0/attrs/value{pointer}"
    assert client.request("PUT", "/v1/tensors/bad", json=bad).json()["pointer"] == pointer


def test_registration_names_the_innermost_place(client: Client) -> None:
    assert report_of(client, "/v1/graphs", {"graph": op(axis=0)["graph"]})["pointer"] == "/graph/nodes/1/attrs/axis"


def test_tensor_beside_the_json_has_the_pointer_of_its_node(client: Client) -> None:
    graph = {"graph": {"nodes": [W, node("input", shape=[3])]}, "outputs": [1]}
    sent = body(graph, {"feeds.1": np.ones(2)})
    report = client.post("/v1/forward", content=sent, headers=BINARY).json()
    assert (report["code"], report["pointer"]) == ("shape_mismatch", "/graph/nodes/1")


def test_resident_feed_of_the_wrong_shape(client: Client) -> None:
    stored = client.request("PUT", "/v1/tensors/pointers", json=tensor([2], [1, 2]))
    assert stored.status_code < 300, stored.text
    sent = request(W, node("input", shape=[3]), feeds=[X, {"node": 1, "tensor_id": "pointers"}])
    assert report_of(client, "/v1/forward", sent)["pointer"] == "/feeds/1/tensor_id"


@pytest.mark.parametrize(
    ("leaf", "pointer"), [({"shape": [3]}, "/inputs/0/shape"), ({"dtype": "float32"}, "/inputs/0/dtype")]
)
def test_input_of_a_model_that_does_not_fit_the_graph(client: Client, leaf: Json, pointer: str) -> None:
    graph_id = client.post("/v1/graphs", json={"graph": {"nodes": [node("input", **leaf)]}}).json()["graph_id"]
    model = {"graph_id": graph_id, "inputs": [TYPE | {"name": "x"}], "outputs": [{"node": 0, "name": "y"}]}
    report = client.request("PUT", "/v1/models/pointers", json=model).json()
    assert report["pointer"] == pointer
    resolve(model, pointer)


# ---------------------------------------------------------------- attributes of every op

WITH_ATTRIBUTES = [each for each in registry().ops.values() if each.attrs]


def pointers_of(client: Client, each: Definition, attrs: Json) -> set[str]:
    """Return the pointers of all errors of one node of an op, after as many leaves as it has operands."""
    leaves = [IN] * max(1, each.arity[0])
    graph = {"nodes": [*leaves, node(each.name, *range(len(leaves)), **attrs)], "opset": 2}
    report = client.post("/v1/forward", json={"graph": graph}).json()
    if report["code"] == "bad_tensor":
        return {report["pointer"]}
    errors = [error for error in report.get("errors", [report]) if error["code"] == "bad_attribute"]
    for error in errors:
        parent, _, name = error["pointer"].rpartition("/")
        assert parent == f"/graph/nodes/{len(leaves)}/attrs"
        assert name in error["detail"]
    return {error["pointer"].removeprefix(f"/graph/nodes/{len(leaves)}/attrs/") for error in errors}


@pytest.mark.parametrize("each", WITH_ATTRIBUTES, ids=lambda each: each.name)
def test_attributes_of_every_op_are_named(client: Client, each: Definition) -> None:
    required = {name for name, attr in each.attrs.items() if attr.required}
    assert pointers_of(client, each, {"unknown": 0}) == {"unknown", *required}
    for name, attr in each.attrs.items():
        wrong = 5 if attr.kind in ("string", "dtype") else "none"
        if attr.kind == "tensor":  # a tensor is decoded before the engine checks the other attributes
            assert pointers_of(client, each, {name: wrong}) == {name}
        else:
            assert pointers_of(client, each, {name: wrong}) == {name, *required}
            assert pointers_of(client, each, {name: {}}) == {name}


def outside(value: Any) -> list[Any]:
    """Return values of the same type that are likely to be out of range."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [-1, 0, 7, -99]
    if isinstance(value, str):
        return ["nope", "a->a", "bool"]
    return [[], [7], [-99] * 2, [0] * 9, [*value, 0], [0, *value]] if isinstance(value, list) else []


def errors_outside(op: Definition) -> Iterator[EngineError]:
    """Yield the errors of an op on its samples with one attribute changed."""
    leaf = Statement(registry().ops["input"])
    for case in (Case(op, number) for number in range(len(op.samples))):
        count, types = len(case.sample.operands), dict(enumerate(map(TensorType.of, case.arrays())))
        defaults = {name: attr.default for name, attr in op.attrs.items() if not attr.required}
        for name, value in (defaults | case.attrs).items():
            for wrong in outside(value):
                statement = Statement(op, tuple(range(count)), case.attrs | {name: wrong})
                try:
                    Program(registry(), [*[leaf] * count, statement], opset=LATEST).build(types, (count,))
                except EngineError as error:
                    yield error


@pytest.mark.parametrize("each", WITH_ATTRIBUTES, ids=lambda each: each.name)
def test_error_names_an_attribute_of_the_op(each: Definition) -> None:
    """A composite does not name the attributes of its parts."""
    for error in errors_outside(each):
        assert error.attribute in (each.attrs if isinstance(error, BadAttribute) else {None, *each.attrs})


def test_attributes_are_tried_outside_their_range() -> None:
    errors = {each.name: [*errors_outside(each)] for each in WITH_ATTRIBUTES}
    assert sum(any(isinstance(error, BadAttribute) for error in found) for found in errors.values()) > 100
