"""The program that runs conformance cases with this client. It reads one case per line and writes one result per line.

The protocol is described in clients/conformance/README.md.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from keyword import iskeyword
from typing import Any, Final

import numpy as np

import gradserve_client as gs
from gradserve_client import safetensors
from gradserve_client.answers import Response, read
from gradserve_client.ops import GraphOps, NodeOps
from gradserve_client.requests import JSON, to_wire
from gradserve_client.retries import Surroundings
from gradserve_client.tensors import Array, as_array, bytes_of, default_form, from_bytes, from_json, to_json

Json = dict[str, Any]
#: exceptions with their types in results; the first match counts
TYPES: Final[tuple[tuple[type[gs.GradserveError], str], ...]] = (
    (gs.InputError, "input"),
    (gs.AnswerTooLarge, "too_large"),
    (gs.TransportError, "transport"),
    (gs.DeadlineError, "deadline"),
    (gs.AuthenticationError, "authentication"),
    (gs.RateError, "rate"),
    (gs.OverloadError, "overload"),
    (gs.NotFoundError, "not_found"),
    (gs.ConditionError, "condition"),
    (gs.StoreFullError, "store_full"),
    (gs.ServerError, "server"),
    (gs.GraphError, "graph"),
)
FORMS: Final = {"json": "json", "binary": "safetensors"}
#: members of a problem report that appear in results
REPORTED: Final = (
    "code",
    "detail",
    "node",
    "function",
    "function_node",
    "operand",
    "expected",
    "got",
    "pointer",
    "request_id",
)
LISTS: Final = frozenset({"feeds", "cotangents", "tangents", "vectors"})


def main() -> None:
    """Run cases until the input ends."""
    for line in sys.stdin:
        case = json.loads(line)
        print(json.dumps({"id": case["id"], **KINDS[case["kind"]](case)}), flush=True)


def encoded(case: Json) -> Json:
    """Return a tensor as the client encodes it."""
    try:
        array = array_of(case["tensor"])
        form = case["form"] if case["form"] != "default" else default_form(array.nbytes)
        if form == "safetensors":
            return {"file": b"".join(safetensors.encode({"t": array}, {})).hex()}
        return {"wire": json.dumps(to_json(array, form))}
    except gs.GradserveError as error:
        return {"error": told(error)}


def decoded(case: Json) -> Json:
    """Return a tensor as the client decodes it."""
    try:
        if "wire" in case:
            answer = Response(200, {"content-type": JSON}, case["wire"].encode())
            return {"tensor": bits(from_json(answer.json()))}
        tensors = safetensors.decode(bytes.fromhex(case["file"])).tensors
        return {"tensor": bits(read(lambda named: named["t"], tensors))}
    except gs.GradserveError as error:
        return {"error": told(error)}


def built(case: Json) -> Json:
    """Return the nodes of a graph, and its functions."""
    try:
        wire = to_wire(graph_of(case))
        return {name: json.dumps(wire[name]) for name in ("nodes", "functions") if name in wire}
    except gs.GradserveError as error:
        return {"error": told(error)}


def graph_of(stated: Json) -> gs.Graph:
    """Build the graph of some steps."""
    graph = gs.Graph(stated.get("opset"))
    for function in stated.get("functions", ()):
        append_function(graph, function)
    append_steps(graph, stated["steps"], graph)
    return graph


def append_function(outer: gs.Graph, stated: Json) -> None:
    """Append a function to the graph."""

    def body(graph: gs.Graph) -> list[gs.Node]:
        append_steps(graph, stated["steps"], outer)
        return [node_of(graph, output, outer) for output in stated["outputs"]]

    outer.function(body, stated.get("name"))


def append_steps(graph: gs.Graph, steps: list[Json], outer: gs.Graph) -> None:
    """Call the methods of steps on a graph, or on that of a function."""
    for step in steps:
        operands = [node_of(graph, operand, outer) for operand in step.get("operands", ())]
        attrs = {name: attribute(value, outer) for name, value in step.get("attrs", {}).items()}
        method_of(graph, step["op"], operands)(*operands, name=step.get("name"), **attrs)


def key_of(stated: Json) -> str:
    """Return a key that equal graphs of a case share."""
    return json.dumps([stated["steps"], stated.get("functions"), stated.get("opset")])


def method_of(graph: gs.Graph, op: str, operands: list[gs.Node]) -> Callable[..., gs.Node]:
    """Return the method of an op, from the graph or the first operand, or the generic method if there is none.

    The method of a node of another graph would append to that graph.
    """
    name = f"{op}_" if iskeyword(op) else op
    if hasattr(GraphOps, name):
        return partial(getattr(GraphOps, name), graph)
    return getattr(NodeOps, name) if hasattr(NodeOps, name) and operands[0].graph is graph else partial(graph.op, op)


def node_of(graph: gs.Graph, place: int | str, outer: gs.Graph | None = None) -> gs.Node:
    """Return the node at a position, a node of another graph, or a node of the graph that encloses a function."""
    if place == "outer" and outer is not None:
        return outer.input()
    return gs.Graph().input() if place == "other" else graph.find(place)


def attribute(value: Any, graph: gs.Graph) -> Any:
    """Convert an attribute, including values that JSON cannot represent. Functions can be of another graph."""
    if isinstance(value, list):
        return [attribute(each, graph) for each in value]
    if not isinstance(value, dict):
        return value
    if "dtype" in value:
        return array_of(value)
    if "function" in value:
        index = value["function"]
        return gs.Graph().function(lambda other: other.input()) if index == "other" else graph.functions[index]
    return int(value["int"]) if "int" in value else float(value["float"])


def array_of(stated: Json) -> Array:
    """Return the array with these bits."""
    return as_array(from_bytes(bytes.fromhex(stated["hex"]), stated["dtype"], stated["shape"]))


def bits(array: Array) -> Json:
    """Return an array as its bits."""
    return {"dtype": array.dtype.name, "shape": list(array.shape), "hex": bytes_of(as_array(array)).hex()}


class Conversation:
    """The calls of a case, made by one client. Unless the server is real, the clock advances only in waits."""

    def __init__(self, url: str, stated: Json, *, is_live: bool) -> None:
        self.waits: list[int] = []
        self._now = 0.0
        self._graphs: dict[str, gs.Graph] = {}
        self._registered: dict[str, gs.RegisteredGraph] = {}
        keys = count(1)
        options = {
            name: stated[name] for name in ("api_key", "retries", "idempotency", "max_response_bytes") if name in stated
        }
        self._client = gs.Client(
            url,
            timeout=stated["timeout_ms"] / 1000 if "timeout_ms" in stated else None,
            surroundings=None
            if is_live
            else Surroundings(lambda: self._now, lambda: 0.5, lambda: f"case-{next(keys)}"),
            sleep=time.sleep if is_live else self._wait,
            **options,
        )

    def _wait(self, seconds: float) -> None:
        self._now += seconds
        self.waits.append(round(seconds * 1000))

    def done(self, call: Json) -> Json:
        """Make a call and return its result."""
        try:
            return {"returned": OTHERS.get(call["do"], Conversation.computed)(self, call)}
        except gs.GradserveError as error:
            return {"raised": told(error)}

    def computed(self, call: Json) -> Json:
        """Make a call on a graph."""
        graph = self._graph(call["graph"])
        fields = {name: field(name, value, graph) for name, value in call.items() if name not in ("do", "graph")}
        target = self._register(call["graph"], at_once=False) if call["graph"].get("registered") else graph
        answer = getattr(self._client, call["do"])(target, **fields)
        returned = {name: looked_up(answer, name, part, graph) for name, part in answer.fields.items()}
        if isinstance(answer, gs.Derivative):
            returned["graph"] = json.dumps(to_wire(answer.graph))
        if isinstance(answer, gs.Hessian):
            returned["matrix"] = matrix(answer, graph)
        return returned

    def _graph(self, stated: Json) -> gs.Graph:
        known = key_of(stated)
        if known not in self._graphs:
            self._graphs[known] = graph_of(stated)
        return self._graphs[known]

    def _register(self, call: Json, *, at_once: bool) -> gs.RegisteredGraph:
        known = key_of(call)
        if known not in self._registered:
            graph, described = self._graph(call), call.get("description", "")
            self._registered[known] = self._client.register(graph, description=described, at_once=at_once)
        return self._registered[known]

    def registered(self, call: Json) -> Json:
        """Register a graph."""
        kept = self._register(call, at_once=True)
        return {name: value for name, value in kept.fields.items() if name != "graph"}

    def put(self, call: Json) -> Json:
        """Store a tensor."""
        conditions = {name: call[name] for name in ("if_match", "if_none_match") if name in call}
        return handle(self._client.put(call["name"], array_of(call["tensor"]), form=form_of(call), **conditions))

    def got(self, call: Json) -> Json:
        """Download a tensor."""
        found = self._client.get(call["name"], form=form_of(call))
        return {"tensor_id": found.handle.name, "etag": found.handle.etag, "tensor": bits(found.array)}

    def deleted(self, call: Json) -> Json:
        """Delete a tensor."""
        return handle(self._client.delete(call["name"], if_match=call.get("if_match")))

    def tensors(self, call: Json) -> Json:
        """List all tensors."""
        return {"tensors": [handle(kept) for kept in self._client.tensors(limit=call.get("limit"))]}

    def graphs(self, call: Json) -> Json:
        """List all graphs."""
        return {"graphs": [vars(kept) for kept in self._client.graphs(limit=call.get("limit"))]}

    def put_model(self, call: Json) -> Json:
        """Store a model."""
        graph = self._register(call["graph"], at_once=False) if "graph" in call else call["graph_id"]
        inputs = {each["name"]: (each["node"], each["dtype"], each["shape"]) for each in call["inputs"]}
        named = [(each["name"], each["node"]) for each in call["outputs"]]
        bound = {each["node"]: each["tensor_id"] for each in call["bound"]}
        stated = {name: call[name] for name in ("if_match", "if_none_match", "description") if name in call}
        return model(
            self._client.put_model(call["name"], graph, inputs=inputs, outputs=dict(named), bound=bound, **stated)
        )

    def got_model(self, call: Json) -> Json:
        """Fetch a model."""
        return model(self._client.model(call["name"]))

    def deleted_model(self, call: Json) -> Json:
        """Delete a model."""
        return model(self._client.delete_model(call["name"], if_match=call.get("if_match")))

    def models(self, call: Json) -> Json:
        """List all models."""
        return {"models": [model(kept) for kept in self._client.models(limit=call.get("limit"))]}

    def deleted_graph(self, call: Json) -> Json:
        """Delete a registered graph."""
        return vars(self._client.unregister(self._register(call["graph"], at_once=True)))

    def ops(self, call: Json) -> Json:
        """Fetch the op catalogue."""
        return self._client.ops()


def form_of(call: Json) -> Any:
    """Return the encoding of a call's tensors; None for the default."""
    return FORMS[call["form"]] if "form" in call else None


