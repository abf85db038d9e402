"""Workers that attempt forbidden operations: the kernel refuses each if they are confined, and none if not."""

from __future__ import annotations

import errno
import os
import re
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import orjson
import pytest

from service.core import machine
from service.core.settings import Settings, without_secrets
from service.workers import confinement
from service.workers.confinement import AllowedFiles, KernelSupport, kernel_support, system_call_filter
from service.workers.process_pool import ProcessPool
from service.workers.sandbox import allowed_files
from tests.conftest import ROOT
from tests.service.workers.pools import ask, running, whole

PROGRAM = Path(__file__).with_name("confined.py").read_text(encoding="utf-8")
COMMAND = (sys.executable, "-P", "-c", PROGRAM)
REFUSED = {str(errno.EPERM), str(errno.EACCES)}
IS_ROOT = os.geteuid() == 0

#: attempts without a target
ALONE = (
    "forked", "executed", "listened", "bound_abstractly", "paired", "unshared", "had_memory_of_others", "had_rings"
)  # fmt: skip
#: attempts on another process
ON_PROCESSES = (
    "signalled", "signalled_by_thread", "signalled_by_descriptor", "looked_into", "limited", "niced"
)  # fmt: skip
#: operations that stay allowed
ALLOWED = ("computed_by_threads", "had_memory", "had_executable_memory", "knew_its_numbers")
ONLY_AS_ROOT = {"unshared", "mounted"}

pytestmark = pytest.mark.skipif(
    bool(kernel_support().missing), reason=f"this kernel cannot confine: {', '.join(kernel_support().missing)}"
)


class Place:
    """Files of a server that a worker must not see, and a socket that it must not reach."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self.keys, self.tls, self.cache = folder / "keys.json", folder / "key.pem", folder / "cache"
        self.state.mkdir()
        self.cache.mkdir()
        (self.state / "LOCK").write_text("")
        for file in (self.keys, self.tls):
            file.write_text("secret")
        (folder / "mount").mkdir()
        (folder / "mine").write_text("")
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listening.getsockname()[1]}"
        self.folder = folder

    def settings(self, confine: str) -> Settings:
        return Settings(
            device="cpu", workers=1, log_level="error", confine=confine, cache_dir=self.cache, state=str(self.state),
            keys_file=self.keys, tls_key=self.tls,
        )  # fmt: skip

    def attempts(self, sibling: int) -> Iterator[tuple[str, str]]:
        """Attempts and their targets."""
        yield from ((name, "") for name in ALONE)
        for process in (os.getpid(), sibling):
            yield from ((name, str(process)) for name in ON_PROCESSES)
            yield from (("opened", f"/proc/{process}/{file}") for file in ("mem", "environ", "maps", "stat"))
            yield "listed", f"/proc/{process}/fd"
        yield "connected", self.address
        yield "executed_in_place", str(self.folder / "absent")
        for path in (self.state / "LOCK", self.keys, self.tls, Path.home(), "/etc/passwd", "/etc/hostname", "/tmp"):
            yield "opened", str(path)
        for path in ("/", "/etc", "/home", str(self.state), str(Path.cwd()), str(Path.home())):
            yield "listed", path
        for path in (self.state / "new", self.cache / "new", Path(os.__file__).parent / "gradserve-test", "/tmp/x"):
            yield "written", str(path)
        yield "made_readable", str(self.keys)
        yield "mounted", str(self.folder / "mount")
        yield "removed", str(self.folder / "mine")
        yield "opened", "/proc/self/mem"
        yield "opened", "/proc/self/environ"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.listening.close()
    (Path(os.__file__).parent / "gradserve-test").unlink(missing_ok=True)
    Path("/tmp/x").unlink(missing_ok=True)


async def outcomes_of(pool: ProcessPool, attempt: str, on: str = "") -> list[str]:
    """Outcomes of an attempt in the worker's main thread and in another thread."""
    reply = await ask(pool, {"attempt": attempt, "on": on})
    assert reply.status == 200, (attempt, reply.body)
    return list(orjson.loads(reply.body))


