"""Writing at positions that tensors hold."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import size
from gradserve_client.torch.call import Call, Said, blocked_unless
from gradserve_client.torch.families.helpers import from_front, to_front
from gradserve_client.torch.families.indexing import Places, places_of
from gradserve_client.torch.families.table import RULES


@RULES("index_put", "_unsafe_index_put")
def index_put(call: Call) -> Said:
    """Values at positions, in place of what was there or added to it. Where a mask holds, one after the other."""
    masks = [each for each in call["indices"] if each is not None and each.type.dtype == "bool"]
    if masks and masks[0].constant is None:
        return _masked(call)
    at, values = places_of(call), call.converted("values", call.dtype())
    if call["accumulate"]:
        blocked_unless(call.dtype() != "bool", "it adds up bools", "convert them to whole numbers")
        return call.graph.index_add(call.node(), *at.indices, values, **at.stated)
    _require_once(at)
    return call.graph.index_set(call.node(), *at.indices, values, **at.stated)


def _require_once(at: Places) -> None:
    """Raise Blocked where positions that are known are written more than once: which of them stays, nobody says."""
    if at.known is None:
        return
    told = torch.stack([each.reshape(-1) for each in torch.broadcast_tensors(*at.known)])
    if told.unique(dim=1).shape[1] != told.shape[1]:
        raise Blocked("it writes a position more than once", "write each position once, or accumulate")


def _masked(call: Call) -> Said:
    """Of one mask over the first axes: a number, what broadcasts, or as many entries as it names."""
    indices = call["indices"]
    mask, rest = indices[0], call.shape()[len(indices[0].type.shape) :]
    if len(indices) != 1:
        raise Blocked("it is a mask of data beside other indices", "choose with torch.where")
    node, values = call.converted("values", call.dtype()), call.value("values").type.shape
    if len(values) > len(rest):
        node = (
            node.squeeze(axes=[0]) if values[0] == 1 else _one_by_one(call, node, mask.given_by(call.graph), values[0])
        )
    if call["accumulate"]:
        node = call.node().add(node)
    there = mask.given_by(call.graph).reshape(shape=[*mask.type.shape, *[1] * len(rest)])
    return there.where(node, call.node())


def _one_by_one(call: Call, values: Node, mask: Node, count: int) -> Node:
    """For each place of a mask, the entry that it has where it holds: they are counted in row-major order."""
    flat = mask.reshape(shape=[-1]).cast("int64").cumsum(0).sub(call.constant(1, "int64"))
    at = flat.maximum(call.constant(0, "int64")).minimum(call.constant(max(0, count - 1), "int64"))
    return values.embedding(at).reshape(shape=list(call.shape()))


def _everywhere(call: Call, index: Node) -> list[Node]:
    """An index along an axis as one of all axes: of the others, the places of its own entries."""
    extents, axis = call.shape("index"), call.axis()
    return [
        index if i == axis else call.constant(np.arange(n).reshape([-1, *[1] * (len(extents) - 1 - i)]), "int64")
        for i, n in enumerate(extents)
    ]


@RULES("scatter.src", "scatter.value")
def scatter(call: Call) -> Said:
    """Elements at positions along an axis, in place of what was there."""
    if not call.rank():
        return call.value("src") if call.op == "scatter.src" else call.constant(call["value"], call.dtype())
    values = _source(call) if call.op == "scatter.src" else call.constant(call["value"], call.dtype())
    return call.graph.index_set(call.node(), *_everywhere(call, call.converted("index", "int64")), values)


def _source(call: Call) -> Node:
    """As much of the source as there are positions."""
    source = call.node("src")
    return source if call.shape("src") == call.shape("index") else source.slice(stops=list(call.shape("index")))


@RULES("scatter_add")
def scatter_add(call: Call) -> Said:
    """Elements added at positions along an axis."""
    if not call.rank():
        return call.node().add(call.node("src"))
    return call.node().scatter_add(call.converted("index", "int64"), _source(call), axis=call.axis())


#: ops over segments, by what PyTorch calls them
_REDUCED: Final = {
    "sum": "segment_sum",
    "mean": "segment_mean",
    "prod": "segment_prod",
    "amax": "segment_max",
    "amin": "segment_min",
}


@RULES("scatter_reduce.two")
def scatter_reduce(call: Call) -> Said:
    """Reduced with what is there, or without: each element of the tensor is a segment."""
    blocked_unless(call.rank() > 0, "it is of a number")
    places = _everywhere(call, call.converted("index", "int64"))
    shape = [*call.shape()]
    flat = call.constant(0, "int64")
    for i, place in enumerate(places):
        flat = flat.add(place.mul(call.constant(size(shape[i + 1 :]), "int64")))
    reduced = _reduced(
        call, call.node().reshape(shape=[-1]), flat.reshape(shape=[-1]), _source(call).reshape(shape=[-1]), size(shape)
    )
    return reduced.reshape(shape=shape)


@RULES("index_reduce")
def index_reduce(call: Call) -> Said:
    """Reduced with what is there, or without: each slice along the axis is a segment."""
    blocked_unless(call.rank() > 0, "it is of a number")
    axis, rank = call.axis(), call.rank()
    table, rows = (to_front(call.node(name), axis, rank) for name in ("self", "source"))
    return from_front(_reduced(call, table, call.converted("index", "int64"), rows, call.shape()[axis]), axis, rank)


def _reduced(call: Call, table: Node, ids: Node, rows: Node, count: int) -> Node:
    """The rows of each segment, with the table's row of that number, or in its place where there are any."""
    dtype, mode = call.dtype(), call["reduce"]
    blocked_unless(
        mode != "mean" or call.value().type.is_float, "it takes means of whole numbers", "convert them to floats"
    )
    every, numbers = rows, ids
    if call["include_self"]:
        every = call.graph.cat(table, rows, axis=0)
        numbers = call.graph.cat(call.constant(np.arange(count), "int64"), ids, axis=0)
    made: Node = call.graph.op(_REDUCED[mode], every, numbers, segments=count)
    # whole numbers add up and multiply in int64
    made = made.cast(dtype) if mode in ("sum", "prod") and not call.value().type.is_float else made
    if call["include_self"]:
        return made
    hit = call.graph.index_set(call.graph.full(shape=[count], dtype="bool"), ids, call.constant(True, "bool"))
    return hit.reshape(shape=[count, *[1] * _more(call)]).where(made, table)


def _more(call: Call) -> int:
    """How many axes a row has."""
    return call.rank() - 1 if call.op == "index_reduce" else 0


@RULES("masked_scatter")
def masked_scatter(call: Call) -> Said:
    """Where the mask holds, the elements of the source one after the other."""
    mask = call.node("mask").broadcast_to(shape=list(call.result.shape))
    source = call.node("source").reshape(shape=[-1])
    return mask.where(_one_by_one(call, source, mask, size(call.shape("source"))), call.node())
