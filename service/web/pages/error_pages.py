"""Pages of the error codes: explanation, calls that answer with the code, and an example."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any, Final, NamedTuple

from service.api.calls.description import Json
from service.api.media import PROBLEM
from service.core.errors import KINDS, Kind, Refusal, internal_error

#: request id in all examples
REQUEST_ID: Final = "6f1c2d7e9a4b4c0f8d3e5a7b9c1d2e3f"


@dataclass(frozen=True)
class Failure:
    """A refusal, and the request that causes it: a JSON `body`, a `raw` one, or a `head` (with its `refusal`).

    Without body and head: a state of the server or the connection, which no single request causes.
    """

    code: str
    body: Json | None = None
    raw: str | None = None
    head: Mapping[str, Any] = field(default_factory=dict)
    refusal: Refusal | None = None

    @property
    def request(self) -> Json:
        """Request to send: `body` or `raw`, `path`, `query`, `method`, `headers`."""
        sent = {"body": self.body, "raw": self.raw, **self.head}
        return {name: value for name, value in sent.items() if value is not None}


class Explanation(NamedTuple):
    """Cause of an error and its remedy, in a sentence or two each."""

    meaning: str
    remedy: str


#: text of the pages that `type` links to, on the server and on the site; code is in backticks
EXPLANATIONS: Final[dict[str, Explanation]] = {
    "invalid_json": Explanation(
        "The bytes of the body are not JSON: the sentence says what is wrong, and at which line and column.",
        "Write the body with a JSON library, in UTF-8 without a byte-order mark. JSON has no NaN and no infinity: "
        "send a tensor that holds them as `data_b64`.",
    ),
    "duplicate_key": Explanation(
        "One object of the body has the same key twice. Readers disagree on which of the two counts, so neither does.",
        "Remove one of them. The sentence names the key, and its line and column.",
    ),
    "too_deep": Explanation(
        "Lists and objects of the body are nested more deeply than the server reads (`--json-depth`).",
        "No request needs much depth: a graph is a flat list of nodes, and the `data` of a tensor is a flat list of "
        "numbers in row-major order, not a list of rows.",
    ),
    "bad_request_framing": Explanation(
        "The bytes on the connection are not HTTP/1.1, say in two ways where the body ends, or stop within it.",
        "Use an HTTP library and let it set `Content-Length`. Where one is in use, look at what lies between it and "
        "the server.",
    ),
    "unauthenticated": Explanation(
        "The server asks for a key, and the request has none, one that the server does not know, or one that has been "
        "revoked. Nothing of its body was read.",
        "Send the key that whoever runs the server has given you, in one header: `Authorization: Bearer KEY`.",
    ),
    "forbidden": Explanation(
        "The server knows who asks, and does not let them: the key has not the scope that `expected` names. Or it is a "
        "web page that asks, and its origin is neither the server's own nor among those that may call.",
        "Ask whoever runs the server for a key of that scope. For a web page, start the server with the page's origin "
        "in `--cors-origins`, as for pages of the server itself behind a proxy that ends TLS; programs outside a "
        "browser need no origin.",
    ),
    "not_found": Explanation(
        "There is nothing at this path, or nothing of this name: no such call, op, page, registered graph, model or "
        "resident tensor.",
        "Compare the path with [the calls](/docs), and a name with the nearest one, which the sentence suggests. A "
        "graph or a tensor is gone once it is deleted, and where a server keeps its state in memory, once that ends: "
        "register the graph again, and put the tensor.",
    ),
    "method_not_allowed": Explanation(
        "The path exists and does not take this method. `expected`, and the header `Allow`, list those that it takes.",
        "Use one of them. A call that computes is a `POST`, also where nothing is kept.",
    ),
    "not_acceptable": Explanation(
        "The header `Accept` rules out every media type that the call can answer with.",
        "Accept a type that `expected` names, or leave the header out.",
    ),
    "request_timeout": Explanation(
        "The body began, and then no byte of it came for as long as the server waits (`--body-timeout`).",
        "Look at the network, and send the request again. Nothing of it was computed.",
    ),
    "conflict": Explanation(
        "The same call, with the same `Idempotency-Key`, is under way: what it keeps is not kept yet.",
        "Send it again after the seconds in the header `Retry-After`: it is then answered as the first one was.",
    ),
    "in_use": Explanation(
        "What is to be deleted is needed by something else that is kept: a graph by models of it, which the sentence "
        "names, ten at most.",
        "Delete these models, or put them anew with another graph, and then delete the graph. Sent again unchanged it "
        "gets the same answer.",
    ),
    "precondition_failed": Explanation(
        "The request states a condition, in `If-Match`, `If-None-Match` or the `if_match` of a `store`, and it does "
        "not hold. Nothing of the request was kept.",
        "Read the present version, and send the request again with its `ETag`, if it is still what you want.",
    ),
    "body_too_large": Explanation(
        "The body has, or announces, more bytes than the server takes (`--max-body-bytes`).",
        "Send tensors as `data_b64`, which takes about half the bytes of float64 numbers, or send smaller batches.",
    ),
    "too_many_nodes": Explanation(
        "The graph has more nodes than the server takes, as it was sent with its functions (`--max-nodes`) or with the "
        "nodes of its gradients and of each use of a function (`--max-expanded-nodes`; beyond 30,000, "
        "`--max-expansion` for each node sent).",
        "Write loops over elements as ops on whole tensors, and loops over steps as `scan`. Each `grad` adds the nodes "
        "of a backward pass.",
    ),
    "over_budget": Explanation(
        "The request needs more bytes, floating-point operations or axes than the server gives one request, its "
        "functions run within one another at too many levels (`--max-depth`), or its answer would be too long. This is "
        "known from the shapes: nothing was allocated.",
        "Compare `got` with `expected`; then take smaller batches, a narrower dtype or fewer outputs, or start the "
        "server with a higher limit.",
    ),
    "unsupported_media_type": Explanation(
        "The header `Content-Type` names a type of body that the call does not read.",
        "Send a type that `expected` names, not compressed; JSON in UTF-8.",
    ),
    "misdirected": Explanation(
        "The server asks for no keys, and the header `Host` has a name that is not its own. Any web page can have its "
        "name lead to 127.0.0.1, and so call in the name of whoever looks at it.",
        "Call the server `localhost`, or by an address of the loopback; or start it with the name in "
        "`--allowed-hosts`. A proxy in front of it may set `Host`.",
    ),
    "unknown_op": Explanation(
        "A node's `op` is neither the name of an op nor another system's spelling of one. Case does not matter.",
        "Take the nearest name, which the sentence suggests, or look it up in `GET /v1/ops`.",
    ),
    "bad_reference": Explanation(
        "The request refers to a node that does not exist, that comes later, or that has several results and was not "
        "read through `get_output`.",
        "A node's id is its index in `nodes`, from 0. An operand is the id of an earlier node.",
    ),
    "operand_count": Explanation(
        "The node has fewer or more operands than its op takes.",
        "Look at the op's signature, which the sentence repeats. A constant may be an attribute and no operand: "
        "`add_scalar` takes one operand and `scalar`.",
    ),
    "bad_attribute": Explanation(
        "An attribute in `attrs` is one that the op does not have, is missing, is of the wrong type, or has a value "
        "that makes no sense for these operands; or it names a function that does not come before, or that takes or "
        "gives another number of values.",
        "The sentence names the attribute, and lists those that the op has. Other systems' attributes are not renamed "
        "with their ops. A function's id is its index in `functions`, from 0.",
    ),
    "shape_mismatch": Explanation(
        "The shapes of a node's operands do not fit its op or each other, a function does not give the shapes that "
        "the op which runs it needs, or a feed or cotangent has not the shape that was declared.",
        "Go to `node` and `operand`: the sentence has the shapes. `reshape`, `transpose`, `broadcast_to` and "
        "`unsqueeze` make others.",
    ),
    "dtype_mismatch": Explanation(
        "An operand has a dtype that the op does not take, a function does not give the dtypes that the op which runs "
        "it needs, or a feed or cotangent has not the dtype that was declared.",
        "Put a `cast` before the operand, or send the tensor in the dtype that `expected` names.",
    ),
    "index_out_of_range": Explanation(
        "An element of an index tensor is below 0, or not below the extent of the axis that it points into.",
        "Count from 0. Indices from the end, as negative ones are elsewhere, are not known here.",
    ),
    "missing_feed": Explanation(
        "The answer needs the value of an `input` or `parameter`, and `feeds` has none for it.",
        "Feed the node that the report names. Every leaf needs a feed on which an output, or a node of `wrt`, depends.",
    ),
    "unexpected_feed": Explanation(
        "A feed is for a node that is no `input` and no `parameter`, or that does not exist.",
        "Leave the feed out, or name the leaf that it is meant for. A leaf that the answer does not need may be fed; "
        "its feed is checked and not used.",
    ),
    "bad_tensor": Explanation(
        "A tensor is not what its `dtype` and `shape` say: too few or too many elements, one that the dtype does not "
        "hold, a nested list, or bytes that are not base64.",
        "Send as many elements as the product of the shape, in one flat list `data`, or as little-endian bytes in "
        "`data_b64`.",
    ),
    "non_scalar_output": Explanation(
        "The node to differentiate has several elements, and the request does not say how they are weighted.",
        "Reduce the node to one element with `sum` or `mean`, or send a `cotangent` of its shape.",
    ),
    "not_differentiable": Explanation(
        "A derivative was asked of, or with respect to, a node that is not float; or a tangent, as by `jvp` or "
        "`hvp`, through a `call` whose own `derivative` is not linear in its cotangents.",
        "`cast` it to a float dtype, or take it out of `wrt`. Of such a `call`, ask `gradients`, or a `grad` of them.",
    ),
    "invalid_field": Explanation(
        "A field of the body or the query is misspelt, missing, of the wrong type, or out of range. A body with "
        "several such faults has a report for each in `errors`.",
        "Go to `pointer`. A field that is not known is refused, not ignored; the sentence suggests the nearest one.",
    ),
    "rate_limited": Explanation(
        "This key has used up its share for now: its rate, or the number of requests that it may have in work at a "
        "time. Nothing of the request was read.",
        "Wait for the seconds in the header `Retry-After`, then send the request again.",
    ),
    "headers_too_large": Explanation(
        "The request line and the headers have more bytes together than the server reads (`--max-header-bytes`).",
        "Send fewer or shorter headers. Cookies meant for others are a common cause.",
    ),
    "internal_error": Explanation(
        "The server failed, and the request is not to blame. Nothing was kept of it.",
        "Look at the server's log, which has the cause under the `request_id`, and report both.",
    ),
    "queue_full": Explanation(
        "As many requests compute and wait as the server admits (`--workers`, `--queue`).",
        "Wait for the seconds in the header `Retry-After`, then send the request again. If this is frequent, the "
        "server needs more workers, or its clients should wait for an answer before they send more.",
    ),
    "shutting_down": Explanation(
        "The server has been told to stop: it finishes what it has, and takes nothing new.",
        "Send the request again after the seconds in the header `Retry-After`, to this server's successor.",
    ),
    "not_ready": Explanation(
        "`/health/ready` had the workers compute something, and they did not; or what is to be kept cannot be written; "
        "or, where the state is in S3 and its like, another server has taken it over, or that cannot be seen. Nothing "
        "was kept of the request.",
        "Send no work until it answers 200 again. The server's log has the cause; if this lasts, restart the server.",
    ),
    "worker_died": Explanation(
        "The process that computed the request ended with it, twice. The other requests that it "
        "had were done by others, and nothing was kept of this one.",
        "Send the request again after the seconds in the header `Retry-After`. If it ends workers every time, report "
        "it with its `request_id`: the server's log has the reason.",
    ),
    "unconfirmed": Explanation(
        "What the request writes was sent to the place where the server keeps its state, and by the time that the "
        "request has, there was no answer: it may be kept, or come to be kept, or not. The server goes on to ask.",
        "If the request has an `Idempotency-Key`, send it again after the seconds in the header `Retry-After`: it is "
        "answered as it would have been, and done once. If not, read what is there before you write it again.",
    ),
    "deadline_exceeded": Explanation(
        "The request was not finished within its time: `timeout_ms` of the query, or the server's own "
        "(`--timeout-ms`). Waiting for a worker counts. Or a node was not begun: a decomposition of a large matrix is "
        "one piece of work, which nothing interrupts; where it would end too late, the report says so, with the node "
        "and about how long that takes.",
        "Give it more time, up to the server's own, or less to do. Sent again unchanged it may succeed, if the server "
        "was busy; not if a node was named, whose time is estimated low.",
    ),
    "store_full": Explanation(
        "The server has no room left for what the request would keep: as many graphs, tensors, models or answers are "
        "there as it may keep (`--max-graphs`, `--max-tensors`, `--max-tensor-bytes` and their like), or its disk is "
        "full. What was there before stands.",
        "Delete what is no longer needed, or give the server more room.",
    ),
}

#: failures that no call of the OpenAPI document lists, since any path may answer with them, or none in particular
BEYOND_THE_DOCUMENT: Final = (
    Failure(
        "method_not_allowed",
        head={"method": "GET", "path": "/v1/gradients"},
        refusal=Refusal(
            "method_not_allowed", "/v1/gradients does not take GET; it takes POST", expected="POST", got="GET"
        ),
    ),
    Failure(
        "forbidden",
        refusal=Refusal(
            "forbidden", "pages of https://elsewhere.example may not make this call", got="https://elsewhere.example"
        ),
    ),
    Failure("internal_error", refusal=internal_error()),
)


WIDTH: Final = 96
_MAX_SHOWN: Final = 160  # characters of a string or a header that are shown
_MAX_CALLS: Final = 6  # calls that a page names


def format_json(value: Any, indent: int = 0, before: int = 0) -> str:
    """Format `value` as JSON for people: objects and lists are broken only where a line would get too long.

    The line begins with `indent` spaces, and `before` more characters precede the value.
    """
    flat = json.dumps(value, ensure_ascii=False)
    if indent + before + len(flat) <= WIDTH or not isinstance(value, dict | list):
        return flat
    space, inner = " " * indent, indent + 2
    if isinstance(value, dict):
        keyed = ((f"{json.dumps(key, ensure_ascii=False)}: ", item) for key, item in value.items())
        lines_inside = ",\n".join(f"{space}  {key}{format_json(item, inner, len(key))}" for key, item in keyed)
        return f"{{\n{lines_inside}\n{space}}}"
    if any(isinstance(item, dict | list) for item in value):
        lines_inside = ",\n".join(f"{space}  {format_json(item, inner)}" for item in value)
    else:  # a long list of plain values, filled as a paragraph
        lines = wrap(flat[1:-1], WIDTH - inner, break_long_words=False, break_on_hyphens=False)
        lines_inside = "\n".join(f"{space}  {line}" for line in lines)
    return f"[\n{lines_inside}\n{space}]"


def shorten(text: str) -> str:
    """Shorten a long text to its beginning and its length."""
    return text if len(text) <= _MAX_SHOWN else f"{text[:40]}… ({len(text)} characters)"


@dataclass(frozen=True)
class ExampleRequest:
    """A complete request; `content` is its body as it is sent."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    content: str = ""
    body: Json | None = None

    @property
    def text(self) -> str:
        """The request for people: long parts shortened, the body formatted."""
        head = [f"{self.method} {self.path}", *(f"{name}: {shorten(value)}" for name, value in self.headers.items())]
        body = shorten(self.content) if self.body is None else format_json(self.body)
        return "\n".join([*head, "", body]) if body else "\n".join(head)


