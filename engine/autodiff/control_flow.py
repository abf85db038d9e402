"""Control flow: the base of ops that run functions, and the gradients of their loops.

A loop runs a body step by step on three kinds of operands (`Parts`): consts, the same at each step; carries, which one
step hands to the next; sequences, of which each step has one row. Its gradient is a loop the other way round, from the
last step to the first, which computes each step again. The carries of that loop are the cotangents of the carries, and
the sums of those of the consts; its sequences are the carries as they came to each step, the sequences, and the
cotangents of the stacked results. `engine.autodiff.checkpointing` decides what is saved rather than computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

from engine.autodiff.bodies import BodyBack, derived, paths, tidy, way_back
from engine.autodiff.checkpointing import CheckpointedBack, checkpointed
from engine.ir.errors import BadAttribute, DtypeMismatch, EngineError, ShapeMismatch, counted
from engine.ir.graph import Builder, Value
from engine.ir.op import Op, ResultTypes
from engine.ir.program import Body
from engine.ir.run_context import RunContext
from engine.ir.sample import Sample
from engine.ir.tensor_type import BOOL, DTYPES, INT64, TensorType, broadcast, show_shape

_T = TypeVar("_T")
_E = TypeVar("_E", bound=EngineError)

#: FLOPs that each step of a loop counts at least
LEAST_STEP_FLOPS: Final = 32
_TRUTH: Final = TensorType((), BOOL)
#: elements that are not worth a loop
_FEW: Final = 1 << 10
#: those of one step, stated so that none is planned to find out: a hundred numbers of each are in a core's own cache
_AT_ONCE: Final = 1 << 8
#: what steps are filled up with, since a rest would be one more body to plan
_FILL: Final = 0.5


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


#: appends a loop of a body the other way round
EmitLoop = Callable[[Body, Parts], Value]
#: appends the loop once more, and gives these carries as they came to each step, and what a body makes of it, stacked
StackCarries = Callable[[Sequence[int], Body | None], Sequence[Value]]


def loop_gradients(
    body: Body, operands: Parts, arrived: Parts, stack: StackCarries, emit: EmitLoop, *, may_be_empty: bool, keeps: bool
) -> list[Value | None]:
    """Cotangents of the operands, from those that have `arrived` at carries and stacks (under `sequences`).

    `may_be_empty`: where there may be no step, what arrives at a carry may arrive at its initial value, whatever the
    body does with it. `keeps`: what is dear to compute again is stacked beside the carries.
    """
    moving = _moving(body, operands, arrived)
    stacks = [k for k, g in enumerate(arrived.sequences) if g is not None]
    carries = len(operands.carries)
    back = way_back(body, (*moving, *[carries + k for k in stacks]))
    if not moving and not back.reached:
        return [None] * sum(map(len, operands))
    kept = checkpointed(body, back, len(operands.consts)) if keeps else CheckpointedBack(back, None)
    plan = _Layout.of(body, operands, moving, stacks, kept)
    loop = emit(plan.body, plan.operands(arrived, stack))
    return plan.gradients(loop, may_be_empty=may_be_empty)


def _moving(body: Body, operands: Parts, arrived: Parts) -> list[int]:
    """The carries whose cotangents may be other than zero at some step."""
    consts, carries = len(operands.consts), len(operands.carries)
    reach = paths(body)
    moving = {k for k, g in enumerate(arrived.carries) if g is not None}
    todo = [*moving, *[carries + k for k, g in enumerate(arrived.sequences) if g is not None]]
    # A cotangent that a step hands to a carry arrives at the step before, as a cotangent of the result of that number:
    # carries join until none is new.
    while todo:
        for i in reach[todo.pop()]:
            k = i - consts
            if 0 <= k < carries and k not in moving:
                moving.add(k)
                todo.append(k)
    return sorted(moving)


@dataclass(frozen=True)
class _Layout:
    """Layout of the loop back: its body, and what stands where.

    `read` are the inputs of the step's way back that it needs, by which part they belong to.
    """

    given: Parts
    moving: Sequence[int]
    stacks: Sequence[int]
    back: BodyBack
    front: Body | None
    read: Parts
    summed: Sequence[int]
    body: Body

    @classmethod
    def of(
        cls, body: Body, operands: Parts, moving: Sequence[int], stacks: Sequence[int], kept: CheckpointedBack
    ) -> _Layout:
        back = kept.back
        read = _by_part(operands, sorted(back.used_inputs))
        summed = _by_part(operands, back.reached).consts
        step = _step_back(body, operands, moving, kept, read, summed)
        return cls(operands, moving, stacks, back, kept.front, read, summed, step)

    def operands(self, arrived: Parts, stack: StackCarries) -> Parts:
        """Return the operands of the loop back."""
        given = self.given
        came_last = enumerate(zip(given.carries, arrived.carries, strict=True))
        seeds = [x.full_like(0.0) if g is None else g for k, (x, g) in came_last if k in self.moving]
        sums = [given.consts[i].full_like(0.0) for i in self.summed]
        came = stack(self.read.carries, self.front) if self.read.carries or self.front else ()
        stacks = [arrived.sequences[k] for k in self.stacks]
        sequences = [given.sequences[i] for i in self.read.sequences]
        count = len(self.read.carries)
        through = [*came[:count], *sequences, *stacks, *came[count:]]
        return Parts([given.consts[i] for i in self.read.consts], [*seeds, *sums], through)

    def gradients(self, loop: Value, *, may_be_empty: bool) -> list[Value | None]:
        """Return the gradients with respect to the operands of the loop."""
        reached = _by_part(self.given, self.back.reached)
        consts: list[Value | None] = [None] * len(self.given.consts)
        carries: list[Value | None] = [None] * len(self.given.carries)
        sequences: list[Value | None] = [None] * len(self.given.sequences)
        for place, k in enumerate(self.moving):
            if may_be_empty or k in reached.carries:
                carries[k] = loop.output(place)
        for place, i in enumerate(self.summed):
            consts[i] = loop.output(len(self.moving) + place)
        for place, i in enumerate(reached.sequences):
            sequences[i] = loop.output(len(self.moving) + len(self.summed) + place)
        return [*consts, *carries, *sequences]


def _by_part(operands: Parts, inputs: Sequence[int]) -> Parts:
    """Inputs of a body, numbered within the part that they belong to; what comes behind all parts is left out."""
    consts, carries, sequences = map(len, operands)
    return Parts(
        [i for i in inputs if i < consts],
        [i - consts for i in inputs if consts <= i < consts + carries],
        [i - consts - carries for i in inputs if consts + carries <= i < consts + carries + sequences],
    )


def _step_back(
    body: Body, operands: Parts, moving: Sequence[int], kept: CheckpointedBack, read: Parts, summed: Sequence[int]
) -> Body:
    """Complete a step's way back: sums go on, cotangents without a path are zeros."""
    (consts, carries, _), back = map(len, operands), kept.back
    builder = body.budget.builder(body.graph.registry)
    types: list[TensorType] = []

    def leaf(type: TensorType) -> Value:
        types.append(type)
        return builder.leaf(type, len(types) - 1)

    inputs, first = back.body.inputs, len(body.inputs)
    fed: dict[int, Value] = {i: leaf(inputs[i]) for i in read.consts}
    fed |= {first + place: leaf(inputs[first + place]) for place in range(len(moving))}
    sums = [leaf(inputs[i]) for i in summed]
    fed |= {consts + k: leaf(inputs[consts + k]) for k in read.carries}
    fed |= {consts + carries + i: leaf(inputs[consts + carries + i]) for i in read.sequences}
    fed |= {i: leaf(inputs[i]) for i in range(first + len(moving), len(inputs))}
    gradients = dict(zip(back.reached, back.body.inline_into(builder, fed), strict=True))
    onward = [gradients.get(consts + k) or zeros(builder, body.outputs[k]) for k in moving]
    added = [total + gradients[i] for total, i in zip(sums, summed, strict=True)]
    stacked = [g for i, g in gradients.items() if i >= consts + carries]
    return derived(body, builder.graph([*onward, *added, *stacked]), types)


