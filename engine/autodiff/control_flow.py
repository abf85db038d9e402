"""Control flow: the base of ops that run functions, and the gradients of scan and while.

A loop runs a body step by step on three kinds of operands (`Parts`): consts, the same at each step; carries, which one
step passes to the next; and sequences, of which each step reads one row. The body returns the next carries, then values
that are stacked, one row per step. For h' = tanh(w · h + x_t), stacking y_t = h', w is a const, h a carry, x a
sequence:

    forward:   h_1 = body(w, h_0, x_0)    h_2 = body(w, h_1, x_1)    …    h_n,  y = [h_1 … h_n]

The gradient is a loop over the same steps in reverse order. Its body is the backward body of one step:

    backward:  step t reads w (const), h̄ and w̄ (carries), h_t, x_t and ȳ_t (sequences)
               step t returns h̄ for step t − 1, w̄ + its own contribution, and a row of x̄

So cotangents of carries are carried, cotangents of consts are accumulated in carries that start at zero, and cotangents
of sequences are stacked. After the last backward step h̄ is the cotangent of h_0. The carries h_t are not results of the
forward loop, so a second one runs with a body that stacks them (`make_stacking_body`); both forward loops are later
merged into one. Each backward step recomputes its forward values from h_t, except for values that the forward loop
stacks, too (see `engine.autodiff.checkpointing`).

Only carries that can receive a nonzero cotangent take part (`_active_carries`). A `while` has the same gradient, once
its number of steps is known: `bounded` makes its step a no-op after that many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

from engine.autodiff.bodies import BackwardBody, derive_body, differentiable_inputs, differentiate_body, tidy
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

#: minimum number of FLOPs that a step of a loop counts for
LEAST_STEP_FLOPS: Final = 32
_PREDICATE: Final = TensorType((), BOOL)
#: number of elements up to which `entrywise` emits no map
_SMALL: Final = 1 << 10
#: elements per step of that map. Stating it saves planning the body to find a size; some hundred values of this size
#: fit into a core's own cache
_CHUNK: Final = 1 << 8
#: padding of the last step: a remainder would need a second body to be planned
_PADDING: Final = 0.5


class RunsFunctions(Op):
    """Base of ops that run functions. They always have several results, read through get_output, even if there is one.

    `lowered` writes an op in terms of others. Planning replaces the remaining ones, since it knows how a body runs.
    """

    operands: ClassVar[tuple[str, ...]] = ("operands...?",)
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    several = True
    narrows = True
    since = 2
    samples: ClassVar[tuple[Sample, ...]] = ()
    #: whether its `body` runs step by step, with constant consts
    steps_body: ClassVar[bool] = False
    #: number of results between carries and stacks
    extra_results: ClassVar[int] = 0

    @property
    def family(self) -> str:
        """Name shared by loops that differ in their stacks alone, so that they can be merged."""
        return self.name

    def emit_loop(self, builder: Builder, operands: Sequence[Value], attrs: Mapping[str, Any]) -> Value:
        """Append a loop of this family, with other stacks. Without carries or consts it has no operands."""
        return builder.emit(self, operands, attrs)

    def consts(self, operands: int, *, carries: int = 0, sequences: int = 0, **attrs: Any) -> int:
        """Return the number of consts, which are the first operands."""
        return operands - carries - sequences

    def lowered(self, *operands: Any, **attrs: Any) -> Value | None:
        """Return the op in terms of others, after all differentiation and batching; None if it runs as it is."""
        return None

    def check_connection(self, types: Sequence[ResultTypes], results: Sequence[TensorType]) -> None:
        """Do nothing: the nodes of the functions check where gradients end."""

    def forward(self, run: RunContext, *arrays: Any, **attrs: Any) -> None:
        """Raise TypeError: planning must have replaced the op."""
        raise TypeError(f"{self.name} is to be planned before it runs")


class Parts(NamedTuple):
    """Operands of a loop, or any values with one entry per operand, by kind."""

    consts: Sequence[Any]
    carries: Sequence[Any]
    sequences: Sequence[Any]


def split_operands(operands: Sequence[_T], carries: int, sequences: int = 0) -> Parts:
    """Split operands into consts, carries and sequences. Raises BadAttribute if there are too few."""
    consts, others = len(operands) - carries - sequences, carries + sequences
    if consts < 0:
        named = "carries and sequences count" if sequences else "carries counts"
        raise BadAttribute(
            f"{named} {counted(others, 'operand')}, but there are {len(operands)}",
            attribute="carries" if carries else "sequences",
            expected=f"at least {counted(others, 'operand')}",
            got=counted(len(operands), "operand"),
        )
    return Parts(operands[:consts], operands[consts : consts + carries], operands[consts + carries :])


def scan_attributes(body: Body, parts: Parts, length: int, *, reverse: bool = False) -> dict[str, Any]:
    """Return the attributes of a scan of `length` steps over these operands."""
    return {
        "body": body,
        "carries": len(parts.carries),
        "sequences": len(parts.sequences),
        "length": length,
        "reverse": reverse,
    }


def emit_scan(builder: Builder, body: Body, parts: Parts, length: int, *, reverse: bool = False) -> list[Value]:
    """Append a scan and return its results."""
    attrs = scan_attributes(body, parts, length, reverse=reverse)
    loop = builder.emit(builder.registry.ops["scan"], [*parts.consts, *parts.carries, *parts.sequences], attrs)
    return [loop.output(k) for k in range(len(body.outputs))]


def require_results(name: str, body: Body) -> None:
    """Raise BadAttribute for a function without results."""
    require_count(name, body, 1, or_more=True)


def require_count(name: str, body: Body, count: int, *, or_more: bool = False) -> None:
    """Raise BadAttribute unless a function has `count` results; with `or_more`, at least that many."""
    received = len(body.outputs)
    if received < count or (received > count and not or_more):
        expected = ("at least " if or_more else "") + counted(count, "output")
        detail = f"attribute {name}: the function must have {expected}, but has {received}"
        error = BadAttribute(detail, attribute=name, expected=expected, got=counted(received, "output"))
        raise _at_outputs(body, error)


def require_same(
    subject: str, body: Body, expected_types: Sequence[TensorType], received_types: Sequence[TensorType]
) -> None:
    """Raise ShapeMismatch or DtypeMismatch unless results of a body have the expected types."""
    for k, (expected, received) in enumerate(zip(expected_types, received_types, strict=True)):
        if expected.dtype != received.dtype:
            expected_text, received_text = expected.dtype.name, received.dtype.name
            detail = f"{subject} {k} must have dtype {expected_text}, but the function returns {received_text}"
            raise _at_outputs(body, DtypeMismatch(detail, expected=expected_text, got=received_text), k)
        if expected.shape != received.shape:
            expected_text, received_text = show_shape(expected.shape), show_shape(received.shape)
            detail = f"{subject} {k} must have shape {expected_text}, but the function returns {received_text}"
            raise _at_outputs(body, ShapeMismatch(detail, expected=expected_text, got=received_text), k)


def require_predicate(name: str, body: Body) -> None:
    """Raise BadAttribute, DtypeMismatch or ShapeMismatch unless a function returns a single bool []."""
    require_count(name, body, 1)
    require_same(f"attribute {name}: result", body, (_PREDICATE,), body.outputs)


def _at_outputs(body: Body, error: _E, *position: int) -> _E:
    """Locate the error at the outputs of the client's function, or at the one at `position`. Returns the error."""
    return error if body.function is None else error.at_function(body.function).in_field("outputs", *position)


