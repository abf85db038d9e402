"""Mistakes that newcomers make: requests and commands, each with the part that is wrong as the site shows it."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

Json = dict[str, Any]

W: Final = {"op": "parameter", "name": "w"}
SQUARE: Final = {"op": "square", "operands": [0], "name": "squares"}
SUM: Final = {"op": "sum", "operands": [1], "name": "loss"}
#: sum(w²)
NODES: Final = [W, SQUARE, SUM]
VALUE: Final = {"dtype": "float64", "shape": [2], "data": [1, 2]}
FEED: Final = {"node": 0, "tensor": VALUE}
#: reads the first result of node 1
READ: Final = {"op": "get_output", "operands": [1], "attrs": {"index": 0}}
#: one step that doubles its carry
DOUBLE: Final = {
    "nodes": [{"op": "input"}, {"op": "mul_scalar", "operands": [0], "attrs": {"scalar": 2}}],
    "outputs": [1],
}


class Mistake(NamedTuple):
    """A request, or a command if `arguments` are set, and `sent`: the part of it that is wrong."""

    about: str
    sent: str
    body: Any = None
    method: str = "POST"
    path: str = "/v1/gradients"
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)
    arguments: tuple[str, ...] = ()

    @property
    def content(self) -> bytes:
        """Body as it is sent."""
        return (
            self.body.encode()
            if isinstance(self.body, str)
            else b""
            if self.body is None
            else json.dumps(self.body).encode()
        )


def shown(part: object) -> str:
    """JSON on one line."""
    return json.dumps(part, ensure_ascii=False)


def graph(about: str, part: object, *nodes: Json, **more: Any) -> Mistake:
    """A graph of these nodes with a value for its first one; `part` is wrong."""
    fields = {"feeds": [FEED], **more}
    top = {name: fields.pop(name) for name in ("opset", "functions") if name in fields}
    return Mistake(
        about, shown(part), {"graph": {"nodes": [*nodes], **top}, **fields}, path=fields.pop("path", "/v1/gradients")
    )


def node(about: str, wrong: Json, *before: Json, **more: Any) -> Mistake:
    """A graph whose last node is wrong."""
    return graph(about, wrong, *(before or (W,)), wrong, **more)


def fed(about: str, wrong: object, **more: Any) -> Mistake:
    """A feed that is wrong."""
    return graph(about, wrong, *NODES, feeds=[wrong], **more)


def tensor(about: str, **changed: Any) -> Mistake:
    """A tensor that is wrong; `...` leaves a field out."""
    wrong = stated({**VALUE, **changed})
    return graph(about, wrong, *NODES, feeds=[{"node": 0, "tensor": wrong}])


def field(about: str, path: str = "/v1/gradients", **wrong: Any) -> Mistake:
    """A request with fields that are wrong; `...` leaves a field out."""
    body = stated({"graph": {"nodes": NODES}, "feeds": [FEED], **wrong})
    left_out = [f'no "{name}"' for name, value in wrong.items() if value is ...]
    sent = ", ".join([*left_out, *filter(None, [shown(stated(wrong))[1:-1]])])
    return Mistake(about, sent or f"POST {path}", body, path=path)


def stated(fields: Json) -> Json:
    """Fields without those that are left out."""
    return {name: value for name, value in fields.items() if value is not ...}


def route(about: str, method: str, path: str, body: Any = None, **headers: str) -> Mistake:
    """A path or method that is wrong."""
    return Mistake(
        about,
        f"{method} {path}",
        body,
        method,
        path,
        tuple((name.replace("_", "-"), value) for name, value in headers.items()),
    )


def raw(about: str, text: str, content_type: str = "application/json") -> Mistake:
    """A body that is wrong."""
    return Mistake(about, text, text, headers=(("Content-Type", content_type),))


def command(about: str, *arguments: str) -> Mistake:
    """A command that is wrong."""
    return Mistake(about, " ".join(("gradserve", *arguments)), arguments=arguments)


MISTAKES: Final[dict[str, list[Mistake]]] = {
    "Graphs and nodes": [
        field("no graph", graph=...),
        Mistake(
            "the nodes without a graph around them", '{"nodes": […], "feeds": […]}', {"nodes": NODES, "feeds": [FEED]}
        ),
        graph("an empty graph", [], feeds=[]),
        Mistake("a graph that is a list", '"graph": [{"op": "parameter"}, …]', {"graph": NODES, "feeds": [FEED]}),
        Mistake("nodes that are an object", '"nodes": {"w": {"op": "parameter"}}', {"graph": {"nodes": {"w": W}}}),
        node("a node without an op", {"operands": [0]}),
        node("a node with an id", {"id": 1, "op": "sum", "operands": [0]}),
        node("`type` in place of `op`", {"type": "sum", "operands": [0]}),
        node("`inputs` in place of `operands`", {"op": "sum", "inputs": [0]}),
        node("an op that does not exist", {"op": "sumation", "operands": [0]}),
        node("another system's op that we call otherwise", {"op": "ReduceL2", "operands": [0]}),
        node("another system's op with a prefix", {"op": "torch.nn.Dropout", "operands": [0]}),
        node("an op as a function call", {"op": "sum(w)"}),
        node("a newer op without its opset", {"op": "fft", "operands": [0]}),
        graph("an opset that does not exist", {"opset": 7}, *NODES, opset=7),
        graph("an opset that is a string", {"opset": "2"}, *NODES, opset="2"),
    ],
    "Operands": [
        node("operands by name", {"op": "sum", "operands": ["w"]}),
        node("operands by a name that no node has", {"op": "sum", "operands": ["x"]}),
        node("a single operand without a list", {"op": "sum", "operands": 0}),
        node("a node that comes later", {"op": "add", "operands": [0, 2]}),
        node("a node that reads itself", {"op": "add", "operands": [0, 1]}),
        node("a negative index", {"op": "sum", "operands": [-1]}),
        node("an index counted from one", {"op": "square", "operands": [1]}),
        node("too few operands", {"op": "add", "operands": [0]}),
        node("too many operands", {"op": "sin", "operands": [0, 0]}),
        node("a number in place of a node", {"op": "mul", "operands": [0, 0.5]}),
        node(
            "a node with several results",
            {"op": "sin", "operands": [1]},
            W,
            {"op": "svd", "operands": [0]},
            opset=2,
            feeds=[{"node": 0, "tensor": {"dtype": "float64", "shape": [1, 2], "data": [1, 2]}}],
        ),
        node(
            "shapes that do not broadcast",
            {"op": "add", "operands": [0, 1]},
            W,
            {"op": "full", "attrs": {"shape": [3]}},
        ),
        node(
            "matrices that do not fit",
            {"op": "matmul", "operands": [0, 1]},
            W,
            {"op": "full", "attrs": {"shape": [3, 3]}},
        ),
        node("a dtype that the op does not take", {"op": "gather", "operands": [0, 0]}),
    ],
    "Attributes": [
        node("an attribute beside `attrs`", {"op": "sum", "operands": [0], "axis": 0}),
        node("PyTorch's `dim`", {"op": "sum", "operands": [0], "attrs": {"dim": 0}}),
        node("an attribute that does not exist", {"op": "sum", "operands": [0], "attrs": {"axs": [0]}}),
        node("a number in place of a list", {"op": "sum", "operands": [0], "attrs": {"axes": 0}}),
        node("a string in place of a number", {"op": "mul_scalar", "operands": [0], "attrs": {"scalar": "2"}}),
        node("an axis that the operand does not have", {"op": "sum", "operands": [0], "attrs": {"axes": [1]}}),
        node("the same axis twice", {"op": "sum", "operands": [0], "attrs": {"axes": [0, -1]}}),
        node("a required attribute that is missing", {"op": "mul_scalar", "operands": [0]}),
        node("a word for a boolean", {"op": "sum", "operands": [0], "attrs": {"keepdims": "true"}}),
        node("a constant as a bare number", {"op": "constant", "attrs": {"value": 0.1}}),
        node("a constant as a bare list", {"op": "constant", "attrs": {"value": [1, 2, 3]}}),
        node("a dtype of C", {"op": "cast", "operands": [0], "attrs": {"dtype": "double"}}),
        node("a dtype of Rust", {"op": "cast", "operands": [0], "attrs": {"dtype": "f32"}}),
        node("a dtype with a prefix", {"op": "cast", "operands": [0], "attrs": {"dtype": "torch.float32"}}),
        node("a shape with another number of elements", {"op": "reshape", "operands": [0], "attrs": {"shape": [3]}}),
        node("a choice that does not exist", {"op": "gelu", "operands": [0], "attrs": {"approximate": "yes"}}),
        node("an attribute where none are", {"op": "sin", "operands": [0], "attrs": {"axis": 0}}),
        node("attributes as a list", {"op": "sum", "operands": [0], "attrs": [0]}),
    ],
    "Functions and loops": [
        graph("functions without the opset", {"functions": [DOUBLE]}, *NODES, functions=[DOUBLE]),
        graph(
            "a body that does not exist",
            {"op": "call", "operands": [0], "attrs": {"body": 1}},
            W,
            {"op": "call", "operands": [0], "attrs": {"body": 1}},
            opset=2,
            functions=[DOUBLE],
        ),
        graph(
            "a body by name",
            {"op": "call", "operands": [0], "attrs": {"body": "double"}},
            W,
            {"op": "call", "operands": [0], "attrs": {"body": "double"}},
            opset=2,
            functions=[{**DOUBLE, "name": "double"}],
        ),
        graph(
            "a loop without a length",
            {"op": "scan", "operands": [0], "attrs": {"body": 0, "carries": 1}},
            W,
            {"op": "scan", "operands": [0], "attrs": {"body": 0, "carries": 1}},
            READ,
            opset=2,
            functions=[DOUBLE],
        ),
        graph(
            "a function without outputs",
            {"nodes": [{"op": "input"}]},
            *NODES,
            opset=2,
            functions=[{"nodes": [{"op": "input"}]}],
        ),
        graph(
            "a parameter inside a function",
            {"nodes": [{"op": "parameter"}], "outputs": [0]},
            *NODES,
            opset=2,
            functions=[{"nodes": [{"op": "parameter"}], "outputs": [0]}],
        ),
        graph(
            "a loop whose carry changes its shape",
            {"nodes": [{"op": "input"}, {"op": "sum", "operands": [0]}], "outputs": [1]},
            W,
            {"op": "scan", "operands": [0], "attrs": {"body": 0, "carries": 1, "length": 3}},
            READ,
            opset=2,
            functions=[{"nodes": [{"op": "input"}, {"op": "sum", "operands": [0]}], "outputs": [1]}],
        ),
        graph(
            "a loop that is differentiated without get_output",
            {"op": "sum", "operands": [1]},
            W,
            {"op": "scan", "operands": [0], "attrs": {"body": 0, "carries": 1, "length": 3}},
            {"op": "sum", "operands": [1]},
            opset=2,
            functions=[DOUBLE],
        ),
    ],
    "Tensors": [
        tensor("no dtype", dtype=...),
        tensor("no shape", shape=...),
        tensor("no data", data=...),
        tensor("nested lists", shape=[2, 2], data=[[1, 2], [3, 4]]),
        tensor("too few elements", shape=[3]),
        tensor("a bare number", shape=[], data=1),
        tensor("a number without an extent", data=[1, 2, 3]),
        tensor("numbers as strings", data=["1", "2"]),
        tensor("a missing value", data=[1, None]),
        tensor("NumPy's short dtype", dtype="f8"),
        tensor("a dtype with a capital", dtype="Float"),
        tensor("C's dtype", dtype="double"),
        tensor("a dtype that is not supported", dtype="string"),
        tensor("a shape of -1", shape=[-1]),
        tensor("a shape that is a number", shape=2),
        tensor("fractions for integers", dtype="int32", data=[1, 2.5]),
        tensor("a number beyond the dtype", dtype="int8", data=[1, 300]),
        tensor("base64 that is none", data=..., data_b64="not base64!"),
        tensor("base64 of another length", data=..., data_b64="AAAAAAAA8D8="),
        tensor("both payloads", data_b64="AAAAAAAA8D8AAAAAAAAAQA=="),
        fed("a list in place of a tensor", {"node": 0, "tensor": [1, 2]}),
        fed("a bare number in place of a tensor", {"node": 0, "tensor": 1.5}),
        Mistake(
            "NaN in JSON",
            '"data": [1, NaN]',
            '{"graph": {"nodes": [{"op": "parameter"}]}, "feeds": [{"node": 0, "tensor": '
            '{"dtype": "float64", "shape": [2], "data": [1, NaN]}}]}',
        ),
    ],
    "Feeds": [
        fed("a feed by name", {"name": "w", "tensor": VALUE}),
        fed("a feed by a name in `node`", {"node": "w", "tensor": VALUE}),
        graph("feeds as an object", {"w": VALUE}, *NODES, feeds={"w": VALUE}),
        field("no feeds", feeds=...),
        fed("a feed for a node that does not exist", {"node": 7, "tensor": VALUE}),
        fed("a feed for a node that is no leaf", {"node": 1, "tensor": VALUE}),
        graph("the same node twice", [FEED, FEED], *NODES, feeds=[FEED, FEED]),
        fed("the tensor beside the node", {"node": 0, **VALUE}),
        fed("`value` in place of `tensor`", {"node": 0, "value": VALUE}),
        graph(
            "another shape than the leaf declares",
            {"op": "parameter", "attrs": {"shape": [3]}},
            {"op": "parameter", "attrs": {"shape": [3]}},
            {"op": "sum", "operands": [0]},
        ),
        graph(
            "another dtype than the leaf declares",
            {"op": "parameter", "attrs": {"dtype": "float32"}},
            {"op": "parameter", "attrs": {"dtype": "float32"}},
            {"op": "sum", "operands": [0]},
        ),
        fed("a resident tensor that is not stored", {"node": 0, "tensor_id": "weights"}),
    ],
    "Derivatives": [
        graph("the gradient of several elements", {"op": "square", "operands": [0]}, W, SQUARE),
        Mistake(
            "the Hessian of several elements",
            shown(SQUARE),
            {"graph": {"nodes": [W, SQUARE]}, "feeds": [FEED]},
            path="/v1/hessian",
        ),
        field("`of` by name", of="loss"),
        field("`of` beyond the graph", of=9),
        field("`wrt` as a single node", wrt=0),
        field("`wrt` by name", wrt=["w"]),
        field("`wrt` twice", wrt=[0, 0]),
        graph(
            "no parameter to differentiate with respect to",
            {"op": "input"},
            {"op": "input"},
            {"op": "sum", "operands": [0]},
        ),
        graph(
            "a gradient with respect to integers",
            {"dtype": "int64", "shape": [2], "data": [1, 2]},
            *NODES,
            feeds=[{"node": 0, "tensor": {"dtype": "int64", "shape": [2], "data": [1, 2]}}],
        ),
        field("a Jacobian-vector product without tangents", path="/v1/jvp"),
        field(
            "a vector of another shape",
            path="/v1/hvp",
            vectors=[{"node": 0, "tensor": {"dtype": "float64", "shape": [3], "data": [1, 2, 3]}}],
        ),
        field("an option of another call", path="/v1/hessian", cotangent=VALUE),
        field("values for a dry run", path="/v1/plan"),
        field("a batch without a mapped leaf", path="/v1/batch"),
        field("outputs that are a name", outputs="loss"),
    ],
    "Options": [
        field("`timeout_ms` in the body", timeout_ms=1000),
        field("a misspelt option", output=[1]),
        field("an encoding that does not exist", encoding="binary"),
        field("a boolean as a word", diagnose="true"),
        field("a precision that does not exist", precision="float16"),
        field("a count of zero", path="/v1/check", directions=0),
        route(
            "a timeout that is no number",
            "POST",
            "/v1/gradients?timeout_ms=soon",
            {"graph": {"nodes": NODES}, "feeds": [FEED]},
            Content_Type="application/json",
        ),
        route(
            "a query parameter that does not exist",
            "POST",
            "/v1/gradients?verbose=1",
            {"graph": {"nodes": NODES}, "feeds": [FEED]},
            Content_Type="application/json",
        ),
    ],
    "HTTP": [
        route("a path without its version", "POST", "/gradients", {}),
        route("a singular", "POST", "/v1/gradient", {}),
        route("GET of a computing call", "GET", "/v1/gradients"),
        route("POST to store a tensor", "POST", "/v1/tensors", VALUE),
        route("a health check by its usual name", "GET", "/health"),
        route("the page of an op that does not exist", "GET", "/v1/ops/sumation"),
        route(
            "a graph that is not registered",
            "POST",
            "/v1/graphs/abc/gradients",
            {"feeds": [FEED]},
            Content_Type="application/json",
        ),
        route("a tensor that is not stored", "GET", "/v1/tensors/weights"),
        Mistake(
            "no Content-Type, as curl -d sends it",
            "Content-Type: application/x-www-form-urlencoded",
            {"graph": {"nodes": NODES}},
            headers=(("Content-Type", "application/x-www-form-urlencoded"),),
        ),
        Mistake(
            "an Accept that we do not have",
            "Accept: text/html",
            {"graph": {"nodes": NODES}, "feeds": [FEED]},
            headers=(("Content-Type", "application/json"), ("Accept", "text/html")),
        ),
        raw("an empty body", ""),
        raw("a body that is a list", "[]"),
        raw("single quotes", "{'graph': {'nodes': []}}"),
        raw("a trailing comma", '{"graph": {"nodes": []},}'),
        raw("a body that is cut off", '{"graph": {"nodes": ['),
        raw("a key twice", '{"graph": {"nodes": []}, "graph": {"nodes": []}}'),
    ],
    "Commands": [
        command("a command of other programs", "run"),
        command("a short flag", "serve", "-p", "9000"),
        command("a misspelt flag", "serve", "--prot", "9000"),
        command("a port that is no number", "serve", "--port", "abc"),
        command("a port beyond the last", "serve", "--port", "70000"),
        command("a size with a wrong unit", "serve", "--max-bytes", "4Q"),
        command("a value that is no choice", "serve", "--device", "gpu"),
        command("a key as a flag", "serve", "--api-key", "secret"),
        command("a port without its flag", "serve", "8000"),
        command("an unknown op", "ops", "sumation"),
    ],
}
