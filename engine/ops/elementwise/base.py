"""Base classes of elementwise ops. An op declares only a formula and one partial derivative per operand.

Broadcasting, its adjoint, kernels, batching and cost are implemented here once.
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
from engine.ir.graph import RuleCache, Value, conjugate, real_cotangent, shaped
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
    Support,
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
    float_dtype,
    has_kernels,
    in_opset,
    is_complex,
    promote,
    real_dtype,
)
from engine.ops.common import batching
from engine.ops.common.batching import BatchedAsIs
from engine.ops.common.numerics import floats_for_rule, partial_sums_bytes, upcast, upcast_operands
from engine.ops.common.support import Indicated
from engine.ops.rewrites import ELEMENTWISE_RULES, no_op

#: formula of one element: `formula(*operands, **attrs)`; returns None if there is none for these attributes
ScalarFormula = Callable[..., Scalar | None]
#: ufunc name → equivalent primitive
PRIMITIVE_OF: Final[Mapping[str, str]] = {ufunc: op for op, ufunc in UFUNCS.items()}
#: capacity of the kernel cache: a kernel takes about 4 kB, and every new number in an attribute makes another kernel
_MOST_KERNELS: Final = 1024


def primitive_of(ufunc: str, types: Sequence[Scalars]) -> str | None:
    """Return the primitive equivalent to a ufunc on scalars of these types; None if there is none."""
    return (COMPLEX_PRIMITIVE_OF if "pair" in types else PRIMITIVE_OF).get(ufunc)


def scalar_type(dtype: DType) -> Scalars:
    """Return the scalar type that represents elements of a dtype in a kernel."""
    return "bool" if dtype == BOOL else "pair" if is_complex(dtype) else "float"


def convert_scalar(x: Scalar, type: Scalars) -> Scalar:
    """Convert x to a bool (nonzero is true) or to a number (true is 1). A complex number stays complex."""
    if x.type == type or (x.type, type) == ("pair", "float"):
        return x
    return x.ne(0.0) if type == "bool" else x.where(1.0, 0.0)


def compute_dtype(out: DType) -> DType:
    """Return the dtype to compute in: float32 for float16 (rounded once, at the end) and bool, else the same dtype."""
    return FLOAT32 if out in (FLOAT16, BOOL) else out


#: partial derivative with respect to one operand: `partial(y, *operands, **attrs)`; may be a number or a bool mask
Partial = Callable[..., "Value | float"]


class Elementwise(Op):
    """y = f(a, b, …) on broadcast operands.

    A subclass names a ufunc (the same in numpy and cupy), or defines `scalar` and `result_dtype`. It also defines
    `partials`, one per operand, or the reason why there are none. Ops that are neither a ufunc nor a formula override
    `compute`.
    """

    #: name of the function in numpy and cupy
    ufunc: ClassVar[str] = ""
    #: formula of one element: `scalar(*operands, **attrs)`; returns None for attributes without a formula
    scalar: ClassVar[ScalarFormula | None] = None
    #: formula for complex operands, if it differs
    complex_scalar: ClassVar[ScalarFormula | None] = None
    partials: ClassVar[Sequence[Partial] | NoGradient]
    #: the partials are finite numbers or bools, so that a cotangent of zero stays zero
    is_linear: ClassVar[bool] = False
    rewrites: ClassVar[tuple[RewriteRule, ...]] = ELEMENTWISE_RULES
    #: FLOPs per element
    cost: ClassVar[int] = 1
    #: number of arrays of the result's size that an overridden `compute` allocates in addition to `out`
    temporaries: ClassVar[int] = 0
    #: the same for an overridden `compute_complex`, and the number of bool arrays that it allocates
    complex_temporaries: ClassVar[int] = 0
    complex_masks: ClassVar[int] = 0
    samples: ClassVar[tuple[Sample, ...]] = (Sample(Real(2, 3)), Sample(Real()), Sample(Real(0, 2)))

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """Return the dtype that NumPy 2 gives the ufunc. Raises DtypeMismatch if NumPy has no loop for these dtypes."""
        return _ufunc_dtype(self.ufunc, dtypes)

    def compute(self, run: RunContext, *xs: Any, **attrs: Any) -> None:
        """Write f(xs) into the keyword argument `out`."""
        self._compute(run, xs, attrs.pop("out"), attrs)

    def compute_complex(self, run: RunContext, *xs: Any, **attrs: Any) -> None:
        """Write f(xs) of complex operands, which ElementKernel does not support. By default, call the ufunc."""
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

    def write_scalar(self, operands: Sequence[Scalar], attrs: Mapping[str, Any]) -> Scalar | None:
        """Write one element of the result as a scalar of a kernel; None if the op has no formula.

        Operands are converted: a bool to 0 or 1 if the formula needs a number, a number to true if it is not 0.
        """
        types = [x.type for x in operands]
        converted = [convert_scalar(x, type) for x, type in zip(operands, self.reads(*types), strict=True)]
        formula = self.complex_scalar if "pair" in types and self.complex_scalar else self.scalar
        if formula is not None:
            return formula(*converted, **attrs)
        primitive = primitive_of(self.ufunc, types)
        return None if primitive is None else converted[0].builder.apply(primitive, *converted)

    def reads(self, *types: Scalars) -> Sequence[Scalars]:
        """Return the scalar types that the formula takes for operands of these types: numbers by default."""
        is_primitive = self.scalar is None and self.ufunc in PRIMITIVE_OF
        return PRIMITIVES[PRIMITIVE_OF[self.ufunc]].operands if is_primitive else ["float"] * len(types)

    def is_fusible(self, out: TensorType, *types: TensorType, **attrs: Any) -> bool:
        """Whether a fused kernel can compute this result: all operands are float32, or all float64, apart from bools.

        A complex number counts as the dtype of its parts.
        """
        dtypes = {real_dtype(t.dtype) for t in (out, *types)} - {BOOL}
        return len(dtypes) == 1 and self.is_fusible_in(dtypes.pop(), out, *types, **attrs)

    def is_fusible_in(self, dtype: DType, out: TensorType, *types: TensorType, **attrs: Any) -> bool:
        """Whether a fused kernel of this dtype can compute the result. Bools fit any dtype."""
        formulas = self.scalar, self.complex_scalar
        is_opaque = formulas == (None, None) and primitive_of(self.ufunc, [scalar_type(t.dtype) for t in types]) is None
        if is_opaque or not has_kernels(dtype):
            return False
        kernel = _kernels(self, (dtype, out.dtype, *(t.dtype for t in types)), attrs)
        return kernel is not None and kernel.result_dtype == out.dtype

    def infer(self, *types: Any, **attrs: Any) -> Any:
        """Return the broadcast shape with the dtype of `result_dtype`."""
        dtype = self.result_dtype(*(t.dtype for t in types), **attrs)
        if all(t is types[0] for t in types) and dtype == types[0].dtype:
            return types[0]
        return TensorType(broadcast(*(t.shape for t in types)), dtype)

    def forward(self, run: RunContext, *xs: Any, **attrs: Any) -> None:
        """Call `compute`."""
        self.compute(run, *xs, **attrs)

    @property
    def has_own_implementation(self) -> bool:
        """Whether the op overrides `compute` or `forward`, beyond its ufunc or formula."""
        return type(self).compute is not Elementwise.compute or type(self).forward is not Elementwise.forward

    def fill(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> None:
        """Compute with the formula's cached kernel, unless the op has its own implementation."""
        if self.has_own_implementation:
            super().fill(run, operands, out, attrs)
        else:
            self._compute(run, operands, out, attrs)

    def bind(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> KernelCall:
        """Bind the ufunc, or the formula's kernel; if the op has its own implementation, bind `forward`."""
        overrides_complex = type(self).compute_complex is not Elementwise.compute_complex and _has_complex(
            operands, out
        )
        if self.has_own_implementation or overrides_complex:
            return super().bind(run, operands, out, attrs)
        kernel = self._kernel([x.dtype for x in operands], out.dtype, attrs)
        if kernel is None:
            return bind_ufunc(getattr(run.xp, self.ufunc), operands, out)
        return kernel.bind(run, operands, out)

    def vjp(self, g: Value, y: Value, *xs: Any, **attrs: Any) -> Sequence[Value | None]:
        """Multiply g by the conjugate of each partial, and sum over the axes that the operand was broadcast along."""
        if isinstance(self.partials, NoGradient):
            return [None for _ in xs]
        result, *operands = upcast_operands(self, y, xs, attrs)
        operands = floats_for_rule(result.dtype, operands)
        return [
            unbroadcast(scale(g, partial(result, *operands, **attrs)), x) if x.type.is_differentiable else None
            for partial, x in zip(self.partials, xs, strict=True)
        ]

    def supported_vjp(
        self, gs: Sequence[Any], supports: Sequence[Support | None] | None, y: Any, *xs: Any, **attrs: Any
    ) -> tuple[Sequence[Any], Sequence[Support | None]]:
        """Apply the rule to operands of the result's shape, and set the cotangents outside of the support to zero.

        Operands that were broadcast get sums, which have no support.
        """
        support = None if supports is None else supports[0]
        if support is None:
            return super().supported_vjp(gs, supports, y, *xs, **attrs)
        wide = [x.broadcast_to(shape=y.shape) if x.shape != y.shape else x for x in xs]
        gradients = self.vjp(gs[0], y, *wide, **attrs)
        if not self.is_linear:
            gradients = [None if g is None else support.value.where(g, 0.0) for g in gradients]
        return (
            [None if g is None else unbroadcast(g, x) for g, x in zip(gradients, xs, strict=True)],
            [support if x.shape == y.shape else None for x in xs],
        )

    def batch(self, mapped: Sequence[bool], *xs: Any, **attrs: Any) -> Value:
        """Emit the op itself on operands aligned to the same rank."""
        aligned = batching.align(mapped, xs)
        return aligned[0].builder.emit(self, aligned, attrs)

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Count `cost` for each element."""
        return self.cost * super().flops(out, *types, **attrs)

    def workspace(self, out: TensorType, *types: Any, **attrs: Any) -> int:
        """Count the blocks of the formula's kernel, or `temporaries` arrays if the op has its own implementation.

        For complex numbers, count at least the per-block counters of a compiled kernel for angles outside its range.
        """
        if _has_complex(types, out):
            arrays = self.complex_temporaries * out.nbytes + self.complex_masks * out.size
            return max(arrays, partial_sums_bytes(out.size))
        dtypes = [t.dtype for t in types]
        kernel = self._kernel(dtypes, out.dtype, attrs)
        return self.temporaries * out.nbytes if kernel is None else kernel.workspace(out.size)

    def _kernel(self, dtypes: Sequence[DType], dtype: DType, attrs: Mapping[str, Any]) -> ElementKernel | None:
        """Return the kernel compiled from the formula; None for ufuncs, opaque ops and complex results."""
        if self.ufunc or self.scalar is None or is_complex(dtype):
            return None
        return _kernels(self, (compute_dtype(dtype), dtype, *dtypes), attrs)


def _kernel_of(op: Definition, dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> ElementKernel | None:
    """Build the kernel of a formula; None if it has none. `dtypes`: to compute in, of the result, of the operands."""
    assert isinstance(op, Elementwise)
    working_dtype, dtype, *operand_dtypes = dtypes
    builder = KernelBuilder("float32" if working_dtype == FLOAT32 else "float64")
    types = [scalar_type(each) for each in operand_dtypes]
    loaded = [
        type if type == "pair" else operand_type for type, operand_type in zip(types, op.reads(*types), strict=True)
    ]
    result = op.write_scalar([builder.load(Level.ELEMENT, type) for type in loaded], attrs)
    if result is None:
        return None
    builder.store("element", result)
    return ElementKernel(builder.build(), working_dtype, operand_dtypes, dtype)


_kernels = RuleCache(_kernel_of, _MOST_KERNELS)


class Unary(Elementwise):
    """Base: one operand."""

    operands: ClassVar[tuple[str, ...]] = ("x",)
    cost = 10


class FloatUnary(Unary):
    """Base: one operand and a float result, computed from a formula instead of a ufunc."""

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """Return x's own dtype if it is float; for integers, the dtype of NumPy's exp."""
        return float_dtype(*dtypes)


class WithConstants(Unary):
    """Base: y = f(x) with constants as attributes."""

    cost = 1

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """Return x's own dtype if it is float, else float64."""
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
    """Base: two operands and a float result, computed from a formula instead of a ufunc."""

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """Return the common dtype if it is float; for integers, the dtype of NumPy's exp."""
        return float_dtype(*dtypes)


def bind_ufunc(function: Callable[..., object], operands: Sequence[Array], out: Array) -> KernelCall:
    """Bind a ufunc. Passing `out` by position is a quarter faster; NumPy's maximum and minimum take it by name only."""
    if function in (np.maximum, np.minimum) or not isinstance(function, np.ufunc):
        return functools.partial(function, *operands, out=out), ()
    return function, (*operands, out)


def _has_complex(xs: Sequence[Array | TensorType], out: Array | TensorType) -> bool:
    """Whether the result or an operand is complex."""
    return is_complex(out.dtype) or any(is_complex(x.dtype) for x in xs)


def scale(g: Value, partial: Value | float) -> Value:
    """Return g · conj(partial). A bool partial selects, so that an infinite g where it is false does not give NaN."""
    if not isinstance(partial, (int, float)):
        return partial.where(g, 0.0) if partial.dtype.kind == "b" else g * conjugate(partial)
    return g if partial == 1 else -g if partial == -1 else g * partial


def unbroadcast(g: Value, x: Value) -> Value:
    """Sum g over the axes that x lacks or has at extent 1: the adjoint of broadcasting x to g's shape.

    If x is real, take the real part.
    """
    g = real_cotangent(g, x.type)
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


# Base classes of functions that SciPy and CuPy compute on whole arrays.
#
# "Units" in the docstrings are units in the last place of a float64, on NumPy; on a GPU the functions are CuPy's own,
# and in compiled kernels of float32 they are those of docs/accuracy.md.


class LibraryFunction(FloatUnary):
    """Base: one of ARRAY_FUNCTIONS, computed in float64 block by block, so that it takes little memory.

    A subclass may define `scalar` for fused kernels. Results are rounded once, from float64.
    """

    #: key in ARRAY_FUNCTIONS
    function: ClassVar[str]
    cost = 50

    def compute(self, run: RunContext, x: Array, *, out: Array) -> None:
        """Call the array function block by block."""
        fill_function(run, self.function, x, out)

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Count a few blocks."""
        arrays = ARRAY_FUNCTIONS[self.function].arrays
        return block_workspace(out.size, arrays) if isinstance(out, TensorType) else 0


class LibraryUfunc(Elementwise):
    """Base: a function of several operands that SciPy and CuPy name alike, computed in float64 block by block."""

    #: name in both libraries
    function: ClassVar[str]
    cost = 200

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """Return the common dtype if it is float; for integers, the dtype of NumPy's exp."""
        return float_dtype(*dtypes)

    @DeviceMethod
    def compute(self, run: RunContext, *xs: Array, out: Array) -> None:
        """Call the library's function on float64 operands."""
        operands = [run.xp.asarray(x, "float64") for x in xs]
        out[...] = getattr(library(run.xp), self.function)(*operands)

    @compute.on("cpu")
    def _compute_in_blocks(self, run: RunContext, *xs: Array, out: Array) -> None:
        broadcast_blocks(run, getattr(library(run.xp), self.function), xs, out)

    def workspace(self, out: TensorType, *types: Any, **attrs: Any) -> int:
        """Count a block for each operand and for the result."""
        return block_workspace(out.size, len(types) + 2)


def in_float32(primitive: str) -> ScalarFormula:
    """Make a formula that applies a primitive in float32; in float64, the op has no formula."""

    def formula(x: Scalar) -> Scalar | None:
        return x.builder.apply(primitive, x) if x.dtype == "float32" else None

    return formula


class Formula(Composite):
    """Base: a composite that computes float16 operands in float32, as squares and exponentials overflow float16."""

    dtypes: ClassVar[tuple[str, ...]] = FLOATS

    @abstractmethod
    def formula(self, *operands: Any, **attrs: Any) -> Value:
        """Write the result in terms of other ops. No operand is float16."""

    def compose(self, *operands: Value, **attrs: Any) -> Value:
        """Upcast, apply the formula, and cast back to the operands' common dtype."""
        y = self.formula(*map(upcast, operands), **attrs)
        floats = [x.dtype for x in operands if x.type.is_differentiable]
        return y.cast(dtype=promote(*floats)) if FLOAT16 in floats else y


def power_series(coefficients: Sequence[float], x: Value) -> Value:
    """Evaluate Σ coefficients[k] xᵏ in x's dtype, lowest power first; at least one coefficient."""
    *higher, last = coefficients
    total = x.full_like(last)
    for coefficient in reversed(higher):
        total = total * x + coefficient
    return total


# Casts, and ops that return their operand unchanged, differentiable or not.


class Cast(Indicated, BatchedAsIs):
    """y = x converted to another dtype, as in NumPy's astype: fractions are truncated towards zero, nonzero is true.

    Float to float is differentiable; no gradient passes through integers or bool. A real x can become complex. To
    convert a complex x to real, use `real`.
    """

    name = "cast"
    section = "cast"
    aliases: ClassVar[Mapping[str, str]] = {"Cast": "born", "astype": "sadl"}
    operands = ("x",)
    dtypes = DTYPES
    attrs: ClassVar[Mapping[str, Attr]] = {"dtype": Attr("dtype", doc="dtype of the result")}
    gradient = "g, cast back"
    may_disconnect = ("x",)
    rewrites = (no_op,)
    samples = (
        Sample(Real(2, 3), dtype="float64"),
        Sample(Real(2, 3), dtype="int32"),
        Sample(Ints(3, high=5), dtype="float64"),
        Sample(Bools(3), dtype="float32"),
    )

    def infer(self, x: TensorType, *, dtype: DType) -> ResultTypes:
        """Return x's shape with `dtype`. Raises DtypeMismatch for a cast from complex to real."""
        if x.is_complex and not is_complex(dtype):
            expected, received = "a complex dtype", dtype.name
            raise DtypeMismatch(
                f"operand 0 (x) is {x.dtype.name}, which cast cannot convert to {received}: use real, imag or abs",
                operand=0,
                expected=expected,
                got=received,
            )
        return x.with_dtype(dtype)

    def forward(self, run: RunContext, x: Array, *, out: Array, dtype: DType) -> None:
        """Convert while copying."""
        out[...] = x

    def as_elementwise(self, x: Value, *, dtype: DType) -> Value | None:
        """Add an imaginary part of 0 to a real x as wide as a complex number's parts."""
        return x.make_complex(0.0) if is_complex(dtype) and real_dtype(dtype) == x.dtype else None

    def bind(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> KernelCall:
        """Bind the assignment that `forward` makes."""
        return out.__setitem__, (..., *operands)

    def vjp(self, g: Value, y: Value, x: Value, *, dtype: DType) -> Sequence[Value | None]:
        """Pass g on; the code that accumulates it casts it to x's dtype."""
        return (g,)


class PassThrough(Indicated, BatchedAsIs, View):
    """Base: the result is the operand."""

    section = "identity"
    operands: ClassVar[tuple[str, ...]] = ("x",)
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    gradient: ClassVar[str] = "g"
    rewrites = (no_op,)
    samples: ClassVar[tuple[Sample, ...]] = (Sample(Real(2, 3)), Sample(Ints(3, high=5)))
    reshapes = True

    def infer(self, *types: TensorType, **attrs: Any) -> ResultTypes:
        """Return the operand's type."""
        return types[0]

    def view(self, xp: Namespace, x: Array) -> Array:
        """Return the operand."""
        return x

    def vjp(self, g: Value, y: Value, x: Value) -> Sequence[Value | None]:
        """Pass g on."""
        return (g,)


class Identity(PassThrough):
    """y = x, as a separate node."""

    name = "identity"


class CopyToDevice(PassThrough):
    """y = x.

    The server chooses where a graph runs, so nothing is moved. The gradient passes through.
    """

    name = "copy_to_device"
    aliases: ClassVar[Mapping[str, str]] = {"copy_to_device": "sadl"}


class StopGradient(PassThrough):
    """y = x, treated as a constant in differentiation."""

    name = "stop_gradient"
    gradient = "none: that is its purpose"
    vjp = NoGradient("that is the op's purpose")
