"""A worker process that attempts forbidden operations.

Its text goes to `python -c`, since a worker cannot read the tests. A job names an attempt and its target; the reply
has the outcome.
"""

from __future__ import annotations

from service.workers.confinement import confine_from_environment

if __name__ == "__main__":
    confine_from_environment()

import ctypes
import mmap
import os
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import orjson

from engine import warm
from engine.ops import registry
from service.api.media import JSON
from service.core.settings import Settings
from service.workers.shared_memory import Vitals
from service.workers.task import Reply, Task
from service.workers.worker_main import Opened, run_worker

LIBRARY = ctypes.CDLL(None, use_errno=True)
LIBRARY.mmap.restype = ctypes.c_void_p


def checked(result: int) -> int:
    """Return the result of a C function. Raises OSError."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def forked(_: str) -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def executed(_: str) -> None:
    subprocess.run(["/bin/true"], check=True)


def executed_in_place(path: str) -> None:
    """Execute a missing program: a successful attempt would replace the process, and could not be reported."""
    with suppress(FileNotFoundError):
        os.execv(path, [path])


def connected(address: str) -> None:
    host, _, port = address.rpartition(":")
    socket.create_connection((host, int(port)), 5).close()


def listened(_: str) -> None:
    with socket.create_server(("127.0.0.1", 0)):
        pass


def bound_abstractly(_: str) -> None:
    with socket.socket(socket.AF_UNIX) as endpoint:
        endpoint.bind(b"\0gradserve-test-%d" % os.getpid())


def paired(_: str) -> None:
    for end in socket.socketpair():
        end.close()


def signalled(pid: str) -> None:
    os.kill(int(pid), 0)


def signalled_by_thread(pid: str) -> None:
    checked(LIBRARY.syscall(234 if os.uname().machine == "x86_64" else 131, int(pid), int(pid), 0))


def signalled_by_descriptor(pid: str) -> None:
    os.close(os.pidfd_open(int(pid)))


def traced(pid: str) -> None:
    """PTRACE_SEIZE, which does not stop it."""
    checked(LIBRARY.ptrace(0x4206, int(pid), None, None))


def looked_into(pid: str) -> None:
    """Read a byte at an unmapped address: EFAULT means that reading is permitted."""

    class Piece(ctypes.Structure):
        _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))

    here, there = Piece(ctypes.addressof(ctypes.create_string_buffer(1)), 1), Piece(1, 1)
    try:
        checked(LIBRARY.process_vm_readv(int(pid), ctypes.byref(here), 1, ctypes.byref(there), 1, 0))
    except OSError as error:
        if error.errno != 14:
            raise


def limited(pid: str) -> None:
    checked(LIBRARY.prlimit(int(pid), 0, None, ctypes.create_string_buffer(16)))


def niced(pid: str) -> None:
    os.setpriority(os.PRIO_PROCESS, int(pid), os.getpriority(os.PRIO_PROCESS, int(pid)))


def mounted(path: str) -> None:
    checked(LIBRARY.mount(b"none", path.encode(), b"tmpfs", 0, None))
    checked(LIBRARY.umount2(path.encode(), 2))


def unshared(_: str) -> None:
    checked(LIBRARY.unshare(0x04000000))  # CLONE_NEWUTS


def opened(path: str) -> None:
    os.close(os.open(path, os.O_RDONLY))


def listed(path: str) -> None:
    next(Path(path).iterdir(), None)


def written(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))


def removed(path: str) -> None:
    Path(path).unlink()


def made_readable(path: str) -> None:
    Path(path).chmod(0o777)


def had_memory_of_others(_: str) -> None:
    segment = checked(LIBRARY.shmget(0, 4096, 0o600))
    checked(LIBRARY.shmctl(segment, 0, None))


def had_rings(_: str) -> None:
    os.close(checked(LIBRARY.syscall(425, 1, ctypes.create_string_buffer(120))))


# ---------------------------------------------------------------- allowed operations


def computed_by_threads(_: str) -> None:
    results = []
    thread = threading.Thread(target=results.append, args=(1,))
    thread.start()
    thread.join()
    assert results == [1]


def had_memory(_: str) -> None:
    fd = os.memfd_create("test")
    os.ftruncate(fd, 4096)
    mmap.mmap(fd, 4096).close()
    os.close(fd)


def had_executable_memory(_: str) -> None:
    address = LIBRARY.mmap(None, ctypes.c_size_t(4096), 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, ctypes.c_long(0))
    checked(LIBRARY.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(4096), mmap.PROT_READ | mmap.PROT_EXEC))


def knew_its_numbers(_: str) -> None:
    Path("/proc/self/statm").read_text(encoding="ascii")
    Path("/proc/cpuinfo").read_text(encoding="ascii")
    os.kill(os.getpid(), 0)


def attempted(attempt: dict[str, str]) -> str:
    """Outcome of an attempt: "done", or the number of the error."""
    try:
        globals()[attempt["attempt"]](attempt["on"])
    except OSError as error:
        return str(error.errno)
    return "done"


def in_a_thread(attempt: dict[str, str]) -> str:
    """Outcome of the attempt in another thread."""
    outcomes: list[str] = []
    thread = threading.Thread(target=lambda: outcomes.append(attempted(attempt)))
    thread.start()
    thread.join()
    return outcomes[0]


def execute(job: Task, _: float | None) -> Reply:
    """Make the attempt in this thread and in another one."""
    attempt = orjson.loads(bytes(job.body))
    return Reply(200, JSON, [orjson.dumps([attempted(attempt), in_a_thread(attempt)])])


def trying(_: Settings) -> Opened:
    """Prepare the work of this worker."""
    warm(registry())
    return Opened(execute, "cpu", lambda: Vitals(0, 0))


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    run_worker(trying)
