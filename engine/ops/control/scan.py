"""Loops of a known length, and a function of each entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar, Final

from engine.autodiff.bodies import batched, derived, inputs_of, narrow, step_needs, tidy, way_back
from engine.autodiff.control_flow import (
    Parts,
    RunsFunctions,
    bounded,
    emit_scan,
    in_parts,
    loop_gradients,
    require_count,
    require_results,
    require_same,
    scan_attributes,
    stacking,
    zeros,
)
from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute, ShapeMismatch, counted
from engine.ir.graph import Builder, Value
from engine.ir.op import Narrowed, ResultTypes
from engine.ir.program import Body
from engine.ir.tensor_type import FLOAT64, TensorType, show_shape
from engine.ops.common.batching import bundled, size
from engine.ops.index.slice import cut

#: bytes of all that a body computes for the entries of one batch, where nobody says how many these are
_BATCH_BYTES: Final = 1 << 26


class Scan(RunsFunctions):
    """carries, stacks = body, step by step: for t = 0 … length − 1, body(consts, carries, entry t of each sequence).

    The body gives the carries for the next step, of the same types, and then values that are stacked. Operands are
    consts, then `carries` initial values, then `sequences` tensors whose entries along the leading axis it goes
    through, with `reverse` from the last; entry t of a stack is what step t gave. Results: the last carries, then the
    stacks [length, …]. JAX's `lax.scan`, whose body may read what is around it; of PyTorch, a loop of Python.
    """

    name = "scan"
    section = "scan"
    steps_body = True
    attrs: ClassVar[Mapping[str, Attr]] = {
        "body": Attr("function", doc="of consts, carries and one entry of each sequence: carries, and what is stacked"),
        "carries": Attr("int", 0, "how many operands are initial values of carries", minimum=0),
        "sequences": Attr("int", 0, "how many operands, the last ones, are gone through", minimum=0),
        "length": Attr("int", None, "how many steps; absent: as many as the sequences have entries", minimum=0),
        "reverse": Attr("bool", False, "from the last entry to the first"),
    }
    gradient = "a scan the other way round, which computes each step again"

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The body for these types, and the length. Raises what does not fit."""
        parts = in_parts(types, attrs["carries"], attrs["sequences"])
        length = steps_of(parts, attrs["length"])
        slices = [type.with_shape(type.shape[1:]) for type in parts.sequences]
        body: Body = attrs["body"].typed((*parts.consts, *parts.carries, *slices))
        require_results("body", body)
        require_count("body", body, len(parts.carries), or_more=True)
        require_same("carry", body, parts.carries, body.outputs[: len(parts.carries)])
        return {**attrs, "body": body, "length": length}

    def infer(self, *types: TensorType, body: Body, carries: int, length: int, **attrs: Any) -> ResultTypes:
        """The carries, and stacks of the body's other results."""
        return (*body.outputs[:carries], *[type.with_shape((length, *type.shape)) for type in body.outputs[carries:]])

    def narrowed(self, attrs: Mapping[str, Any], operands: int, read: Set[int]) -> Narrowed:
        """Without carries and stacks that nobody reads, at the end or at any step."""
        body: Body = attrs["body"]
        parts = in_parts(range(len(body.inputs)), attrs["carries"], attrs["sequences"])
        results, inputs = step_needs(body, len(parts.consts), attrs["carries"], read)
        fewer = {
            "body": narrow(body, results, inputs),
            "carries": sum(i in parts.carries for i in inputs),
            "sequences": sum(i in parts.sequences for i in inputs),
        }
        return Narrowed({**attrs, **fewer}, [*inputs, *range(len(body.inputs), operands)], results)

    def vjp(self, g: Sequence[Value | None], y: Value, *operands: Value, **attrs: Any) -> Sequence[Value | None]:
        """The loop the other way round; of no step, what arrives at the carries."""
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
        """Cotangents of the operands; where there is a `count`, of all but that."""
        parts = in_parts(operands, carries, sequences)

        def stack(which: Sequence[int], front: Body | None) -> Sequence[Value]:
            wide = stacking(body, len(parts.consts), which, front)
            loop = _emit(y, wide, parts, length, reverse=reverse, count=count)
            return [loop.output(k) for k in range(len(body.outputs), len(wide.outputs))]

        return loop_gradients(
            body,
            parts,
            Parts((), g[:carries], g[carries:]),
            stack,
            lambda back, given: _emit(y, back, given, length, reverse=not reverse, count=count),
            may_be_empty=length == 0 or count is not None,
            keeps=y.builder.limits.keeps,
        )

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """A scan of the batched body; a carry that is mapped after a step is mapped from the start."""
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
        """The results, packed, of a loop on examples that go through it side by side."""
        n, sequences = size(mapped, operands), attrs["sequences"]
        flags = in_parts(mapped, carries, sequences)
        many, moving = batched_carries(body, flags, n, len(body.outputs) - carries)
        given = in_parts(operands, carries, sequences)
        initial = [with_axis(x, m, w, n) for x, m, w in zip(given.carries, flags.carries, moving, strict=True)]
        through = [behind_steps(x) if m else x for x, m in zip(given.sequences, flags.sequences, strict=True)]
        steps = Parts(given.consts, initial, through)
        loop = _emit(operands[0], many, steps, attrs["length"], reverse=attrs["reverse"], count=count)
        found = [with_axis(loop.output(k), is_mapped, True, n) for k, is_mapped in enumerate(moving)]
        stacks = [behind_steps(loop.output(k)) for k in range(carries, len(body.outputs))]
        return bundled(loop.builder, [*found, *stacks])


