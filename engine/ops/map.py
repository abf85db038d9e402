"""A function of each entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar, Final

from engine.bodies.batched import batched
from engine.bodies.narrow import inputs_of, narrow
from engine.bodies.runs_functions import Parts, RunsFunctions, emit_scan, in_parts, require_results
from engine.bodies.stepwise import zeros
from engine.bodies.tidy import derived, tidy
from engine.bodies.way_back import way_back
from engine.graph.attributes import Attr
from engine.graph.body import Body
from engine.graph.errors import BadAttribute
from engine.graph.ir import Builder, Value
from engine.graph.op import Narrowed, ResultTypes
from engine.graph.tensor_type import TensorType
from engine.oplib.batching import size
from engine.oplib.pack import bundled
from engine.oplib.slices import cut
from engine.ops.scan import behind_steps, steps_of

#: bytes of all that a body computes for the entries of one batch, where nobody says how many these are
_BATCH_BYTES: Final = 1 << 26


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
        self,
        mapped: Sequence[bool],
        *operands: Value,
        body: Body,
        sequences: int,
        sums: int = 0,
        **attrs: Any,
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
        batch = min(entries, at_once or _batch(builder, body))
        whole = entries // batch if batch else 0
        found = []
        if whole > 1:
            found.append(_scan(builder, parts, body, batch, whole, sums))
        start = whole * batch if whole > 1 else 0
        if start < entries or not found:
            rest = [cut(x, 0, start, entries) if start else x for x in parts.sequences]
            found.append(_at_once(builder, body, Parts(parts.consts, (), rest), entries - start, sums))
        return bundled(builder, [_joined(k < sums, [each[k] for each in found]) for k in range(len(body.outputs))])


class SummingMap(Map):
    """A map of which the first `sums` results are added up over the entries: the way back through a map."""

    name = "summing_map"
    internal = True
    attrs: ClassVar[Mapping[str, Attr]] = {
        **Map.attrs,
        "sums": Attr("int", 0, "how many results are sums", minimum=0),
    }

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


def _batch(builder: Builder, body: Body) -> int:
    taken = sum(type.nbytes for node in tidy(body).graph.nodes for type in node.types)
    return max(1, min(_BATCH_BYTES, builder.limits.bytes // 4) // max(1, taken))


def _at_once(builder: Builder, body: Body, parts: Parts, entries: int, sums: int) -> list[Value]:
    mapped = (*[False] * len(parts.consts), *[True] * len(parts.sequences))
    results = batched(body, mapped, entries).body.inline_into(builder, [*parts.consts, *parts.sequences])
    return [*[x.sum(axes=(0,)) for x in results[:sums]], *results[sums:]]


def _scan(builder: Builder, parts: Parts, body: Body, batch: int, steps: int, sums: int) -> list[Value]:
    """Through so many batches: sums, and stacks of all their entries."""
    through = [cut(x, 0, 0, batch * steps).reshape(shape=(steps, batch, *x.shape[1:])) for x in parts.sequences]
    found = _through(builder, Parts(parts.consts, (), through), _step(body, len(parts.consts), batch, sums), sums)
    return [*found[:sums], *[x.reshape(shape=(steps * batch, *x.shape[2:])) for x in found[sums:]]]


def _through(builder: Builder, parts: Parts, step: Body, sums: int) -> list[Value]:
    """The results of a scan whose carries are sums, zeros at first."""
    totals = [zeros(builder, type) for type in step.outputs[:sums]]
    return emit_scan(builder, step, Parts(parts.consts, totals, parts.sequences), parts.sequences[0].shape[0])


def _step(body: Body, consts: int, batch: int, sums: int) -> Body:
    """Of the consts, sums so far, and a batch of entries."""

    def make() -> Body:
        mapped = (*[False] * consts, *[True] * (len(body.inputs) - consts))
        return _adding(batched(body, mapped, batch).body, consts, body.outputs[:sums], (0,))

    return body.made(("step", batch, sums), make)


def _adding(body: Body, consts: int, sums: Sequence[TensorType], axes: Sequence[int] = ()) -> Body:
    """Of the consts, sums so far, and entries: the first results, summed over these axes, are added to the sums."""
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
