"""Base of the elementwise ops: an op states a formula and one partial derivative an operand, nothing else.

Broadcasting, its adjoint, kernels, batching and cost are here, once.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Final

import numpy as np

from engine.codegen.kernels.array_functions import (
    ARRAY_FUNCTIONS,
    block_workspace,
    broadcast_blocks,
    fill_function,
    library,
)
from engine.codegen.kernels.block_program import COMPLEX_PRIMITIVE_OF, UFUNCS
from engine.codegen.kernels.blocks import ElementKernel
from engine.codegen.kernels.program import PRIMITIVES, KernelBuilder, Level, Scalar, Scalars
from engine.ir.attributes import Attr
from engine.ir.errors import DtypeMismatch
from engine.ir.graph import RuleCache, Value, conjugate, for_real, shaped
from engine.ir.op import (
    Array,
    Composite,
    Definition,
    KernelCall,
    Namespace,
    NoGradient,
    Op,
    ResultTypes,
    RewriteRule,
    View,
)
from engine.ir.run_context import DeviceMethod, RunContext
from engine.ir.sample import Bools, Ints, Real, Sample
from engine.ir.tensor_type import (
    BOOL,
    DTYPES,
    FLOAT16,
    FLOAT32,
    FLOATS,
    DType,
    TensorType,
    broadcast,
    has_loops,
    in_opset,
    is_complex,
    promote,
    real_dtype,
    to_float,
)
from engine.ops.common import batching
from engine.ops.common.batching import BatchedAsIs
from engine.ops.common.numerics import sum_parts_bytes, wide, widened
from engine.ops.rewrites import MOVING, unchanged

#: one element of a result: `formula(*operands, **attrs)`; None where the attributes leave it opaque
ScalarFormula = Callable[..., Scalar | None]
#: name of a ufunc → the primitive that it is
PRIMITIVE_OF: Final[Mapping[str, str]] = {ufunc: op for op, ufunc in UFUNCS.items()}
#: kernels that are remembered: each takes some 4 kB, and each number in an attribute makes another
_MOST_KERNELS: Final = 1024


def primitive_of(ufunc: str, types: Sequence[Scalars]) -> str | None:
    """The primitive that a ufunc is of scalars of these types; None where there is none."""
    return (COMPLEX_PRIMITIVE_OF if "pair" in types else PRIMITIVE_OF).get(ufunc)


def scalars_of(dtype: DType) -> Scalars:
    """Return the type that the elements of a dtype have in a kernel of its floats."""
    return "bool" if dtype == BOOL else "pair" if is_complex(dtype) else "float"


def read_as(x: Scalar, type: Scalars) -> Scalar:
    """x as a bool, true where it is not 0, or as a number, 1 where it is true; a complex number remains one."""
    if x.type == type or (x.type, type) == ("pair", "float"):
        return x
    return x.ne(0.0) if type == "bool" else x.where(1.0, 0.0)


def number_dtype(out: DType) -> DType:
    """The dtype to compute in: float32 for float16 results, which are rounded once; else the result's own."""
    return FLOAT32 if out in (FLOAT16, BOOL) else out


#: the partial derivative by one operand: `partial(y, *operands, **attrs)`; a number, or a bool mask, is allowed
Partial = Callable[..., "Value | float"]


