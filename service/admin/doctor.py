"""`gradserve doctor`: all checks, the last of them a server on trial; a line for each, and what to do if it fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Final

import httpx
import orjson

import service
from service.admin.diagnosis import TRIAL_SECONDS, Check, Diagnosis, Verdict, broken, fine
from service.admin.host_checks import (
    blas,
    caches,
    card_libraries,
    clock,
    confinement,
    descriptors,
    gpu,
    kernels,
    memory,
    processors,
    python,
)
from service.admin.place_checks import cache, certificate, incidents, keys, state
from service.core.settings import PREFIX, SECRETS, Settings, flag, shown
from service.web.listening import bound, bound_monitor, place

# Trials: the address, and a server of these settings that is asked for a gradient.

#: what a trial does not share with the server that is served to others
_OWN: Final = {
    "host": "127.0.0.1", "port": "0", "state": "memory", "keys_file": "none", "tls_cert": "none", "tls_key": "none",
    "trace_endpoint": "none", "log_level": "warning", "cache_dir": "none",
    "metrics_port": "none",
}  # fmt: skip
_REQUEST: Final = {
    "graph": {"nodes": [{"op": "parameter"}, {"op": "square", "operands": [0]}, {"op": "sum", "operands": [1]}]},
    "feeds": [{"node": 0, "tensor": {"dtype": "float64", "shape": [2], "data": [1, 2]}}],
}
_GRADIENT: Final = [2.0, 4.0]


def port(settings: Settings) -> Diagnosis:
    """Check whether the address is free, or who has it."""
    where = f"{settings.host} port {settings.port}"
    try:
        with bound(settings.host, settings.port) as listening, bound_monitor(settings):
            listening.listen()
    except RuntimeError as error:
        return broken(str(error), f"stop what has it, or name another {flag('metrics_port')}")
    except (OSError, UnicodeError) as error:
        if _serves(settings):
            return fine(f"a gradserve listens on {where} already")
        reason = error.strerror if isinstance(error, OSError) else "it is no name of a host"
        return broken(f"{where} cannot be had: {reason}", f"stop what has it, or name another {flag('port')}")
    return fine(f"{where} is free")


def gradient(settings: Settings) -> Diagnosis:
    """A server starts, computes and ends."""
    started = time.monotonic()
    with _server(settings) as (process, said):
        if not said.startswith("http"):
            return broken(f"a server does not start: {said}", "this is what `gradserve serve` says; mend it first")
        starting, began = time.monotonic() - started, time.monotonic()
        answer = httpx.post(f"{said}/v1/gradients", json=_REQUEST, timeout=TRIAL_SECONDS, trust_env=False)
        answering = time.monotonic() - began
        got = answer.json()["gradients"][0]["tensor"]["data"] if answer.status_code == 200 else answer.text
        if got != _GRADIENT:
            return broken(f"the gradient of a sum of squares is {got}, not {_GRADIENT}", "see the checks above")
        process.send_signal(signal.SIGTERM)
        if process.wait(TRIAL_SECONDS) != 0:
            return broken(f"the server ended with status {process.returncode}", "its log says why")
    return fine(f"a server started in {starting:.1f} s, and gave a gradient in {1000 * answering:.0f} ms")


def _serves(settings: Settings) -> bool:
    scheme = "http" if settings.tls_cert is None else "https"
    where = place(settings.host, settings.port)
    with suppress(httpx.HTTPError, ValueError):
        # Nothing is told to whoever it is, so whose certificate it has does not matter.
        health = httpx.get(f"{scheme}://{where}/health/live", timeout=5, trust_env=False, verify=False)  # noqa: S501
        return bool(health.json() == {"status": "live"})
    return False


@contextmanager
def _server(settings: Settings) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server on a free port of this machine, and its URL, or else the last thing that it said."""
    process = subprocess.Popen(  # noqa: S603  our own program
        [sys.executable, "-P", "-m", "service", "serve", *_options(settings)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environment(),
    )  # fmt: skip
    try:
        yield process, _announced(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _announced(process: subprocess.Popen[str]) -> str:
    lines: Queue[str] = Queue()
    assert process.stdout is not None
    Thread(target=lambda stdout: lines.put(stdout.readline()), args=(process.stdout,), daemon=True).start()
    try:
        line = lines.get(timeout=TRIAL_SECONDS).strip()
    except Empty:
        return f"it says nothing for {TRIAL_SECONDS:g} s"
    if line:
        return line.rpartition(" ")[2]
    _, errors = process.communicate(timeout=TRIAL_SECONDS)
    said = errors.strip().splitlines() or ["it ends without a word"]
    return said[-1].removeprefix("gradserve: ")


def _options(settings: Settings) -> list[str]:
    """The settings that were stated, as flags, and what a trial has of its own."""
    stated = {name: shown(name, value) for name, value in settings if name in settings.model_fields_set - SECRETS}
    stated |= {name: value for name, value in _OWN.items() if name in Settings.model_fields}
    return [part for name, value in stated.items() for part in (flag(name), value)]


def _environment() -> dict[str, str]:
    """The variables of this process without settings, which the trial gets as flags."""
    others = {name: value for name, value in os.environ.items() if not name.upper().startswith(PREFIX)}
    return {**others, "PYTHONPATH": str(Path(service.__file__).parents[1])}


# The checks, in the order in which they are reported.

CHECKS: Final[Mapping[str, Check]] = {
    "python": python,
    "blas": blas,
    "kernels": kernels,
    "gpu": gpu,
    "libraries": card_libraries,
    "processors": processors,
    "memory": memory,
    "caches": caches,
    "descriptors": descriptors,
    "clock": clock,
    "confinement": confinement,
    "cache": cache,
    "incidents": incidents,
    "state": state,
    "keys": keys,
    "tls": certificate,
    "port": port,
    "server": gradient,
}


def examined(settings: Settings, checks: Mapping[str, Check] = CHECKS) -> Iterator[tuple[str, Diagnosis]]:
    """Each check by its name, and what it found, as it is done. One that fails itself is a finding too."""
    for name, check in checks.items():
        try:
            yield name, check(settings)
        except Exception as error:  # noqa: BLE001 - a check that breaks must not hide those after it
            yield name, broken(f"the check itself failed: {type(error).__name__}: {error}", "report this as a fault")


def run_doctor(settings: Settings, *, as_json: bool) -> bool:
    """Look, and print what was found; whether a server would do here."""
    found = examined(settings)
    levels = _print_json(found) if as_json else _print_lines(found)
    return Verdict.FAIL not in levels


def _print_lines(found: Iterable[tuple[str, Diagnosis]]) -> list[Verdict]:
    levels = []
    for name, (level, says, advice) in found:
        print(f"{level:5} {name:12} {says}{f'; {advice}' if advice else ''}", flush=True)
        levels.append(level)
    return levels


def _print_json(found: Iterable[tuple[str, Diagnosis]]) -> list[Verdict]:
    listed = [{"check": name, **finding._asdict()} for name, finding in found]
    levels = [each["level"] for each in listed]
    print(orjson.dumps({"ok": Verdict.FAIL not in levels, "checks": listed}, option=orjson.OPT_INDENT_2).decode())
    return levels
