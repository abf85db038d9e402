"""Discrete Fourier transforms: of complex tensors, and of real ones to the non-redundant half."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute, ShapeMismatch, counted
from engine.ir.graph import Value
from engine.ir.op import Array, Composite, Op, ResultTypes
from engine.ir.run_context import DeviceMethod, RunContext
from engine.ir.sample import Ints, Real, Sample, Truth
from engine.ir.tensor_type import (
    DTYPES,
    DType,
    Shape,
    TensorType,
    complex_dtype,
    mean_dtype,
    normalise_axes,
    real_dtype,
    show_shape,
)
from engine.ops.common.batching import shift_axes
from engine.ops.common.numerics import with_extent
from engine.ops.conv.windows import gather_windows, tap_positions
from engine.ops.index.indices import axis_shape

#: normalisation of the adjoint: the transform in the other direction with the same factor
_ADJOINT: Final = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
#: elements below which a second thread costs more than it saves
_THREADED_ELEMENTS: Final = 1 << 15
#: bytes per point of the lines that SciPy works in, including its twiddle factor
_POINT_BYTES: Final = 80


class Transform(Op):
    """Base: axes, points on each and normalisation; batching shifts the axes."""

    section = "fft"
    since = 2
    is_captured = False
    operands: ClassVar[tuple[str, ...]] = ("x",)
    dtypes = DTYPES
    attrs: ClassVar[Mapping[str, Attr]] = {
        "axes": Attr(
            "ints", None, "axes to transform; default: the last axis, or as many last axes as there are sizes"
        ),
        "sizes": Attr(
            "ints", None, "points on each axis, to which x is cut or zero-padded; default: x's extents", minimum=1
        ),
        "norm": Attr(
            "string",
            "backward",
            "direction that divides by the number of points; ortho: both, by its square root",
            choices=tuple(_ADJOINT),
        ),
    }

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Count the axes from the front, and fill in the points of each. Raises BadAttribute, ShapeMismatch."""
        (x,) = types
        axes, sizes = attrs["axes"], attrs["sizes"]
        if not x.ndim or axes == ():
            raise ShapeMismatch(f"{self.name} needs an axis to transform", operand=0, expected="an axis", got="none")
        if axes is None and sizes is not None and len(sizes) > x.ndim:
            expected, received = f"at most {counted(x.ndim, 'size')}", str(len(sizes))
            raise BadAttribute(
                f"attribute sizes must have {expected}, one for each axis, but has {received}",
                attribute="sizes",
                expected=expected,
                got=received,
            )
        axes = normalise_axes(axes, x.ndim) if axes else tuple(range(x.ndim - len(sizes or (0,)), x.ndim))
        if sizes is None:
            sizes = self.points([x.shape[axis] for axis in axes])
            for axis, size in zip(axes, sizes, strict=True):
                if size < 1:
                    received = f"{x.shape[axis]} on axis {axis}"
                    detail = f"{self.name} needs at least one point on each axis, or sizes; the operand has {received}"
                    raise ShapeMismatch(detail, operand=0, expected="a point", got=received)
        elif len(sizes) != len(axes):
            expected, received = f"length {len(axes)}", f"length {len(sizes)}"
            raise BadAttribute(
                f"attribute sizes must have {expected}, like axes, but has {received}",
                attribute="sizes",
                expected=expected,
                got=received,
            )
        return {**attrs, "axes": axes, "sizes": tuple(sizes)}

    def points(self, extents: list[int]) -> list[int]:
        """Return the default points for operands of these extents."""
        return extents

    def operand_extents(self, sizes: Shape) -> Shape:
        """Return the extents of an operand that is neither cut nor padded."""
        return sizes

    def result_extents(self, sizes: Shape) -> Shape:
        """Return the extents of the result."""
        return sizes

    def result_dtype(self, x: TensorType) -> DType:
        """Return the complex dtype that holds x: complex64 for float16, complex128 for integers."""
        return complex_dtype(x.dtype)

    def infer(self, x: TensorType, *, axes: Shape, sizes: Shape, norm: str) -> ResultTypes:
        """Return x's shape with the extents of the transform."""
        shape = x.shape
        for axis, extent in zip(axes, self.result_extents(sizes), strict=True):
            shape = with_extent(shape, axis, extent)
        return TensorType(shape, self.result_dtype(x))

    def compose(self, x: Value, *, axes: Shape, sizes: Shape, norm: str) -> Value | None:
        """Cut or pad x first, if it has another number of points."""
        fitted = _cut_or_pad(x, axes, self.operand_extents(sizes))
        if fitted is x:
            return None
        return x.builder.emit(self, (fitted,), {"axes": axes, "sizes": sizes, "norm": norm})

    @DeviceMethod
    def forward(self, run: RunContext, x: Array, *, out: Array, axes: Shape, sizes: Shape, norm: str) -> None:
        """Call the array module's function on float32 or wider: it would scale float16 in float16."""
        if out.size:
            wide = complex_dtype(x.dtype)
            x = x.astype(wide if x.dtype.kind == "c" else real_dtype(wide), copy=False)
            out[...] = self.transform(run.xp.fft, x, axes, sizes, norm)

    @forward.on("cpu")
    def _forward_on_cpu(self, run: RunContext, x: Array, *, out: Array, axes: Shape, sizes: Shape, norm: str) -> None:
        """Call SciPy's pocketfft with the plan's threads, in place if the dtypes allow it."""
        if not out.size:
            return
        import scipy.fft  # noqa: PLC0415 - a tenth of a second, for the graphs that need it

        with scipy.fft.set_workers(run.threads if x.size >= _THREADED_ELEMENTS else 1):
            result = self.transform_with_scipy(scipy.fft, x, out, axes, sizes, norm)
        if not np.may_share_memory(result, out):
            out[...] = result

    @abstractmethod
    def transform(self, fft: Any, x: Array, axes: Shape, sizes: Shape, norm: str) -> Array:
        """Transform with a module like `numpy.fft`."""

    @abstractmethod
    def transform_with_scipy(self, fft: Any, x: Array, out: Array, axes: Shape, sizes: Shape, norm: str) -> Array:
        """Transform with `scipy.fft`, which may write to `out`."""

    def batch(self, mapped: Sequence[bool], x: Value, *, axes: Shape, sizes: Shape, norm: str) -> Value:
        """Shift the axes by one."""
        return x.builder.emit(self, (x,), {"axes": shift_axes(axes), "sizes": sizes, "norm": norm})

    def flops(self, out: TensorType, *types: TensorType, axes: Shape, sizes: Shape, norm: str) -> int:
        """Return the customary 5 n log₂ n for each line of n points; half of that if x or the result is real."""
        (x,), ys = types, out
        flops_per_point = sum(5 * math.log2(max(n, 2)) for n in sizes)
        return math.ceil(max(x.size, ys.size) * flops_per_point / (1 if x.is_complex and ys.is_complex else 2))

    def workspace(self, out: TensorType, *types: TensorType, axes: Shape, sizes: Shape, norm: str) -> int:
        """Count the bytes beside the result, and of a line of each axis."""
        return self.extra_bytes(out, types[0], axes) + _POINT_BYTES * sum(sizes)

    @abstractmethod
    def extra_bytes(self, out: TensorType, x: TensorType, axes: Shape) -> int:
        """Return the bytes of arrays that SciPy allocates beside the result."""


