"""Control flow: the base of ops that run functions, and the gradients of their loops.

A loop runs a body step by step on three kinds of operands (`Parts`): consts, the same at each step; carries, which one
step hands to the next; sequences, of which each step has one row. Its gradient is a loop the other way round, from the
last step to the first, which computes each step again. The carries of that loop are the cotangents of the carries, and
the sums of those of the consts; its sequences are the carries as they came to each step, the sequences, and the
cotangents of the stacked results. `engine.bodies.keep` decides what is saved rather than computed again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

from engine.graph.body import Body
from engine.graph.dtypes import DTYPES
from engine.graph.errors import BadAttribute, DtypeMismatch, EngineError, ShapeMismatch, counted
from engine.graph.ir import Builder, Value
from engine.graph.op import Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Sample
from engine.graph.tensor_type import BOOL, TensorType, show_shape

_T = TypeVar("_T")
_E = TypeVar("_E", bound=EngineError)

#: FLOPs that each step of a loop counts at least
LEAST_STEP_FLOPS: Final = 32
_TRUTH: Final = TensorType((), BOOL)


class RunsFunctions(Op):
    """Base: several results, read through get_output, also where there is one.

    What it comes down to is `lowered`; the rest is put in its place by planning, which knows how a body runs.
    """

    operands: ClassVar[tuple[str, ...]] = ("operands...?",)
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    several = True
    narrows = True
    since = 2
    samples: ClassVar[tuple[Sample, ...]] = ()
    #: whether its `body` runs step by step, on consts that stay the same
    steps_body: ClassVar[bool] = False
    #: of such loops, results between carries and stacks
    beside: ClassVar[int] = 0

    @property
    def family(self) -> str:
        """Name that loops share if they differ in their stacks alone."""
        return self.name

    def emit_loop(self, operands: Sequence[Value], attrs: Mapping[str, Any]) -> Value:
        """Append such a loop, with other stacks."""
        return operands[0].builder.emit(self, operands, attrs)

    def consts(self, operands: int, *, carries: int = 0, sequences: int = 0, **attrs: Any) -> int:
        """Count the operands that are consts, which come first."""
        return operands - carries - sequences

    def lowered(self, *operands: Any, **attrs: Any) -> Value | None:
        """The op in terms of others, once nothing is differentiated or batched any more; None where it is run."""
        return None

    def check_connection(self, types: Sequence[ResultTypes], results: Sequence[TensorType]) -> None:
        """Nothing: where gradients end in a function, its nodes say so."""

    def forward(self, run: RunContext, *arrays: Any, **attrs: Any) -> None:
        """Raise TypeError: planning puts a kernel in its place."""
        raise TypeError(f"{self.name} is to be planned before it runs")


class Parts(NamedTuple):
    """Operands of a loop, or anything that there is one of for each of them."""

    consts: Sequence[Any]
    carries: Sequence[Any]
    sequences: Sequence[Any]


def in_parts(operands: Sequence[_T], carries: int, sequences: int = 0) -> Parts:
    """Operands by what they are to a loop. Raises BadAttribute where there are too few."""
    consts, counted_ones = len(operands) - carries - sequences, carries + sequences
    if consts < 0:
        named = "carries and sequences count" if sequences else "carries counts"
        raise BadAttribute(
            f"{named} {counted(counted_ones, 'operand')}, but there are {len(operands)}",
            expected=f"at least {counted(counted_ones, 'operand')}",
            got=counted(len(operands), "operand"),
        )
    return Parts(operands[:consts], operands[consts : consts + carries], operands[consts + carries :])


def scan_attributes(body: Body, parts: Parts, length: int, *, reverse: bool = False) -> dict[str, Any]:
    """Return the attributes of a scan of so many steps on such operands."""
    return {
        "body": body,
        "carries": len(parts.carries),
        "sequences": len(parts.sequences),
        "length": length,
        "reverse": reverse,
    }


def emit_scan(builder: Builder, body: Body, parts: Parts, length: int, *, reverse: bool = False) -> list[Value]:
    """Append a scan: its results."""
    attrs = scan_attributes(body, parts, length, reverse=reverse)
    loop = builder.emit(builder.registry.ops["scan"], [*parts.consts, *parts.carries, *parts.sequences], attrs)
    return [loop.output(k) for k in range(len(body.outputs))]


def require_results(name: str, body: Body) -> None:
    """Raise BadAttribute for a function without any result."""
    require_count(name, body, 1, or_more=True)


def require_count(name: str, body: Body, wanted: int, *, or_more: bool = False) -> None:
    """Raise BadAttribute where a function has another number of results; with `or_more`, only where it has fewer."""
    got = len(body.outputs)
    if got < wanted or (got > wanted and not or_more):
        expected = ("at least " if or_more else "") + counted(wanted, "output")
        detail = f"attribute {name}: the function must have {expected}, but has {got}"
        raise _of(body, BadAttribute(detail, expected=expected, got=counted(got, "output")))


def require_same(what: str, body: Body, wanted: Sequence[TensorType], given_types: Sequence[TensorType]) -> None:
    """Raise ShapeMismatch or DtypeMismatch where results of a body are of other types than they must be."""
    for k, (type, given) in enumerate(zip(wanted, given_types, strict=True)):
        if type.dtype != given.dtype:
            before, after = type.dtype.name, given.dtype.name
            detail = f"{what} {k} must be of dtype {before}, but the function gives {after}"
            raise _of(body, DtypeMismatch(detail, expected=before, got=after))
        if type.shape != given.shape:
            before, after = show_shape(type.shape), show_shape(given.shape)
            detail = f"{what} {k} must have shape {before}, but the function gives {after}"
            raise _of(body, ShapeMismatch(detail, expected=before, got=after))


def require_truth(name: str, body: Body) -> None:
    """Raise an error unless a function gives one bool []."""
    require_count(name, body, 1)
    require_same(f"attribute {name}: result", body, (_TRUTH,), body.outputs)


def _of(body: Body, error: _E) -> _E:
    return error if body.function is None else error.of_function(body.function)
