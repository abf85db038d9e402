"""The ops as methods. Written by `python -m clients.ops` from the op registry: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy.typing as npt

if TYPE_CHECKING:
    from gradserve_client.graph import GraphFunction, Node

#: attributes whose values are tensors
TENSOR_ATTRIBUTES: Final = frozenset({"value"})
#: the first opset with an op, or with `op.attribute`, unless it is opset 1
SINCE: Final = {
    "adaptive_avg_pool": 2,
    "adaptive_max_pool": 2,
    "angle": 2,
    "attention.grouped": 2,
    "avg_pool1d": 2,
    "avg_pool3d": 2,
    "batch_norm_given": 2,
    "batch_norm_running": 2,
    "betainc": 2,
    "call": 2,
    "cdist": 2,
    "compress": 2,
    "cond": 2,
    "cond_number": 2,
    "conj": 2,
    "conv_transpose1d": 2,
    "cumlogsumexp": 2,
    "cummax": 2,
    "cummin": 2,
    "cumprod": 2,
    "cumsum.reverse": 2,
    "det": 2,
    "eigh": 2,
    "embedding.from_end": 2,
    "embedding.padding_idx": 2,
    "fft": 2,
    "fixed_point": 2,
    "floor_div": 2,
    "full.fill_as": 2,
    "gather.from_end": 2,
    "group_norm": 2,
    "i0": 2,
    "i0e": 2,
    "i1": 2,
    "i1e": 2,
    "ifft": 2,
    "igamma": 2,
    "igammac": 2,
    "imag": 2,
    "index": 2,
    "index_add": 2,
    "index_set": 2,
    "irfft": 2,
    "lstsq": 2,
    "lu": 2,
    "make_complex": 2,
    "map": 2,
    "matrix_exp": 2,
    "matrix_power": 2,
    "matrix_rank": 2,
    "max_pool1d": 2,
    "max_pool3d": 2,
    "nonzero": 2,
    "pad.fill_as": 2,
    "pinv": 2,
    "qr": 2,
    "random_bernoulli": 2,
    "random_bits": 2,
    "random_categorical": 2,
    "random_exponential": 2,
    "random_fold_in": 2,
    "random_gumbel": 2,
    "random_key": 2,
    "random_normal": 2,
    "random_permutation": 2,
    "random_split": 2,
    "random_uniform": 2,
    "real": 2,
    "rem": 2,
    "resize": 2,
    "rfft": 2,
    "scan": 2,
    "scatter_add.from_end": 2,
    "segment_max": 2,
    "segment_mean": 2,
    "segment_min": 2,
    "segment_prod": 2,
    "sinc": 2,
    "slice_at": 2,
    "stft": 2,
    "svd": 2,
    "symmetric_function": 2,
    "take_along.from_end": 2,
    "trunc_div": 2,
    "update_slice_at": 2,
    "while": 2,
    "xlog1py": 2,
    "xlogy": 2,
    "zeta": 2,
}


class NodeOps:
    """Ops whose first operand is the node."""

    def _op(self, op: str, /, *others: Node | None, name: str | None = None, **attrs: Any) -> Node:
        """Append an op whose first operand is the node."""
        raise NotImplementedError

    def abs(self, *, name: str | None = None) -> Node:
        """y = |x|; real for a complex x. At 0 the gradient is 0, in every order.

        Gradient: g · sign x; for a complex x, g · x / |x|.
        """
        return self._op("abs", name=name)

    def acos(self, *, name: str | None = None) -> Node:
        """y = arccos x in [0, π], NaN for |x| > 1. At ±1 the derivative is infinite.

        Gradient: −g / √(1 − x²).
        """
        return self._op("acos", name=name)

    def acosh(self, *, name: str | None = None) -> Node:
        """y = arcosh x, NaN for x < 1. At 1 the derivative is infinite.

        Gradient: g / sinh y = g / √(x² − 1).
        """
        return self._op("acosh", name=name)

    def adaptive_avg_pool(self, sizes: Sequence[int], *, name: str | None = None) -> Node:
        """y[…, i] = the mean of window i, from ⌊i · n / size⌋ to ⌈(i + 1) · n / size⌉. Integers give float64.

        Pools as many of the last axes as `sizes` has entries. PyTorch: `adaptive_avg_pool1d`, 2d and 3d. JAX has
        no equivalent.

        Since opset 2.

        Gradient: g / (number of elements in the window), added to each of them.

        Attributes:
            sizes: number of windows on each of the last axes
        """
        return self._op("adaptive_avg_pool", name=name, sizes=sizes)

    def adaptive_max_pool(self, sizes: Sequence[int], *, name: str | None = None) -> Node:
        """y[…, i] = the maximum of window i, from ⌊i · n / size⌋ to ⌈(i + 1) · n / size⌉; NaN if the window contains
        NaN.

        Pools as many of the last axes as `sizes` has entries. PyTorch: `adaptive_max_pool1d`, 2d and 3d. JAX has
        no equivalent.

        Since opset 2.

        Gradient: g, added at the first maximum (in row-major order) of each window.

        Attributes:
            sizes: number of windows on each of the last axes
        """
        return self._op("adaptive_max_pool", name=name, sizes=sizes)

    def add(self, b: Node, *, name: str | None = None) -> Node:
        """y = a + b, elementwise, with NumPy broadcasting.

        Gradient: da = g, db = g.
        """
        return self._op("add", b, name=name)

    def add_scalar(self, scalar: float, *, name: str | None = None) -> Node:
        """y = x + scalar.

        Gradient: g.

        Attributes:
            scalar: constant operand
        """
        return self._op("add_scalar", name=name, scalar=scalar)

    def all(self, *, axes: Sequence[int] | None = None, keepdims: bool | None = None, name: str | None = None) -> Node:
        """y = whether all elements over axes are true; nonzero numbers are true. True if no elements are reduced.

        Attributes:
            axes: axes to reduce; default: all
            keepdims: whether to keep the reduced axes, with extent 1; default False
        """
        return self._op("all", name=name, axes=axes, keepdims=keepdims)

    def angle(self, *, name: str | None = None) -> Node:
        """y = the angle of x in [−π, π]: atan2(Im x, Re x); 0 or π for a real x. NaN if a part is NaN.

        The branch cut is the negative real axis; on it, the sign of the imaginary zero selects the side (as in
        C99's carg). At 0 the gradient is 0, as in PyTorch; in JAX it is NaN.

        Since opset 2.

        Gradient: i · g · x / |x|², 0 at 0; none for a real x.
        """
        return self._op("angle", name=name)

    def any(self, *, axes: Sequence[int] | None = None, keepdims: bool | None = None, name: str | None = None) -> Node:
        """y = whether any element over axes is true; nonzero numbers are true. False if no elements are reduced.

        Attributes:
            axes: axes to reduce; default: all
            keepdims: whether to keep the reduced axes, with extent 1; default False
        """
        return self._op("any", name=name, axes=axes, keepdims=keepdims)

    def argmax(self, axis: int, *, keepdims: bool | None = None, name: str | None = None) -> Node:
        """y = the int64 position of the largest element along `axis`: the first in a tie; the first NaN if any.

        Attributes:
            axis: axis to search
            keepdims: whether to keep the reduced axes, with extent 1; default False
        """
        return self._op("argmax", name=name, axis=axis, keepdims=keepdims)

    def argmin(self, axis: int, *, keepdims: bool | None = None, name: str | None = None) -> Node:
        """y = the int64 position of the smallest element along `axis`: the first in a tie; the first NaN if any.

        Attributes:
            axis: axis to search
            keepdims: whether to keep the reduced axes, with extent 1; default False
        """
        return self._op("argmin", name=name, axis=axis, keepdims=keepdims)

    def argsort(self, axis: int, *, name: str | None = None) -> Node:
        """y = the int64 positions that sort x in ascending order along an axis; equal entries keep their order.

        NaN comes last.

        Attributes:
            axis: axis to sort along
        """
        return self._op("argsort", name=name, axis=axis)

    def asin(self, *, name: str | None = None) -> Node:
        """y = arcsin x in [−π/2, π/2], NaN for |x| > 1. At ±1 the derivative is infinite.

        Gradient: g / √(1 − x²).
        """
        return self._op("asin", name=name)

    def asinh(self, *, name: str | None = None) -> Node:
        """y = arsinh x.

        Gradient: g / cosh y = g / √(x² + 1).
        """
        return self._op("asinh", name=name)

    def atan(self, *, name: str | None = None) -> Node:
        """y = arctan x in [−π/2, π/2].

        Gradient: g / (1 + x²).
        """
        return self._op("atan", name=name)

    def atan2(self, b: Node, *, name: str | None = None) -> Node:
        """y = the angle in [−π, π] of the point with abscissa b and ordinate a, with broadcasting.

        At a = b = 0 the value is NumPy's (0 or ±π), and the derivatives, which do not exist there, are NaN. At
        infinity the derivatives are 0.

        Gradient: da = g · b / (a² + b²), db = −g · a / (a² + b²).
        """
        return self._op("atan2", b, name=name)

    def atanh(self, *, name: str | None = None) -> Node:
        """y = artanh x: ±∞ at ±1, NaN beyond.

        Gradient: g / (1 − x²).
        """
        return self._op("atanh", name=name)

    def attention(
        self,
        k: Node,
        v: Node,
        mask: Node | None = None,
        *,
        scale: float | None = None,
        causal: bool | None = None,
        grouped: bool | None = None,
        name: str | None = None,
    ) -> Node:
        """y = softmax(q kᵀ · scale + mask) v: for each query, the mean of the values, weighted by how well its key
        matches.

        q [..., queries, d], k [..., keys, d], v [..., keys, width], y [..., queries, width]; leading axes
        broadcast. The mask broadcasts to [..., queries, keys]; it is bool (true = keep) or float (added).
        `causal` also hides key j from query i if j > i. A query with no visible keys gives NaN. With `grouped`,
        the number of heads of q (axis -3) is a multiple of that of k and v, and adjacent heads of q share a head
        of k and v: PyTorch's enable_gqa, and what JAX's dot_product_attention does if k and v have fewer heads.
        Scores of at least 16 MiB that are larger than q, k and v together are not stored, except for tangents and
        second derivatives.

        A. Vaswani et al., "Attention is all you need" (2017); J. Ainslie et al., "GQA" (2023).

        Gradient: with p = softmax(…), dp = g vᵀ, ds = p · (dp − Σ dp·p): dq = scale · ds k, dk = scale · dsᵀ q,
        dv = pᵀ g.

        Attributes:
            scale: factor of q kᵀ; default: 1/√d
            causal: whether to hide key j from query i if j > i; default False
            grouped: whether each head of k and v serves several heads of q; axis -3; since opset 2; default False
        """
        return self._op("attention", k, v, mask, name=name, scale=scale, causal=causal, grouped=grouped)

    def avg_pool1d(
        self,
        kernel_size: Sequence[int],
        *,
        stride: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        ceiling: bool | None = None,
        name: str | None = None,
    ) -> Node:
        """y[…, i] = the mean of the window at i. x [..., w]; padding counts as zeros. Integers give float64.

        Extents are as in max_pool1d. With `ceiling`, the part of a window beyond the padding is not counted.
        PyTorch: `avg_pool1d`, whose `ceil_mode` is `ceiling`. Flax: `avg_pool`, which has no ceiling mode.

        Since opset 2.

        Gradient: g / (number of taps in the window), added to each of its elements.

        Attributes:
            kernel_size: extents of the windows along each spatial axis
            stride: distance between windows along each spatial axis; default: the kernel size
            padding: padding on both sides of each axis; at most half the kernel size; default [0]
            ceiling: whether to count a last window that extends past the end padding but starts before it;
                default False
        """
        return self._op(
            "avg_pool1d", name=name, kernel_size=kernel_size, stride=stride, padding=padding, ceiling=ceiling
        )

    def avg_pool2d(
        self,
        kernel_size: Sequence[int],
        *,
        stride: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        name: str | None = None,
    ) -> Node:
        """y[…, i, j] = the sum of the window at (i, j), divided by the kernel size; padding counts as zeros.

        x [..., h, w]. Integers give float64. Same as PyTorch's avg_pool2d.

        Gradient: conv_transpose2d of g / kernel size with ones.

        Attributes:
            kernel_size: extents of the windows along each spatial axis
            stride: distance between windows along each spatial axis; default: the kernel size
            padding: padding on both sides of each spatial axis; at most half the kernel size; default [0, 0]
        """
        return self._op("avg_pool2d", name=name, kernel_size=kernel_size, stride=stride, padding=padding)

    def avg_pool3d(
        self,
        kernel_size: Sequence[int],
        *,
        stride: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        ceiling: bool | None = None,
        name: str | None = None,
    ) -> Node:
        """y[…, i, j, k] = the mean of the window at (i, j, k). x [..., d, h, w]; padding counts as zeros.

        Integers give float64. Extents are as in max_pool1d. With `ceiling`, the part of a window beyond the
        padding is not counted. PyTorch: `avg_pool3d`, whose `ceil_mode` is `ceiling`. Flax: `avg_pool`, which has
        no ceiling mode.

        Since opset 2.

        Gradient: g / (number of taps in the window), added to each of its elements.

        Attributes:
            kernel_size: extents of the windows along each spatial axis
            stride: distance between windows along each spatial axis; default: the kernel size
            padding: padding on both sides of each axis; at most half the kernel size; default [0, 0, 0]
            ceiling: whether to count a last window that extends past the end padding but starts before it;
                default False
        """
        return self._op(
            "avg_pool3d", name=name, kernel_size=kernel_size, stride=stride, padding=padding, ceiling=ceiling
        )

    def batch_norm(
        self,
        weight: Node | None = None,
        bias: Node | None = None,
        *,
        axis: int | None = None,
        eps: float | None = None,
        name: str | None = None,
    ) -> Node:
        """y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance of each feature over all other
        axes.

        `axis` is the axis of the features; weight and bias have its extent. The statistics are those of the
        operand, as in training, with n in the denominator. CJC normalises the whole tensor: for that, reshape it
        to [n, 1]. S. Ioffe, C. Szegedy, "Batch normalization" (2015).

        Gradient: as in layer_norm, over all axes but that of the features.

        Attributes:
            axis: axis of the features; default 1
            eps: positive number added to the variance or mean square; default 1e-05
        """
        return self._op("batch_norm", weight, bias, name=name, axis=axis, eps=eps)

    def batch_norm_given(
        self,
        mean: Node,
        variance: Node,
        weight: Node | None = None,
        bias: Node | None = None,
        *,
        axis: int | None = None,
        eps: float | None = None,
        name: str | None = None,
    ) -> Node:
        """y = (x − mean) / √(variance + eps) · weight + bias, with given statistics, as in inference.

        `axis` is the axis of the features; all other operands have its extent. PyTorch: `batch_norm` with
        training false. Flax: `BatchNorm` with use_running_average, with features last.

        Since opset 2.

        Gradient: with r = 1 / √(variance + eps): dx = g · weight · r; for the other operands, that of the
        formula.

        Attributes:
            axis: axis of the features; default 1
            eps: positive number added to the variance or mean square; default 1e-05
        """
        return self._op("batch_norm_given", mean, variance, weight, bias, name=name, axis=axis, eps=eps)

    def batch_norm_running(
        self,
        mean: Node,
        variance: Node,
        weight: Node | None = None,
        bias: Node | None = None,
        *,
        axis: int | None = None,
        eps: float | None = None,
        momentum: float | None = None,
        name: str | None = None,
    ) -> Node:
        """y of `batch_norm`, and the updated running mean and variance: (1 − momentum) · old + momentum · this
        batch's.

        `axis` is the axis of the features; all other operands have its extent. The variance of the batch has n −
        1 in the denominator in the running variance, and n in y. PyTorch: `batch_norm` with training true, which
        updates the running statistics in place and gives them no gradient. Flax: `BatchNorm`, whose momentum is 1
        minus this one, and whose running variance has n in the denominator.

        Since opset 2.

        The op has several results. Read each with get_output.

        Gradient: as in batch_norm; for the running statistics, that of their formula.

        Attributes:
            axis: axis of the features; default 1
            eps: positive number added to the variance or mean square; default 1e-05
            momentum: weight of the batch's statistics in the running ones; default 0.1
        """
        return self._op(
            "batch_norm_running", mean, variance, weight, bias, name=name, axis=axis, eps=eps, momentum=momentum
        )

    def bce_with_logits(
        self, y: Node, *, reduction: Literal["mean", "sum", "none"] | None = None, name: str | None = None
    ) -> Node:
        """loss = −y · log σ(x) − (1 − y) · log σ(−x), binary cross-entropy, elementwise for equal shapes; then the
        mean.

        x contains logits, y probabilities. Accurate in both tails, because the logarithm of σ is computed in one
        step.

        Gradient: dx = g · (σ(x) − y) / n, dy = −g · x / n.

        Attributes:
            reduction: how to combine the losses; none: return each one; default 'mean'
        """
        return self._op("bce_with_logits", y, name=name, reduction=reduction)

    def betainc(self, b: Node, x: Node, *, name: str | None = None) -> Node:
        """y = I(x; a, b) = ∫₀ˣ tᵃ⁻¹ (1 − t)ᵇ⁻¹ dt / B(a, b), with broadcasting, for 0 ≤ x ≤ 1 and a, b > 0.

        On NumPy, this is SciPy's function. Accurate to 256 ulp. Derivatives with respect to all operands exist to
        any order. They are accurate to 1e-12 of their value with respect to x, and to 1e-11 with respect to a and
        b, for which JAX has none. SciPy and JAX: `betainc`. PyTorch has no equivalent.

        Since opset 2.

        Gradient: da, db = g · ∂I/∂a, g · ∂I/∂b, integrals; dx = g · xᵃ⁻¹ (1 − x)ᵇ⁻¹ / B(a, b).
        """
        return self._op("betainc", b, x, name=name)

    def betaln(self, b: Node, *, name: str | None = None) -> Node:
        """y = log |B(a, b)| = log |Γ(a) Γ(b) / Γ(a + b)|, with broadcasting. Accurate to 10 ulp of y, or of 1 if |y|
        < 1.

        One ulp is that of float64, on NumPy. If an operand is large, a sum of `lgamma` would have few correct
        digits, and SciPy's loses up to 9 of 16. For operands that are not positive, y equals SciPy's; at infinity
        it is −∞.

        The derivative with respect to a is as accurate, or, if b < a < 100, accurate to 1e-15 · a / b of its
        value. The same holds for b.

        Gradient: da = g · (digamma(a) − digamma(a + b)), db = g · (digamma(b) − digamma(a + b)).
        """
        return self._op("betaln", b, name=name)

    def broadcast_to(self, *, shape: Sequence[int] | None = None, name: str | None = None) -> Node:
        """y = x repeated along new leading axes and along axes of extent 1, to `shape`, by NumPy's rules.

        Gradient: g, summed over the repeated axes.

        Attributes:
            shape: shape of the result; default []
        """
        return self._op("broadcast_to", name=name, shape=shape)

    def cast(self, dtype: npt.DTypeLike, *, name: str | None = None) -> Node:
        """y = x converted to another dtype, as in NumPy's astype: fractions are truncated towards zero, nonzero is
        true.

        Float to float is differentiable; no gradient passes through integers or bool. A real x can become
        complex. To convert a complex x to real, use `real`.

        Gradient: g, cast back.

        Attributes:
            dtype: dtype of the result
        """
        return self._op("cast", name=name, dtype=dtype)

    def cdist(self, b: Node, *, p: float | None = None, name: str | None = None) -> Node:
        """y[…, i, j] = (Σ |a[…, i, k] − b[…, j, k]|ᵖ)^(1/p) over k: the distance between row i of a and row j of b.

        a [..., m, d], b [..., n, d], y [..., m, n]; leading axes broadcast. Where two rows coincide, the gradient
        and its own gradient are 0. Differences are taken before they are squared, so that no digits are lost.
        PyTorch: `cdist` with compute_mode donot_use_mm_for_euclid_dist. JAX has no equivalent.

        Since opset 2.

        Gradient: da = Σ g · sign(a − b) · (|a − b| / y)^(p − 1), 0 where y = 0; db likewise.

        Attributes:
            p: exponent; positive; default 2.0
        """
        return self._op("cdist", b, name=name, p=p)

    def ceil(self, *, name: str | None = None) -> Node:
        """y = ⌈x⌉: x rounded up to a whole number."""
        return self._op("ceil", name=name)

    def cholesky(self, *, name: str | None = None) -> Node:
        """y lower triangular with a positive diagonal and y yᴴ = (x + xᴴ) / 2, for matrices on the last two axes.

        x is made symmetric (Hermitian) first, as in JAX, so that the gradient is symmetric and valid in every
        direction. A matrix that is not positive definite gives NaN; the other matrices of the batch are
        unaffected. Integers give float64; float16 is computed in a wider float and rounded once.

        I. Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527 (2016), eq. 9.

        Gradient: (s + sᴴ) / 2, where s = y⁻ᴴ Φ(yᴴ g) y⁻¹ and Φ takes the lower triangle with half the diagonal.
        """
        return self._op("cholesky", name=name)

    def chunk(self, chunks: int, *, axis: int | None = None, name: str | None = None) -> Node:
        """y0, y1, … = x split along `axis` into at most `chunks` parts of extent ⌈n / chunks⌉; the last may be
        smaller.

        As in PyTorch, there may be fewer parts than requested (6 entries in 4 chunks: 2, 2, 2). An empty axis
        gives `chunks` empty parts.

        The op has several results. Read each with get_output.

        Gradient: the parts' cotangents, joined; zeros for parts that are not read.

        Attributes:
            chunks: maximum number of parts
            axis: axis to split; default 0
        """
        return self._op("chunk", name=name, chunks=chunks, axis=axis)

    def clamp(self, *, min: float | None = None, max: float | None = None, name: str | None = None) -> Node:
        """y = x limited to [min, max]; either bound may be absent. If min > max, y is max.

        NaN stays NaN and gets the gradient. Integers keep their dtype if all bounds given are whole numbers
        within its range; otherwise they give float64.

        Gradient: g where min ≤ x ≤ max or x is NaN, else 0.

        Attributes:
            min: lower bound; default: none
            max: upper bound; default: none
        """
        return self._op("clamp", name=name, min=min, max=max)

    def compress(
        self,
        mask: Node,
        k: int,
        *,
        axis: int | None = None,
        fill: float | None = None,
        fill_as: Literal["inf", "-inf", "nan"] | None = None,
        name: str | None = None,
    ) -> Node:
        """The first k entries of x along `axis` where `mask` [extent] is true; and their total count: int64 [].

        You set k, so that shapes do not depend on the mask. If there are more than k entries, the rest are
        dropped; if there are fewer, the remaining entries are `fill`. The count, which is not limited to k, tells
        you which. NumPy: `compress`. JAX: `compress`, which also takes a size and a fill_value. PyTorch: x[mask],
        which has as many entries as the mask selects.

        Since opset 2.

        The op has several results. Read each with get_output.

        Gradient: g to the entries that were read; none for mask.

        Attributes:
            k: number of entries in the result
            axis: axis that the mask applies to; default 0
            fill: value of the remaining entries; default 0.0
            fill_as: infinity or NaN to use instead of `fill`; float dtypes only
        """
        return self._op("compress", mask, name=name, k=k, axis=axis, fill=fill, fill_as=fill_as)

    def cond_number(self, *, name: str | None = None) -> Node:
        """y = s₀ / sₖ₋₁, the condition number in the 2-norm: the largest singular value over the smallest.

        x [batch…, m, n], y [batch…]. A rank-deficient matrix gives infinity if rounding leaves an exact 0. A zero
        matrix, or one with an infinity or NaN, gives NaN. Integers give float64; float16 is computed in float32
        and rounded once. PyTorch, JAX and NumPy: `linalg.cond` without p.

        Since opset 2.

        Gradient: g y (u₀ v₀ᴴ / s₀ − uₖ₋₁ vₖ₋₁ᴴ / sₖ₋₁), with the singular vectors of s₀ and sₖ₋₁.
        """
        return self._op("cond_number", name=name)

    def conj(self, *, name: str | None = None) -> Node:
        """y = conj x: the imaginary part is negated; a real x is returned unchanged. PyTorch, JAX and NumPy: `conj`.

        Since opset 2.

        Gradient: conj g.
        """
        return self._op("conj", name=name)

    def conv1d(
        self,
        kernel: Node,
        bias: Node | None = None,
        *,
        stride: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
        groups: int | None = None,
        name: str | None = None,
    ) -> Node:
        """y[n, o, i] = Σ x[n, c, i·s + a·d − p] · kernel[o, c, a] + bias[o], a cross-correlation.

        s, d and p are stride, dilation and padding. x [n, channels, w], zero outside; kernel [features, channels
        / groups, kw]; y [n, features, w'] with w' = ⌊(w + 2p − d·(kw − 1) − 1) / s⌋ + 1. Each feature reads only
        the channels of its own group. Same as PyTorch's conv1d.

        Gradient: dx = the transposed convolution of g, d kernel = x convolved with g, d bias = g summed.

        Attributes:
            stride: distance between windows along each spatial axis; default [1]
            padding: zeros added on both sides of each spatial axis; default [0]
            dilation: distance between the kernel's taps along each spatial axis; default [1]
            groups: number of equal groups of channels, each with its own kernels; default 1
        """
        return self._op(
            "conv1d", kernel, bias, name=name, stride=stride, padding=padding, dilation=dilation, groups=groups
        )

    def conv2d(
        self,
        kernel: Node,
        bias: Node | None = None,
        *,
        stride: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
        groups: int | None = None,
        name: str | None = None,
    ) -> Node:
        """y[n, o, i, j] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p] · kernel[o, c, a, b] + bias[o], a
        cross-correlation.

        s, d and p are stride, dilation and padding. x [n, channels, h, w], zero outside; kernel [features,
        channels / groups, kh, kw]; y [n, features, h', w'] with h' = ⌊(h + 2p − d·(kh − 1) − 1) / s⌋ + 1. Each
        feature reads only the channels of its own group. Same as PyTorch's conv2d.

        Gradient: dx = conv_transpose2d(g, kernel), d kernel = conv2d(x, g) over images, d bias = g summed.

        Attributes:
            stride: distance between windows along each spatial axis; default [1, 1]
            padding: zeros added on both sides of each spatial axis; default [0, 0]
            dilation: distance between the kernel's taps along each spatial axis; default [1, 1]
            groups: number of equal groups of channels, each with its own kernels; default 1
        """
        return self._op(
            "conv2d", kernel, bias, name=name, stride=stride, padding=padding, dilation=dilation, groups=groups
        )

    def conv3d(
        self,
        kernel: Node,
        bias: Node | None = None,
        *,
        stride: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
        groups: int | None = None,
        name: str | None = None,
    ) -> Node:
        """y[n, o, i, j, k] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p, k·s + e·d − p] · kernel[o, c, a, b, e] +
        bias[o].

        A cross-correlation. x [n, channels, d, h, w], zero outside; kernel [features, channels / groups, kd, kh,
        kw]; y [n, features, d', h', w'] with extents as in conv2d. Same as PyTorch's conv3d.

        Gradient: dx = conv_transpose3d(g, kernel), d kernel = conv3d(x, g) over images, d bias = g summed.

        Attributes:
            stride: distance between windows along each spatial axis; default [1, 1, 1]
            padding: zeros added on both sides of each spatial axis; default [0, 0, 0]
            dilation: distance between the kernel's taps along each spatial axis; default [1, 1, 1]
            groups: number of equal groups of channels, each with its own kernels; default 1
        """
        return self._op(
            "conv3d", kernel, bias, name=name, stride=stride, padding=padding, dilation=dilation, groups=groups
        )

    def conv_transpose1d(
        self,
        kernel: Node,
        bias: Node | None = None,
        *,
        stride: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
        groups: int | None = None,
        output_padding: Sequence[int] | None = None,
        name: str | None = None,
    ) -> Node:
        """y[n, o, i·s + a·d − p] = Σ x[n, c, i] · kernel[c, o, a] + bias[o]: the adjoint of conv1d.

        x [n, channels, w]; kernel [channels, features / groups, kw]; y [n, features, w'] with w' = (w − 1)·s +
        d·(kw − 1) + 1 + output_padding − 2p. PyTorch: `conv_transpose1d`. JAX: `lax.conv_transpose` with
        transpose_kernel, which has the kernel's axes in another order and takes the padding of the underlying
        dilated convolution.

        Since opset 2.

        Gradient: dx = conv1d(g, kernel), d kernel = conv1d(g, x) over images, d bias = g summed.

        Attributes:
            stride: distance between windows along each spatial axis; default [1]
            padding: zeros added on both sides of each spatial axis; default [0]
            dilation: distance between the kernel's taps along each spatial axis; default [1]
            groups: number of equal groups of channels, each with its own kernels; default 1
            output_padding: extent added at the end of each spatial axis of the result; default [0]
        """
        return self._op(
            "conv_transpose1d",
            kernel,
            bias,
            name=name,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            output_padding=output_padding,
        )

    def conv_transpose2d(
        self,
        kernel: Node,
        bias: Node | None = None,
        *,
        stride: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
        groups: int | None = None,
        output_padding: Sequence[int] | None = None,
        name: str | None = None,
    ) -> Node:
        """y[n, o, i·s + a·d − p, j·s + b·d − p] = Σ x[n, c, i, j] · kernel[c, o, a, b] + bias[o]: the adjoint of
        conv2d.

        x [n, channels, h, w]; kernel [channels, features / groups, kh, kw]; y [n, features, h', w'] with h' = (h
        − 1)·s − 2p + d·(kh − 1) + 1 + output_padding. Same as PyTorch's conv_transpose2d.

        Gradient: dx = conv2d(g, kernel), d kernel = conv2d(g, x) over images, d bias = g summed.

        Attributes:
            stride: distance between windows along each spatial axis; default [1, 1]
            padding: zeros added on both sides of each spatial axis; default [0, 0]
            dilation: distance between the kernel's taps along each spatial axis; default [1, 1]
            groups: number of equal groups of channels, each with its own kernels; default 1
            output_padding: extent added at the end of each spatial axis of the result; default [0, 0]
        """
        return self._op(
            "conv_transpose2d",
            kernel,
            bias,
            name=name,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            output_padding=output_padding,
        )

    def conv_transpose3d(
        self,
        kernel: Node,
        bias: Node | None = None,
        *,
        stride: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
        groups: int | None = None,
        output_padding: Sequence[int] | None = None,
        name: str | None = None,
    ) -> Node:
        """y[n, o, i·s + a·d − p, …] = Σ x[n, c, i, j, k] · kernel[c, o, a, b, e] + bias[o]: the adjoint of conv3d.

        x [n, channels, d, h, w]; kernel [channels, features / groups, kd, kh, kw]; y [n, features, d', h', w']
        with extents as in conv_transpose2d. Same as PyTorch's conv_transpose3d.

        Gradient: dx = conv3d(g, kernel), d kernel = conv3d(g, x) over images, d bias = g summed.

        Attributes:
            stride: distance between windows along each spatial axis; default [1, 1, 1]
            padding: zeros added on both sides of each spatial axis; default [0, 0, 0]
            dilation: distance between the kernel's taps along each spatial axis; default [1, 1, 1]
            groups: number of equal groups of channels, each with its own kernels; default 1
            output_padding: extent added at the end of each spatial axis of the result; default [0, 0, 0]
        """
        return self._op(
            "conv_transpose3d",
            kernel,
            bias,
            name=name,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            output_padding=output_padding,
        )

    def copy_to_device(self, *, name: str | None = None) -> Node:
        """y = x.

        The server chooses where a graph runs, so nothing is moved. The gradient passes through.

        Gradient: g.
        """
        return self._op("copy_to_device", name=name)

    def cos(self, *, name: str | None = None) -> Node:
        """y = cos x.

        Gradient: −g · sin x.
        """
        return self._op("cos", name=name)

    def cosh(self, *, name: str | None = None) -> Node:
        """y = cosh x.

        Gradient: g · sinh x.
        """
        return self._op("cosh", name=name)

    def cross_entropy(
        self, targets: Node, *, reduction: Literal["mean", "sum", "none"] | None = None, name: str | None = None
    ) -> Node:
        """loss = −Σ p · log softmax(logits) over the last axis, the axis of the classes; then the mean over all
        rows.

        logits [..., classes]; targets are either class indices [...] of an integer dtype (p is 1 at the index),
        or the distribution p itself, a float tensor of the logits' shape. Indices lie in [0, classes).

        Gradient: d logits = g · (softmax(logits) · Σ p − p) / rows, d targets = −g · log softmax(logits) / rows
        if float.

        Attributes:
            reduction: how to combine the losses; none: return each one; default 'mean'
        """
        return self._op("cross_entropy", targets, name=name, reduction=reduction)

    def cumlogsumexp(self, axis: int, *, reverse: bool | None = None, name: str | None = None) -> Node:
        """y[i] = log(exp x[0] + … + exp x[i]) along `axis`, stable; with `reverse`, of x[i], …, x[n − 1].

        As in logsumexp: if all elements so far are −inf, y is −inf and the gradient is 0; elements that are inf
        share the gradient. If an element so far is NaN, y and the gradient are NaN. Integers give float64.
        PyTorch: `logcumsumexp`. JAX: `lax.cumlogsumexp`, which also has `reverse`.

        Since opset 2.

        Gradient: Σ g[k] · exp(x[i] − y[k]) over k ≥ i.

        Attributes:
            axis: axis to accumulate along
            reverse: whether to accumulate from the end to the front; default False
        """
        return self._op("cumlogsumexp", name=name, axis=axis, reverse=reverse)

    def cummax(self, axis: int, *, reverse: bool | None = None, name: str | None = None) -> Node:
        """y[i] = the largest of x[0], …, x[i] along `axis`; with `reverse`, of x[i], …, x[n − 1].

        NaN from the first NaN on. In a tie, the first entry in the direction of accumulation gets the gradient.
        PyTorch: the values of `cummax`, whose gradient goes to the last entry in a tie. JAX: `lax.cummax`, which
        also has `reverse`, and in which ties share the gradient.

        Since opset 2.

        Gradient: g to the entry that is y: the first in a tie, in the direction of accumulation; the first NaN.

        Attributes:
            axis: axis to accumulate along
            reverse: whether to accumulate from the end to the front; default False
        """
        return self._op("cummax", name=name, axis=axis, reverse=reverse)

    def cummin(self, axis: int, *, reverse: bool | None = None, name: str | None = None) -> Node:
        """y[i] = the smallest of x[0], …, x[i] along `axis`; with `reverse`, of x[i], …, x[n − 1].

        NaN from the first NaN on. In a tie, the first entry in the direction of accumulation gets the gradient.
        PyTorch: the values of `cummin`, whose gradient goes to the last entry in a tie. JAX: `lax.cummin`, which
        also has `reverse`, and in which ties share the gradient.

        Since opset 2.

        Gradient: g to the entry that is y: the first in a tie, in the direction of accumulation; the first NaN.

        Attributes:
            axis: axis to accumulate along
            reverse: whether to accumulate from the end to the front; default False
        """
        return self._op("cummin", name=name, axis=axis, reverse=reverse)

    def cumprod(self, axis: int, *, reverse: bool | None = None, name: str | None = None) -> Node:
        """y[i] = x[0] · … · x[i] along `axis`; with `reverse`, x[i] · … · x[n − 1].

        Integers and bool are multiplied in int64, float16 in float32. The gradient is exact for any number of
        zeros, and so are higher derivatives. PyTorch and NumPy: `cumprod`. JAX: `lax.cumprod`, which also has
        `reverse`.

        Since opset 2.

        Gradient: (product of the entries before i) · Σ g[k] · (product of the entries after i, up to k), over k ≥
        i.

        Attributes:
            axis: axis to accumulate along
            reverse: whether to accumulate from the end to the front; default False
        """
        return self._op("cumprod", name=name, axis=axis, reverse=reverse)

    def cumsum(self, axis: int, *, reverse: bool | None = None, name: str | None = None) -> Node:
        """y[i] = x[0] + … + x[i] along `axis`; with `reverse`, x[i] + … + x[n − 1].

        Integers and bool are summed in int64, float16 in float32. PyTorch and NumPy: `cumsum`. JAX: `lax.cumsum`,
        which also has `reverse`.

        Gradient: g, summed from the end.

        Attributes:
            axis: axis to sum along
            reverse: whether to accumulate from the end to the front; since opset 2; default False
        """
        return self._op("cumsum", name=name, axis=axis, reverse=reverse)

    def det(self, *, name: str | None = None) -> Node:
        """y = det x of square matrices on the last two axes: [batch…, n, n] → [batch…]; 1 for an empty matrix.

        If the determinant may overflow or underflow, use `slogdet`. The first two derivatives are exact for
        singular matrices, too; their third ones are NaN or infinite. A matrix with NaN gives NaN; the other
        matrices of the batch are unaffected. Integers give float64; float16 is computed in a wider float and
        rounded once. PyTorch, JAX and NumPy: `linalg.det`.

        Since opset 2.

        Gradient: g · the conjugate cofactors of x; if x is invertible, those are the conjugate of det(x) x⁻ᵀ.
        """
        return self._op("det", name=name)

    def diag(self, *, offset: int | None = None, name: str | None = None) -> Node:
        """The diagonal of the last two axes: y[…, i] = x[…, i, i + offset]; for a vector, the matrix with that
        diagonal.

        x [n] → [n + |offset|, n + |offset|], zero off the diagonal. x [batch…, rows, columns] → [batch…, m]. A
        negative offset counts downwards: y[…, i] = x[…, i − offset, i].

        Gradient: diag(g) for a vector; for matrices, g on the diagonal and 0 elsewhere.

        Attributes:
            offset: diagonal: 0 is the main one, positive above it, negative below it; default 0
        """
        return self._op("diag", name=name, offset=offset)

    def digamma(self, *, name: str | None = None) -> Node:
        """y = ψ(x) = Γ'(x) / Γ(x); −∞ at 0, NaN at −1, −2, …. Accurate to 10 ulp; near its zeros below −1 to 1e-15.

        Near its negative poles all digits are correct; SciPy loses one digit for each digit by which x is closer
        to a pole.

        Gradient: g · polygamma(x, order=1).
        """
        return self._op("digamma", name=name)

    def div(self, b: Node, *, name: str | None = None) -> Node:
        """y = a / b, elementwise, with NumPy broadcasting; integers give floats, x / 0 gives ±inf or NaN.

        Gradient: da = g / b, db = −y · g / b.
        """
        return self._op("div", b, name=name)

    def div_scalar(self, scalar: float, *, name: str | None = None) -> Node:
        """y = x / scalar. A scalar of 0 gives ±inf or NaN, as in `div`.

        Gradient: g / scalar.

        Attributes:
            scalar: constant operand
        """
        return self._op("div_scalar", name=name, scalar=scalar)

    def eigh(self, *, degenerate: Literal["nan", "whole"] | None = None, name: str | None = None) -> Node:
        """w, v = the eigenvalues, ascending, and eigenvectors of (x + xᴴ) / 2 = v diag(w) vᴴ, with vᴴ v = 1.

        x [batch…, n, n], w [batch…, n], real, v [batch…, n, n], one vector per column. If you read only
        eigenvalues, vectors are not computed. The gradient of eigenvalues alone is valid at equal ones, too, if
        your function treats these alike.

        LAPACK chooses the signs of vectors, and the phases of complex ones. Use v only in functions that depend
        neither on them nor on single vectors of equal eigenvalues.

        Eigenvalues closer than 16 n ε ‖x‖ count as equal. For a matrix with equal eigenvalues, the gradient of a
        function of v is NaN. If `degenerate` is whole, the pair is left out instead. That is correct if the
        function depends on whole eigenspaces only, as a projector does, and wrong otherwise. For v √w vᵀ, which
        does not, use `symmetric_function`. Second derivatives are NaN if a pair was left out, and also for
        eigenvalues alone if some are equal.

        A matrix with an infinity or NaN, or for which LAPACK does not converge, gives NaN; the other matrices of
        the batch are unaffected. Integers give float64; float16 is computed in a wider float and rounded once.

        PyTorch: `linalg.eigh`, which reads the lower triangle by default. JAX: `linalg.eigh`, which symmetrizes
        its input by default. At equal eigenvalues, their gradients are NaN or rounding noise. M. B. Giles,
        Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008),
        section 3.1.

        Since opset 2.

        The op has several results. Read each with get_output.

        Gradient: the symmetric part of v (diag(ḡw) + F ∘ vᴴ ḡv) vᴴ, Fᵢⱼ = 1 / (wⱼ − wᵢ), Fᵢᵢ = 0; no F if v is
        unread.

        Attributes:
            degenerate: gradient through vectors of equal values; nan: NaN; whole: assume that only whole spaces
                matter; default 'nan'
        """
        return self._op("eigh", name=name, degenerate=degenerate)

    def elu(self, *, alpha: float | None = None, name: str | None = None) -> Node:
        """y = x for x > 0, else alpha · (eˣ − 1). Derivatives at 0 are the left ones: alpha.

        D.-A. Clevert, T. Unterthiner, S. Hochreiter, arXiv:1511.07289.

        Gradient: g where x > 0 or NaN, else g · alpha · eˣ.

        Attributes:
            alpha: limit of −y for x → −∞; default 1.0
        """
        return self._op("elu", name=name, alpha=alpha)

    def embedding(
        self, indices: Node, *, from_end: bool | None = None, padding_idx: int | None = None, name: str | None = None
    ) -> Node:
        """y[i, j, …, :] = weight[indices[i, j, …], :]: rows of a table.

        weight [rows, features…], indices of any shape with entries in [0, rows), y [shape of indices…,
        features…]. With `from_end`, entries lie in [−rows, rows), and negative ones count from the end. PyTorch:
        `functional.embedding`, which rejects negative indices and has `padding_idx`. JAX: weight[indices], which
        accepts negative indices and moves those out of range to the nearest row.

        Gradient: d weight = g, added to the rows that were read: repeated indices accumulate; none for indices.

        Attributes:
            from_end: whether negative indices count from the end; −1 is the last; since opset 2; default False
            padding_idx: row that gets no gradient but is read as usual; default: none; since opset 2
        """
        return self._op("embedding", indices, name=name, from_end=from_end, padding_idx=padding_idx)

    def equal(self, b: Node, *, name: str | None = None) -> Node:
        """y = (a = b), elementwise; false if either is NaN."""
        return self._op("equal", b, name=name)

    def erf(self, *, name: str | None = None) -> Node:
        """y = erf x = 2/√π ∫₀ˣ exp(−t²) dt. Accurate to 2 units in the last place (ulp).

        Gradient: g · 2/√π · exp(−x²).
        """
        return self._op("erf", name=name)

    def erfc(self, *, name: str | None = None) -> Node:
        """y = erfc x = 1 − erf x. Accurate to 2 units in the last place (ulp), even where y is small.

        Gradient: −g · 2/√π · exp(−x²).
        """
        return self._op("erfc", name=name)

    def erfinv(self, *, name: str | None = None) -> Node:
        """y such that erf y = x: ±∞ at ±1, NaN beyond. Accurate to 2 ulp.

        Gradient: g · √π/2 · exp(y²).
        """
        return self._op("erfinv", name=name)

    def exp(self, *, name: str | None = None) -> Node:
        """y = eˣ.

        Gradient: g · y.
        """
        return self._op("exp", name=name)

    def expm1(self, *, name: str | None = None) -> Node:
        """y = eˣ − 1, accurate near 0.

        Gradient: g · eˣ.
        """
        return self._op("expm1", name=name)

    def fft(
        self,
        *,
        axes: Sequence[int] | None = None,
        sizes: Sequence[int] | None = None,
        norm: Literal["backward", "ortho", "forward"] | None = None,
        name: str | None = None,
    ) -> Node:
        """y[k] = Σ x[j] exp(−2πi j k / n) over `axes`, each of n points: the discrete Fourier transform.

        `norm` is as in NumPy: `forward` divides by n, `ortho` by √n. Real operands are converted to complex.
        float16 gives complex64, integers give complex128. PyTorch, JAX and NumPy: `fft`; over several axes,
        `fft2` and `fftn`.

        Since opset 2.

        Gradient: ifft(g) without the division by n; for a real operand, its real part.

        Attributes:
            axes: axes to transform; default: the last axis, or as many last axes as there are sizes
            sizes: points on each axis, to which x is cut or zero-padded; default: x's extents
            norm: direction that divides by the number of points; ortho: both, by its square root; default
                'backward'
        """
        return self._op("fft", name=name, axes=axes, sizes=sizes, norm=norm)

    def flatten(self, *, axes: Sequence[int] | None = None, name: str | None = None) -> Node:
        """y = x with adjacent axes merged into one; by default, all axes. A 0-d tensor becomes [1].

        Gradient: g, reshaped back.

        Attributes:
            axes: adjacent axes to merge; default: all
        """
        return self._op("flatten", name=name, axes=axes)

    def flip(self, *, axes: Sequence[int] | None = None, name: str | None = None) -> Node:
        """y = x with the order of the entries reversed on `axes`; by default, on all axes.

        Gradient: g, flipped.

        Attributes:
            axes: axes to reverse; default: all
        """
        return self._op("flip", name=name, axes=axes)

    def floor(self, *, name: str | None = None) -> Node:
        """y = ⌊x⌋: x rounded down to a whole number."""
        return self._op("floor", name=name)

    def floor_div(self, b: Node, *, name: str | None = None) -> Node:
        """y = ⌊a / b⌋, elementwise with broadcasting: Python's //; `mod` is the remainder. Integer division by 0
        gives 0.

        PyTorch and NumPy: `floor_divide`. JAX: `jnp.floor_divide`, which gives −1 for integer division by 0.

        Since opset 2.
        """
        return self._op("floor_div", b, name=name)

    def gather(
        self,
        index: Node | None = None,
        *,
        axis: int | None = None,
        indices: Sequence[int] | None = None,
        from_end: bool | None = None,
        name: str | None = None,
    ) -> Node:
        """y[i, j, …] = x[index[i, j, …], j, …] for axis 0; likewise for the other axes.

        `index` has x's rank and may be smaller than x on the other axes, as in PyTorch; y has its shape. With one
        operand, the list `indices` selects slices: y is x at those positions of the axis. Indices lie in [0,
        extent). With `from_end`, they lie in [−extent, extent), and negative ones count from the end, as in x[i]
        of PyTorch, JAX and NumPy. PyTorch: `gather`, which rejects negative indices. JAX: `take_along_axis`.

        Gradient: dx = scatter_add(0, index, g): repeated indices accumulate; none for index.

        Attributes:
            axis: axis to index; default 0
            indices: positions on the axis, instead of `index`
            from_end: whether negative indices count from the end; −1 is the last; since opset 2; default False
        """
        return self._op("gather", index, name=name, axis=axis, indices=indices, from_end=from_end)

    def gelu(self, *, approximate: Literal["none", "tanh"] | None = None, name: str | None = None) -> Node:
        """y = x · Φ(x), with Φ the standard normal distribution function; 0 at −∞.

        With `approximate` set to tanh, y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), which many models were
        trained with. D. Hendrycks, K. Gimpel, arXiv:1606.08415.

        Gradient: g · (Φ(x) + x · Φ′(x)).

        Attributes:
            approximate: none: use the error function; tanh: approximate it; default 'none'
        """
        return self._op("gelu", name=name, approximate=approximate)

    def get_output(self, index: int, *, name: str | None = None) -> Node:
        """One result of an op with several results: y = x[index].

        Gradient: g for that result, 0 for the other results of the op.

        Attributes:
            index: position of the result, from 0
        """
        return self._op("get_output", name=name, index=index)

    def grad(self, x: Node, cotangent: Node | None = None, *, name: str | None = None) -> Node:
        """The gradient of sum(y · cotangent) with respect to x, of x's type; without a cotangent, of sum(y).

        Other nodes can use the result, and you can differentiate it again, to any order. x may be any float node.
        If y does not depend on x, the result is zeros. A complex y needs a cotangent. With respect to a complex
        x, the gradient is ∂/∂Re x + i ∂/∂Im x.

        Gradient: that of the nodes that compute the gradient.
        """
        return self._op("grad", x, cotangent, name=name)

    def greater(self, b: Node, *, name: str | None = None) -> Node:
        """y = (a > b), elementwise; false if either is NaN."""
        return self._op("greater", b, name=name)

    def greater_equal(self, b: Node, *, name: str | None = None) -> Node:
        """y = (a ≥ b), elementwise; false if either is NaN."""
        return self._op("greater_equal", b, name=name)

    def group_norm(
        self,
        weight: Node | None = None,
        bias: Node | None = None,
        *,
        groups: int,
        eps: float | None = None,
        name: str | None = None,
    ) -> Node:
        """y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance of each group of channels per
        example.

        x [n, channels, …]; weight and bias [channels]. The channels are divided into `groups` equal groups. The
        variance has n in the denominator. PyTorch: `group_norm`. Flax: `GroupNorm`, with channels last. Y. Wu, K.
        He, "Group normalization" (2018).

        Since opset 2.

        Gradient: as in layer_norm, over each group.

        Attributes:
            groups: number of equal groups of channels
            eps: positive number added to the variance or mean square; default 1e-05
        """
        return self._op("group_norm", weight, bias, name=name, groups=groups, eps=eps)

    def i0(self, *, name: str | None = None) -> Node:
        """y = I₀(x). Accurate to 5 ulp; infinite for |x| > 713.98.

        SciPy's is infinite from 709.78 on. NumPy: `i0`. PyTorch: `special.i0`. JAX: `scipy.special.i0`.

        Since opset 2.

        Gradient: g · i1(x).
        """
        return self._op("i0", name=name)

    def i0e(self, *, name: str | None = None) -> Node:
        """y = exp(−|x|) I₀(x). Accurate to 4 ulp.

        The derivative is accurate even for large x, where I₀ and I₁ agree in most digits. At 0, where |x| has a
        kink, it is 0, as in PyTorch and JAX. SciPy and PyTorch: `special.i0e`. JAX: `bessel_i0e`.

        Since opset 2.

        Gradient: g · (i1e(x) − sign(x) · y).
        """
        return self._op("i0e", name=name)

    def i1(self, *, name: str | None = None) -> Node:
        """y = I₁(x). Accurate to 5 ulp. At 0, the derivative is 1/2.

        SciPy and PyTorch: `special.i1`. JAX: `scipy.special.i1`.

        Since opset 2.

        Gradient: g · (i0(x) − y / x), and g / 2 at 0.
        """
        return self._op("i1", name=name)

    def i1e(self, *, name: str | None = None) -> Node:
        """y = exp(−|x|) I₁(x). Accurate to 4 ulp. At 0, the derivative is 1/2.

        SciPy and PyTorch: `special.i1e`. JAX: `bessel_i1e`.

        Since opset 2.

        Gradient: g · (i0e(x) − y · (sign(x) + 1 / x)), and g / 2 at 0.
        """
        return self._op("i1e", name=name)

    def identity(self, *, name: str | None = None) -> Node:
        """y = x, as a separate node.

        Gradient: g.
        """
        return self._op("identity", name=name)

    def ifft(
        self,
        *,
        axes: Sequence[int] | None = None,
        sizes: Sequence[int] | None = None,
        norm: Literal["backward", "ortho", "forward"] | None = None,
        name: str | None = None,
    ) -> Node:
        """y[j] = Σ x[k] exp(2πi j k / n) / n over `axes`, each of n points: the inverse of `fft`.

        `norm` is as in NumPy: `forward` does not divide, `ortho` divides by √n. Real operands are converted to
        complex. float16 gives complex64, integers give complex128. PyTorch, JAX and NumPy: `ifft`; over several
        axes, `ifft2` and `ifftn`.

        Since opset 2.

        Gradient: fft(g) / n; for a real operand, its real part.

        Attributes:
            axes: axes to transform; default: the last axis, or as many last axes as there are sizes
            sizes: points on each axis, to which x is cut or zero-padded; default: x's extents
            norm: direction that divides by the number of points; ortho: both, by its square root; default
                'backward'
        """
        return self._op("ifft", name=name, axes=axes, sizes=sizes, norm=norm)

    def igamma(self, x: Node, *, name: str | None = None) -> Node:
        """y = P(a, x) = ∫₀ˣ tᵃ⁻¹ exp(−t) dt / Γ(a), with broadcasting.

        On NumPy, this is SciPy's function. Accurate to 512 ulp; below 1e-290, to a relative error of 1e-12. The
        derivative with respect to x is accurate to 1e-12 of its value. The derivative with respect to a is
        accurate to 1e-12 (JAX's has an absolute error of 1e-7; PyTorch has none). It cannot be differentiated
        again with respect to a. SciPy and PyTorch: `special.gammainc`. JAX: `igamma`.

        Since opset 2.

        Gradient: da = g · ∂P/∂a, an integral; dx = g · xᵃ⁻¹ exp(−x) / Γ(a).
        """
        return self._op("igamma", x, name=name)

    def igammac(self, x: Node, *, name: str | None = None) -> Node:
        """y = Q(a, x) = 1 − P(a, x), with broadcasting; accurate even where y is small.

        On NumPy, this is SciPy's function. Accurate to 512 ulp; below 1e-290, to a relative error of 1e-12.
        Derivatives are those of `igamma` with the opposite sign. SciPy and PyTorch: `special.gammaincc`. JAX:
        `igammac`.

        Since opset 2.

        Gradient: da = −g · ∂P/∂a, an integral; dx = −g · xᵃ⁻¹ exp(−x) / Γ(a).
        """
        return self._op("igammac", x, name=name)

    def imag(self, *, name: str | None = None) -> Node:
        """y = Im x; 0 for a real x. JAX and NumPy: `imag`. PyTorch's `imag` rejects a real x.

        Since opset 2.

        Gradient: i · g.
        """
        return self._op("imag", name=name)

    def inv(self, *, name: str | None = None) -> Node:
        """y = x⁻¹, for matrices on the last two axes.

        If x is singular, y is NaN, or very large if rounding hides the singularity; the other matrices of the
        batch are unaffected. To solve a system, use `solve`, which is faster and more accurate. Integers give
        float64; float16 is computed in a wider float and rounded once.

        Gradient: −yᴴ g yᴴ.
        """
        return self._op("inv", name=name)

    def irfft(
        self,
        *,
        axes: Sequence[int] | None = None,
        sizes: Sequence[int] | None = None,
        norm: Literal["backward", "ortho", "forward"] | None = None,
        name: str | None = None,
    ) -> Node:
        """The real y whose `rfft` is x, with n = `sizes` points on the last of `axes`; default: 2 (m − 1) for m
        entries.

        The imaginary parts of entry 0, and of entry n / 2 if n is even, are ignored. Real operands are converted
        to complex. float16 gives float16, integers give float64. `norm` is as in `ifft`. PyTorch, JAX and NumPy:
        `irfft`; over several axes, `irfft2` and `irfftn`.

        Since opset 2.

        Gradient: rfft(g) / n, with the inner entries doubled.

        Attributes:
            axes: axes to transform; default: the last axis, or as many last axes as there are sizes
            sizes: points on each axis, to which x is cut or zero-padded; default: x's extents
            norm: direction that divides by the number of points; ortho: both, by its square root; default
                'backward'
        """
        return self._op("irfft", name=name, axes=axes, sizes=sizes, norm=norm)

    def is_finite(self, *, name: str | None = None) -> Node:
        """y = true if x is neither infinite nor NaN."""
        return self._op("is_finite", name=name)

    def layer_norm(
        self,
        weight: Node | None = None,
        bias: Node | None = None,
        *,
        axes: Sequence[int] | None = None,
        eps: float | None = None,
        name: str | None = None,
    ) -> Node:
        """y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance (n in the denominator) over
        `axes`.

        weight and bias have x's extents on `axes`, in ascending order. CJC normalises the whole tensor: for that,
        pass all axes. J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization" (2016).

        Gradient: with z normalised and h = g · weight: dx = (h − mean h − z · mean(h·z)) / √(variance + eps).

        Attributes:
            axes: axes to normalise over; default [-1]
            eps: positive number added to the variance or mean square; default 1e-05
        """
        return self._op("layer_norm", weight, bias, name=name, axes=axes, eps=eps)

    def leaky_relu(self, *, alpha: float | None = None, name: str | None = None) -> Node:
        """y = x for x > 0, else alpha · x. The derivative at 0 is alpha.

        Gradient: g where x > 0 or NaN, else g · alpha.

        Attributes:
            alpha: slope for x ≤ 0; default 0.01
        """
        return self._op("leaky_relu", name=name, alpha=alpha)

    def less(self, b: Node, *, name: str | None = None) -> Node:
        """y = (a < b), elementwise; false if either is NaN."""
        return self._op("less", b, name=name)

    def less_equal(self, b: Node, *, name: str | None = None) -> Node:
        """y = (a ≤ b), elementwise; false if either is NaN."""
        return self._op("less_equal", b, name=name)

    def lgamma(self, *, name: str | None = None) -> Node:
        """y = log |Γ(x)|; ∞ at 0, −1, −2, …. Accurate to 4 ulp; near zeros below 0 (−2.457, −2.748, −3.144, …) to
        1e-15.

        Near its positive zeros, 1 and 2, all digits are correct; SciPy has no correct digit within 1e-16 of them.

        Gradient: g · digamma(x).
        """
        return self._op("lgamma", name=name)

    def linear(
        self,
        w: Node,
        b: Node | None = None,
        *,
        activation: Literal["none", "relu", "tanh", "sigmoid", "gelu", "silu", "elu", "selu", "sin"] | None = None,
        name: str | None = None,
    ) -> Node:
        """y = activation(x @ w + b) for x[…, in], w[in, out] and b[out]: y[…, out]. Without b, nothing is added.

        b may have any shape that broadcasts to y's shape. The activation is the op of that name with its
        defaults.

        Gradient: with h = g · activation′: dx = h @ wᵀ, dw = xᵀ @ h, db = Σ h over the rows.

        Attributes:
            activation: op applied to the sum; default 'none'
        """
        return self._op("linear", w, b, name=name, activation=activation)

    def log(self, *, name: str | None = None) -> Node:
        """y = ln x: −∞ at 0, NaN for x < 0.

        For a complex x, y = ln |x| + i · angle x. The branch cut is the negative real axis; on it, the sign of
        the imaginary zero selects the side (C99).

        Gradient: g / x.
        """
        return self._op("log", name=name)

    def log1p(self, *, name: str | None = None) -> Node:
        """y = ln(1 + x), accurate near 0.

        Gradient: g / (1 + x).
        """
        return self._op("log1p", name=name)

    def log2(self, *, name: str | None = None) -> Node:
        """y = log₂ x: −∞ at 0, NaN for x < 0.

        Gradient: g / (x · ln 2).
        """
        return self._op("log2", name=name)

    def log_eps(self, *, eps: float | None = None, name: str | None = None) -> Node:
        """y = ln(x + eps): finite at 0.

        Gradient: g / (x + eps).

        Attributes:
            eps: number added to x; default 1e-05
        """
        return self._op("log_eps", name=name, eps=eps)

    def log_ndtr(self, *, name: str | None = None) -> Node:
        """y = log Φ(x), with Φ the standard normal distribution function. Accurate to 4 ulp in both tails.

        The derivative φ(x) / Φ(x) and its own derivatives keep their relative accuracy where Φ(x) underflows. For
        x > 0, the derivative is as accurate as exp(−x²/2): to x²/2 ulp.

        Gradient: g · φ(x) / Φ(x), with φ the density.
        """
        return self._op("log_ndtr", name=name)

    def log_sigmoid(self, *, name: str | None = None) -> Node:
        """y = ln sigmoid x = −softplus(−x).

        Gradient: g · sigmoid(−x).
        """
        return self._op("log_sigmoid", name=name)

    def log_softmax(self, *, axis: int | None = None, name: str | None = None) -> Node:
        """y = x − log Σ exp(x) along `axis`, of x's shape; stable: computed from x − max x. Integers give float64.

        The largest x has y = −log(1 + Σ of the others), all of whose digits are kept. A row that contains only
        −inf gives NaN.

        Gradient: g − exp(y) · Σ g, with the sum along the axis, computed as −g · expm1(y) − (Σ g − g) · exp(y).

        Attributes:
            axis: axis to normalise along; default -1
        """
        return self._op("log_softmax", name=name, axis=axis)

    def logaddexp(self, b: Node, *, name: str | None = None) -> Node:
        """y = ln(eᵃ + eᵇ), stable. If both are −∞, y is −∞ and the gradients are 0; if both are ∞, each gets half of
        g.

        Gradient: da = g · sigmoid(a − b), db = g · sigmoid(b − a).
        """
        return self._op("logaddexp", b, name=name)

    def logical_and(self, b: Node, *, name: str | None = None) -> Node:
        """y = a and b, elementwise with broadcasting. Nonzero numbers, including NaN, are true."""
        return self._op("logical_and", b, name=name)

    def logical_not(self, *, name: str | None = None) -> Node:
        """y = not x, elementwise. Nonzero numbers, including NaN, are true."""
        return self._op("logical_not", name=name)

    def logical_or(self, b: Node, *, name: str | None = None) -> Node:
        """y = a or b (or both), elementwise with broadcasting. Nonzero numbers, including NaN, are true."""
        return self._op("logical_or", b, name=name)

    def logsumexp(
        self, *, axes: Sequence[int] | None = None, keepdims: bool | None = None, name: str | None = None
    ) -> Node:
        """y = log Σ exp x over axes, stable: m + log Σ exp(x − m) with m = max x. −inf if no elements are reduced.

        If all elements are −inf, y is −inf and the gradient is 0. Elements that are inf share the gradient. If an
        element is NaN, y and the gradient are NaN. Integers give float64.

        Gradient: g · exp(x − y).

        Attributes:
            axes: axes to reduce; default: all
            keepdims: whether to keep the reduced axes, with extent 1; default False
        """
        return self._op("logsumexp", name=name, axes=axes, keepdims=keepdims)

    def lstsq(self, b: Node, *, rcond: float | None = None, name: str | None = None) -> Node:
        """y that minimises |a y − b|: a [batch…, m, n] with m ≥ n, b [m], [batch…, m] or [batch…, m, k].

        y [n], [batch…, n] or [batch…, n, k]. b holds vectors if it is 1-d, or if it has a's shape without the
        last axis and its last two axes cannot be matrices of m rows; otherwise it holds matrices. Without
        `rcond`, y is computed by `qr`, and the columns of a must be independent. With `rcond`, y is computed by
        `pinv`: singular values up to that fraction of the largest count as 0, and y is the solution of least
        norm. Integers give float64; float16 is computed in float32 and rounded once. PyTorch, JAX and NumPy: the
        first result of `linalg.lstsq`.

        Since opset 2.

        Gradient: that of qr or pinv: db = a (aᴴ a)⁻¹ g, da = (b − a y) ((aᴴ a)⁻¹ g)ᴴ − db yᴴ.

        Attributes:
            rcond: singular values up to this fraction of the largest count as 0; default: none, and the columns
                must be independent
        """
        return self._op("lstsq", b, name=name, rcond=rcond)

    def lu(self, *, name: str | None = None) -> Node:
        """permutation, l, u with x[permutation] = l u: rows are exchanged so that no entry of l is larger than 1.

        x [batch…, m, n], permutation int64 [batch…, m], l [batch…, m, k] lower triangular with 1 on its diagonal,
        u [batch…, k, n] upper triangular, k = min(m, n). To solve a system, use `solve`, which is faster. Complex
        numbers are compared by |Re| + |Im|. The gradient is valid if the first k columns of x[permutation] are
        independent in their first k rows; otherwise it is infinite or NaN. The permutation has no gradient. A
        matrix with an infinity or NaN gives NaN in l and u, and its rows are not exchanged; the other matrices of
        the batch are unaffected. Integers give float64; float16 is computed in a wider float and rounded once.

        PyTorch: `linalg.lu`, which returns a matrix instead of the permutation. JAX: `lax.linalg.lu`, which
        returns the results in another order. F. de Hoog, R. Anderssen, M. Lukas, Differentiation of matrix
        functionals using triangular factorization (2011).

        Since opset 2.

        The op has several results. Read each with get_output.

        Gradient: for square matrices, l⁻ᴴ (tril(lᴴ ḡl, −1) + triu(ḡu uᴴ)) u⁻ᴴ with rows moved back to their
        places.
        """
        return self._op("lu", name=name)

    def make_complex(self, im: Node, *, name: str | None = None) -> Node:
        """y = re + i · im, elementwise with broadcasting; complex64 for float32 and narrower floats, else
        complex128.

        Infinities, NaN and the signs of zeros in both parts are preserved, unlike in the expression re + im · i.
        PyTorch: `complex`. JAX: `lax.complex`.

        Since opset 2.

        Gradient: d re = Re g, d im = Im g.
        """
        return self._op("make_complex", im, name=name)

    def map_lookup(self, key_index: int, total_keys: int, *, name: str | None = None) -> Node:
        """The value under one key of a map that is stored as one tensor, with keys in insertion order.

        The leading axis is split into `total_keys` equal parts, and y is the part `key_index`; the axis remains.

        Gradient: g in that part, 0 in the others.

        Attributes:
            key_index: position of the key in insertion order, from 0
            total_keys: number of keys in the map
        """
        return self._op("map_lookup", name=name, key_index=key_index, total_keys=total_keys)

    def matmul(self, b: Node, *, name: str | None = None) -> Node:
        """y = a @ b, as in NumPy: y[…, i, j] = Σₖ a[…, i, k] · b[…, k, j]; the leading axes broadcast.

        A 1-d operand is a row on the left and a column on the right; that axis is dropped from the result.
        float16 accumulates in float32. Integers and bool are multiplied in their own dtype, as in NumPy.

        Gradient: da = g @ bᴴ, db = aᴴ @ g, summed over batch axes that were broadcast.
        """
        return self._op("matmul", b, name=name)

    def matrix_exp(self, *, name: str | None = None) -> Node:
        """y = exp x = 1 + x + x² / 2 + … of square matrices on the last two axes.

        x is halved until its norm is below 1.1, a Taylor polynomial of degree 18 is evaluated, and the result is
        squared as often. The error is a few rounding units times the norm of y. A matrix with an infinity or NaN
        gives NaN; the other matrices of the batch are unaffected. Integers give float64; float16 is computed in a
        wider float and rounded once. The gradient, to any order, is an exponential again.

        PyTorch: `linalg.matrix_exp`. JAX and SciPy: `linalg.expm`. P. Bader, S. Blanes, F. Casas, Computing the
        matrix exponential with an optimized Taylor polynomial approximation (2019). For the derivative: I.
        Najfeld, T. F. Havel (1995), and A. H. Al-Mohy, N. J. Higham (2009).

        Since opset 2.

        Gradient: the upper right block of exp [[xᴴ, g], [0, xᴴ]].
        """
        return self._op("matrix_exp", name=name)

    def matrix_power(self, k: int, *, name: str | None = None) -> Node:
        """y = xᵏ, the product of k square matrices x, on the last two axes; x⁰ = 1, and x⁻ᵏ is the power of the
        inverse.

        Computed by repeated squaring, with about 2 log₂ k products. A negative power of a singular matrix is NaN,
        or very large if rounding hides the singularity. Integers give float64; float16 is computed in a wider
        float and rounded once. PyTorch, JAX and NumPy: `linalg.matrix_power`; in JAX and NumPy, integers stay
        integers.

        Since opset 2.

        Gradient: Σ (xᴴ)ⁱ g (xᴴ)ʲ over i + j = k − 1, through the products.

        Attributes:
            k: exponent; may be 0 or negative
        """
        return self._op("matrix_power", name=name, k=k)

    def matrix_rank(self, *, name: str | None = None) -> Node:
        """y = the number of singular values larger than max(m, n) ε times the largest: int64, [batch…, m, n] →
        [batch…].

        ε is that of x's dtype. A matrix with an infinity or NaN has rank 0. PyTorch, JAX and NumPy:
        `linalg.matrix_rank` without a tolerance.

        Since opset 2.
        """
        return self._op("matrix_rank", name=name)

    def max(self, *, axes: Sequence[int] | None = None, keepdims: bool | None = None, name: str | None = None) -> Node:
        """y = max x over axes; NaN if an element is NaN. Ties, including NaN, share the gradient equally.

        Gradient: g / k to each of the k elements equal to y (if y is NaN, to each NaN); 0 to the others.

        Attributes:
            axes: axes to reduce; default: all
            keepdims: whether to keep the reduced axes, with extent 1; default False
        """
        return self._op("max", name=name, axes=axes, keepdims=keepdims)

    def max_pool1d(
        self,
        kernel_size: Sequence[int],
        *,
        stride: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
        ceiling: bool | None = None,
        name: str | None = None,
    ) -> Node:
        """y[…, i] = the largest element of the window at i; NaN if it contains NaN. x [..., w]; padding counts as
        −∞.

        w' = ⌊(w + 2 · padding − dilation · (kernel_size − 1) − 1) / stride⌋ + 1; with `ceiling`, ⌈…⌉ + 1.
        PyTorch: `max_pool1d`, whose `ceil_mode` is `ceiling`. JAX: `lax.reduce_window` with window_dilation; it
        has no ceiling mode.

        Since opset 2.

        Gradient: g, added at the first maximum (in row-major order) of each window.

        Attributes:
            kernel_size: extents of the windows along each spatial axis
            stride: distance between windows along each spatial axis; default: the kernel size
            padding: padding on both sides of each axis; at most half the kernel size; default [0]
            dilation: distance between a window's taps along each axis; default [1]
            ceiling: whether to count a last window that extends past the end padding but starts before it;
                default False
        """
        return self._op(
            "max_pool1d",
            name=name,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            ceiling=ceiling,
        )

    def max_pool2d(
        self,
        kernel_size: Sequence[int],
        *,
        stride: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        name: str | None = None,
    ) -> Node:
        """y[…, i, j] = the largest element of the window at (i, j); NaN if the window contains NaN.

        x [..., h, w]; padding counts as −∞. Same as PyTorch's max_pool2d.

        Gradient: g, added at the first maximum (in row-major order) of each window.

        Attributes:
            kernel_size: extents of the windows along each spatial axis
            stride: distance between windows along each spatial axis; default: the kernel size
            padding: padding on both sides of each spatial axis; at most half the kernel size; default [0, 0]
        """
        return self._op("max_pool2d", name=name, kernel_size=kernel_size, stride=stride, padding=padding)

    def max_pool2d_back(
        self,
        x: Node,
        kernel_size: Sequence[int],
        *,
        stride: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        name: str | None = None,
    ) -> Node:
        """y[…, h, w] = Σ g[…, i, j] over the windows (i, j) whose first maximum, in row-major order, is x[…, h, w].

        The gradient of max_pool2d with respect to x for the cotangent g [..., h', w'], with x [..., h, w]; 0 at
        all other elements. NaN counts as a maximum.

        Gradient: dg = the cotangent at max_pool2d_indices; none for x: the result is piecewise constant in x.

        Attributes:
            kernel_size: extents of the windows along each spatial axis
            stride: distance between windows along each spatial axis; default: the kernel size
            padding: padding on both sides of each spatial axis; at most half the kernel size; default [0, 0]
        """
        return self._op("max_pool2d_back", x, name=name, kernel_size=kernel_size, stride=stride, padding=padding)

    def max_pool2d_indices(
        self,
        kernel_size: Sequence[int],
        *,
        stride: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        name: str | None = None,
    ) -> Node:
        """y[…, i, j] = the position h · width + w of the first maximum (in row-major order) of the window at (i, j).

        Positions are int64 and flat within each plane, as in PyTorch's return_indices. NaN counts as a maximum.

        Attributes:
            kernel_size: extents of the windows along each spatial axis
            stride: distance between windows along each spatial axis; default: the kernel size
            padding: padding on both sides of each spatial axis; at most half the kernel size; default [0, 0]
        """
        return self._op("max_pool2d_indices", name=name, kernel_size=kernel_size, stride=stride, padding=padding)

    def max_pool3d(
        self,
        kernel_size: Sequence[int],
        *,
        stride: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
        ceiling: bool | None = None,
        name: str | None = None,
    ) -> Node:
        """y[…, i, j, k] = the largest element of the window at (i, j, k); NaN if it contains NaN. x [..., d, h, w].

        Padding counts as −∞. Extents are as in max_pool1d. To pool planes with dilation or `ceiling`, use a first
        kernel size of 1. PyTorch: `max_pool3d`, whose `ceil_mode` is `ceiling`. JAX: `lax.reduce_window`.

        Since opset 2.

        Gradient: g, added at the first maximum (in row-major order) of each window.

        Attributes:
            kernel_size: extents of the windows along each spatial axis
            stride: distance between windows along each spatial axis; default: the kernel size
            padding: padding on both sides of each axis; at most half the kernel size; default [0, 0, 0]
            dilation: distance between a window's taps along each axis; default [1, 1, 1]
            ceiling: whether to count a last window that extends past the end padding but starts before it;
                default False
        """
        return self._op(
            "max_pool3d",
            name=name,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            ceiling=ceiling,
        )

    def maximum(self, b: Node, *, name: str | None = None) -> Node:
        """y = the larger of a and b, elementwise with broadcasting; NaN if either is NaN.

        Gradient: da = g where a > b or only a is NaN, g / 2 where a = b or both are NaN, else 0; db likewise.
        """
        return self._op("maximum", b, name=name)

    def mean(self, *, axes: Sequence[int] | None = None, keepdims: bool | None = None, name: str | None = None) -> Node:
        """y = Σ x / n over axes, n the number of elements reduced; NaN if n = 0. Integers give float64.

        Gradient: g / n, broadcast back over the axes.

        Attributes:
            axes: axes to reduce; default: all
            keepdims: whether to keep the reduced axes, with extent 1; default False
        """
        return self._op("mean", name=name, axes=axes, keepdims=keepdims)

    def min(self, *, axes: Sequence[int] | None = None, keepdims: bool | None = None, name: str | None = None) -> Node:
        """y = min x over axes; NaN if an element is NaN. Ties, including NaN, share the gradient equally.

        Gradient: g / k to each of the k elements equal to y (if y is NaN, to each NaN); 0 to the others.

        Attributes:
            axes: axes to reduce; default: all
            keepdims: whether to keep the reduced axes, with extent 1; default False
        """
        return self._op("min", name=name, axes=axes, keepdims=keepdims)

    def minimum(self, b: Node, *, name: str | None = None) -> Node:
        """y = the smaller of a and b, elementwise with broadcasting; NaN if either is NaN.

        Gradient: da = g where a < b or only a is NaN, g / 2 where a = b or both are NaN, else 0; db likewise.
        """
        return self._op("minimum", b, name=name)

    def mlp_layer(
        self,
        w: Node,
        b: Node,
        *,
        activation: Literal["none", "relu", "tanh", "sigmoid", "gelu", "silu", "elu", "selu", "sin"] | None = None,
        name: str | None = None,
    ) -> Node:
        """y = activation(x @ wᵀ + b) for x[…, in], w[out, in] and b[out]: y[…, out].

        b may have any shape that broadcasts to y's shape. The activation is the op of that name with its
        defaults. CJC's layer uses the tanh form of `gelu`: for that, build the layer from its parts.

        Gradient: with h = g · activation′: dx = h @ w, dw = hᵀ @ x, db = Σ h over the rows.

        Attributes:
            activation: op applied to the sum; default 'none'
        """
        return self._op("mlp_layer", w, b, name=name, activation=activation)

    def mod(self, b: Node, *, name: str | None = None) -> Node:
        """y = a − b · ⌊a / b⌋: the remainder with the divisor's sign, as in Python's % and NumPy's mod.

        A float modulo 0 is NaN, an integer modulo 0 is 0.

        Gradient: da = g, db = −g · ⌊a / b⌋.
        """
        return self._op("mod", b, name=name)

    def mse_loss(
        self, y: Node, *, reduction: Literal["mean", "sum", "none"] | None = None, name: str | None = None
    ) -> Node:
        """loss = (x − y)², elementwise for equal shapes; then the mean.

        Gradient: dx = g · 2 (x − y) / n, dy = −dx.

        Attributes:
            reduction: how to combine the losses; none: return each one; default 'mean'
        """
        return self._op("mse_loss", y, name=name, reduction=reduction)

    def mul(self, b: Node, *, name: str | None = None) -> Node:
        """y = a · b, elementwise, with NumPy broadcasting.

        Gradient: da = g · b, db = g · a.
        """
        return self._op("mul", b, name=name)

    def mul_scalar(self, scalar: float, *, name: str | None = None) -> Node:
        """y = x · scalar.

        Gradient: g · scalar.

        Attributes:
            scalar: constant operand
        """
        return self._op("mul_scalar", name=name, scalar=scalar)

    def neg(self, *, name: str | None = None) -> Node:
        """y = −x.

        Gradient: −g.
        """
        return self._op("neg", name=name)

    def nonzero(self, k: int, *, name: str | None = None) -> Node:
        """The first k positions where `mask` is true, in row-major order: int64 [k, rank]; and their total count:
        int64 [].

        You set k, so that shapes do not depend on the mask. If there are more than k positions, the rest are
        dropped; if there are fewer, the remaining rows are zeros. The count, which is not limited to k, tells you
        which. JAX: `nonzero` with a size, which returns the columns as a tuple. PyTorch: `nonzero`, which has as
        many rows as there are positions.

        Since opset 2.

        The op has several results. Read each with get_output.

        Attributes:
            k: number of entries in the result
        """
        return self._op("nonzero", name=name, k=k)

    def norm(self, *, axes: Sequence[int] | None = None, keepdims: bool | None = None, name: str | None = None) -> Node:
        """y = √Σ x² over axes, the Euclidean norm, without intermediate overflow or underflow. Integers give
        float64.

        At 0 the gradient is 0, the subgradient of least norm, and so is its own gradient. An infinite element
        gets g, with its sign. If an element is NaN, y and the gradient are NaN.

        Gradient: g · x / y, and 0 where y = 0.

        Attributes:
            axes: axes to reduce; default: all
            keepdims: whether to keep the reduced axes, with extent 1; default False
        """
        return self._op("norm", name=name, axes=axes, keepdims=keepdims)

    def not_equal(self, b: Node, *, name: str | None = None) -> Node:
        """y = (a ≠ b), elementwise; true if either is NaN."""
        return self._op("not_equal", b, name=name)

    def one_hot(self, classes: int, *, dtype: npt.DTypeLike | None = None, name: str | None = None) -> Node:
        """y[…, c] = 1 where indices[…] = c, else 0, on a new last axis of extent `classes`. Indices lie in [0,
        classes).

        Attributes:
            classes: number of classes
            dtype: dtype of the result; default 'float64'
        """
        return self._op("one_hot", name=name, classes=classes, dtype=dtype)

    def pad(
        self,
        pad_width: Sequence[int],
        *,
        fill: float | None = None,
        fill_as: Literal["inf", "-inf", "nan"] | None = None,
        name: str | None = None,
    ) -> Node:
        """y = x with `fill` around it: pad_width[2i] entries before and pad_width[2i + 1] after, on each axis i.

        To pad with an infinity or NaN, use `fill_as`. PyTorch's `functional.pad` lists the last axis first. JAX's
        and NumPy's `pad` take pairs, in the same order as here.

        Gradient: g without the padding.

        Attributes:
            pad_width: entries before and after, one axis after the other
            fill: value of the padding; default 0.0
            fill_as: infinity or NaN to use instead of `fill`; float dtypes only; since opset 2
        """
        return self._op("pad", name=name, pad_width=pad_width, fill=fill, fill_as=fill_as)

    def pinv(self, *, rcond: float | None = None, name: str | None = None) -> Node:
        """y = x⁺, the Moore–Penrose pseudoinverse: v diag(1 / s) uᴴ of x = u diag(s) vᴴ, without the s that are 0.

        x [batch…, m, n], y [batch…, n, m]. Singular values up to `rcond` times the largest count as 0; the
        default is max(m, n) ε. The gradient assumes constant rank. It is exact if only zeros are cut off, even
        with equal singular values. If larger values are cut off, its relative error is their ratio to the values
        that remain. Where the rank changes, the pseudoinverse is discontinuous. A matrix with an infinity or NaN,
        or for which LAPACK does not converge, gives NaN; the other matrices of the batch are unaffected. Integers
        give float64; float16 is computed in a wider float and rounded once.

        PyTorch: `linalg.pinv` (with rtol). JAX and NumPy: `linalg.pinv`, with other defaults. G. H. Golub, V.
        Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose variables
        separate (1973), eq. 4.12.

        Since opset 2.

        Gradient: −yᴴ g yᴴ + (1 − x y) gᴴ y yᴴ + yᴴ y gᴴ (1 − y x).

        Attributes:
            rcond: singular values up to this fraction of the largest count as 0; default: max(m, n) ε
        """
        return self._op("pinv", name=name, rcond=rcond)

    def polygamma(self, order: int, *, name: str | None = None) -> Node:
        """y = ψ⁽ⁿ⁾(x) for n = `order`, the n-th derivative of `digamma`; order 0 is `digamma` itself.

        ±∞ at 0, −1, −2, …, with the sign that y has to the right of 0. Accurate to 10 ulp. For even orders, near
        the zeros below 0, accurate to 10 ulp of the sum over the nearest poles. Values below 1e-307 · n! are
        inaccurate or 0.

        The largest order is 170, because 170! is the largest factorial that fits in a float64; `polygamma` of
        order 170 has no derivative.

        Gradient: g · polygamma(x, order + 1).

        Attributes:
            order: order of the derivative of digamma, 0 to 170
        """
        return self._op("polygamma", name=name, order=order)

    def pow(self, b: Node | None = None, *, exponent: float | None = None, name: str | None = None) -> Node:
        """y = aᵇ with broadcasting; with one operand, y = a^exponent, as in `pow_scalar`. 0⁰ = 1.

        A negative a to a fractional power is NaN, and so is its derivative with respect to b. The derivative with
        respect to b is 0 where a = 0 and b ≥ 0, and where a = ∞ and b < 0. Powers of integers are integers and
        wrap around as in NumPy. With a negative exponent they are truncated towards zero (2⁻¹ → 0, as in CuPy and
        PyTorch; NumPy raises an error), and 0⁻¹ → 0.

        Gradient: da = g · b · aᵇ⁻¹, db = g · y · log a.

        Attributes:
            exponent: exponent, if there is no operand b
        """
        return self._op("pow", b, name=name, exponent=exponent)

    def pow_scalar(self, exponent: float, *, name: str | None = None) -> Node:
        """y = x^exponent for a real exponent. 0⁰ = 1; a negative x to a fractional power is NaN.

        For a complex x, y = exp(exponent · log x), with the branch cut of `log`.

        Gradient: g · exponent · x^(exponent − 1), and 0 for an exponent of 0.

        Attributes:
            exponent: exponent
        """
        return self._op("pow_scalar", name=name, exponent=exponent)

    def prod(self, *, axes: Sequence[int] | None = None, keepdims: bool | None = None, name: str | None = None) -> Node:
        """y = Π x over axes; 1 if no elements are reduced. Integers and bool are multiplied in int64, float16 in
        float32.

        The gradient is that of a tree of products. It is exact for any number of zeros, and so are higher
        derivatives.

        Gradient: g · (product of all other elements).

        Attributes:
            axes: axes to reduce; default: all
            keepdims: whether to keep the reduced axes, with extent 1; default False
        """
        return self._op("prod", name=name, axes=axes, keepdims=keepdims)

    def qr(self, *, name: str | None = None) -> Node:
        """q, r with x = q r: the columns of q are orthonormal, r is upper triangular; reduced form.

        x [batch…, m, n], q [batch…, m, k], r [batch…, k, n], k = min(m, n). LAPACK chooses the signs of r's
        diagonal; each sign flips a row of r together with the column of q. Use q and r only in functions that do
        not depend on these signs. The gradient is valid if the columns of x are independent; otherwise it is
        infinite or NaN. With fewer rows than columns, there are values but no gradient: `not_differentiable`. A
        matrix with an infinity or NaN gives NaN; the other matrices of the batch are unaffected. Integers give
        float64; float16 is computed in a wider float and rounded once.

        PyTorch and JAX: `linalg.qr`, reduced. S. F. Walter, L. Lehmann, Algorithmic differentiation of linear
        algebra functions with application in optimum experimental design, arXiv:1001.1654 (2010).

        Since opset 2.

        The op has several results. Read each with get_output.

        Gradient: (ḡq + q (L + Lᴴ − Re diag L)) r⁻ᴴ, L the lower triangle of r ḡrᴴ − ḡqᴴ q; none if rows <
        columns.
        """
        return self._op("qr", name=name)

    def random_bernoulli(self, p: Node, *, name: str | None = None) -> Node:
        """y = uniform < p, of p's shape: true with probability p. The uniform numbers have p's dtype.

        Equals `jax.random.bernoulli`. PyTorch's `bernoulli` returns floats and uses a different generator.

        Since opset 2.
        """
        return self._op("random_bernoulli", p, name=name)

    def random_bits(self, shape: Sequence[int], *, dtype: npt.DTypeLike | None = None, name: str | None = None) -> Node:
        """y = 32 random bits per element: the exclusive or of both words of counter i, row-major. Equals
        `jax.random.bits`.

        PyTorch's `randint` uses a different generator.

        Since opset 2.

        Attributes:
            shape: shape of the result
            dtype: dtype of the result; one of uint32; default 'uint32'
        """
        return self._op("random_bits", name=name, shape=shape, dtype=dtype)

    def random_categorical(self, logits: Node, *, axis: int | None = None, name: str | None = None) -> Node:
        """y = argmax(logits + gumbel) along `axis`, int64: i with probability proportional to exp(logits[i]).

        Equals `jax.random.categorical`. PyTorch's `multinomial` takes weights and uses a different generator.

        Since opset 2.

        Attributes:
            axis: axis of the categories; default -1
        """
        return self._op("random_categorical", logits, name=name, axis=axis)

    def random_exponential(self, shape: Sequence[int], dtype: npt.DTypeLike, *, name: str | None = None) -> Node:
        """y = −log1p(−u), u uniform in [0, 1): exponential numbers with mean 1. Equals `jax.random.exponential`.

        PyTorch's `exponential_` uses a different generator.

        Since opset 2.

        Attributes:
            shape: shape of the result
            dtype: dtype of the result; one of float32, float64
        """
        return self._op("random_exponential", name=name, shape=shape, dtype=dtype)

    def random_fold_in(self, number: Node, *, name: str | None = None) -> Node:
        """key = a new key [2] for each number: the words of counter (0, number mod 2³²). Equals
        `jax.random.fold_in`.

        PyTorch has no keys; use one `Generator` for each.

        Since opset 2.
        """
        return self._op("random_fold_in", number, name=name)

    def random_gumbel(self, shape: Sequence[int], dtype: npt.DTypeLike, *, name: str | None = None) -> Node:
        """y = −log(−log u), u uniform in [0, 1), with 0 replaced by the smallest normal number. Equals
        `jax.random.gumbel`.

        PyTorch's `distributions.Gumbel` uses a different generator.

        Since opset 2.

        Attributes:
            shape: shape of the result
            dtype: dtype of the result; one of float32, float64
        """
        return self._op("random_gumbel", name=name, shape=shape, dtype=dtype)

    def random_key(self, *, name: str | None = None) -> Node:
        """key = (seed ≫ 32, seed mod 2³²): uint32 [2] from an int64 []. Equals
        `jax.random.key_data(jax.random.key(seed))`.

        PyTorch's `manual_seed` starts a different sequence, and has state.

        Since opset 2.
        """
        return self._op("random_key", name=name)

    def random_normal(self, shape: Sequence[int], dtype: npt.DTypeLike, *, name: str | None = None) -> Node:
        """y = √2 · erfinv(u), u uniform in (−1, 1): standard normal numbers. Equals `jax.random.normal` to 32 ulp.

        PyTorch's `randn` uses a different generator.

        Since opset 2.

        Attributes:
            shape: shape of the result
            dtype: dtype of the result; one of float32, float64
        """
        return self._op("random_normal", name=name, shape=shape, dtype=dtype)

    def random_permutation(self, k: int, *, name: str | None = None) -> Node:
        """y = 0 … k−1 in random order, int64 [k]: a stable argsort of k random unsigned 64-bit numbers.

        `jax.random.permutation` uses a different algorithm, and PyTorch's `randperm` a different generator.

        Since opset 2.

        Attributes:
            k: number of elements
        """
        return self._op("random_permutation", name=name, k=k)

    def random_split(self, k: int, *, name: str | None = None) -> Node:
        """keys = k new keys [k, 2], each with its own sequence: the words of counters 0 … k−1. Equals
        `jax.random.split`.

        PyTorch has no keys; use one `Generator` for each.

        Since opset 2.

        Attributes:
            k: number of keys
        """
        return self._op("random_split", name=name, k=k)

    def random_uniform(self, shape: Sequence[int], dtype: npt.DTypeLike, *, name: str | None = None) -> Node:
        """y = uniform numbers in [0, 1): 23 random bits (for float64, 52) over 2²³ (2⁵²). Equals
        `jax.random.uniform`.

        PyTorch's `rand` uses a different generator.

        Since opset 2.

        Attributes:
            shape: shape of the result
            dtype: dtype of the result; one of float32, float64
        """
        return self._op("random_uniform", name=name, shape=shape, dtype=dtype)

    def real(self, *, name: str | None = None) -> Node:
        """y = Re x; a real x is returned unchanged. PyTorch, JAX and NumPy: `real`.

        Since opset 2.

        Gradient: g, with the imaginary part 0.
        """
        return self._op("real", name=name)

    def reciprocal(self, *, name: str | None = None) -> Node:
        """y = 1 / x; integers give floats, as in `div`.

        Gradient: −g · y².
        """
        return self._op("reciprocal", name=name)

    def relu(self, *, at_zero: float | None = None, name: str | None = None) -> Node:
        """y = max(x, 0). The derivative at 0 is `at_zero`; some systems use 1.

        Gradient: g where x > 0 or NaN, g · at_zero where x = 0, else 0.

        Attributes:
            at_zero: derivative at 0; default 0.0
        """
        return self._op("relu", name=name, at_zero=at_zero)

    def rem(self, b: Node, *, name: str | None = None) -> Node:
        """y = a − b · (a / b rounded towards 0): C's % and fmod, with the sign of a. `mod` has the sign of b.

        If b is 0, y is NaN for floats and 0 for integers. PyTorch: `fmod`. JAX: `lax.rem`, which gives a for
        integers.

        Since opset 2.

        Gradient: da = g, db = −g · (a / b rounded towards 0).
        """
        return self._op("rem", b, name=name)

    def reshape(
        self,
        *,
        shape: Sequence[int] | None = None,
        original_shape: Sequence[int] | None = None,
        name: str | None = None,
    ) -> Node:
        """y holds x's elements, in row-major order, in another shape; one extent may be −1 and is inferred.

        An absent or empty `shape` makes a 0-d tensor. `original_shape`, if given, must be x's shape.

        Gradient: g, reshaped back.

        Attributes:
            shape: shape of the result; one extent may be -1 and is inferred; default []
            original_shape: x's shape, checked if given
        """
        return self._op("reshape", name=name, shape=shape, original_shape=original_shape)

    def resize(
        self,
        sizes: Sequence[int],
        *,
        axes: Sequence[int] | None = None,
        method: Literal["nearest", "linear", "cubic"] | None = None,
        antialias: bool | None = None,
        corners: bool | None = None,
        name: str | None = None,
    ) -> Node:
        """y = x resized to new extents on some axes, by interpolation.

        The centre of new entry i lies at (i + ½) · extent / size − ½; with `corners`, at i · (extent − 1) / (size
        − 1). `nearest` reads the nearest entry, `linear` two, and `cubic` four, with Keys's kernel and a = −0.75;
        beyond an end, the entry at that end is repeated. With `antialias`, kernels widen where the tensor
        shrinks, a is −0.5, and positions beyond an end are ignored. PyTorch: `interpolate` with modes
        nearest-exact, linear, bilinear, trilinear and bicubic, and with align_corners. JAX: `image.resize`, whose
        cubic always has a = −0.5, and which has no equivalent of `corners`.

        Since opset 2.

        Gradient: g times the weights of interpolation, added to the entries that were read.

        Attributes:
            sizes: new extents
            axes: axes to resize; default: the last ones
            method: interpolation method; default 'linear'
            antialias: whether to antialias where x shrinks; linear and cubic only; default False
            corners: whether to align the end entries; linear and cubic only, without antialias; default False
        """
        return self._op(
            "resize", name=name, sizes=sizes, axes=axes, method=method, antialias=antialias, corners=corners
        )

    def rfft(
        self,
        *,
        axes: Sequence[int] | None = None,
        sizes: Sequence[int] | None = None,
        norm: Literal["backward", "ortho", "forward"] | None = None,
        name: str | None = None,
    ) -> Node:
        """The first ⌊n / 2⌋ + 1 entries of `fft` of a real x on the last of `axes`; the other entries are their
        conjugates.

        float16 gives complex64, integers give complex128. `norm` is as in `fft`. PyTorch, JAX and NumPy: `rfft`;
        over several axes, `rfft2` and `rfftn`.

        Since opset 2.

        Gradient: the real part of ifft(g) without the division by n, with g padded with zeros.

        Attributes:
            axes: axes to transform; default: the last axis, or as many last axes as there are sizes
            sizes: points on each axis, to which x is cut or zero-padded; default: x's extents
            norm: direction that divides by the number of points; ortho: both, by its square root; default
                'backward'
        """
        return self._op("rfft", name=name, axes=axes, sizes=sizes, norm=norm)

    def rms_norm(
        self,
        weight: Node | None = None,
        *,
        axes: Sequence[int] | None = None,
        eps: float | None = None,
        name: str | None = None,
    ) -> Node:
        """y = x / √(mean x² + eps) · weight, with the mean over `axes`; weight has x's extents there, in ascending
        order.

        B. Zhang, R. Sennrich, "Root mean square layer normalization" (2019).

        Gradient: with z normalised and h = g · weight: dx = (h − z · mean(h·z)) / √(mean x² + eps).

        Attributes:
            axes: axes to normalise over; default [-1]
            eps: positive number added to the variance or mean square; default 1e-05
        """
        return self._op("rms_norm", weight, name=name, axes=axes, eps=eps)

    def roll(self, shifts: Sequence[int], *, axes: Sequence[int] | None = None, name: str | None = None) -> Node:
        """y[(i + shift) mod n] = x[i] on each of `axes`; without `axes`, on the flattened tensor.

        Give one shift for each axis, or one shift without `axes`. Negative shifts move entries towards the front.

        Gradient: g, rolled back.

        Attributes:
            shifts: distance to move, for each axis
            axes: axes to move along; default: the flattened tensor
        """
        return self._op("roll", name=name, shifts=shifts, axes=axes)

    def round(self, *, name: str | None = None) -> Node:
        """y = x rounded to the nearest whole number, ties to even: 0.5 → 0, 1.5 → 2."""
        return self._op("round", name=name)

    def rsqrt(self, *, name: str | None = None) -> Node:
        """y = 1 / √x; NaN for x < 0.

        Gradient: −g · y³ / 2.
        """
        return self._op("rsqrt", name=name)

    def scatter_add(
        self,
        index: Node,
        updates: Node,
        *,
        axis: int | None = None,
        from_end: bool | None = None,
        name: str | None = None,
    ) -> Node:
        """y = x, then y[index[i, j, …], j, …] += updates[i, j, …] for axis 0; likewise for the other axes.

        `index` and `updates` have the same shape, of x's rank, and may be smaller than x on the other axes.
        Repeated indices accumulate. This is the adjoint of `gather`. Indices lie in [0, extent); with `from_end`,
        negative ones count from the end. PyTorch: `scatter_add`, which rejects negative indices. JAX:
        `x.at[…].add`, which accepts them and drops updates that are out of range.

        Gradient: dx = g, d updates = gather(g, index); none for index.

        Attributes:
            axis: axis to index; default 0
            from_end: whether negative indices count from the end; −1 is the last; since opset 2; default False
        """
        return self._op("scatter_add", index, updates, name=name, axis=axis, from_end=from_end)

    def segment_max(self, segment_ids: Node, segments: int, *, name: str | None = None) -> Node:
        """y[s, …] = the largest x[i, …] of the rows i with segment_ids[i] = s; NaN if one of them is NaN.

        x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Ties share the gradient
        equally. An empty segment gives −∞, or the smallest number of an integer dtype. JAX: `ops.segment_max`.
        PyTorch: `scatter_reduce` with amax, whose ties also share the gradient, and in which empty segments keep
        their old values.

        Since opset 2.

        Gradient: g / k to each of the k rows equal to y (if y is NaN, to each NaN); 0 to the others.

        Attributes:
            segments: number of segments
        """
        return self._op("segment_max", segment_ids, name=name, segments=segments)

    def segment_mean(self, segment_ids: Node, segments: int, *, name: str | None = None) -> Node:
        """y[s, …] = the mean of x[i, …] over the rows i with segment_ids[i] = s; NaN for an empty segment.

        x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers give float64;
        float16 is summed in float32. PyTorch: `scatter_reduce` with mean. JAX has no equivalent.

        Since opset 2.

        Gradient: dx[i, …] = g[segment_ids[i], …] / (number of rows in the segment); none for segment_ids.

        Attributes:
            segments: number of segments
        """
        return self._op("segment_mean", segment_ids, name=name, segments=segments)

    def segment_min(self, segment_ids: Node, segments: int, *, name: str | None = None) -> Node:
        """y[s, …] = the smallest x[i, …] of the rows i with segment_ids[i] = s; NaN if one of them is NaN.

        x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Ties share the gradient
        equally. An empty segment gives ∞, or the largest number of an integer dtype. JAX: `ops.segment_min`.
        PyTorch: `scatter_reduce` with amin, whose ties also share the gradient, and in which empty segments keep
        their old values.

        Since opset 2.

        Gradient: g / k to each of the k rows equal to y (if y is NaN, to each NaN); 0 to the others.

        Attributes:
            segments: number of segments
        """
        return self._op("segment_min", segment_ids, name=name, segments=segments)

    def segment_prod(self, segment_ids: Node, segments: int, *, name: str | None = None) -> Node:
        """y[s, …] = Π x[i, …] over the rows i with segment_ids[i] = s; 1 for an empty segment.

        x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers and bool are
        multiplied in int64, float16 in float32. The gradient is exact for any number of zeros, and so are higher
        derivatives. JAX: `ops.segment_prod`, which has no gradient. PyTorch: `scatter_reduce` with prod.

        Since opset 2.

        Gradient: g[segment_ids[i], …] · (product of the other rows of the segment); none for segment_ids.

        Attributes:
            segments: number of segments
        """
        return self._op("segment_prod", segment_ids, name=name, segments=segments)

    def segment_sum(self, segment_ids: Node, segments: int, *, name: str | None = None) -> Node:
        """y[s, …] = Σ x[i, …] over the rows i with segment_ids[i] = s; 0 for an empty segment.

        x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers and bool are
        summed in int64, float16 in float32.

        Gradient: dx[i, …] = g[segment_ids[i], …]; none for segment_ids.

        Attributes:
            segments: number of segments
        """
        return self._op("segment_sum", segment_ids, name=name, segments=segments)

    def select(self, index: int, *, axis: int | None = None, name: str | None = None) -> Node:
        """y = x at one `index` along `axis`, without that axis: x[index], x[:, index], …

        A negative index counts from the end. Same as PyTorch's select. To read at many indices, use `gather`.

        Gradient: g at the index, 0 elsewhere.

        Attributes:
            index: position to read
            axis: axis to read at one position; default 0
        """
        return self._op("select", name=name, index=index, axis=axis)

    def selu(self, *, name: str | None = None) -> Node:
        """y = 1.0507… · elu(x, alpha = 1.6732…), which preserves mean 0 and variance 1.

        G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter, arXiv:1706.02515.

        Gradient: 1.0507… · that of elu.
        """
        return self._op("selu", name=name)

    def sigmoid(self, *, name: str | None = None) -> Node:
        """y = 1 / (1 + e⁻ˣ), accurate in both tails, down to the smallest number. The same formula holds for complex
        x.

        Gradient: g · y · (1 − y).
        """
        return self._op("sigmoid", name=name)

    def sign(self, *, name: str | None = None) -> Node:
        """y = −1, 0 or 1: the sign of x. NaN stays NaN."""
        return self._op("sign", name=name)

    def silu(self, *, name: str | None = None) -> Node:
        """y = x · sigmoid x; 0 at −∞.

        Gradient: g · (s + x · s · (1 − s)), s = sigmoid x.
        """
        return self._op("silu", name=name)

    def sin(self, *, name: str | None = None) -> Node:
        """y = sin x.

        Gradient: g · cos x.
        """
        return self._op("sin", name=name)

    def sinc(self, *, name: str | None = None) -> Node:
        """y = sin(πx) / πx, and 1 at 0. Exactly 0 at all other whole numbers and at infinity.

        Accurate to 4 ulp even next to whole numbers, where other libraries lose all digits. At whole numbers
        other than 0, the derivative is (−1)ˣ / x. NumPy, PyTorch and JAX: `sinc`.

        Since opset 2.

        Gradient: g · (cos πx − y) / x, and 0 at 0.
        """
        return self._op("sinc", name=name)

    def sinh(self, *, name: str | None = None) -> Node:
        """y = sinh x.

        Gradient: g · cosh x.
        """
        return self._op("sinh", name=name)

    def slice(
        self,
        *,
        starts: Sequence[int] | None = None,
        stops: Sequence[int] | None = None,
        steps: Sequence[int] | None = None,
        name: str | None = None,
    ) -> Node:
        """y = x[starts[0]:stops[0]:steps[0], starts[1]:stops[1]:steps[1], …]: one entry for each axis.

        A list may have fewer entries than x has axes; the remaining axes use the defaults. Bounds are as in
        NumPy: negative ones count from the end, and bounds beyond an end are moved to that end. Steps are at
        least 1.

        Gradient: g at the positions that were read, 0 elsewhere.

        Attributes:
            starts: first position on each axis; default: 0
            stops: end position on each axis, not included; default: the extent
            steps: distance between positions on each axis; default: 1
        """
        return self._op("slice", name=name, starts=starts, stops=stops, steps=steps)

    def slice_at(self, starts: Node, sizes: Sequence[int], *, name: str | None = None) -> Node:
        """y = x[s₀ : s₀ + sizes[0], s₁ : s₁ + sizes[1], …], where s is the operand `starts`: int64 [rank].

        Each start, negative ones included, is moved into [0, extent − size], so that the result always has the
        same shape. JAX: `lax.dynamic_slice`, which first counts negative starts from the end. PyTorch: x.narrow,
        which takes a start on one axis.

        Since opset 2.

        Gradient: g in the box, 0 elsewhere; none for starts.

        Attributes:
            sizes: extents of the box, one for each axis
        """
        return self._op("slice_at", starts, name=name, sizes=sizes)

    def slogdet(self, *, name: str | None = None) -> Node:
        """sign, log|det x| of matrices on the last two axes: [batch…, n, n] → [batch…] for both; det x = sign ·
        exp(log).

        The logarithm does not overflow or underflow where the determinant does. A singular matrix has sign 0 and
        logarithm −∞, and its gradient is NaN, as is that of the inverse; the other matrices of the batch are
        unaffected. The sign has no gradient. For a complex matrix, the sign is complex, det x / |det x|, and the
        logarithm is real. Integers give float64; float16 is computed in a wider float and rounded once.

        The op has several results. Read each with get_output.

        Gradient: g · x⁻ᴴ, g the cotangent of log|det x|.
        """
        return self._op("slogdet", name=name)

    def softmax(self, *, axis: int | None = None, name: str | None = None) -> Node:
        """y = exp(x) / Σ exp(x) along `axis`, of x's shape; stable: computed from x − max x. Integers give float64.

        A row that contains only −inf gives NaN, as 0 / 0.

        Gradient: y · (g − Σ g·y), with the sum along the axis.

        Attributes:
            axis: axis to normalise along; default -1
        """
        return self._op("softmax", name=name, axis=axis)

    def softplus(self, *, name: str | None = None) -> Node:
        """y = ln(1 + eˣ).

        Gradient: g · sigmoid x.
        """
        return self._op("softplus", name=name)

    def solve(self, b: Node, *, name: str | None = None) -> Node:
        """y such that a y = b: a [batch…, n, n], b [n], [batch…, n] or [batch…, n, m]; batch axes of matrices
        broadcast.

        b holds vectors if it is 1-d, as in NumPy 2, or if it has a's shape without the last axis and its last two
        axes cannot be matrices of n rows; otherwise it holds matrices. If a is singular, y is NaN, or very large
        if rounding hides the singularity; the other systems of the batch are unaffected. Integers give float64;
        float16 is computed in a wider float and rounded once.

        M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation
        (2008).

        Gradient: db = a⁻ᴴ g, da = −(db yᴴ), summed over batch axes that were broadcast.
        """
        return self._op("solve", b, name=name)

    def sort(self, axis: int, *, name: str | None = None) -> Node:
        """y = x sorted in ascending order along an axis; equal entries keep their order, NaN comes last.

        Gradient: g, moved back to the original positions.

        Attributes:
            axis: axis to sort along
        """
        return self._op("sort", name=name, axis=axis)

    def split(self, sizes: Sequence[int], *, axis: int | None = None, name: str | None = None) -> Node:
        """y0, y1, … = x split along `axis` into parts of `sizes`, which add up to the extent; a part may be empty.

        The op has several results. Read each with get_output.

        Gradient: the parts' cotangents, joined; zeros for parts that are not read.

        Attributes:
            sizes: extents of the parts on the axis
            axis: axis to split; default 0
        """
        return self._op("split", name=name, sizes=sizes, axis=axis)

    def sqrt(self, *, name: str | None = None) -> Node:
        """y = √x; NaN for x < 0. At 0 the derivative is infinite.

        For a complex x, y is the root with Re y ≥ 0. The branch cut is the negative real axis; on it, the sign of
        the imaginary zero selects the side for value and gradient, as in PyTorch. JAX uses the derivative of one
        side for both.

        Gradient: g / 2y.
        """
        return self._op("sqrt", name=name)

    def square(self, *, name: str | None = None) -> Node:
        """y = x².

        Gradient: g · 2x.
        """
        return self._op("square", name=name)

    def squeeze(self, *, axes: Sequence[int] | None = None, name: str | None = None) -> Node:
        """y = x without `axes`, each of which must have extent 1; by default, without all axes of extent 1.

        Gradient: g, reshaped back.

        Attributes:
            axes: axes of extent 1 to remove; default: all of them
        """
        return self._op("squeeze", name=name, axes=axes)

    def stft(
        self, window: Node, stride: Sequence[int], *, sizes: Sequence[int] | None = None, name: str | None = None
    ) -> Node:
        """y[…, t, k] = Σ window[j] x[…, t · stride + j] exp(−2πi j k / n) over j: [… time] → [… frames, ⌊n / 2⌋ +
        1].

        Applies `rfft` to each part of x that the window [w] covers, with n = w points unless `sizes` states
        another number. x is not padded: to get frames around its ends, `pad` it first. TensorFlow: `signal.stft`.
        PyTorch and SciPy: `stft`, with the last two axes swapped, and with padding by default. NumPy and JAX:
        frames and `rfft`.

        Since opset 2.

        Gradient: that of rfft, times the window, summed where frames overlap.

        Attributes:
            stride: one number: distance between the starts of adjacent frames
            sizes: one number: points of each transform; default: the window's length
        """
        return self._op("stft", window, name=name, stride=stride, sizes=sizes)

    def stop_gradient(self, *, name: str | None = None) -> Node:
        """y = x, treated as a constant in differentiation."""
        return self._op("stop_gradient", name=name)

    def struct_field(self, field_index: int, total_fields: int, *, name: str | None = None) -> Node:
        """One field of a record that is stored as one tensor.

        The leading axis is split into `total_fields` equal parts, and y is the part `field_index`; the axis
        remains.

        Gradient: g in that part, 0 in the others.

        Attributes:
            field_index: position of the field, from 0
            total_fields: number of fields in the record
        """
        return self._op("struct_field", name=name, field_index=field_index, total_fields=total_fields)

    def sub(self, b: Node, *, name: str | None = None) -> Node:
        """y = a − b, elementwise, with NumPy broadcasting.

        Gradient: da = g, db = −g.
        """
        return self._op("sub", b, name=name)

    def sub_scalar(self, scalar: float, *, name: str | None = None) -> Node:
        """y = x − scalar.

        Gradient: g.

        Attributes:
            scalar: constant operand
        """
        return self._op("sub_scalar", name=name, scalar=scalar)

    def sum(self, *, axes: Sequence[int] | None = None, keepdims: bool | None = None, name: str | None = None) -> Node:
        """y = Σ x over axes. Integers and bool are summed in int64, float16 in float32.

        Gradient: g, broadcast back over the axes.

        Attributes:
            axes: axes to reduce; default: all
            keepdims: whether to keep the reduced axes, with extent 1; default False
        """
        return self._op("sum", name=name, axes=axes, keepdims=keepdims)

    def svd(self, *, degenerate: Literal["nan", "whole"] | None = None, name: str | None = None) -> Node:
        """u, s, vh with x = u diag(s) vh: s ≥ 0 descending, the columns of u and rows of vh orthonormal; reduced
        form.

        x [batch…, m, n], u [batch…, m, k], s [batch…, k], real, vh [batch…, k, n], k = min(m, n). If you read
        only s, vectors are not computed. The gradient of s alone is valid at equal values, too, if your function
        treats these alike.

        LAPACK chooses the signs, or for complex vectors the phases, of each column of u together with the row of
        vh. Use u and vh only in functions that do not depend on them.

        Singular values closer than 16 n ε ‖x‖, with n the larger extent, count as equal, and smaller ones count
        as 0. A value of 0 gets no gradient, like `abs` at 0. For a matrix with equal or zero values, the gradient
        of a function of u or vh is NaN. If `degenerate` is whole, such pairs are left out instead. That is
        correct if the function depends on whole spaces of vectors only, as a projector and u vh do, and wrong
        otherwise. Second derivatives are NaN if a pair was left out, and also for s alone if values are equal.

        A matrix with an infinity or NaN, or for which LAPACK does not converge, gives NaN; the other matrices of
        the batch are unaffected. Integers give float64; float16 is computed in a wider float and rounded once.

        PyTorch: `linalg.svd` with full_matrices false. JAX: `linalg.svd`. At a 0, both use whichever vectors
        LAPACK returned. J. Townsend, Differentiating the singular value decomposition (2016), with 1 / (sⱼ² −
        sᵢ²) in its partial fractions; Z.-Q. Wan, S.-X. Zhang, arXiv:1909.02659 (2019), on phases.

        Since opset 2.

        The op has several results. Read each with get_output.

        Gradient: u (diag(ḡs) + (F ∘ (P + Q) + G ∘ (P − Q)) / 2) vh, plus (1 − u uᴴ) ḡu s⁻¹ vh and u s⁻¹ ḡvh (1 −
        v vᴴ); P, Q = uᴴ ḡu, vh ḡvhᴴ minus their adjoints, Fᵢⱼ = 1 / (sⱼ − sᵢ), Gᵢⱼ = 1 / (sⱼ + sᵢ).

        Attributes:
            degenerate: gradient through vectors of equal values; nan: NaN; whole: assume that only whole spaces
                matter; default 'nan'
        """
        return self._op("svd", name=name, degenerate=degenerate)

    def symmetric_function(self, function: Literal["sqrt", "rsqrt", "log", "exp"], *, name: str | None = None) -> Node:
        """y = v f(diag w) vᵀ, a function of the symmetric part (x + xᵀ) / 2 = v diag(w) vᵀ of square matrices.

        f is applied to the eigenvalues: the square root, its reciprocal, the logarithm or the exponential. The
        gradient uses divided differences, which have a limit where eigenvalues meet. So it is exact at equal
        eigenvalues, and so is the second derivative; v f vᵀ written with `eigh` has no gradient there. A matrix
        gives NaN if f is not finite at an eigenvalue (such as log at 0 or below), if it contains an infinity or
        NaN, or if LAPACK does not converge; the other matrices of the batch are unaffected. Integers give
        float64; float16 is computed in a wider float and rounded once.

        SciPy: `sqrtm`, `logm` and `expm` of symmetric matrices. PyTorch and JAX have no such function with a
        gradient at equal eigenvalues, except for exp. N. J. Higham, Functions of Matrices (2008), theorem 3.11 of
        Daleckii and Krein.

        Since opset 2.

        Gradient: v (D ∘ (vᵀ (g + gᵀ) v / 2)) vᵀ, Dᵢⱼ = (f(wᵢ) − f(wⱼ)) / (wᵢ − wⱼ), or f′(wᵢ) if wᵢ = wⱼ.

        Attributes:
            function: function of the eigenvalues; rsqrt is 1 / sqrt
        """
        return self._op("symmetric_function", name=name, function=function)

    def take_along(
        self, index: Node, *, axis: int | None = None, from_end: bool | None = None, name: str | None = None
    ) -> Node:
        """y[i, j, …] = x[index[i, j, …], j, …] for axis 0; likewise for the other axes. Same as NumPy's
        take_along_axis.

        `index` has x's rank. On the axis, y has the extent of the index; on the other axes, x and the index
        broadcast. Indices lie in [0, extent); with `from_end`, in [−extent, extent), and negative ones count from
        the end. PyTorch: `take_along_dim`, which rejects negative indices. JAX: `take_along_axis`, which accepts
        them.

        Gradient: g, added where x was read: repeated indices accumulate; none for index.

        Attributes:
            axis: axis to index; default 0
            from_end: whether negative indices count from the end; −1 is the last; since opset 2; default False
        """
        return self._op("take_along", index, name=name, axis=axis, from_end=from_end)

    def tan(self, *, name: str | None = None) -> Node:
        """y = tan x.

        Gradient: g · (1 + y²).
        """
        return self._op("tan", name=name)

    def tanh(self, *, name: str | None = None) -> Node:
        """y = tanh x.

        Gradient: g · (1 − y²).
        """
        return self._op("tanh", name=name)

    def tile(self, repeats: Sequence[int], *, name: str | None = None) -> Node:
        """y = x repeated `repeats` times along each axis.

        As in NumPy, the shorter of shape and repeats is padded with leading ones.

        Gradient: g, summed over the repetitions.

        Attributes:
            repeats: number of repetitions along each axis
        """
        return self._op("tile", name=name, repeats=repeats)

    def topk(self, k: int, *, axis: int | None = None, name: str | None = None) -> Node:
        """values, indices = the k largest entries of x along `axis`, largest first, and their int64 positions.

        Among equal entries, the one with the lowest index comes first; NaN counts as largest.

        The op has several results. Read each with get_output.

        Gradient: the cotangent of the values, moved back to the original positions; none for indices.

        Attributes:
            k: number of entries; at most the axis's extent
            axis: axis to search; default 0
        """
        return self._op("topk", name=name, k=k, axis=axis)

    def transpose(self, *, axes: Sequence[int] | None = None, name: str | None = None) -> Node:
        """y = x with its axes permuted.

        y's axis i is x's axis axes[i]. Without `axes`, the last two axes are swapped (born reverses all axes: for
        that, pass `axes`). If x does not have rank 2, two entries swap those two axes (minima).

        Gradient: g, permuted back.

        Attributes:
            axes: permutation, or two axes to swap; default: the last two
        """
        return self._op("transpose", name=name, axes=axes)

    def triangular_solve(
        self, b: Node, *, lower: bool | None = None, transpose: bool | None = None, name: str | None = None
    ) -> Node:
        """y such that t y = b, or tᵀ y = b with `transpose`; t is the lower (or upper) triangle of a, with the
        diagonal.

        a [batch…, n, n]: the other triangle is ignored, whatever it contains. b [n], [batch…, n] or [batch…, n,
        m], read as in `solve`. Batch axes broadcast. If the diagonal contains a 0, y is infinite or NaN. Integers
        are computed in float64, float16 in float32.

        M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation
        (2008).

        Gradient: db = t⁻ᴴ g, da = the triangle of −(db yᴴ); with transpose, db = (conj t)⁻¹ g, da that of −(conj
        y dbᵀ).

        Attributes:
            lower: whether to read the lower triangle of a; false: the upper one; default True
            transpose: whether to solve with the triangle's transpose; default False
        """
        return self._op("triangular_solve", b, name=name, lower=lower, transpose=transpose)

    def tril(self, *, offset: int | None = None, name: str | None = None) -> Node:
        """y = x on and below a diagonal of the last two axes, 0 above: y[…, i, j] = x[…, i, j] where j − i ≤ offset.

        Gradient: tril(g).

        Attributes:
            offset: diagonal: 0 is the main one, positive above it, negative below it; default 0
        """
        return self._op("tril", name=name, offset=offset)

    def triu(self, *, offset: int | None = None, name: str | None = None) -> Node:
        """y = x on and above a diagonal of the last two axes, 0 below: y[…, i, j] = x[…, i, j] where j − i ≥ offset.

        Gradient: triu(g).

        Attributes:
            offset: diagonal: 0 is the main one, positive above it, negative below it; default 0
        """
        return self._op("triu", name=name, offset=offset)

    def trunc_div(self, b: Node, *, name: str | None = None) -> Node:
        """y = a / b rounded towards 0, elementwise with broadcasting: C's /. Integer division by 0 gives 0.

        `rem` is the remainder. PyTorch: `div` with rounding_mode trunc. JAX: `lax.div` of integers, which gives
        −1 for division by 0.

        Since opset 2.
        """
        return self._op("trunc_div", b, name=name)

    def unsqueeze(self, *, axes: Sequence[int] | None = None, name: str | None = None) -> Node:
        """y = x with axes of extent 1 inserted; `axes` are their positions in the result.

        Gradient: g, reshaped back.

        Attributes:
            axes: positions of the new axes in the result; must be given
        """
        return self._op("unsqueeze", name=name, axes=axes)

    def update_slice(self, update: Node, starts: Sequence[int], *, name: str | None = None) -> Node:
        """y = x with the box that begins at `starts`, one entry for each axis, replaced by `update`.

        The box has the shape of `update`. A negative start counts from the end, as in slice. A box that extends
        beyond x is an error; it is not moved. The result has the common dtype of x and update.

        Gradient: dx = g, 0 in the box; d update = g in the box.

        Attributes:
            starts: first position of the update on each axis
        """
        return self._op("update_slice", update, name=name, starts=starts)

    def update_slice_at(self, updates: Node, starts: Node, *, name: str | None = None) -> Node:
        """y = x with the box that begins at `starts` replaced by `updates`; `starts` is an operand, int64 [rank].

        The box has the shape of `updates`. Each start, negative ones included, is moved into [0, extent − size],
        so that the box fits into x. The result has the common dtype of x and updates. JAX:
        `lax.dynamic_update_slice`, which first counts negative starts from the end. PyTorch: `slice_scatter`,
        which takes a start on one axis, as a number.

        Since opset 2.

        Gradient: dx = g, 0 in the box; d updates = g in the box; none for starts.
        """
        return self._op("update_slice_at", updates, starts, name=name)

    def var(
        self,
        *,
        axes: Sequence[int] | None = None,
        keepdims: bool | None = None,
        ddof: int | None = None,
        name: str | None = None,
    ) -> Node:
        """y = Σ (x − mean x)² / (n − ddof) over axes, n the number of elements reduced. Integers give float64.

        Computed in two passes, the mean first, so that a large mean costs no digits. If n ≤ ddof, the division is
        by zero as in NumPy: the result is NaN or infinity.

        Gradient: g · 2 (x − mean x) / (n − ddof).

        Attributes:
            axes: axes to reduce; default: all
            keepdims: whether to keep the reduced axes, with extent 1; default False
            ddof: number subtracted from n; 1 for the unbiased estimate; default 0
        """
        return self._op("var", name=name, axes=axes, keepdims=keepdims, ddof=ddof)

    def where(self, on_true: Node, on_false: Node, *, name: str | None = None) -> Node:
        """y = on_true where cond is true, else on_false; all three broadcast. Nonzero numbers in cond are true.

        Each branch gets the cotangent where it was chosen and exactly zero elsewhere, whatever the other branch
        contains.

        Gradient: d on_true = where(cond, g, 0), d on_false = where(cond, 0, g); none for cond.
        """
        return self._op("where", on_true, on_false, name=name)

    def xlog1py(self, y: Node, *, name: str | None = None) -> Node:
        """y = x · log(1 + y), with broadcasting, accurate for small y; 0 where x = 0, unless y is NaN.

        Same as in SciPy and PyTorch (`special.xlog1py`); JAX gives 0 for NaN, too. The derivative with respect to
        x is log(1 + y): −∞ where y = −1, and NaN where y < −1. The derivative with respect to y is x / (1 + y),
        and 0 where x = 0 and y = −1.

        Since opset 2.

        Gradient: dx = g · log(1 + y); dy = g · x / (1 + y), and 0 where x = 0 and y = −1.
        """
        return self._op("xlog1py", y, name=name)

    def xlogy(self, y: Node, *, name: str | None = None) -> Node:
        """y = x · log y, with broadcasting; 0 where x = 0, unless y is NaN.

        Same as in SciPy and PyTorch; JAX gives 0 for NaN, too. The derivative with respect to x is log y: −∞
        where y = 0, so that of xlogy(x, x) at 0 is, too. Where x = 0 and y < 0 it is NaN, as in JAX (in PyTorch
        it is 0). The derivative with respect to y is x / y, and 0 where both are 0.

        Since opset 2.

        Gradient: dx = g · log y; dy = g · x / y, and 0 where x = y = 0.
        """
        return self._op("xlogy", y, name=name)

    def zeta(self, q: Node, *, name: str | None = None) -> Node:
        """y = ζ(s, q) = Σ (q + k)⁻ˢ over k ≥ 0, with broadcasting, for s > 1: the Hurwitz zeta function.

        ∞ at s = 1 and at q = 0, −1, −2, …; NaN for s < 1, and for q < 0 if s is not a whole number. For q > 0
        accurate to 8 ulp (on NumPy, it is SciPy's function); for q < 0 as accurate as `polygamma`. Derivatives
        exist to any order. With respect to q, they are as accurate as y. With respect to s, for which PyTorch and
        JAX have none, they are accurate to 1e-12 of the terms that they sum. With respect to s and then q, they
        are accurate to 1 ulp / (s − 1). SciPy and PyTorch: `special.zeta`. JAX: `zeta`.

        Since opset 2.

        Gradient: ds = −g · Σ log(q + k) (q + k)⁻ˢ, dq = −g · s · zeta(s + 1, q).
        """
        return self._op("zeta", q, name=name)


class GraphOps:
    """Leaves, and ops on a list of nodes."""

    def op(self, op: str, /, *operands: Node | None, name: str | None = None, **attrs: Any) -> Node:
        """Append any op by name."""
        raise NotImplementedError

    def arange(
        self,
        stop: float,
        *,
        start: float | None = None,
        step: float | None = None,
        dtype: npt.DTypeLike | None = None,
        name: str | None = None,
    ) -> Node:
        """Evenly spaced numbers: y[i] = start + i · step, up to but not including stop.

        The result has ⌈(stop − start) / step⌉ elements, at least 0. Same as NumPy's arange, but exact: for an
        integer dtype, start and step must be whole numbers, and all numbers must be in its range.

        Attributes:
            start: first number; default 0.0
            stop: end of the range, not included
            step: distance between numbers; negative to count down, not 0; default 1.0
            dtype: dtype of the result; default 'int64'
        """
        return self.op("arange", name=name, start=start, stop=stop, step=step, dtype=dtype)

    def call(
        self,
        *operands: Node,
        body: GraphFunction,
        derivative: GraphFunction | None = None,
        recompute: bool | None = None,
        name: str | None = None,
    ) -> Node:
        """The results of body(operands).

        `derivative` defines a custom gradient: a function of the operands, the results and the cotangents of the
        results that returns one cotangent for each float operand. It replaces the derivative of the body. With
        `recompute`, no values inside the body are stored for the backward pass, which runs the body again.

        For `derivative`, JAX has `custom_vjp` and PyTorch has `autograd.Function`; their rules receive the values
        that the forward pass saved. For `recompute`, both have `checkpoint`.

        Since opset 2.

        The op has several results. Read each with get_output.

        Gradient: that of the body, or `derivative`.

        Attributes:
            body: function of the operands
            derivative: function of operands, results and cotangents; returns a cotangent for each float operand;
                default: the body's derivative
            recompute: whether the backward pass recomputes the body instead of storing its values; default False
        """
        return self.op("call", *operands, name=name, body=body, derivative=derivative, recompute=recompute)

    def cat(
        self, *x: Node, axis: int | None = None, sizes: Sequence[int] | None = None, name: str | None = None
    ) -> Node:
        """y = the operands, joined along `axis`; their other extents must be equal.

        The result has their common dtype. `sizes`, if given, must be their extents on the axis.

        Gradient: g, split into the operands' parts.

        Attributes:
            axis: axis to join along; default 0
            sizes: the operands' extents on the axis, checked if given
        """
        return self.op("cat", *x, name=name, axis=axis, sizes=sizes)

    def cond(
        self, predicate: Node, *operands: Node, then: GraphFunction, otherwise: GraphFunction, name: str | None = None
    ) -> Node:
        """then(operands) if the predicate, a bool [], is true, else otherwise(operands). Only one of them runs.

        Both functions must return results of the same types. JAX: `lax.cond`. PyTorch: `cond`.

        Since opset 2.

        The op has several results. Read each with get_output.

        Gradient: that of the function that ran; the other one contributes exact zeros.

        Attributes:
            then: function of the operands after the predicate; runs if the predicate is true
            otherwise: function of the same operands; runs if the predicate is false
        """
        return self.op("cond", predicate, *operands, name=name, then=then, otherwise=otherwise)

    def constant(self, value: npt.ArrayLike, *, name: str | None = None) -> Node:
        """A tensor that is part of the graph: y = value.

        Attributes:
            value: value of the tensor
        """
        return self.op("constant", name=name, value=value)

    def einsum(self, a: Node, *b: Node, equation: str, name: str | None = None) -> Node:
        """y[output letters] = Σ a[letters] · b[letters] · … over all letters that are not in the output.

        For two operands, `equation` looks like "ab,bc->ac": a letter (a–z, A–Z) for each axis, a comma between
        operands, and after the arrow the axes of the result. Each letter has one extent and appears at most once
        in each operand. An ellipsis or an implicit output is not allowed; spaces are ignored. The number of
        operands is 1 to 32. The result has the common dtype of the operands, as in NumPy.

        Operands are multiplied in pairs, each time the pair with the fewest multiplications, so that no step
        costs more than the equation evaluated as one loop (greedy order, as in numpy.einsum_path).

        Gradient: for each operand, the einsum of g with the other operands.

        Attributes:
            equation: letters of each operand, then -> and the letters of the result
        """
        return self.op("einsum", a, *b, name=name, equation=equation)

    def fixed_point(
        self,
        *operands: Node,
        body: GraphFunction,
        tolerance: float,
        max_steps: int,
        carries: int | None = None,
        name: str | None = None,
    ) -> Node:
        """Repeats x = body(consts, x) until max |Δx| ≤ tolerance · (1 + max |x|), at most `max_steps` times.

        x stands for the `carries`, which must be floats; each maximum is over all of them, and max |x| is that of
        the new x. An infinity or NaN in x ends the iteration, unfinished. Results: x; `steps`, int64 [], the
        number of steps that ran; `finished`, bool []. The gradient is implicit, as in JAX's `lax.custom_root`,
        which takes a solver. In PyTorch, write a Python loop and a custom rule.

        Since opset 2.

        The op has several results. Read each with get_output.

        Gradient: implicit: u = g + (∂body/∂x)ᵀu by the same iteration, then (∂body/∂consts)ᵀu; none for the
        initial x.

        Attributes:
            body: function of consts and x; returns the next x
            carries: number of operands, the last ones, that are the initial x; at least one; default 0
            tolerance: largest change at which to stop, relative to 1 + max |x|; 0: no change
            max_steps: maximum number of steps
        """
        return self.op(
            "fixed_point", *operands, name=name, body=body, carries=carries, tolerance=tolerance, max_steps=max_steps
        )

    def full(
        self,
        *,
        shape: Sequence[int] | None = None,
        fill: float | None = None,
        dtype: npt.DTypeLike | None = None,
        fill_as: Literal["inf", "-inf", "nan"] | None = None,
        name: str | None = None,
    ) -> Node:
        """A tensor filled with one number, created on the server: y[…] = fill.

        An absent or empty `shape` makes a 0-d tensor. To fill with an infinity or NaN, use `fill_as`. PyTorch and
        JAX: `full`.

        Attributes:
            shape: shape of the result; default []
            fill: value of every element; default 0.0
            dtype: dtype of the result; default 'float64'
            fill_as: infinity or NaN to use instead of `fill`; float dtypes only; since opset 2
        """
        return self.op("full", name=name, shape=shape, fill=fill, dtype=dtype, fill_as=fill_as)

    def index(
        self,
        x: Node,
        *indices: Node,
        axes: Sequence[int] | None = None,
        from_end: bool | None = None,
        name: str | None = None,
    ) -> Node:
        """y = x[i, j, …]: entries or slices of x at index tensors, one for each of `axes`, which broadcast together.

        As in NumPy's x[i, j], the axes of the indices replace the indexed axes if these are adjacent, and come
        first otherwise. Indices lie in [0, extent); with `from_end`, in [−extent, extent), and negative ones
        count from the end. PyTorch and JAX: x[i, j], in which negative indices always count from the end. An
        index out of range is an error here and in PyTorch; JAX moves it into the range.

        Since opset 2.

        Gradient: dx = index_add(0, indices, g): repeated indices accumulate; none for indices.

        Attributes:
            axes: axis of each index; default: the first axes, in order
            from_end: whether negative indices count from the end; −1 is the last; default False
        """
        return self.op("index", x, *indices, name=name, axes=axes, from_end=from_end)

    def index_add(
        self,
        x: Node,
        *indices_and_updates: Node,
        axes: Sequence[int] | None = None,
        from_end: bool | None = None,
        name: str | None = None,
    ) -> Node:
        """y = x, then y[i, j, …] += updates, entry by entry: repeated indices accumulate.

        The operands are x, an index for each of `axes`, and updates, which broadcast to what `index` reads.
        Indices are as in `index`. PyTorch: `index_put` with accumulate. JAX: x.at[i, j].add, which drops updates
        that are out of range.

        Since opset 2.

        Gradient: dx = g, d updates = index(g, indices); none for indices.

        Attributes:
            axes: axis of each index; default: the first axes, in order
            from_end: whether negative indices count from the end; −1 is the last; default False
        """
        return self.op("index_add", x, *indices_and_updates, name=name, axes=axes, from_end=from_end)

    def index_set(
        self,
        x: Node,
        *indices_and_updates: Node,
        axes: Sequence[int] | None = None,
        from_end: bool | None = None,
        name: str | None = None,
    ) -> Node:
        """y = x, then y[i, j, …] = updates. If a position is written twice, the last update in row-major order wins.

        Only the winning update gets a gradient. The operands are x, an index for each of `axes`, and updates,
        which broadcast to what `index` reads. Indices are as in `index`. PyTorch: `index_put`. JAX: x.at[i,
        j].set. Neither defines which of several updates wins; PyTorch sends the gradient to all of them, and JAX
        drops updates that are out of range.

        Since opset 2.

        Gradient: dx = g, 0 where an update was written; d updates = g where the update won, else 0; none for
        indices.

        Attributes:
            axes: axis of each index; default: the first axes, in order
            from_end: whether negative indices count from the end; −1 is the last; default False
        """
        return self.op("index_set", x, *indices_and_updates, name=name, axes=axes, from_end=from_end)

    def input(
        self,
        name: str | None = None,
        *,
        dtype: npt.DTypeLike | None = None,
        shape: Sequence[int] | None = None,
        zero_d: bool | None = None,
    ) -> Node:
        """Data, fed with the request.

        Its gradient is computed only if `wrt` names it. A declared `dtype` or `shape` must match the feed.

        Attributes:
            dtype: required dtype of the feed; default: any
            shape: required shape of the feed, -1 for any extent; default: any
            zero_d: whether the feed must be 0-d; default False
        """
        return self.op("input", name=name, dtype=dtype, shape=shape, zero_d=zero_d)

    def map(
        self,
        *operands: Node,
        body: GraphFunction,
        sequences: int | None = None,
        at_once: int | None = None,
        name: str | None = None,
    ) -> Node:
        """stacks = body(consts, entry t of each sequence) for every t, in no particular order.

        The operands are consts, then `sequences` tensors of equal leading extent. `at_once` entries are computed
        in one batch. Each result of the body gives a stack [entries, …]. JAX: `lax.map`, whose batch_size is
        `at_once`. JAX and PyTorch: `vmap`, which computes all entries in one batch.

        Since opset 2.

        The op has several results. Read each with get_output.

        Gradient: a map of the body's gradient, summed over the entries for consts.

        Attributes:
            body: function of consts and one entry of each sequence; returns the values to stack
            sequences: number of operands, the last ones, that are sequences; at least one; default 0
            at_once: number of entries computed in one batch; default: as many as fit
        """
        return self.op("map", *operands, name=name, body=body, sequences=sequences, at_once=at_once)

    def parameter(
        self,
        name: str | None = None,
        *,
        dtype: npt.DTypeLike | None = None,
        shape: Sequence[int] | None = None,
        zero_d: bool | None = None,
    ) -> Node:
        """A trainable tensor, fed with the request.

        Same as `input`, but part of `wrt` by default.

        Attributes:
            dtype: required dtype of the feed; default: any
            shape: required shape of the feed, -1 for any extent; default: any
            zero_d: whether the feed must be 0-d; default False
        """
        return self.op("parameter", name=name, dtype=dtype, shape=shape, zero_d=zero_d)

    def scan(
        self,
        *operands: Node,
        body: GraphFunction,
        carries: int | None = None,
        sequences: int | None = None,
        length: int | None = None,
        reverse: bool | None = None,
        name: str | None = None,
    ) -> Node:
        """carries, stacks = body(consts, carries, entry t of each sequence), step by step for t = 0 … length − 1.

        The operands are consts, then `carries` initial values, then `sequences` tensors that are read along the
        leading axis; with `reverse`, from the last entry to the first. The body returns the carries for the next
        step, of the same types, and then values to stack. Entry t of a stack is the value from step t. Results:
        the last carries, then the stacks [length, …]. JAX: `lax.scan`, whose body can read variables around it.
        PyTorch: a Python loop.

        Since opset 2.

        The op has several results. Read each with get_output.

        Gradient: a scan in the opposite direction that recomputes each step.

        Attributes:
            body: function of consts, carries and one entry of each sequence; returns carries, then values to
                stack
            carries: number of operands that are initial values of carries; default 0
            sequences: number of operands, the last ones, that are sequences; default 0
            length: number of steps; default: the sequences' number of entries
            reverse: whether to run from the last entry to the first; default False
        """
        return self.op(
            "scan",
            *operands,
            name=name,
            body=body,
            carries=carries,
            sequences=sequences,
            length=length,
            reverse=reverse,
        )

    def stack(self, *x: Node, axis: int | None = None, name: str | None = None) -> Node:
        """y = the operands, all of one shape, joined along a new axis at position `axis` of the result.

        The result has their common dtype.

        Gradient: for each operand, its part of g.

        Attributes:
            axis: position of the new axis in the result; default 0
        """
        return self.op("stack", *x, name=name, axis=axis)

    def while_(
        self,
        *operands: Node,
        condition: GraphFunction,
        body: GraphFunction,
        max_steps: int,
        carries: int | None = None,
        name: str | None = None,
    ) -> Node:
        """Repeats carries = body(consts, carries) while condition(consts, carries) is true, at most `max_steps`
        times.

        The condition returns a bool []. It is evaluated before each step, and after the last step that is
        allowed. Results: the carries; `steps`, int64 [], the number of steps that ran; `finished`, bool [], false
        if the loop stopped at the bound. JAX: `lax.while_loop`, which has no bound and supports forward-mode
        derivatives only. PyTorch: a Python loop.

        Since opset 2.

        The op has several results. Read each with get_output.

        Gradient: backward over the steps that ran, recomputing each; the condition and `steps` have none.

        Attributes:
            condition: function of consts and carries; returns whether to continue, a bool []
            body: function of consts and carries; returns the next carries
            carries: number of operands, the last ones, that are initial values of carries; default 0
            max_steps: maximum number of steps
        """
        return self.op(
            "while", *operands, name=name, condition=condition, body=body, carries=carries, max_steps=max_steps
        )
