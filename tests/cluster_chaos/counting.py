"""Callers that compute what is known, and callers that race to count: each step is done once, and none is lost."""

from __future__ import annotations

import math
import random
import threading
import time
from secrets import token_hex
from typing import Any

from tests.cluster_chaos.callers import DOUBTFUL, Caller, Cut, Told

#: kinds of calls in a tally
COMPUTE, WRITE, READ = "compute", "write", "read"
#: seconds after which a caller gives up on what it does not come to know
_GIVES_UP = 90.0


def scalar(value: float) -> dict[str, Any]:
    """A number as a tensor."""
    return {"dtype": "float64", "shape": [], "data": [value]}


def compute(caller: Caller, chance: random.Random, pause: float) -> None:
    """Ask for x³ and its derivative, again and again; where it was cut or refused, for others."""
    nodes = [{"op": "parameter"}, {"op": "square", "operands": [0]}, {"op": "mul", "operands": [0, 1]}]
    while not caller.tally.over.wait(pause):
        x = chance.uniform(-2, 2)
        body = {"graph": {"nodes": nodes}, "feeds": [{"node": 0, "tensor": scalar(x)}]}
        try:
            told = caller.ask(COMPUTE, "POST", "/v1/gradients", body)
        except Cut:
            continue
        if told.status == 200 and not _is_cube(told.body, x):
            caller.tally.faults[f"a wrong answer: {told.body} for {x}"] += 1
        elif told.status != 200 and not told.is_certain and told.code not in DOUBTFUL:
            caller.tally.faults[f"{COMPUTE}: status {told.status}, {told.body}"] += 1


def _is_cube(body: Any, x: float) -> bool:
    value, gradient = (body[name][0]["tensor"]["data"][0] for name in ("values", "gradients"))
    return math.isclose(value, x**3, rel_tol=1e-12) and math.isclose(gradient, 3 * x * x, rel_tol=1e-12)


def until_known(caller: Caller, kind: str, method: str, path: str, body: Any = None, **headers: str) -> Told | None:
    """What is answered in the end to what is done once, however often it is sent; None where that does not come out."""
    headers = {"Idempotency_Key": token_hex(12)} | headers
    end = time.monotonic() + _GIVES_UP
    while time.monotonic() < end:
        try:
            told = caller.ask(kind, method, path, body, **headers)
            if not (told.is_certain or told.code in DOUBTFUL or told.status == 504):
                return told
        except Cut:
            pass
        time.sleep(0.05)
    return None


class Count:
    """A number that callers add 1 to, by calls that read and store it; all of them race."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.Lock()
        self.added = self.unknown = 0
        self.last = 0.0
        nodes = [{"op": "input"}, {"op": "add_scalar", "operands": [0], "attrs": {"scalar": 1.0}}]
        feeds, store = [{"node": 0, "tensor_id": name}], [{"node": 1, "tensor_id": name}]
        self._body = {"graph": {"nodes": nodes}, "feeds": feeds, "outputs": [1], "store": store}

    def begin(self, caller: Caller) -> None:
        """Have it there, with 0."""
        told = until_known(caller, WRITE, "PUT", f"/v1/tensors/{self.name}", scalar(0.0))
        assert told is not None, f"{self.name} does not begin"
        assert told.status in (200, 201), told

    def add(self, caller: Caller, pause: float) -> None:
        """Race others to add to what is read: who was late is told so, by 412, and reads again."""
        while not caller.tally.over.wait(pause):
            read = until_known(caller, READ, "GET", f"/v1/tensors/{self.name}")
            if read is None:
                continue
            if read.status != 200:
                caller.tally.faults[f"{self.name}: status {read.status}, {read.body}"] += 1
                continue
            store = [{**self._body["store"][0], "if_match": read.body["etag"]}]  # type: ignore[index]
            told = until_known(caller, WRITE, "POST", "/v1/forward", {**self._body, "store": store})
            with self._lock:
                self._took(caller, read.body["tensor"]["data"][0], told)

    def _took(self, caller: Caller, before: float, told: Told | None) -> None:
        if told is None:
            self.unknown += 1
        elif told.status == 200:
            self.added += 1
            value = told.body["values"][0]["tensor"]["data"][0]
            if value != before + 1:
                caller.tally.faults[f"{self.name}: {value} was stored in place of {before}"] += 1
        elif told.status != 412:
            caller.tally.faults[f"{self.name}: status {told.status}, {told.body}"] += 1

    def check(self, caller: Caller) -> None:
        """Every step that was acknowledged is there, once."""
        told = until_known(caller, READ, "GET", f"/v1/tensors/{self.name}")
        found = -1.0 if told is None or told.status != 200 else told.body["tensor"]["data"][0]
        if not self.added <= found <= self.added + self.unknown:
            fault = f"{self.name}: {self.added} steps were acknowledged, {self.unknown} unknown, and {found:g} is there"
            caller.tally.faults[fault] += 1