def handle(kept: gs.Resident) -> Json:
    """Return a handle by its API names."""
    names = {"name": "tensor_id", "nbytes": "bytes", "shape": "shape"}
    return {names.get(name, name): value for name, value in vars(kept).items() if value is not None}


def model(kept: gs.Model | gs.ModelSummary) -> Json:
    """Return a model by its API names."""
    told: Json = {name: getattr(kept, name) for name in ("name", "etag", "graph_id", "description")}
    for name in ("inputs", "outputs"):
        told[name] = [{"name": each, **vars(value)} for each, value in getattr(kept, name).items()]
    told["bound"] = [{"tensor_id": leaf.tensor_name, **vars(leaf)} for leaf in kept.bound]
    return told


def field(name: str, value: Any, graph: gs.Graph) -> Any:
    """Convert a field of a call."""
    if name == "form":
        return FORMS[value]
    if name == "of":
        return node_of(graph, value)
    if name in ("wrt", "outputs", "mapped"):
        return [node_of(graph, node) for node in value]
    if name == "cotangent":
        return array_of(value)
    if name in LISTS:
        return {node_of(graph, entry["node"]): fed(entry) for entry in value}
    if name == "types":
        return {node_of(graph, entry["node"]): (entry["dtype"], entry["shape"]) for entry in value}
    if name == "store":
        return {node_of(graph, entry["node"]): stored(entry) for entry in value}
    return value


