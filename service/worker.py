"""The work of one request: bytes to bytes. A job goes in, a reply comes out, and neither holds on to anything.

This is the seam. A `Worker` serves a thread today; because `Job` and `Reply` can be pickled, and `Worker` is made
from settings alone, it can as well live in a process of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import orjson

from engine import Compiler, Deadline, EngineError, Limits, open_executor, registry
from service.errors import Refusal, from_engine
from service.handlers import Handlers, Result
from service.jsonio import parse
from service.settings import Settings
from service.tensors import Array, encode
from service.translate import Translator

log = logging.getLogger("gradserve.worker")

CALLS: Final = ("gradients", "forward")


@dataclass(frozen=True, slots=True)
class Job:
    """One computing call: its name, its body as it came, and when (on the monotonic clock) its time is up."""

    call: str
    body: bytes
    request_id: str
    timeout: float  # seconds, as agreed with the client
    expires: float  # time.monotonic()


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer's status and body; a problem unless the status is 200."""

    status: int
    body: bytes


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
        executor = open_executor(settings.device)
        self.device = executor.device
        self._depth = settings.json_depth
        self._translate = Translator(registry(), limits, settings.max_nodes)
        self._handlers = Handlers(Compiler(limits, settings.plan_cache), executor, settings.max_response_bytes)

    def __call__(self, job: Job) -> Reply:
        """The reply to a job. Never raises: whatever goes wrong is a problem report."""
        try:
            return Reply(200, self._answer(job))
        except Refusal as refusal:
            return _refused(refusal, job)
        except EngineError as error:
            return _refused(from_engine(error), job)
        except MemoryError:
            return _refused(_out_of_memory(), job)
        except Exception:
            log.exception("request %s failed", job.request_id)
            return _refused(fault(), job)

    def _answer(self, job: Job) -> bytes:
        deadline = Deadline(job.timeout, start=job.expires - job.timeout)
        body = parse(job.body, self._depth)
        deadline.check()
        if job.call == "forward":
            forward = self._translate.forward(body)
            return _write(self._handlers.forward(forward, deadline), forward.encoding)
        gradients = self._translate.gradients(body)
        return _write(self._handlers.gradients(gradients, deadline), gradients.encoding)


def fault() -> Refusal:
    """The report of a fault of ours; the cause stands in the log, under the request's id."""
    return Refusal("internal_error", "the server failed on this request; its log has the cause under this request_id")


def _refused(refusal: Refusal, job: Job) -> Reply:
    return Reply(refusal.status, refusal.body(job.request_id))


def _out_of_memory() -> Refusal:
    return Refusal("over_budget", "the server ran out of memory on this request; send a smaller one", got="no memory")


def _write(result: Result, encoding: str) -> bytes:
    answer: dict[str, Any] = {"values": _tensors(result.values, encoding)}
    if result.gradients is not None:
        answer["gradients"] = _tensors(result.gradients, encoding)
        answer["disconnected"] = list(result.disconnected)
    answer["stats"] = asdict(result.stats)
    return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)


def _tensors(arrays: list[tuple[int, Array]], encoding: str) -> list[Mapping[str, Any]]:
    return [{"node": node, "tensor": encode(array, encoding)} for node, array in arrays]
