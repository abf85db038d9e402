"""What calls are asked beside graph and feeds, by the names that docs/wire.md gives the fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypedDict, TypeVar

import numpy.typing as npt

from gradserve_client.graph import NodeLike
from gradserve_client.resident import Resident, Rows, Store
from gradserve_client.tensors import Array, ArrayLike, Form

V_co = TypeVar("V_co", covariant=True)


class ByNode(Protocol[V_co]):
    """A mapping from nodes, by their handles, names or ids.

    Mapping would not do: to checkers of types, one by handles alone is none by handles, names or ids, not even `**`
    within another. What the keys are is looked at when they are looked up.
    """

    def items(self) -> Iterable[tuple[Any, V_co]]:
        """Nodes, and what is stated for them."""


#: an array for a node, or the handle of one that the server keeps, or rows of that
Tensors = ByNode[ArrayLike | Resident | Rows]
#: dtype and shape of what a leaf would be fed, or an array that has both
Types = ByNode[tuple[npt.DTypeLike, Sequence[int]] | Array]
#: how products and convolutions may read float32 on a GPU, the most exact first; a processor computes float32
Precision = Literal["float32", "tf32x3", "tf32", "bfloat16"]
#: what is made of many examples: nothing, their sum or their mean
Reduction = Literal["none", "sum", "mean"]


class CallFields(TypedDict, total=False):
    """What every call takes.

    `form` is how tensors travel; by default small ones as base64 and large ones as safetensors. `timeout`, in seconds
    for all tries together, and `idempotency` are the client's unless given here. `extra` has fields of the request that
    are newer than this client.
    """

    form: Form
    timeout: float | None
    idempotency: bool
    extra: Mapping[str, Any]


class RunFields(CallFields, total=False):
    """What calls take that give values back.

    `memory_budget` is the most bytes that one may take, `precision` how it may read float32; by default as the server
    has it.
    """

    outputs: Sequence[NodeLike]
    diagnose: bool
    memory_budget: int
    precision: Precision
    store: ByNode[str | Store]


class GradientsFields(RunFields, total=False):
    """What `gradients` takes: by default the last node is differentiated, by every parameter."""

    of: NodeLike
    wrt: Sequence[NodeLike]
    cotangent: ArrayLike


class VjpFields(RunFields, total=False):
    """What `vjp` takes: a cotangent for each output."""

    cotangents: Tensors
    wrt: Sequence[NodeLike]
    batched: bool


class JvpFields(RunFields, total=False):
    """What `jvp` takes: tangents of leaves; others stay."""

    tangents: Tensors


class JacobianFields(RunFields, total=False):
    """What `jacobian` takes."""

    wrt: Sequence[NodeLike]


class HessianFields(RunFields, total=False):
    """What `hessian` takes."""

    of: NodeLike
    wrt: Sequence[NodeLike]


class HvpFields(HessianFields, total=False):
    """What `hvp` takes: a vector for each node of `wrt`."""

    vectors: Tensors


class BatchFields(HessianFields, total=False):
    """What `batch` takes: the leaves whose feeds have a leading axis.

    With `reduce`, examples are added up, `block` of them at a time; by default as many as the server finds right.
    """

    mapped: Sequence[NodeLike]
    reduce: Reduction
    block: int


class CheckFields(CallFields, total=False):
    """What `check` takes."""

    of: NodeLike
    wrt: Sequence[NodeLike]
    directions: int
    tolerance: float
    memory_budget: int
    precision: Precision


class DifferentiateFields(CallFields, total=False):
    """What `differentiate` takes."""

    of: NodeLike
    wrt: Sequence[NodeLike]


class PlanFields(DifferentiateFields, total=False):
    """What `plan` takes: the call that is to be planned, and what that would take."""

    call: str
    mapped: Sequence[NodeLike]
    reduce: Reduction
    block: int
    outputs: Sequence[NodeLike]
    memory_budget: int
    precision: Precision
