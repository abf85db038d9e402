"""Bodies that are not JSON, or not JSON that is safe to parse."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.json_codec import parse_json
from service.core.errors import Refusal
from tests.conftest import Client
from tests.service.support import problem

NOT_JSON = {
    "nothing": b"",
    "white space": b" \n",
    "an unfinished object": b'{"graph": {',
    "a stray bracket": b"{}]",
    "two values": b"{} {}",
    "single quotes": b"{'graph': {}}",
    "a trailing comma": b'{"graph": {},}',
    "a comment": b"{} // why",
    "NaN": b'{"graph": NaN}',
    "Infinity": b'{"graph": Infinity}',
    "minus Infinity": b'{"graph": -Infinity}',
    "a leading plus": b'{"of": +1}',
    "a leading zero": b'{"of": 01}',
    "hexadecimal": b'{"of": 0x1}',
    "Latin-1": '{"graph": "Ä"}'.encode("latin-1"),
    "half a surrogate pair": b'{"graph": "\\ud800"}',
    "a byte-order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"graph": {}}'.encode("utf-16"),
    "a control character in a string": b'{"graph": "\x01"}',
    "binary": bytes(range(256)),
    "a number of too many digits": b'{"of": ' + b"1" * 5000 + b"}",
}


@pytest.mark.parametrize("call", ["gradients", "forward"])
@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_malformed_json_is_refused(client: Client, call: str, body: bytes) -> None:
    problem(client.post(f"/v1/{call}", content=body), 400, "invalid_json")


@pytest.mark.parametrize("body", [b"[]", b"1", b'"graph"', b"null", b"true"])
def test_body_must_be_an_object(client: Client, body: bytes) -> None:
    assert problem(client.post("/v1/gradients", content=body), 422, "invalid_field")["pointer"] == ""


@pytest.mark.parametrize(
    "body",
    [
        b'{"of": 1, "of": 1}',
        b'{"graph": {"nodes": [], "nodes": []}}',
        b'{"graph": {"nodes": [{"op": "input", "op": "input"}]}}',
        b'{"a": {"\\u0061": 1, "a": 1}}',
    ],
)
def test_duplicate_key_is_refused(client: Client, body: bytes) -> None:
    problem(client.post("/v1/gradients", content=body), 400, "duplicate_key")


def test_long_key_is_shortened_and_printable(client: Client) -> None:
    key = "a\\u0007" + "k" * 500
    report = problem(client.post("/v1/forward", content=f'{{"{key}":1,"{key}":1}}'), 400, "duplicate_key")
    assert len(report["got"]) == 64
    assert report["got"].isprintable()


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize("body", [nested(101), b"[" * 1_000_000, b'{"a":' * 200_000 + b"1", nested(50) + nested(101)])
def test_deep_nesting_is_refused(client: Client, body: bytes) -> None:
    problem(client.post("/v1/gradients", content=body), 400, "too_deep")


def test_depth_limit_is_a_setting(make_client: object) -> None:
    client = make_client(json_depth=10)  # type: ignore[operator]
    problem(client.post("/v1/forward", content=nested(11)), 400, "too_deep")
    problem(client.post("/v1/forward", content=nested(10)), 422, "invalid_field")


@pytest.mark.parametrize(
    "text", ["[" * 200, "{" * 200, '\\"' + "[" * 200, "\\\\" + "[" * 0, "\\" * 400, "\\\\\\" + '"' + "[" * 200]
)
def test_brackets_in_strings_do_not_count(text: str) -> None:
    closed = text if (len(text) - len(text.rstrip("\\"))) % 2 == 0 else text + "\\"
    body = ('{"a": [[["' + closed + '"]]], "b": ' + "[" * 98 + "]" * 98 + "}").encode()
    assert len(parse_json(body, 100)) == 2


@pytest.mark.parametrize(
    ("unit", "code"), [(b"[", "too_deep"), (b'{"a":', "too_deep"), (b"[],", "over_budget"), (b'{"":0},', "over_budget")]
)
def test_excess_brackets_are_refused_with_little_memory(unit: bytes, code: str) -> None:
    """Long texts are scanned in chunks, so a refusal needs no memory in proportion to the length."""
    body = b'{"a":[' + unit * ((8 << 20) // len(unit))
    tracemalloc.start()
    try:
        with pytest.raises(Refusal) as refused:
            parse_json(body, 100)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert refused.value.code == code
    assert peak < 4 << 20


def test_scanning_stops_at_the_first_excess() -> None:
    body = b'{"a":[' + b"[]," * 2_000_000 + b"[" * 200
    with pytest.raises(Refusal) as refused:
        parse_json(body, 100)
    assert refused.value.code == "over_budget", "the brackets that are nested too deeply come later"


@pytest.mark.parametrize("number", ["9" * 10**6, "-" + "9" * 10**6, "9" * 10**6 + ".5", "9" * 10**6 + "e-999999"])
@pytest.mark.parametrize("place", ['{"of": %s}', '{"feeds": [{"tensor": {"data": [1, %s]}}]}', '{"attrs": {"k": %s}}'])
def test_huge_number_is_refused_by_its_first_digits(number: str, place: str) -> None:
    with pytest.raises(Refusal, match=r"number out of range at line 1 column 43\d\d") as refused:
        parse_json((place % number).encode(), 100)
    assert refused.value.code == "invalid_json"


def depth_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('[]{}"\\/ab'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('[]{}"\\ab'), inner, max_size=3),
    max_leaves=40,
)


def without_null(value: object) -> object:
    if isinstance(value, dict):
        return {key: without_null(each) for key, each in value.items() if each is not None}
    return [without_null(each) for each in value] if isinstance(value, list) else value


@pytest.mark.slow
@given(st.dictionaries(st.text('[]{}"\\a'), values, max_size=4))
def test_depth_matches_a_parser(value: dict[str, object]) -> None:
    body, depth = json.dumps(value).encode(), depth_of(value)
    assert parse_json(body, depth) == without_null(value)
    with pytest.raises(Refusal, match="nested more than"):
        parse_json(body, depth - 1)


@pytest.mark.slow
def test_depth_is_counted_across_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.api.json_codec._CHUNK", 3)
    test_depth_matches_a_parser()


@given(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_exact(whole: int, real: float) -> None:
    parsed = parse_json(json.dumps({"whole": whole, "real": real}).encode(), 100)
    assert parsed == {"whole": whole, "real": real}
    assert type(parsed["whole"]) is int
    assert str(parsed["real"]) == str(real)


class TestContainers:
    """Python lists and objects take many times the memory of their text, so their number is limited."""

    @pytest.mark.slow
    @pytest.mark.parametrize("unit", [b"[[[]]]", b"[]", b"{}", b'{"":0}', b"[{}]"])
    def test_too_many_containers_are_refused_before_parsing(self, unit: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("jiter.from_json", lambda *_, **__: pytest.fail("it was read"))
        body = b'{"a":[%b]}' % b",".join([unit] * 2_000_000)
        with pytest.raises(Refusal) as refused:
            parse_json(body, 100)
        assert refused.value.code == "over_budget"

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "unit",
        [b'{"op":"exp","operands":[0]}', b'["["]', b"[0.5,1.5,2.5]", b'"[[[[{{{{"', b'"\\"[[[["', b'{"op":"input"}'],
    )
    def test_containers_of_typical_requests_are_allowed(self, unit: bytes) -> None:
        parse_json(b'{"a":[%b]}' % b",".join([unit] * 300_000), 100)

    def test_small_number_of_containers_is_always_allowed(self) -> None:
        parse_json(b'{"a":[%b]}' % b",".join([b"[[[]]]"] * 200_000), 100)

    def test_parser_panic_becomes_memory_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """If an allocation fails, jiter panics with an exception that does not inherit from Exception."""

        def panics(*_: object, **__: object) -> object:
            raise type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})("PyObject pointer is null")

        monkeypatch.setattr("jiter.from_json", panics)
        with pytest.raises(MemoryError):
            parse_json(b"{}", 100)
