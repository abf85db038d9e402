"""Guarantee 15: results do not depend on concurrent calls, and no caller sees data of another."""

from __future__ import annotations

import contextlib
import json
import random
import threading
from collections.abc import Callable

import numpy as np
import pytest

from tests.guarantees.conftest import judge
from tests.guarantees.figures import Figures
from tests.guarantees.known import Known, density, doubled, makers
from tests.guarantees.probe import probing
from tests.guarantees.started import Started
from tests.guarantees.talk import SAFETENSORS, Connection, once, posted
from tests.guarantees.test_liveness import together

pytestmark = pytest.mark.guarantee(15)
CANARY = b"\xc0\xff\xee\xca\xfe\xba\xbe\x42"


def results(known: Known, body: bytes) -> object:
    """The response without its statistics, such as times and cache hits."""
    if known.kind == SAFETENSORS:
        start = 8 + int.from_bytes(body[:8], "little")
        header = json.loads(body[8:start])
        del header["__metadata__"]
        return header, body[start:]
    answer = json.loads(body)
    answer.pop("stats", None)
    return answer


def test_concurrent_results_equal_sequential_ones_bit_for_bit(start: Callable[..., Started], figures: Figures) -> None:
    server = start("--determinism", "bitwise")
    rng = np.random.default_rng(15)
    kinds = makers(server.address)
    calls = [kinds[i % len(kinds)](rng) for i in range(60)]
    alone = [results(one, once(server.address, one.path, one.body, kind=one.kind).body) for one in calls]
    differing: list[str] = []

    def ask(i: int) -> None:
        order = random.Random(i).sample(range(len(calls)), len(calls))
        with Connection(server.address) as connection:
            for k in order:
                answer = connection.ask(calls[k].path, calls[k].body, kind=calls[k].kind)
                if answer.status != 200 or results(calls[k], answer.body) != alone[k]:
                    differing.append(f"{calls[k].name}: {answer.status}")

    with probing(server.address) as seen:
        together(16, ask)
    figures.at_most(
        f"responses that differ from sequential ones, of {16 * len(calls)}", len(differing), 0, "", str(differing[:5])
    )
    judge(seen, "16 clients with calls of all kinds", figures.test)


def marked(elements: int) -> bytes:
    """A request whose body is filled with the canary pattern."""
    known = doubled(np.random.default_rng(0))
    header = json.loads(known.body[8 : 8 + int.from_bytes(known.body[:8], "little")])
    header["feeds.0"].update(shape=[elements], data_offsets=[0, 8 * elements])
    text = json.dumps(header).encode()
    return posted("/v1/forward", len(text).to_bytes(8, "little") + text + CANARY * elements, SAFETENSORS)


def send_marked(server: Started, seed: int, stop: threading.Event) -> None:
    """Send marked requests; truncate some, and reset the connection of some without reading the response."""
    rng = random.Random(seed)
    while not stop.is_set():
        sent = marked(rng.randrange(1_000, 250_000))
        with contextlib.suppress(OSError), Connection(server.address) as connection:
            connection.send(sent[: rng.choice((len(sent), len(sent) * 2 // 3))])
            if rng.random() < 0.5:
                connection.reset()


def faults_of_another_caller(server: Started, seed: int) -> list[str]:
    """The faults of the responses to another caller, a tenth of whose bodies are truncated."""
    rng, wrong = np.random.default_rng(seed), []
    for k in range(150):
        known = (doubled, density)[k % 2](rng)
        body = known.body if k % 10 else known.body[:-8]
        answer = once(server.address, known.path, body, kind=known.kind)
        if CANARY in answer.body or CANARY[1:5] in answer.body:
            wrong.append(f"{known.name}: contains data of another caller")
        if answer.status == 200 and not known.is_answered_by(answer.body):
            wrong.append(f"{known.name}: a wrong response")
    return wrong


def test_one_caller_never_sees_data_of_another(attacked: Started, figures: Figures) -> None:
    stop, wrong = threading.Event(), list[str]()
    threads = [threading.Thread(target=send_marked, args=(attacked, i, stop)) for i in range(4)]
    for thread in threads:
        thread.start()
    together(4, lambda i: wrong.extend(faults_of_another_caller(attacked, i)))
    stop.set()
    for thread in threads:
        thread.join()
    figures.at_most(
        "responses that are wrong or contain data of another caller, of 600", len(wrong), 0, "", str(wrong[:3])
    )
