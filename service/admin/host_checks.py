"""Checks of the host: resources, compute software (NumPy, kernels, GPU), and the confinement of workers."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import numpy as np
import orjson
from threadpoolctl import threadpool_info

import service
from engine.cuda.libraries import FALLBACKS, card_library
from service.admin.attempts import ATTEMPTS
from service.admin.diagnosis import TRIAL_SECONDS, Diagnosis, broken, doubtful, fine
from service.core import machine
from service.core.settings import Settings, flag, readable, without_secrets
from service.web.server_state import max_descriptors
from service.workers.confinement import kernel_support
from service.workers.sandbox import allowed_files, environment_of
from service.workers.task import Task
from service.workers.topology import largest_footprint, typical_footprint
from service.workers.worker import Worker

_MEMORY: Final = Path("/proc/meminfo")
#: factor by which the budgets may exceed the memory, as they are rarely all used up at once
_MEMORY_OVERCOMMIT: Final = 1.25
#: return value of adjtimex if the clock is not synchronised (TIME_ERROR)
_NOT_SYNCHRONISED: Final = 5
#: elements of the test graph for kernels, sum(exp(x) · x): enough to be compiled
_LENGTH: Final = 4096
#: seconds within which a kernel is compiled if there is a compiler
_COMPILE_SECONDS: Final = 15.0


def processors(settings: Settings) -> Diagnosis:
    """Check the number of workers against the processors that this process may use."""
    usable, total = machine.cpus(), os.cpu_count() or 1
    says = f"{settings.workers} workers can use {usable} of {total} CPUs"
    if settings.workers > usable:
        return doubtful(says, f"more workers than CPUs slow each other down: set {flag('workers')} {usable}")
    return fine(says)


def memory(settings: Settings) -> Diagnosis:
    """Check the sum of the memory budgets against the memory."""
    total, free = machine.memory_bytes(), _free_bytes()
    executions = settings.workers * settings.max_bytes
    allowed = executions + settings.plan_cache_bytes + settings.held_bytes + settings.max_tensor_bytes
    says = f"the budgets add up to {_rounded(allowed)}; {_rounded(free)} of {_rounded(total)} of memory are free"
    if executions > total:
        return broken(says, f"executions alone may exceed the memory: lower {flag('max_bytes')}")
    if allowed > _MEMORY_OVERCOMMIT * total:
        return doubtful(says, f"lower {flag('max_bytes')}, {flag('max_tensor_bytes')} or {flag('held_bytes')}")
    if free < settings.max_bytes:
        return doubtful(says, f"one execution may use {readable(settings.max_bytes)}: stop other programs")
    return fine(says)


def caches(settings: Settings) -> Diagnosis:
    """Check the memory that the processes settle at, without bodies, tensors and executions."""
    small, peak, total = typical_footprint(settings), largest_footprint(settings), machine.memory_bytes()
    parts = f"front process {_mebibytes(small.front)}, {small.workers} workers {_mebibytes(small.worker)} each"
    says = f"steady memory is {_mebibytes(small.whole)} with small graphs ({parts}), at most {_mebibytes(peak.whole)}"
    if small.whole > total:
        return doubtful(says, f"this exceeds the memory: lower {flag('workers')}")
    if peak.whole > total:
        return doubtful(says, f"this may exceed the memory: lower {flag('plan_cache_bytes')}")
    return fine(says)


def descriptors(settings: Settings) -> Diagnosis:
    """Check the limit of open files and sockets: a server raises its limit to the hard limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = max_descriptors(settings)
    if hard != resource.RLIM_INFINITY and hard < needed:
        lower = f"lower {flag('max_connections')} or {flag('max_tensors')}"
        says = f"{hard} file descriptors for {settings.max_connections} connections and {settings.max_tensors} tensors"
        return doubtful(says, f"raise the limit to {needed} (ulimit -Hn, LimitNOFILE=), or {lower}")
    return fine(f"{'unlimited' if hard == resource.RLIM_INFINITY else hard} file descriptors")


def clock(_: Settings) -> Diagnosis:
    """Check the system clock, on which certificates, logs and the expiry of responses rely."""
    now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    if time.time() < Path(service.__file__).stat().st_mtime - 86_400:
        return broken(f"the system clock shows {now}, which is before gradserve was installed", "set the clock")
    if _synchronised() is False:
        return doubtful(f"the system clock is not synchronised (it shows {now})", "run chrony or systemd-timesyncd")
    return fine(f"the system clock shows {now}")


def _synchronised() -> bool | None:
    """Return whether the system clock is synchronised; None if the system does not report it."""
    adjust = getattr(ctypes.CDLL(None), "adjtimex", None)
    if adjust is None:
        return None
    status: int = adjust(ctypes.create_string_buffer(512))  # modes = 0: query only
    return None if status < 0 else status != _NOT_SYNCHRONISED


def _free_bytes() -> int:
    """Return the available memory, at most a container's limit."""
    try:
        lines = dict(line.split(":") for line in _MEMORY.read_text(encoding="ascii").splitlines())
        return min(machine.memory_bytes(), 1024 * int(lines["MemAvailable"].split()[0]))
    except (OSError, KeyError, ValueError):
        return machine.memory_bytes()


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MiB"


def _rounded(size: float) -> str:
    return f"{size / (1 << 30):.1f} GiB"


def python(_: Settings) -> Diagnosis:
    """Check the interpreter and the operating system."""
    says = f"Python {platform.python_version()} on {platform.system()}, {platform.machine()}"
    if platform.system() != "Linux":
        return doubtful(says, "workers are limited and monitored only on Linux: serve other users from Linux")
    return fine(says)


