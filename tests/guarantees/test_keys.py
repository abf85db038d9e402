"""Guarantee 14: keys are checked first, compared in constant time, and checked within microseconds."""

from __future__ import annotations

import gc
import secrets
import statistics
import time
from collections.abc import Callable, Sequence
from http.client import HTTPConnection
from pathlib import Path

import pytest

from service.core.errors import Refusal
from service.core.keys.authentication import Access, Gate, KeyRing
from service.core.keys.caller import KeyScope, credential_of, new_key
from tests.guarantees.figures import Figures
from tests.guarantees.started import Started
from tests.guarantees.talk import Address
from tests.service.core.keys.cases import bearer, record, write

pytestmark = pytest.mark.guarantee(14)

KEY = new_key()
#: number of attempts that are timed together, and number of rounds
BATCH, ROUNDS = 50, 2000


def nearly_correct_key() -> str:
    """A valid key with other last characters, different each time, because a repeated header is found faster."""
    return KEY[:-6] + secrets.token_urlsafe(6)[:6]


def random_key() -> str:
    """A random key of the same length."""
    return new_key()


def seconds(tries: Sequence[str], attempt: Callable[[str], object]) -> float:
    """The average seconds of an attempt."""
    begun = time.perf_counter()
    for key in tries:
        attempt(key)
    return (time.perf_counter() - begun) / len(tries)


def difference(attempt: Callable[[str], object], batch: int, rounds: int) -> tuple[float, float]:
    """The extra seconds for a nearly correct key compared with a random one, and the seconds of one attempt.

    Both kinds are measured in each round, in alternating order, so that disturbances of the machine affect both.
    """
    differences, each = [], []
    gc.disable()
    try:
        for number in range(rounds):
            kinds = [nearly_correct_key, random_key] if number % 2 else [random_key, nearly_correct_key]
            taken = {kind: seconds([kind() for _ in range(batch)], attempt) for kind in kinds}
            differences.append(taken[nearly_correct_key] - taken[random_key])
            each.append(taken[random_key])
    finally:
        gc.enable()
    return statistics.median(differences), statistics.median(each)


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    keys = [record(f"name{i}", new_key()) for i in range(1000)]
    return Gate(KeyRing(write(tmp_path / "keys.json", [*keys, record("alice", KEY, rate="100000000/s")]), None))


def test_refusal_time_does_not_reveal_a_key_prefix(gate: Gate, figures: Figures) -> None:
    def refused(key: str) -> None:
        with pytest.raises(Refusal):
            gate.enter(Access(KeyScope.COMPUTE, credential_of([(b"authorization", b"Bearer " + key.encode())])))

    more, each = difference(refused, BATCH, ROUNDS)
    note = f"of {1e6 * each:.2f} µs"
    figures.at_most(
        "difference in refusal time between a nearly correct and a random key", abs(1e9 * more), 50, "ns", note
    )


def test_early_exit_comparison_is_detected() -> None:
    """Check the instrument with a comparison that stops at the first different character."""

    def compared(key: str) -> bool:
        return all(one == other for one, other in zip(key, KEY, strict=True))

    more, _ = difference(compared, BATCH, 200)
    assert more > 200e-9


def test_refusal_time_over_http_does_not_reveal_a_key_prefix(
    start: Callable[..., Started], tmp_path: Path, figures: Figures
) -> None:
    server = start("--keys-file", str(write(tmp_path / "keys.json", [record("alice", KEY)])))
    connection = HTTPConnection(*server.address)

    def refused(key: str) -> None:
        connection.request("POST", "/v1/forward", b"{}", {"Authorization": f"Bearer {key}"})
        response = connection.getresponse()
        assert response.status == 401
        response.read()

    more, each = difference(refused, 4, 1000)
    connection.close()
    note = f"of {1e6 * each:.0f} µs, on one connection"
    figures.at_most(
        "difference in refusal time between a nearly correct and a random key, over HTTP",
        abs(1e6 * more),
        5,
        "µs",
        note,
    )


def test_key_check_adds_microseconds(gate: Gate, figures: Figures) -> None:
    """The header is cached; measure the lookup, the comparison, the rate limit, and an occasional check of the file."""
    access = Access(KeyScope.COMPUTE, credential_of([(b"authorization", bearer(KEY).partition(b": ")[2])]))

    def entered(_: str) -> None:
        gate.enter(access).leave()

    taken = [seconds([KEY] * 1000, entered) for _ in range(200)]
    figures.at_most("time of a key check, with a thousand keys", 1e6 * statistics.median(taken), 3, "µs")


def test_revoked_key_is_refused_soon(start: Callable[..., Started], tmp_path: Path, figures: Figures) -> None:
    path = write(tmp_path / "keys.json", [record("alice", KEY)])
    server = start("--keys-file", str(path))
    slowest = 0.0
    for _ in range(5):
        write(path, [record("alice", KEY)])
        until(server.address, 404)
        write(path, [])
        slowest = max(slowest, until(server.address, 401))
    figures.at_most("time until a revoked key is refused", slowest, 2, "s")


def until(address: Address, status: int) -> float:
    """Repeat the request until it gets this status, and return the seconds that this took."""
    begun = time.monotonic()
    connection = HTTPConnection(*address)
    try:
        while time.monotonic() - begun < 10:
            connection.request("GET", "/v1/nothing", headers={"Authorization": f"Bearer {KEY}"})
            response = connection.getresponse()
            response.read()
            if response.status == status:
                break
    finally:
        connection.close()
    return time.monotonic() - begun
