"""Requests that exceed a default limit: memory, FLOPs, nodes, depth, response size or steps. Most have small bodies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.guarantees import loops
from tests.guarantees.jobs import Json, feed, node, request
from tests.guarantees.malformed import Case
from tests.guarantees.talk import SAFETENSORS

_ONE = feed(0, [], [1.0])
_PAIR = feed(0, [2], [1, 2])


def cases() -> list[Case]:
    """All oversized requests except those with large bodies."""
    makers = (_shapes, _memory, _flops, _growth, _derivatives, _responses, _functions)
    return [case for make in makers for case in make()]


#: names of requests whose gradients have too many nodes, which are counted while the gradients are built
LARGE_GRADIENTS: Final = frozenset({"depth: forty gradients of gradients", "derivatives: Hessian of a long chain"})
#: large bodies by name: many nodes, numbers, brackets or keys. Each is built when it is sent.
LARGE: dict[str, Callable[[], bytes]] = {
    "100,001 nodes": lambda: repeated_nodes(b'{"op":"input"}', 100_001),
    "a million tiny nodes": lambda: repeated_nodes(b'{"op":"input"}', 1_000_000),
    "a million nodes in a chain": lambda: _chain(1_000_000),
    "a million nodes without a name": lambda: repeated_nodes(b"{}", 1_000_000),
    "two million null nodes": lambda: repeated_nodes(b"null", 2_000_000),
    "40 MB of numbers": lambda: numbers(8_000_000),
    "a million feeds": lambda: b'{"graph":{"nodes":[]},"feeds":[' + b",".join([b'{"node":0}'] * 1_000_000) + b"]}",
    "a million keys": lambda: b"{" + b",".join(b'"k%d":0' % i for i in range(1_000_000)) + b"}",
    "a million operands": lambda: request([node("parameter"), node("stack", *[0] * 1_000_000)], [_ONE]),
    "a loop body of 100,000 nodes, used with 1,000 shapes": lambda: loops.of_many_shapes(100_000, 1000),
    "a loop body of 9,000 nodes, used with 1,000 shapes": lambda: loops.of_many_shapes(9_000, 1000),
    "20 MB of opening brackets": lambda: b"[" * 20_000_000,
    "a string of 20 MB": lambda: b'{"graph":"' + b"x" * 20_000_000 + b'"}',
    "a string of 20 MB of escape sequences": lambda: b'{"graph":"' + b"\\u0041" * 3_300_000 + b'"}',
    "a number of 20 million digits": lambda: b'{"graph":' + b"9" * 20_000_000 + b"}",
}


def repeated_nodes(node_json: bytes, count: int) -> bytes:
    """A request with a graph of `count` equal nodes, without feeds."""
    return b'{"graph":{"nodes":[' + b",".join([node_json] * count) + b']},"feeds":[]}'


def numbers(count: int) -> bytes:
    """A request that feeds `count` numbers to a tensor of 3 elements."""
    start = b'{"graph":{"nodes":[{"op":"parameter"},{"op":"sum","operands":[0]}]},"feeds":[{"node":0,"tensor":'
    return start + b'{"dtype":"float64","shape":[3],"data":[' + b",".join([b"0.25"] * count) + b"]}}]}"


def _chain(count: int) -> bytes:
    nodes = [b'{"op":"neg","operands":[%d]}' % i for i in range(count)]
    return b'{"graph":{"nodes":[{"op":"parameter"},' + b",".join(nodes) + b']},"feeds":[]}'


def _forward(
    name: str, nodes: list[Json], feeds: list[Json] | None = None, path: str = "/v1/forward", **more: Any
) -> Case:
    return Case(name, request(nodes, feeds, **more), path=path)


def _shapes() -> Iterator[Case]:
    for shape in ([10**6, 10**6], [2**31, 2**31], [2**62, 4], [2**64], [10**18] * 5, [65536] * 32):
        nodes = [node("full", shape=shape, fill=1.0), node("sum", 0)]
        yield _forward(f"shape: full {shape[0]:.0e} by {len(shape)}", nodes)
    yield _forward(
        "shape: broadcast", [node("input"), node("broadcast_to", 0, shape=[10**6, 10**6]), node("sum", 1)], [_ONE]
    )
    yield _forward("shape: tile", [node("input"), node("tile", 0, repeats=[10**12]), node("sum", 1)], [_PAIR])
    yield _forward("shape: pad", [node("input"), node("pad", 0, pad_width=[10**12, 0]), node("sum", 1)], [_PAIR])
    hot = [node("input"), node("one_hot", 0, classes=10**12), node("sum", 1)]
    yield _forward("shape: one_hot", hot, [feed(0, [2], [0, 1], "int64")])
    segments = [node("input"), node("input"), node("segment_sum", 0, 1, segments=10**12), node("sum", 2)]
    yield _forward("shape: segments", segments, [_PAIR, feed(1, [2], [0, 1], "int64")])
    yield _forward("shape: declared by a leaf", [node("parameter", shape=[10**9, 10**9]), node("sum", 0)], [_PAIR])
    yield _forward(
        "shape: declared by the types of a plan",
        [node("parameter"), node("sum", 0)],
        path="/v1/differentiate",
        types=[{"node": 0, "dtype": "float64", "shape": [2**62, 2**62]}],
    )


def _wide(side: int) -> list[Json]:
    """Nodes that compute a square matrix, which is not constant, so that it is not folded."""
    return [node("input"), node("broadcast_to", 0, shape=[side, side]), node("tanh", 1)]


def _memory() -> Iterator[Case]:
    yield _forward("memory: one result", [*_wide(200_000), node("mean", 2)], [_ONE])
    saved = [*_wide(12_000), *(node("sin", 2 + i) for i in range(60))]
    yield _forward(
        "memory: values saved for the backward pass",
        [{**saved[0], "op": "parameter"}, *saved[1:], node("mean", 62)],
        [_ONE],
        path="/v1/gradients",
    )
    outer = [node("input"), node("reshape", 0, shape=[-1, 1]), node("reshape", 0, shape=[1, -1]), node("mul", 1, 2)]
    yield _forward("memory: outer product", [*outer, node("sum", 3)], [feed(0, [300_000], [1] * 300_000, "float32")])
    letters = "abcdefghijkl"
    terms, out = ",".join(letters), letters
    equation = f"{terms}->{out}"
    many = [node("input"), *(node("einsum", *[0] * len(letters), equation=equation),), node("sum", 1)]
    yield _forward("memory: einsum of twelve axes", many, [feed(0, [16], [1] * 16)])


def _flops() -> Iterator[Case]:
    chain = _wide(4000)
    for _ in range(60):
        chain += [node("matmul", len(chain) - 1, 2)]
    yield _forward("FLOPs: sixty matrix products", [*chain, node("mean", len(chain) - 1)], [_ONE])
    yield _forward(
        "FLOPs: one matrix product",
        [*_wide(20_000), node("matmul", 2, 2), node("mean", 3)],
        [feed(0, [], [1], "float32")],
    )
    for op in ("inv", "cholesky", "slogdet"):
        last = [node("get_output", 3, index=1)] if op == "slogdet" else []
        nodes = [*_wide(40_000), node(op, 2), *last, node("mean", 3 + len(last))]
        yield _forward(f"FLOPs: {op}", nodes, [feed(0, [], [1], "float32")])
    images = [
        node("input"),
        node("broadcast_to", 0, shape=[64, 64, 256, 256]),
        node("tanh", 1),
        node("broadcast_to", 0, shape=[64, 64, 9, 9]),
        node("tanh", 3),
        node("conv2d", 2, 4),
        node("mean", 5),
    ]
    yield _forward("FLOPs: convolution", images, [feed(0, [], [1], "float32")])


def _growth() -> Iterator[Case]:
    """Graphs in which each node doubles the size of the previous one, until it exceeds any integer."""
    steps: dict[str, Callable[[int], Json]] = {
        "cat": lambda i: node("cat", i, i, axis=0),
        "tile": lambda i: node("tile", i, repeats=[2]),
        "stack": lambda i: node("stack", i, i, axis=0),
        "pad": lambda i: node("pad", i, pad_width=[2**i, 2**i]),
    }
    for name, step in steps.items():
        nodes = [node("parameter"), *(step(i) for i in range(200)), node("sum", 200)]
        yield _forward(f"growth: {name}", nodes, [_PAIR], path="/v1/gradients")
    digits = [node("input"), *(node("pow_scalar", i, exponent=10.0**300) for i in range(3)), node("no_such", 3)]
    yield _forward("growth: exponents", digits, [_ONE])


def _derivatives() -> Iterator[Case]:
    """Gradients of gradients, of which forty nodes become millions when expanded, and large Hessians and Jacobians."""
    nodes = [node("parameter"), node("tanh", 0)]
    for _ in range(40):
        nodes += [node("grad", len(nodes) - 1, 0), node("sin", len(nodes))]
        nodes.append(node("mul", len(nodes) - 1, len(nodes) - 1))
    yield _forward(
        "depth: forty gradients of gradients", [*nodes, node("sum", len(nodes) - 1)], [_PAIR], path="/v1/gradients"
    )
    wide = feed(0, [30_000], [1] * 30_000)
    whole = [node("parameter"), node("sin", 0), node("square", 1), node("sum", 2)]
    yield _forward("derivatives: Hessian of 30,000", whole, [wide], path="/v1/hessian")
    yield _forward("derivatives: Jacobian of 30,000", whole[:3], [wide], path="/v1/jacobian")
    long = [node("parameter"), *(node("sin", i) for i in range(90_000)), node("sum", 90_000)]
    yield _forward("derivatives: Hessian of a long chain", long, [feed(0, [200], [1] * 200)], path="/v1/hessian")


def _responses() -> Iterator[Case]:
    yield _forward("response: 300 MB of numbers", [*_wide(6_000)], [_ONE])
    yield _forward("response: 300 MB in base64", [*_wide(6_000)], [_ONE], encoding="base64")
    yield _forward(
        "response: many outputs",
        [*_wide(2_000), *(node("sin", 2 + i) for i in range(30))],
        [_ONE],
        outputs=[*range(2, 33)],
    )
    header = json.dumps(
        {"__metadata__": {"request": json.dumps({"graph": {"nodes": [node("full", shape=[9_000, 9_000], fill=1.5)]}})}}
    ).encode()
    yield Case(
        "response: 600 MB in safetensors",
        len(header).to_bytes(8, "little") + header,
        path="/v1/forward",
        kind=SAFETENSORS,
    )


def _functions() -> Iterator[Case]:
    for path, makers in (("/v1/gradients", loops.oversized), ("/v1/forward", loops.large_draws)):
        yield from (Case(f"functions: {name}", body, path=path) for name, body in makers())
