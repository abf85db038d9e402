"""Guarantee 20: a response describes a tensor as it was when the call took effect."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guarantees.figures import Figures
from tests.guarantees.started import Started
from tests.guarantees.talk import Address, Connection
from tests.simulation.checker import SOMETHING, Operation, is_linearizable

pytestmark = pytest.mark.guarantee(20)
RACES = int(os.environ.get("GRADSERVE_TEST_HISTORIES", "300"))
CALLERS, CALLS = 4, 6
TENSOR = b'{"dtype":"float64","shape":[],"data":[1.0]}'


def test_responses_to_concurrent_callers_are_linearizable(
    start: Callable[..., Started], tmp_path: Path, figures: Figures
) -> None:
    """Callers write, delete and list one tensor concurrently; each race has its own tensor."""
    server, not_linearizable, count = start("--state", str(tmp_path / "state")), 0, 0
    for race in range(RACES):
        operations: list[Operation] = []
        threads = [
            threading.Thread(target=call, args=(server.address, f"t{race}", random.Random(f"{race}.{i}"), operations))
            for i in range(CALLERS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(operations) == CALLERS * CALLS, "a caller has failed"
        count += len(operations)
        not_linearizable += is_linearizable(operations) is not True
    figures.at_most(
        f"races whose responses are not linearizable, of {RACES}", not_linearizable, 0, "", f"{count} operations"
    )


def call(address: Address, name: str, chance: random.Random, operations: list[Operation]) -> None:
    """Run the operations of one caller in a race."""
    with Connection(address) as connection:
        kinds = chance.choices(["write", "delete", "read"], [2, 1, 1], k=CALLS)
        operations.extend(operation(connection, name, kind) for kind in kinds)


def operation(connection: Connection, name: str, kind: str) -> Operation:
    """Run an operation, and return it with the observed response."""
    path, called = f"/v1/tensors/{name}", time.monotonic()
    if kind == "write":
        answer = connection.ask(path, TENSOR, method="PUT")
        assert answer.status in (200, 201), answer
        replaced = None if answer.status == 201 else SOMETHING
        return Operation("write", called, (), {"x": version(answer.body)}, {}, True, time.monotonic(), "ok", replaced)
    answer = connection.ask(path, method="DELETE" if kind == "delete" else "GET")
    assert answer.status in (200, 404), answer
    value = version(answer.body) if answer.status == 200 else None
    if kind == "read":
        return Operation("read", called, ("x",), returned=time.monotonic(), answer=(value,))
    if value is None:
        return Operation("delete", called, (), {"x": None}, returned=time.monotonic(), answer="404")
    return Operation("delete", called, (), {"x": None}, {}, True, time.monotonic(), "ok", value)


def version(body: bytes) -> int:
    """The etag of a response, as an integer."""
    return int(json.loads(body)["etag"], 16)
