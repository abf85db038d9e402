"""Sandbox of a worker process: the files that it may open, the limit of its memory, and its end with the front."""

from __future__ import annotations

import os
import pwd
import resource
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import engine
import schemas
import service
from service.core import machine
from service.core.budget import request_bytes
from service.core.process import parent_death_signal, tune_worker_gc
from service.core.settings import NO_STATE, Settings, budget_of, flag
from service.workers.confinement import CONFINED_TO, AllowedFiles

#: shared libraries and the files that locate them, of the system and in usual prefixes; time zones
_LIBRARIES: Final = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64", "/nix/store", "/gnu/store",
    "/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo",
)  # fmt: skip
#: files from which libraries learn about processors, caches, memory, threads, and the limits of a container
_SYSTEM_FILES: Final = (
    "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys/vm/overcommit_memory", "/proc/self/cgroup",
    "/proc/self/maps", "/proc/self/stat", "/proc/self/statm", "/proc/self/status", "/proc/self/task",
    "/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/fs/cgroup", "/dev/null", "/dev/urandom", "/dev/zero",
)  # fmt: skip
#: driver files, and a CUDA that is installed system-wide
_GPU_FILES: Final = (
    "/proc/driver/nvidia", "/proc/devices", "/proc/modules", "/proc/self/numa_maps", "/sys/bus/pci", "/sys/module",
    "/sys/devices", "/usr/local/cuda", "/usr/share/nvidia", "/etc/nvidia",
)  # fmt: skip
#: variable in which the front tells a worker its share of the memory, in bytes
SHARE: Final = "GRADSERVE_SHARE_OF_MEMORY"


def allowed_files(settings: Settings) -> AllowedFiles | None:
    """Return the files that a worker may open; None if workers are not confined.

    Raises RuntimeError, as one sentence, if these would include a secret file.
    """
    if settings.confine == "off":
        return None
    has_cards = settings.device != "cpu" and bool(machine.visible_gpus())
    prefixes = dict.fromkeys((sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix))
    readable = [str(Path(prefix, name)) for prefix in prefixes for name in ("lib", "lib64")]
    readable += [str(Path(package.__file__ or "").parent) for package in (engine, schemas, service)]
    readable += [*_LIBRARIES, *(_GPU_FILES if has_cards else ())]
    kernels = kernel_folder(settings)
    writable = [*([] if kernels is None else [str(kernels)]), *(_gpu_caches() if has_cards else ())]
    hidden = {name: _resolved(path) for name, path in _secrets(settings).items()}
    for shown in [*readable, *writable]:
        for name, path in hidden.items():
            if path.is_relative_to(_resolved(shown)):
                advice = f"move it, or set {flag('confine')} off"
                raise RuntimeError(f"{name} is in {shown}, which workers can read; {advice}")
    # PYTHONPATH may name further folders with modules; but the current folder is the user's, and may hold anything.
    paths = [path for path in map(Path, filter(None, sys.path)) if path.is_absolute() and path != Path.cwd()]
    module_folders = [
        path for path in paths if not any(each.is_relative_to(_resolved(path)) for each in hidden.values())
    ]
    devices = tuple(map(str, Path("/dev").glob("nvidia*"))) if has_cards else ()
    return AllowedFiles((*readable, *map(str, module_folders), *_SYSTEM_FILES), tuple(writable), devices)


def kernel_folder(settings: Settings) -> Path | None:
    """Return the folder of compiled kernels; None if they are not stored.

    It is a folder of its own inside `cache_dir`: that may be a volume of another user, or writable for everybody. Only
    a folder that the server creates itself is sure to be its own.
    """
    return settings.cache_dir / "kernels" if settings.cache_dir and settings.compile == "on" else None


def _gpu_caches() -> Iterator[str]:
    """Yield the folders in which CuPy and the driver cache what they compile."""
    for variable, folder in ("CUPY_CACHE_DIR", ".cupy/kernel_cache"), ("CUDA_CACHE_PATH", ".nv/ComputeCache"):
        with suppress(RuntimeError):
            yield str(Path(os.environ.get(variable) or Path.home() / folder))


def _secrets(settings: Settings) -> Mapping[str, Path]:
    """Map the names of secret files and folders to their paths."""
    hidden = {flag(name): getattr(settings, name) for name in ("keys_file", "tls_key")}
    if settings.state != NO_STATE and "://" not in settings.state:
        hidden[flag("state")] = Path(settings.state)
    homes = {Path("/root"), Path("/home")}
    with suppress(RuntimeError):
        homes.add(Path.home())
    with suppress(KeyError):
        homes.add(Path(pwd.getpwuid(os.geteuid()).pw_dir))
    hidden |= {f"the home folder {home}": home for home in homes if home != Path("/")}
    return {name: path for name, path in hidden.items() if path is not None}


def _resolved(path: str | Path) -> Path:
    """Resolve all links of a path."""
    return Path(os.path.realpath(path))


def environment_of(allowed: AllowedFiles | None) -> dict[str, str]:
    """Return the variables that tell a worker its allowed files, and libraries where they may write."""
    if allowed is None:
        return {}
    temporary = {"TMPDIR": allowed.writes[-1]} if allowed.devices else {}
    return {CONFINED_TO: allowed.text(), **temporary}


def make_folders(allowed: AllowedFiles | None) -> None:
    """Create the folders that a worker may write to, which it cannot do itself."""
    for folder in () if allowed is None else allowed.writes:
        with suppress(OSError):  # the code that needs the folder reports why it cannot be used
            Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)


def limit_process(settings: Settings) -> None:
    """Limit the memory and make garbage collection rare; call this when all modules are loaded."""
    limit_memory(settings)
    tune_worker_gc()


def die_with_parent() -> None:
    """Have the kernel kill this process when the front ends: it may be deep in a kernel, and not read its socket."""
    if (ask := parent_death_signal(signal.SIGKILL)) is not None:
        ask()


def limit_memory(settings: Settings) -> None:
    """Limit this process to its current memory plus the budgets, and to its share of the system's memory.

    Shared memory does not count. The limit is RLIMIT_DATA, not RLIMIT_AS: CUDA reserves addresses that it never uses.
    """
    share = os.environ.get(SHARE)
    limit = memory_limit(settings, data_bytes(), None if share is None else int(share))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard == resource.RLIM_INFINITY or limit < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def memory_limit(settings: Settings, taken: int, share: int | None) -> int:
    """Return the limit for a worker that uses `taken` bytes before its first task. One execution always fits."""
    limit = taken + limit_of(settings)
    return limit if share is None else min(limit, max(share, taken + executing_bytes(settings)))


def limit_of(settings: Settings) -> int:
    """Return the bytes that requests may need: execution, answer as values and text, JSON, caches, tensors."""
    return executing_bytes(settings) + request_bytes(settings.max_response_bytes, settings.max_body_bytes)


def executing_bytes(settings: Settings) -> int:
    """Return the bytes that an execution may need, without request and answer."""
    return settings.max_bytes + budget_of(settings).whole


def data_bytes() -> int:
    """Return the bytes of private writable memory that this process has reserved."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmData:")) * 1024
