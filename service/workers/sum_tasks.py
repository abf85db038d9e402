"""Sums over examples inside a worker: a division into pieces, one piece, or the total.

Each worker reads the request and has its plans; what differs is which blocks it runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import orjson

from engine import HostArray, TensorType, printable
from engine.compiler.fused_kernel import run_seconds
from engine.runtime.sum_runs import add_pieces, run_blocks
from schemas import Feed
from service.api.binary import own_bytes, write_request
from service.api.media import PIECE_SUMS, SAFETENSORS
from service.api.request import ParsedRequest
from service.api.tensors import NodePlace
from service.core.errors import Refusal
from service.workers.executions.batch import AddedUp, PreparedSum
from service.workers.executions.execution import Engine, TaskContext
from service.workers.task import PIECE_HEADER, TEXT_RATE, Divisible, Piece, PieceRequest, Reply, Task, Total, run_header

#: seconds of a sum from which on it is worth a piece for others
_WORTH: Final = 0.01


def division(ready: object, context: TaskContext, response_bytes: int) -> Divisible | None:
    """Say how a sum may be cut; None for other calls, and for a sum that is done sooner alone.

    One that is looked at for numbers that are not finite is done by one: the first of them is asked for.
    """
    task = context.task
    if not (task.may_divide and isinstance(ready, PreparedSum)) or ready.execution.diagnose or context.own is not None:
        return None
    blocks = ready.parts.blocks.count
    seconds = blocks * run_seconds(ready.compiled.plan, ready.dense_flop)
    if blocks == 1 or seconds < _WORTH:
        return None
    nbytes = sum(type.nbytes for type in sum_types(ready))
    # By the length of what is text of the request: the same on every machine, however busy.
    parsed = ready.execution
    beside = sum(array.nbytes for feed, array in parsed.tensors.items() if feed not in parsed.residents)
    reading = max(0, len(task.body) - (beside if task.sent == SAFETENSORS else 0)) / TEXT_RATE
    return Divisible(blocks, seconds, reading, nbytes, response_bytes, _versions(ready, task))


def _versions(ready: PreparedSum, task: Task) -> list[tuple[str, str]]:
    """List the resident tensors that a request reads, by name and etag."""
    etags = {}
    for one in ready.execution.residents.values():
        version = task.tensor(one.name)
        assert version is not None, "it was read"
        etags[one.name] = version.etag
    return list(etags.items())


def sum_types(ready: PreparedSum) -> Sequence[TensorType]:
    """Return the types of the sums, in the plan's order."""
    return ready.compiled.plan.result_types


def piece_of(ready: object, context: TaskContext, engine: Engine) -> Reply:
    """Compute the sums over some blocks; over all for another server. Raises EngineError, and Refusal for no sum."""
    task = context.task
    if not isinstance(ready, PreparedSum):
        raise Refusal("not_acceptable", f"{PIECE_SUMS} is of sums over examples alone: of batch with reduce")
    part = task.part if isinstance(task.part, Piece) else Piece(0, ready.parts.blocks.count)
    parsed = ready.execution
    indices = range(part.first, part.stop)
    sums = run_blocks(engine.executor, ready.parts, ready.call, parsed.tensors, indices, context.deadline)
    context.ran()
    parts = [own_bytes(array) for array in sums]
    timings = context.timings()
    headers = (run_header(context.deadline.report, timings.execute),)
    return Reply(200, PIECE_SUMS, parts, headers, timings, ready.compiled.cached)


def request_of(ready: object, context: TaskContext, request: ParsedRequest) -> Reply:
    """Write the request by which another server answers the sums of some blocks; no more than these are sent along.

    It states the versions of the resident tensors that it names. A header says where it had best go: of rows of
    resident tensors, always to the same server, which has them then.
    """
    task, part = context.task, context.task.part
    assert isinstance(ready, PreparedSum)
    assert isinstance(part, PieceRequest)
    blocks = ready.parts.blocks
    rows = slice(blocks.rows(part.first).start, blocks.rows(part.stop - 1).stop)
    mapped = {node for node, _ in ready.call.mapped}
    stated: Sequence[Feed] = request.fields.get("feeds", [])
    listed = [_feed(one, rows if one["node"] in mapped else None) for one in stated if "tensor_id" in one]
    residents = {one["node"] for one in listed}
    arrays = {place: array for place, array in request.message.tensors.items() if place[0] != "feeds"}
    for node, array in request.feeds.items():
        if node not in residents:
            arrays["feeds", NodePlace(node)] = array[rows] if node in mapped else array
    source = request.message.source
    graph = request.fields["graph"] if source is None else orjson.Fragment(source.text)
    rest = {name: value for name, value in request.fields.items() if name not in ("graph", "feeds", "encoding")}
    fields = {"graph": graph, "feeds": listed, **rest, "block": blocks.block}
    versions = dict(_versions(ready, task))
    context.ran()
    cut = [(one, versions[one["tensor_id"]]) for one in listed if one["node"] in mapped]
    about = orjson.dumps(cut) if cut else f"{task.request_id} {part.first}".encode()
    headers = ((PIECE_HEADER, blake2b(about, digest_size=8).hexdigest()),)
    return Reply(200, SAFETENSORS, write_request(fields, arrays, versions), headers, context.timings())


def _feed(one: Feed, rows: slice | None) -> dict[str, Any]:
    """Return a feed of a resident tensor, or of these rows of what it feeds."""
    if rows is None:
        return dict(one)
    first = one["rows"][0] if "rows" in one else 0
    return {**one, "rows": [first + rows.start, first + rows.stop]}


def check_versions(stated: Mapping[str, str], task: Task) -> None:
    """Refuse a piece of a sum whose other pieces read other versions of a tensor."""
    for name, etag in stated.items():
        version = task.tensor(name)
        if version is None or version.etag != etag:
            detail = f"the tensor “{printable(name)}” is another version than the other pieces read"
            got = "none" if version is None else version.etag
            raise Refusal("precondition_failed", detail, expected=printable(etag), got=got)


def put_together(ready: PreparedSum, part: Total, beside: bytes | HostArray, engine: Engine) -> PreparedSum:
    """Add up the sums of the pieces, which lie one after the other."""
    types = sum_types(ready)
    each = sum(type.nbytes for type in types)
    assert len(beside) == part.pieces * each, "the pieces are of this plan"
    pieces = (_arrays(beside[i * each : (i + 1) * each], types) for i in range(part.pieces))
    sums = add_pieces(engine.executor, pieces)
    return replace(ready, added_up=AddedUp(sums, part.pieces, part.repeated, part.seconds, part.report))


def _arrays(data: bytes | HostArray, types: Sequence[TensorType]) -> list[HostArray]:
    """View the bytes as arrays of these types, one after the other."""
    arrays, start = [], 0
    for type in types:
        flat = np.frombuffer(data[start : start + type.nbytes], type.dtype.newbyteorder("<"))
        array = flat.astype(type.dtype, copy=False).reshape(type.shape)
        arrays.append(array if array.flags.aligned else array.copy())
        start += type.nbytes
    return arrays
