"""The contract of an op: what one definition states so that everything else can be derived from it.

An op is one class in one file under `engine.ops`. Discovery finds it there, and the catalogue, the wire's enum, the
documentation and the contract tests follow. What all of them state is a `Definition`. A `Kernel` computes, an `Op` has
rules of derivatives and batching besides, and a `View` is one that only re-labels memory. A `Composite` is written in
terms of other ops, and is gone before anything is differentiated or run.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from engine.ir.attributes import Attr
from engine.ir.errors import DtypeMismatch, OperandCount, UnknownOp, counted, printable
from engine.ir.kinds.kind import AttributeKind
from engine.ir.run_context import RunContext, copying
from engine.ir.sample import Sample, Truth
from engine.ir.spellings import Spellings
from engine.ir.tensor_type import REALS, DType, Shape, TensorType

#: of a Node and Values, which ops do not know: they are written in terms of ops
Rewriting = Callable[[Any, Sequence[Any]], Any]


@dataclass(frozen=True, eq=False, slots=True)
class RewriteRule:
    """`find(node, operands)`: what a node on these operands comes down to, of the same value and type; or None."""

    find: Rewriting
    #: the ops of which an operand must be one for it to find anything; None where it is to be tried always
    needs: frozenset[str] | None = None
    #: one that is known to be a number everywhere will do as well
    needs_number: bool = False
    #: the operand that nobody else may read, since nothing would be saved then
    alone: int | None = None
    #: whether an output may be rewritten, too; not where it would no longer lie densely, and be copied for it
    of_outputs: bool = True


def rewrite(
    *, needs: Sequence[str] | None = None, needs_number: bool = False, alone: int | None = None, of_outputs: bool = True
) -> Callable[[Rewriting], RewriteRule]:
    """A function made a rule; see `RewriteRule`."""
    return lambda find: RewriteRule(
        find, None if needs is None else frozenset(needs), needs_number, alone=alone, of_outputs=of_outputs
    )


Emitted = Any  # engine.ir.graph.Value: the contract states rules, and does not know what they write into
Array = Any  # numpy.ndarray or cupy.ndarray
Namespace = Any  # the module numpy or cupy
ResultTypes = TensorType | tuple[TensorType, ...]
#: a kernel on arrays that are fixed: a function, and what it is called with
KernelCall = tuple[Callable[..., object], tuple[Any, ...]]

NONE: Mapping[str, Any] = MappingProxyType({})


class NoGradient:
    """Reason that stands in place of a `vjp` rule: why the op carries no gradient."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __call__(self, g: Emitted, y: Emitted, *operands: Emitted, **attrs: Any) -> Sequence[Emitted | None]:
        """No operand has a path. Transforms look before they call, and do not go further."""
        return [None] * len(operands)


class Narrowed(NamedTuple):
    """Rest of a node of which only some results are read: its attributes, and which operands and results.

    `op` is another one, which makes these results alone; None where it is the same.
    """

    attrs: Mapping[str, Any]
    operands: Sequence[int]
    results: Sequence[int]
    op: Any = None  # Definition | None: stated below


