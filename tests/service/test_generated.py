"""Thousands of generated requests: each is answered or refused, and none causes a server error.

GRADSERVE_TEST_REQUESTS sets their number, for longer runs.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import DTYPES, registry
from engine.ir.kinds.kind import AttributeKind
from service.api.calls import calls, computing_calls
from service.core.errors import UNREADABLE
from tests.conftest import Client
from tests.service.api.calls.test_calls import EXAMPLE
from tests.service.api.calls.test_derivative_calls import ASKED
from tests.service.described import closed
from tests.service.support import SQUARES, feed, node, request, tensor

REQUESTS = int(os.environ.get("GRADSERVE_TEST_REQUESTS", "2500"))
SHARES = {"mutated": 0.6, "graphs": 0.25, "described": 0.02, "garbage": 0.13}


def share(name: str, parts: int = 1) -> settings:
    return settings(max_examples=max(1, round(REQUESTS * SHARES[name] / parts)))


@pytest.fixture(scope="module")
def small(make_client: Callable[..., Client]) -> Client:
    """A client of a server whose budgets keep every generated request short."""
    return make_client(max_bytes=1 << 20, max_flops=10**8, max_nodes=300, max_body_bytes=1 << 20)


@pytest.fixture(scope="module")
def problem_schema(client: Client) -> jsonschema_rs.Validator:
    components = client.get("/openapi.json").json()["components"]
    return jsonschema_rs.validator_for({"$ref": "#/components/schemas/Problem", "components": components})


def check(client: Client, schema: jsonschema_rs.Validator, path: str, content: bytes) -> None:
    response = client.post(path, content=content)
    assert response.status_code == 200 or 400 <= response.status_code < 500, (response.text, content[:2000])
    if response.status_code != 200:
        schema.validate(response.json())
        assert response.json()["detail"] != UNREADABLE


CALLS = sorted(calls().keys() & ASKED.keys())
paths = st.sampled_from([f"/v1/{call}" for call in CALLS])
attributes = sorted(registry().attributes)
ops = sorted(registry().ops)
small_ints = st.integers(-3, 5)
odd_values = st.one_of(
    st.none(),
    st.booleans(),
    small_ints,
    st.sampled_from([2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 10**40, 0.5, -0.0, 1e300]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from([*ops, *DTYPES, "AAAA", "base64"]),
    st.lists(small_ints, max_size=4),
    st.just({}),
    st.just([[]]),
    st.builds(tensor, st.lists(small_ints, max_size=3), st.lists(small_ints, max_size=4), st.sampled_from(DTYPES)),
)

SEEDS: list[dict[str, Any]] = [
    EXAMPLE,
    SQUARES,
    SQUARES | {"of": 1, "wrt": [0], "cotangent": tensor([2], [1, 1]), "encoding": "base64", "outputs": [0, 1]},
    request(
        node("parameter", dtype="float32", shape=[-1, 2]),
        node("constant", value=tensor([2], [1, 0], "int64")),
        node("gather", 0, indices=[0, 1], axis=0),
        node("transpose", 2, axes=[1, 0]),
        node("reshape", 3, shape=[-1]),
        node("add_scalar", 4, scalar=0.5),
        node("mean", 5, axes=[0], keepdims=True),
        node("grad", 6, 0),
        feeds=[feed(0, [2, 2], [1, 2, 3, 4], "float32")],
    ),
]  # fmt: skip


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all parts of a JSON value, containers included."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in paths_in(item, (*path, key)))]


def mutate(data: st.DataObject, body: Any) -> Any:
    """Replace, remove, repeat or rename something, somewhere."""
    *parents, key = data.draw(st.sampled_from(paths_in(body)[1:]))
    parent = body
    for step in parents:
        parent = parent[step]
    match data.draw(st.sampled_from(["replace", "replace", "remove", "repeat", "rename", "attribute"])):
        case "replace":
            parent[key] = copy.deepcopy(data.draw(odd_values))  # drawn values are shared between runs
        case "remove":
            del parent[key]
        case "repeat" if isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        case "rename" if isinstance(parent, dict):
            parent[data.draw(st.sampled_from(["data", "node", "shape", "x", ""]))] = parent.pop(key)
        case "attribute":
            nodes = body.get("graph", {}).get("nodes") if isinstance(body.get("graph"), dict) else None
            if isinstance(nodes, list) and nodes and isinstance(nodes[-1], dict):
                nodes[-1]["attrs"] = {data.draw(st.sampled_from(attributes)): copy.deepcopy(data.draw(odd_values))}
    return body


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_mutated_requests_of_each_call(small: Client, problem_schema: jsonschema_rs.Validator, call: str) -> None:
    """Mutate the fields of each call in particular."""

    @share("mutated", len(SEEDS) + len(CALLS))
    @given(st.data(), st.integers(1, 3))
    def run(data: st.DataObject, times: int) -> None:
        body = copy.deepcopy(ASKED[call])
        for _ in range(times):
            if body:
                body = mutate(data, body)
        check(small, problem_schema, f"/v1/{call}", json.dumps(body).encode())

    run()


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(len(SEEDS)))
def test_mutated_requests(small: Client, problem_schema: jsonschema_rs.Validator, seed: int) -> None:
    @share("mutated", len(SEEDS) + len(CALLS))
    @given(st.data(), paths, st.integers(1, 3))
    def run(data: st.DataObject, path: str, times: int) -> None:
        body = copy.deepcopy(SEEDS[seed])
        for _ in range(times):
            if body:
                body = mutate(data, body)
        check(small, problem_schema, path, json.dumps(body).encode())

    run()


def values_of(kind: AttributeKind) -> st.SearchStrategy[Any]:
    """Plausible values for an attribute of a kind; the samples of the kind if it is not listed."""
    strategies = {
        "int": small_ints,
        "float": st.sampled_from([0, 0.5, -1, 2, 1e-5]),
        "number": st.sampled_from([0, 0.5, -1, 2, 2**53 + 1]),
        "bool": st.booleans(),
        "string": st.sampled_from(["none", "relu", "gelu", "tanh", "mean", "sum", "ij,jk->ik", "i->", "->"]),
        "ints": st.lists(small_ints, max_size=4),
        "dtype": st.sampled_from(DTYPES),
        "tensor": st.builds(tensor, st.just([2]), st.just([0, 1]), st.sampled_from(DTYPES)),
    }
    return strategies.get(kind.name, st.sampled_from(kind.samples))


@st.composite
def nodes(draw: st.DrawFn, position: int) -> dict[str, Any]:
    """A node of any op, mostly with the right number of operands and attributes of the right kinds."""
    op = registry().ops[draw(st.sampled_from(ops))]
    count = draw(st.sampled_from([len(op.operands), len(op.operands), len(op.operands), 1]))
    operands = [draw(st.integers(max(-1, position - 4), position - 1)) for _ in range(count)] if position else []
    attrs = {name: draw(values_of(a.definition)) for name, a in op.attrs.items() if a.required or draw(st.booleans())}
    return {"op": op.name, "operands": operands, "attrs": attrs}


LEAVES = [
    (node("parameter"), feed(0, [2, 3], [1, -2, 0, 4, 0.5, 6])),
    (node("parameter"), feed(1, [3], [0, 1, 2])),
    (node("input"), feed(2, [2], [0, 1], "int64")),
    (node("input"), feed(3, [], [1], "bool")),
    (node("input"), feed(4, [0, 3], [], "float32")),
]


def completed(data: st.DataObject, call: str, body: dict[str, Any]) -> dict[str, Any]:
    """Add the fields that a call takes beside a graph, mostly with valid values."""
    last = len(body["graph"]["nodes"]) - 1
    some = st.lists(st.sampled_from([0, 1, last - 1]), min_size=1, max_size=3, unique=True)
    if call != "forward":
        body |= {"wrt": data.draw(some), "outputs": data.draw(some | st.just([last]))}
    match call:
        case "forward":
            body["outputs"] = data.draw(st.lists(st.integers(0, last), min_size=1, max_size=4))
        case "vjp":
            body["outputs"] = data.draw(st.sampled_from([[0], [1], [0, 1]]))
            body["cotangents"] = [LEAVES[i][1] for i in body["outputs"]]
            body["batched"] = data.draw(st.booleans())
        case "jvp":
            body["tangents"] = [LEAVES[i][1] for i in data.draw(some) if i < 2]
            body.pop("wrt")
        case "hvp":
            body["wrt"] = data.draw(st.sampled_from([[0], [1], [1, 0]]))
            body["vectors"] = [LEAVES[i][1] for i in body["wrt"]]
        case "batch":
            body["mapped"] = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True))
        case "plan":
            body |= {"call": data.draw(st.sampled_from(sorted(computing_calls()))), "mapped": [0]}
        case "check" | "differentiate":
            body.pop("outputs")
    return with_feeds(call, body, last)


def with_feeds(call: str, body: dict[str, Any], last: int) -> dict[str, Any]:
    """Add feeds, or types for calls that take types, for the leaves that the request needs."""
    needed = {
        *body.get("wrt", ()),
        *body.get("outputs", [last]),
        *([] if call in ("jvp", "forward", "vjp") else [last]),
    }
    for i in range(last, -1, -1):
        needed |= set(body["graph"]["nodes"][i]["operands"]) if i in needed else set()
    needed |= {one["node"] for one in body.get("tangents", ())}
    feeds = [one for _, one in LEAVES if one["node"] in needed]
    types = [{"node": one["node"], **{k: one["tensor"][k] for k in ("dtype", "shape")}} for one in feeds]
    return body | ({"types": types} if call in ("plan", "differentiate") else {"feeds": feeds})


@pytest.mark.slow
def test_random_graphs_of_every_op(small: Client, problem_schema: jsonschema_rs.Validator) -> None:
    @share("graphs")
    @given(st.data(), st.sampled_from(CALLS), st.integers(1, 6))
    def run(data: st.DataObject, call: str, length: int) -> None:
        count = len(LEAVES)
        drawn = [data.draw(nodes(count + i)) for i in range(length)]
        drawn.append(node("sum", count + length - 1))
        graph = {"nodes": [*(leaf for leaf, _ in LEAVES), *drawn]}
        body = completed(data, call, {"graph": graph})
        check(small, problem_schema, f"/v1/{call}", json.dumps(body).encode())

    run()


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_requests_generated_from_the_document(
    small: Client, problem_schema: jsonschema_rs.Validator, call: str
) -> None:
    described = schemathesis.openapi.from_dict(closed(small.get("/openapi.json").json()))  # or few would be valid
    operation = described[f"/v1/{call}"]["POST"]

    @share("described", len(CALLS))
    @given(operation.as_strategy())
    def run(case: Any) -> None:
        check(small, problem_schema, f"/v1/{call}", json.dumps(case.body).encode())

    run()


PIECES = [
    b'{"graph":', b'{"nodes":[', b'{"op":', b'"input"', b"[", b"]", b"{", b"}", b",", b":", b'"', b"\\", b"1e999",
    b"-0", b"NaN", b"\xff", b"\x00", b"null", b'"feeds"',
]  # fmt: skip


@pytest.mark.slow
def test_garbage(small: Client, problem_schema: jsonschema_rs.Validator) -> None:
    @share("garbage")
    @given(paths, st.binary(max_size=200) | st.lists(st.sampled_from(PIECES), max_size=60).map(b"".join))
    def run(path: str, content: bytes) -> None:
        check(small, problem_schema, path, content)

    run()
