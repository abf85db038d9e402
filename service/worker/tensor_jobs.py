"""Tasks that are no computing calls: put or get a tensor, put a model, register a graph.

A worker does them so that the front parses no body, and holds nobody up with one.
"""

from __future__ import annotations

from typing import Final

import orjson

from engine import EngineError, HostArray, Limits, TensorType
from schemas import Tensor
from service.calls.estimate import TEXT_RATE, Estimate
from service.errors import Refusal, from_engine
from service.settings import Settings
from service.state.tensor_names import checked_name, unknown_tensor
from service.state.values import Stored
from service.transport.job import Job, Reply
from service.transport.job_result import NotDone, TooLong, WantsTensors
from service.wire.answers import FIELD_BYTES, admit_answer, write_answer
from service.wire.binary import own_bytes, read_one, write_one
from service.wire.long_lists import parse_tensors
from service.wire.media import JSON, SAFETENSORS
from service.wire.storing import new_etag
from service.wire.tensors import decode, encode, encoded_bytes
from service.wire.validation import validate
from service.wire.version import Version
from service.worker.job_context import JobContext

#: bytes of a tensor's elements that are written in a second as they are
_COPY_RATE: Final = 2e9


class TensorJobs:
    """Runner of both tasks."""

    def __init__(self, settings: Settings, limits: Limits) -> None:
        self._settings = settings
        self._limits = limits

    def put(self, context: JobContext) -> Reply:
        """The tensor that a body holds is to be kept under the name that is the task's subject.

        The body is a tensor in JSON, or safetensors with one. Raises Refusal: what is wrong with either.
        """
        job = context.job
        name = checked_name(job.subject or "", "the name of a tensor")
        array = self._array(job)
        context.deadline.check()
        context.mark_read()
        stored = Stored(name, new_etag(), array.dtype.name, array.shape)
        body = orjson.dumps(stored.summary())
        return Reply(200, JSON, [body], (), context.timings(), stored=[stored], kept=[own_bytes(array)])

    def get(self, context: JobContext) -> Reply | NotDone:
        """The tensor that the body names, {"tensor_id": …, "encoding": …}: the front writes that, and it is right.

        Its ETag is among the headers. Raises Refusal (not_found), and the engine's OverBudget for an answer too long.
        """
        job = context.job
        asked = orjson.loads(bytes(job.body))
        name, encoding = asked["tensor_id"], asked.get("encoding", "json")
        version = job.tensor(name)
        if version is None:
            if job.may_ask:
                return WantsTensors([name])
            raise unknown_tensor(name)
        form = "binary" if job.accepted == SAFETENSORS else encoding
        cost = _cost(version.array, form)
        if context.is_too_long(cost):
            return TooLong(cost)
        admit_answer(cost.response_bytes, form, self._settings.max_response_bytes)
        context.mark_read()
        headers = (("ETag", f'"{version.etag}"'),)
        return Reply(200, job.accepted, _written(name, version, form), headers, context.timings())

    def _array(self, job: Job) -> HostArray:
        settings = self._settings
        if job.sent == SAFETENSORS:
            return read_one(job.body, settings.max_body_bytes, settings.json_depth, self._limits)
        stated = validate(Tensor, parse_tensors(bytes(job.body), settings.json_depth))
        try:
            return decode(stated, self._limits)
        except (EngineError, Refusal) as error:
            refusal = from_engine(error) if isinstance(error, EngineError) else error
            refusal.detail = f"the tensor {refusal.detail}" if refusal.code == "bad_tensor" else refusal.detail
            refusal.pointer = ""
            raise refusal from None


def _written(name: str, version: Version, form: str) -> list[bytes | memoryview]:
    if form == "binary":
        return write_one(name, version.array)
    told = {"tensor_id": name, "etag": version.etag, "tensor": encode(version.array, form)}
    return write_answer(told, form)


def _cost(array: HostArray, form: str) -> Estimate:
    rate = TEXT_RATE if form == "json" else _COPY_RATE
    return Estimate(array.nbytes / rate, 0, FIELD_BYTES + encoded_bytes([TensorType.of(array)], form))
