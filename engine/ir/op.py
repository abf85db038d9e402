"""The contract of an op: one definition, from which everything else about the op is derived.

An op is one class in one file under `engine.ops`. Discovery finds it there; the catalogue, the enum in the API schema,
the documentation and the contract tests follow. All ops are `Definition`s. A `Kernel` computes its result. An `Op` also
has derivative and batching rules, and a `View` is an Op that only relabels memory. A `Composite` is a formula over
other ops, and is replaced by them before anything is differentiated or run.
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

#: function of a Node and its operands as Values; both types are defined in terms of ops, so they cannot be named here
Rewriting = Callable[[Any, Sequence[Any]], Any]


@dataclass(frozen=True, eq=False, slots=True)
class RewriteRule:
    """Simplification: `find(node, operands)` returns a cheaper equivalent of the same value and type, or None."""

    find: Rewriting
    #: try the rule only if an operand is one of these ops; None means always
    needs: frozenset[str] | None = None
    #: also try it if an operand is known to be one number everywhere
    needs_number: bool = False
    #: the operand that must have no other reader, since otherwise nothing would be saved
    unshared_operand: int | None = None
    #: whether the rule may rewrite an output; False if the output would become a view that has to be copied
    rewrites_outputs: bool = True


def rewrite(
    *,
    needs: Sequence[str] | None = None,
    needs_number: bool = False,
    unshared_operand: int | None = None,
    rewrites_outputs: bool = True,
) -> Callable[[Rewriting], RewriteRule]:
    """Return a decorator that makes a function a RewriteRule."""
    op_names = None if needs is None else frozenset(needs)
    return lambda find: RewriteRule(find, op_names, needs_number, unshared_operand, rewrites_outputs)


Emitted = Any  # engine.ir.graph.Value, which depends on this module
Array = Any  # numpy.ndarray or cupy.ndarray
Namespace = Any  # the module numpy or cupy
ResultTypes = TensorType | tuple[TensorType, ...]
#: bound call of a kernel on fixed arrays: a function and its arguments
KernelCall = tuple[Callable[..., object], tuple[Any, ...]]

NONE: Mapping[str, Any] = MappingProxyType({})


class NoGradient:
    """Stands in for a `vjp` rule: the reason why the op carries no gradient."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __call__(self, g: Emitted, y: Emitted, *operands: Emitted, **attrs: Any) -> Sequence[Emitted | None]:
        """Return None for every operand. Transforms check for NoGradient first, and do not call it."""
        return [None] * len(operands)


class Support:
    """Support of a cotangent: a bool of its shape, outside of which it is zero because of a selection.

    The bool is emitted when it is first needed, which is often never. `lines`: axes along each of which every line has
    an element in the support.
    """

    def __init__(self, emit: Callable[[], Emitted], lines: Set[int] = frozenset()) -> None:
        self._emit, self._value, self.lines = emit, None, lines

    @property
    def value(self) -> Emitted:
        """The bool."""
        if self._value is None:
            self._value = self._emit()
        return self._value

    def union(self, other: Support) -> Support:
        """Return the support of the sum of two cotangents."""
        return Support(lambda: self.value.logical_or(other.value), self.lines | other.lines)


class Narrowed(NamedTuple):
    """Reduced node, if only some of a node's results are read: its attributes, and which operands and results remain.

    `op` is another op that computes these results alone; None if the op stays the same.
    """

    attrs: Mapping[str, Any]
    operands: Sequence[int]
    results: Sequence[int]
    op: Any = None  # Definition | None, defined below


