"""Registers that callers read, write and delete, with and without conditions; the responses form a history.

A history has what the responses say: values, whether a write created or replaced its register, and what a deletion
deleted. Etags are checked as well: a value has one, in all responses.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from tests.cluster_chaos.callers import UNCERTAIN, Caller, Cut, Reply
from tests.cluster_chaos.counting import READ, WRITE, retry_until_known, scalar
from tests.simulation.checker import REGISTERS, SOMETHING, Operation, is_linearizable

_STORED = (200, 201)
_ANSWERS = {**dict.fromkeys(_STORED, "ok"), 412: "412", 404: "404"}
#: attempts of a refused call without an Idempotency-Key
_TRIES = 5


class History:
    """Two registers of a namespace, and all operations on them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._values = itertools.count(1)
        self._lock = threading.Lock()
        self.operations: list[Operation] = []
        self._etags: dict[int, str] = {}
        self._values_by_etag: dict[str, int] = {}

    def check_etag(self, value: int, etag: str, caller: Caller) -> None:
        """Check that a value has the same etag in all responses, and no other value has it."""
        with self._lock:
            before = self._etags.setdefault(value, etag), self._values_by_etag.setdefault(etag, value)
        if before != (etag, value):
            caller.tally.faults[f"{self._name}: {value} has the etag {etag}, but {before[1]} has {before[0]}"] += 1

    def deleted_value(self, etag: str) -> object:
        """Return what the checker learns about the value with this etag, whose write may still be unanswered."""
        return self._values_by_etag.get(etag, SOMETHING)

    def path(self, register: str) -> str:
        """The path of a register's tensor."""
        return f"/v1/tensors/{self.tensor(register)}"

    def tensor(self, register: str) -> str:
        """The name of a register's tensor."""
        return f"{self._name}.{register}"

    def value(self) -> int:
        """A value that was not written before."""
        with self._lock:
            return next(self._values)

    def take(self, operation: Operation, answer: object) -> None:
        """Record an operation with its outcome; None if the outcome is unknown."""
        if answer is not None:
            operation.answer, operation.returned = answer, time.monotonic()
        if answer is not None or operation.kind != "read":
            self.operations.append(operation)

    def begin(self, caller: Caller) -> None:
        """Store both registers."""
        for register in REGISTERS:
            operation = Operation("write", time.monotonic(), (), {register: self.value()})
            body = scalar(float(operation.writes[register] or 0))
            reply = retry_until_known(caller, WRITE, "PUT", self.path(register), body)
            assert reply is not None, f"{self._name} cannot be initialized"
            assert reply.status in _STORED, reply
            self.take(operation, "ok")

    def check(self, caller: Caller) -> None:
        """Check that some order of the operations explains all responses."""
        explained = is_linearizable(self.operations)
        if explained is not True:
            verdict = "cannot be decided" if explained is None else "is not linearizable"
            caller.tally.faults[f"the history of {self._name} {verdict}, of {len(self.operations)} operations"] += 1