class Definition(ABC):
    """Statement of every op of the opset: its name, operands and attributes, and the type of its result.

    Rules receive operands by position and attributes by keyword, completed and made canonical: axes count from the
    front, absent ones are filled in. Docstring of a subclass: formula, shapes, source.
    """

    name: ClassVar[str]
    #: the section of the documentation that lists it, a key of `engine.ops.sections`; where there is none, the op's
    #: module is a section, headed by its docstring
    section: ClassVar[str | None] = None
    #: other systems' spellings → the systems that use them
    aliases: ClassVar[Mapping[str, str]] = NONE
    #: operand names; "b?" may be absent, "x..." stands for one or more, "x...?" for none or more
    operands: ClassVar[tuple[str, ...]]
    attrs: ClassVar[Mapping[str, Attr]] = NONE
    #: the gradient as a formula, for people; g is the cotangent of the result y
    gradient: ClassVar[str]
    #: dtypes that every operand may have (index and condition operands are checked by `infer`); complex numbers are
    #: taken by what says so
    dtypes: ClassVar[tuple[str, ...]] = REALS
    samples: ClassVar[tuple[Sample, ...]]
    #: values and gradients from elsewhere, of this op and not of those derived from it; an op whose truths are in
    #: tests/reference need state none
    truths: ClassVar[tuple[Truth, ...]] = ()
    #: what is tried to say a node shorter, in this order
    rewrites: ClassVar[tuple[RewriteRule, ...]] = ()
    since: ClassVar[int] = 1
    #: the result holds no numbers but those of its operand: where that is one number everywhere, so is this
    spreads: ClassVar[bool] = False
    #: swapping two operands leaves the result as it is, bit for bit
    commutative: ClassVar[bool] = False
    #: of what is written in other ops: all operands are brought to their common dtype before anything is computed
    brings_together: ClassVar[bool] = False
    #: several results, read through get_output
    several: ClassVar[bool] = False
    #: results that nobody reads leave it with less to do: `narrowed` says with what
    narrows: ClassVar[bool] = False
    #: plans that a kernel runs: they stay bound with the plan that it is in, each once
    runs: tuple[Any, ...] = ()
    #: functions are written in its place, so that their nodes count each time
    inlines: ClassVar[bool] = False
    #: written by the engine alone, and not in the registry
    internal: ClassVar[bool] = False
    #: fed: its result comes with the request
    is_leaf: ClassVar[bool] = False
    #: whether it is a View: asked of every node, and `isinstance` takes ten times as long to say so
    is_view: ClassVar[bool] = False
    #: whether it is a Kernel: as `is_view`
    is_kernel: ClassVar[bool] = False
    #: operands whose gradients may end here in spite of a rule of derivatives, where the result's dtype has none: it is
    #: constant in them, or of the dtype that was asked for by name; of others, nobody would be told
    may_disconnect: ClassVar[tuple[str, ...]] = ()
    #: the rule of derivatives, or why there is none; None for what is written out before it is differentiated
    vjp: ClassVar[Callable[..., Sequence[Emitted | None]] | NoGradient | None] = None

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Attributes with nothing left to interpret. Raises BadAttribute."""
        return attrs

    @abstractmethod
    def infer(self, *types: Any, **attrs: Any) -> ResultTypes:
        """The result's type (types, where `several`). Raises the error that the client will read."""

    def compose(self, *operands: Any, **attrs: Any) -> Emitted | None:
        """The op in terms of others, where it is only a spelling for them; else None."""
        return None

    def narrowed(self, attrs: Mapping[str, Any], operands: int, read: Set[int]) -> Narrowed:
        """Return the rest of a node if only these results are read, at least one.

        Asked of ops that `narrows`; raises TypeError for others.
        """
        raise TypeError(f"{self.name} makes all of its results")

    @cached_property
    def is_composite(self) -> bool:
        """Whether it is a spelling for other ops, of some operands at least."""
        return type(self).compose is not Definition.compose

    def written_out(self, *operands: Any, **attrs: Any) -> Sequence[Emitted]:
        """The results in ops of the registry, of one that the engine writes for itself. Raises TypeError: by default,
        it is never written where this is asked.
        """
        raise TypeError(f"{self.name} is nowhere written out")

    def number_everywhere(self, attrs: Mapping[str, Any]) -> Any:
        """The number that all of the result is, where the attributes say so; else None."""
        return None

    @cached_property
    def may_be_one_number(self) -> bool:
        """Whether results are ever known to be one number everywhere."""
        return self.spreads or type(self).number_everywhere is not Definition.number_everywhere

    @cached_property
    def functions(self) -> tuple[str, ...]:
        """The attributes that are functions."""
        return tuple([name for name, attr in self.attrs.items() if attr.kind == "function"])

    @cached_property
    def is_differentiable(self) -> bool:
        """Whether its operands have cotangents."""
        return not isinstance(self.vjp, NoGradient)

    def check_connection(self, types: Sequence[ResultTypes], results: Sequence[TensorType]) -> None:
        """Raise TypeError where a rule of derivatives would never be asked: the mistake of an op, never of a client.

        Operands with several results are left out: only one of these is read.
        """
        if self.vjp is None or not self.is_differentiable or any(type.is_differentiable for type in results):
            return
        single = [(i, type) for i, type in enumerate(types) if isinstance(type, TensorType) and type.is_differentiable]
        lost = [type for i, type in single if self.operand_name(i) not in self.may_disconnect]
        if lost:
            made, of = (", ".join(map(str, those)) for those in (results, lost))
            raise TypeError(
                f"{self.name} makes {made} of {of}, where gradients end, but has a rule of derivatives: "
                "it has to state NoGradient with the reason, or to cast its result back"
            )

    @cached_property
    def arity(self) -> tuple[int, float]:
        """Fewest and most operands."""
        least = sum(not name.endswith("?") for name in self.operands)
        most = math.inf if any("..." in name for name in self.operands) else len(self.operands)
        return least, most

    def check_operands(self, types: Sequence[ResultTypes]) -> None:
        """Raise OperandCount or DtypeMismatch for operands that the signature rules out."""
        self.check_count(len(types))
        for i, type in enumerate(types):
            if isinstance(type, TensorType) and type.dtype not in self._native and type.dtype.name not in self.dtypes:
                raise wrong_dtype(self.operand_name(i), i, self.dtypes, type)

    @cached_property
    def _native(self) -> frozenset[DType]:
        """`dtypes` in the machine's byte order: NumPy takes its time to spell a name."""
        return frozenset(map(np.dtype, self.dtypes))

    def check_count(self, count: int) -> None:
        """Raise OperandCount for too few or too many operands."""
        least, most = self.arity
        if not least <= count <= most:
            raise _miscounted(self.operands, least, most, count)

    def operand_name(self, i: int) -> str:
        """Name of operand `i` in messages."""
        return self.operands[min(i, len(self.operands) - 1)].rstrip("?.")

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def wrong_dtype(name: str, i: int, wanted: Sequence[str], got: TensorType) -> DtypeMismatch:
    """The error for operand `i` called `name` of a dtype that is not among `wanted`."""
    listed = ", ".join(wanted)
    return DtypeMismatch(
        f"operand {i} ({name}) must be of dtype {listed}, but is {got.dtype.name}",
        operand=i,
        expected=listed,
        got=got.dtype.name,
    )


