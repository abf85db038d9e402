"""Sums over examples inside a worker: the offer to divide one, a piece, a request of a piece, and the total.

All workers read the same request and have the same plans. They differ only in the blocks that they run.
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
from service.api.binary import array_bytes, write_request
from service.api.media import PIECE_SUMS, SAFETENSORS
from service.api.request import ParsedRequest
from service.api.tensors import NodePlace
from service.core.errors import Refusal
from service.workers.executions.batch import AddedUp, PreparedSum
from service.workers.executions.execution import Engine, TaskContext
from service.workers.task import PIECE_HEADER, TEXT_RATE, Divisible, Piece, PieceRequest, Reply, Task, Total, run_header

#: seconds from which on a sum is worth dividing
_LEAST_SECONDS: Final = 0.01


def offer_division(ready: object, context: TaskContext, response_bytes: int) -> Divisible | None:
    """Return how a sum may be divided; None for other calls, and for a sum that one worker computes as fast.

    With `diagnose`, one worker computes the sum: the answer names the first value that is not finite.
    """
    task = context.task
    if (
        not (task.may_divide and isinstance(ready, PreparedSum))
        or ready.execution.diagnose
        or context.translated is not None
    ):
        return None
    blocks = ready.parts.blocks.count
    seconds = blocks * run_seconds(ready.compiled.plan, ready.dense_flop)
    if blocks == 1 or seconds < _LEAST_SECONDS:
        return None
    nbytes = sum(type.nbytes for type in sum_types(ready))
    # From the length of the JSON text, not from a clock: all machines then divide the sum alike, however busy they are.
    parsed = ready.execution
    binary_bytes = sum(array.nbytes for feed, array in parsed.tensors.items() if feed not in parsed.residents)
    reading = max(0, len(task.body) - (binary_bytes if task.body_type == SAFETENSORS else 0)) / TEXT_RATE
    return Divisible(blocks, seconds, reading, nbytes, response_bytes, _versions(ready, task))


def _versions(ready: PreparedSum, task: Task) -> list[tuple[str, str]]:
    """List the resident tensors that a request reads, by name and etag."""
    etags = {}
    for resident in ready.execution.residents.values():
        version = task.tensor(resident.name)
        assert version is not None, "it was read"
        etags[resident.name] = version.etag
    return list(etags.items())


def sum_types(ready: PreparedSum) -> Sequence[TensorType]:
    """Return the types of the sums, in the plan's order."""
    return ready.compiled.plan.result_types


def compute_piece(ready: object, context: TaskContext, engine: Engine) -> Reply:
    """Compute the sums over some blocks; for a peer, over all. Raises EngineError, and Refusal if this is no sum."""
    task = context.task
    if not isinstance(ready, PreparedSum):
        raise Refusal("not_acceptable", f"{PIECE_SUMS} is only for sums over examples: batch with reduce")
    part = task.part if isinstance(task.part, Piece) else Piece(0, ready.parts.blocks.count)
    parsed = ready.execution
    indices = range(part.first, part.stop)
    sums = run_blocks(engine.executor, ready.parts, ready.call, parsed.tensors, indices, context.deadline)
    context.ran()
    parts = [array_bytes(array) for array in sums]
    timings = context.timings()
    headers = (run_header(context.deadline.report, timings.execute),)
    return Reply(200, PIECE_SUMS, parts, headers, timings, ready.compiled.cached)


def write_peer_request(ready: object, context: TaskContext, request: ParsedRequest) -> Reply:
    """Write the request by which a peer computes the sums of some blocks; it has only the rows that these need.

    It states the versions of the resident tensors that it names. A header tells the load balancer where to send it:
    the same rows of the same resident tensors always go to the same server, which has them in memory then.
    """
    task, part = context.task, context.task.part
    assert isinstance(ready, PreparedSum)
    assert isinstance(part, PieceRequest)
    blocks = ready.parts.blocks
    rows = slice(blocks.rows(part.first).start, blocks.rows(part.stop - 1).stop)
    mapped = {node for node, _ in ready.call.mapped}
    feeds: Sequence[Feed] = request.fields.get("feeds", [])
    resident_feeds = [_feed(feed, rows if feed["node"] in mapped else None) for feed in feeds if "tensor_id" in feed]
    residents = {feed["node"] for feed in resident_feeds}
    arrays = {place: array for place, array in request.message.tensors.items() if place[0] != "feeds"}
    for node, array in request.feeds.items():
        if node not in residents:
            arrays["feeds", NodePlace(node)] = array[rows] if node in mapped else array
    source = request.message.source
    graph = request.fields["graph"] if source is None else orjson.Fragment(source.text)
    rest = {name: value for name, value in request.fields.items() if name not in ("graph", "feeds", "encoding")}
    fields = {"graph": graph, "feeds": resident_feeds, **rest, "block": blocks.block}
    versions = dict(_versions(ready, task))
    context.ran()
    resident_rows = [(feed, versions[feed["tensor_id"]]) for feed in resident_feeds if feed["node"] in mapped]
    # If no resident rows are read, any server will do: a value that differs from piece to piece spreads the pieces.
    routing_key = orjson.dumps(resident_rows) if resident_rows else f"{task.request_id} {part.first}".encode()
    headers = ((PIECE_HEADER, blake2b(routing_key, digest_size=8).hexdigest()),)
    return Reply(200, SAFETENSORS, write_request(fields, arrays, versions), headers, context.timings())


def _feed(feed: Feed, rows: slice | None) -> dict[str, Any]:
    """Return a feed of a resident tensor, limited to these rows if it is given by example."""
    if rows is None:
        return dict(feed)
    first = feed["rows"][0] if "rows" in feed else 0
    return {**feed, "rows": [first + rows.start, first + rows.stop]}


def check_versions(expected: Mapping[str, str], task: Task) -> None:
    """Raise Refusal if a piece would read another version of a tensor than the other pieces of its sum."""
    for name, etag in expected.items():
        version = task.tensor(name)
        if version is None or version.etag != etag:
            detail = f"the tensor “{printable(name)}” has a different version than the other pieces read"
            received = "none" if version is None else version.etag
            raise Refusal("precondition_failed", detail, expected=printable(etag), got=received)


def add_pieces_up(ready: PreparedSum, part: Total, sums_data: bytes | HostArray, engine: Engine) -> PreparedSum:
    """Add up the sums of the pieces, which lie one after the other."""
    types = sum_types(ready)
    piece_bytes = sum(type.nbytes for type in types)
    assert len(sums_data) == part.pieces * piece_bytes, "the pieces are of this plan"
    pieces = (_arrays(sums_data[i * piece_bytes : (i + 1) * piece_bytes], types) for i in range(part.pieces))
    # The pieces are added in the order of the tree, not as they arrived: so the result has the same bits as undivided.
    sums = add_pieces(engine.executor, pieces)
    return replace(ready, added_up=AddedUp(sums, part.pieces, part.repeated, part.seconds, part.report))


def _arrays(data: bytes | HostArray, types: Sequence[TensorType]) -> list[HostArray]:
    """View bytes as arrays of these types, one after the other."""
    arrays, start = [], 0
    for type in types:
        flat = np.frombuffer(data[start : start + type.nbytes], type.dtype.newbyteorder("<"))
        array = flat.astype(type.dtype, copy=False).reshape(type.shape)
        # After an array of a small type, the next one may be unaligned.
        arrays.append(array if array.flags.aligned else array.copy())
        start += type.nbytes
    return arrays