async def all_outcomes(place: Place, confine: str) -> dict[tuple[str, str], list[str]]:
    pool = ProcessPool(place.settings(confine), COMMAND)
    await pool.start()
    try:
        await whole(pool)
        assert pool._supervisor.spare is not None
        sibling = pool._supervisor.spare.pid
        outcomes = {(name, on): await outcomes_of(pool, name, on) for name, on in place.attempts(sibling)}
        outcomes["traced", ""] = await outcomes_of(pool, "traced", str(sibling))
        return outcomes | {(name, ""): await outcomes_of(pool, name) for name in ALLOWED}
    finally:
        await pool.close(0)


@pytest.mark.slow
@running
async def test_confined_worker_is_refused(place: Place) -> None:
    outcomes = await all_outcomes(place, "on")
    allowed = {attempt: outcome for attempt, outcome in outcomes.items() if not REFUSED.issuperset(outcome)}
    assert allowed == {(name, ""): ["done", "done"] for name in ALLOWED}


@pytest.mark.slow
@running
async def test_unconfined_worker_succeeds(place: Place) -> None:
    """Otherwise the test above would pass whatever the kernel does."""
    outcomes = await all_outcomes(place, "off")
    refused = {attempt: outcome for attempt, outcome in outcomes.items() if outcome[0] != "done"}
    expected = set() if IS_ROOT else {(name, on) for name, on in outcomes if name in ONLY_AS_ROOT}
    unsupported = {("had_rings", "")}  # if the system has it disabled
    assert refused.keys() - unsupported <= expected, refused


def oom_score_adj(pid: int) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text(encoding="ascii"))


def statuses(pid: int) -> list[str]:
    """The status file of each thread of a process."""
    return [(task / "status").read_text(encoding="ascii") for task in Path(f"/proc/{pid}/task").iterdir()]


@pytest.mark.slow
@running
async def test_oom_killer_prefers_workers_to_the_front(place: Place) -> None:
    pool = ProcessPool(place.settings("off"), COMMAND)
    await pool.start()
    try:
        for worker in pool._supervisor:
            assert oom_score_adj(worker.pid) == 1000 > oom_score_adj(os.getpid())
    finally:
        await pool.close(0)


@pytest.mark.slow
@pytest.mark.skipif(machine.cpus() < 2, reason="a BLAS has no threads on one processor")
@running
async def test_every_thread_of_a_worker_is_confined() -> None:
    """The threads of its BLAS, which start when it is loaded, are confined as well."""
    pool = ProcessPool(Settings(device="cpu", workers=1, log_level="error", state="memory"))
    os.environ["OPENBLAS_NUM_THREADS"] = "3"
    try:
        await pool.start()
        await whole(pool)
        for worker in pool._supervisor:
            thread_statuses = statuses(worker.pid)
            assert len(thread_statuses) > 1
            assert all("NoNewPrivs:\t1" in status and "Seccomp:\t2" in status for status in thread_statuses)
    finally:
        del os.environ["OPENBLAS_NUM_THREADS"]
        await pool.close(0)


def test_packages_are_imported_before_the_folder_of_a_clone_is_closed() -> None:
    """Otherwise, a file that appears in it makes Python list it again, in vain, and not find the next package."""
    code = """
import sys
from service.workers import confinement
confinement.confine = lambda allowed: print(*sorted({"engine", "numpy", "schemas", "service"} & sys.modules.keys()))
confinement.confine_from_environment()
"""
    environment = {**os.environ, confinement.CONFINED_TO: AllowedFiles().text()}
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, check=True)
    assert printed.stdout.split() == [b"engine", b"schemas", b"service"]


def test_process_with_other_threads_is_not_confined() -> None:
    """Landlock would leave those threads free. The test uses a process of its own, in case it is confined."""
    program = """
import threading
from service.workers.confinement import AllowedFiles, confine
over = threading.Event()
threading.Thread(target=over.wait).start()
try:
    confine(AllowedFiles())
except RuntimeError as error:
    print(error)
finally:
    over.set()
"""
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == "confine a process before it starts threads: existing threads would stay unconfined\n"


def test_later_threads_are_confined() -> None:
    program = """
import os, threading
from service.workers.confinement import AllowedFiles, confine
confine(AllowedFiles(("/proc/self/status",)))
def tried():
    for path in "/etc/passwd", "/proc/self/status":
        try:
            os.close(os.open(path, os.O_RDONLY))
            print(path)
        except PermissionError:
            print("refused")
thread = threading.Thread(target=tried)
thread.start()
thread.join()
"""
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == "refused\n/proc/self/status\n"