def blas(_: Settings) -> Diagnosis:
    """Check NumPy and its BLAS: compare a floating-point matrix product with an integer one."""
    matrix = np.arange(64 * 64, dtype=np.float64).reshape(64, 64)
    if not np.array_equal(matrix @ matrix.T, (matrix.astype(np.int64) @ matrix.T.astype(np.int64)).astype(np.float64)):
        return broken(f"NumPy {np.__version__} computes a wrong matrix product", "reinstall NumPy from its wheels")
    libraries = [
        f"{library['internal_api']} {library['version']}"
        for library in threadpool_info()
        if library["user_api"] == "blas"
    ]
    if not libraries:
        return doubtful(f"NumPy {np.__version__} without a known BLAS", "matrix products will be slow")
    return fine(f"NumPy {np.__version__} with {', '.join(sorted(set(libraries)))}")


def kernels(settings: Settings) -> Diagnosis:
    """Check that a kernel is compiled for a repeated plan, and that its result equals NumPy's."""
    if settings.compile == "off":
        return fine("kernels are not compiled (--compile off)")
    worker = Worker(settings.model_copy(update={"device": "cpu", "cache_dir": None, "determinism": "fast"}))
    started = time.monotonic()
    expected = _compute_value(worker)
    while not worker.vitals().kernels and time.monotonic() - started < _COMPILE_SECONDS:
        _compute_value(worker)
    seconds, compiled = time.monotonic() - started, _compute_value(worker)
    count = worker.vitals().kernels
    worker.engine.executor.close(TRIAL_SECONDS)
    if not count:
        return doubtful("no kernel was compiled: NumPy computes everything", "pip install llvmlite")
    if not np.isclose(compiled, expected, rtol=1e-12):
        return broken(
            "a compiled kernel and NumPy compute different results", "serve with --compile off, and report it"
        )
    return fine(f"a kernel was compiled within {1000 * seconds:.0f} ms, and its result equals NumPy's")


def gpu(settings: Settings) -> Diagnosis:
    """Check the device that `--device` selects."""
    cards = machine.visible_gpus()
    if settings.device == "cpu":
        return fine("no GPU is used (--device cpu)")
    try:
        device = Worker(settings.model_copy(update={"compile": "off"})).device
    except RuntimeError as error:
        return broken(str(error), "pip install 'gradserve[cuda12]' or 'gradserve[cuda13]', or serve with --device cpu")
    if device == "cpu" and cards:
        return doubtful(
            f"{len(cards)} GPUs were found, but none can be used",
            "pip install 'gradserve[cuda12]' or 'gradserve[cuda13]'",
        )
    return fine("no GPU was found: the CPU computes" if device == "cpu" else f"{device} computes; GPUs: {len(cards)}")


def card_libraries(settings: Settings) -> Diagnosis:
    """Report which GPU libraries are installed and where, and the replacements for missing ones."""
    if settings.device == "cpu":
        return fine("no GPU is used (--device cpu)")
    if settings.device == "auto" and not machine.visible_gpus():
        return fine("no GPU was found, so no GPU libraries are needed")
    libraries = [card_library(name) for name in FALLBACKS]
    says = "; ".join(map(str, libraries))
    if all(library.loaded is not None for library in libraries):
        return fine(says)
    return doubtful(says, "pip install 'gradserve[cudnn12]' or 'gradserve[cudnn13]', which have all of them")


def _compute_value(worker: Worker) -> float:
    """Compute the value of a small graph. Raises RuntimeError if that fails."""
    reply = worker(Task("forward", _body(), "doctor", TRIAL_SECONDS, time.monotonic() + TRIAL_SECONDS))
    if reply.status != 200:
        raise RuntimeError(orjson.loads(reply.body)["detail"])
    return float(orjson.loads(reply.body)["values"][0]["tensor"]["data"][0])


def _body() -> bytes:
    x = {"dtype": "float64", "shape": [_LENGTH], "data": np.linspace(0.0, 1.0, _LENGTH).tolist()}
    nodes = [
        {"op": "input"},
        {"op": "exp", "operands": [0]},
        {"op": "mul", "operands": [0, 1]},
        {"op": "sum", "operands": [2]},
    ]
    return orjson.dumps({"graph": {"nodes": nodes}, "feeds": [{"node": 0, "tensor": x}]})


def confinement(settings: Settings) -> Diagnosis:
    """Check the confinement of workers: confine a process in the same way, and let it try forbidden actions."""
    try:
        allowed = allowed_files(settings)
    except RuntimeError as error:
        return broken(str(error), "a server with these settings does not start")
    if allowed is None:
        return doubtful("workers are not confined", f"remove {flag('confine')} off if clients are not trusted")
    missing = kernel_support().missing
    paths = os.pathsep.join((str(Path(service.__file__).parents[1]), *filter(None, sys.path)))
    environment = {**without_secrets(os.environ), "PYTHONPATH": paths, **environment_of(allowed)}
    command = (sys.executable, "-P", "-m", "service.admin.attempts")
    completed = subprocess.run(command, capture_output=True, check=True, env=environment, timeout=TRIAL_SECONDS)  # noqa: S603
    possible = [str(name) for name in json.loads(completed.stdout)]
    if possible:
        reason = f": {'; '.join(missing)}" if missing else ""
        return doubtful(
            f"workers can {', '.join(possible)}{reason}", "use a kernel with full support: Linux 6.12 or later"
        )
    summary = f"workers cannot {', '.join(ATTEMPTS)}: tested, with Landlock {kernel_support().landlock} and seccomp"
    return doubtful(summary, "; ".join(missing)) if missing else fine(summary)
