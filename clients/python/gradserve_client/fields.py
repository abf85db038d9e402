"""The fields of calls, beside graph and feeds, under the names that docs/wire.md gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypedDict, TypeVar

import numpy.typing as npt

from gradserve_client.graph import NodeLike
from gradserve_client.resident import Resident, Rows, Store
from gradserve_client.tensors import Array, ArrayLike, Form

V_co = TypeVar("V_co", covariant=True)


class ByNode(Protocol[V_co]):
    """A mapping whose keys are nodes: as node objects, names or ids.

    `Mapping` would not do: its key type is invariant, so type checkers reject a `dict` with node objects alone, even
    one built with `**` from another. Keys are checked when they are looked up.
    """

    def items(self) -> Iterable[tuple[Any, V_co]]:
        """Return pairs of a node and its value."""


#: for each node an array, the handle of a resident tensor, or rows of one
Tensors = ByNode[ArrayLike | Resident | Rows]
#: for each leaf its dtype and shape, or an array that has both
Types = ByNode[tuple[npt.DTypeLike, Sequence[int]] | Array]
#: precision of float32 matrix products and convolutions on a GPU, most exact first; CPUs always compute in float32
Precision = Literal["float32", "tf32x3", "tf32", "bfloat16"]
#: layout of a Hessian: a block for each pair of nodes, or one matrix over all nodes
HessianLayout = Literal["blocks", "matrix"]
#: how the results of many examples are combined: not at all, summed, or averaged
Reduction = Literal["none", "sum", "mean"]


class CallFields(TypedDict, total=False):
    """Fields of every call.

    `form` is the wire format of tensors: "json", "base64" or "safetensors"; by default, requests with less than 4 KiB
    of tensors use base64, larger ones safetensors. `timeout`, in seconds for all attempts together, and `idempotency`
    override the client's settings. `extra` holds fields of the request that are newer than this client.
    """

    form: Form
    timeout: float | None
    idempotency: bool
    extra: Mapping[str, Any]


class RunFields(CallFields, total=False):
    """Fields of calls that return values.

    `outputs` are the nodes whose values are returned. `diagnose=True` reports the first node with a NaN or an infinity
    in `stats`, and makes the call slower. `memory_budget` limits the memory of the call, in bytes; `precision` is the
    lowest precision allowed for float32. Both default to the server's settings. `store` maps nodes to the tensors that
    their values, or the gradients with respect to them, are stored as.
    """

    outputs: Sequence[NodeLike]
    diagnose: bool
    memory_budget: int
    precision: Precision
    store: ByNode[str | Store]


class GradientsFields(RunFields, total=False):
    """Fields of `gradients`. `of` defaults to the last node, `wrt` to every parameter.

    `cotangent` has the shape of `of`: the weights of its elements. It defaults to 1 if `of` has one element.
    """

    of: NodeLike
    wrt: Sequence[NodeLike]
    cotangent: ArrayLike


class VjpFields(RunFields, total=False):
    """Fields of `vjp`.

    `cotangents` maps each output to an array of its shape; with `batched=True`, every cotangent has a leading axis K.
    """

    cotangents: Tensors
    wrt: Sequence[NodeLike]
    batched: bool


class JvpFields(RunFields, total=False):
    """Fields of `jvp`. `tangents` maps leaves to arrays of their shape; leaves without one are held constant."""

    tangents: Tensors


class JacobianFields(RunFields, total=False):
    """Fields of `jacobian`. `wrt` defaults to every parameter."""

    wrt: Sequence[NodeLike]


class HessianFields(RunFields, total=False):
    """Fields of `hessian`. `of` has one element and defaults to the last node, `wrt` to every parameter.

    `layout="matrix"` returns one square matrix over all nodes of `wrt` instead of a block for each pair of nodes. These
    nodes must have the same dtype.
    """

    of: NodeLike
    wrt: Sequence[NodeLike]
    layout: HessianLayout


class HvpFields(RunFields, total=False):
    """Fields of `hvp`. `of` has one element and defaults to the last node, `wrt` to every parameter.

    `vectors` maps each node of `wrt` to an array of its shape.
    """

    of: NodeLike
    wrt: Sequence[NodeLike]
    vectors: Tensors


class BatchFields(RunFields, total=False):
    """Fields of `batch`. `of` defaults to the last node, `wrt` to every parameter.

    `mapped` are the leaves whose feeds have a leading axis N. With `reduce`, results are summed or averaged over the
    examples, `block` examples at a time; by default the server chooses the block size.
    """

    of: NodeLike
    wrt: Sequence[NodeLike]
    mapped: Sequence[NodeLike]
    reduce: Reduction
    block: int


class CheckFields(CallFields, total=False):
    """Fields of `check`.

    `directions` is the number of directions per node, from 1 to 64, by default 4. `tolerance` is the largest relative
    error that passes, by default 10⁻⁶. `memory_budget` and `precision` are those of `RunFields`.
    """

    of: NodeLike
    wrt: Sequence[NodeLike]
    directions: int
    tolerance: float
    memory_budget: int
    precision: Precision


class DifferentiateFields(CallFields, total=False):
    """Fields of `differentiate`. `of` has one element and defaults to the last node, `wrt` to every parameter."""

    of: NodeLike
    wrt: Sequence[NodeLike]


class PlanFields(DifferentiateFields, total=False):
    """Fields of `plan`: `call` is the name of the call to plan, and the other fields are the arguments of that call.

    `call` defaults to "gradients", or to "forward" if there is nothing to differentiate with respect to.
    """

    call: str
    mapped: Sequence[NodeLike]
    reduce: Reduction
    block: int
    outputs: Sequence[NodeLike]
    memory_budget: int
    precision: Precision
