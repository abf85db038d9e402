"""Invalid requests: JSON, numbers, tensors, references, attributes, names and binary bodies."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.guarantees.jobs import feed, node, request
from tests.guarantees.talk import JSON, SAFETENSORS

Json = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A body that must get a 4xx status and a problem report that names `node`."""

    name: str
    body: bytes
    node: int | None = None
    path: str = "/v1/gradients"
    kind: str = JSON


GOOD = request([node("parameter"), node("square", 0), node("sum", 1)], [feed(0, [2], [1, 2])])
_W, _X = node("parameter"), feed(0, [2], [1, 2])


def cases() -> list[Case]:
    """All malformed requests."""
    makers = (_json, _numbers, _tensors, _references, _attributes, _names, _fields, _binary)
    return [case for make in makers for case in make()]


def _json() -> Iterator[Case]:
    texts: dict[str, bytes] = {
        "nothing": b"",
        "a brace": b"{",
        "a bracket": b"[",
        "null": b"null",
        "a string": b'"x"',
        "a number": b"1",
        "a list": b"[]",
        "an object": b"{}",
        "truncated": GOOD[:-3],
        "two documents": GOOD + GOOD,
        "trailing garbage": GOOD + b"x",
        "a trailing comma": GOOD[:-1] + b",}",
        "single quotes": GOOD.replace(b'"', b"'"),
        "comments": b"/*x*/" + GOOD,
        "a byte order mark": b"\xef\xbb\xbf" + GOOD,
        "UTF-16": GOOD.decode().encode("utf-16"),
        "UTF-32": GOOD.decode().encode("utf-32"),
        "not UTF-8": GOOD.replace(b"sum", b"s\xffm"),
        "an overlong byte": GOOD.replace(b"sum", b"\xc0\xaf"),
        "a raw control character": GOOD.replace(b"sum", b"s\x01m"),
        "NUL": b"\x00" + GOOD,
        "an unterminated string": b'{"graph": "' + b"x" * 100_000,
        "an invalid escape": b'{"gr\\xaph": 1}',
        "an unpaired surrogate": GOOD.replace(b"sum", b"\\ud800"),
        "a duplicate key": b'{"feeds": [], ' + GOOD[1:],
        "a duplicate key, nested": GOOD.replace(b'"attrs": {}', b'"op": "sum"', 1),
        "a duplicate key, escaped": b'{"\\u0067raph": {}, ' + GOOD[1:],
        "a thousand brackets": b"[" * 1000,
        "a million brackets": b"[" * 1_000_000,
        "a million objects": b'{"a":' * 1_000_000,
        "deep and balanced": b"[" * 150 + b"]" * 150,
        "deep in attributes": GOOD.replace(b'"attrs": {}', b'"attrs": {"axes": ' + b"[" * 120 + b"]" * 120 + b"}", 1),
        "only spaces": b" " * 100_000,
        "a form": b"graph=1&feeds=2",
        "XML": b"<graph/>",
    }
    yield from (Case(f"JSON: {name}", text) for name, text in texts.items())


def _numbers() -> Iterator[Case]:
    spelled = {
        "NaN": b"NaN",
        "Infinity": b"Infinity",
        "-Infinity": b"-Infinity",
        "leading zero": b"01",
        "no digit after the point": b"1.",
        "no digit before the point": b".5",
        "plus": b"+1",
        "empty exponent": b"1e",
        "hexadecimal": b"0x10",
        "two signs": b"--1",
        "beyond float64": b"1e999",
        "5,000 digits": b"9" * 5000,
        "a million digits": b"9" * 1_000_000,
        "underscore": b"1_0",
        "null": b"null",
        "a string": b'"1"',
        "an array": b"[1]",
        "an object": b"{}",
    }
    for name, text in spelled.items():
        yield Case(f"number: {name}", GOOD.replace(b"[1, 2]", b"[1, " + text + b"]"))


def _tensor(name: str, tensor: Any) -> Case:
    body = request([_W, node("square", 0), node("sum", 1)], [{"node": 0, "tensor": tensor}])
    return Case(f"tensor: {name}", body)


