"""Startup banner: the device, the limits, and where data is stored."""

from __future__ import annotations

from collections.abc import Iterator

from service.core import machine
from service.core.installed import VERSIONS
from service.core.settings import NO_STATE, Settings, flag, format_setting, readable


def banner(settings: Settings, device: str) -> Iterator[str]:
    """Yield the lines of the banner for the log."""
    yield (
        f"gradserve {VERSIONS['gradserve']} computes on {device} with NumPy {VERSIONS['numpy']}: "
        f"{_counted(settings.workers, 'worker')} with {_counted(machine.cpus_per_worker(settings.workers), 'thread')}"
        f"{' each' if settings.workers > 1 else ''}, {_counted(machine.cpus(), 'CPU')}, "
        f"{readable(machine.memory_bytes())} of memory"
    )
    yield (
        f"limits of one request: {_text(settings, 'max_bytes')} of memory, {settings.max_flops:.3g} FLOPs, "
        f"{settings.timeout_ms / 1000:g} s, a body of {_text(settings, 'max_body_bytes')} (JSON) or "
        f"{_text(settings, 'max_binary_bytes')} (safetensors), a response of {_text(settings, 'max_response_bytes')}; "
        f"queue: {_counted(settings.queue, 'request')}"
    )
    if settings.compile == "off":
        yield "kernels are not compiled: NumPy computes everything"
    else:
        place = settings.cache_dir or "memory"
        yield f"kernels are compiled, and cached in {place}; determinism is {settings.determinism}"
    state = "are lost when the server stops" if settings.state == NO_STATE else f"are stored in {settings.state}"
    keys = f"clients need a key of {settings.keys_file}" if settings.keys_file else "clients need the API key"
    key_requirement = keys if settings.requires_keys else "clients need no key"
    confined = "confined" if settings.confine == "on" else f"not confined ({flag('confine')} off)"
    yield f"tensors and graphs {state}; {key_requirement}; workers are {confined}"


def _text(settings: Settings, name: str) -> str:
    return format_setting(name, getattr(settings, name))


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
