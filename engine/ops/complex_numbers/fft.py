"""Discrete Fourier transforms, of complex tensors, and of real ones to the half that says all."""

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
    normalise_axes,
    real_dtype,
    show_shape,
    to_average,
    to_complex,
)
from engine.ops.common.batching import shift
from engine.ops.common.numerics import with_extent
from engine.ops.conv.windows import regular_places, windows_at
from engine.ops.index.indices import column_of

#: a scale, and that of the transform the other way for the same factor
_ADJOINT: Final = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
#: elements below which a second thread costs more than it does
_FEW: Final = 1 << 15
#: bytes of a point of the lines that SciPy works in, and of its factor
_LINE: Final = 80


class Transform(Op):
    """Base: which axes, how many points of each, and the scale; batching over the next axes."""

    section = "fft"
    since = 2
    is_captured = False
    operands: ClassVar[tuple[str, ...]] = ("x",)
    dtypes = DTYPES
    attrs: ClassVar[Mapping[str, Attr]] = {
        "axes": Attr("ints", None, "the axes to transform; absent: the last"),
        "sizes": Attr(
            "ints", None, "points on each of axes: x is cut, or padded with zeros; absent: as many as x has", minimum=1
        ),
        "norm": Attr(
            "string",
            "backward",
            "which way is divided by the number of points: that back, that forth, or both by its root",
            choices=tuple(_ADJOINT),
        ),
    }

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Axes counted from the front, and how many points each has. Raises BadAttribute, ShapeMismatch."""
        (x,) = types
        axes, sizes = attrs["axes"], attrs["sizes"]
        if axes is None and sizes is not None:
            raise BadAttribute("attribute sizes needs axes, one for each", expected="axes", got="none")
        if not x.ndim or axes == ():
            raise ShapeMismatch(f"{self.name} needs an axis to transform", operand=0, expected="an axis", got="none")
        axes = normalise_axes(axes, x.ndim) if axes else (x.ndim - 1,)
        if sizes is None:
            sizes = self.points([x.shape[axis] for axis in axes])
            for axis, size in zip(axes, sizes, strict=True):
                if size < 1:
                    got = f"{x.shape[axis]} on axis {axis}"
                    detail = f"{self.name} needs a point on each axis, or sizes; the operand has {got}"
                    raise ShapeMismatch(detail, operand=0, expected="a point", got=got)
        elif len(sizes) != len(axes):
            wanted, got = f"length {len(axes)}", f"length {len(sizes)}"
            raise BadAttribute(f"attribute sizes must have {wanted}, as axes, but has {got}", expected=wanted, got=got)
        return {**attrs, "axes": axes, "sizes": tuple(sizes)}

    def points(self, extents: list[int]) -> list[int]:
        """The points of operands of these extents, where nothing is said."""
        return extents

    def operand_extents(self, sizes: Shape) -> Shape:
        """The extents of an operand that is neither cut nor padded."""
        return sizes

    def result_extents(self, sizes: Shape) -> Shape:
        """Return the extents of the result."""
        return sizes

    def result_dtype(self, x: TensorType) -> DType:
        """The complex dtype that has x; complex64 of float16, complex128 of integers."""
        return to_complex(x.dtype)

    def infer(self, x: TensorType, *, axes: Shape, sizes: Shape, norm: str) -> ResultTypes:
        """x's shape with the extents of the transform."""
        shape = x.shape
        for axis, extent in zip(axes, self.result_extents(sizes), strict=True):
            shape = with_extent(shape, axis, extent)
        return TensorType(shape, self.result_dtype(x))

    def compose(self, x: Value, *, axes: Shape, sizes: Shape, norm: str) -> Value | None:
        """Transform x cut or padded, if it has another number of points."""
        fitted = _fitted(x, axes, self.operand_extents(sizes))
        if fitted is x:
            return None
        return x.builder.emit(self, (fitted,), {"axes": axes, "sizes": sizes, "norm": norm})

    @DeviceMethod
    def forward(self, run: RunContext, x: Array, *, out: Array, axes: Shape, sizes: Shape, norm: str) -> None:
        """The array module's own, which would scale float16 in float16."""
        if out.size:
            wide = to_complex(x.dtype)
            x = x.astype(wide if x.dtype.kind == "c" else real_dtype(wide), copy=False)
            out[...] = self.transformed(run.xp.fft, x, axes, sizes, norm)

    @forward.on("cpu")
    def _forward_on_cpu(self, run: RunContext, x: Array, *, out: Array, axes: Shape, sizes: Shape, norm: str) -> None:
        """SciPy's pocketfft, by the plan's threads; in place, where the dtypes allow it."""
        if not out.size:
            return
        import scipy.fft  # noqa: PLC0415 - a tenth of a second, for the graphs that need it

        with scipy.fft.set_workers(run.threads if x.size >= _FEW else 1):
            found = self.transformed_by_scipy(scipy.fft, x, out, axes, sizes, norm)
        if not np.may_share_memory(found, out):
            out[...] = found

    @abstractmethod
    def transformed(self, fft: Any, x: Array, axes: Shape, sizes: Shape, norm: str) -> Array:
        """Transform with a module like `numpy.fft`."""

    @abstractmethod
    def transformed_by_scipy(self, fft: Any, x: Array, out: Array, axes: Shape, sizes: Shape, norm: str) -> Array:
        """Transform with `scipy.fft`, which may write to `out`."""

    def batch(self, mapped: Sequence[bool], x: Value, *, axes: Shape, sizes: Shape, norm: str) -> Value:
        """The next axes."""
        return x.builder.emit(self, (x,), {"axes": shift(axes), "sizes": sizes, "norm": norm})

    def flops(self, out: TensorType, *types: TensorType, axes: Shape, sizes: Shape, norm: str) -> int:
        """5 n log₂ n for each line of n points, as is customary; of real ones half."""
        (x,), ys = types, out
        each = sum(5 * math.log2(max(n, 2)) for n in sizes)
        return math.ceil(max(x.size, ys.size) * each / (1 if x.is_complex and ys.is_complex else 2))

    def workspace(self, out: TensorType, *types: TensorType, axes: Shape, sizes: Shape, norm: str) -> int:
        """Count the bytes beside the result, and of a line of each axis."""
        return self.spare(out, types[0], axes) + _LINE * sum(sizes)

    @abstractmethod
    def spare(self, out: TensorType, x: TensorType, axes: Shape) -> int:
        """Bytes of arrays that SciPy makes beside the result."""


