"""Messages between servers: JSON with bytes behind it, over HTTP, and what says that a server sent them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, NamedTuple

import orjson

from service.core.errors import Refusal
from service.core.keys.caller import ANYONE, Caller, KeyScope
from service.core.prefix import BETWEEN_SERVERS
from service.store.tables import TensorVersion
from service.store.writes import AnswerRecord, Stored

#: the version of these messages; servers of neighbouring versions understand each other
PROTOCOL: Final = 1
#: header fields: the secret, the version, and for whom a request was passed on
SECRET_HEADER: Final = "Gradserve-Cluster-Secret"  # noqa: S105 - its name
PROTOCOL_HEADER: Final = "Gradserve-Cluster-Protocol"
CALLER_HEADER: Final = "Gradserve-Cluster-Caller"
#: where whole requests are passed on to
PASSED: Final = f"{BETWEEN_SERVERS}passed"
ALIVE: Final = "alive"
#: the status of an answer that names another owner
MISDIRECTED: Final = 421

_LENGTH: Final = 4


def message_of(head: Mapping[str, Any], blobs: Sequence[bytes | memoryview] = ()) -> list[bytes | memoryview]:
    """Write a message in parts."""
    text = orjson.dumps(head)
    return [len(text).to_bytes(_LENGTH, "little"), text, *blobs]


def read_message(message: bytes) -> tuple[dict[str, Any], memoryview]:
    """Read what a message says, and the bytes behind that. Raises ValueError."""
    end = _LENGTH + int.from_bytes(message[:_LENGTH], "little")
    if end > len(message):
        raise ValueError("a message is cut off")
    return dict(orjson.loads(memoryview(message)[_LENGTH:end])), memoryview(message)[end:]


def speaks(stated: str) -> bool:
    """Whether a server of this version of the protocol is understood."""
    return stated.isdecimal() and len(stated) < _LENGTH and abs(int(stated) - PROTOCOL) <= 1


def body_of_owner(owner: str | None) -> bytes:
    """Write the answer of a server that is not the owner any more, beside `MISDIRECTED`: who is, where it knows."""
    return orjson.dumps({"owner": owner})


def owner_of_body(body: bytes) -> str | None:
    """Read the owner that such an answer names."""
    owner: str | None = orjson.loads(body)["owner"]
    return owner


def row_of_caller(caller: Caller) -> str:
    """Write a caller as a header field."""
    return json.dumps([caller.name, caller.namespace, sorted(caller.scopes)])  # in ASCII, as orjson would not


def caller_of(row: str) -> Caller:
    """Read the caller of a header field. Raises ValueError."""
    name, namespace, scopes = orjson.loads(row)
    caller = Caller(str(name), str(namespace), frozenset(map(KeyScope, scopes)))
    return ANYONE if caller == ANYONE else caller  # as the gate says it, where no keys are asked for


def row_of_refusal(refusal: Refusal) -> dict[str, Any]:
    """Write a refusal, for another server to raise."""
    return {name: value for name, value in asdict(refusal).items() if value not in (None, [])}


def refusal_of_row(row: Mapping[str, Any]) -> Refusal:
    """Read the refusal that another server raised."""
    return Refusal(**row)


def row_of_version(version: TensorVersion) -> list[Any]:
    """Write a version, without its elements."""
    return [version.etag, version.dtype, version.shape]


def row_of_stored(stored: Stored) -> list[Any]:
    """Write a tensor that is to be kept, without its elements."""
    return [stored.name, stored.etag, stored.dtype, stored.shape, stored.if_match, stored.durable]


def stored_of(row: Sequence[Any]) -> Stored:
    """Read a tensor that is to be kept."""
    name, etag, dtype, shape, if_match, durable = row
    return Stored(name, etag, dtype, tuple(shape), if_match, durable)


def row_of_record(record: AnswerRecord) -> dict[str, Any]:
    """Write an answer that is kept, without its body."""
    row = asdict(record)
    row["body"] = len(record.body)
    return row


def record_of(row: Mapping[str, Any], body: bytes) -> AnswerRecord:
    """Read an answer that is kept."""
    headers = tuple((str(name), str(value)) for name, value in row["headers"])
    return AnswerRecord(**{**row, "body": body, "headers": headers})


class Answer(NamedTuple):
    """Answer of a server to a question, and the bytes behind it."""

    head: Mapping[str, Any]
    blobs: memoryview


class Moved(Exception):
    """The server has not what it was asked for; as far as it knows, the one at `owner` has."""

    def __init__(self, owner: str | None) -> None:
        super().__init__(owner)
        self.owner = owner


class Unreachable(Exception):
    """The server takes no connections: nothing has reached it."""


class Silent(Exception):
    """The server has not answered, and does not say that it lives; what was sent may have reached it."""


class Slow(Exception):
    """The server lives, and has not answered in time; what was sent has reached it, or will."""
