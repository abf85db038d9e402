"""Registers that callers read, write and delete, with conditions and without; what they are told is a history."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.cluster_chaos.callers import DOUBTFUL, Caller, Cut, Told
from tests.cluster_chaos.counting import READ, WRITE, scalar, until_known
from tests.simulation.checker import REGISTERS, Operation, is_linearizable

_KEPT = (200, 201)
_ANSWERS = {**dict.fromkeys(_KEPT, "ok"), 412: "412", 404: "404"}
#: how often what was refused is sent again without a key
_TRIES = 5


class History:
    """Two registers of a namespace, under names of their own, and all that was asked of them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._values = itertools.count(1)
        self._lock = threading.Lock()
        self.operations: list[Operation] = []

    def path(self, register: str) -> str:
        """Of its tensor."""
        return f"/v1/tensors/{self.tensor(register)}"

    def tensor(self, register: str) -> str:
        """The name that it is kept under."""
        return f"{self._name}.{register}"

    def value(self) -> int:
        """One that was never written before."""
        with self._lock:
            return next(self._values)

    def take(self, operation: Operation, answer: object) -> None:
        """Note the answer of an operation; None where nobody knows."""
        if answer is not None:
            operation.answer, operation.returned = answer, time.monotonic()
        if answer is not None or operation.kind != "read":
            self.operations.append(operation)

    def begin(self, caller: Caller) -> None:
        """Have both registers there."""
        for register in REGISTERS:
            operation = Operation("write", time.monotonic(), (), {register: self.value()})
            body = scalar(float(operation.writes[register] or 0))
            told = until_known(caller, WRITE, "PUT", self.path(register), body)
            assert told is not None, f"{self._name} does not begin"
            assert told.status in _KEPT, told
            self.take(operation, "ok")

    def check(self, caller: Caller) -> None:
        """Some order of all operations explains all answers."""
        explained = is_linearizable(self.operations)
        if explained is not True:
            what = "cannot be decided" if explained is None else "is not linearizable"
            caller.tally.faults[f"the history of {self._name} {what}, of {len(self.operations)} operations"] += 1