def _tensors() -> Iterator[Case]:
    plain: Json = {"dtype": "float64", "shape": [2], "data": [1, 2]}
    packed = base64.b64encode(bytes(16)).decode()
    changed: dict[str, Json] = {
        "too few numbers": {"data": [1]},
        "too many numbers": {"data": [1, 2, 3]},
        "nested data": {"data": [[1, 2]]},
        "negative extent": {"shape": [-2]},
        "extent a string": {"shape": ["2"]},
        "extent a fraction": {"shape": [2.5]},
        "extent true": {"shape": [True]},
        "shape null": {"shape": None},
        "shape a number": {"shape": 2},
        "shape beyond 64 bits": {"shape": [2**40, 2**40]},
        "huge extent beside zero": {"shape": [0, 2**70]},
        "rank 33": {"shape": [1] * 32 + [2]},
        "rank 100,000": {"shape": [1] * 100_000},
        "unknown dtype": {"dtype": "float80"},
        "dtype in capitals": {"dtype": "FLOAT64"},
        "dtype null": {"dtype": None},
        "dtype a list": {"dtype": ["float64"]},
        "no payload": {"data": None},
        "payload a string": {"data": "12"},
        "unknown field": {"strides": [8]},
        "int8 of 300": {"dtype": "int8", "data": [300, 0]},
        "uint8 of -1": {"dtype": "uint8", "data": [-1, 0]},
        "int32 of a half": {"dtype": "int32", "data": [1, 0.5]},
        "int64 of 2^63": {"dtype": "int64", "data": [2**63, 0]},
        "float16 of 10^6": {"dtype": "float16", "data": [1e6, 0]},
        "bool of 2": {"dtype": "bool", "data": [2, 0]},
        "both payloads": {"data_b64": packed},
    }
    yield from (_tensor(name, {**plain, **change}) for name, change in changed.items())
    payloads = {
        "of 15 bytes": packed[:20],
        "with a space": " " + packed,
        "with an invalid character": "!" + packed[1:],
        "without padding": packed.rstrip("="),
        "null": None,
        "a number": 7,
        "empty": "",
    }
    for name, text in payloads.items():
        yield _tensor(f"base64 {name}", {"dtype": "float64", "shape": [2], "data_b64": text})
    yield from (_tensor(name, x) for name, x in {"null": None, "a list": [1, 2], "a number": 1}.items())
    yield from (_tensor(f"without {key}", {k: v for k, v in plain.items() if k != key}) for key in plain)


def _references() -> Iterator[Case]:
    wrong = {"itself": 1, "a later node": 2, "a missing node": 99, "beyond 64 bits": 2**80, "a negative index": -1}
    for name, operand in wrong.items():
        body = request([_W, node("square", operand), node("sum", 1)], [_X])
        yield Case(f"reference: to {name}", body, node=1)
    for name, operand in {"a fraction": 0.5, "a string": "0", "true": True, "null": None, "a list": [0]}.items():
        yield Case(f"reference: {name}", request([_W, {"op": "square", "operands": [operand]}], [_X]))
    whole = [_W, node("square", 0), node("sum", 1)]
    asked: dict[str, Json] = {
        "of out of range": {"of": 9},
        "of a negative index": {"of": -1},
        "of a node with several elements": {"of": 1},
        "wrt out of range": {"wrt": [9]},
        "wrt twice": {"wrt": [0, 0]},
        "outputs out of range": {"outputs": [9]},
        "outputs twice": {"outputs": [1, 1]},
        "wrt a number": {"wrt": 0},
    }
    yield from (Case(f"reference: {name}", request(whole, [_X], **more)) for name, more in asked.items())
    yield Case("reference: too many operands", request([_W, node("square", 0, 0)], [_X]), node=1)
    yield Case("reference: too few operands", request([_W, node("add", 0)], [_X]), node=1)
    yield Case("reference: operands not a list", request([_W, {"op": "square", "operands": 0}], [_X]))
    yield Case("feed: missing", request(whole), node=0)
    yield Case("feed: for a node that is not a leaf", request(whole, [_X, feed(1, [2], [1, 2])]), node=1)
    yield Case("feed: for a missing node", request(whole, [_X, feed(9, [2], [1, 2])]))
    yield Case("feed: twice", request(whole, [_X, _X]))
    yield Case("feed: null", request(whole, [None]))
    yield Case("graph: no nodes", request([]))
    yield Case("graph: a node that is null", request([None]))
    yield Case("graph: a node that is a number", request([7]))
    yield Case(
        "graph: matmul of incompatible shapes",
        request([_W, node("full", shape=[3], fill=1), node("matmul", 0, 1)], [_X]),
        2,
    )
    yield Case("graph: no node with one element", request([_W, node("square", 0)], [_X]))
    yield Case("graph: an integer parameter", request([_W, node("sum", 0)], [feed(0, [2], [1, 2], "int64")]))


