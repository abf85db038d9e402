"""Lists of numbers read in pieces give the same answers and refusals as lists read whole."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import EngineError, Limits
from schemas import Tensor
from service.api import json_codec as long_lists
from service.api.json_codec import ExtractedLists, LongList, parse_json, parse_tensors
from service.api.tensors import decode, validate
from service.core.errors import Refusal
from service.core.settings import Settings
from service.workers.task import Task
from service.workers.worker import Worker
from tests.sampling import together
from tests.service.api.test_json_reader import timeless
from tests.service.support import feed, node, request

WORKER = Worker(Settings(device="cpu", compile="off"))
DTYPES = ["float64", "float32", "float16", "int64", "int32", "uint8", "bool"]
ODD = [
    "-0",
    "-0.0",
    "1e5",
    "1E-400",
    "1e400",
    "5e-324",
    "2.2250738585072011e-308",
    "9007199254740993",
    "9007199254740993.0",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "0.1",
    "123456789012345678901234567890e-10",
    "1.7976931348623159e308",
    "3.4028236e38",
    "1.0",
    "256",
    "-1",
    "1" + "0" * 400,
]
WRONG = [
    "",
    " ",
    "01",
    "1.",
    ".5",
    "+1",
    "-",
    "1e",
    "1 2",
    "true",
    "null",
    '"1"',
    "NaN",
    "Infinity",
    "[1]",
    "{}",
    "1,,2",
]

finite = st.floats(allow_nan=False, allow_infinity=False).map(repr)
number = st.one_of(finite, st.integers(-(2**70), 2**70).map(str), st.integers(-3, 300).map(str), st.sampled_from(ODD))
spaced = st.tuples(st.sampled_from(["", " ", "\n\t"]), number, st.sampled_from(["", "\r"])).map("".join)


SHORT = {"LONG_BODY": 0, "LONG_LIST": 6, "_NUMBERS_CHUNK": 7, "BYTES_OF_A_PART": 0}
LONG = {name: getattr(long_lists, name) for name in SHORT}


@pytest.fixture(autouse=True, scope="module")
def small_thresholds() -> Iterator[None]:
    """Set thresholds of a few bytes for long lists and pieces."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SHORT.items():
            patch.setattr(long_lists, name, value)
        yield


def outcome(read: Callable[[], object]) -> object:
    """Return the outcome of a read: the dtype, shape and bytes of an array, or the contents of a refusal."""
    try:
        value = read()
    except (Refusal, EngineError) as error:
        return type(error), str(error), getattr(error, "__dict__", {})
    return value if not isinstance(value, np.ndarray) else (value.dtype, value.shape, value.tobytes())


def decoded(text: bytes, parse: Callable[[bytes, int], dict[str, object]]) -> object:
    return outcome(lambda: decode(validate(Tensor, parse(text, 8)), Limits()))


def tensor(numbers: list[str], dtype: str, count: int) -> bytes:
    return f'{{"dtype": "{dtype}", "shape": [{count}], "data": [{",".join(numbers)}]}}'.encode()


@pytest.mark.slow
@given(st.lists(spaced, min_size=1, max_size=30), st.sampled_from(DTYPES), st.sampled_from([0, 0, 0, 1]))
def test_numbers_agree(numbers: list[str], dtype: str, more: int) -> None:
    text = tensor(numbers, dtype, len(numbers) + more)
    assert decoded(text, parse_tensors) == decoded(text, parse_json)


@pytest.mark.slow
@given(st.lists(st.one_of(spaced, st.sampled_from(WRONG)), min_size=1, max_size=12), st.sampled_from(DTYPES), st.data())
def test_refusals_agree(numbers: list[str], dtype: str, data: st.DataObject) -> None:
    text = bytearray(tensor(numbers, dtype, len(numbers)))
    for _ in range(data.draw(st.integers(0, 2))):
        place = data.draw(st.integers(0, len(text) - 1))
        text[place : place + data.draw(st.integers(0, 1))] = data.draw(
            st.sampled_from([b"", b"[", b"]", b",", b'"', b"5"])
        )
    assert decoded(bytes(text), parse_tensors) == decoded(bytes(text), parse_json)


