"""Two tasks put a model: the first reads the request, and the second checks and writes it once its graph is found.

The front finds the graph in between, since it parses no body, and a worker keeps no graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import orjson

from engine import Compiler, DeadlineExceeded, Limits
from schemas.models import PutModelRequest
from service.executions.execution import cost_of_analysis
from service.settings import Settings
from service.transport.job import Reply
from service.transport.job_result import JobResult, NeedsGraph, TooLong, WantsTensors
from service.wire.graph_source import GraphSource, Programs
from service.wire.json_codec import parse_json
from service.wire.media import JSON
from service.wire.storing import new_etag
from service.wire.validation import validate
from service.worker.job_context import PLANNING, UNPLANNED, JobContext
from service.worker.model_check import PLANNED_WITH, ModelCheck

#: the registered graph of a key, and its record where that was sent; None where it is not known
FindGraph = Callable[[str, bytes | None], GraphSource | None]


class ModelJobs:
    """Runner of both tasks."""

    def __init__(
        self, settings: Settings, limits: Limits, registered: FindGraph, programs: Programs, compiler: Compiler
    ) -> None:
        self._settings = settings
        self._limits = limits
        self._registered = registered
        self._programs = programs
        self._compiler = compiler

    def read_model(self, context: JobContext) -> Reply:
        """What is asked, written down with the graph's id before all lists. Raises Refusal where it is malformed."""
        asked = self._asked(context)
        return _replied(context, {**_told(asked), "inputs": asked["inputs"], **asked})

    def put(self, context: JobContext) -> JobResult:
        """The model that is the task's subject, of its graph, written down under an etag of its own.

        Of a task without a graph, all else is said that is wrong. Raises Refusal.
        """
        job = context.job
        asked = self._asked(context)
        source = None if job.graph is None else self._registered(job.graph, job.graph_bytes)
        if job.graph is not None and source is None:
            return NeedsGraph()
        program = None if source is None else self._programs.of(source)
        check = ModelCheck(asked, program, self._limits)
        if job.may_ask and any(job.tensor(name) is None for name in check.tensor_names):
            return WantsTensors(check.tensor_names)
        if program is not None and context.is_too_long(cost_of_analysis(program, len(PLANNED_WITH)), PLANNING):
            return TooLong(UNPLANNED)
        try:
            typed = check.typed(job.tensor, self._compiler, context.patience(PLANNING))
        except DeadlineExceeded:
            if context.most_seconds is None:
                raise
            context.deadline.check()
            return TooLong(UNPLANNED)
        etag = new_etag()
        return _replied(context, {"name": job.subject, "etag": etag, **_told(asked), **asdict(typed)}, etag)

    def _asked(self, context: JobContext) -> PutModelRequest:
        return validate(PutModelRequest, parse_json(bytes(context.job.body), self._settings.json_depth))


def _told(asked: PutModelRequest) -> dict[str, str]:
    """What is said of a model before its leaves, which the front reads."""
    told = {"graph_id": asked["graph_id"]}
    return told | {"description": asked["description"]} if "description" in asked else told


def _replied(context: JobContext, told: dict[str, object], etag: str | None = None) -> Reply:
    """The reply that says this."""
    context.mark_read()
    headers = () if etag is None else (("ETag", f'"{etag}"'),)
    return Reply(200, JSON, [orjson.dumps(told)], headers, context.timings())