def zeros(builder: Builder, type: TensorType) -> Value:
    """Append a tensor of zeros."""
    return builder.full(type.shape, 0.0, type.dtype)


def stacking(body: Body, consts: int, carries: Sequence[int], front: Body | None = None) -> Body:
    """The body with these carries, as they come to a step, behind its results; then what `front` makes of a step."""

    def make() -> Body:
        builder = body.budget.builder(body.graph.registry)
        leaves = [builder.leaf(type, i) for i, type in enumerate(body.inputs)]
        results = tidy(body).inline_into(builder, leaves)
        came = [leaves[consts + k] for k in carries]
        made = front.inline_into(builder, leaves) if front else []
        return derived(body, builder.graph([*results, *came, *made]), body.inputs)

    return body.made(("stacking", consts, tuple(carries), front and front.digest), make)


def bounded(body: Body, consts: int, carries: int) -> Body:
    """A step of the consts, then a count; of carries; of the step's number, then sequences.

    It is the body's where its number is below the count. Elsewhere carries stay, and its stacks get zeros.
    """
    return body.made(("bounded", consts, carries), lambda: _bounded(body, consts, carries))


def _bounded(body: Body, consts: int, carries: int) -> Body:
    whole, behind = TensorType((), INT64), consts + carries
    inputs = body.inputs
    types = [*inputs[:consts], whole, *inputs[consts:behind], whole, *inputs[behind:]]
    builder = body.budget.builder(body.graph.registry)
    leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
    count, number = leaves.pop(consts), leaves.pop(behind)
    attrs = {"then": body, "otherwise": _standing(body, consts, carries)}
    step = builder.emit(builder.registry.ops["cond"], [number.less(count), *leaves], attrs)
    return body.derived(builder.graph([step.output(k) for k in range(len(body.outputs))]), types)


def _standing(body: Body, consts: int, carries: int) -> Body:
    """Return the body of a step that is not taken."""
    builder = body.budget.builder(body.graph.registry)
    leaves = [builder.leaf(type, i) for i, type in enumerate(body.inputs)]
    nothing = [zeros(builder, type) for type in body.outputs[carries:]]
    return body.derived(builder.graph([*leaves[consts : consts + carries], *nothing]), body.inputs)


def entrywise(function: Callable[..., Value], *values: Value) -> Value:
    """An elementwise function of broadcast values of one dtype: where there are many, by a map of single ones.

    What it writes has one axis at most, so that many axes cost no more to plan than one. It is finite at 0.5.
    """
    shape = broadcast(*(x.shape for x in values))
    size = TensorType(shape, values[0].dtype).size
    if size <= _FEW and len(shape) <= 1:
        return function(*values)
    rows = [(x if x.shape == shape else x.broadcast_to(shape=shape)).reshape(shape=(size,)) for x in values]
    if size <= _FEW:
        return function(*rows).reshape(shape=shape)
    first, *others = [row.pad(pad_width=(0, -size % _AT_ONCE), fill=_FILL) for row in rows]
    builder = Builder(values[0].builder.registry)
    leaves = [builder.leaf(TensorType((), x.dtype), i) for i, x in enumerate(values)]
    body = Body(builder.graph([function(*leaves)]), [leaf.type for leaf in leaves])
    mapped = first.map(*others, body=body, sequences=len(rows), at_once=_AT_ONCE).output(0)
    return mapped.slice(stops=(size,)).reshape(shape=shape)