@together
@pytest.mark.parametrize("number", ODD)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("beside", [[], ["0.5"], ["7"]])
def test_unusual_numbers_agree(number: str, dtype: str, beside: list[str]) -> None:
    text = tensor([*beside, number], dtype, 1 + len(beside))
    assert decoded(text, parse_tensors) == decoded(text, parse_json)


@pytest.mark.parametrize("text", ["1234567,", "1234567, ", "1234567,,8", ",1234567", "12345678,", "1.23456,"])
def test_stray_commas_are_refused_alike(text: str) -> None:
    """Covers commas at the boundary of a piece."""
    body = tensor([text], "float64", 2)
    assert decoded(body, parse_tensors) == decoded(body, parse_json)
    assert ExtractedLists.extract(body) is None


NUMBERS = [0.5, 1, 2.25, 3, 4, 5, 6.5, 7]
ASKED = request(node("input"), node("sum", 0), feeds=[feed(0, [8], NUMBERS)])
TWO = request(node("input"), node("input"), node("add", 0, 1), feeds=[feed(0, [8], NUMBERS), feed(1, [8], NUMBERS)])
CONSTANT = '{"graph": {"nodes": [{"op": "constant", "attrs": {"value": %s}}, {"op": "sum", "operands": [0]}]}}'
REQUESTS = {
    "a feed": json.dumps(ASKED),
    "two feeds": json.dumps(TWO),
    "another count": json.dumps(ASKED).replace("[8]", "[3]"),
    "a constant": CONSTANT % json.dumps(ASKED["feeds"][0]["tensor"]),
    "a field that is none": json.dumps(ASKED | {"data": NUMBERS}),
    "a role that is none": json.dumps(ASKED | {"feedz": ASKED["feeds"]}),
    "a list in the place of a request": json.dumps([NUMBERS]),
    "a list in the place of feeds": json.dumps(ASKED | {"feeds": NUMBERS}),
    "a list in the place of a shape": json.dumps(ASKED).replace('"shape": [8]', '"shape": [8, 1, 2, 3, 4, 5]'),
    "a list in the place of a name": json.dumps(ASKED).replace('"float64"', json.dumps(NUMBERS)),
    "a list in a string": json.dumps(ASKED).replace('"sum"', '"sum [1, 2, 3, 4]"'),
    "a list in a key": json.dumps(ASKED).replace('"op"', '"op [1, 2, 3, 4]"'),
    "the same key twice": json.dumps(ASKED).replace('"data":', '"data": [1, 2, 3, 4], "data":'),
    "both payloads": json.dumps(ASKED).replace('"data":', '"data_b64": "", "data":'),
    "a fraction": json.dumps(ASKED).replace("float64", "int32"),
    "brackets": '{"feeds": ' + "[" * 200 + "1, 2, 3, 4" + "]" * 200 + "}",
    "as deep as may be": '{"feeds": ' + "[" * 99 + "1, 2, 3, 4" + "]" * 99 + "}",
    "no end": json.dumps(ASKED)[:-1],
    "a second value": json.dumps(ASKED) + "[1, 2, 3, 4]",
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_requests_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def post() -> tuple[int, bytes]:
        job = Task("forward", REQUESTS[name].encode(), "id", 60.0, time.monotonic() + 60.0)
        return timeless(WORKER(job))

    in_pieces = [post(), post()]
    monkeypatch.setattr(ExtractedLists, "extract", lambda body: None)
    assert in_pieces == [post()] * 2


def test_feed_is_read_in_pieces() -> None:
    data = parse_tensors(json.dumps(ASKED).encode(), 8)["feeds"][0]["tensor"]["data"]
    assert isinstance(data, LongList)
    assert data.array.tolist() == NUMBERS


@pytest.mark.slow
def test_large_list_needs_little_memory_beyond_its_array(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in LONG.items():
        monkeypatch.setattr(long_lists, name, value)
    count = 300_000
    text = tensor(["0.25", "1.5", "7.125"] * (count // 3), "float64", count)
    decode(parse_tensors(text, 8), Limits())  # type: ignore[arg-type]
    tracemalloc.start()
    try:
        decode(parse_tensors(text, 8), Limits())  # type: ignore[arg-type]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * count + (4 << 20), "a list of that many floats has 32 bytes for each"