#: appends a loop of a body over the same steps in reverse order
EmitLoop = Callable[[Body, Parts], Value]
#: appends the loop again, and returns the stacks of these carries (as they enter each step) and of the body's results
StackCarries = Callable[[Sequence[int], Body | None], Sequence[Value]]


def loop_gradients(
    body: Body,
    operands: Parts,
    incoming: Parts,
    stack: StackCarries,
    emit: EmitLoop,
    *,
    may_be_empty: bool,
    checkpointing: bool,
) -> list[Value | None]:
    """Return the cotangents of the operands, given the cotangents `incoming` at carries and stacks (under `sequences`).

    With `may_be_empty`, the loop may run no step, so a carry's cotangent may also reach its initial value directly.
    With `checkpointing`, costly values are saved by the forward loop, see `engine.autodiff.checkpointing`.
    """
    active = _active_carries(body, operands, incoming)
    stacks = [k for k, g in enumerate(incoming.sequences) if g is not None]
    carries = len(operands.carries)
    back = differentiate_body(body, (*active, *[carries + k for k in stacks]))
    # No differentiable path leads from the incoming cotangents to an operand: emit no loop at all.
    if not active and not back.reached:
        return [None] * sum(map(len, operands))
    checkpoint = checkpointed(body, back, len(operands.consts)) if checkpointing else CheckpointedBack(back, None)
    layout = _Layout.create(body, operands, active, stacks, checkpoint)
    loop = emit(layout.body, layout.operands(incoming, stack))
    return layout.gradients(loop, may_be_empty=may_be_empty)