def fed(entry: Json) -> Array | gs.Resident | gs.Rows:
    """Return the value for a node."""
    if "tensor_id" not in entry:
        return array_of(entry["tensor"])
    kept = gs.Resident(entry["tensor_id"], "")
    return kept.rows(*entry["rows"]) if "rows" in entry else kept


def stored(entry: Json) -> gs.Store:
    """Return the tensor that a call stores."""
    return gs.Store(entry["tensor_id"], entry.get("if_match"), entry.get("durable"), entry.get("gradient"))


def looked_up(answer: gs.Answer, name: str, part: Any, graph: gs.Graph) -> Any:
    """Return a field of a result. Look results up by node, as users do."""
    if not isinstance(part, list) or not hasattr(answer, name):
        return part
    return [looked_up_entry(getattr(answer, name), entry, graph) for entry in part]


def looked_up_entry(results: Any, entry: Any, graph: gs.Graph) -> Any:
    """Return an entry of a list, with the result for its nodes."""
    if not isinstance(entry, dict):
        return entry
    nodes = tuple(graph.find(entry[name]) for name in ("node", "of", "wrt", "row", "column") if name in entry)
    result = results[nodes if len(nodes) > 1 else nodes[0]]
    if isinstance(result, np.ndarray):
        return {**entry, "tensor": bits(result)}
    if isinstance(result, gs.Node):
        return {**entry, "gradient_node": result.id}
    return {**entry, **(handle(result) if isinstance(result, gs.Resident) else {})}