class CountedScan(Scan):
    """A scan of as many steps as its last operand says, an int64 []; entries of stacks beyond these are zeros.

    The way back through a `while`. `reverse` begins with the last of the steps that there are.
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
        """The loop the other way round, of as many steps."""
        *given, count = operands
        return [*self.gradients(g, y, given, count=count, **attrs), None]

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """Batch as a scan; if examples have counts of their own, one that is done stays as it is."""
        *given, count = operands
        if not mapped[-1]:
            return self.batch_steps(mapped[:-1], given, count=count, **attrs)
        return self._batch_counts(mapped, given, count, **attrs)

    def _batch_counts(
        self, mapped: Sequence[bool], given: Sequence[Value], counts: Value, *, body: Body, length: int, **attrs: Any
    ) -> Value:
        """On examples of different counts: up to the largest, each is given what came where it is done."""
        carries, n = attrs["carries"], counts.shape[0]
        parts = in_parts(given, carries, attrs["sequences"])
        flags = in_parts(mapped[:-1], carries, attrs["sequences"])
        all_moving = Parts(flags.consts, [True] * carries, flags.sequences)
        many, _ = batched_carries(body, all_moving, n, len(body.outputs) - carries)
        consts = [*parts.consts, counts.cast(dtype=FLOAT64)]  # as floats, which all loops can be made of
        initial = [with_axis(x, m, True, n) for x, m in zip(parts.carries, flags.carries, strict=True)]
        through = [behind_steps(x) if m else x for x, m in zip(parts.sequences, flags.sequences, strict=True)]
        count = len(parts.consts)
        held = many.made(("held", count, carries), lambda: _hold(many, count, carries))
        numbers = counts.builder.arange(length).cast(dtype=FLOAT64)
        steps = Parts(consts, initial, [numbers, *through])
        loop = _emit(counts, held, steps, length, reverse=attrs["reverse"], count=counts.max())
        stacks = [behind_steps(loop.output(k)) for k in range(carries, len(body.outputs))]
        return bundled(loop.builder, [*[loop.output(k) for k in range(carries)], *stacks])

    def written_out(
        self, *operands: Value, body: Body, carries: int, sequences: int, length: int, reverse: bool
    ) -> Sequence[Value]:
        """A scan of all steps, which does nothing at those beyond the count."""
        *given, count = operands
        return bounded_scan(body, in_parts(given, carries, sequences), length, count, reverse=reverse)


_COUNTED: Final = CountedScan()


def _hold(many: Body, consts: int, carries: int) -> Body:
    """Build a batched step of the consts, then counts; of carries; of the step's number, then sequences.

    Where an example has no such step, its carries stay and its stacks get zeros.
    """
    (n,) = many.inputs[consts].shape[:1] if carries else many.outputs[carries].shape[:1]
    builder = many.budget.builder(many.graph.registry)
    types = [
        *many.inputs[:consts],
        TensorType((n,), FLOAT64),
        *many.inputs[consts : consts + carries],
        TensorType((), FLOAT64),
        *many.inputs[consts + carries :],
    ]
    leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
    counts, step = leaves[consts], leaves[consts + 1 + carries]
    before = leaves[consts + 1 : consts + 1 + carries]
    results = many.inline_into(builder, [*leaves[:consts], *before, *leaves[consts + carries + 2 :]])
    there = step.less(counts)
    went = [picked(there, new, old) for new, old in zip(results, before, strict=False)]
    stacked = [picked(there, new, new.builder.full((), 0.0, new.dtype)) for new in results[carries:]]
    return derived(many, builder.graph([*went, *stacked]), types)


def picked(flags: Value, yes: Value, no: Value) -> Value:
    """Choose for each example, by its flag [N]: `yes` [N, …], or `no`."""
    return flags.reshape(shape=(*flags.shape, *[1] * (yes.ndim - 1))).where(yes, no)


def batched_carries(body: Body, mapped: Parts, n: int, stacks: int) -> tuple[Body, tuple[bool, ...]]:
    """The body on n examples, whose carries have the axis after a step where they have it before, and which do."""
    moving, carries = tuple(mapped.carries), len(mapped.carries)
    while True:
        flags = (*mapped.consts, *moving, *mapped.sequences)
        found = batched(body, flags, n, (*moving, *[True] * stacks))
        if found.mapped[:carries] == moving:
            return found.body, moving
        moving = found.mapped[:carries]


def with_axis(x: Value, has: bool, wanted: bool, n: int) -> Value:
    """x with a leading axis, where it is wanted."""
    return x.broadcast_to(shape=(n, *x.shape)) if wanted and not has else x


def behind_steps(x: Value) -> Value:
    """The first two axes exchanged: examples and steps."""
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


def bounded_scan(body: Body, parts: Parts, length: int, count: Value, *, reverse: bool = False) -> list[Value]:
    """The results of a scan of which the first `count` steps are taken."""
    step = bounded(body, len(parts.consts), len(parts.carries))
    steps = Parts([*parts.consts, count], parts.carries, [count.builder.arange(length), *parts.sequences])
    return emit_scan(count.builder, step, steps, length, reverse=reverse)


def steps_of(parts: Parts, stated: int | None = None) -> int:
    """Count the entries that all sequences have, and `stated` says. Raises ShapeMismatch and BadAttribute."""
    before = len(parts.consts) + len(parts.carries)
    found = stated
    for place, type in enumerate(parts.sequences, before):
        if not type.ndim:
            raise ShapeMismatch(
                f"operand {place}, a sequence, must have a leading axis to go through, but has shape []",
                operand=place,
                expected="a leading axis",
                got="shape []",
            )
        if found is not None and type.shape[0] != found:
            of = "length" if stated is not None else f"the entries of operand {before}"
            raise ShapeMismatch(
                f"operand {place}, a sequence, must have {counted(found, 'entry', 'entries')}, as {of} says, "
                f"but has shape {show_shape(type.shape)}",
                operand=place,
                expected=counted(found, "entry", "entries"),
                got=show_shape(type.shape),
            )
        found = type.shape[0]
    if found is None:
        raise BadAttribute("attribute length is required without sequences", expected="length", got="nothing")
    return found


class Map(RunsFunctions):
    """stacks = body(consts, entry t of each sequence), for every t, in no order.

    Operands are consts, then `sequences` tensors of equal leading extent. `at_once` entries are computed in one batch.
    Results: for each of the body's a stack [entries, …]. JAX's `lax.map`, whose batch_size is `at_once`; JAX's and
    PyTorch's `vmap`, which computes all entries in one batch.
    """

    name = "map"
    section = "map"
    operands = ("operands...",)
    attrs: ClassVar[Mapping[str, Attr]] = {
        "body": Attr("function", doc="of consts and one entry of each sequence: what is stacked"),
        "sequences": Attr("int", 0, "how many operands, the last ones, are gone through; at least one", minimum=0),
        "at_once": Attr("int", None, "how many entries are computed in one batch; absent: as many as fit", minimum=1),
    }
    gradient = "a map of the body's, summed over the entries for consts"

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The body for these types. Raises what does not fit."""
        parts = in_parts(types, 0, attrs["sequences"])
        if not parts.sequences:
            raise BadAttribute("attribute sequences must count at least one operand", expected="at least 1", got="0")
        steps_of(parts)
        entries = [type.with_shape(type.shape[1:]) for type in parts.sequences]
        body: Body = attrs["body"].typed((*parts.consts, *entries))
        require_results("body", body)
        return {**attrs, "body": body}

    def infer(self, *types: TensorType, body: Body, sequences: int, **attrs: Any) -> ResultTypes:
        """Stacks."""
        return self._stacks(types, body.outputs, sequences)

    @staticmethod
    def _stacks(types: Sequence[TensorType], outputs: Sequence[TensorType], sequences: int) -> ResultTypes:
        n = types[len(types) - sequences].shape[0]
        return tuple([type.with_shape((n, *type.shape)) for type in outputs])

    def narrowed(self, attrs: Mapping[str, Any], operands: int, read: Set[int]) -> Narrowed:
        """The body without results that nobody reads. The first sequence stays, to say how many entries there are.

        It is none that a rule has passed: those are cotangents, which forward mode only pretends to have.
        """
        body, first = attrs["body"], operands - attrs["sequences"]
        results, inputs = sorted(read), sorted(inputs_of(body, read) | {first})
        fewer = {"body": narrow(body, results, inputs), "sequences": sum(i >= first for i in inputs)}
        if "sums" in attrs:
            fewer["sums"] = sum(k < attrs["sums"] for k in results)
        return Narrowed({**attrs, **fewer}, inputs, results)

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
        """A map of the way back through the body. What arrives at a sum arrives at each entry."""
        parts = in_parts(operands, 0, sequences)
        given = tuple(k for k, part in enumerate(g) if part is not None)
        way = way_back(body, given)
        found: list[Value | None] = [None] * len(operands)
        if not way.reached:
            return found
        to_all, to_each = [k for k in given if k < sums], [k for k in given if k >= sums]
        back = _reordered(way.body, len(parts.consts), sequences, len(to_all))
        passed = [*parts.consts, *[g[k] for k in to_all], *parts.sequences, *[g[k] for k in to_each]]
        attrs = {
            "body": back,
            "sequences": sequences + len(to_each),
            "at_once": at_once,
            "sums": sum(i < len(parts.consts) for i in way.reached),
        }
        loop = y.builder.emit(_SUMMING, passed, attrs)
        for place, i in enumerate(way.reached):
            found[i] = loop.output(place)
        return found

    def batch(
        self, mapped: Sequence[bool], *operands: Value, body: Body, sequences: int, sums: int = 0, **attrs: Any
    ) -> Value:
        """A map of the batched body."""
        n, parts, flags = size(mapped, operands), in_parts(operands, 0, sequences), in_parts(mapped, 0, sequences)
        through = [behind_steps(x) if m else x for x, m in zip(parts.sequences, flags.sequences, strict=True)]
        stated = {"body": batched(body, mapped, n).body, "sequences": sequences, **attrs}
        loop = operands[0].builder.emit(self, [*parts.consts, *through], stated | ({"sums": sums} if sums else {}))
        results = [loop.output(k) for k in range(len(body.outputs))]
        return bundled(loop.builder, [*results[:sums], *map(behind_steps, results[sums:])])

    def lowered(self, *operands: Value, body: Body, sequences: int, at_once: int | None, sums: int = 0) -> Value | None:
        """A scan through batches, and one batch of what is left over."""
        parts, builder = in_parts(operands, 0, sequences), operands[0].builder
        entries = parts.sequences[0].shape[0]
        if at_once is None:
            taken = sum(type.nbytes for node in tidy(body).graph.nodes for type in node.types)
            at_once = max(1, min(_BATCH_BYTES, builder.limits.bytes // 4) // max(1, taken))
        batch = min(entries, at_once)
        whole = entries // batch if batch else 0
        results = []
        if whole > 1:
            results.append(_scan(builder, parts, body, batch, whole, sums))
        start = whole * batch if whole > 1 else 0
        if start < entries or not results:
            rest = [cut(x, 0, start, entries) if start else x for x in parts.sequences]
            mapped = (*[False] * len(parts.consts), *[True] * sequences)
            last = batched(body, mapped, entries - start).body.inline_into(builder, [*parts.consts, *rest])
            results.append([*[x.sum(axes=(0,)) for x in last[:sums]], *last[sums:]])
        return bundled(builder, [_joined(k < sums, [each[k] for each in results]) for k in range(len(body.outputs))])


class SummingMap(Map):
    """A map of which the first `sums` results are added up over the entries: the way back through a map."""

    name = "summing_map"
    internal = True
    attrs: ClassVar[Mapping[str, Attr]] = {**Map.attrs, "sums": Attr("int", 0, "how many results are sums", minimum=0)}

    def infer(self, *types: TensorType, body: Body, sequences: int, sums: int = 0, **attrs: Any) -> ResultTypes:
        """Sums, then stacks."""
        stacks = self._stacks(types, body.outputs[sums:], sequences)
        assert isinstance(stacks, tuple)
        return (*body.outputs[:sums], *stacks)

    def written_out(self, *operands: Value, body: Body, sequences: int, sums: int, **attrs: Any) -> Sequence[Value]:
        """A scan, an entry after the other, whose carries are the sums."""
        parts = in_parts(operands, 0, sequences)
        step = body.made(("adding", sums), lambda: _adding(tidy(body), len(parts.consts), body.outputs[:sums]))
        return _through(operands[0].builder, parts, step, sums)


_SUMMING: Final = SummingMap()


def _reordered(back: Body, consts: int, sequences: int, to_all: int) -> Body:
    """A way back, of which cotangents that are the same for each entry stand behind the consts."""

    def make() -> Body:
        own = range(consts + sequences)
        cotangents = range(consts + sequences, len(back.inputs))
        order = [*own[:consts], *cotangents[:to_all], *own[consts:], *cotangents[to_all:]]
        builder = back.budget.builder(back.graph.registry)
        leaves = {i: builder.leaf(back.inputs[i], place) for place, i in enumerate(order)}
        graph = builder.graph(back.inline_into(builder, leaves))
        return derived(back, graph, [back.inputs[i] for i in order])

    return back.made(("reordered", to_all), make)


def _scan(builder: Builder, parts: Parts, body: Body, batch: int, steps: int, sums: int) -> list[Value]:
    """Append a scan through so many batches: sums, and stacks of all their entries."""
    through = [cut(x, 0, 0, batch * steps).reshape(shape=(steps, batch, *x.shape[1:])) for x in parts.sequences]
    found = _through(builder, Parts(parts.consts, (), through), _step(body, len(parts.consts), batch, sums), sums)
    return [*found[:sums], *[x.reshape(shape=(steps * batch, *x.shape[2:])) for x in found[sums:]]]


def _through(builder: Builder, parts: Parts, step: Body, sums: int) -> list[Value]:
    """The results of a scan whose carries are sums, zeros at first."""
    totals = [zeros(builder, type) for type in step.outputs[:sums]]
    return emit_scan(builder, step, Parts(parts.consts, totals, parts.sequences), parts.sequences[0].shape[0])


def _step(body: Body, consts: int, batch: int, sums: int) -> Body:
    """Build a step of the consts, sums so far, and a batch of entries."""

    def make() -> Body:
        mapped = (*[False] * consts, *[True] * (len(body.inputs) - consts))
        return _adding(batched(body, mapped, batch).body, consts, body.outputs[:sums], (0,))

    return body.made(("step", batch, sums), make)


def _adding(body: Body, consts: int, sums: Sequence[TensorType], axes: Sequence[int] = ()) -> Body:
    """Build a step of consts, sums so far, and entries: the first results, summed over `axes`, are added to sums."""
    types = [*body.inputs[:consts], *sums, *body.inputs[consts:]]
    builder = body.budget.builder(body.graph.registry)
    leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
    behind = consts + len(sums)
    results = body.inline_into(builder, [*leaves[:consts], *leaves[behind:]])
    added = [
        total + (x.sum(axes=tuple(axes)) if axes else x)
        for total, x in zip(leaves[consts:behind], results, strict=False)
    ]
    return derived(body, builder.graph([*added, *results[len(sums) :]]), types)


def _joined(is_sum: bool, parts: Sequence[Value]) -> Value:
    first, *rest = parts
    if not rest:
        return first
    return first + rest[0] if is_sum else first.cat(*rest, axis=0)
