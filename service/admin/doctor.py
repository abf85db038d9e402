"""`gradserve doctor`: run all checks, the last one with a trial server, and print a line for each, with advice."""

from __future__ import annotations

import errno
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
from engine.ir.spellings import join_hint
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
from service.admin.place_checks import cache, certificate, cluster, extras, incidents, keys, state
from service.core.settings import PREFIX, SECRETS, Settings, flag, flag_value
from service.web.listening import bind_monitor, bind_socket, describe_bind_error, host_and_port

#: settings of the trial server that differ from those of the real one: it has nobody's state, and is in no cluster
_TRIAL_SETTINGS: Final = {
    "host": "127.0.0.1", "port": "0", "state": "memory", "keys_file": "none", "tls_cert": "none", "tls_key": "none",
    "trace_endpoint": "none", "log_level": "warning", "cache_dir": "none", "metrics_port": "none",
    "cluster": "off", "cluster_address": "none",
}  # fmt: skip
_REQUEST: Final = {
    "graph": {"nodes": [{"op": "parameter"}, {"op": "square", "operands": [0]}, {"op": "sum", "operands": [1]}]},
    "feeds": [{"node": 0, "tensor": {"dtype": "float64", "shape": [2], "data": [1, 2]}}],
}
_GRADIENT: Final = [2.0, 4.0]


def port(settings: Settings) -> Diagnosis:
    """Check whether the address is free, or in use by a gradserve."""
    address = f"port {settings.port} on {settings.host}"
    try:
        with bind_socket(settings.host, settings.port) as listening, bind_monitor(settings):
            listening.listen()
    except RuntimeError as error:
        return broken(str(error), f"stop the process that uses it, or set another {flag('metrics_port')}")
    except (OSError, UnicodeError) as error:
        if _serves(settings):
            return fine(f"a gradserve server already listens on {address}")
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            return broken(
                f"{address} is already in use", f"stop the process that uses it, or set another {flag('port')}"
            )
        reason = describe_bind_error(error)
        return broken(f"cannot listen on {address}: {reason}", f"set another {flag('host')} or {flag('port')}")
    return fine(f"{address} is free")


def gradient(settings: Settings) -> Diagnosis:
    """Check whether a server starts, computes a gradient and stops."""
    started = time.monotonic()
    with _server(settings) as (process, announced):
        if not announced.startswith("http"):
            return broken(
                f"a test server does not start: {announced}", "`gradserve serve` fails in the same way; fix this first"
            )
        startup_seconds, request_start = time.monotonic() - started, time.monotonic()
        response = httpx.post(f"{announced}/v1/gradients", json=_REQUEST, timeout=TRIAL_SECONDS, trust_env=False)
        request_seconds = time.monotonic() - request_start
        received = response.json()["gradients"][0]["tensor"]["data"] if response.status_code == 200 else response.text
        if received != _GRADIENT:
            return broken(f"the gradient of a sum of squares is {received}, not {_GRADIENT}", "see the checks above")
        process.send_signal(signal.SIGTERM)
        if process.wait(TRIAL_SECONDS) != 0:
            return broken(f"the test server exited with status {process.returncode}", "see its log")
    return fine(
        f"a test server started in {startup_seconds:.1f} s and computed a gradient in {1000 * request_seconds:.0f} ms"
    )


def _serves(settings: Settings) -> bool:
    scheme = "http" if settings.tls_cert is None else "https"
    address = host_and_port(settings.host, settings.port)
    with suppress(httpx.HTTPError, ValueError):
        # The request contains nothing secret, so the server's certificate does not matter.
        health = httpx.get(f"{scheme}://{address}/health/live", timeout=5, trust_env=False, verify=False)  # noqa: S501
        return bool(health.json() == {"status": "live"})
    return False


@contextmanager
def _server(settings: Settings) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a server on a free local port. Yield the process and its URL, or the last line it printed on failure."""
    variables = {name: value for name, value in os.environ.items() if not name.upper().startswith(PREFIX)}
    process = subprocess.Popen(  # noqa: S603  our own program
        [sys.executable, "-P", "-m", "service", "serve", *_options(settings)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**variables, "PYTHONPATH": str(Path(service.__file__).parents[1])},
    )  # fmt: skip
    try:
        yield process, _first_line(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _first_line(process: subprocess.Popen[str]) -> str:
    lines: Queue[str] = Queue()
    assert process.stdout is not None
    # A read of a pipe has no timeout, so a thread reads the line.
    Thread(target=lambda stdout: lines.put(stdout.readline()), args=(process.stdout,), daemon=True).start()
    try:
        line = lines.get(timeout=TRIAL_SECONDS).strip()
    except Empty:
        return f"it prints nothing for {TRIAL_SECONDS:g} s"
    if line:
        return line.rpartition(" ")[2]
    _, errors = process.communicate(timeout=TRIAL_SECONDS)
    messages = errors.strip().splitlines() or ["it exits without a message"]
    return messages[-1].removeprefix("gradserve: ")


def _options(settings: Settings) -> list[str]:
    """Return the explicitly set settings, overridden by those of the trial server, as flags."""
    values = {name: flag_value(value) for name, value in settings if name in settings.model_fields_set - SECRETS}
    return [word for name, value in (values | _TRIAL_SETTINGS).items() for word in (flag(name), value)]


#: checks in the order of the report
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
    "extras": extras,
    "cache": cache,
    "incidents": incidents,
    "cluster": cluster,
    "state": state,
    "keys": keys,
    "tls": certificate,
    "port": port,
    "server": gradient,
}


def run_checks(settings: Settings, checks: Mapping[str, Check] = CHECKS) -> Iterator[tuple[str, Diagnosis]]:
    """Run each check and yield its name and diagnosis. A check that raises an exception is reported as broken."""
    for name, check in checks.items():
        try:
            yield name, check(settings)
        except Exception as error:  # noqa: BLE001 - a check that breaks must not hide those after it
            yield name, broken(f"the check itself failed: {type(error).__name__}: {error}", "report this as a bug")


def run_doctor(settings: Settings, *, as_json: bool) -> bool:
    """Run all checks and print the diagnoses; return whether a server would work here."""
    diagnoses = []
    for name, diagnosis in run_checks(settings):
        diagnoses.append((name, diagnosis))
        if not as_json:
            level, says, advice = diagnosis
            print(f"{level:5} {name:12} {join_hint(says, advice)}", flush=True)
    passed = all(diagnosis.level != Verdict.FAIL for _, diagnosis in diagnoses)
    if as_json:
        rows = [{"check": name, **diagnosis._asdict()} for name, diagnosis in diagnoses]
        print(orjson.dumps({"ok": passed, "checks": rows}, option=orjson.OPT_INDENT_2).decode())
    return passed