def _miscounted(operands: Sequence[str], least: int, most: float, got: int) -> OperandCount:
    if most == math.inf:
        wanted = f"at least {counted(least, 'operand')}"
    else:
        wanted = counted(least, "operand") if least == most else f"{least} to {most:.0f} operands"
    named = f" ({', '.join(operands)})" if operands else ""
    return OperandCount(f"takes {wanted}{named}, but got {got}", expected=wanted, got=counted(got, "operand"))


class Kernel(Definition):
    """An op that computes its result. It can be planned and run."""

    is_kernel = True
    #: whether kernels make a leading part of the result, where nobody reads the rest
    makes_parts: ClassVar[bool] = False
    #: whether a card may record what `forward` launches, and launch it again without `forward`: it does not wait for a
    #: result, read the host's arrays, or decide by an element
    is_captured: ClassVar[bool] = True

    @abstractmethod
    def forward(self, run: RunContext, *arrays: Any, **attrs: Any) -> None:
        """Write the result into the keyword argument `out`, C-contiguous and of the inferred type.

        What takes long has `run` checked every few milliseconds of work. Where `several`, `out` is a tuple.
        Floating-point warnings are off.
        """

    def fill(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> None:
        """`forward` on these arrays, the attributes as they stand in a plan: a subclass may know them as such."""
        self.forward(run, *operands, out=out, **attrs)

    def bind(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> KernelCall:
        """`forward` on these arrays as one call, which may be made again whenever their elements have changed.

        `run` is that of all runs of a plan, one after the other, each with a deadline of its own.

        A subclass may leave out what `forward` decides anew each time. What it decides here may depend on shapes,
        dtypes, strides and attributes, and never on an element: nothing has been computed yet.
        """
        return partial(self.forward, run, *operands, out=out, **attrs), ()

    def in_elements(self, *operands: Emitted, **attrs: Any) -> Emitted | None:
        """The result as nodes that loops take in, with the same bits; None where there is no such way.

        For an op that is not elementwise, but might be written so.
        """
        return None

    def as_copies(
        self, xp: Namespace, operands: Sequence[Array], out: Any, attrs: Mapping[str, Any]
    ) -> Sequence[tuple[Array, Array]] | None:
        """The result as copies, to be made in this order: pairs of a view of `out`, and what goes there.

        That has the shape and dtype of the view. None where the op computes. It may depend on nothing but shapes,
        dtypes, strides and attributes.
        """
        return None

    @cached_property
    def may_be_copies(self) -> bool:
        """Whether it is copies, for some arrays at least."""
        return type(self).as_copies is not Kernel.as_copies

    @cached_property
    def joins_loops_in_elements(self) -> bool:
        """Whether there is such a way, for some attributes at least."""
        return type(self).in_elements is not Kernel.in_elements

    def flops(self, out: Any, *types: Any, **attrs: Any) -> int:
        """Floating-point operations of one run; by default one for each element of the result."""
        return out.size if isinstance(out, TensorType) else sum(t.size for t in out)

    def workspace(self, out: Any, *types: Any, **attrs: Any) -> int:
        """Bytes that `forward` allocates beside `out`, at their most, for operands that lie as their `strides` say.

        A peak of over 50 MB must be within 10 % of what NumPy is seen to allocate, so this is a count and no bound.
        Buffers of a fixed size (NumPy casts 8,192 elements at a time) do not matter.
        """
        return 0


class Op(Kernel):
    """An op that computes, and says how it is differentiated and batched: what most ops are."""

    @abstractmethod
    def vjp(self, *args: Any, **attrs: Any) -> Sequence[Emitted | None]:
        """Cotangents of the operands: `vjp(g, y, *operands, **attrs)`, each linear in `g`.

        Emits nodes by calling methods of the values it is given. None marks an operand without a path. The dtype is
        cast back by the caller. Where `several`, `g` and `y` are tuples, and an unread output has None in `g`. For an
        operand that has several results: a mapping from the number of a result to its cotangent.
        """

    @abstractmethod
    def batch(self, mapped: Sequence[bool], *operands: Any, **attrs: Any) -> Emitted:
        """The op on operands of which the `mapped` ones (at least one) have an extra leading axis N.

        The result has the leading axis N, too. `attrs` are those of the unbatched op.
        """


class View(Op):
    """An op whose result can share its operand's memory: it says how to see it, and moves nothing.

    `reshapes` marks the ones that only re-label a contiguous block: their result is contiguous again, and of an
    operand that is not contiguous they take a copy.
    """

    is_view = True
    reshapes: ClassVar[bool] = False

    @abstractmethod
    def view(self, xp: Namespace, *arrays: Any, **attrs: Any) -> Array:
        """The result as a view of the operand."""

    def leading_part(self, read: Shape, operand: Shape, attrs: Mapping[str, Any]) -> Shape:
        """Extents of the part of the operand, from its beginning, that holds this much of the result; by default all.

        `read` are those of the result's part, `operand` the operand's own.
        """
        return operand

    def forward(self, run: RunContext, *arrays: Any, out: Array, **attrs: Any) -> None:
        """Copy the view into `out`."""
        function, arguments = self.bind(run, arrays, out, attrs)
        function(*arguments)

    def bind(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> KernelCall:
        """The copy, from the view to its place."""
        (x,) = operands
        if self.reshapes:
            return copying(run, x, out.reshape(x.shape))
        return copying(run, self.view(run.xp, x, **attrs), out)

    def as_copies(
        self, xp: Namespace, operands: Sequence[Array], out: Any, attrs: Mapping[str, Any]
    ) -> Sequence[tuple[Array, Array]] | None:
        """Return one copy, of the view."""
        (x,) = operands
        return [(out.reshape(x.shape), x)] if self.reshapes else [(out, self.view(xp, x, **attrs))]

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Return 0: nothing is computed."""
        return 0


class Composite(Definition):
    """An op that is a formula over other ops.

    `infer` checks operands and gives the errors their place; `compose` emits the formula. Gradient, batching and
    cost are those of its parts.
    """

    @abstractmethod
    def compose(self, *operands: Any, **attrs: Any) -> Emitted:
        """The result, as nodes."""


class Registry:
    """The opset: canonical names, the spellings of other systems, and one type for each attribute name."""

    def __init__(self, ops: Iterable[Definition]) -> None:
        """Raises ValueError when two ops claim one name or one attribute name has two kinds."""
        self.ops: Mapping[str, Definition] = MappingProxyType(
            _unique((op.name, op) for op in sorted(ops, key=lambda op: op.name))
        )
        self._spellings = Spellings({name: op.aliases for name, op in self.ops.items()})
        self.attributes: Mapping[str, AttributeKind] = MappingProxyType(_attribute_kinds(self.ops.values()))

    def find(self, spelling: str) -> Definition | None:
        """The op of this canonical name or alias, ignoring case."""
        name = self._spellings.find(spelling)
        return None if name is None else self.ops[name]

    def get(self, spelling: str) -> Definition:
        """Return the op of this name, as `find`. Raises UnknownOp with the op that may be meant."""
        op = self.find(spelling)
        if op is not None:
            return op
        hint, shown = self.hint(spelling) or "GET /v1/ops lists all ops", printable(spelling)
        raise UnknownOp(f"there is no op called “{shown}”; {hint}", expected="the name or an alias of an op", got=shown)

    def hint(self, spelling: str) -> str | None:
        """Return “did you mean silu?” for a name that `find` does not know, or None if none is near."""
        return self._spellings.hint(spelling)


def _unique(pairs: Iterable[tuple[str, Definition]]) -> dict[str, Definition]:
    ops: dict[str, Definition] = {}
    for name, op in pairs:
        if name in ops:
            raise ValueError(f"two ops are called {name}: {ops[name]!r} and {op!r}")
        ops[name] = op
    return ops


def _attribute_kinds(ops: Iterable[Definition]) -> dict[str, AttributeKind]:
    kinds: dict[str, AttributeKind] = {}
    for op in ops:
        for name, attr in op.attrs.items():
            if kinds.setdefault(name, attr.definition) is not attr.definition:
                raise ValueError(f"attribute {name} is {attr.kind} in {op.name} and {kinds[name].name} elsewhere")
    return dict(sorted(kinds.items()))