#: two processes of one user other than root: whether the second may read the first, before and after
FRONT = """
import ctypes, os, sys
from service.workers.confinement import forbid_tracing
if os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # changing the user has taken it away
for line in sys.stdin:
    if line == "forbid\\n":
        forbid_tracing()
    print(os.getpid(), flush=True)
"""
WORKER = """
import os, sys
if os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
for file in "mem", "environ":
    try:
        os.close(os.open(f"/proc/{sys.argv[1]}/{file}", os.O_RDONLY))
        print("read")
    except PermissionError:
        print("refused")
"""


def test_forbid_tracing_hides_the_front_from_its_user() -> None:
    front_command = [sys.executable, "-c", FRONT]
    with subprocess.Popen(
        front_command, cwd=ROOT, text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as front:
        assert front.stdin is not None
        assert front.stdout is not None
        for command, expected in ("nothing\n", "read\nread\n"), ("forbid\n", "refused\nrefused\n"):
            front.stdin.write(command)
            pid = front.stdout.readline().strip()
            result = subprocess.run([sys.executable, "-c", WORKER, pid], capture_output=True, text=True, check=True)
            assert result.stdout == expected
        front.stdin.close()


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.parametrize(("confine", "expected"), [("on", 0), ("off", 1)])
def test_confined_server_forbids_tracing(confine: str, expected: int) -> None:
    program = f"""
import ctypes
import service.app
from service.cli import main
service.app.serve = lambda *_: print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
main(["serve", "--confine", "{confine}", "--state", "memory"])
"""
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == f"{expected}\n"


# ---------------------------------------------------------------- allowed files


@pytest.mark.parametrize("name", ["state", "keys_file", "tls_key"])
def test_secrets_in_readable_folders_are_refused(name: str, tmp_path: Path) -> None:
    place = Path(sys.prefix) / "lib" / "hidden"
    with pytest.raises(RuntimeError) as raised:
        allowed_files(Settings(**{"device": "cpu", "cache_dir": tmp_path, "state": "memory", name: str(place)}))
    flag = "--" + name.replace("_", "-")
    assert str(raised.value) == (
        f"{flag} is in {sys.prefix}/lib, which workers can read; move it, or set --confine off"
    )


def test_links_into_readable_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "cache")
    settings = Settings(device="cpu", cache_dir=tmp_path / "cache", state=str(tmp_path / "link" / "kernels" / "state"))
    with pytest.raises(RuntimeError, match=r"--state is in .*/cache/kernels, which workers can read"):
        allowed_files(settings)


def test_module_folder_with_the_state_is_not_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment below a home is readable; the home is not, whatever PYTHONPATH says."""
    modules = tmp_path / "modules"
    monkeypatch.setattr(sys, "path", [str(modules), str(tmp_path), str(Path.home()), "", *sys.path])
    settings = Settings(device="cpu", cache_dir=tmp_path / "cache", state=str(tmp_path / "state"))
    allowed = allowed_files(settings)
    assert allowed is not None
    assert str(modules) in allowed.reads
    assert not {str(tmp_path), str(Path.home()), str(Path.cwd())} & {*allowed.reads}
    assert allowed.writes == (str(tmp_path / "cache" / "kernels"),)
    assert not allowed.devices


def test_workers_inherit_no_secrets() -> None:
    """Credentials of stores and collectors stay in the front; variables for computing are passed on."""
    passed_on = {
        "PATH": "/bin",
        "HOME": "/nowhere",
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "0",
        "LD_LIBRARY_PATH": "",
    }
    hidden = (
        "GRADSERVE_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_KEY", "DB_PASSWORD",
        "GOOGLE_APPLICATION_CREDENTIALS", "OTEL_EXPORTER_OTLP_HEADERS", "github_token",
    )  # fmt: skip
    assert without_secrets({**passed_on, **dict.fromkeys(hidden, "secret")}) == passed_on


def test_unconfined_worker_has_no_allowed_files() -> None:
    assert allowed_files(Settings(confine="off")) is None


def test_allowed_files_round_trip() -> None:
    files = AllowedFiles(("/a",), ("/b", "/c"), ("/d",))
    assert AllowedFiles.parse(files.text()) == files


# ---------------------------------------------------------------- older kernels


def test_missing_kernel_features_are_listed() -> None:
    assert KernelSupport(7, filters=True).missing == []
    assert KernelSupport(0, filters=False).missing == [
        "access to files is not restricted (no Landlock)", "system calls are not filtered (no seccomp)"
    ]  # fmt: skip
    assert len(KernelSupport(3, filters=True).missing) == 2
    assert KernelSupport(4, filters=True).missing == [
        "only the system call filter blocks signals to other processes (Landlock before 6)"
    ]


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_older_kernels_still_refuse_files(version: int) -> None:
    """Use only the features of such a kernel; each refuses files."""
    program = f"""