def matrix(answer: gs.Hessian, graph: gs.Graph) -> Json | None:
    """Return the matrix of a Hessian. Look its offsets up by node, as users do."""
    if answer.matrix is None:
        return None
    entries = answer.fields["matrix"]["offsets"]
    offsets = [{**entry, **answer.matrix.offsets[graph.find(entry["node"])]._asdict()} for entry in entries]
    return {"offsets": offsets, "tensor": bits(answer.matrix.array)}


def told(error: gs.GradserveError) -> Json:
    """Return an error in the form of a result."""
    kind = next(name for type_, name in TYPES if isinstance(error, type_))
    return {"type": kind, "message": f"{type(error).__name__}: {error}", **report(error)}


def report(error: gs.GradserveError) -> Json:
    """Return the members of a problem report."""
    if not isinstance(error, gs.Refusal):
        return {}
    stated = {name: getattr(error, name) for name in REPORTED if getattr(error, name) not in (None, "")}
    errors = {"errors": [report(one) for one in error.errors]} if error.errors else {}
    extra = {"extra": json.dumps(error.extra)} if error.extra else {}
    return {"status": error.status, **stated, **errors, **extra}


def exchanged(case: Json) -> Json:
    """Make the calls of a case."""
    conversation = Conversation(case["url"], case.get("client", {}), is_live=case["kind"] == "live")
    return {"results": [conversation.done(call) for call in case["calls"]], "waits": conversation.waits}


OTHERS: Final[Mapping[str, Callable[[Conversation, Json], Json]]] = {
    "register": Conversation.registered,
    "put": Conversation.put,
    "get": Conversation.got,
    "delete": Conversation.deleted,
    "list_tensors": Conversation.tensors,
    "list_graphs": Conversation.graphs,
    "put_model": Conversation.put_model,
    "get_model": Conversation.got_model,
    "delete_model": Conversation.deleted_model,
    "list_models": Conversation.models,
    "delete_graph": Conversation.deleted_graph,
    "ops": Conversation.ops,
}
KINDS: Final[Mapping[str, Callable[[Json], Json]]] = {
    "encode": encoded,
    "decode": decoded,
    "build": built,
    "exchange": exchanged,
    "live": exchanged,
}

if __name__ == "__main__":
    main()
