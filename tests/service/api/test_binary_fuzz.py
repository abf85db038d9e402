"""Fuzzing of safetensors bodies: mutated ones, random headers, and well-formed ones with arbitrary tensors."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.api.calls import calls
from service.core.errors import UNREADABLE
from tests.conftest import Client
from tests.service.api.safetensors_support import BINARY, SENT, Array, body, framed, split
from tests.service.support import SQUARES, Json

CALLS = list(calls())

REST, TENSORS = split(SQUARES)
GOOD = body(REST, TENSORS)
ENTRY = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
ANSWERS = {200, 400, 413, 422}


def check_answer(client: Client, call: str, sent: bytes, headers: dict[str, str]) -> None:
    """Send a body and check that the response is an answer or a complete report."""
    response = client.post(f"/v1/{call}", content=sent, headers=headers)
    assert response.status_code in ANSWERS, response.text
    if response.status_code != 200:
        assert {"code", "detail", "request_id"} <= set(response.json())
        assert response.json()["detail"] != UNREADABLE


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A valid body with bytes changed, removed, inserted or repeated."""
    content = bytearray(GOOD)
    for _ in range(draw(st.integers(1, 4))):
        offset = draw(st.integers(0, len(content)))
        kind = draw(st.sampled_from(["change", "cut", "insert", "repeat", "length"]))
        if kind == "length":
            content[:8] = draw(st.integers(0, 2**64 - 1) | st.integers(0, 400)).to_bytes(8, "little")
        elif kind == "insert":
            content[offset:offset] = draw(st.binary(max_size=9))
        elif kind == "repeat":
            content[offset:offset] = content[offset : offset + draw(st.integers(1, 64))]
        else:
            content[offset : offset + draw(st.integers(1, 9))] = b"" if kind == "cut" else draw(st.binary(max_size=9))
    return bytes(content)


@pytest.mark.slow
@given(mutated(), st.sampled_from(CALLS), st.sampled_from([BINARY, SENT]))
@example(b"", "gradients", BINARY)
@example(bytes(8), "plan", BINARY)
def test_mutated_bodies(client: Client, content: bytes, call: str, headers: dict[str, str]) -> None:
    check_answer(client, call, content, headers)


numbers = st.integers(-1, 40) | st.integers(2**31 - 1, 2**65) | st.floats(allow_nan=False) | st.booleans() | st.none()
names = st.sampled_from(
    ["feeds.0", "feeds.1", "cotangents.2", "tangents.0", "vectors.0", "constants.1", "__metadata__"]
)
entries = st.fixed_dictionaries(
    {},
    optional={
        "dtype": st.sampled_from(["F64", "F32", "BOOL", "I8", "I64", "F16", "BF16", "", 1]) | st.none(),
        "shape": st.lists(numbers, max_size=3) | st.none() | st.integers(),
        "data_offsets": st.lists(numbers, max_size=3) | st.tuples(st.just(0), st.integers(0, 32)) | st.none(),
        "more": st.none(),
    },
)
requests = st.sampled_from(
    [json.dumps(REST), json.dumps(SQUARES), json.dumps({"types": [{"node": 0}], **REST}), "{}", "[]", ""]
)


@pytest.mark.slow
@given(
    st.dictionaries(names | st.text(max_size=4), entries | st.just(ENTRY) | st.integers(), max_size=3),
    requests,
    st.binary(max_size=33),
    st.sampled_from(CALLS),
)
def test_random_headers(client: Client, header: Json, text: str, data: bytes, call: str) -> None:
    sent = framed(json.dumps({"__metadata__": {"request": text}, **header}).encode(), data)
    check_answer(client, call, sent, BINARY)


arrays_of_any_type = st.sampled_from(["bool", "int8", "int64", "float16", "float32", "float64"]).flatmap(
    lambda dtype: st.sampled_from([(), (1,), (2,), (0,), (2, 2), (1, 2)]).map(lambda shape: np.ones(shape, dtype))
)
roles = st.sampled_from(["feeds.0", "feeds.1", "feeds.9", "cotangents.2", "cotangents.1", "tangents.0", "vectors.0"])


@pytest.mark.slow
@given(
    st.dictionaries(roles | st.sampled_from(["constants.1", "hvp.0"]), arrays_of_any_type, max_size=3),
    st.fixed_dictionaries(
        {},
        optional={
            "of": st.integers(-1, 4),
            "wrt": st.lists(st.integers(-1, 4), max_size=2),
            "outputs": st.lists(st.integers(-1, 4), max_size=2),
            "mapped": st.just([0]),
            "batched": st.booleans(),
            "encoding": st.sampled_from(["json", "base64", "binary"]),
            "diagnose": st.booleans(),
        },
    ),
    st.sampled_from(CALLS),
)
def test_well_formed_bodies_with_arbitrary_tensors(
    client: Client, tensors: dict[str, Array], fields: Json, call: str
) -> None:
    check_answer(client, call, body({"graph": SQUARES["graph"], **fields}, tensors), BINARY)