class CompleteTransform(Transform):
    """Base of transforms to complex numbers, as many as there are points, in the result's own memory."""

    #: name of the function in NumPy's and SciPy's modules
    function: ClassVar[str]

    def transform(self, fft: Any, x: Array, axes: Shape, sizes: Shape, norm: str) -> Array:
        """Call the function."""
        return getattr(fft, self.function)(x, axes=axes, norm=norm)

    def transform_with_scipy(self, fft: Any, x: Array, out: Array, axes: Shape, sizes: Shape, norm: str) -> Array:
        """Copy x into the result, and transform it in place."""
        out[...] = x
        return getattr(fft, self.function)(out, axes=axes, norm=norm, overwrite_x=True)

    def extra_bytes(self, out: TensorType, x: TensorType, axes: Shape) -> int:
        """Return 0."""
        return 0


class Fft(CompleteTransform):
    """y[k] = Σ x[j] exp(−2πi j k / n) over `axes`, each of n points: the discrete Fourier transform.

    `norm` is as in NumPy: `forward` divides by n, `ortho` by √n. Real operands are converted to complex. float16 gives
    complex64, integers give complex128. PyTorch, JAX and NumPy: `fft`; over several axes, `fft2` and `fftn`.
    """

    name = "fft"
    function = "fftn"
    gradient = "ifft(g) without the division by n; for a real operand, its real part"
    samples = (
        Sample(Real(4)),
        Sample(Real(2, 3), axes=[0], norm="ortho"),
        Sample(Real(2, 3, 2), axes=[2, 0], norm="forward"),
        Sample(Real(3, 2), axes=[0], sizes=[5]),
        Sample(Real(2, 4), axes=[-1, 0], sizes=[3, 3]),
        Sample(Real(0, 3)),
        Sample(Ints(5, high=9)),
    )
    truths = (
        Truth(
            operands=[[1.0, 2.0, 3.0, 4.0]],
            value=[10 + 0j, -2 + 2j, -2 + 0j, -2 - 2j],
            cotangent=[1 + 0j, 2j, 3 + 0j, 1 + 1j],
            gradients=[[5.0, -3.0, 3.0, -1.0]],
            source="by hand: Re Σ g[k] iʲᵏ",
        ),
        Truth(
            operands=[[1 + 2j, 3 - 1j]],
            value=[4 + 1j, -2 + 3j],
            cotangent=[4 + 1j, -2 + 3j],
            gradients=[[2 + 4j, 6 - 2j]],
            source="by hand: two points, twice there is twice the points",
        ),
    )

    def vjp(self, g: Value, y: Value, x: Value, *, axes: Shape, sizes: Shape, norm: str) -> Sequence[Value | None]:
        """Apply the inverse transform with the adjoint's normalisation: the matrix of the transform is symmetric."""
        return (g.ifft(axes=axes, norm=_ADJOINT[norm]),)