def _attributes() -> Iterator[Case]:
    uses: dict[str, Json] = {
        "unknown": node("sum", 0, no_such=1),
        "for another op": node("sum", 0, kernel_size=[2]),
        "axis out of range": node("sum", 0, axes=[5]),
        "axis twice": node("sum", 0, axes=[0, 0]),
        "axes a string": node("sum", 0, axes="all"),
        "axes of fractions": node("sum", 0, axes=[0.5]),
        "keepdims a string": node("sum", 0, keepdims="yes"),
        "shape of another size": node("reshape", 0, shape=[3]),
        "two extents of -1": node("reshape", 0, shape=[-1, -1]),
        "extents of -2": node("reshape", 0, shape=[-2]),
        "not a permutation": node("transpose", 0, axes=[0, 0]),
        "broadcast to a smaller shape": node("broadcast_to", 0, shape=[1]),
        "unknown dtype": node("cast", 0, dtype="float80"),
        "k out of range": node("topk", 0, k=5),
        "k negative": node("topk", 0, k=-1),
        "index out of range": node("select", 0, index=9, axis=0),
        "split sizes with a wrong sum": node("split", 0, sizes=[1, 5]),
        "missing value": node("constant"),
        "fill a string": node("full", shape=[2], fill="x"),
        "an invalid equation": node("einsum", 0, equation="->->"),
        "an equation of another rank": node("einsum", 0, equation="ijk->i"),
        "padding negative": node("pad", 0, pad_width=[-9, 0]),
        "axis beyond 64 bits": node("cumsum", 0, axis=2**70),
        "attrs a list": {"op": "sum", "operands": [0], "attrs": [1]},
        "a required attribute that is null": node("reshape", 0, shape=None),
        "repeats negative": node("tile", 0, repeats=[-2]),
        "classes negative": node("one_hot", 0, classes=-3),
        "a result out of range": node("get_output", 0, index=3),
        "kernel on a vector": node("max_pool2d", 0, kernel_size=[2, 2]),
        "exponent a string": node("pow_scalar", 0, exponent="x"),
    }
    for name, use in uses.items():
        # If the JSON itself has a wrong type, the report has a pointer, and a node is optional.
        yield Case(f"attribute: {name}", request([_W, use], [_X], of=1))


def _names() -> Iterator[Case]:
    ops = {
        "unknown": "no_such_op",
        "empty": "",
        "a number": 7,
        "null": None,
        "a list": ["sum"],
        "a Python attribute": "__class__",
        "long": "x" * 100_000,
        "control characters": "s\x1b[31mum",
        "Cyrillic letters": "ѕum",
        "internal": "_sum",
        "a path": "../../etc/passwd",
    }
    yield from (Case(f"op: {name}", request([_W, {"op": op, "operands": [0]}], [_X])) for name, op in ops.items())
    yield Case("op: absent", request([_W, {"operands": [0]}], [_X]))
    labels: dict[str, Any] = {
        "a million letters": "x" * 1_000_000,
        "129 letters": "x" * 129,
        "a number": 7,
        "a list": [],
    }
    for name, label in labels.items():
        yield Case(f"name: {name}", request([{**_W, "name": label}, node("sum", 0)], [_X]))


