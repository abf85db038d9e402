"""Correct results of all cases pass, and any difference in a result or a request is detected."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from clients.conformance.bits import to_file, to_json
from clients.conformance.cases import Case, cases
from clients.conformance.compare import TENSOR_MEMBERS, difference, fault
from clients.conformance.programs import ENVIRONMENT_KEY
from clients.conformance.requests import unexpected
from clients.conformance.scripted import JSON, SAFETENSORS, ReceivedRequest
from clients.conformance.steps import nodes_of
from tests.sampling import together

Json = dict[str, Any]
ALL = [case for case in cases() if case["kind"] != "live"]
EXCHANGES = [case for case in ALL if case["kind"] == "exchange"]


def correct_result(case: Case) -> Json:
    """The expected result of a case."""
    want = case["want"]
    if "error" in want:
        return {"error": want["error"] | {"message": "no"}}
    match case["kind"]:
        case "encode":
            bits = case["tensor"]
            if want["as"] == "file":
                return {"file": to_file({"t": bits}).hex()}
            return {"wire": numbers(bits) if want["as"] == "data" else json.dumps(to_json(bits))}
        case "exchange":
            return {"results": [with_message(result) for result in want["results"]], "waits": want["waits"]}
    return copy.deepcopy(want)


def numbers(bits: Json) -> str:
    """A tensor with its elements in JSON, as in the case that decodes it."""
    read = (case for case in ALL if case["want"].get("tensor") == bits)
    return next(case["wire"] for case in read if '"data"' in case.get("wire", ""))


def with_message(result: Json) -> Json:
    if "raised" not in result:
        return copy.deepcopy(result)
    error = {name: value for name, value in result["raised"].items() if name != "mentions"}
    return {"raised": error | {"message": f"no {' '.join(result['raised'].get('mentions', ()))}"}}


@pytest.mark.parametrize("kind", ["encode", "decode", "build", "exchange"])
def test_expected_results_pass(kind: str) -> None:
    faults = {case["id"]: fault(case, correct_result(case)) for case in ALL if case["kind"] == kind}
    assert faults
    assert not {name: message for name, message in faults.items() if message is not None}


@together
@pytest.mark.parametrize("case", ALL, ids=lambda case: case["id"])
def test_any_change_to_a_result_is_detected(case: Case) -> None:
    """Each part of the expected result is changed by itself."""
    changed = list(corrupted(correct_result(case)))
    assert changed or case["kind"] == "exchange"
    for result in changed:
        assert fault(case, result) is not None, result


def corrupted(result: Json) -> Iterator[Json]:
    for path in leaves(result):
        if path[-1] not in ("message", "wire"):
            changed = copy.deepcopy(result)
            place = changed
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = different(place[path[-1]], path[-1])
            yield changed
    if "wire" in result:
        tensor = json.loads(result["wire"])
        yield {"wire": json.dumps(tensor | {"dtype": "int8" if tensor["dtype"] != "int8" else "uint8"})}
        yield {"wire": json.dumps(tensor | {"shape": [*tensor["shape"], 2]})}
        yield {"wire": json.dumps(tensor | {"node": 1})}
    yield {}


def leaves(value: Any) -> Iterator[tuple[Any, ...]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        if isinstance(part, dict | list) and part:
            yield from ((key, *rest) for rest in leaves(part))
        elif part not in ([], {}):
            yield (key,)


def different(value: Any, name: Any) -> Any:
    """A different value of the same type."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case None:
            return 0
    if name in ("hex", "file"):
        return value[:-1] + ("0" if value[-1:] != "0" else "1") if value else "00"
    if name in ("nodes", "functions", "graph", "extra"):
        parsed = json.loads(value)
        path = next(leaves(parsed))
        place = parsed
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = different(place[path[-1]], path[-1])
        return json.dumps(parsed)
    return value + "-"


def expected_request(seen: Json, key: str, *, binary: bool = False) -> ReceivedRequest:
    """The request that a case expects."""
    body, kind = seen.get("body"), JSON
    headers = {"authorization": f"Bearer {seen.get('api_key', key)}"} | {
        name: value for name, value in seen.get("headers", {}).items() if value is not None
    }
    if "idempotency_key" in seen:
        headers["idempotency-key"] = seen["idempotency_key"]
    content = b""
    if seen.get("form") == "binary" or (binary and body is not None and not seen["path"].startswith("/v1/models/")):
        content, kind = file_body(body, seen), SAFETENSORS
    elif body is not None:
        content = json.dumps(to_json(body) if is_tensor(seen) else encoded(body)).encode()
    return ReceivedRequest(
        seen["method"], seen["path"], urlencode(seen.get("query", {})), headers | {"content-type": kind}, content
    )


