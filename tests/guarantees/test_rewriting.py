"""Guarantee 4, for state: `/health/live` responds within 100 ms while the stored history is rewritten."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from service.store.writes import AnswerRecord, Commit, GraphWrite, TensorWrite
from tests.guarantees.conftest import judge
from tests.guarantees.figures import Figures
from tests.guarantees.jobs import feed, node, request
from tests.guarantees.probe import probing
from tests.guarantees.started import Started
from tests.guarantees.talk import Connection
from tests.guarantees.test_state import put
from tests.service.store.support import LAZY, journal

pytestmark = pytest.mark.guarantee(4)

GRAPHS = 10_000
TENSORS = 3_000
TENSOR_BYTES = 100_000
GROUP = 40
ANSWERS = 60_000
#: writes per second while the history is rewritten
RATE = 50
#: minimum number of bytes by which a rewrite shrinks the history
SHRINKAGE = 100 << 20
REWRITTEN = 3
PATIENCE = 180.0


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder with a commit for each graph, and with groups of tensors, most of which have been replaced."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        written = journal(tmp_path / "state", LAZY)
        written.load()
        for commit in commits_of_a_history():
            written.commit([commit])
        written.close()
    os.sync()
    return tmp_path / "state"


def commits_of_a_history() -> Iterator[Commit]:
    rng, far = random.Random(7), time.time() + 1e6
    for number in range(GRAPHS):
        yield Commit(graphs=[GraphWrite("", f"{number:064x}", record(number))])
    for first in range(0, 2 * TENSORS, GROUP):
        names = range(first, first + GROUP) if first < TENSORS else rng.sample(range(TENSORS), GROUP)
        yield Commit(tensors=[tensor(f"t{number}", rng) for number in names])
    for first in range(0, ANSWERS, GROUP):
        yield Commit(answers=[answer(number, far) for number in range(first, first + GROUP)])


def record(number: int) -> bytes:
    """The stored record of a graph; the graph is different for each number."""
    nodes = [{"op": "input"}, {"op": "parameter", "name": f"w{number}"}, {"op": "mul", "operands": [0, 1]}]
    return json.dumps({"graph_id": f"{number:064x}", "graph": {"nodes": nodes}}, separators=(",", ":")).encode()


def tensor(name: str, rng: random.Random) -> TensorWrite:
    data = memoryview(rng.randbytes(TENSOR_BYTES))
    return TensorWrite("", name, f"{rng.getrandbits(60):016x}", "uint8", (TENSOR_BYTES,), data)


def answer(number: int, expires: float) -> AnswerRecord:
    return AnswerRecord("", f"k{number}", "f" * 32, "application/json", b"{}", expires, 200, (("etag", '"0"'),))


def test_health_responds_while_history_is_rewritten(
    history: Path, start: Callable[..., Started], figures: Figures
) -> None:
    server = start("--state", str(history), "--max-graphs", str(2 * GRAPHS))
    ended = threading.Event()
    with probing(server.address) as seen:
        writers = [threading.Thread(target=work, args=(server, ended)) for work in (write, replace)]
        for writer in writers:
            writer.start()
        rewritten = times_rewritten(history / "commits")
        ended.set()
        for writer in writers:
            writer.join()
    assert rewritten == REWRITTEN, f"the history was rewritten {rewritten} times in {PATIENCE:g} s"
    judge(seen, f"history rewritten {REWRITTEN} times", figures.test)


def write(server: Started, ended: threading.Event) -> None:
    """Write small durable tensors, at `RATE` per second if the disk keeps up."""
    with Connection(server.address) as connection:
        number = 0
        while not ended.wait(1 / RATE):
            assert put(connection, f"small{number % 200}", float(number)) in (200, 201)
            number += 1


def replace(server: Started, ended: threading.Event) -> None:
    """Replace tensors in groups, so that older groups contain both current and replaced tensors."""
    rng = random.Random(8)
    nodes = [node("input"), node("broadcast_to", 0, shape=[TENSOR_BYTES // 8]), node("sum", 1)]
    with Connection(server.address) as connection:
        while not ended.is_set():
            names = [f"t{number}" for number in rng.sample(range(TENSORS), GROUP)]
            store = [{"node": 1, "tensor_id": name} for name in names]
            body = request(nodes, [feed(0, [], [rng.random()])], outputs=[2], store=store)
            assert connection.ask("/v1/forward", body).status == 200


def times_rewritten(commits: Path) -> int:
    """Wait until the history has shrunk `REWRITTEN` times, and return the number of times."""
    most, times, end = 0, 0, time.monotonic() + PATIENCE
    while times < REWRITTEN and time.monotonic() < end:
        time.sleep(0.2)
        now = size_of(commits)
        most = max(most, now)
        if now < most - SHRINKAGE:
            times, most = times + 1, now
    return times


def size_of(commits: Path) -> int:
    """The total bytes of the files in a folder; some may be deleted in the meantime."""
    total = 0
    for file in commits.iterdir():
        with suppress(FileNotFoundError):
            total += file.stat().st_size
    return total