class RegisterCaller:
    """A caller that uses the registers of a history, and remembers the versions seen."""

    def __init__(self, history: History, caller: Caller, chance: random.Random) -> None:
        self._history, self._caller, self._chance = history, caller, chance
        #: the last seen value of each register and its etag; None for an absent register
        self._seen: dict[str, tuple[int | None, str]] = {}

    def call(self, pause: float) -> None:
        """Call until the run is over."""
        kinds = [self._read, self._read, self._read_both, self._write, self._write, self._write_both, self._delete]
        while not self._caller.tally.over.wait(self._chance.uniform(0, 2 * pause)):
            self._chance.choice(kinds)()

    def _read(self) -> None:
        register = self._chance.choice(REGISTERS)
        operation = Operation("read", time.monotonic(), (register,))
        reply = self._read_reply(READ, "GET", self._history.path(register))
        if reply is None:
            return
        if reply.status == 200:
            value = int(reply.body["tensor"]["data"][0])
            self._seen[register] = value, reply.body["etag"]
            self._history.check_etag(value, reply.body["etag"], self._caller)
            self._history.take(operation, (value,))
        elif reply.status == 404:
            self._seen[register] = None, ""
            self._history.take(operation, (None,))

    def _read_both(self) -> None:
        """Read both registers in one call, which is refused if one is absent."""
        operation = Operation("read", time.monotonic(), REGISTERS)
        nodes = [{"op": "input"}, {"op": "input"}, {"op": "neg", "operands": [0]}, {"op": "neg", "operands": [1]}]
        feeds = [{"node": i, "tensor_id": self._history.tensor(each)} for i, each in enumerate(REGISTERS)]
        reply = self._read_reply(
            READ, "POST", "/v1/forward", {"graph": {"nodes": nodes}, "feeds": feeds, "outputs": [2, 3]}
        )
        if reply is not None and reply.status == 200:
            values = tuple(-int(each["tensor"]["data"][0]) for each in reply.body["values"])
            self._history.take(operation, values)

    def _write(self) -> None:
        register = self._chance.choice(REGISTERS)
        operation = Operation("write", time.monotonic(), (), {register: self._history.value()})
        headers = self._condition(operation, register)
        body = scalar(float(operation.writes[register] or 0))
        reply = self._write_reply(operation, "PUT", self._history.path(register), body, headers)
        if reply is not None and reply.status in _STORED:
            self._see(operation, register, reply.body["etag"])

    def _write_both(self) -> None:
        """Store both registers in one call, with or without conditions."""
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
        reply = self._write_reply(operation, "POST", "/v1/forward", body, {})
        if reply is not None and reply.status == 200:
            for register, row in zip(REGISTERS, reply.body["stored"], strict=True):
                self._see(operation, register, row["etag"])

    def _delete(self) -> None:
        register = self._chance.choice(REGISTERS)
        operation = Operation("delete", time.monotonic(), (), {register: None})
        headers = self._condition(operation, register) if (self._seen.get(register) or (None,))[0] is not None else {}
        reply = self._write_reply(operation, "DELETE", self._history.path(register), None, headers)
        if reply is not None and reply.status in (*_STORED, 404):
            self._seen[register] = None, ""

    def _see(self, operation: Operation, register: str, etag: str) -> None:
        """Remember what was written."""
        value = operation.writes[register]
        self._seen[register] = value, etag
        self._history.check_etag(int(value or 0), etag, self._caller)

    def _condition(self, operation: Operation, register: str) -> dict[str, str]:
        """Require the last seen version, half of the time."""
        if register not in self._seen or self._chance.random() < 0.5:
            return {}
        operation.match[register], etag = self._seen[register]
        return {"If_Match": f'"{etag}"'} if etag else {"If_None_Match": "*"}

    def _write_reply(
        self, operation: Operation, method: str, path: str, body: Any, headers: dict[str, str]
    ) -> Reply | None:
        """Send a write and record its outcome; half of the time retry it with an Idempotency-Key until it is known."""
        if self._chance.random() < 0.5:
            reply = retry_until_known(self._caller, WRITE, method, path, body, **headers)
            answer = self._answer(reply)
        else:
            reply, answer = self._send_without_key(WRITE, method, path, body, headers)
        if reply is not None and reply.status in _STORED:
            if method == "PUT":
                operation.replaced = None if reply.status == HTTPStatus.CREATED else SOMETHING
            elif method == "DELETE":
                operation.replaced = self._history.deleted_value(reply.body["etag"])
        self._history.take(operation, answer)
        return reply

    def _send_without_key(
        self, kind: str, method: str, path: str, body: Any, headers: dict[str, str]
    ) -> tuple[Reply | None, object]:
        """Send a call without an Idempotency-Key; retry only if it certainly had no effect."""
        for _ in range(_TRIES):
            try:
                reply = self._caller.ask(kind, method, path, body, **headers)
            except Cut:
                return None, None
            if not reply.is_retryable:
                return reply, self._answer(reply)
            time.sleep(0.05)
        return reply, "refused"

    def _answer(self, reply: Reply | None) -> object:
        if reply is None or reply.code in UNCERTAIN or reply.status == 504:
            return None
        if reply.status not in _ANSWERS:
            self._caller.tally.faults[f"{WRITE}: status {reply.status}, {reply.body}"] += 1
        return _ANSWERS.get(reply.status)

    def _read_reply(self, kind: str, method: str, path: str, body: Any = None) -> Reply | None:
        """Send a read and return its reply, or None if the connection ended."""
        ask: Callable[[], Reply] = lambda: self._caller.ask(kind, method, path, body)
        try:
            return ask()
        except Cut:
            return None
