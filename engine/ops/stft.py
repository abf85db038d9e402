"""The Fourier transform of a signal, window by window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.errors import BadAttribute, ShapeMismatch, counted
from engine.graph.ir import Value
from engine.graph.op import Composite, ResultTypes
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import Shape, TensorType, show_shape, to_complex
from engine.graph.truth import Truth
from engine.oplib.window_axes import regular_places, windows_at


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
