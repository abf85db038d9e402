"""Guarantees 9 and 10: acknowledged writes survive kill -9 of the server, and a full disk loses nothing.

A kill does not lose data that is still in the page cache; therefore another test traces the system calls, and checks
that the data is on disk before the response is sent.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.guarantees.figures import Figures
from tests.guarantees.jobs import is_right, node, request, small
from tests.guarantees.started import Started
from tests.guarantees.talk import Address, Connection, Hangup, once

pytestmark = pytest.mark.guarantee(9)
KILLS = 200
WRITERS = 4
ELEMENTS = 300


def tensor(number: float, elements: int = ELEMENTS) -> bytes:
    """A tensor whose elements all equal one number, so that a torn write is detected."""
    return json.dumps({"dtype": "float64", "shape": [elements], "data": [number] * elements}).encode()


def put(connection: Connection, name: str, number: float) -> int:
    """Write a tensor, and return the status."""
    return connection.ask(f"/v1/tensors/{name}", tensor(number), "PUT").status


def read_tensor(address: Address, name: str) -> list[float] | None:
    """The elements of a tensor, or None if it does not exist."""
    answer = once(address, f"/v1/tensors/{name}", b"", method="GET")
    return answer.json()["tensor"]["data"] if answer.status == 200 else None


def step(a: str, b: str) -> bytes:
    """A call that adds one to a tensor, and writes the result under two names."""
    nodes = [node("input"), node("add_scalar", 0, scalar=1.0), node("sum", 1)]
    fed = [{"node": 0, "tensor_id": a}]
    return request(nodes, fed, outputs=[2], store=[{"node": 1, "tensor_id": a}, {"node": 1, "tensor_id": b}])


@dataclass
class Writer:
    """Writes to two names of its own until the server is killed, and records the acknowledged values.

    Two of three writes are a single call that adds one to the current value and stores it under both names.
    """

    address: Address
    acknowledged: dict[str, float]
    #: the number that is being written
    tried: float = 0.0
    count: int = 0
    wrong: list[str] = field(default_factory=list)

    def __call__(self) -> None:
        try:
            with Connection(self.address) as connection:
                while not self.wrong:
                    self.tried = max(self.acknowledged.values()) + 1
                    self._together(connection) if int(self.tried) % 3 else self._apart(connection)
        except (OSError, Hangup):
            return

    def _together(self, connection: Connection) -> None:
        self._acknowledge(connection.ask("/v1/forward", step(*self.acknowledged)).status, *self.acknowledged)

    def _apart(self, connection: Connection) -> None:
        for name in self.acknowledged:
            self._acknowledge(put(connection, name, self.tried), name)

    def _acknowledge(self, status: int, *names: str) -> None:
        if status != 200:
            self.wrong.append(f"{names} got status {status}")
        self.count += 1
        self.acknowledged |= dict.fromkeys(names, self.tried)

    def check(self, values: dict[str, list[float] | None]) -> list[str]:
        """The faults in the values of its names after a restart."""
        wrong = list(self.wrong)
        for name, elements in values.items():
            if elements is None or len(set(elements)) != 1 or len(elements) != ELEMENTS:
                wrong.append(f"{name} is torn or missing")
            elif elements[0] not in (self.acknowledged[name], self.tried):
                wrong.append(f"{name} is {elements[0]:g}, and {self.acknowledged[name]:g} was acknowledged")
        first, second = values.values()
        if int(self.tried) % 3 and first != second:
            wrong.append(f"{tuple(values)} were written together, and differ")
        return wrong


def test_acknowledged_writes_survive_kills(tmp_path: Path, figures: Figures) -> None:
    rng, wrong, count = random.Random(7), list[str](), 0
    values = {f"a{i}": 0.0 for i in range(WRITERS)} | {f"b{i}": 0.0 for i in range(WRITERS)}
    server = Started("--state", str(tmp_path / "state"))
    try:
        for _ in range(KILLS):
            with Connection(server.address) as connection:
                for i in range(WRITERS):  # a write in flight may have reached only one of the two
                    values[f"b{i}"] = values[f"a{i}"]
                for name, value in values.items():
                    assert put(connection, name, value) in (200, 201)
            pairs = [{name: values[name] for name in (f"a{i}", f"b{i}")} for i in range(WRITERS)]
            writers = [Writer(server.address, pair) for pair in pairs]
            write_until_killed(server, writers, rng.uniform(0.02, 0.4))
            server = Started("--state", str(tmp_path / "state"))
            for writer in writers:
                stored = {name: read_tensor(server.address, name) for name in writer.acknowledged}
                wrong += writer.check(stored)
                count += writer.count
                values |= {name: elements[0] if elements else 0.0 for name, elements in stored.items()}
            if len(wrong) > 5:
                break
    finally:
        server.stop()
    note = f"{count} writes acknowledged; {'; '.join(wrong[:5])}"
    figures.at_most(f"writes lost or torn in {KILLS} kills of the server", len(wrong), 0, "", note)
    figures.at_least("writes acknowledged between two kills, on average", round(count / KILLS, 1), 3, "")


def write_until_killed(server: Started, writers: list[Writer], seconds: float) -> None:
    """Run all writers concurrently, and kill the server after `seconds`."""
    threads = [threading.Thread(target=writer) for writer in writers]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    server.kill()
    for thread in threads:
        thread.join()


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_response_is_sent_after_the_disk_flush(tmp_path: Path, start: Callable[..., Started], figures: Figures) -> None:
    """The file is flushed and renamed, the folder is flushed, and then the response is sent."""
    server = start("--state", str(tmp_path / "state"))
    trace = tmp_path / "trace"
    calls = "fsync,fdatasync,link,linkat,rename,renameat,renameat2,write,writev,sendto,sendmsg"
    command = ["strace", "-f", "-s", "120", "-e", f"trace={calls}", "-o", str(trace), "-p", str(server.pid)]
    tracing = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert tracing.stderr is not None
    assert "attached" in tracing.stderr.readline()
    with Connection(server.address) as connection:
        statuses = [put(connection, f"t{i}", float(i)) for i in range(20)]
    tracing.send_signal(signal.SIGINT)
    tracing.communicate()
    assert set(statuses) == {201}
    late = disorders(trace.read_text(encoding="utf-8", errors="replace").splitlines())
    figures.at_most("responses sent before the data and file name were on disk, of 20", late, 0, "")


def disorders(lines: list[str]) -> int:
    """Count the responses not preceded by a flush of a file, a rename, and a flush of the folder."""
    expected = ("flush", "name", "flush")
    seen, wrong, answers = list[str](), 0, 0
    for line in lines:
        if re.search(r"\b(fsync|fdatasync)\(|<\.\.\. f(data)?sync resumed", line) and line.rstrip().endswith("= 0"):
            seen.append("flush")
        elif re.search(r"\b(linkat?|rename(at2?)?)\(|<\.\.\. (linkat?|rename\w*) resumed", line) and "= 0" in line:
            seen.append("name")
        elif "HTTP/1.1 201" in line:
            answers += 1
            wrong += not contains(seen, expected)
            seen.clear()
    return wrong if answers == 20 else 20


def contains(seen: list[str], expected: tuple[str, ...]) -> bool:
    """Whether the expected entries occur in this order, possibly with others between them."""
    rest = iter(seen)
    return all(one in rest for one in expected)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of eight MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "none", str(place)], check=False)
    if mounted.returncode:
        pytest.skip("no file system can be mounted")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.guarantee(10)
def test_full_disk_refuses_writes_and_keeps_old_values(small_disk: Path, figures: Figures) -> None:
    """Writes get a 507, the old value remains, and calls succeed; once space is free, writes succeed again."""
    server = Started("--state", str(small_disk / "state"))
    try:
        with Connection(server.address) as connection:
            assert put(connection, "kept", 1.0) == 201
            filler = small_disk / "filler"
            with suppress(OSError), filler.open("wb", buffering=0) as file:
                while file.write(bytes(1 << 12)):
                    pass
            full = [put(connection, "kept", 2.0) for _ in range(3)]
            computed = connection.ask("/v1/gradients", small())
            value = read_tensor(server.address, "kept")
            filler.unlink()
            again = put(connection, "kept", 3.0)
        after = read_tensor(server.address, "kept")
    finally:
        server.stop()
    figures.at_most("full disk: writes without a 507, of 3", sum(s != 507 for s in full), 0, "", str(full))
    figures.at_most("full disk: old values lost", int(value != [1.0] * ELEMENTS), 0, "")
    figures.at_most("full disk: calls that fail", int(not is_right(computed.body)), 0, "")
    figures.at_most("writes that fail after space is free again", int(again != 200 or after != [3.0] * ELEMENTS), 0, "")


def test_second_server_on_the_same_folder_is_refused(tmp_path: Path, figures: Figures) -> None:
    server = Started("--state", str(tmp_path / "state"))
    try:
        with pytest.raises(RuntimeError, match="does not start"):
            Started("--state", str(tmp_path / "state"))
        with Connection(server.address) as connection:
            status = put(connection, "x", 1.0)
    finally:
        server.stop()
    figures.at_most("failed writes of a server after a second one tried to start", int(status != 201), 0, "")
