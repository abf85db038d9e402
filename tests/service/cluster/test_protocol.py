"""Encoding of messages between servers."""

from __future__ import annotations

import json

import pytest
from starlette.datastructures import Headers

from service.cluster.protocol import (
    Moved,
    caller_of,
    message_of,
    misdirected,
    moved_of,
    read_message,
    record_of,
    refusal_of_row,
    row_of_caller,
    row_of_record,
    row_of_refusal,
    row_of_stored,
    speaks,
    stored_of,
)
from service.core.errors import Refusal
from service.core.keys.caller import ANONYMOUS, Caller, KeyScope
from service.store.writes import AnswerRecord, Stored


def test_message_roundtrip() -> None:
    head = {"namespace": "ä\n", "names": ["w"], "number": 1.5, "none": None}
    decoded, blobs = read_message(b"".join(message_of(head, [b"one", memoryview(b"two"), b""])))
    assert (decoded, bytes(blobs)) == (head, b"onetwo")


@pytest.mark.parametrize("message", [b"", b"\x05\0\0\0{}", b"\x02\0\0\0[]x"[:5], b"\xff\xff\xff\xff{}"])
def test_malformed_message_is_refused(message: bytes) -> None:
    with pytest.raises(ValueError, match=r"truncated|unexpected|sequence"):
        read_message(message)


def test_values_roundtrip() -> None:
    refusal = Refusal("not_ready", "a sentence", retry_after=5, pointer="/x", errors=[])
    assert refusal_of_row(row_of_refusal(refusal)) == refusal
    for stored in (Stored("w", "0" * 16, "float64", (2, 3), "", durable=False), Stored("v", "1" * 16, "uint8", ())):
        assert stored_of(row_of_stored(stored)) == stored
    record = AnswerRecord("ns", "k", "f", "text/plain", b"\0body", 9e9, 201, (("ETag", '"x"'),))
    assert record_of(row_of_record(record), record.body) == record
    for caller in (ANONYMOUS, Caller("Jürgen", "ns", frozenset([KeyScope.READ]))):
        assert caller_of(row_of_caller(caller)) == caller
    assert caller_of(row_of_caller(ANONYMOUS)) is ANONYMOUS, "or it is taken for somebody with a key"


def test_neighbouring_versions_are_accepted() -> None:
    stated = ("0", "1", "2", "3", "", "x", "-1", "1.0", "1" * 9)
    assert [each for each in stated if speaks(each)] == ["0", "1", "2"]


@pytest.mark.parametrize("owner", ["http://10.0.0.7:8000", None])
@pytest.mark.parametrize("is_blind", [False, True])
def test_misdirected_response_roundtrip(owner: str | None, is_blind: bool) -> None:
    """The header fields alone tell everything, since the response to a HEAD has no body."""
    fields, body = misdirected(Moved(owner, is_blind=is_blind))
    moved = moved_of(Headers(raw=fields))
    assert (moved.owner, moved.is_blind) == (owner, is_blind)
    assert json.loads(body) == {"owner": owner}
    assert dict(fields)[b"content-length"] == str(len(body)).encode()