class Definition(ABC):
    """Base of every op of the opset: its name, operands and attributes, and the type of its result.

    Rules receive operands by position and attributes by keyword, completed and canonical: axes count from the front,
    absent attributes have their defaults. The docstring of a subclass states formula, shapes and source.
    """

    name: ClassVar[str]
    #: section of the documentation, a key of `engine.ops.sections`; None if the op's module is a section of its own,
    #: with the module's docstring as its heading
    section: ClassVar[str | None] = None
    #: other systems' names for the op → the systems that use them
    aliases: ClassVar[Mapping[str, str]] = NONE
    #: operand names; "b?" is optional, "x..." stands for one or more, "x...?" for any number
    operands: ClassVar[tuple[str, ...]]
    attrs: ClassVar[Mapping[str, Attr]] = NONE
    #: the gradient as a formula for readers; g is the cotangent of the result y
    gradient: ClassVar[str]
    #: dtypes of operands (`infer` checks index and condition operands); ops that support complex numbers list them here
    dtypes: ClassVar[tuple[str, ...]] = REALS
    samples: ClassVar[tuple[Sample, ...]]
    #: reference values and gradients of this op, not inherited; an op with truths in tests/reference needs none
    truths: ClassVar[tuple[Truth, ...]] = ()
    #: simplifications, tried in this order
    rewrites: ClassVar[tuple[RewriteRule, ...]] = ()
    since: ClassVar[int] = 1
    #: the result holds only numbers of its operand: if the operand is one number everywhere, so is the result
    propagates_constant: ClassVar[bool] = False
    #: swapping two operands leaves the result unchanged, bit for bit
    commutative: ClassVar[bool] = False
    #: for composites: all operands are promoted to their common dtype before anything is computed
    promotes_operands: ClassVar[bool] = False
    #: several results, read through get_output
    several: ClassVar[bool] = False
    #: the op needs less work if some results are not read; `narrowed` returns the reduced node
    narrows: ClassVar[bool] = False
    #: plans that the kernel runs; each is bound once, together with the plan that contains the op
    runs: tuple[Any, ...] = ()
    #: the op is replaced by its function's nodes, so that these count at each use
    inlines: ClassVar[bool] = False
    #: emitted by the engine only, and not in the registry
    internal: ClassVar[bool] = False
    #: the result is fed with the request
    is_leaf: ClassVar[bool] = False
    #: whether it is a View: checked for every node, and `isinstance` takes ten times as long
    is_view: ClassVar[bool] = False
    #: whether it is a Kernel; a field for the same reason
    is_kernel: ClassVar[bool] = False
    #: whether it is a matrix product or convolution, whose float32 operands a GPU may read less precisely
    is_product: bool = False
    #: operands whose gradients may end here in spite of a derivative rule, if the result's dtype has no derivatives:
    #: the result is constant in them, or its dtype was requested by name. For other operands nobody would notice
    may_disconnect: ClassVar[tuple[str, ...]] = ()
    #: whether the rule leaves out elements of an operand, so that their cotangents are zero whatever g is
    selects: ClassVar[bool] = False
    #: the derivative rule, or NoGradient; None for ops that are expanded before differentiation
    vjp: ClassVar[Callable[..., Sequence[Emitted | None]] | NoGradient | None] = None

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Return attributes with nothing left to interpret. Raises BadAttribute."""
        return attrs

    @abstractmethod
    def infer(self, *types: Any, **attrs: Any) -> ResultTypes:
        """Return the result's type (types if `several`). Raises the EngineError that the client reads."""

    def compose(self, *operands: Any, **attrs: Any) -> Emitted | None:
        """Return the op in terms of others if it is only another name for them; else None."""
        return None

    def narrowed(self, attrs: Mapping[str, Any], operands: int, read: Set[int]) -> Narrowed:
        """Return the reduced node for a nonempty set of results that are `read`.

        Called for ops that set `narrows`; raises TypeError for others.
        """
        raise TypeError(f"{self.name} makes all of its results")

    @cached_property
    def is_composite(self) -> bool:
        """Whether the op is another name for other ops, for some operands at least."""
        return type(self).compose is not Definition.compose

    def written_out(self, *operands: Any, **attrs: Any) -> Sequence[Emitted]:
        """Return the results in ops of the registry, for an internal op. By default, raises TypeError."""
        raise TypeError(f"{self.name} is nowhere written out")

    def constant_value(self, attrs: Mapping[str, Any]) -> Any:
        """Return the number that every element of the result has, if the attributes determine it; else None."""
        return None

    @cached_property
    def may_be_constant(self) -> bool:
        """Whether a result may be known to be one number everywhere."""
        return self.propagates_constant or type(self).constant_value is not Definition.constant_value

    @cached_property
    def functions(self) -> tuple[str, ...]:
        """The names of the attributes that are functions."""
        return tuple([name for name, attr in self.attrs.items() if attr.kind == "function"])

    @cached_property
    def is_differentiable(self) -> bool:
        """Whether its operands get cotangents."""
        return not isinstance(self.vjp, NoGradient)

    def leaves_out(self, nodes: Sequence[Any], operands: Sequence[int]) -> bool:
        """Return whether a node with these operands leaves out elements, for an op that `selects`."""
        return True

    def supported_vjp(
        self, gs: Sequence[Emitted], supports: Sequence[Support | None] | None, y: Emitted, *xs: Any, **attrs: Any
    ) -> tuple[Sequence[Any], Sequence[Support | None]]:
        """Return what `vjp` returns, and the support of each operand's cotangent, or None.

        `gs` are the cotangents of the results, and `supports` their supports, if there are any. By default, those of
        operands have none.
        """
        assert callable(self.vjp), "otherwise it has no cotangents"
        return self.vjp(tuple(gs) if self.several else gs[0], y, *xs, **attrs), ()

    def check_connection(self, types: Sequence[ResultTypes], results: Sequence[TensorType]) -> None:
        """Raise TypeError if a derivative rule would never be called because the result's dtype has no derivatives.

        This is an error of the op, never of a client. Operands with several results are skipped: only one result is
        read.
        """
        if self.vjp is None or not self.is_differentiable or any(type.is_differentiable for type in results):
            return
        float_operands = [
            (i, type) for i, type in enumerate(types) if isinstance(type, TensorType) and type.is_differentiable
        ]
        disconnected = [type for i, type in float_operands if self.operand_name(i) not in self.may_disconnect]
        if disconnected:
            made, source = (", ".join(map(str, types)) for types in (results, disconnected))
            raise TypeError(
                f"{self.name} makes {made} of {source}, where gradients end, but has a rule of derivatives: "
                "it has to state NoGradient with the reason, or to cast its result back"
            )

    @cached_property
    def arity(self) -> tuple[int, float]:
        """The minimum and maximum number of operands."""
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
        """`dtypes` in native byte order.

        Comparing names would be slower: NumPy builds a dtype's name on each access.
        """
        return frozenset(map(np.dtype, self.dtypes))

    def check_count(self, count: int) -> None:
        """Raise OperandCount for too few or too many operands."""
        least, most = self.arity
        if not least <= count <= most:
            raise _miscounted(self.operands, least, most, count)

    def operand_name(self, i: int) -> str:
        """Return the name of operand `i` in messages."""
        return self.operands[min(i, len(self.operands) - 1)].rstrip("?.")

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def wrong_dtype(name: str, i: int, allowed: Sequence[str], received: TensorType) -> DtypeMismatch:
    """Return the error for operand `i`, called `name`, of a dtype that is not among `allowed`."""
    expected = ", ".join(allowed)
    return DtypeMismatch(
        f"operand {i} ({name}) must be of dtype {expected}, but is {received.dtype.name}",
        operand=i,
        expected=expected,
        got=received.dtype.name,
    )