def _active_carries(body: Body, operands: Parts, incoming: Parts) -> list[int]:
    """Return the carries whose cotangents may be nonzero at some step."""
    consts, carries = len(operands.consts), len(operands.carries)
    reach = differentiable_inputs(body)
    active = {k for k, g in enumerate(incoming.carries) if g is not None}
    pending = [*active, *[carries + k for k, g in enumerate(incoming.sequences) if g is not None]]
    # A cotangent that a backward step returns for a carry is, at the step before, the cotangent of the result with that
    # number. That result may depend on further carries, so the set grows until it is closed.
    while pending:
        for i in reach[pending.pop()]:
            k = i - consts
            if 0 <= k < carries and k not in active:
                active.add(k)
                pending.append(k)
    return sorted(active)


@dataclass(frozen=True)
class _Layout:
    """Layout of the backward loop: its body, and which operands and results stand at which positions.

    `read` lists the inputs that the step's backward body reads, by kind; `summed` the consts whose cotangents
    accumulate.
    """

    operand_parts: Parts
    active: Sequence[int]
    stacks: Sequence[int]
    back: BackwardBody
    front: Body | None
    read: Parts
    summed: Sequence[int]
    body: Body

    @classmethod
    def create(
        cls, body: Body, operands: Parts, active: Sequence[int], stacks: Sequence[int], checkpoint: CheckpointedBack
    ) -> _Layout:
        back = checkpoint.back
        read = _by_part(operands, sorted(back.used_inputs))
        summed = _by_part(operands, back.reached).consts
        step = _step_back(body, operands, active, checkpoint, read, summed)
        return cls(operands, active, stacks, back, checkpoint.front, read, summed, step)

    def operands(self, incoming: Parts, stack: StackCarries) -> Parts:
        """Return the operands of the backward loop."""
        # An active carry without a cotangent of its own gets one from a later step or a stack: it starts at zero.
        parts = self.operand_parts
        last_cotangents = enumerate(zip(parts.carries, incoming.carries, strict=True))
        seeds = [x.full_like(0.0) if g is None else g for k, (x, g) in last_cotangents if k in self.active]
        sums = [parts.consts[i].full_like(0.0) for i in self.summed]
        # The second forward loop, with further stacks. The compiler later merges it with the first one.
        forward_stacks = stack(self.read.carries, self.front) if self.read.carries or self.front else ()
        stacks = [incoming.sequences[k] for k in self.stacks]
        sequences = [parts.sequences[i] for i in self.read.sequences]
        count = len(self.read.carries)
        sequences_back = [*forward_stacks[:count], *sequences, *stacks, *forward_stacks[count:]]
        return Parts([parts.consts[i] for i in self.read.consts], [*seeds, *sums], sequences_back)

    def gradients(self, loop: Value, *, may_be_empty: bool) -> list[Value | None]:
        """Return the gradients with respect to the operands of the forward loop."""
        reached = _by_part(self.operand_parts, self.back.reached)
        consts: list[Value | None] = [None] * len(self.operand_parts.consts)
        carries: list[Value | None] = [None] * len(self.operand_parts.carries)
        sequences: list[Value | None] = [None] * len(self.operand_parts.sequences)
        for position, k in enumerate(self.active):
            # If at least one step runs and the first ignores the initial value, the carry has no path to it, though
            # cotangents from later steps may have passed through the carry.
            if may_be_empty or k in reached.carries:
                carries[k] = loop.output(position)
        for position, i in enumerate(self.summed):
            consts[i] = loop.output(len(self.active) + position)
        for position, i in enumerate(reached.sequences):
            sequences[i] = loop.output(len(self.active) + len(self.summed) + position)
        return [*consts, *carries, *sequences]


def _by_part(operands: Parts, inputs: Sequence[int]) -> Parts:
    """Split inputs of a body by kind, and renumber them within each kind. Inputs after all operands are left out."""
    consts, carries, sequences = map(len, operands)
    return Parts(
        [i for i in inputs if i < consts],
        [i - consts for i in inputs if consts <= i < consts + carries],
        [i - consts - carries for i in inputs if consts + carries <= i < consts + carries + sequences],
    )