class CompleteTransform(Transform):
    """Base: to complex numbers, as many as there are points; in the result's own memory."""

    #: that of NumPy's and SciPy's modules
    function: ClassVar[str]

    def transformed(self, fft: Any, x: Array, axes: Shape, sizes: Shape, norm: str) -> Array:
        """Call the function."""
        return getattr(fft, self.function)(x, axes=axes, norm=norm)

    def transformed_by_scipy(self, fft: Any, x: Array, out: Array, axes: Shape, sizes: Shape, norm: str) -> Array:
        """In place, once x is there."""
        out[...] = x
        return getattr(fft, self.function)(out, axes=axes, norm=norm, overwrite_x=True)

    def spare(self, out: TensorType, x: TensorType, axes: Shape) -> int:
        """None."""
        return 0


class Fft(CompleteTransform):
    """y[k] = Σ x[j] exp(−2πi j k / n) over `axes`, each of n points: the discrete Fourier transform.

    `norm` is NumPy's: `forward` divides by n, `ortho` by √n. Real operands are taken as complex. float16 gives
    complex64, integers complex128. PyTorch's, JAX's and NumPy's `fft`, and `fft2` and `fftn` by several axes.
    """

    name = "fft"
    function = "fftn"
    gradient = "ifft(g) without its division: of a real operand, the real part"
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
        """Its matrix is symmetric: the adjoint has the conjugate's factors."""
        return (g.ifft(axes=axes, norm=_ADJOINT[norm]),)


