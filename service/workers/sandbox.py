"""Sandbox of a worker process: the files that it may open, its memory, and its end with the front."""

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
from service.core.process import collect_seldom, ending_with_parent
from service.core.settings import NO_STATE, Settings, budget_of, flag
from service.workers.confinement import CONFINED_TO, AllowedFiles

#: shared libraries and what finds them, the system's and those that are installed beside it; the clock's zones
_LIBRARIES: Final = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64", "/nix/store", "/gnu/store",
    "/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo",
)  # fmt: skip
#: what libraries ask the system: processors and caches, memory, threads, the limits of a container
_OF_THE_SYSTEM: Final = (
    "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys/vm/overcommit_memory", "/proc/self/cgroup",
    "/proc/self/maps", "/proc/self/stat", "/proc/self/statm", "/proc/self/status", "/proc/self/task",
    "/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/fs/cgroup", "/dev/null", "/dev/urandom", "/dev/zero",
)  # fmt: skip
#: the driver, and CUDA where it is installed for all
_OF_CARDS: Final = (
    "/proc/driver/nvidia", "/proc/devices", "/proc/modules", "/proc/self/numa_maps", "/sys/bus/pci", "/sys/module",
    "/sys/devices", "/usr/local/cuda", "/usr/share/nvidia", "/etc/nvidia",
)  # fmt: skip
#: the variable in which the front tells a worker its share of the memory, in bytes
SHARE: Final = "GRADSERVE_SHARE_OF_MEMORY"


def allowed_files(settings: Settings) -> AllowedFiles | None:
    """Return the files that a worker may open; None where it is not confined.

    Raises RuntimeError, as one sentence, where that would show it what it must not see.
    """
    if settings.confine == "off":
        return None
    has_cards = settings.device != "cpu" and bool(machine.cards())
    prefixes = dict.fromkeys((sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix))
    loaded = [str(Path(prefix, name)) for prefix in prefixes for name in ("lib", "lib64")]
    loaded += [str(Path(package.__file__ or "").parent) for package in (engine, schemas, service)]
    loaded += [*_LIBRARIES, *(_OF_CARDS if has_cards else ())]
    kernels = kernel_folder(settings)
    written = [*([] if kernels is None else [str(kernels)]), *(_caches_of_cards() if has_cards else ())]
    hidden = {name: _resolved(path) for name, path in _hidden(settings).items()}
    for shown in [*loaded, *written]:
        for name, path in hidden.items():
            if path.is_relative_to(_resolved(shown)):
                advice = f"put it elsewhere, or serve with {flag('confine')} off"
                raise RuntimeError(f"{name} lies in {shown}, which workers can read: {advice}")
    # Modules may be installed elsewhere, as PYTHONPATH says; but not in the folder that we were called in.
    paths = [path for path in map(Path, filter(None, sys.path)) if path.is_absolute() and path != Path.cwd()]
    beside = [path for path in paths if not any(each.is_relative_to(_resolved(path)) for each in hidden.values())]
    devices = tuple(map(str, Path("/dev").glob("nvidia*"))) if has_cards else ()
    return AllowedFiles((*loaded, *map(str, beside), *_OF_THE_SYSTEM), tuple(written), devices)


def kernel_folder(settings: Settings) -> Path | None:
    """Return the folder of the store; None where there is to be none.

    They have a folder of their own in the one that is set: that one may be a volume that belongs to another user, or
    that everybody may write to, and only what a server makes itself is sure to be its own.
    """
    return settings.cache_dir / "kernels" if settings.cache_dir and settings.compile == "on" else None


def _caches_of_cards() -> Iterator[str]:
    """Folders in which CuPy and the driver keep what they compile."""
    for stated, usual in ("CUPY_CACHE_DIR", ".cupy/kernel_cache"), ("CUDA_CACHE_PATH", ".nv/ComputeCache"):
        with suppress(RuntimeError):
            yield str(Path(os.environ.get(stated) or Path.home() / usual))


def _hidden(settings: Settings) -> Mapping[str, Path]:
    """Map what workers never see by what it is called."""
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
    """Follow whatever links lead there."""
    return Path(os.path.realpath(path))


def environment_of(allowed: AllowedFiles | None) -> dict[str, str]:
    """Return the variables that tell a worker of it, and libraries where they may write."""
    if allowed is None:
        return {}
    temporary = {"TMPDIR": allowed.writes[-1]} if allowed.devices else {}
    return {CONFINED_TO: allowed.text(), **temporary}


def make_folders(allowed: AllowedFiles | None) -> None:
    """Make the folders that a worker writes into: it sees nothing that it could make them in."""
    for folder in () if allowed is None else allowed.writes:
        with suppress(OSError):  # then nothing is kept there, and whoever would keep it says why
            Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)


def behave(settings: Settings) -> None:
    """Limit the memory, and collect garbage seldom, once everything is loaded: what that took is not counted."""
    limit_memory(settings)
    collect_seldom()


def die_with_parent() -> None:
    """End this process with the front, however that ends: it may be in a kernel, and not read its socket."""
    if (ask := ending_with_parent(signal.SIGKILL)) is not None:
        ask()


def limit_memory(settings: Settings) -> None:
    """Limit this process to what the budgets allow on top of what is taken now, and to its share.

    Shared memory does not count. RLIMIT_DATA and not RLIMIT_AS: CUDA reserves addresses that it never uses.
    """
    share = os.environ.get(SHARE)
    limit = memory_limit(settings, data_bytes(), None if share is None else int(share))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard == resource.RLIM_INFINITY or limit < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def memory_limit(settings: Settings, taken: int, share: int | None) -> int:
    """Return the most bytes of a worker that has `taken` so many before its first task. One execution always fits."""
    limit = taken + limit_of(settings)
    return limit if share is None else min(limit, max(share, taken + executing_bytes(settings)))


def limit_of(settings: Settings) -> int:
    """Bytes that requests may make a worker take: execution, its answer as values and text, JSON, caches, tensors."""
    return executing_bytes(settings) + request_bytes(settings.max_response_bytes, settings.max_body_bytes)


def executing_bytes(settings: Settings) -> int:
    """Bytes that an execution may make a worker take, beside what comes in and goes out."""
    return settings.max_bytes + budget_of(settings).whole


def data_bytes() -> int:
    """Private writable memory that this process has reserved."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmData:")) * 1024