class Elementwise(Op):
    """y = f(a, b, …) on broadcast operands.

    A subclass names the ufunc (of numpy and cupy alike), or gives `scalar` and `result_dtype`; and gives `partials`,
    one for each operand, or a reason why there are none. `compute` is for what is neither a ufunc nor made of them.
    """

    #: name of the function in numpy and cupy
    ufunc: ClassVar[str] = ""
    #: one element of the result: `scalar(*operands, **attrs)`, or None where some attributes leave no formula
    scalar: ClassVar[ScalarFormula | None] = None
    #: the same of complex operands, where it is another one
    complex_scalar: ClassVar[ScalarFormula | None] = None
    partials: ClassVar[Sequence[Partial] | NoGradient]
    rewrites: ClassVar[tuple[RewriteRule, ...]] = MOVING
    #: FLOPs for one element
    cost: ClassVar[int] = 1
    #: arrays of the result's size that a `compute` of its own allocates beside `out`
    temporaries: ClassVar[int] = 0
    #: the same of a `compute_complex` of its own; and arrays of as many bools
    complex_temporaries: ClassVar[int] = 0
    complex_masks: ClassVar[int] = 0
    samples: ClassVar[tuple[Sample, ...]] = (Sample(Real(2, 3)), Sample(Real()), Sample(Real(0, 2)))

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """Return the dtype that NumPy 2 gives the ufunc. Raises DtypeMismatch if NumPy has no loop for these dtypes."""
        return _ufunc_dtype(self.ufunc, dtypes)

    def compute(self, run: RunContext, *xs: Any, **attrs: Any) -> None:
        """The kernel: write f(xs) into the keyword argument `out`."""
        self._compute(run, xs, attrs.pop("out"), attrs)

    def compute_complex(self, run: RunContext, *xs: Any, **attrs: Any) -> None:
        """The kernel of what is complex, which loops are not written for: by default the ufunc."""
        getattr(run.xp, self.ufunc)(*xs, out=attrs["out"])

    def _compute(self, run: RunContext, xs: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> None:
        if _has_complex(xs, out):
            self.compute_complex(run, *xs, out=out, **attrs)
            return
        kernel = None if self.ufunc else self._kernel([x.dtype for x in xs], out.dtype, attrs)
        if kernel is None:
            getattr(run.xp, self.ufunc)(*xs, out=out)
        else:
            kernel.fill(run, xs, out)

    def scalar_of(self, operands: Sequence[Scalar], attrs: Mapping[str, Any]) -> Scalar | None:
        """One element of the result as a scalar of the operands' loop; None where the op is opaque.

        A bool counts as 0 or 1 where a number is wanted, and a number as true where it is not 0.
        """
        types = [x.type for x in operands]
        read = [read_as(x, type) for x, type in zip(operands, self.reads(*types), strict=True)]
        formula = self.complex_scalar if "pair" in types and self.complex_scalar else self.scalar
        if formula is not None:
            return formula(*read, **attrs)
        primitive = primitive_of(self.ufunc, types)
        return None if primitive is None else read[0].builder.apply(primitive, *read)

    def reads(self, *types: Scalars) -> Sequence[Scalars]:
        """Return the kinds in which the formula takes operands of these types: numbers by default."""
        is_primitive = self.scalar is None and self.ufunc in PRIMITIVE_OF
        return PRIMITIVES[PRIMITIVE_OF[self.ufunc]].takes if is_primitive else ["float"] * len(types)

    def is_fusible(self, out: TensorType, *types: TensorType, **attrs: Any) -> bool:
        """Whether `scalar_of` computes this result of such operands: all float32, or all float64, but for bools.

        Complex numbers count as what their parts are.
        """
        dtypes = {real_dtype(t.dtype) for t in (out, *types)} - {BOOL}
        return len(dtypes) == 1 and self.is_fusible_in(dtypes.pop(), out, *types, **attrs)

    def is_fusible_in(self, dtype: DType, out: TensorType, *types: TensorType, **attrs: Any) -> bool:
        """Whether `scalar_of` computes it in a loop of this dtype, that of all but bools; of bools alone, of any."""
        formulas = self.scalar, self.complex_scalar
        is_opaque = formulas == (None, None) and primitive_of(self.ufunc, [scalars_of(t.dtype) for t in types]) is None
        if is_opaque or not has_loops(dtype):
            return False
        kernel = _kernels(self, (dtype, out.dtype, *(t.dtype for t in types)), attrs)
        return kernel is not None and kernel.gives == out.dtype

    def infer(self, *types: Any, **attrs: Any) -> Any:
        """Broadcast shape, dtype by `result_dtype`."""
        dtype = self.result_dtype(*(t.dtype for t in types), **attrs)
        if all(t is types[0] for t in types) and dtype == types[0].dtype:
            return types[0]
        return TensorType(broadcast(*(t.shape for t in types)), dtype)

    def forward(self, run: RunContext, *xs: Any, **attrs: Any) -> None:
        """Run the kernel."""
        self.compute(run, *xs, **attrs)

    @property
    def computes_by_itself(self) -> bool:
        """Whether there is more to it than its ufunc or formula."""
        return type(self).compute is not Elementwise.compute or type(self).forward is not Elementwise.forward

    def fill(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> None:
        """Compute with the kernel of the formula, cached under a key of the attributes."""
        if self.computes_by_itself:
            super().fill(run, operands, out, attrs)
        else:
            self._compute(run, operands, out, attrs)

    def bind(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> KernelCall:
        """The ufunc itself, or those that a small formula comes down to; of a kernel of its own, `forward`."""
        is_own = type(self).compute_complex is not Elementwise.compute_complex and _has_complex(operands, out)
        if self.computes_by_itself or is_own:
            return super().bind(run, operands, out, attrs)
        kernel = self._kernel([x.dtype for x in operands], out.dtype, attrs)
        if kernel is None:
            return ufunc_call(getattr(run.xp, self.ufunc), operands, out)
        return kernel.bind(run, operands, out)

    def vjp(self, g: Value, y: Value, *xs: Any, **attrs: Any) -> Sequence[Value | None]:
        """g times the conjugate of each partial, summed over the axes that its operand was broadcast along."""
        if isinstance(self.partials, NoGradient):
            return [None for _ in xs]
        wide = widened(self, y, xs, attrs)
        return [
            unbroadcast(scale(g, partial(*wide, **attrs)), x) if x.type.is_differentiable else None
            for partial, x in zip(self.partials, xs, strict=True)
        ]

    def batch(self, mapped: Sequence[bool], *xs: Any, **attrs: Any) -> Value:
        """Itself, once the ranks agree."""
        aligned = batching.align(mapped, xs)
        return aligned[0].builder.emit(self, aligned, attrs)

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """`cost` for each element."""
        return self.cost * super().flops(out, *types, **attrs)

    def workspace(self, out: TensorType, *types: Any, **attrs: Any) -> int:
        """A few blocks; of a kernel of its own, `temporaries` arrays like the result.

        Of complex numbers, at least the parts in which a compiled kernel counts angles that are out of its range.
        """
        if _has_complex(types, out):
            arrays = self.complex_temporaries * out.nbytes + self.complex_masks * out.size
            return max(arrays, sum_parts_bytes(out.size))
        dtypes = [t.dtype for t in types]
        kernel = self._kernel(dtypes, out.dtype, attrs)
        return self.temporaries * out.nbytes if kernel is None else kernel.workspace(out.size)

    def _kernel(self, dtypes: Sequence[DType], dtype: DType, attrs: Mapping[str, Any]) -> ElementKernel | None:
        """The kernel that follows from the formula; None where there is one without it."""
        if self.ufunc or self.scalar is None or is_complex(dtype):
            return None
        return _kernels(self, (number_dtype(dtype), dtype, *dtypes), attrs)


def _kernel_of(op: Definition, dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> ElementKernel | None:
    """The kernel of a formula; None where opaque. `dtypes` are those of its numbers, its result and its operands."""
    assert isinstance(op, Elementwise)
    number, dtype, *read = dtypes
    builder = KernelBuilder("float32" if number == FLOAT32 else "float64")
    types = [scalars_of(each) for each in read]
    loaded = [type if type == "pair" else wanted for type, wanted in zip(types, op.reads(*types), strict=True)]
    found = op.scalar_of([builder.load(Level.ELEMENT, type) for type in loaded], attrs)
    if found is None:
        return None
    builder.store("element", found)
    return ElementKernel(builder.loop(), number, read, dtype)


_kernels = RuleCache(_kernel_of, _MOST_KERNELS)


class Unary(Elementwise):
    """Base: one operand."""

    operands: ClassVar[tuple[str, ...]] = ("x",)
    cost = 10


class FloatUnary(Unary):
    """Base: one operand and a float result, by a kernel of our own."""

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """x's own dtype where it is float; integers as NumPy's exp."""
        return to_float(*dtypes)


class WithConstants(Unary):
    """Base: y = f(x) with constants among the attributes."""

    cost = 1

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """x's own dtype where it is float, else float64."""
        return in_opset(np.result_type(dtypes[0], 0.0))


class Predicate(Elementwise):
    """Base: a bool result, by NumPy's ufunc."""

    gradient = "none: the result is bool"
    partials = vjp = NoGradient("the result is bool")


class Binary(Elementwise):
    """Base: two operands."""

    operands: ClassVar[tuple[str, ...]] = ("a", "b")
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Real(2, 3), Real(2, 3)),
        Sample(Real(2, 3), Real(3)),
        Sample(Real(2, 1), Real(1, 3)),
        Sample(Real(), Real(2)),
        Sample(Real(0, 3), Real(3)),
    )


class FloatBinary(Binary):
    """Base: two operands and a float result, by a kernel of our own."""

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """The common dtype where it is float; of integers as NumPy's exp."""
        return to_float(*dtypes)


def ufunc_call(function: Callable[..., object], operands: Sequence[Array], out: Array) -> KernelCall:
    """The call of a ufunc. By position it is a quarter faster; two of NumPy's take `out` by name only."""
    if function in (np.maximum, np.minimum) or not isinstance(function, np.ufunc):
        return functools.partial(function, *operands, out=out), ()
    return function, (*operands, out)


def _has_complex(xs: Sequence[Array | TensorType], out: Array | TensorType) -> bool:
    """Whether the result or an operand is complex."""
    return is_complex(out.dtype) or any(is_complex(x.dtype) for x in xs)


def scale(g: Value, partial: Value | float) -> Value:
    """g · conj(partial). A bool partial is a mask: it selects, so that an infinite g beside it does no harm."""
    if not isinstance(partial, (int, float)):
        return partial.where(g, 0.0) if partial.dtype.kind == "b" else g * conjugate(partial)
    return g if partial == 1 else -g if partial == -1 else g * partial


def unbroadcast(g: Value, x: Value) -> Value:
    """The adjoint of broadcasting x to g's shape: g summed over the axes that x does not have or has at extent 1.

    Of a real x, the real part of it.
    """
    g = for_real(g, x.type)
    if g.type is x.type or g.shape == x.shape:
        return g
    lead = g.ndim - x.ndim
    axes = (*range(lead), *(lead + i for i, e in enumerate(x.shape) if e != g.shape[lead + i]))
    return shaped(g.sum(axes=axes) if axes else g, x.shape)


@lru_cache(maxsize=4096)
def _ufunc_dtype(ufunc: str, dtypes: tuple[DType, ...]) -> DType:
    try:
        resolved = getattr(np, ufunc).resolve_dtypes((*dtypes, None))
    except TypeError:
        names = ", ".join(d.name for d in dtypes)
        raise DtypeMismatch(f"is not defined for {names}", expected="numbers", got=names) from None
    return in_opset(resolved[-1])


# Base of the functions that are SciPy's and CuPy's on whole arrays.
#
# "Units" in the docstrings are units in the last place of a float64, on NumPy; on a GPU the functions are CuPy's own,
# and in compiled kernels of float32 they are those of docs/accuracy.md.


class LibraryFunction(FloatUnary):
    """Base: one of ARRAY_FUNCTIONS, in float64 and block by block, so that it takes little memory.

    A `scalar` is for kernels: so float16 is rounded once, from float64.
    """

    #: its name among ARRAY_FUNCTIONS
    function: ClassVar[str]
    cost = 50

    def compute(self, run: RunContext, x: Array, *, out: Array) -> None:
        """The kernel."""
        fill_function(run, self.function, x, out)

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """A few blocks."""
        arrays = ARRAY_FUNCTIONS[self.function].arrays
        return block_workspace(out.size, arrays) if isinstance(out, TensorType) else 0


class LibraryUfunc(Elementwise):
    """Base: a function of several operands that both libraries have under one name, in float64 and block by block."""

    #: its name in both
    function: ClassVar[str]
    cost = 200

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """The common dtype where it is float; of integers as NumPy's exp."""
        return to_float(*dtypes)

    @DeviceMethod
    def compute(self, run: RunContext, *xs: Array, out: Array) -> None:
        """The kernel."""
        wide = [run.xp.asarray(x, "float64") for x in xs]
        out[...] = getattr(library(run.xp), self.function)(*wide)

    @compute.on("cpu")
    def _compute_in_blocks(self, run: RunContext, *xs: Array, out: Array) -> None:
        broadcast_blocks(run, getattr(library(run.xp), self.function), xs, out)

    def workspace(self, out: TensorType, *types: Any, **attrs: Any) -> int:
        """A block of each operand, and of the result."""
        return block_workspace(out.size, len(types) + 2)


def in_float32(primitive: str) -> ScalarFormula:
    """The formula that is a primitive written out in float32; in float64 the op is opaque."""

    def formula(x: Scalar) -> Scalar | None:
        return x.builder.apply(primitive, x) if x.dtype == "float32" else None

    return formula


class Formula(Composite):
    """A composite that computes float16 operands in float32: squares and exponentials leave float16's range."""

    dtypes: ClassVar[tuple[str, ...]] = FLOATS

    @abstractmethod
    def formula(self, *operands: Any, **attrs: Any) -> Value:
        """The result, of operands none of which is float16."""

    def compose(self, *operands: Value, **attrs: Any) -> Value:
        """Widen, compute, and cast back to the operands' common dtype."""
        y = self.formula(*map(wide, operands), **attrs)
        floats = [x.dtype for x in operands if x.type.is_differentiable]
        return y.cast(dtype=promote(*floats)) if FLOAT16 in floats else y


def power_series(coefficients: Sequence[float], x: Value) -> Value:
    """Σ coefficients[k] xᵏ, in x's dtype; the lowest power comes first, and there is one at least."""
    *others, last = coefficients
    found = x.full_like(last)
    for coefficient in reversed(others):
        found = found * x + coefficient
    return found


# Casts, and ops that hand their operand on as it is: for differentiation too, or cut off from it.


class Cast(BatchedAsIs):
    """y = x in another dtype, as NumPy's astype: fractions are cut off towards zero, nonzero is true.

    float → float is differentiable; through integers and bool there is no path. A real x becomes complex; a complex one
    never real, of which `real` says what is meant.
    """

    name = "cast"
    section = "cast"
    aliases: ClassVar[Mapping[str, str]] = {"Cast": "born", "astype": "sadl"}
    operands = ("x",)
    dtypes = DTYPES
    attrs: ClassVar[Mapping[str, Attr]] = {"dtype": Attr("dtype", doc="the result's dtype")}
    gradient = "g, cast back"
    may_disconnect = ("x",)
    rewrites = (unchanged,)
    samples = (
        Sample(Real(2, 3), dtype="float64"),
        Sample(Real(2, 3), dtype="int32"),
        Sample(Ints(3, high=5), dtype="float64"),
        Sample(Bools(3), dtype="float32"),
    )

    def infer(self, x: TensorType, *, dtype: DType) -> ResultTypes:
        """x's shape in `dtype`. Raises DtypeMismatch for a complex x in a real one."""
        if x.is_complex and not is_complex(dtype):
            wanted, got = "a complex dtype", dtype.name
            raise DtypeMismatch(
                f"operand 0 (x) is {x.dtype.name}, which cast does not make {got}: use real, imag or abs",
                operand=0,
                expected=wanted,
                got=got,
            )
        return x.with_dtype(dtype)

    def forward(self, run: RunContext, x: Array, *, out: Array, dtype: DType) -> None:
        """Convert while copying."""
        out[...] = x

    def in_elements(self, x: Value, *, dtype: DType) -> Value | None:
        """Add an imaginary part of 0 to a real x as wide as a complex number's parts."""
        return x.make_complex(0.0) if is_complex(dtype) and real_dtype(dtype) == x.dtype else None

    def bind(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> KernelCall:
        """The assignment itself."""
        return out.__setitem__, (..., *operands)

    def vjp(self, g: Value, y: Value, x: Value, *, dtype: DType) -> Sequence[Value | None]:
        """The cotangent; what accumulates it casts it back."""
        return (g,)


class PassThrough(BatchedAsIs, View):
    """Base: the result is the operand."""

    section = "identity"
    operands: ClassVar[tuple[str, ...]] = ("x",)
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    gradient: ClassVar[str] = "g"
    rewrites = (unchanged,)
    samples: ClassVar[tuple[Sample, ...]] = (Sample(Real(2, 3)), Sample(Ints(3, high=5)))
    reshapes = True

    def infer(self, *types: TensorType, **attrs: Any) -> ResultTypes:
        """The operand's type."""
        return types[0]

    def view(self, xp: Namespace, x: Array) -> Array:
        """The operand."""
        return x

    def vjp(self, g: Value, y: Value, x: Value) -> Sequence[Value | None]:
        """The cotangent passes."""
        return (g,)


class Identity(PassThrough):
    """y = x, as a node of its own."""

    name = "identity"


class CopyToDevice(PassThrough):
    """y = x.

    Where a graph runs is the server's choice, so there is nothing to move; the gradient passes through.
    """

    name = "copy_to_device"
    aliases: ClassVar[Mapping[str, str]] = {"copy_to_device": "sadl"}


class StopGradient(PassThrough):
    """y = x, and no derivative passes: for differentiation y is a constant."""

    name = "stop_gradient"
    gradient = "none: that is its purpose"
    vjp = NoGradient("that is the op's purpose")
