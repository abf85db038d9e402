"""Valid keys, and many kinds of invalid credentials."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from service.core.keys.authentication import Gate, KeyRing
from service.core.keys.caller import KeyScope, digest_of, new_key
from service.core.keys.key_file import KeyList, KeyRecord

EVERYTHING = tuple(KeyScope)


def record(name: str, key: str, scopes: Iterable[KeyScope] = EVERYTHING, **more: Any) -> KeyRecord:
    """Build the record of a key in a key file."""
    fields = {"namespace": name, "scopes": tuple(scopes), **more}
    return KeyRecord.model_validate({"name": name, "sha256": digest_of(key).hex(), **fields})


def write(path: Path, records: Iterable[KeyRecord]) -> Path:
    """Write a key file with these records, replacing an earlier one."""
    temporary = path.with_name("beside")
    temporary.write_text(KeyList(keys=tuple(records)).model_dump_json(), encoding="utf-8")
    temporary.chmod(0o600)
    temporary.replace(path)
    return path


def gate_of(path: Path, **keys: str) -> Gate:
    """Build a gate for named keys with all scopes."""
    return Gate(KeyRing(write(path, [record(name, key) for name, key in keys.items()]), None))


def bearer(key: str) -> bytes:
    """Build the header line that carries a key."""
    return b"Authorization: Bearer " + key.encode()


def unsound(key: str, other: str) -> Mapping[str, list[bytes]]:
    """Build header lines that must be refused, although `key` and `other` are valid."""
    return {
        "none": [],
        "an empty header": [b"Authorization:"],
        "the scheme alone": [b"Authorization: Bearer"],
        "the key alone": [b"Authorization: " + key.encode()],
        "a wrong one": [bearer(new_key())],
        "one that begins right": [bearer(key[:-1] + ("A" if key[-1] != "A" else "B"))],
        "a part": [bearer(key[:-1])],
        "its first letters": [bearer(key[:3])],
        "one letter more": [bearer(key + "A")],
        "padding behind it": [bearer(key + "=")],
        "other cases of letters": [bearer(key.swapcase())],
        "a byte that is no ASCII": [bearer(key[:-1]) + b"\xff"],
        "letters of another alphabet": ["Authorization: Bearer ключ".encode()],
        "a no-break space before it": [b"Authorization: Bearer\xa0" + key.encode()],
        "twice the same": [bearer(key), bearer(key)],
        "two good ones": [bearer(key), bearer(other)],
        "a good one, and one that is wrong": [bearer(key), bearer(new_key())],
        "one that is wrong, and a good one": [bearer(new_key()), b"AUTHORIZATION: Bearer " + key.encode()],
        "two in one header": [bearer(key) + b", Bearer " + other.encode()],
        "something behind it": [bearer(key) + b" " + key.encode()],
        "a tab for the space": [b"Authorization: Bearer\t" + key.encode()],
        "as a password": [b"Authorization: Basic " + key.encode()],
        "its hash": [bearer(digest_of(key).hex())],
        "for a proxy": [b"Proxy-Authorization: Bearer " + key.encode()],
        "in a cookie": [b"Cookie: key=" + key.encode()],
        "in a header of its own": [b"X-Api-Key: " + key.encode()],
        "a very long one": [bearer("A" * 12_000)],
    }


def sound(key: str) -> Mapping[str, bytes]:
    """Build header lines in which a valid key is accepted."""
    return {
        "as it is usually written": bearer(key),
        "the scheme in small letters": b"authorization: bearer " + key.encode(),
        "the scheme in capitals": b"AUTHORIZATION: BEARER " + key.encode(),
        "more spaces": b"Authorization:   Bearer   " + key.encode() + b"  ",
    }


def operations(document: Mapping[str, Any]) -> Iterable[tuple[str, str, Mapping[str, Any]]]:
    """Yield method, path and description of every operation of an OpenAPI document."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def placed(path: str, operation: Mapping[str, Any], **stated: str) -> str:
    """Fill in the parameters of a path with the given values, or with the document's examples."""
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":
            name = parameter["name"]
            path = path.replace(f"{{{name}}}", stated.get(name, str(parameter.get("example", "x"))))
    return path


def bodies(operation: Mapping[str, Any]) -> list[bytes]:
    """List the example bodies of an operation, or one empty body if it takes none."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return [json.dumps(example["value"]).encode() for example in content.get("examples", {}).values()] or [b""]


def sent(method: str, path: str, body: bytes, *headers: bytes, length: int | None = None) -> bytes:
    """Build a request; `length` overrides its Content-Length."""
    stated = len(body) if length is None else length
    head = [f"{method} {path} HTTP/1.1".encode(), b"Host: localhost", b"Content-Length: %d" % stated]
    return b"\r\n".join([*head, *headers, b"", b""]) + body
