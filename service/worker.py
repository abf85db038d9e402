"""The work of one request: bytes to bytes. A job goes in, a reply comes out, and neither holds on to anything.

This is the seam. A `Worker` serves a thread today; because `Job` and `Reply` can be pickled, and `Worker` is made
from settings alone, it can as well live in a process of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from engine import Compiler, Deadline, EngineError, Limits, open_executor, registry
from service import answers, binary
from service.asks import Ask, Check, Compute, Plan
from service.calls import COMPUTING
from service.errors import Refusal, from_engine
from service.handlers import Handlers
from service.jsonio import parse
from service.media import JSON, PROBLEM, SAFETENSORS
from service.settings import Settings
from service.tensors import Array
from service.translate import Message, Translator

log = logging.getLogger("gradserve.worker")

CALLS: Final = (*COMPUTING, "plan", "check", "differentiate")


@dataclass(frozen=True, slots=True)
class Job:
    """One computing call: its name, its body as it came, and when (on the monotonic clock) its time is up.

    `sent` and `accepted` are the media types of the body and of the answer: JSON, or safetensors.
    """

    call: str
    body: bytes | Array
    request_id: str
    timeout: float  # seconds, as agreed with the client
    expires: float  # time.monotonic()
    sent: str = JSON
    accepted: str = JSON


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer's status, media type and body, in pieces; a problem unless the status is 200."""

    status: int
    media_type: str
    pieces: Sequence[bytes | memoryview]

    @property
    def body(self) -> bytes:
        """The pieces as one."""
        return b"".join(self.pieces)

    def __reduce__(self) -> tuple[type[Reply], tuple[int, str, list[bytes]]]:
        return Reply, (self.status, self.media_type, [bytes(piece) for piece in self.pieces])


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
        self._settings = settings
        self._limits = limits
        self._translate = Translator(registry(), limits, settings.max_nodes)
        self._handlers = Handlers(Compiler(limits, settings.plan_cache), executor, settings.max_response_bytes)

    def __call__(self, job: Job) -> Reply:
        """The reply to a job. Never raises: whatever goes wrong is a problem report."""
        try:
            return Reply(200, job.accepted, self._answer(job))
        except Refusal as refusal:
            return _refused(refusal, job)
        except EngineError as error:
            return _refused(from_engine(error), job)
        except MemoryError:
            return _refused(out_of_memory(), job)
        except Exception:
            log.exception("request %s failed", job.request_id)
            return _refused(fault(), job)

    def _answer(self, job: Job) -> answers.Body:
        deadline = Deadline(job.timeout, start=job.expires - job.timeout)
        message = self._parse(job)
        deadline.check()
        ask, packed = self._translate.read(job.call, message), job.accepted == SAFETENSORS
        if packed and isinstance(ask, Compute | Plan):
            ask = replace(ask, encoding="binary")
        return self._handle(ask, packed, deadline)

    def _parse(self, job: Job) -> Message:
        if job.sent == SAFETENSORS:
            return binary.read(job.body, self._settings.max_body_bytes, self._settings.json_depth, self._limits)
        return Message(parse(bytes(job.body), self._settings.json_depth))

    def _handle(self, ask: Ask, packed: bool, deadline: Deadline) -> answers.Body:
        handlers = self._handlers
        if isinstance(ask, Compute):
            return answers.result(handlers.compute(ask, deadline), ask.encoding)
        if isinstance(ask, Plan):
            return answers.forecast(handlers.plan(ask, deadline), ask, answers.limits_of(self._settings), packed)
        if isinstance(ask, Check):
            return answers.certificate(*handlers.check(ask, deadline), ask.directions, packed)
        return answers.exported(handlers.differentiate(ask, deadline), ask, packed)


def fault() -> Refusal:
    """The report of a fault of ours; the cause stands in the log, under the request's id."""
    return Refusal("internal_error", "the server failed on this request; its log has the cause under this request_id")


def out_of_memory() -> Refusal:
    """The report where an allocation failed in spite of the budgets."""
    return Refusal("over_budget", "the server ran out of memory on this request; send a smaller one", got="no memory")


def _refused(refusal: Refusal, job: Job) -> Reply:
    return Reply(refusal.status, PROBLEM, [refusal.body(job.request_id)])