def _step_back(
    body: Body, operands: Parts, active: Sequence[int], checkpoint: CheckpointedBack, read: Parts, summed: Sequence[int]
) -> Body:
    """Complete the backward body of a step: accumulate cotangents of consts, and use zeros where there is no path."""
    (consts, carries, _), back = map(len, operands), checkpoint.back
    builder = body.budget.builder(body.graph.registry)
    types: list[TensorType] = []

    def leaf(type: TensorType) -> Value:
        types.append(type)
        return builder.leaf(type, len(types) - 1)

    # Leaves are created in the order of the loop's operands: consts, then carries (cotangents of carries, sums), then
    # sequences (stacked carries, sequences, cotangents of stacks, saved values). `fed` maps them to the inputs of the
    # backward body, which have another order.
    inputs, first = back.body.inputs, len(body.inputs)
    fed: dict[int, Value] = {i: leaf(inputs[i]) for i in read.consts}
    fed |= {first + position: leaf(inputs[first + position]) for position in range(len(active))}
    sums = [leaf(inputs[i]) for i in summed]
    fed |= {consts + k: leaf(inputs[consts + k]) for k in read.carries}
    fed |= {consts + carries + i: leaf(inputs[consts + carries + i]) for i in read.sequences}
    fed |= {i: leaf(inputs[i]) for i in range(first + len(active), len(inputs))}
    gradients = dict(zip(back.reached, back.body.inline_into(builder, fed), strict=True))
    # A carry that this step ignores passes no cotangent on to the step before: zeros, not the incoming cotangent.
    passed_on = [gradients.get(consts + k) or zeros(builder, body.outputs[k]) for k in active]
    accumulated = [total + gradients[i] for total, i in zip(sums, summed, strict=True)]
    # Cotangents of sequences are stacks: the backward loop visits the same entries, so row t belongs to entry t.
    stacked = [g for i, g in gradients.items() if i >= consts + carries]
    return derive_body(body, builder.graph([*passed_on, *accumulated, *stacked]), types)


def zeros(builder: Builder, type: TensorType) -> Value:
    """Append a tensor of zeros."""
    return builder.full(type.shape, 0.0, type.dtype)


def make_stacking_body(body: Body, consts: int, carries: Sequence[int], front: Body | None = None) -> Body:
    """Return the body with further results: these carries as they enter a step, then the results of `front`."""

    def make() -> Body:
        builder = body.budget.builder(body.graph.registry)
        leaves = [builder.leaf(type, i) for i, type in enumerate(body.inputs)]
        results = tidy(body).inline_into(builder, leaves)
        entering = [leaves[consts + k] for k in carries]
        saved = front.inline_into(builder, leaves) if front else []
        return derive_body(body, builder.graph([*results, *entering, *saved]), body.inputs)

    return body.cached(("stacking", consts, tuple(carries), front and front.digest), make)


def bounded(body: Body, consts: int, carries: int) -> Body:
    """Return a step that does nothing once `count` steps have run: then carries stay, and stacks get zeros.

    Its inputs are the consts and the count; the carries; the step's number and the sequences.
    """
    return body.cached(("bounded", consts, carries), lambda: _bounded(body, consts, carries))


def _bounded(body: Body, consts: int, carries: int) -> Body:
    integer, end = TensorType((), INT64), consts + carries
    inputs = body.inputs
    types = [*inputs[:consts], integer, *inputs[consts:end], integer, *inputs[end:]]
    builder = body.budget.builder(body.graph.registry)
    leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
    count, number = leaves.pop(consts), leaves.pop(end)
    # The loop always has the maximum number of steps. Steps beyond `count` must leave the carries unchanged.
    attrs = {"then": body, "otherwise": _skipped_step(body, consts, carries)}
    step = builder.emit(builder.registry.ops["cond"], [number.less(count), *leaves], attrs)
    return body.derived(builder.graph([step.output(k) for k in range(len(body.outputs))]), types)


def _skipped_step(body: Body, consts: int, carries: int) -> Body:
    """Return the body of a step that does nothing."""
    builder = body.budget.builder(body.graph.registry)
    leaves = [builder.leaf(type, i) for i, type in enumerate(body.inputs)]
    rows = [zeros(builder, type) for type in body.outputs[carries:]]
    return body.derived(builder.graph([*leaves[consts : consts + carries], *rows]), body.inputs)


def entrywise(function: Callable[..., Value], *values: Value) -> Value:
    """Apply an elementwise function to broadcast values of one dtype: if they are large, by a map over single elements.

    The function emits nodes of at most one axis, so planning costs do not grow with the rank. It must be finite at 0.5.
    """
    shape = broadcast(*(x.shape for x in values))
    size = TensorType(shape, values[0].dtype).size
    if size <= _SMALL and len(shape) <= 1:
        return function(*values)
    rows = [(x if x.shape == shape else x.broadcast_to(shape=shape)).reshape(shape=(size,)) for x in values]
    if size <= _SMALL:
        return function(*rows).reshape(shape=shape)
    # A map plans the function's nodes once, for one element, and computes them in chunks that stay in cache.
    first, *others = [row.pad(pad_width=(0, -size % _CHUNK), fill=_PADDING) for row in rows]
    builder = Builder(values[0].builder.registry)
    leaves = [builder.leaf(TensorType((), x.dtype), i) for i, x in enumerate(values)]
    body = Body(builder.graph([function(*leaves)]), [leaf.type for leaf in leaves])
    mapped = first.map(*others, body=body, sequences=len(rows), at_once=_CHUNK).output(0)
    return mapped.slice(stops=(size,)).reshape(shape=shape)
