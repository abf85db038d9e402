"""Process of HAProxy: its files, its start, and its end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from service.ingress.configuration import IngressLayout, files
from service.ingress.program import HaproxyProgram
from service.ingress.table import ServerTable, ask
from service.parent import ending_with_parent

#: seconds in which HAProxy begins to answer, and those in which it ends once it must
_PATIENCE: Final = 10.0
_GLANCE: Final = 0.02
_RUNTIME: Final = "runtime"


class HaproxyProcess:
    """HAProxy as it runs, with its table of servers."""

    def __init__(self, process: subprocess.Popen[bytes], table: ServerTable) -> None:
        self.table = table
        self._process = process
        self._ending = False

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it has."""
        return self._process.poll() is not None

    def drain(self) -> None:
        """End once the requests under way are answered; called again, at once."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM if self._ending else signal.SIGUSR1)
        self._ending = True

    def wait(self) -> None:
        """Return once it has ended as it was told. Raises RuntimeError where it ends by itself."""
        status = self._process.wait()
        if not self._ending:
            raise RuntimeError(f"HAProxy ended {_how(status)}; what it said stands above")


@contextmanager
def haproxy(
    program: HaproxyProgram, layout: IngressLayout, listening: socket.socket | None = None, pem: bytes = b""
) -> Iterator[HaproxyProcess]:
    """A running HAProxy; it ends with the context, or with this process, however that ends.

    `listening` is the bound socket that it takes connections from, in place of the layout's address; `pem` is a
    certificate and its key. Its files, and the runtime socket, lie in a folder that is this user's alone. Raises
    RuntimeError as one sentence where it does not take its configuration, or does not start.
    """
    with TemporaryDirectory(prefix="gradserve-ingress-") as name:
        placed = _placed(layout, Path(name), listening, pem)
        command, inherited = [str(program.path), "-f", f"{name}/haproxy.cfg"], [] if listening is None else [listening]
        environment, handed_over = {**os.environ, **program.environment}, [each.fileno() for each in inherited]
        _check([*command, "-c"], environment, handed_over)
        process = subprocess.Popen(  # noqa: S603 - the program that was found
            [*command, "-db"], env=environment, pass_fds=handed_over, stdin=subprocess.DEVNULL,
            preexec_fn=ending_with_parent(signal.SIGTERM),  # noqa: PLW1509 - calls what is loaded, and takes no lock
        )  # fmt: skip
        try:
            _await_answer(process, Path(placed.socket or ""))
            for each in inherited:
                each.close()  # or connections would wait here once HAProxy takes no more
            yield HaproxyProcess(process, ServerTable(Path(placed.socket or ""), layout.slots, layout.nodes))
        finally:
            _end(process)


def _placed(layout: IngressLayout, folder: Path, listening: socket.socket | None, pem: bytes) -> IngressLayout:
    """The layout with its files in this folder, which they are written into."""
    layout = replace(layout, folder=str(folder), socket=str(folder / _RUNTIME))
    if listening is not None:
        layout = replace(layout, listen=f"fd@{listening.fileno()}")
    if pem:
        layout = replace(layout, certificate=str(folder / "certificate.pem"))
    for name, content in {**files(layout), **({"certificate.pem": pem} if pem else {})}.items():
        file = folder / name
        file.touch(mode=0o600)
        file.write_bytes(content)
    return layout


def _check(command: list[str], environment: dict[str, str], inherited: list[int]) -> None:
    done = subprocess.run(  # noqa: S603 - the program that was found
        command, env=environment, pass_fds=inherited, capture_output=True, text=True, check=False
    )
    if done.returncode:
        alerts = [line.partition(" : ")[2] for line in done.stderr.splitlines() if line.startswith("[ALERT]")]
        raise RuntimeError(f"HAProxy does not take its configuration: {(alerts or [done.stderr.strip()])[0]}")


def _await_answer(process: subprocess.Popen[bytes], runtime: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        with suppress(OSError):
            ask(runtime, "show version")
            return
        with suppress(subprocess.TimeoutExpired):
            raise RuntimeError(f"HAProxy does not start: it ended {_how(process.wait(_GLANCE))}")
    raise RuntimeError(f"HAProxy does not start: it says nothing for {_PATIENCE:g} s")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it, gracefully where it has been told to; by force where it does not end."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _how(status: int) -> str:
    return f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
