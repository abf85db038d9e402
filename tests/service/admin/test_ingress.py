"""`gradserve ingress`: its flags, its announcement, TLS, DNS lookups, and its shutdown."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from service.cluster.ingress import process as program
from tests.service.cluster.ingress.support import Node, RunningIngress, needs_haproxy, nodes, wait_until
from tests.service.command_support import called

ROOT = Path(__file__).parents[3]
PLACE = "--node must be HOST:PORT, as in 10.0.0.7:8000 or [fd00::7]:8000"
ANNOUNCEMENT = "gradserve ingress listening on "


@contextmanager
def command(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], RunningIngress]]:
    """Run the command in a process, and wait for its announcement."""
    process = subprocess.Popen(
        [sys.executable, "-m", "service", "ingress", "--port", "0", "--metrics-port", "0", *arguments],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(ANNOUNCEMENT), process.communicate()[1]
        yield process, RunningIngress(int(line.rpartition(":")[2]), None)  # type: ignore[arg-type]
    finally:
        process.kill()
        process.communicate()


def wait_until_serving(running: RunningIngress, node: Node) -> None:
    wait_until(lambda: running.ask("GET", "/v1/ops").body == node.name.encode())


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ([], "one of the arguments --node --dns is required"),
            (["--node", "a:1", "--dns", "a"], "argument --dns: not allowed with argument --node"),
            (["--node", "10.0.0.7"], f"{PLACE}, but is “10.0.0.7”"),
            (["--node", "a:0"], f"{PLACE}, but is “a:0”"),
            (["--node", "a\n b:1"], f"{PLACE}, but is “a? b:1”"),
            (["--dns", "a b"], "--dns must be a name, but is “a b:8000”"),
            (["--node", "a:1", "--port", "x"], "--port must be a whole number from 0 to 65535, but is “x”"),
            (["--node", "a:1", "--threads", "0"], "--threads must be a whole number from 1 to 64, but is “0”"),
            (["--node", "a:1", "--node", "b:1", "--slots", "1"], "--node names 2 servers, but --slots allows 1"),
            (["--node", "a:1", "--tls-cert", "x"], "set both --tls-cert and --tls-key: a certificate and its key"),
            (["--node", "a:1", "--wkrs", "2"], "there is no flag --wkrs; gradserve ingress --help lists all flags"),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )  # fmt: skip
    def test_invalid_arguments_are_refused(self, arguments: list[str], said: str) -> None:
        done = called("ingress", *arguments)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"gradserve: {said}\n")

    def test_missing_haproxy_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(program, "find_spec", lambda _: None)
        monkeypatch.setattr(program.shutil, "which", lambda *_, **__: None)
        done = called("ingress", "--node", "127.0.0.1:1")
        assert done.returncode == 2
        assert "apt-get install haproxy" in done.stderr

    @needs_haproxy
    def test_address_in_use_is_reported(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = str(listener.getsockname()[1])
            done = called("ingress", "--node", "127.0.0.1:1", "--port", port)
        assert (done.returncode, done.stderr) == (
            2, f"gradserve: cannot listen on port {port} on 127.0.0.1: Address already in use\n"
        )  # fmt: skip


@needs_haproxy
@pytest.mark.slow
class TestRunning:
    def test_ingress_serves_until_a_signal(self) -> None:
        with nodes(1) as (node,), command("--node", node.place) as (process, running):
            wait_until_serving(running, node)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0

    def test_death_of_haproxy_ends_the_ingress_with_a_message(self) -> None:
        with command("--node", "127.0.0.1:1") as (process, _):
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()
            os.kill(int(children[0]), signal.SIGKILL)
            _, errors = process.communicate(timeout=30)
            assert process.returncode == 2
            assert errors.splitlines()[-1] == "gradserve: HAProxy exited on SIGKILL; its messages are above"

    @pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make a certificate")
    def test_tls(self, tmp_path: Path) -> None:
        key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
             "-keyout", key, "-out", certificate],
            check=True, capture_output=True,
        )  # fmt: skip
        stated = ("--tls-cert", str(certificate), "--tls-key", str(key))
        with nodes(1) as (node,), command("--node", node.place, *stated) as (_, running):
            running.context = ssl.create_default_context(cafile=str(certificate))
            wait_until_serving(running, node)
        swapped = called("ingress", "--node", "a:1", "--tls-cert", str(key), "--tls-key", str(key))
        assert swapped.stderr.startswith(f"gradserve: cannot use {key} with {key}: ")

    def test_changed_addresses_of_a_name_are_followed(self) -> None:
        """The name first resolves to one server and later to another."""
        with nodes(1) as (first,), NameServer() as names:
            second, port = Node("node2", "127.0.0.2", first.port), str(first.port)
            names.addresses = ["127.0.0.1"]
            with command("--dns", "nodes.test", "--dns-port", port, "--nameserver", names.place) as (_, running):
                wait_until_serving(running, first)
                names.addresses = ["127.0.0.2"]
                wait_until_serving(running, second)
                wait_until(lambda: {running.ask("GET", "/v1/ops").body for _ in range(20)} == {b"node2"})
            second.stop()

    def test_failed_lookup_keeps_the_last_addresses(self) -> None:
        with nodes(1) as (node,), NameServer() as names:
            names.addresses = ["127.0.0.1"]
            asked = ("--dns", "nodes.test", "--dns-port", str(node.port), "--nameserver", names.place)
            with command(*asked) as (_, running):
                wait_until_serving(running, node)
                names.code = 2  # server failure
                names.wait_for(3)
                assert running.ask("GET", "/v1/ops").body == b"node1"


class NameServer:
    """Nameserver on the loopback that answers every question with one list of addresses (RFC 1035)."""

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self.code = 0
        self._questions = threading.Semaphore(0)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._over = False
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> NameServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()

    def wait_for(self, questions: int) -> None:
        """Return after `questions` more questions have arrived."""
        while self._questions.acquire(blocking=False):
            pass
        for _ in range(questions):
            assert self._questions.acquire(timeout=30)

    def _serve(self) -> None:
        while not self._over:
            question, asker = self._socket.recvfrom(4096)
            if question:
                self._questions.release()
                self._socket.sendto(self._answer(question), asker)

    def _answer(self, question: bytes) -> bytes:
        end = question.index(b"\0", 12) + 5
        asks_for_ipv4 = question[end - 4 : end - 2] == b"\0\1"
        addresses = self.addresses if asks_for_ipv4 and not self.code else []
        head = question[:2] + bytes([0x81, 0x80 | self.code, 0, 1, 0, len(addresses), 0, 0, 0, 0])
        record = b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4"  # the name of the question, A, IN, a second, four bytes
        return head + question[12:end] + b"".join(record + socket.inet_aton(address) for address in addresses)
