"""Pages of the error codes: explanation, calls that return the code, and an example."""

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
    """A refusal, and the request that causes it: a JSON `body`, a `raw` body, or a `head` (with its `refusal`).

    Without body and head, the cause is a state of the server or the connection, not a single request.
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
    """Cause of an error, and its remedy: a few sentences each."""

    meaning: str
    remedy: str


#: text of the pages that `type` links to, on the server and on the site; code is in backticks
EXPLANATIONS: Final[dict[str, Explanation]] = {
    "invalid_json": Explanation(
        "The body is not valid JSON. The error message says what is wrong, and at which line and column.",
        "Write the body with a JSON library, in UTF-8 without a byte-order mark. JSON has no NaN and no infinity: "
        "send tensors that contain them as `data_b64`.",
    ),
    "duplicate_key": Explanation(
        "An object in the body has the same key twice. JSON readers disagree on which of the two values counts, so "
        "the server accepts neither.",
        "Remove one of the two keys. The error message names the key, and its line and column.",
    ),
    "too_deep": Explanation(
        "The lists and objects in the body are nested more deeply than the server allows (`--json-depth`).",
        "No request needs deep nesting: a graph is a flat list of nodes, and the `data` of a tensor is a flat list of "
        "numbers in row-major order, not a list of rows.",
    ),
    "bad_request_framing": Explanation(
        "The bytes on the connection are not valid HTTP/1.1: they are malformed, they specify the length of the body "
        "in two ways, or they end before the end of the body.",
        "Use an HTTP library and let it set `Content-Length`. If you already use one, check the proxies between it "
        "and the server.",
    ),
    "unauthenticated": Explanation(
        "The server requires an API key. The request has no key, or its key is unknown or revoked. The server has not "
        "read the body.",
        "Send the key that the operator of the server gave you, in one header: `Authorization: Bearer KEY`.",
    ),
    "forbidden": Explanation(
        "The server knows the caller but does not allow the request: the key lacks the scope that `expected` names. "
        "Or the request comes from a web page whose origin is neither the server's own nor in the list of allowed "
        "origins.",
        "Ask the operator of the server for a key with that scope. For a web page, start the server with the page's "
        "origin in `--cors-origins`. The server's own pages need this, too, if they are behind a proxy that "
        "terminates TLS. Programs outside a browser need no origin.",
    ),
    "not_found": Explanation(
        "The path does not exist, or there is no call, op, page, registered graph, model or resident tensor with this "
        "name.",
        "Compare the path with [the API reference](/docs). For a misspelt name, the error message suggests the "
        "nearest one. A graph or a tensor is gone after it was deleted, or after a restart of a server that stores "
        "its state in memory: register the graph again, and store the tensor again.",
    ),
    "method_not_allowed": Explanation(
        "The path exists, but does not support this method. `expected` and the header `Allow` list the methods that "
        "it supports.",
        "Use one of these methods. Calls that run a graph are always `POST`, even if they store nothing.",
    ),
    "not_acceptable": Explanation(
        "The header `Accept` excludes every media type that the call can return.",
        "Accept a type that `expected` names, or omit the header.",
    ),
    "request_timeout": Explanation(
        "The client began to send the body, but then no byte arrived for as long as the server waits "
        "(`--body-timeout`).",
        "Check the network and send the request again. The server has not run it.",
    ),
    "conflict": Explanation(
        "Another request with the same `Idempotency-Key` is still in progress. Its response is not stored yet.",
        "Wait for the number of seconds in the header `Retry-After`, then send the request again. You get the same "
        "response as the first request.",
    ),
    "in_use": Explanation(
        "The graph cannot be deleted, because models use it. The error message names up to ten of these models.",
        "Delete these models or replace them with models of another graph, then delete the graph. The same request "
        "fails again until then.",
    ),
    "precondition_failed": Explanation(
        "A condition of the request does not hold: `If-Match`, `If-None-Match`, or the `if_match` of an entry in "
        "`store`. Nothing of the request was stored.",
        "Read the current version. If you still want the change, send the request again with the `ETag` of that "
        "version.",
    ),
    "body_too_large": Explanation(
        "The body or its `Content-Length` exceeds `--max-body-bytes`, or `--max-binary-bytes` for safetensors.",
        "Send tensors as `data_b64`, which needs about half the bytes of float64 numbers, or send smaller batches.",
    ),
    "too_many_nodes": Explanation(
        "The graph has more nodes than the server allows. Either the nodes of the graph and its functions as sent "
        "exceed `--max-nodes`, or the total with the nodes of gradients and of each use of a function exceeds "
        "`--max-expanded-nodes`. If gradients add more than 30,000 nodes, the limit is also `--max-expansion` per "
        "node sent.",
        "Replace loops over elements with ops on whole tensors, and loops over steps with `scan`. Each `grad` adds "
        "the nodes of a backward pass.",
    ),
    "over_budget": Explanation(
        "The request needs more bytes, floating-point operations or axes than the server allows for one request, "
        "nests functions more deeply than `--max-depth`, or would get a response that is too long. The server knows "
        "this from the shapes: it has allocated nothing.",
        "Compare `got` with `expected`. Use smaller batches, a narrower dtype or fewer outputs, or start the server "
        "with a higher limit.",
    ),
    "unsupported_media_type": Explanation(
        "The call does not accept bodies of the type in the header `Content-Type`.",
        "Send a type that `expected` names, without compression. JSON must be UTF-8.",
    ),
    "misdirected": Explanation(
        "The server runs without API keys, and the `Host` header is not one of its names. The server checks this "
        "because any web page can point its own domain name at 127.0.0.1, and then send requests from the browsers of "
        "its visitors.",
        "Call the server as `localhost` or by a loopback address, or start it with the name in `--allowed-hosts`. A "
        "proxy in front of the server can also set `Host`.",
    ),
    "unknown_op": Explanation(
        "The `op` of a node is neither the name nor an alias of an op. Case does not matter.",
        "Use the nearest name, which the error message suggests, or look the op up in `GET /v1/ops`.",
    ),
    "bad_reference": Explanation(
        "The request refers to a node that does not exist, to a later node, or to a node with several results without "
        "`get_output`.",
        "The id of a node is its index in `nodes`, from 0. An operand must be the id of an earlier node. Read the "
        "results of a node with several results through `get_output`.",
    ),
    "operand_count": Explanation(
        "The node has fewer or more operands than its op accepts.",
        "Check the signature of the op, which is in the error message. Some ops take a constant as an attribute "
        "instead of an operand: `add_scalar` takes one operand and the attribute `scalar`.",
    ),
    "bad_attribute": Explanation(
        "An attribute in `attrs` does not exist for this op, is missing, has the wrong type, or has a value that is "
        "invalid for these operands. Or it names a function that is not an earlier one, or that has another number of "
        "inputs or outputs than the op requires.",
        "The error message names the attribute and lists the attributes of the op. If you use an op by its name in "
        "another system, its attributes still have the names that they have here. The id of a function is its index "
        "in `functions`, from 0.",
    ),
    "shape_mismatch": Explanation(
        "The shapes of the operands do not fit the op or each other, a function does not return the shapes that the "
        "op which runs it requires, or a feed or cotangent does not have the declared shape.",
        "`node` and `operand` name the place, and the error message states the shapes. `reshape`, `transpose`, "
        "`broadcast_to` and `unsqueeze` change shapes.",
    ),
    "dtype_mismatch": Explanation(
        "The op does not accept the dtype of an operand, a function does not return the dtypes that the op which runs "
        "it requires, or a feed or cotangent does not have the declared dtype.",
        "Insert a `cast` before the operand, or send the tensor in the dtype that `expected` names.",
    ),
    "index_out_of_range": Explanation(
        "An element of an index tensor is negative, or not less than the extent of the axis that it refers to.",
        "Count from 0. Negative indices, which count from the end in other systems, are not supported.",
    ),
    "missing_feed": Explanation(
        "The result depends on an `input` or `parameter` that has no feed.",
        "Feed the node that the report names. Every leaf that an output or a node of `wrt` depends on needs a feed.",
    ),
    "unexpected_feed": Explanation(
        "A feed is for a node that is not an `input` or `parameter`, or that does not exist.",
        "Remove the feed, or correct its node. You may feed a leaf that the result does not depend on: the server "
        "checks the feed and does not use it.",
    ),
    "bad_tensor": Explanation(
        "A tensor does not match its `dtype` and `shape`: it has too few or too many elements, an element that the "
        "dtype cannot represent, a nested list, or bytes that are not base64.",
        "The number of elements must be the product of the shape. Send them as one flat list `data`, or as "
        "little-endian bytes in `data_b64`.",
    ),
    "non_scalar_output": Explanation(
        "The node to differentiate has several elements, and the request does not specify their weights.",
        "Reduce the node to one element with `sum` or `mean`, or send a `cotangent` of its shape.",
    ),
    "not_differentiable": Explanation(
        "The request differentiates a node that is not float, or differentiates with respect to one. Or it needs a "
        "tangent (`jvp`, `hvp`) through a `call` with a custom `derivative` that is not linear in its cotangents.",
        "`cast` the node to a float dtype, or remove it from `wrt`. For such a `call`, use `gradients`, or a `grad` "
        "of them.",
    ),
    "invalid_field": Explanation(
        "A field of the body or the query is misspelt, missing, of the wrong type, or out of range. If several fields "
        "are invalid, `errors` has a report for each.",
        "`pointer` leads to the field. Unknown fields are errors, they are not ignored; the error message suggests "
        "the nearest field.",
    ),
    "rate_limited": Explanation(
        "This key has reached its rate limit or its maximum number of concurrent requests. The server has not read "
        "the request.",
        "Wait for the number of seconds in the header `Retry-After`, then send the request again.",
    ),
    "headers_too_large": Explanation(
        "The request line and the headers together are longer than the server allows (`--max-header-bytes`).",
        "Send fewer or shorter headers. Cookies of other applications are a common cause.",
    ),
    "internal_error": Explanation(
        "The server failed. The request is not the cause. Nothing of it was stored.",
        "Find the cause in the log of the server under the `request_id`, and report both.",
    ),
    "queue_full": Explanation(
        "The server already runs and queues as many requests as it allows (`--workers`, `--queue`).",
        "Wait for the number of seconds in the header `Retry-After`, then send the request again. If this happens "
        "often, the server needs more workers, or its clients should wait for a response before they send more "
        "requests.",
    ),
    "shutting_down": Explanation(
        "The server is shutting down. It finishes the requests in progress and accepts no new ones.",
        "Wait for the number of seconds in the header `Retry-After`, then send the request again, to the server that "
        "replaces this one.",
    ),
    "not_ready": Explanation(
        "The workers did not complete the health check of `/health/ready`, or the server cannot write its state. Or "
        "the state is in S3 or similar storage, and another server has taken it over, or this server cannot check "
        "whether that has happened. Nothing of the request was stored.",
        "Send no requests until `/health/ready` returns 200 again. The log of the server has the cause. If this "
        "lasts, restart the server.",
    ),
    "worker_died": Explanation(
        "The worker process that ran the request died, and so did the worker that ran it a second time. Other workers "
        "completed the other requests of these two. Nothing of this request was stored.",
        "Wait for the number of seconds in the header `Retry-After`, then send the request again. If it kills a "
        "worker every time, report it with its `request_id`: the log of the server has the reason.",
    ),
    "unconfirmed": Explanation(
        "The server sent the write to the storage that holds its state, and got no response before the request timed "
        "out. The write may have been stored, may still be stored, or may never be stored. The server keeps checking.",
        "If the request has an `Idempotency-Key`, wait for the number of seconds in the header `Retry-After` and send "
        "it again: you get the response of the first request, and the write happens once. Otherwise, read the current "
        "state before you write again.",
    ),
    "deadline_exceeded": Explanation(
        "The request did not finish within its timeout: `timeout_ms` of the query, or the server's own "
        "(`--timeout-ms`). Time in the queue counts. Or the server did not start a node: the decomposition of a large "
        "matrix cannot be interrupted, so the server does not start one that would finish too late. The report then "
        "names the node and estimates its duration.",
        "Increase the timeout, up to the server's own, or reduce the work. If the server was busy, the same request "
        "may succeed later. If the report names a node, it will not: the estimate is on the low side.",
    ),
    "store_full": Explanation(
        "The server has no room for what the request would store. The number or size of graphs, tensors, models or "
        "stored responses has reached its limit (`--max-graphs`, `--max-tensors`, `--max-tensor-bytes` and similar "
        "settings), or the disk is full. Existing resources are unchanged.",
        "Delete resources that you no longer need, or give the server more room.",
    ),
}

#: failures that the OpenAPI document does not list, since any path, or no path in particular, may return them
BEYOND_THE_DOCUMENT: Final = (
    Failure(
        "method_not_allowed",
        head={"method": "GET", "path": "/v1/gradients"},
        refusal=Refusal(
            "method_not_allowed", "/v1/gradients does not support GET; it supports POST", expected="POST", got="GET"
        ),
    ),
    Failure(
        "forbidden",
        refusal=Refusal(
            "forbidden", "pages from https://elsewhere.example may not make this call", got="https://elsewhere.example"
        ),
    ),
    Failure("internal_error", refusal=internal_error()),
)


WIDTH: Final = 96
_MAX_SHOWN: Final = 160  # characters of a string or a header that are shown
_MAX_CALLS: Final = 6  # calls that a page lists


def format_json(value: Any, indent: int = 0, before: int = 0) -> str:
    """Format `value` as JSON for people. Objects and lists are broken only if a line would get too long.

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
    """Shorten a long text: return its beginning, and its length."""
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
        """Sentence that lists the first calls that return the code, if any."""
        if self.calls:
            names = ", ".join(f"`{call}`" for call in self.calls[:_MAX_CALLS])
            more = len(self.calls) - _MAX_CALLS
            return f"Returned by {names}{f' and {more} more' if more > 0 else ''}."
        return "Reserved: no call returns it yet." if self.reserved else "Returned by any path."


def error_pages(document: Json) -> dict[str, ErrorPage]:
    """Build a page for every code, with the calls and examples of this OpenAPI document."""
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
    """Yield every example of a problem: its code, its call, and the example."""
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
