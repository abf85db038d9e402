"""Fifteenth guarantee: a result does not depend on what else is in flight, and nothing of one caller reaches another."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable

import numpy as np
import pytest

from tests.guarantees.conftest import judge
from tests.guarantees.figures import Figures
from tests.guarantees.jobs import feed, request
from tests.guarantees.known import DENSITY, Known, density, doubled, makers, plain
from tests.guarantees.probe import probing
from tests.guarantees.started import Started
from tests.guarantees.talk import SAFETENSORS, Connection, Hangup, once, posted
from tests.guarantees.test_caps import settings
from tests.guarantees.test_liveness import together

pytestmark = pytest.mark.guarantee(15)
CANARY = b"\xc0\xff\xee\xca\xfe\xba\xbe\x42"
#: what the documentation allows coalesced answers to differ by, relatively
TOLERANCE = 1e-12


def results(known: Known, body: bytes) -> object:
    """What an answer says, but for its receipt: times, and whether the plan was known."""
    if known.kind == SAFETENSORS:
        start = 8 + int.from_bytes(body[:8], "little")
        header = json.loads(body[8:start])
        del header["__metadata__"]
        return header, body[start:]
    answer = json.loads(body)
    answer.pop("stats", None)
    return answer


def test_together_equals_alone_bit_for_bit(start: Callable[..., Started], figures: Figures) -> None:
    server = start("--determinism", "bitwise")
    rng = np.random.default_rng(15)
    kinds = makers(server.address)
    asked = [kinds[i % len(kinds)](rng) for i in range(60)]
    alone = [results(one, once(server.address, one.path, one.body, kind=one.kind).body) for one in asked]
    differing: list[str] = []

    def ask(i: int) -> None:
        order = random.Random(i).sample(range(len(asked)), len(asked))
        with Connection(server.address) as connection:
            for k in order:
                answer = connection.ask(asked[k].path, asked[k].body, kind=asked[k].kind)
                if answer.status != 200 or results(asked[k], answer.body) != alone[k]:
                    differing.append(f"{asked[k].name}: {answer.status}")

    with probing(server.address) as seen:
        together(16, ask)
    figures.at_most(
        f"answers of {16 * len(asked)} that differ from those alone", len(differing), 0, "", str(differing[:5])
    )
    judge(seen, "16 clients with calls of all kinds", figures.test)


def test_nothing_of_one_caller_reaches_another(attacked: Started, figures: Figures) -> None:
    """Callers whose bodies are full of a pattern, some cut off; others, whose answers may not hold it."""
    stop, found, wrong = threading.Event(), list[str](), list[str]()

    def marked(i: int) -> None:
        rng = random.Random(i)
        while not stop.is_set():
            x = np.frombuffer(CANARY * rng.randrange(1_000, 250_000), "<f8")
            known = doubled(np.random.default_rng(i))
            header_end = 8 + int.from_bytes(known.body[:8], "little")
            header = json.loads(known.body[8:header_end])
            header["feeds.0"].update(shape=[x.size], data_offsets=[0, x.nbytes])
            text = json.dumps(header).encode()
            body = len(text).to_bytes(8, "little") + text + x.tobytes()
            try:
                with Connection(attacked.address) as connection:
                    sent = posted("/v1/forward", body, SAFETENSORS)
                    connection.send(sent[: rng.choice((len(sent), len(sent) * 2 // 3))])
                    if rng.random() < 0.5:
                        connection.reset()
            except (OSError, Hangup):
                continue

    def other(i: int) -> None:
        rng = np.random.default_rng(i)
        for k in range(150):
            known = (doubled, density)[k % 2](rng)
            body = known.body if k % 10 else known.body[:-8]
            answer = once(attacked.address, known.path, body, kind=known.kind)
            if CANARY in answer.body or CANARY[1:5] in answer.body:
                found.append(known.name)
            if answer.status == 200 and not known.is_answered_by(answer.body):
                wrong.append(known.name)

    threads = [threading.Thread(target=marked, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    together(4, other)
    stop.set()
    for thread in threads:
        thread.join()
    figures.at_most("answers of 600 that hold what another caller sent", len(found), 0, "", str(found[:3]))
    figures.at_most("wrong answers of 600 beside callers that are cut off", len(wrong), 0, "", str(wrong[:3]))


def flags_of_coalescing() -> list[str]:
    """What turns coalescing on."""
    found = [flag for flag in settings() if "coalesc" in flag]
    assert found, "no setting turns coalescing on"
    return [found[0], "on"]


@pytest.mark.parametrize("determinism", ["fast", "bitwise"])
def test_coalesced_equals_alone(start: Callable[..., Started], figures: Figures, determinism: str) -> None:
    """64 requests of one plan at once, bad ones among them, which spoil no other."""
    apart, server = start("--determinism", determinism), start("--determinism", determinism, *flags_of_coalescing())
    rng = np.random.default_rng(0)
    asked = [density(rng) for _ in range(64)]
    bad = request(DENSITY, [feed(0, [8], [0.0] * 8)])
    alone = [plain(once(apart.address, one.path, one.body).body) for one in asked]
    worst, wrong, gate = [0.0], list[str](), threading.Barrier(64)

    def ask(i: int) -> None:
        with Connection(server.address) as connection:
            for k in range(20):
                gate.wait()
                if (i + k) % 16 == 0:
                    if connection.ask("/v1/gradients", bad).status != 422:
                        wrong.append("a bad request is not refused")
                    continue
                answer = connection.ask(asked[i].path, asked[i].body)
                if answer.status != 200:
                    wrong.append(f"{answer.status} {answer.body[:100]!r}")
                    continue
                found = plain(answer.body)
                worst.append(max(_apart(found[name], wanted) for name, wanted in alone[i].items()))

    together(64, ask)
    bound = 0.0 if determinism == "bitwise" else TOLERANCE
    figures.at_most(f"coalesced beside alone ({determinism}): relative difference", max(worst), bound, "")
    figures.at_most(f"coalesced ({determinism}): wrong answers of 1,280", len(wrong), 0, "", str(wrong[:3]))


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.max(np.abs(one - other) / np.maximum(np.abs(other), 1e-300)))
