"""Callers that compute known values, and callers that race to increment a number: no step is lost or repeated."""

from __future__ import annotations

import math
import random
import threading
import time
from secrets import token_hex
from typing import Any

from tests.cluster_chaos.callers import UNCERTAIN, Caller, Cut, Reply

#: kinds of calls in a tally
COMPUTE, WRITE, READ = "compute", "write", "read"
#: seconds after which a caller stops retrying a call with an unknown outcome
_RETRY_SECONDS = 90.0


def scalar(value: float) -> dict[str, Any]:
    """A number as a tensor."""
    return {"dtype": "float64", "shape": [], "data": [value]}


def compute(caller: Caller, chance: random.Random, pause: float) -> None:
    """Compute x³ and its derivative repeatedly, each time at another x."""
    nodes = [{"op": "parameter"}, {"op": "square", "operands": [0]}, {"op": "mul", "operands": [0, 1]}]
    while not caller.tally.over.wait(pause):
        x = chance.uniform(-2, 2)
        body = {"graph": {"nodes": nodes}, "feeds": [{"node": 0, "tensor": scalar(x)}]}
        try:
            reply = caller.ask(COMPUTE, "POST", "/v1/gradients", body)
        except Cut:
            continue
        if reply.status == 200 and not _is_cube(reply.body, x):
            caller.tally.faults[f"a wrong response: {reply.body} for {x}"] += 1
        elif reply.status != 200 and not reply.is_retryable and reply.code not in UNCERTAIN:
            caller.tally.faults[f"{COMPUTE}: status {reply.status}, {reply.body}"] += 1


def _is_cube(body: Any, x: float) -> bool:
    value, gradient = (body[name][0]["tensor"]["data"][0] for name in ("values", "gradients"))
    return math.isclose(value, x**3, rel_tol=1e-12) and math.isclose(gradient, 3 * x * x, rel_tol=1e-12)


def retry_until_known(
    caller: Caller, kind: str, method: str, path: str, body: Any = None, **headers: str
) -> Reply | None:
    """Send an idempotent call until its outcome is known, and return the reply; None if it stays unknown."""
    headers = {"Idempotency_Key": token_hex(12)} | headers
    end = time.monotonic() + _RETRY_SECONDS
    while time.monotonic() < end:
        try:
            reply = caller.ask(kind, method, path, body, **headers)
            if not (reply.is_retryable or reply.code in UNCERTAIN or reply.status == 504):
                return reply
        except Cut:
            pass
        time.sleep(0.05)
    return None


class Count:
    """A number that racing callers increment, with calls that read and store it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.Lock()
        self.added = self.unknown = 0
        self.last = 0.0
        nodes = [{"op": "input"}, {"op": "add_scalar", "operands": [0], "attrs": {"scalar": 1.0}}]
        feeds, store = [{"node": 0, "tensor_id": name}], [{"node": 1, "tensor_id": name}]
        self._body = {"graph": {"nodes": nodes}, "feeds": feeds, "outputs": [1], "store": store}

    def begin(self, caller: Caller) -> None:
        """Store 0."""
        reply = retry_until_known(caller, WRITE, "PUT", f"/v1/tensors/{self.name}", scalar(0.0))
        assert reply is not None, f"{self.name} cannot be initialized"
        assert reply.status in (200, 201), reply

    def add(self, caller: Caller, pause: float) -> None:
        """Race other callers to store the value read plus 1; a caller that is late gets a 412 and reads again."""
        while not caller.tally.over.wait(pause):
            read = retry_until_known(caller, READ, "GET", f"/v1/tensors/{self.name}")
            if read is None:
                continue
            if read.status != 200:
                caller.tally.faults[f"{self.name}: status {read.status}, {read.body}"] += 1
                continue
            store = [{**self._body["store"][0], "if_match": read.body["etag"]}]  # type: ignore[index]
            reply = retry_until_known(caller, WRITE, "POST", "/v1/forward", {**self._body, "store": store})
            with self._lock:
                self._record(caller, read.body["tensor"]["data"][0], reply)

    def _record(self, caller: Caller, before: float, reply: Reply | None) -> None:
        if reply is None:
            self.unknown += 1
        elif reply.status == 200:
            self.added += 1
            value = reply.body["values"][0]["tensor"]["data"][0]
            if value != before + 1:
                caller.tally.faults[f"{self.name}: {value} was stored in place of {before}"] += 1
        elif reply.status != 412:
            caller.tally.faults[f"{self.name}: status {reply.status}, {reply.body}"] += 1

    def check(self, caller: Caller) -> None:
        """Check that every acknowledged step was stored exactly once."""
        reply = retry_until_known(caller, READ, "GET", f"/v1/tensors/{self.name}")
        value = -1.0 if reply is None or reply.status != 200 else reply.body["tensor"]["data"][0]
        if not self.added <= value <= self.added + self.unknown:
            fault = (
                f"{self.name}: {self.added} steps were acknowledged, {self.unknown} unknown, and {value:g} is stored"
            )
            caller.tally.faults[fault] += 1
