"""Scan and map: loops of a known length, and their gradients.

A `scan` runs its body once per step, on consts (the same at each step), carries (each step receives them from the step
before and returns them for the next) and one entry of each sequence. The body's other results are stacked. Its gradient
is a scan in the opposite direction, whose body is the backward pass of a single step. That step needs its inputs again:
a second forward scan stacks the carries as each step received them, and the planner merges it with the first. With the
const w, the carry h, the sequence x, and the body h' = tanh(w · h + x):

    forward            t = 0 … T − 1:  hs[t] = h;  h = tanh(w · h + x[t])
    backward           t = T − 1 … 0:  y = tanh(w · hs[t] + x[t]);  p = (1 − y²) · gh
                       gx[t] = p;  gw = gw + p · hs[t];  gh = p · w

The backward scan's carries are gh, which starts as the cotangent of the last h and ends as that of the first, and gw,
which starts at 0: the cotangent of a const is a sum over the steps. The cotangent of a sequence is a stack. The step
recomputes tanh; checkpointing (`engine.autodiff.checkpointing`) stacks a value instead if it is expensive to recompute.
`CountedScan` is the variant for a number of steps known only at run time, the backward pass of a `while`.

A `map` runs its body on each entry without carries, in batches: `lowered` writes it as a scan over batches of the
batched body. Its gradient is a `SummingMap` of the body's backward pass. The cotangents of consts are sums over all
entries, so that they become carries of that scan, and no stack of one cotangent per entry is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar, Final

from engine.autodiff.bodies import (
    batched,
    derive_body,
    differentiate_body,
    narrow,
    required_by_step,
    required_inputs,
    tidy,
)
from engine.autodiff.control_flow import (
    Parts,
    RunsFunctions,
    bounded,
    emit_scan,
    loop_gradients,
    make_stacking_body,
    require_count,
    require_results,
    require_same,
    scan_attributes,
    split_operands,
    zeros,
)
from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute, ShapeMismatch, counted
from engine.ir.graph import Builder, Value
from engine.ir.op import Narrowed, ResultTypes
from engine.ir.program import Body
from engine.ir.tensor_type import FLOAT64, TensorType, show_shape
from engine.ops.common.batching import batch_size, pack
from engine.ops.index.slice import slice_axis

#: default batch size of a map: bytes of all values that the body computes for the entries of one batch
_BATCH_BYTES: Final = 1 << 26


class Scan(RunsFunctions):
    """carries, stacks = body(consts, carries, entry t of each sequence), step by step for t = 0 … length − 1.

    The operands are consts, then `carries` initial values, then `sequences` tensors that are read along the leading
    axis; with `reverse`, from the last entry to the first. The body returns the carries for the next step, of the same
    types, and then values to stack. Entry t of a stack is the value from step t. Results: the last carries, then the
    stacks [length, …]. JAX: `lax.scan`, whose body can read variables around it. PyTorch: a Python loop.
    """

    name = "scan"
    section = "scan"
    steps_body = True
    attrs: ClassVar[Mapping[str, Attr]] = {
        "body": Attr(
            "function",
            doc="function of consts, carries and one entry of each sequence; returns carries, then values to stack",
        ),
        "carries": Attr("int", 0, "number of operands that are initial values of carries", minimum=0),
        "sequences": Attr("int", 0, "number of operands, the last ones, that are sequences", minimum=0),
        "length": Attr("int", None, "number of steps; default: the sequences' number of entries", minimum=0),
        "reverse": Attr("bool", False, "whether to run from the last entry to the first"),
    }
    gradient = "a scan in the opposite direction that recomputes each step"

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Type the body for these operands and set the length. Raises EngineError for a body that does not fit."""
        parts = split_operands(types, attrs["carries"], attrs["sequences"])
        length = scan_length(parts, attrs["length"])
        slices = [type.with_shape(type.shape[1:]) for type in parts.sequences]
        body: Body = attrs["body"].typed((*parts.consts, *parts.carries, *slices))
        require_results("body", body)
        require_count("body", body, len(parts.carries), or_more=True)
        require_same("carry", body, parts.carries, body.outputs[: len(parts.carries)])
        return {**attrs, "body": body, "length": length}

    def infer(self, *types: TensorType, body: Body, carries: int, length: int, **attrs: Any) -> ResultTypes:
        """Return the types of the carries, and of the stacks of the body's other results."""
        return (*body.outputs[:carries], *[type.with_shape((length, *type.shape)) for type in body.outputs[carries:]])

    def narrowed(self, attrs: Mapping[str, Any], operands: int, read: Set[int]) -> Narrowed:
        """Drop carries and stacks that are not read, neither after the loop nor at a later step."""
        body: Body = attrs["body"]
        parts = split_operands(range(len(body.inputs)), attrs["carries"], attrs["sequences"])
        results, inputs = required_by_step(body, len(parts.consts), attrs["carries"], read)
        narrowed_attrs = {
            "body": narrow(body, results, inputs),
            "carries": sum(i in parts.carries for i in inputs),
            "sequences": sum(i in parts.sequences for i in inputs),
        }
        # a CountedScan has one operand more than its body has inputs: the count, which stays
        return Narrowed({**attrs, **narrowed_attrs}, [*inputs, *range(len(body.inputs), operands)], results)

    def vjp(self, g: Sequence[Value | None], y: Value, *operands: Value, **attrs: Any) -> Sequence[Value | None]:
        """Append the backward scan. With no steps, a carry's cotangent passes to its initial value."""
        return self.gradients(g, y, operands, **attrs)

    def gradients(
        self,
        g: Sequence[Value | None],
        y: Value,
        operands: Sequence[Value],
        *,
        body: Body,
        carries: int,
        sequences: int,
        length: int,
        reverse: bool,
        count: Value | None = None,
    ) -> list[Value | None]:
        """Return the cotangents of the operands, except that of `count` if there is one."""
        parts = split_operands(operands, carries, sequences)

        def stack(carry_indices: Sequence[int], front: Body | None) -> Sequence[Value]:
            stacking_body = make_stacking_body(body, len(parts.consts), carry_indices, front)
            loop = _emit(y, stacking_body, parts, length, reverse=reverse, count=count)
            return [loop.output(k) for k in range(len(body.outputs), len(stacking_body.outputs))]

        return loop_gradients(
            body,
            parts,
            Parts((), g[:carries], g[carries:]),
            stack,
            lambda backward_body, backward_operands: _emit(
                y, backward_body, backward_operands, length, reverse=not reverse, count=count
            ),
            may_be_empty=length == 0 or count is not None,
            checkpointing=y.builder.limits.checkpointing,
        )

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """Append a scan of the batched body; a carry that is mapped after any step is mapped from the start."""
        return self.batch_steps(mapped, operands, **attrs)

    def batch_steps(
        self,
        mapped: Sequence[bool],
        operands: Sequence[Value],
        *,
        body: Body,
        carries: int,
        count: Value | None = None,
        **attrs: Any,
    ) -> Value:
        """Append one loop that advances all examples together, and pack its results."""
        n, sequences = batch_size(mapped, operands), attrs["sequences"]
        flags = split_operands(mapped, carries, sequences)
        batched_body, mapped_carries = batch_carries(body, flags, n, len(body.outputs) - carries)
        parts = split_operands(operands, carries, sequences)
        initial = [
            add_batch_axis(x, m, w, n) for x, m, w in zip(parts.carries, flags.carries, mapped_carries, strict=True)
        ]
        sequences_by_step = [
            swap_leading_axes(x) if m else x for x, m in zip(parts.sequences, flags.sequences, strict=True)
        ]
        loop_parts = Parts(parts.consts, initial, sequences_by_step)
        loop = _emit(operands[0], batched_body, loop_parts, attrs["length"], reverse=attrs["reverse"], count=count)
        final_carries = [
            add_batch_axis(loop.output(k), is_mapped, True, n) for k, is_mapped in enumerate(mapped_carries)
        ]
        stacks = [swap_leading_axes(loop.output(k)) for k in range(carries, len(body.outputs))]
        return pack(loop.builder, [*final_carries, *stacks])