def is_tensor(seen: Json) -> bool:
    """Whether the body of a request is a tensor alone."""
    return bool(seen["method"] == "PUT" and seen["path"].startswith("/v1/tensors/"))


def file_body(body: Json, seen: Json) -> bytes:
    if is_tensor(seen):
        return to_file({"a": body})
    request, tensors = copy.deepcopy(body), {}
    for role in ("feeds", "cotangents", "tangents", "vectors"):
        for entry in request.get(role, ()):
            if "tensor" in entry:
                tensors[f"{role}.{entry['node']}"] = entry.pop("tensor")
    if "cotangent" in request:
        tensors[f"cotangents.{request['of']}"] = request.pop("cotangent")
    return to_file(tensors, {"request": json.dumps(encoded(request))})


def encoded(value: Any, name: str = "") -> Any:
    if isinstance(value, list):
        return nodes_of(value) if name == "nodes" else [encoded(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if name in TENSOR_MEMBERS:
        return to_json(value)
    return {key: encoded(member, key) for key, member in value.items()}


def expected_requests(case: Case, *, binary: bool = False) -> list[ReceivedRequest]:
    key = case.get("client", {}).get("api_key", ENVIRONMENT_KEY)
    return [expected_request(seen, key, binary=binary and seen.get("form") != "json") for seen in case["saw"]]


@pytest.mark.parametrize("binary", [False, True], ids=["json", "binary"])
def test_expected_requests_pass(binary: bool) -> None:
    faults = {case["id"]: unexpected(case, expected_requests(case, binary=binary)) for case in EXCHANGES}
    assert not {name: message for name, message in faults.items() if message is not None}


@together
@pytest.mark.parametrize("case", [case for case in EXCHANGES if case["saw"]], ids=lambda case: case["id"])
def test_any_change_to_a_request_is_detected(case: Case) -> None:
    requests = expected_requests(case)
    assert unexpected(case, requests[:-1])
    assert unexpected(case, [*requests, requests[-1]])
    for i, request in enumerate(requests):
        for changed in altered(request, case["saw"][i]):
            assert unexpected(case, [*requests[:i], changed, *requests[i + 1 :]]), changed


def altered(request: ReceivedRequest, seen: Json) -> Iterator[ReceivedRequest]:
    yield request._replace(method="PATCH")
    yield request._replace(path=request.path + "/")
    yield request._replace(query="timeout_ms=7")
    yield request._replace(headers=request.headers | {"idempotency-key": "case-9"})
    yield request._replace(headers={name: value for name, value in request.headers.items() if name != "authorization"})
    yield request._replace(headers=request.headers | {"authorization": "Bearer other"})
    for name in seen.get("headers", {}):
        yield request._replace(headers=request.headers | {name: '"other"'})
    if "form" in seen:
        kind = JSON if seen["form"] == "binary" else SAFETENSORS
        yield request._replace(headers=request.headers | {"content-type": kind})
    if "body" in seen and seen.get("form") != "binary":
        body = json.loads(request.body)
        yield request._replace(body=json.dumps(body | {"more": 1}).encode())
        yield request._replace(body=json.dumps({name: body[name] for name in list(body)[1:]}).encode())


@pytest.mark.parametrize(
    ("want", "got", "same"),
    [
        (1, 1, True),
        (1, 1.0, False),
        (1, True, False),
        (1.0, 1, True),
        (1.0, 1.5, False),
        (-0.0, 0.0, False),
        (-0.0, -0.0, True),
        (-0.0, 0, False),
        (2**53 + 1, 2**53, False),
        ([], None, False),
        ([1], [], False),
        ({"a": []}, {}, True),
        ({"a": []}, {"a": [1]}, False),
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, [1], False),
        ("1", 1, False),
        (None, None, True),
        (False, None, False),
    ],
)
def test_value_comparison(want: Any, got: Any, same: bool) -> None:
    assert (difference(want, got) is None) is same


def test_error_messages_must_mention_required_words() -> None:
    case = next(case for case in EXCHANGES if case["want"]["results"][0].get("raised", {}).get("mentions"))
    for message, expected in (
        ("make it idempotency=False", None),
        ("no", "does not mention idempotency"),
        ("", "no error"),
    ):
        result = correct_result(case)
        result["results"][0]["raised"]["message"] = message
        reported = fault(case, result)
        assert reported is expected or expected in reported


def test_closed_objects_refuse_extra_members() -> None:
    assert difference({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, closed=True) == ".a: has c, too"