import os
from service.workers import confinement
confinement.kernel_support = lambda: confinement.KernelSupport({version}, filters=False)
confinement.confine(confinement.AllowedFiles(("/proc/self/status",)))
os.close(os.open("/proc/self/status", os.O_RDONLY))
os.open("/etc/passwd", os.O_RDONLY)
"""
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "PermissionError" in result.stderr
    assert "/etc/passwd" in result.stderr


ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
X86_64, AARCH64 = 0xC000003E, 0xC00000B7
OWN = 4711


def verdict(program: bytes, audit: int, number: int, *arguments: int) -> int:
    """The verdict of a filter on a system call, by interpreting its classic BPF instructions."""
    data = struct.pack("<IIQ6Q", number, audit, 0, *arguments, *[0] * (6 - len(arguments)))
    instructions = [*struct.iter_unpack("<HBBI", program)]
    position, accumulator = 0, 0
    while True:
        code, if_true, if_false, constant = instructions[position]
        position += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, constant)
            case 0x54:
                accumulator &= constant
            case 0x15:
                position += if_true if accumulator == constant else if_false
            case 0x35:
                position += if_true if accumulator >= constant else if_false
            case 0x06:
                return int(constant)
            case _:
                raise AssertionError(code)


#: numbers of execve, socket, openat, mmap, clone, kill, fcntl and ioctl
NUMBERS = {"x86_64": (59, 41, 257, 9, 56, 62, 72, 16), "aarch64": (221, 198, 56, 222, 220, 129, 25, 29)}


@pytest.mark.parametrize(("kind", "audit"), [("x86_64", X86_64), ("aarch64", AARCH64)])
def test_verdicts_of_the_system_call_filter(kind: str, audit: int) -> None:
    program = system_call_filter(kind, OWN)
    assert len(program) // 8 < 4096, "the kernel takes no longer ones"
    execve, opened_socket, openat, mapped, clone, kill, fcntl, ioctl = NUMBERS[kind]
    judge = partial(verdict, program, audit)
    assert {judge(openat), judge(mapped), judge(kill, OWN, 9), judge(clone, 0x3D0F00)} == {ALLOW}
    assert {judge(execve), judge(opened_socket)} == {EPERM}
    assert {judge(kill, 0), judge(kill, (1 << 32) - 1), judge(kill, OWN + 1)} == {EPERM}
    assert {judge(clone, 17), judge(clone, 0x10000 | 0x10000000), judge(clone, 0x20000000)} == {EPERM}
    assert {judge(fcntl, 0, 8), judge(ioctl, 1, 0x5412)} == {EPERM}
    assert {judge(fcntl, 0, 1033), judge(ioctl, 1, 0x5413)} == {ALLOW}
    assert {judge(435), judge(463), judge(openat | 0x40000000)} == {ENOSYS}
    for other in {X86_64, AARCH64, 0x40000003} - {audit}:
        assert verdict(program, other, openat) == KILL


HEADERS = {"x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "aarch64": "/usr/include/asm-generic/unistd.h"}


@pytest.mark.parametrize("kind", HEADERS)
def test_system_call_numbers_match_the_headers(kind: str) -> None:
    """Skip headers that are not installed; some of the generic calls have two names."""
    header = Path(HEADERS[kind])
    if not header.is_file():
        pytest.skip(f"there is no {header}")
    defined = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text(encoding="ascii"))
    header_numbers = {name: int(number) for name, number in defined}
    calls = confinement._MACHINES[kind].calls
    newer = {name for name in calls if name not in header_numbers}
    assert newer <= {"fchmodat2", "clone3"}, "newer than some headers"
    assert {name: number for name, number in calls.items() if name not in newer} == {
        name: header_numbers[name] for name in calls if name not in newer
    }