class InverseFft(CompleteTransform):
    """y[j] = Σ x[k] exp(2πi j k / n) / n over `axes`, each of n points: the inverse of `fft`.

    `norm` is NumPy's: `forward` does not divide, `ortho` does by √n. Real operands are taken as complex. float16 gives
    complex64, integers complex128. PyTorch's, JAX's and NumPy's `ifft`, and `ifft2` and `ifftn` by several axes.
    """

    name = "ifft"
    function = "ifftn"
    gradient = "fft(g) / n: of a real operand, the real part"
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
    """Base: over the last of `axes`, a real tensor of n points is the first ⌊n / 2⌋ + 1 of its transform."""

    def half(self, sizes: Shape) -> Shape:
        """The extents of the complex tensor."""
        return (*sizes[:-1], sizes[-1] // 2 + 1)


class RealFft(HalfTransform):
    """The first ⌊n / 2⌋ + 1 entries of `fft` on the last of `axes`, of a real x: the others are their conjugates.

    float16 gives complex64, integers complex128. `norm` is that of `fft`. PyTorch's, JAX's and NumPy's `rfft`, and
    `rfft2` and `rfftn` by several axes.
    """

    name = "rfft"
    dtypes = Op.dtypes
    gradient = "the real part of ifft(g) without its division, g filled up with zeros"
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
        """Half of the last."""
        return self.half(sizes)

    def transformed(self, fft: Any, x: Array, axes: Shape, sizes: Shape, norm: str) -> Array:
        """Call `rfftn`."""
        return fft.rfftn(x, axes=axes, norm=norm)

    def transformed_by_scipy(self, fft: Any, x: Array, out: Array, axes: Shape, sizes: Shape, norm: str) -> Array:
        """Into an array of its own."""
        return fft.rfftn(x, axes=axes, norm=norm)

    def spare(self, out: TensorType, x: TensorType, axes: Shape) -> int:
        """The result, and x where it is narrower than that, or whole."""
        return out.nbytes + (0 if x.dtype == real_dtype(out.dtype) else out.dtype.itemsize // 2 * x.size)

    def vjp(self, g: Value, y: Value, x: Value, *, axes: Shape, sizes: Shape, norm: str) -> Sequence[Value | None]:
        """Use `irfft`, which counts inner frequencies twice."""
        return (_inner_times(g, 0.5, axes, sizes).irfft(axes=axes, sizes=sizes, norm=_ADJOINT[norm]),)


class InverseRealFft(HalfTransform):
    """The real tensor whose `rfft` x is: of n = `sizes` points on the last of `axes`, 2 (m − 1) for m entries of x.

    The imaginary parts of entry 0, and of entry n / 2 where n is even, count for nothing. Real operands are taken as
    complex. float16 gives float16, integers float64. `norm` is that of `ifft`. PyTorch's, JAX's and NumPy's `irfft`,
    and `irfft2` and `irfftn` by several axes.
    """

    name = "irfft"
    gradient = "rfft(g) / n, the inner entries twice"
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
        """An even number on the last axis."""
        return [*extents[:-1], 2 * (extents[-1] - 1)]

    def operand_extents(self, sizes: Shape) -> Shape:
        """Half of the last."""
        return self.half(sizes)

    def result_dtype(self, x: TensorType) -> DType:
        """Return the dtype of x's parts; float64 for integers."""
        return real_dtype(to_average(x.dtype))

    def transformed(self, fft: Any, x: Array, axes: Shape, sizes: Shape, norm: str) -> Array:
        """The last axis by itself: not every library leaves the imaginary parts of its ends out."""
        *others, last = axes
        z = fft.ifftn(x, axes=others, norm=norm) if others else x + 0j
        for end in {0, sizes[-1] // 2} if sizes[-1] % 2 == 0 else {0}:
            at = tuple(end if axis == last else slice(None) for axis in range(x.ndim))
            z[at] = z[at].real
        return fft.irfft(z, sizes[-1], axis=last, norm=norm)

    def transformed_by_scipy(self, fft: Any, x: Array, out: Array, axes: Shape, sizes: Shape, norm: str) -> Array:
        """Into an array of its own, the last axis by itself: of several SciPy would keep a copy that nobody sees."""
        *others, last = axes
        z = fft.ifftn(x, axes=others, norm=norm) if others else x
        return fft.irfft(z, sizes[-1], axis=last, norm=norm)

    def spare(self, out: TensorType, x: TensorType, axes: Shape) -> int:
        """The result, in the dtype that it is computed in; and x as complex numbers, but where there is no need."""
        dtype = to_complex(x.dtype)
        copies = len(axes) > 1 or not x.is_complex
        return dtype.itemsize // 2 * out.size + copies * dtype.itemsize * x.size

    def vjp(self, g: Value, y: Value, x: Value, *, axes: Shape, sizes: Shape, norm: str) -> Sequence[Value | None]:
        """Each entry inside stands for its conjugate, too."""
        return (_inner_times(g.rfft(axes=axes, norm=_ADJOINT[norm]), 2.0, axes, sizes),)


def _fitted(x: Value, axes: Shape, extents: Shape) -> Value:
    """x cut, or padded with zeros behind, to these extents."""
    stops, widths = list(x.shape), [0] * (2 * x.ndim)
    for axis, extent in zip(axes, extents, strict=True):
        stops[axis] = min(extent, x.shape[axis])
        widths[2 * axis + 1] = extent - stops[axis]
    cut = x if tuple(stops) == x.shape else x.slice(stops=tuple(stops))
    return cut.pad(pad_width=tuple(widths)) if any(widths) else cut


def _inner_times(x: Value, factor: float, axes: Shape, sizes: Shape) -> Value:
    """x times `factor`, but for what is its own mirror image: entry 0, and n / 2 where n is even."""
    axis, n = axes[-1], sizes[-1]
    count = n // 2 + 1
    last = int(n % 2 == 0)
    inside = x.builder.full((count - 1 - last,), factor, real_dtype(x.dtype))
    return x * inside.pad(pad_width=(1, last), fill=1.0).reshape(shape=column_of(x.ndim, axis, count))


class ShortTimeFft(Composite):
    """y[…, t, k] = Σ window[j] x[…, t · stride + j] exp(−2πi j k / n) over j: [… time] → [… frames, ⌊n / 2⌋ + 1].

    `rfft` of each part of x that the window [w] covers, of n = w points unless `sizes` states more or fewer. Nothing is
    padded: `pad` x first to have frames around its ends. TensorFlow's `signal.stft`; PyTorch's and SciPy's `stft` have
    the last two axes the other way round, and pad by default. By NumPy and JAX, frames and `rfft`.
    """

    name = "stft"
    section = "stft"
    since = 2
    operands = ("x", "window")
    attrs: ClassVar[Mapping[str, Attr]] = {
        "stride": Attr("ints", doc="one: from the beginning of a frame to that of the next", minimum=1),
        "sizes": Attr("ints", None, "one: the points of each transform; absent: as many as the window has", minimum=1),
    }
    gradient = "that of rfft, times the window, added where frames overlap"
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
        """The points of a transform. Raises BadAttribute, ShapeMismatch."""
        x, window = types
        if window.ndim != 1 or not window.size:
            got = show_shape(window.shape)
            raise ShapeMismatch(
                f"operand 1 (window) must have one axis with entries, but has the shape {got}",
                operand=1,
                expected="one axis with entries",
                got=got,
            )
        if not x.ndim or x.shape[-1] < window.size:
            got = show_shape(x.shape)
            wanted = f"at least {counted(window.size, 'entry', 'entries')} on its last axis, as the window has"
            raise ShapeMismatch(
                f"operand 0 (x) must have {wanted}, but has the shape {got}", operand=0, expected=wanted, got=got
            )
        stated = {"stride": attrs["stride"], "sizes": attrs["sizes"] or (window.size,)}
        for name, value in stated.items():
            if len(value) != 1:
                got = f"length {len(value)}"
                raise BadAttribute(f"attribute {name} must have length 1, but has {got}", expected="length 1", got=got)
        return {name: tuple(value) for name, value in stated.items()}

    def infer(self, x: TensorType, window: TensorType, *, stride: Shape, sizes: Shape) -> ResultTypes:
        """Frames, and half of their points."""
        frames = (x.shape[-1] - window.size) // stride[0] + 1
        return TensorType((*x.shape[:-1], frames, sizes[0] // 2 + 1), to_complex(x.dtype, window.dtype))

    def compose(self, x: Value, window: Value, *, stride: Shape, sizes: Shape) -> Value:
        """Frames, the window, and rfft."""
        last, width = x.ndim - 1, window.shape[0]
        frames = (x.shape[-1] - width) // stride[0] + 1
        places = regular_places(x, frames, width, stride[0], 1)
        return (windows_at(x, last, places) * window).rfft(axes=(last + 1,), sizes=sizes)