class RegisterCaller:
    """One who uses the registers of a history, and knows the versions that it has seen."""

    def __init__(self, history: History, caller: Caller, chance: random.Random) -> None:
        self._history, self._caller, self._chance = history, caller, chance
        #: of each register the value that was seen last, and its etag; of None, that it is not there
        self._seen: dict[str, tuple[int | None, str]] = {}

    def call(self, pause: float) -> None:
        """Go on until all is over."""
        kinds = [self._read, self._read, self._read_both, self._write, self._write, self._write_both, self._delete]
        while not self._caller.tally.over.wait(self._chance.uniform(0, 2 * pause)):
            self._chance.choice(kinds)()

    def _read(self) -> None:
        register = self._chance.choice(REGISTERS)
        operation = Operation("read", time.monotonic(), (register,))
        told = self._told(READ, "GET", self._history.path(register))
        if told is None:
            return
        if told.status == 200:
            value = int(told.body["tensor"]["data"][0])
            self._seen[register] = value, told.body["etag"]
            self._history.take(operation, (value,))
        elif told.status == 404:
            self._seen[register] = None, ""
            self._history.take(operation, (None,))

    def _read_both(self) -> None:
        """By one call; where one of them is not there, it is refused, and nothing is known."""
        operation = Operation("read", time.monotonic(), REGISTERS)
        nodes = [{"op": "input"}, {"op": "input"}, {"op": "neg", "operands": [0]}, {"op": "neg", "operands": [1]}]
        feeds = [{"node": i, "tensor_id": self._history.tensor(each)} for i, each in enumerate(REGISTERS)]
        told = self._told(READ, "POST", "/v1/forward", {"graph": {"nodes": nodes}, "feeds": feeds, "outputs": [2, 3]})
        if told is not None and told.status == 200:
            values = tuple(-int(each["tensor"]["data"][0]) for each in told.body["values"])
            self._history.take(operation, values)

    def _write(self) -> None:
        register = self._chance.choice(REGISTERS)
        operation = Operation("write", time.monotonic(), (), {register: self._history.value()})
        headers = self._condition(operation, register)
        body = scalar(float(operation.writes[register] or 0))
        told = self._done(operation, "PUT", self._history.path(register), body, headers)
        if told is not None and told.status in _KEPT:
            self._seen[register] = operation.writes[register], told.body["etag"]

    def _write_both(self) -> None:
        """By one call that stores both, with conditions or without."""
        operation = Operation("write", time.monotonic(), (), {each: self._history.value() for each in REGISTERS})
        matching = self._chance.random() < 0.5 and len(self._seen) == len(REGISTERS)
        store: list[dict[str, Any]] = []
        for node, register in enumerate(REGISTERS):
            store.append({"node": node, "tensor_id": self._history.tensor(register)})
            if matching:
                operation.match[register], store[-1]["if_match"] = self._seen[register]
        feeds = [{"node": i, "tensor": scalar(float(operation.writes[each] or 0))} for i, each in enumerate(REGISTERS)]
        graph = {"nodes": [{"op": "input"}, {"op": "input"}]}
        body = {"graph": graph, "feeds": feeds, "outputs": [], "store": store}
        told = self._done(operation, "POST", "/v1/forward", body, {})
        if told is not None and told.status == 200:
            for register, row in zip(REGISTERS, told.body["stored"], strict=True):
                self._seen[register] = operation.writes[register], row["etag"]

    def _delete(self) -> None:
        register = self._chance.choice(REGISTERS)
        operation = Operation("delete", time.monotonic(), (), {register: None})
        headers = self._condition(operation, register) if (self._seen.get(register) or (None,))[0] is not None else {}
        told = self._done(operation, "DELETE", self._history.path(register), None, headers)
        if told is not None and told.status in (*_KEPT, 404):
            self._seen[register] = None, ""

    def _condition(self, operation: Operation, register: str) -> dict[str, str]:
        """Half of the time, that what was seen last is there still."""
        if register not in self._seen or self._chance.random() < 0.5:
            return {}
        operation.match[register], etag = self._seen[register]
        return {"If_Match": f'"{etag}"'} if etag else {"If_None_Match": "*"}

    def _done(self, operation: Operation, method: str, path: str, body: Any, headers: dict[str, str]) -> Told | None:
        """Do it and note what is known of it: half of the time it is sent again, with a key, until it is known."""
        if self._chance.random() < 0.5:
            told = until_known(self._caller, WRITE, method, path, body, **headers)
            answer = self._answer(told)
        else:
            told, answer = self._once(WRITE, method, path, body, headers)
        self._history.take(operation, answer)
        return told

    def _once(
        self, kind: str, method: str, path: str, body: Any, headers: dict[str, str]
    ) -> tuple[Told | None, object]:
        """Without a key: sent again only where nothing can have come of it."""
        for _ in range(_TRIES):
            try:
                told = self._caller.ask(kind, method, path, body, **headers)
            except Cut:
                return None, None
            if not told.is_certain:
                return told, self._answer(told)
            time.sleep(0.05)
        return told, "refused"

    def _answer(self, told: Told | None) -> object:
        if told is None or told.code in DOUBTFUL or told.status == 504:
            return None
        if told.status not in _ANSWERS:
            self._caller.tally.faults[f"{WRITE}: status {told.status}, {told.body}"] += 1
        return _ANSWERS.get(told.status)

    def _told(self, kind: str, method: str, path: str, body: Any = None) -> Told | None:
        """The answer to what keeps nothing; None where there is none."""
        ask: Callable[[], Told] = lambda: self._caller.ask(kind, method, path, body)
        try:
            return ask()
        except Cut:
            return None