class CountedScan(Scan):
    """Scan whose last operand is the number of steps, an int64 []; later entries of the stacks are zeros.

    The backward pass of a `while`. With `reverse`, it begins at the last step that is taken.
    """

    name = "counted_scan"
    internal = True

    def consts(self, operands: int, **attrs: Any) -> int:
        """Count the consts as a scan does, among the operands before the count."""
        return super().consts(operands - 1, **attrs)

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Check as a scan does, on the operands before the count."""
        return super().canonical(attrs, *types[:-1])

    def vjp(self, g: Sequence[Value | None], y: Value, *operands: Value, **attrs: Any) -> Sequence[Value | None]:
        """Append the scan in the opposite direction, with the same count."""
        *scanned, count = operands
        return [*self.gradients(g, y, scanned, count=count, **attrs), None]

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """Batch as a scan; if examples have different counts, freeze each once its count is reached."""
        *scanned, count = operands
        if not mapped[-1]:
            return self.batch_steps(mapped[:-1], scanned, count=count, **attrs)
        return self._batch_counts(mapped, scanned, count, **attrs)

    def _batch_counts(
        self, mapped: Sequence[bool], scanned: Sequence[Value], counts: Value, *, body: Body, length: int, **attrs: Any
    ) -> Value:
        """Batch examples of different counts: run up to the largest, freezing each example beyond its own count."""
        carries, n = attrs["carries"], counts.shape[0]
        parts = split_operands(scanned, carries, attrs["sequences"])
        flags = split_operands(mapped[:-1], carries, attrs["sequences"])
        all_moving = Parts(flags.consts, [True] * carries, flags.sequences)
        batched_body, _ = batch_carries(body, all_moving, n, len(body.outputs) - carries)
        consts = [*parts.consts, counts.cast(dtype=FLOAT64)]  # as floats: compiled kernels read no integers
        initial = [add_batch_axis(x, m, True, n) for x, m in zip(parts.carries, flags.carries, strict=True)]
        sequences_by_step = [
            swap_leading_axes(x) if m else x for x, m in zip(parts.sequences, flags.sequences, strict=True)
        ]
        const_count = len(parts.consts)
        masked_body = batched_body.cached(
            ("held", const_count, carries), lambda: _mask_steps(batched_body, const_count, carries)
        )
        step_numbers = counts.builder.arange(length).cast(dtype=FLOAT64)
        loop_parts = Parts(consts, initial, [step_numbers, *sequences_by_step])
        loop = _emit(counts, masked_body, loop_parts, length, reverse=attrs["reverse"], count=counts.max())
        stacks = [swap_leading_axes(loop.output(k)) for k in range(carries, len(body.outputs))]
        return pack(loop.builder, [*[loop.output(k) for k in range(carries)], *stacks])

    def written_out(
        self, *operands: Value, body: Body, carries: int, sequences: int, length: int, reverse: bool
    ) -> Sequence[Value]:
        """Return the results of a scan of all `length` steps that leaves the carries alone beyond the count."""
        *scanned, count = operands
        return emit_bounded_scan(body, split_operands(scanned, carries, sequences), length, count, reverse=reverse)


_COUNTED: Final = CountedScan()


def _mask_steps(batched_body: Body, consts: int, carries: int) -> Body:
    """Build a batched step of the consts, the counts, the carries, the step's number and the sequences.

    If the number has reached an example's count, the example's carries stay and its stacks get zeros.
    """
    (n,) = batched_body.inputs[consts].shape[:1] if carries else batched_body.outputs[carries].shape[:1]
    builder = batched_body.budget.builder(batched_body.graph.registry)
    types = [
        *batched_body.inputs[:consts],
        TensorType((n,), FLOAT64),
        *batched_body.inputs[consts : consts + carries],
        TensorType((), FLOAT64),
        *batched_body.inputs[consts + carries :],
    ]
    leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
    counts, step = leaves[consts], leaves[consts + 1 + carries]
    old_carries = leaves[consts + 1 : consts + 1 + carries]
    results = batched_body.inline_into(builder, [*leaves[:consts], *old_carries, *leaves[consts + carries + 2 :]])
    is_active = step.less(counts)
    new_carries = [select_by_example(is_active, new, old) for new, old in zip(results, old_carries, strict=False)]
    stacked = [select_by_example(is_active, new, new.builder.full((), 0.0, new.dtype)) for new in results[carries:]]
    return derive_body(batched_body, builder.graph([*new_carries, *stacked]), types)


def select_by_example(flags: Value, yes: Value, no: Value) -> Value:
    """Select for each example, by its flag [N]: `yes` [N, …] if set, else `no`."""
    return flags.reshape(shape=(*flags.shape, *[1] * (yes.ndim - 1))).where(yes, no)


def batch_carries(body: Body, mapped: Parts, n: int, stacks: int) -> tuple[Body, tuple[bool, ...]]:
    """Batch a body on n examples, and return which carries have the batch axis before and after each step."""
    mapped_carries, carries = tuple(mapped.carries), len(mapped.carries)
    # A carry that a step makes dependent on the example is mapped at the next step too, which may map further carries:
    # repeat until nothing changes.
    while True:
        flags = (*mapped.consts, *mapped_carries, *mapped.sequences)
        attempt = batched(body, flags, n, (*mapped_carries, *[True] * stacks))
        if attempt.mapped[:carries] == mapped_carries:
            return attempt.body, mapped_carries
        mapped_carries = attempt.mapped[:carries]


def add_batch_axis(x: Value, is_mapped: bool, is_needed: bool, n: int) -> Value:
    """Broadcast x to a leading axis of extent n if it is needed and not there yet."""
    return x.broadcast_to(shape=(n, *x.shape)) if is_needed and not is_mapped else x


def swap_leading_axes(x: Value) -> Value:
    """Swap the first two axes, examples and steps."""
    return x.transpose(axes=(1, 0, *range(2, x.ndim)))


def _emit(like: Value, body: Body, parts: Parts, length: int, *, reverse: bool, count: Value | None = None) -> Value:
    operands = [*parts.consts, *parts.carries, *parts.sequences]
    attrs = scan_attributes(body, parts, length, reverse=reverse)
    builder = like.builder
    if count is None:
        return builder.emit(builder.registry.ops["scan"], operands, attrs)
    return builder.emit(_COUNTED, [*operands, count], attrs)


def emit_counted(body: Body, parts: Parts, length: int, count: Value, *, reverse: bool) -> Value:
    """Append a scan of `count` steps, at most `length`."""
    return _emit(count, body, parts, length, reverse=reverse, count=count)


def emit_bounded_scan(body: Body, parts: Parts, length: int, count: Value, *, reverse: bool = False) -> list[Value]:
    """Append a scan of `length` steps that takes only the first `count`, and return its results."""
    step = bounded(body, len(parts.consts), len(parts.carries))
    steps = Parts([*parts.consts, count], parts.carries, [count.builder.arange(length), *parts.sequences])
    return emit_scan(count.builder, step, steps, length, reverse=reverse)


def scan_length(parts: Parts, given: int | None = None) -> int:
    """Return the length of all sequences, and `given` if stated. Raises ShapeMismatch and BadAttribute."""
    first_sequence = len(parts.consts) + len(parts.carries)
    length = given
    for position, type in enumerate(parts.sequences, first_sequence):
        if not type.ndim:
            raise ShapeMismatch(
                f"operand {position}, a sequence, must have a leading axis to iterate over, but has shape []",
                operand=position,
                expected="a leading axis",
                got="shape []",
            )
        if length is not None and type.shape[0] != length:
            source = "the attribute length" if given is not None else f"operand {first_sequence}"
            raise ShapeMismatch(
                f"operand {position}, a sequence, must have {counted(length, 'entry', 'entries')}, like {source}, "
                f"but has shape {show_shape(type.shape)}",
                operand=position,
                expected=counted(length, "entry", "entries"),
                got=show_shape(type.shape),
            )
        length = type.shape[0]
    if length is None:
        raise BadAttribute(
            "attribute length is required if there are no sequences",
            attribute="length",
            expected="length",
            got="nothing",
        )
    return length


class Map(RunsFunctions):
    """stacks = body(consts, entry t of each sequence) for every t, in no particular order.

    The operands are consts, then `sequences` tensors of equal leading extent. `at_once` entries are computed in one
    batch. Each result of the body gives a stack [entries, …]. JAX: `lax.map`, whose batch_size is `at_once`. JAX and
    PyTorch: `vmap`, which computes all entries in one batch.
    """

    name = "map"
    section = "map"
    operands = ("operands...",)
    attrs: ClassVar[Mapping[str, Attr]] = {
        "body": Attr("function", doc="function of consts and one entry of each sequence; returns the values to stack"),
        "sequences": Attr("int", 0, "number of operands, the last ones, that are sequences; at least one", minimum=0),
        "at_once": Attr("int", None, "number of entries computed in one batch; default: as many as fit", minimum=1),
    }
    gradient = "a map of the body's gradient, summed over the entries for consts"

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Type the body for these operands. Raises EngineError for a body or sequences that do not fit."""
        parts = split_operands(types, 0, attrs["sequences"])
        if not parts.sequences:
            raise BadAttribute(
                "attribute sequences must count at least one operand",
                attribute="sequences",
                expected="at least 1",
                got="0",
            )
        scan_length(parts)
        entries = [type.with_shape(type.shape[1:]) for type in parts.sequences]
        body: Body = attrs["body"].typed((*parts.consts, *entries))
        require_results("body", body)
        return {**attrs, "body": body}

    def infer(self, *types: TensorType, body: Body, sequences: int, **attrs: Any) -> ResultTypes:
        """Return the types of the stacks."""
        return self._stacks(types, body.outputs, sequences)

    @staticmethod
    def _stacks(types: Sequence[TensorType], outputs: Sequence[TensorType], sequences: int) -> ResultTypes:
        n = types[len(types) - sequences].shape[0]
        return tuple([type.with_shape((n, *type.shape)) for type in outputs])

    def narrowed(self, attrs: Mapping[str, Any], operands: int, read: Set[int]) -> Narrowed:
        """Drop unread results and the operands that only they need, but never the first sequence.

        The first sequence determines the number of entries. It cannot be a cotangent, which forward mode only feeds as
        a placeholder: `vjp` passes cotangents after the original sequences.
        """
        body, first = attrs["body"], operands - attrs["sequences"]
        results, inputs = sorted(read), sorted(required_inputs(body, read) | {first})
        narrowed_attrs = {"body": narrow(body, results, inputs), "sequences": sum(i >= first for i in inputs)}
        if "sums" in attrs:
            narrowed_attrs["sums"] = sum(k < attrs["sums"] for k in results)
        return Narrowed({**attrs, **narrowed_attrs}, inputs, results)

    def vjp(
        self,
        g: Sequence[Value | None],
        y: Value,
        *operands: Value,
        body: Body,
        sequences: int,
        at_once: int | None,
        sums: int = 0,
    ) -> Sequence[Value | None]:
        """Append a map of the body's backward pass. The cotangent of a sum is the same for each entry."""
        parts = split_operands(operands, 0, sequences)
        with_cotangent = tuple(k for k, cotangent in enumerate(g) if cotangent is not None)
        backward = differentiate_body(body, with_cotangent)
        gradients: list[Value | None] = [None] * len(operands)
        if not backward.reached:
            return gradients
        sum_indices, stack_indices = [k for k in with_cotangent if k < sums], [k for k in with_cotangent if k >= sums]
        backward_body = _move_shared_cotangents(backward.body, len(parts.consts), sequences, len(sum_indices))
        backward_operands = [
            *parts.consts,
            *[g[k] for k in sum_indices],
            *parts.sequences,
            *[g[k] for k in stack_indices],
        ]
        attrs = {
            "body": backward_body,
            "sequences": sequences + len(stack_indices),
            "at_once": at_once,
            # `reached` ascends and consts come first, so that the sums are the first results
            "sums": sum(i < len(parts.consts) for i in backward.reached),
        }
        loop = y.builder.emit(_SUMMING, backward_operands, attrs)
        for position, i in enumerate(backward.reached):
            gradients[i] = loop.output(position)
        return gradients

    def batch(
        self, mapped: Sequence[bool], *operands: Value, body: Body, sequences: int, sums: int = 0, **attrs: Any
    ) -> Value:
        """Append a map of the batched body."""
        n, parts, flags = (
            batch_size(mapped, operands),
            split_operands(operands, 0, sequences),
            split_operands(mapped, 0, sequences),
        )
        sequences_by_entry = [
            swap_leading_axes(x) if m else x for x, m in zip(parts.sequences, flags.sequences, strict=True)
        ]
        map_attrs = {"body": batched(body, mapped, n).body, "sequences": sequences, **attrs}
        loop = operands[0].builder.emit(
            self, [*parts.consts, *sequences_by_entry], map_attrs | ({"sums": sums} if sums else {})
        )
        results = [loop.output(k) for k in range(len(body.outputs))]
        return pack(loop.builder, [*results[:sums], *map(swap_leading_axes, results[sums:])])

    def lowered(self, *operands: Value, body: Body, sequences: int, at_once: int | None, sums: int = 0) -> Value | None:
        """Write the map as a scan over batches, and one batch of the remaining entries."""
        parts, builder = split_operands(operands, 0, sequences), operands[0].builder
        entries = parts.sequences[0].shape[0]
        if at_once is None:
            entry_bytes = sum(type.nbytes for node in tidy(body).graph.nodes for type in node.types)
            # the values of one batch take at most a quarter of the memory limit
            at_once = max(1, min(_BATCH_BYTES, builder.limits.bytes // 4) // max(1, entry_bytes))
        batch = min(entries, at_once)
        full_batches = entries // batch if batch else 0
        results = []
        if full_batches > 1:
            results.append(_scan_batches(builder, parts, body, batch, full_batches, sums))
        start = full_batches * batch if full_batches > 1 else 0
        if start < entries or not results:
            # the last, smaller batch is not a step of the scan, whose batches have one shape: it is inlined after it
            remaining = [slice_axis(x, 0, start, entries) if start else x for x in parts.sequences]
            mapped = (*[False] * len(parts.consts), *[True] * sequences)
            outputs = batched(body, mapped, entries - start).body.inline_into(builder, [*parts.consts, *remaining])
            results.append([*[x.sum(axes=(0,)) for x in outputs[:sums]], *outputs[sums:]])
        return pack(
            builder,
            [_combine(k < sums, [batch_results[k] for batch_results in results]) for k in range(len(body.outputs))],
        )


class SummingMap(Map):
    """Map whose first `sums` results are summed over the entries: the backward pass of a map."""

    name = "summing_map"
    internal = True
    attrs: ClassVar[Mapping[str, Attr]] = {**Map.attrs, "sums": Attr("int", 0, "how many results are sums", minimum=0)}

    def infer(self, *types: TensorType, body: Body, sequences: int, sums: int = 0, **attrs: Any) -> ResultTypes:
        """Return the types of the sums, then those of the stacks."""
        stacks = self._stacks(types, body.outputs[sums:], sequences)
        assert isinstance(stacks, tuple)
        return (*body.outputs[:sums], *stacks)

    def written_out(self, *operands: Value, body: Body, sequences: int, sums: int, **attrs: Any) -> Sequence[Value]:
        """Return the results of a scan over single entries, whose carries are the sums."""
        parts = split_operands(operands, 0, sequences)
        step = body.cached(
            ("adding", sums), lambda: _accumulating_step(tidy(body), len(parts.consts), body.outputs[:sums])
        )
        return _accumulate(operands[0].builder, parts, step, sums)


_SUMMING: Final = SummingMap()


def _move_shared_cotangents(backward: Body, consts: int, sequences: int, shared: int) -> Body:
    """Move the cotangents that are the same for each entry, the first `shared`, to directly after the consts."""

    def make() -> Body:
        operands = range(consts + sequences)
        cotangents = range(consts + sequences, len(backward.inputs))
        order = [*operands[:consts], *cotangents[:shared], *operands[consts:], *cotangents[shared:]]
        builder = backward.budget.builder(backward.graph.registry)
        leaves = {i: builder.leaf(backward.inputs[i], position) for position, i in enumerate(order)}
        graph = builder.graph(backward.inline_into(builder, leaves))
        return derive_body(backward, graph, [backward.inputs[i] for i in order])

    return backward.cached(("reordered", shared), make)


def _scan_batches(builder: Builder, parts: Parts, body: Body, batch: int, steps: int, sums: int) -> list[Value]:
    """Append a scan over `steps` batches, and return the sums and the stacks of single entries."""
    batched_sequences = [
        slice_axis(x, 0, 0, batch * steps).reshape(shape=(steps, batch, *x.shape[1:])) for x in parts.sequences
    ]
    results = _accumulate(
        builder, Parts(parts.consts, (), batched_sequences), _batch_step(body, len(parts.consts), batch, sums), sums
    )
    return [*results[:sums], *[x.reshape(shape=(steps * batch, *x.shape[2:])) for x in results[sums:]]]


def _accumulate(builder: Builder, parts: Parts, step: Body, sums: int) -> list[Value]:
    """Append a scan whose carries are sums that start at zero, and return its results."""
    totals = [zeros(builder, type) for type in step.outputs[:sums]]
    return emit_scan(builder, step, Parts(parts.consts, totals, parts.sequences), parts.sequences[0].shape[0])


def _batch_step(body: Body, consts: int, batch: int, sums: int) -> Body:
    """Build a scan step of the consts, the sums so far, and one batch of entries."""

    def make() -> Body:
        mapped = (*[False] * consts, *[True] * (len(body.inputs) - consts))
        return _accumulating_step(batched(body, mapped, batch).body, consts, body.outputs[:sums], (0,))

    return body.cached(("step", batch, sums), make)


def _accumulating_step(body: Body, consts: int, sums: Sequence[TensorType], axes: Sequence[int] = ()) -> Body:
    """Build a step of consts, sums so far and entries that adds the first results, summed over `axes`, to the sums."""
    types = [*body.inputs[:consts], *sums, *body.inputs[consts:]]
    builder = body.budget.builder(body.graph.registry)
    leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
    first_entry = consts + len(sums)
    results = body.inline_into(builder, [*leaves[:consts], *leaves[first_entry:]])
    new_sums = [
        total + (x.sum(axes=tuple(axes)) if axes else x)
        for total, x in zip(leaves[consts:first_entry], results, strict=False)
    ]
    return derive_body(body, builder.graph([*new_sums, *results[len(sums) :]]), types)


def _combine(is_sum: bool, parts: Sequence[Value]) -> Value:
    first, *others = parts
    if not others:
        return first
    return first + others[0] if is_sum else first.cat(*others, axis=0)