class InverseFft(CompleteTransform):
    """y[j] = Σ x[k] exp(2πi j k / n) / n over `axes`, each of n points: the inverse of `fft`.

    `norm` is as in NumPy: `forward` does not divide, `ortho` divides by √n. Real operands are converted to complex.
    float16 gives complex64, integers give complex128. PyTorch, JAX and NumPy: `ifft`; over several axes, `ifft2` and
    `ifftn`.
    """

    name = "ifft"
    function = "ifftn"
    gradient = "fft(g) / n; for a real operand, its real part"
    samples = (
        Sample(Real(4)),
        Sample(Real(2, 3), axes=[0], norm="ortho"),
        Sample(Real(3, 2), axes=[0, 1], sizes=[2, 3], norm="forward"),
        Sample(Ints(5, high=9)),
    )
    truths = (
        Truth(
            operands=[[10 + 0j, -2 + 2j, -2 + 0j, -2 - 2j]],
            value=[1 + 0j, 2 + 0j, 3 + 0j, 4 + 0j],
            cotangent=[4 + 0j, 8 + 0j, 0j, 0j],
            gradients=[[3 + 0j, 1 - 2j, -1 + 0j, 1 + 2j]],
            source="by hand: the first truth of fft, and Σ g[j] (−i)ʲᵏ / 4",
        ),
    )

    def vjp(self, g: Value, y: Value, x: Value, *, axes: Shape, sizes: Shape, norm: str) -> Sequence[Value | None]:
        """Use the rule of fft."""
        return (g.fft(axes=axes, norm=_ADJOINT[norm]),)


