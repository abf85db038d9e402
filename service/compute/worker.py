"""The work of one request: bytes to bytes. A job goes in, a reply comes out, and neither holds on to anything.

This is the seam. A `Worker` serves a thread today; because `Job` and `Reply` can be pickled, and `Worker` is made
from settings alone, it can as well live in a process of its own.
"""

from __future__ import annotations

import logging
from time import monotonic, perf_counter
from typing import Any, Final

from engine import Compiler, Deadline, EngineError, Limits, open_executor, registry
from schemas.graph import NAME_CHARACTERS
from service import machine
from service.calls import calls
from service.calls.definition import Engine
from service.compute.job import Estimate, Job, Phases, Reply
from service.compute.kernels import kernel_store
from service.errors import Refusal, fault, from_engine, out_of_memory
from service.settings import Settings
from service.wire.binary import read
from service.wire.graph_source import Programs
from service.wire.json_reader import JsonReader
from service.wire.media import PROBLEM, SAFETENSORS
from service.wire.message import Message
from service.wire.request import RequestReader
from service.wire.translate import Translator

#: plans that are ready to run again may take one part in so many of what is there for plans
IDLE_SHARE: Final = 4
#: and graphs that were read one in so many
GRAPH_SHARE: Final = 8

_logger = logging.getLogger("gradserve.worker")


class Worker:
    """Parses, checks, plans, executes and writes. May be shared by threads."""

    def __init__(self, settings: Settings) -> None:
        """Opens the device. Raises RuntimeError when it cannot be had."""
        limits = Limits(
            nodes=settings.max_expanded_nodes,
            rank=settings.max_rank,
            bytes=settings.max_bytes,
            flops=settings.max_flops,
        )
        executor = open_executor(
            settings.device,
            threads=machine.cpus_each(settings.workers),
            determinism=settings.determinism if settings.compile == "on" else None,
            store=kernel_store(settings),
            lease_bytes=settings.plan_cache_bytes // IDLE_SHARE,
        )
        self._executor = executor
        self.device = executor.device
        self._settings = settings
        self._limits = limits
        translator = Translator(registry(), limits)
        programs = Programs(translator, settings.plan_cache, settings.plan_cache_bytes // GRAPH_SHARE)
        self._json = JsonReader(programs, settings.json_depth, settings.max_nodes)
        self._reader = RequestReader(translator, programs, limits, settings.max_nodes)
        self._engine = Engine(
            Compiler(limits, settings.plan_cache, _bytes_of_plans(settings), loop_threads=executor.loop_threads),
            executor,
            settings.max_response_bytes,
            limits_of(settings),
        )

    def __call__(self, job: Job, most_seconds: float | None = None) -> Reply:
        """The reply to a job. Never raises: whatever goes wrong is a problem report.

        A job that would take longer than `most_seconds` is not run: the reply has its estimate, and is no answer.
        """
        try:
            return self._reply(job, most_seconds)
        except Refusal as refusal:
            return _refused(refusal, job)
        except EngineError as error:
            return _refused(from_engine(error), job)
        except MemoryError:
            return _refused(out_of_memory(), job, recycle="memory")
        except Exception:
            _logger.exception("request %s failed", job.request_id)
            return _refused(fault(), job, recycle="fault")

    def close(self, timeout: float) -> bool:
        """Compile nothing more; False where the kernel that is being compiled takes longer than `timeout` seconds."""
        return self._executor.close(timeout)

    def _reply(self, job: Job, most_seconds: float | None) -> Reply:
        started = perf_counter()
        deadline = Deadline(job.timeout, start=job.expires - job.timeout, stop=job.stop)
        message = self._parse(job)
        deadline.check()
        call = calls()[job.call]
        request = self._reader.open(message, call.request, call.roles, packed=job.accepted == SAFETENSORS)
        task = call.read(request)
        decoded = perf_counter()
        ready = call.prepare(task, self._engine, deadline)
        planned = perf_counter()
        if most_seconds is not None and (cost := call.cost(ready)).seconds > most_seconds:
            return _unanswered(estimate=Estimate(*cost))
        outcome = call.run(ready, self._engine, deadline)
        executed = perf_counter()
        backward = 0.0 if deadline.turned is None else monotonic() - deadline.turned
        pieces = call.write(outcome, ready, request.encoding)
        phases = Phases(
            decode=decoded - started,
            plan=planned - decoded,
            execute=executed - planned,
            backward=backward,
            encode=perf_counter() - executed,
        )
        return Reply(200, job.accepted, pieces, (), phases, call.is_cached(ready))

    def _parse(self, job: Job) -> Message:
        if job.sent == SAFETENSORS:
            return read(job.body, self._settings.max_body_bytes, self._json, self._limits)
        request = self._json.read(bytes(job.body))
        return Message(request.fields, source=request.source)


def limits_of(settings: Settings) -> dict[str, int]:
    """What one request may take, as `plan` tells it."""
    return {
        "nodes": settings.max_nodes,
        "rank": settings.max_rank,
        "peak_bytes": settings.max_bytes,
        "flops": settings.max_flops,
        "response_bytes": settings.max_response_bytes,
        "body_bytes": settings.max_body_bytes,
        "binary_body_bytes": settings.max_binary_bytes,
        "json_depth": settings.json_depth,
        "name_characters": NAME_CHARACTERS,
        "timeout_ms": settings.timeout_ms,
    }


def _bytes_of_plans(settings: Settings) -> int:
    """What is left for plans themselves."""
    whole = settings.plan_cache_bytes
    return whole - whole // IDLE_SHARE - whole // GRAPH_SHARE


def _unanswered(**why: Any) -> Reply:
    """What the pool alone reads, and no client."""
    return Reply(0, PROBLEM, [], **why)


def _refused(refusal: Refusal, job: Job, recycle: str | None = None) -> Reply:
    return Reply(refusal.status, PROBLEM, [refusal.body(job.request_id)], recycle=recycle)