def _miscounted(operands: Sequence[str], least: int, most: float, count: int) -> OperandCount:
    if most == math.inf:
        expected = f"at least {counted(least, 'operand')}"
    else:
        expected = counted(least, "operand") if least == most else f"{least} to {most:.0f} operands"
    names = f" ({', '.join(operands)})" if operands else ""
    return OperandCount(f"takes {expected}{names}, but got {count}", expected=expected, got=counted(count, "operand"))


class Kernel(Definition):
    """Op that computes its result. It can be planned and run."""

    is_kernel = True
    #: whether kernels can compute only a leading part of the result, if the rest is not read
    supports_partial_results: ClassVar[bool] = False
    #: whether a GPU may capture the launches of `forward` and replay them: `forward` does not wait for a result, read
    #: arrays on the host, or decide by an element
    is_captured: ClassVar[bool] = True

    @abstractmethod
    def forward(self, run: RunContext, *arrays: Any, **attrs: Any) -> None:
        """Write the result into the keyword argument `out`, C-contiguous and of the inferred type.

        Long computations have `run` check the deadline every few milliseconds of work. If `several`, `out` is a tuple.
        Floating-point warnings are off.
        """

    def fill(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> None:
        """Run `forward` on these arrays, with the attributes of a plan. A subclass may recognise these by identity."""
        self.forward(run, *operands, out=out, **attrs)

    def bind(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> KernelCall:
        """Return `forward` on these arrays as a bound call, which may be repeated whenever their elements have changed.

        `run` is shared by all runs of a plan, one after the other, each with a deadline of its own.

        A subclass may hoist decisions of `forward` into this method. They may depend on shapes, dtypes, strides and
        attributes, and never on an element: nothing has been computed yet.
        """
        return partial(self.forward, run, *operands, out=out, **attrs), ()

    def as_elementwise(self, *operands: Emitted, **attrs: Any) -> Emitted | None:
        """Return the result as nodes that kernels can fuse, with the same bits; None if there are none.

        For an op that is not elementwise, but may be written so.
        """
        return None

    def as_copies(
        self, xp: Namespace, operands: Sequence[Array], out: Any, attrs: Mapping[str, Any]
    ) -> Sequence[tuple[Array, Array]] | None:
        """Return the result as copies, in order: pairs of a view of `out` and a source of the same shape and dtype.

        Returns None if the op computes. The result may depend only on shapes, dtypes, strides and attributes.
        """
        return None

    @cached_property
    def may_be_copies(self) -> bool:
        """Whether the op is a sequence of copies, for some arrays at least."""
        return type(self).as_copies is not Kernel.as_copies

    @cached_property
    def has_elementwise_form(self) -> bool:
        """Whether `as_elementwise` returns nodes, for some attributes at least."""
        return type(self).as_elementwise is not Kernel.as_elementwise

    def flops(self, out: Any, *types: Any, **attrs: Any) -> int:
        """Return the floating-point operations of one run; by default one for each element of the result."""
        return out.size if isinstance(out, TensorType) else sum(t.size for t in out)

    def workspace(self, out: Any, *types: Any, **attrs: Any) -> int:
        """Return the peak number of bytes that `forward` allocates in addition to `out`.

        Operands have the `strides` of their types. A peak of over 50 MB must be within 10 % of the measured allocation,
        so this is a count and not a bound. Buffers of a fixed size (NumPy casts 8,192 elements at a time) do not
        matter.
        """
        return 0


class Op(Kernel):
    """Op that computes, with derivative and batching rules: the base of most ops."""

    @abstractmethod
    def vjp(self, *args: Any, **attrs: Any) -> Sequence[Emitted | None]:
        """Return cotangents of the operands: `vjp(g, y, *operands, **attrs)`, each linear in `g`.

        Emits nodes by calling methods of the values it receives. None marks an operand without a path. The caller casts
        the cotangents to the operands' dtypes. If `several`, `g` and `y` are tuples, and an unread output has None in
        `g`. For an operand with several results: a mapping from the index of a result to its cotangent.
        """

    @abstractmethod
    def batch(self, mapped: Sequence[bool], *operands: Any, **attrs: Any) -> Emitted:
        """Return the op on operands of which the `mapped` ones (at least one) have an extra leading axis N.

        The result has the leading axis N, too. `attrs` are those of the unbatched op.
        """


class View(Op):
    """Op whose result can share its operand's memory: it returns a view, and moves no data.

    `reshapes` marks ops that only relabel a contiguous block: the result is contiguous again, and an operand that is
    not contiguous is copied.
    """

    is_view = True
    reshapes: ClassVar[bool] = False

    @abstractmethod
    def view(self, xp: Namespace, *arrays: Any, **attrs: Any) -> Array:
        """Return the result as a view of the operand."""

    def leading_part(self, read: Shape, operand: Shape, attrs: Mapping[str, Any]) -> Shape:
        """Return the extents of the leading part of the operand that holds a part of the result; by default all of it.

        `read` are the extents of the result's part, `operand` those of the whole operand.
        """
        return operand

    def forward(self, run: RunContext, *arrays: Any, out: Array, **attrs: Any) -> None:
        """Copy the view into `out`."""
        function, arguments = self.bind(run, arrays, out, attrs)
        function(*arguments)

    def bind(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> KernelCall:
        """Return the copy of the view into `out` as a bound call."""
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
    """Op that is a formula over other ops.

    `infer` checks operands, so that errors name this op; `compose` emits the formula. Gradient, batching and cost are
    those of its parts.
    """

    @abstractmethod
    def compose(self, *operands: Any, **attrs: Any) -> Emitted:
        """Return the result, as nodes of other ops."""


class Registry:
    """The opset: canonical names, the spellings of other systems, and one kind for each attribute name."""

    def __init__(self, ops: Iterable[Definition]) -> None:
        """Index the ops. Raises ValueError if two ops share a name, or an attribute name has two kinds."""
        self.ops: Mapping[str, Definition] = MappingProxyType(
            _unique((op.name, op) for op in sorted(ops, key=lambda op: op.name))
        )
        self._spellings = Spellings({name: op.aliases for name, op in self.ops.items()})
        self.attributes: Mapping[str, AttributeKind] = MappingProxyType(_attribute_kinds(self.ops.values()))

    def find(self, spelling: str) -> Definition | None:
        """Return the op with this canonical name or alias, ignoring case; None if there is none."""
        name = self._spellings.find(spelling)
        return None if name is None else self.ops[name]

    def get(self, spelling: str) -> Definition:
        """Return the op with this name or alias. Raises UnknownOp, with a suggestion."""
        op = self.find(spelling)
        if op is not None:
            return op
        hint, shown = self.hint(spelling) or "GET /v1/ops lists all ops", printable(spelling)
        raise UnknownOp(f"there is no op called “{shown}”; {hint}", expected="the name or an alias of an op", got=shown)

    def hint(self, spelling: str) -> str | None:
        """Return “did you mean silu?” for a name that `find` does not know, or None if no name is close."""
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
