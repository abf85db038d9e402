"""Requests with small bodies that keep the server busy for a chosen time."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.guarantees.talk import Address, once

Json = dict[str, Any]
SIDE = 768


def node(op: str, *operands: int, **attrs: Any) -> Json:
    """A graph node."""
    return {"op": op, "operands": list(operands), "attrs": attrs}


def feed(i: int, shape: list[int], data: list[Any], dtype: str = "float64") -> Json:
    """A feed for node `i`."""
    return {"node": i, "tensor": {"dtype": dtype, "shape": shape, "data": data}}


def request(nodes: list[Any], fed: list[Any] | None = None, **more: Any) -> bytes:
    """A request body; `more` may replace the graph and the feeds."""
    return json.dumps({"graph": {"nodes": nodes}, "feeds": fed or []} | more).encode()


def small(x: float = 3.0) -> bytes:
    """A minimal request: the gradient of x², which is 2x."""
    return request([node("parameter"), node("square", 0)], [feed(0, [], [x])])


def is_right(body: bytes, x: float = 3.0) -> bool:
    """Whether this is the right response to `small`."""
    gradients = json.loads(body).get("gradients")
    return bool(gradients and gradients[0]["tensor"]["data"] == [2 * x])


def in_steps(products: int, side: int = SIDE, x: float = 0.5) -> bytes:
    """A chain of matrix products: steps of about 20 ms, between which a worker can check the deadline."""
    nodes = [node("input"), node("broadcast_to", 0, shape=[side, side]), node("tanh", 1)]
    for _ in range(products):
        last = len(nodes) - 1
        nodes += [node("matmul", last, 2), node("tanh", last + 1)]
    nodes.append(node("mean", len(nodes) - 1))
    return request(nodes, [feed(0, [], [x], "float32")])


def in_one_step(side: int, x: float = 0.5) -> bytes:
    """One product of two matrices, during which a worker cannot check the deadline."""
    nodes = [node("input"), node("broadcast_to", 0, shape=[side, side]), node("tanh", 1), node("matmul", 2, 2)]
    return request([*nodes, node("mean", 3)], [feed(0, [], [x], "float32")])


@dataclass(frozen=True)
class MachineSpeed:
    """The speed of this machine: seconds of a step of `in_steps`, and of `in_one_step` with a given side."""

    product: float
    side: int
    whole: float

    def interruptible(self, seconds: float) -> bytes:
        """Work of about this many seconds, in short steps."""
        return in_steps(max(1, round(seconds / self.product)))

    def uninterruptible(self, seconds: float) -> bytes:
        """Work of about this many seconds, in one step."""
        return in_one_step(round(self.side * (seconds / self.whole) ** (1 / 3)))


@cache
def speed(address: Address) -> MachineSpeed:
    """Measure the speed with an idle server."""
    few, many, side = in_steps(4), in_steps(24), 4 * SIDE
    return MachineSpeed(
        (_seconds(address, many) - _seconds(address, few)) / 20, side, _seconds(address, in_one_step(side))
    )


def _seconds(address: Address, body: bytes) -> float:
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        answer = once(address, "/v1/forward", body)
        taken.append(time.perf_counter() - start)
        if answer.status != 200:
            raise RuntimeError(answer.body.decode())
    return sorted(taken)[1]