@dataclass(frozen=True)
class Example:
    """A problem as the server reports it, and the request that causes it, if one request does."""

    problem: Json
    request: ExampleRequest | None = None


@dataclass(frozen=True)
class ErrorPage:
    """Page of one code."""

    code: str
    kind: Kind
    explanation: Explanation
    calls: tuple[str, ...]
    example: Example | None

    @property
    def reserved(self) -> bool:
        """Whether the code is reserved for calls of a later version."""
        return self.example is None

    @property
    def where(self) -> str:
        """Sentence that lists the first calls that answer with the code, if any."""
        if self.calls:
            names = ", ".join(f"`{call}`" for call in self.calls[:_MAX_CALLS])
            more = len(self.calls) - _MAX_CALLS
            return f"Answered by {names}{f' and {more} more' if more > 0 else ''}."
        return "Reserved: no call answers it yet." if self.reserved else "Answered by any path."


def error_pages(document: Json) -> dict[str, ErrorPage]:
    """Make a page for every code, with the calls and examples of this OpenAPI document."""
    documented = list(_documented_examples(document))
    return {code: _page(code, documented) for code in KINDS}


def _page(code: str, documented: list[tuple[str, str, Example]]) -> ErrorPage:
    examples = [example for example_code, _, example in documented if example_code == code]
    calls = tuple(call for example_code, call, _ in documented if example_code == code)
    for failure in BEYOND_THE_DOCUMENT:
        if failure.code == code:
            assert failure.refusal is not None
            sent = _example_request("GET /", failure.request) if failure.request else None
            examples.append(Example(dict(failure.refusal.problem(REQUEST_ID)), sent))
    return ErrorPage(code, KINDS[code], EXPLANATIONS[code], calls, min(examples, key=_effort, default=None))


