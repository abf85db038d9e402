"""Protocol between servers: messages of JSON followed by bytes, over HTTP, with a shared secret."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, NamedTuple

import orjson

from service.core.errors import Refusal
from service.core.keys.caller import ANONYMOUS, Caller, KeyScope
from service.core.prefix import CLUSTER_PREFIX
from service.store.tables import TensorVersion
from service.store.writes import AnswerRecord, Stored

#: version of the protocol; servers of adjacent versions understand each other
PROTOCOL: Final = 1
#: header fields: the secret, the version, and the caller of a forwarded request
SECRET_HEADER: Final = "Gradserve-Cluster-Secret"  # noqa: S105 - its name
PROTOCOL_HEADER: Final = "Gradserve-Cluster-Protocol"
CALLER_HEADER: Final = "Gradserve-Cluster-Caller"
#: header field of a forwarded request: the seconds of its timeout that are over
ELAPSED_HEADER: Final = "Gradserve-Cluster-Elapsed"
#: prefix of forwarded requests
PASSED: Final = f"{CLUSTER_PREFIX}passed"
ALIVE: Final = "alive"
#: header field of the address of the server that asks
ADDRESS_HEADER: Final = "Gradserve-Cluster-Address"
#: header field of a response: present if the server reaches the store
STORE_HEADER: Final = "Gradserve-Cluster-Store"
#: header fields of a response: the process that answers; and with `MISDIRECTED`, the owner that it knows, and whether
#: it is the owner itself but cannot reach the store
PROCESS_HEADER: Final = "Gradserve-Cluster-Process"
OWNER_HEADER: Final = "Gradserve-Cluster-Owner"
BLIND_HEADER: Final = "Gradserve-Cluster-Blind"
#: status of a response of a server that is not the owner, or cannot answer as the owner
MISDIRECTED: Final = 421

_LENGTH: Final = 4


def message_of(head: Mapping[str, Any], blobs: Sequence[bytes | memoryview] = ()) -> list[bytes | memoryview]:
    """Write a message in parts."""
    text = orjson.dumps(head)
    return [len(text).to_bytes(_LENGTH, "little"), text, *blobs]


def read_message(message: bytes) -> tuple[dict[str, Any], memoryview]:
    """Read the head of a message, and the bytes after it. Raises ValueError."""
    end = _LENGTH + int.from_bytes(message[:_LENGTH], "little")
    if end > len(message):
        raise ValueError("a message is truncated")
    return dict(orjson.loads(memoryview(message)[_LENGTH:end])), memoryview(message)[end:]


def speaks(version: str) -> bool:
    """Return whether this server can talk to one that states this version of the protocol."""
    return version.isdecimal() and len(version) < _LENGTH and abs(int(version) - PROTOCOL) <= 1


def misdirected(moved: Moved) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Write the header fields and the body of a `MISDIRECTED` response.

    The owner is in both: the response to a HEAD has no body, and servers of version 1 before these fields read that.
    """
    body = orjson.dumps({"owner": moved.owner})
    fields = [(PROTOCOL_HEADER, str(PROTOCOL)), ("Content-Length", str(len(body)))]
    fields += [(OWNER_HEADER, moved.owner)] if moved.owner is not None else []
    fields += [(BLIND_HEADER, "1")] if moved.is_blind else []
    return [(name.lower().encode(), value.encode()) for name, value in fields], body


def moved_of(headers: Mapping[str, str]) -> Moved:
    """Read the header fields of a `MISDIRECTED` response."""
    return Moved(headers.get(OWNER_HEADER), is_blind=BLIND_HEADER in headers)


def row_of_caller(caller: Caller) -> str:
    """Write a caller as a header field."""
    # json and not orjson: header fields must be ASCII.
    return json.dumps([caller.name, caller.namespace, sorted(caller.scopes)])


def caller_of(row: str) -> Caller:
    """Read the caller from a header field. Raises ValueError."""
    name, namespace, scopes = orjson.loads(row)
    caller = Caller(str(name), str(namespace), frozenset(map(KeyScope, scopes)))
    return (
        ANONYMOUS if caller == ANONYMOUS else caller
    )  # the very object: without keys, callers are compared by identity


def row_of_refusal(refusal: Refusal) -> dict[str, Any]:
    """Write a refusal, which another server raises again."""
    return {name: value for name, value in asdict(refusal).items() if value not in (None, [])}


def refusal_of_row(row: Mapping[str, Any]) -> Refusal:
    """Read a refusal of another server."""
    return Refusal(**row)


def row_of_version(version: TensorVersion) -> list[Any]:
    """Write a version without its elements."""
    return [version.etag, version.dtype, version.shape]


def row_of_stored(stored: Stored) -> list[Any]:
    """Write a tensor to be stored, without its elements."""
    return [stored.name, stored.etag, stored.dtype, stored.shape, stored.if_match, stored.durable]


def stored_of(row: Sequence[Any]) -> Stored:
    """Read a tensor to be stored."""
    name, etag, dtype, shape, if_match, durable = row
    return Stored(name, etag, dtype, tuple(shape), if_match, durable)


def row_of_record(record: AnswerRecord) -> dict[str, Any]:
    """Write a stored response, without its body."""
    row = asdict(record)
    row["body"] = len(record.body)
    return row


def record_of(row: Mapping[str, Any], body: bytes) -> AnswerRecord:
    """Read a stored response."""
    headers = tuple((str(name), str(value)) for name, value in row["headers"])
    return AnswerRecord(**{**row, "body": body, "headers": headers})


class Answer(NamedTuple):
    """Answer to a question, and the bytes after it."""

    head: Mapping[str, Any]
    blobs: memoryview


class Moved(Exception):
    """The server does not own the shard; as far as it knows, the server at `owner` does.

    If it `is_blind`, it does own the shard, but cannot reach the store: another server should take over.
    """

    def __init__(self, owner: str | None, *, is_blind: bool = False) -> None:
        super().__init__(owner)
        self.owner, self.is_blind = owner, is_blind


class Unreachable(Exception):
    """The server accepts no connections: nothing has reached it."""


class Silent(Exception):
    """The server has not answered and seems dead; the message may have reached it."""


class Slow(Exception):
    """The server is alive but has not answered in time; the message has reached it, or will."""
