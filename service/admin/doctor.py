"""`gradserve doctor`: all checks, the last of them a trial server; a line for each, with advice if it fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
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

#: settings of a trial server that differ from those of the real one
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
    """Check whether a server starts, computes and ends."""
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
        # Nothing is told to the server, so its certificate does not matter.
        health = httpx.get(f"{scheme}://{where}/health/live", timeout=5, trust_env=False, verify=False)  # noqa: S501
        return bool(health.json() == {"status": "live"})
    return False


@contextmanager
def _server(settings: Settings) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a server on a free port of this machine; yield it, and its URL, or else the last line that it printed."""
    variables = {name: value for name, value in os.environ.items() if not name.upper().startswith(PREFIX)}
    process = subprocess.Popen(  # noqa: S603  our own program
        [sys.executable, "-P", "-m", "service", "serve", *_options(settings)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**variables, "PYTHONPATH": str(Path(service.__file__).parents[1])},
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
    """Return the settings that were stated, and those of the trial server, as flags."""
    stated = {name: shown(name, value) for name, value in settings if name in settings.model_fields_set - SECRETS}
    stated |= {name: value for name, value in _OWN.items() if name in Settings.model_fields}
    return [part for name, value in stated.items() for part in (flag(name), value)]


#: in the order in which they are reported
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
    """Run each check, and yield its name and diagnosis. A check that raises an exception is reported, too."""
    for name, check in checks.items():
        try:
            yield name, check(settings)
        except Exception as error:  # noqa: BLE001 - a check that breaks must not hide those after it
            yield name, broken(f"the check itself failed: {type(error).__name__}: {error}", "report this as a fault")


def run_doctor(settings: Settings, *, as_json: bool) -> bool:
    """Run and print all checks; return whether a server would work here."""
    diagnoses = []
    for name, diagnosis in examined(settings):
        diagnoses.append((name, diagnosis))
        if not as_json:
            level, says, advice = diagnosis
            print(f"{level:5} {name:12} {says}{f'; {advice}' if advice else ''}", flush=True)
    is_well = all(diagnosis.level != Verdict.FAIL for _, diagnosis in diagnoses)
    if as_json:
        listed = [{"check": name, **diagnosis._asdict()} for name, diagnosis in diagnoses]
        print(orjson.dumps({"ok": is_well, "checks": listed}, option=orjson.OPT_INDENT_2).decode())
    return is_well