def _effort(example: Example) -> int:
    """Rank examples: a GET first, then other requests, and none last."""
    return 2 if example.request is None else int(example.request.method != "GET")


def _documented_examples(document: Json) -> Iterator[tuple[str, str, Example]]:
    """Yield every example of a problem: its code, its call, and itself."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            call = f"{method.upper()} {path}"
            for response in operation["responses"].values():
                described = _resolved(document, response).get("content", {}).get(PROBLEM, {})
                for code, referred in described.get("examples", {}).items():
                    example = _resolved(document, referred)
                    yield code, call, Example(example["value"], _example_request(call, example.get("x-request")))


def _resolved(document: Json, described: Json) -> Json:
    """Follow a reference to `components`, if this is one."""
    if "$ref" not in described:
        return described
    _, components, kind, name = described["$ref"].split("/")
    component: Json = document[components][kind][name]
    return component


def _example_request(call: str, differences: Json | None) -> ExampleRequest | None:
    """Write the request of an example from its differences to a plain one; None without differences."""
    if differences is None:
        return None
    method, path = call.split()
    body = differences.get("body", {} if method != "GET" and "raw" not in differences else None)
    return ExampleRequest(
        differences.get("method", method),
        differences.get("path", path),
        differences.get("headers", {}),
        differences.get("raw", "" if body is None else json.dumps(body)),
        body,
    )
