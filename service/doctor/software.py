"""Software that computes: Python, NumPy and its BLAS, compiled kernels, a GPU."""

from __future__ import annotations

import platform
import time
from typing import Final

import numpy as np
import orjson
from threadpoolctl import threadpool_info

from engine.cards.libraries import INSTEAD, card_library
from service import machine
from service.doctor.diagnosis import TRIAL_SECONDS, Diagnosis, broken, doubtful, fine
from service.settings import Settings
from service.transport.job import Job
from service.worker.worker import Worker

#: sum(exp(x) · x), over enough elements for a loop of its own
_LENGTH: Final = 4096
#: seconds in which a kernel is there, where there is a compiler
_COMPILING: Final = 15.0


def python(_: Settings) -> Diagnosis:
    """The interpreter."""
    says = f"Python {platform.python_version()} on {platform.system()}, {platform.machine()}"
    if platform.system() != "Linux":
        return doubtful(says, "workers are bounded and watched on Linux alone: serve others from there")
    return fine(says)


def blas(_: Settings) -> Diagnosis:
    """NumPy, and what multiplies its matrices: compared with a product of whole numbers."""
    left = np.arange(64 * 64, dtype=np.float64).reshape(64, 64)
    if not np.array_equal(left @ left.T, (left.astype(np.int64) @ left.T.astype(np.int64)).astype(np.float64)):
        return broken(f"NumPy {np.__version__} multiplies matrices wrongly", "install NumPy anew, from its wheels")
    found = [f"{each['internal_api']} {each['version']}" for each in threadpool_info() if each["user_api"] == "blas"]
    if not found:
        return doubtful(f"NumPy {np.__version__} with no BLAS that is known", "products of matrices will be slow")
    return fine(f"NumPy {np.__version__} with {', '.join(sorted(set(found)))}")


def kernels(settings: Settings) -> Diagnosis:
    """A kernel that is compiled behind a plan that runs again, and what it computes, against what NumPy does."""
    if settings.compile == "off":
        return fine("kernels are not compiled, as --compile off says")
    worker = Worker(settings.model_copy(update={"device": "cpu", "cache_dir": None, "determinism": "fast"}))
    started = time.monotonic()
    expected = _answer(worker)
    while not worker.vitals().kernels and time.monotonic() - started < _COMPILING:
        _answer(worker)
    seconds, compiled = time.monotonic() - started, _answer(worker)
    count = worker.vitals().kernels
    worker.engine.executor.close(TRIAL_SECONDS)
    if not count:
        return doubtful("no kernel was compiled: NumPy computes everything", "pip install llvmlite")
    if not np.isclose(compiled, expected, rtol=1e-12):
        return broken("a compiled kernel computes something else than NumPy", "serve with --compile off, and report it")
    return fine(f"a kernel was compiled within {1000 * seconds:.0f} ms, and computes what NumPy does")


def gpu(settings: Settings) -> Diagnosis:
    """Check what `--device` finds."""
    cards = machine.cards()
    if settings.device == "cpu":
        return fine("no GPU is wanted, as --device cpu says")
    try:
        device = Worker(settings.model_copy(update={"compile": "off"})).device
    except RuntimeError as error:
        return broken(str(error), "pip install 'gradserve[cuda12]' or 'gradserve[cuda13]', or serve with --device cpu")
    if device == "cpu" and cards:
        return doubtful(
            f"{len(cards)} GPUs are there, and none can be used",
            "pip install 'gradserve[cuda12]' or 'gradserve[cuda13]'",
        )
    return fine("no GPU is there: the CPU computes" if device == "cpu" else f"{device} computes, of {len(cards)} GPUs")


def card_libraries(settings: Settings) -> Diagnosis:
    """The libraries that compute on a GPU: which were found, where, and what is used instead of each that was not."""
    if settings.device == "cpu":
        return fine("no GPU is wanted, as --device cpu says")
    if settings.device == "auto" and not machine.cards():
        return fine("no GPU is there, nor needed")
    found = [card_library(name) for name in INSTEAD]
    says = "; ".join(map(str, found))
    if all(library.loaded is not None for library in found):
        return fine(says)
    return doubtful(says, "pip install 'gradserve[cudnn12]' or 'gradserve[cudnn13]', with all of them")


def _answer(worker: Worker) -> float:
    """The value of a small graph. Raises RuntimeError where there is none."""
    reply = worker(Job("forward", _body(), "doctor", TRIAL_SECONDS, time.monotonic() + TRIAL_SECONDS))
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