class HalfTransform(Transform):
    """Base: on the last of `axes`, a real tensor of n points corresponds to ⌊n / 2⌋ + 1 complex entries."""

    def half(self, sizes: Shape) -> Shape:
        """Return the extents of the complex tensor."""
        return (*sizes[:-1], sizes[-1] // 2 + 1)


class RealFft(HalfTransform):
    """The first ⌊n / 2⌋ + 1 entries of `fft` of a real x on the last of `axes`; the other entries are their conjugates.

    float16 gives complex64, integers give complex128. `norm` is as in `fft`. PyTorch, JAX and NumPy: `rfft`; over
    several axes, `rfft2` and `rfftn`.
    """

    name = "rfft"
    dtypes = Op.dtypes
    gradient = "the real part of ifft(g) without the division by n, with g padded with zeros"
    samples = (
        Sample(Real(4)),
        Sample(Real(5), norm="ortho"),
        Sample(Real(2, 3), axes=[1, 0], norm="forward"),
        Sample(Real(3, 2), axes=[0], sizes=[4]),
        Sample(Real(2, 6), axes=[0, 1], sizes=[3, 3]),
        Sample(Real(1)),
        Sample(Real(0, 3)),
        Sample(Ints(6, high=9)),
    )
    truths = (
        Truth(
            operands=[[1.0, 2.0, 3.0, 4.0]],
            value=[10 + 0j, -2 + 2j, -2 + 0j],
            cotangent=[1 + 5j, 2j, 3 + 7j],
            gradients=[[4.0, -4.0, 4.0, 0.0]],
            source="by hand: Re Σ g[k] iʲᵏ over k = 0, 1, 2",
        ),
    )

    def result_extents(self, sizes: Shape) -> Shape:
        """Return the extents of the half transform."""
        return self.half(sizes)

    def transform(self, fft: Any, x: Array, axes: Shape, sizes: Shape, norm: str) -> Array:
        """Call `rfftn`."""
        return fft.rfftn(x, axes=axes, norm=norm)

    def transform_with_scipy(self, fft: Any, x: Array, out: Array, axes: Shape, sizes: Shape, norm: str) -> Array:
        """Call `rfftn`, which allocates its result."""
        return fft.rfftn(x, axes=axes, norm=norm)

    def extra_bytes(self, out: TensorType, x: TensorType, axes: Shape) -> int:
        """Return the bytes of the result, and of x if it is converted."""
        return out.nbytes + (0 if x.dtype == real_dtype(out.dtype) else out.dtype.itemsize // 2 * x.size)

    def vjp(self, g: Value, y: Value, x: Value, *, axes: Shape, sizes: Shape, norm: str) -> Sequence[Value | None]:
        """Apply `irfft` to g, halving the inner entries, which `irfft` counts twice."""
        return (_scale_inner(g, 0.5, axes, sizes).irfft(axes=axes, sizes=sizes, norm=_ADJOINT[norm]),)


class InverseRealFft(HalfTransform):
    """The real y whose `rfft` is x, with n = `sizes` points on the last of `axes`; default: 2 (m − 1) for m entries.

    The imaginary parts of entry 0, and of entry n / 2 if n is even, are ignored. Real operands are converted to
    complex. float16 gives float16, integers give float64. `norm` is as in `ifft`. PyTorch, JAX and NumPy: `irfft`; over
    several axes, `irfft2` and `irfftn`.
    """

    name = "irfft"
    gradient = "rfft(g) / n, with the inner entries doubled"
    samples = (
        Sample(Real(3)),
        Sample(Real(3), axes=[0], sizes=[5], norm="ortho"),
        Sample(Real(3, 2), axes=[0, 1], norm="forward"),
        Sample(Real(2, 3), axes=[1, 0], sizes=[4, 7]),
        Sample(Real(0, 3)),
        Sample(Real(1), axes=[0], sizes=[1]),
        Sample(Ints(4, high=9)),
    )
    truths = (
        Truth(
            operands=[[10 + 9j, -2 + 2j, -2 + 9j]],
            value=[1.0, 2.0, 3.0, 4.0],
            cotangent=[4.0, 8.0, 0.0, 0.0],
            gradients=[[3 + 0j, 2 - 4j, -1 + 0j]],
            source="by hand: the truth of rfft, and Σ g[j] (−i)ʲᵏ / 4 for k = 0, 1, 2, the middle twice",
        ),
    )

    def points(self, extents: list[int]) -> list[int]:
        """Return an even number of points on the last axis."""
        return [*extents[:-1], 2 * (extents[-1] - 1)]

    def operand_extents(self, sizes: Shape) -> Shape:
        """Return the extents of the half transform."""
        return self.half(sizes)

    def result_dtype(self, x: TensorType) -> DType:
        """Return the dtype of x's parts; float64 for integers."""
        return real_dtype(mean_dtype(x.dtype))

    def transform(self, fft: Any, x: Array, axes: Shape, sizes: Shape, norm: str) -> Array:
        """Transform the last axis separately, without the imaginary parts of its end entries.

        Libraries differ in whether they ignore these.
        """
        *others, last = axes
        z = fft.ifftn(x, axes=others, norm=norm) if others else x + 0j
        for entry in {0, sizes[-1] // 2} if sizes[-1] % 2 == 0 else {0}:
            index = tuple(entry if axis == last else slice(None) for axis in range(x.ndim))
            z[index] = z[index].real
        return fft.irfft(z, sizes[-1], axis=last, norm=norm)

    def transform_with_scipy(self, fft: Any, x: Array, out: Array, axes: Shape, sizes: Shape, norm: str) -> Array:
        """Transform the last axis separately: for several axes, SciPy would allocate a hidden copy."""
        *others, last = axes
        z = fft.ifftn(x, axes=others, norm=norm) if others else x
        return fft.irfft(z, sizes[-1], axis=last, norm=norm)

    def extra_bytes(self, out: TensorType, x: TensorType, axes: Shape) -> int:
        """Return the bytes of the result in the computation's dtype, and of a complex copy of x if there is one."""
        dtype = complex_dtype(x.dtype)
        copies = len(axes) > 1 or not x.is_complex
        return dtype.itemsize // 2 * out.size + copies * dtype.itemsize * x.size

    def vjp(self, g: Value, y: Value, x: Value, *, axes: Shape, sizes: Shape, norm: str) -> Sequence[Value | None]:
        """Apply `rfft` to g, doubling the inner entries: each also stands for its conjugate."""
        return (_scale_inner(g.rfft(axes=axes, norm=_ADJOINT[norm]), 2.0, axes, sizes),)


def _cut_or_pad(x: Value, axes: Shape, extents: Shape) -> Value:
    """Cut x, or pad it with zeros at the end, to these extents."""
    stops, widths = list(x.shape), [0] * (2 * x.ndim)
    for axis, extent in zip(axes, extents, strict=True):
        stops[axis] = min(extent, x.shape[axis])
        widths[2 * axis + 1] = extent - stops[axis]
    cut = x if tuple(stops) == x.shape else x.slice(stops=tuple(stops))
    return cut.pad(pad_width=tuple(widths)) if any(widths) else cut


def _scale_inner(x: Value, factor: float, axes: Shape, sizes: Shape) -> Value:
    """Multiply x by `factor` except entry 0, and entry n / 2 if n is even, which are their own mirror images."""
    axis, n = axes[-1], sizes[-1]
    count = n // 2 + 1
    last = int(n % 2 == 0)
    inner = x.builder.full((count - 1 - last,), factor, real_dtype(x.dtype))
    return x * inner.pad(pad_width=(1, last), fill=1.0).reshape(shape=axis_shape(x.ndim, axis, count))


class ShortTimeFft(Composite):
    """y[…, t, k] = Σ window[j] x[…, t · stride + j] exp(−2πi j k / n) over j: [… time] → [… frames, ⌊n / 2⌋ + 1].

    Applies `rfft` to each part of x that the window [w] covers, with n = w points unless `sizes` states another number.
    x is not padded: to get frames around its ends, `pad` it first. TensorFlow: `signal.stft`. PyTorch and SciPy:
    `stft`, with the last two axes swapped, and with padding by default. NumPy and JAX: frames and `rfft`.
    """

    name = "stft"
    section = "stft"
    since = 2
    operands = ("x", "window")
    attrs: ClassVar[Mapping[str, Attr]] = {
        "stride": Attr("ints", doc="one number: distance between the starts of adjacent frames", minimum=1),
        "sizes": Attr("ints", None, "one number: points of each transform; default: the window's length", minimum=1),
    }
    gradient = "that of rfft, times the window, summed where frames overlap"
    samples = (
        Sample(Real(7), Real(4), stride=[2]),
        Sample(Real(2, 6), Real(3), stride=[3], sizes=[5]),
        Sample(Real(5), Real(5), stride=[1], sizes=[2]),
        Sample(Real(0, 4), Real(2), stride=[2]),
        Sample(Ints(6, high=9), Ints(2, low=1, high=3), stride=[2]),
    )
    truths = (
        Truth(
            operands=[[1.0, 2.0, 4.0, 8.0], [1.0, 0.5]],
            attrs={"stride": [2]},
            value=[[2 + 0j, 0j], [8 + 0j, 0j]],
            cotangent=[[1 + 0j, 2j], [3 + 0j, 1 + 0j]],
            gradients=[[1.0, 0.5, 4.0, 1.0], [17.0, 18.0]],
            source="by hand: a + b and a − b of pairs of x times the window",
        ),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Fill in the points of a transform. Raises BadAttribute, ShapeMismatch."""
        x, window = types
        if window.ndim != 1 or not window.size:
            received = show_shape(window.shape)
            raise ShapeMismatch(
                f"operand 1 (window) must have one axis with at least one entry, but has shape {received}",
                operand=1,
                expected="one axis with at least one entry",
                got=received,
            )
        if not x.ndim or x.shape[-1] < window.size:
            received = show_shape(x.shape)
            expected = f"at least {counted(window.size, 'entry', 'entries')} on its last axis, the length of the window"
            raise ShapeMismatch(
                f"operand 0 (x) must have {expected}, but has shape {received}",
                operand=0,
                expected=expected,
                got=received,
            )
        complete = {"stride": attrs["stride"], "sizes": attrs["sizes"] or (window.size,)}
        for name, value in complete.items():
            if len(value) != 1:
                received = f"length {len(value)}"
                raise BadAttribute(
                    f"attribute {name} must have length 1, but has {received}",
                    attribute=name,
                    expected="length 1",
                    got=received,
                )
        return {name: tuple(value) for name, value in complete.items()}

    def infer(self, x: TensorType, window: TensorType, *, stride: Shape, sizes: Shape) -> ResultTypes:
        """Return the type of frames with ⌊n / 2⌋ + 1 entries each."""
        frames = (x.shape[-1] - window.size) // stride[0] + 1
        return TensorType((*x.shape[:-1], frames, sizes[0] // 2 + 1), complex_dtype(x.dtype, window.dtype))

    def compose(self, x: Value, window: Value, *, stride: Shape, sizes: Shape) -> Value:
        """Gather frames, apply the window, and transform."""
        last, width = x.ndim - 1, window.shape[0]
        frames = (x.shape[-1] - width) // stride[0] + 1
        positions = tap_positions(x, frames, width, stride[0], 1)
        return (gather_windows(x, last, positions) * window).rfft(axes=(last + 1,), sizes=sizes)