_RECURSIVE: Json = {"nodes": [_W | {"op": "input"}, node("call", 0, body=0)], "outputs": [0]}


def _fields() -> Iterator[Case]:
    whole = [_W, node("square", 0), node("sum", 1)]
    fields: dict[str, Json] = {
        "unknown": {"no_such": 1},
        "misspelt": {"output": [1]},
        "encoding": {"encoding": "xml"},
        "opset": {"graph": {"opset": 99, "nodes": whole}},
        "functions": {"graph": {"nodes": whole, "functions": [{}]}},
        "functions of opset 2": {"graph": {"opset": 2, "nodes": whole, "functions": [{}]}},
        "functions an object": {"graph": {"opset": 2, "nodes": whole, "functions": {}}},
        "a function that is a number": {"graph": {"opset": 2, "nodes": whole, "functions": [1]}},
        "a function that calls itself": {"graph": {"opset": 2, "nodes": whole, "functions": [_RECURSIVE]}},
        "graph null": {"graph": None},
        "nodes an object": {"graph": {"nodes": {}}},
        "feeds an object": {"feeds": {}},
        "a key of the prototype": {"__proto__": {}},
        "diagnose a string": {"diagnose": "yes"},
    }
    yield from (Case(f"field: {name}", request(whole, [_X], **more)) for name, more in fields.items())
    yield from (
        Case(f"timeout: {text}", GOOD, path=f"/v1/gradients?timeout_ms={text}") for text in ("0", "-1", "x", "1e3")
    )
    yield Case("query: unknown", GOOD, path="/v1/gradients?no_such=1")
    yield Case("path: unknown call", GOOD, path="/v1/no_such")
    yield Case("path: traversal", GOOD, path="/v1/../../etc/passwd")
    yield Case("path: unknown graph", GOOD, path="/v1/graphs/" + "0" * 64 + "/gradients")
    yield Case("media type: unknown", GOOD, kind="text/csv")
    yield Case("check: 65 directions", request(whole, [_X], directions=65), path="/v1/check")
    yield Case("jvp: no tangents", request(whole, [_X]), path="/v1/jvp")
    yield Case("batch: nothing mapped", request(whole, [_X]), path="/v1/batch")


def _file(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def _binary() -> Iterator[Case]:
    asked = {"__metadata__": {"request": json.dumps({"graph": {"nodes": [_W, node("sum", 0)]}})}}
    entry = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
    files = {
        "nothing": b"",
        "seven bytes": bytes(7),
        "an empty header": bytes(8),
        "a header longer than the body": b"\xff" * 8,
        "a header of 2^40 bytes": (1 << 40).to_bytes(8, "little") + b"{}",
        "a header that is not JSON": _file(b"{x"),
        "no request": _file({"feeds.0": entry}, bytes(16)),
        "truncated data": _file({**asked, "feeds.0": entry}, bytes(8)),
        "extra data": _file({**asked, "feeds.0": entry}, bytes(24)),
        "reversed offsets": _file({**asked, "feeds.0": {**entry, "data_offsets": [16, 0]}}, bytes(16)),
        "offsets out of range": _file({**asked, "feeds.0": {**entry, "data_offsets": [0, 2**60]}}, bytes(16)),
        "overlapping offsets": _file({**asked, "feeds.0": entry, "feeds.1": entry}, bytes(16)),
        "a gap between offsets": _file({**asked, "feeds.0": {**entry, "data_offsets": [8, 24]}}, bytes(24)),
        "unknown dtype": _file({**asked, "feeds.0": {**entry, "dtype": "F8"}}, bytes(16)),
        "a shape of another size": _file({**asked, "feeds.0": {**entry, "shape": [3]}}, bytes(16)),
        "a tensor with an unknown role": _file({**asked, "no_such.0": entry}, bytes(16)),
        "a request that is not JSON": _file({"__metadata__": {"request": "{"}, "feeds.0": entry}, bytes(16)),
        "a deep header": _file(b'{"a":' * 100_000),
    }
    yield from (Case(f"binary: {name}", body, kind=SAFETENSORS) for name, body in files.items())
