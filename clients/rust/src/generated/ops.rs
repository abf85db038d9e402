//! The ops as methods. Written by `python -m clients.ops` from the op registry: do not edit.

use crate::graph::Options;
use crate::{DType, Graph, GraphFunction, Node, Number, Tensor};

/// Returns the first opset with an op, or with an attribute as `op.attribute`.
pub(crate) fn since(name: &str) -> usize {
    match name {
        "adaptive_avg_pool" => 2,
        "adaptive_max_pool" => 2,
        "angle" => 2,
        "attention.grouped" => 2,
        "avg_pool1d" => 2,
        "avg_pool3d" => 2,
        "batch_norm_given" => 2,
        "batch_norm_running" => 2,
        "betainc" => 2,
        "call" => 2,
        "cdist" => 2,
        "compress" => 2,
        "cond" => 2,
        "cond_number" => 2,
        "conj" => 2,
        "conv_transpose1d" => 2,
        "cumlogsumexp" => 2,
        "cummax" => 2,
        "cummin" => 2,
        "cumprod" => 2,
        "cumsum.reverse" => 2,
        "det" => 2,
        "eigh" => 2,
        "embedding.from_end" => 2,
        "embedding.padding_idx" => 2,
        "fft" => 2,
        "fixed_point" => 2,
        "floor_div" => 2,
        "full.fill_as" => 2,
        "gather.from_end" => 2,
        "group_norm" => 2,
        "i0" => 2,
        "i0e" => 2,
        "i1" => 2,
        "i1e" => 2,
        "ifft" => 2,
        "igamma" => 2,
        "igammac" => 2,
        "imag" => 2,
        "index" => 2,
        "index_add" => 2,
        "index_set" => 2,
        "irfft" => 2,
        "lstsq" => 2,
        "lu" => 2,
        "make_complex" => 2,
        "map" => 2,
        "matrix_exp" => 2,
        "matrix_power" => 2,
        "matrix_rank" => 2,
        "max_pool1d" => 2,
        "max_pool3d" => 2,
        "nonzero" => 2,
        "pad.fill_as" => 2,
        "pinv" => 2,
        "qr" => 2,
        "random_bernoulli" => 2,
        "random_bits" => 2,
        "random_categorical" => 2,
        "random_exponential" => 2,
        "random_fold_in" => 2,
        "random_gumbel" => 2,
        "random_key" => 2,
        "random_normal" => 2,
        "random_permutation" => 2,
        "random_split" => 2,
        "random_uniform" => 2,
        "real" => 2,
        "rem" => 2,
        "resize" => 2,
        "rfft" => 2,
        "scan" => 2,
        "scatter_add.from_end" => 2,
        "segment_max" => 2,
        "segment_mean" => 2,
        "segment_min" => 2,
        "segment_prod" => 2,
        "sinc" => 2,
        "slice_at" => 2,
        "stft" => 2,
        "svd" => 2,
        "symmetric_function" => 2,
        "take_along.from_end" => 2,
        "trunc_div" => 2,
        "update_slice_at" => 2,
        "while" => 2,
        "xlog1py" => 2,
        "xlogy" => 2,
        "zeta" => 2,
        _ => 1,
    }
}

impl Node {
    /// y = |x|; real for a complex x. At 0 the gradient is 0, in every order.
    ///
    /// Gradient: g · sign x; for a complex x, g · x / |x|.
    pub fn abs(&self) -> Node {
        self.graph().typed("abs", [self], Options::default())
    }

    /// y = arccos x in \[0, π\], NaN for |x| \> 1. At ±1 the derivative is infinite.
    ///
    /// Gradient: −g / √(1 − x²).
    pub fn acos(&self) -> Node {
        self.graph().typed("acos", [self], Options::default())
    }

    /// y = arcosh x, NaN for x \< 1. At 1 the derivative is infinite.
    ///
    /// Gradient: g / sinh y = g / √(x² − 1).
    pub fn acosh(&self) -> Node {
        self.graph().typed("acosh", [self], Options::default())
    }

    /// y\[…, i\] = the mean of window i, from ⌊i · n / size⌋ to ⌈(i + 1) · n / size⌉. Integers give float64.
    ///
    /// Pools as many of the last axes as `sizes` has entries. PyTorch: `adaptive_avg_pool1d`, 2d and 3d. JAX has no
    /// equivalent.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g / (number of elements in the window), added to each of them.
    ///
    /// `sizes`: number of windows on each of the last axes.
    pub fn adaptive_avg_pool(&self, sizes: impl Into<Vec<i64>>) -> Node {
        self.graph().typed("adaptive_avg_pool", [self], Options::default().made::<Vec<i64>>("sizes", sizes))
    }

    /// y\[…, i\] = the maximum of window i, from ⌊i · n / size⌋ to ⌈(i + 1) · n / size⌉; NaN if the window contains
    /// NaN.
    ///
    /// Pools as many of the last axes as `sizes` has entries. PyTorch: `adaptive_max_pool1d`, 2d and 3d. JAX has no
    /// equivalent.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g, added at the first maximum (in row-major order) of each window.
    ///
    /// `sizes`: number of windows on each of the last axes.
    pub fn adaptive_max_pool(&self, sizes: impl Into<Vec<i64>>) -> Node {
        self.graph().typed("adaptive_max_pool", [self], Options::default().made::<Vec<i64>>("sizes", sizes))
    }

    /// y = a + b, elementwise, with NumPy broadcasting.
    ///
    /// Gradient: da = g, db = g.
    pub fn add(&self, b: &Node) -> Node {
        self.graph().typed("add", [self, b], Options::default())
    }

    /// y = x + scalar.
    ///
    /// Gradient: g.
    ///
    /// `scalar`: constant operand.
    pub fn add_scalar(&self, scalar: f64) -> Node {
        self.graph().typed("add_scalar", [self], Options::default().with("scalar", scalar))
    }

    /// y = whether all elements over axes are true; nonzero numbers are true. True if no elements are reduced.
    pub fn all(&self) -> Node {
        self.all_with(AllOptions::new())
    }

    /// Appends [`all`](Self::all) with options.
    pub fn all_with(&self, options: AllOptions) -> Node {
        self.graph().typed("all", [self], options.0)
    }

    /// y = the angle of x in \[−π, π\]: atan2(Im x, Re x); 0 or π for a real x. NaN if a part is NaN.
    ///
    /// The branch cut is the negative real axis; on it, the sign of the imaginary zero selects the side (as in C99's
    /// carg). At 0 the gradient is 0, as in PyTorch; in JAX it is NaN.
    ///
    /// Since opset 2.
    ///
    /// Gradient: i · g · x / |x|², 0 at 0; none for a real x.
    pub fn angle(&self) -> Node {
        self.graph().typed("angle", [self], Options::default())
    }

    /// y = whether any element over axes is true; nonzero numbers are true. False if no elements are reduced.
    pub fn any(&self) -> Node {
        self.any_with(AnyOptions::new())
    }

    /// Appends [`any`](Self::any) with options.
    pub fn any_with(&self, options: AnyOptions) -> Node {
        self.graph().typed("any", [self], options.0)
    }

    /// y = the int64 position of the largest element along `axis`: the first in a tie; the first NaN if any.
    ///
    /// `axis`: axis to search.
    pub fn argmax(&self, axis: i64) -> Node {
        self.argmax_with(axis, ArgmaxOptions::new())
    }

    /// Appends [`argmax`](Self::argmax) with options.
    pub fn argmax_with(&self, axis: i64, options: ArgmaxOptions) -> Node {
        self.graph().typed("argmax", [self], options.0.with("axis", axis))
    }

    /// y = the int64 position of the smallest element along `axis`: the first in a tie; the first NaN if any.
    ///
    /// `axis`: axis to search.
    pub fn argmin(&self, axis: i64) -> Node {
        self.argmin_with(axis, ArgminOptions::new())
    }

    /// Appends [`argmin`](Self::argmin) with options.
    pub fn argmin_with(&self, axis: i64, options: ArgminOptions) -> Node {
        self.graph().typed("argmin", [self], options.0.with("axis", axis))
    }

    /// y = the int64 positions that sort x in ascending order along an axis; equal entries keep their order.
    ///
    /// NaN comes last.
    ///
    /// `axis`: axis to sort along.
    pub fn argsort(&self, axis: i64) -> Node {
        self.graph().typed("argsort", [self], Options::default().with("axis", axis))
    }

    /// y = arcsin x in \[−π/2, π/2\], NaN for |x| \> 1. At ±1 the derivative is infinite.
    ///
    /// Gradient: g / √(1 − x²).
    pub fn asin(&self) -> Node {
        self.graph().typed("asin", [self], Options::default())
    }

    /// y = arsinh x.
    ///
    /// Gradient: g / cosh y = g / √(x² + 1).
    pub fn asinh(&self) -> Node {
        self.graph().typed("asinh", [self], Options::default())
    }

    /// y = arctan x in \[−π/2, π/2\].
    ///
    /// Gradient: g / (1 + x²).
    pub fn atan(&self) -> Node {
        self.graph().typed("atan", [self], Options::default())
    }

    /// y = the angle in \[−π, π\] of the point with abscissa b and ordinate a, with broadcasting.
    ///
    /// At a = b = 0 the value is NumPy's (0 or ±π), and the derivatives, which do not exist there, are NaN. At infinity
    /// the derivatives are 0.
    ///
    /// Gradient: da = g · b / (a² + b²), db = −g · a / (a² + b²).
    pub fn atan2(&self, b: &Node) -> Node {
        self.graph().typed("atan2", [self, b], Options::default())
    }

    /// y = artanh x: ±∞ at ±1, NaN beyond.
    ///
    /// Gradient: g / (1 − x²).
    pub fn atanh(&self) -> Node {
        self.graph().typed("atanh", [self], Options::default())
    }

    /// y = softmax(q kᵀ · scale + mask) v: for each query, the mean of the values, weighted by how well its key
    /// matches.
    ///
    /// q \[..., queries, d\], k \[..., keys, d\], v \[..., keys, width\], y \[..., queries, width\]; leading axes
    /// broadcast. The mask broadcasts to \[..., queries, keys\]; it is bool (true = keep) or float (added). `causal`
    /// also hides key j from query i if j \> i. A query with no visible keys gives NaN. With `grouped`, the number of
    /// heads of q (axis -3) is a multiple of that of k and v, and adjacent heads of q share a head of k and v:
    /// PyTorch's enable_gqa, and what JAX's dot_product_attention does if k and v have fewer heads. Scores of at least
    /// 16 MiB that are larger than q, k and v together are not stored, except for tangents and second derivatives.
    ///
    /// A. Vaswani et al., "Attention is all you need" (2017); J. Ainslie et al., "GQA" (2023).
    ///
    /// Gradient: with p = softmax(…), dp = g vᵀ, ds = p · (dp − Σ dp·p): dq = scale · ds k, dk = scale · dsᵀ q, dv = pᵀ
    /// g.
    pub fn attention(&self, k: &Node, v: &Node) -> Node {
        self.attention_with(k, v, AttentionOptions::new())
    }

    /// Appends [`attention`](Self::attention) with options.
    pub fn attention_with(&self, k: &Node, v: &Node, options: AttentionOptions) -> Node {
        self.graph().typed("attention", [self, k, v], options.0)
    }

    /// y\[…, i\] = the mean of the window at i. x \[..., w\]; padding counts as zeros. Integers give float64.
    ///
    /// Extents are as in max_pool1d. With `ceiling`, the part of a window beyond the padding is not counted. PyTorch:
    /// `avg_pool1d`, whose `ceil_mode` is `ceiling`. Flax: `avg_pool`, which has no ceiling mode.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g / (number of taps in the window), added to each of its elements.
    ///
    /// `kernel_size`: extents of the windows along each spatial axis.
    pub fn avg_pool1d(&self, kernel_size: impl Into<Vec<i64>>) -> Node {
        self.avg_pool1d_with(kernel_size, AvgPool1dOptions::new())
    }

    /// Appends [`avg_pool1d`](Self::avg_pool1d) with options.
    pub fn avg_pool1d_with(&self, kernel_size: impl Into<Vec<i64>>, options: AvgPool1dOptions) -> Node {
        self.graph().typed("avg_pool1d", [self], options.0.made::<Vec<i64>>("kernel_size", kernel_size))
    }

    /// y\[…, i, j\] = the sum of the window at (i, j), divided by the kernel size; padding counts as zeros.
    ///
    /// x \[..., h, w\]. Integers give float64. Same as PyTorch's avg_pool2d.
    ///
    /// Gradient: conv_transpose2d of g / kernel size with ones.
    ///
    /// `kernel_size`: extents of the windows along each spatial axis.
    pub fn avg_pool2d(&self, kernel_size: impl Into<Vec<i64>>) -> Node {
        self.avg_pool2d_with(kernel_size, AvgPool2dOptions::new())
    }

    /// Appends [`avg_pool2d`](Self::avg_pool2d) with options.
    pub fn avg_pool2d_with(&self, kernel_size: impl Into<Vec<i64>>, options: AvgPool2dOptions) -> Node {
        self.graph().typed("avg_pool2d", [self], options.0.made::<Vec<i64>>("kernel_size", kernel_size))
    }

    /// y\[…, i, j, k\] = the mean of the window at (i, j, k). x \[..., d, h, w\]; padding counts as zeros.
    ///
    /// Integers give float64. Extents are as in max_pool1d. With `ceiling`, the part of a window beyond the padding is
    /// not counted. PyTorch: `avg_pool3d`, whose `ceil_mode` is `ceiling`. Flax: `avg_pool`, which has no ceiling mode.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g / (number of taps in the window), added to each of its elements.
    ///
    /// `kernel_size`: extents of the windows along each spatial axis.
    pub fn avg_pool3d(&self, kernel_size: impl Into<Vec<i64>>) -> Node {
        self.avg_pool3d_with(kernel_size, AvgPool3dOptions::new())
    }

    /// Appends [`avg_pool3d`](Self::avg_pool3d) with options.
    pub fn avg_pool3d_with(&self, kernel_size: impl Into<Vec<i64>>, options: AvgPool3dOptions) -> Node {
        self.graph().typed("avg_pool3d", [self], options.0.made::<Vec<i64>>("kernel_size", kernel_size))
    }

    /// y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance of each feature over all other axes.
    ///
    /// `axis` is the axis of the features; weight and bias have its extent. The statistics are those of the operand, as
    /// in training, with n in the denominator. CJC normalises the whole tensor: for that, reshape it to \[n, 1\]. S.
    /// Ioffe, C. Szegedy, "Batch normalization" (2015).
    ///
    /// Gradient: as in layer_norm, over all axes but that of the features.
    pub fn batch_norm(&self) -> Node {
        self.batch_norm_with(BatchNormOptions::new())
    }

    /// Appends [`batch_norm`](Self::batch_norm) with options.
    pub fn batch_norm_with(&self, options: BatchNormOptions) -> Node {
        self.graph().typed("batch_norm", [self], options.0)
    }

    /// y = (x − mean) / √(variance + eps) · weight + bias, with given statistics, as in inference.
    ///
    /// `axis` is the axis of the features; all other operands have its extent. PyTorch: `batch_norm` with training
    /// false. Flax: `BatchNorm` with use_running_average, with features last.
    ///
    /// Since opset 2.
    ///
    /// Gradient: with r = 1 / √(variance + eps): dx = g · weight · r; for the other operands, that of the formula.
    pub fn batch_norm_given(&self, mean: &Node, variance: &Node) -> Node {
        self.batch_norm_given_with(mean, variance, BatchNormGivenOptions::new())
    }

    /// Appends [`batch_norm_given`](Self::batch_norm_given) with options.
    pub fn batch_norm_given_with(&self, mean: &Node, variance: &Node, options: BatchNormGivenOptions) -> Node {
        self.graph().typed("batch_norm_given", [self, mean, variance], options.0)
    }

    /// y of `batch_norm`, and the updated running mean and variance: (1 − momentum) · old + momentum · this batch's.
    ///
    /// `axis` is the axis of the features; all other operands have its extent. The variance of the batch has n − 1 in
    /// the denominator in the running variance, and n in y. PyTorch: `batch_norm` with training true, which updates the
    /// running statistics in place and gives them no gradient. Flax: `BatchNorm`, whose momentum is 1 minus this one,
    /// and whose running variance has n in the denominator.
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with `get_output`.
    ///
    /// Gradient: as in batch_norm; for the running statistics, that of their formula.
    pub fn batch_norm_running(&self, mean: &Node, variance: &Node) -> Node {
        self.batch_norm_running_with(mean, variance, BatchNormRunningOptions::new())
    }

    /// Appends [`batch_norm_running`](Self::batch_norm_running) with options.
    pub fn batch_norm_running_with(&self, mean: &Node, variance: &Node, options: BatchNormRunningOptions) -> Node {
        self.graph().typed("batch_norm_running", [self, mean, variance], options.0)
    }

    /// loss = −y · log σ(x) − (1 − y) · log σ(−x), binary cross-entropy, elementwise for equal shapes; then the mean.
    ///
    /// x contains logits, y probabilities. Accurate in both tails, because the logarithm of σ is computed in one step.
    ///
    /// Gradient: dx = g · (σ(x) − y) / n, dy = −g · x / n.
    pub fn bce_with_logits(&self, y: &Node) -> Node {
        self.bce_with_logits_with(y, BceWithLogitsOptions::new())
    }

    /// Appends [`bce_with_logits`](Self::bce_with_logits) with options.
    pub fn bce_with_logits_with(&self, y: &Node, options: BceWithLogitsOptions) -> Node {
        self.graph().typed("bce_with_logits", [self, y], options.0)
    }

    /// y = I(x; a, b) = ∫₀ˣ tᵃ⁻¹ (1 − t)ᵇ⁻¹ dt / B(a, b), with broadcasting, for 0 ≤ x ≤ 1 and a, b \> 0.
    ///
    /// On NumPy, this is SciPy's function. Accurate to 256 ulp. Derivatives with respect to all operands exist to any
    /// order. They are accurate to 1e-12 of their value with respect to x, and to 1e-11 with respect to a and b, for
    /// which JAX has none. SciPy and JAX: `betainc`. PyTorch has no equivalent.
    ///
    /// Since opset 2.
    ///
    /// Gradient: da, db = g · ∂I/∂a, g · ∂I/∂b, integrals; dx = g · xᵃ⁻¹ (1 − x)ᵇ⁻¹ / B(a, b).
    pub fn betainc(&self, b: &Node, x: &Node) -> Node {
        self.graph().typed("betainc", [self, b, x], Options::default())
    }

    /// y = log |B(a, b)| = log |Γ(a) Γ(b) / Γ(a + b)|, with broadcasting. Accurate to 10 ulp of y, or of 1 if |y| \< 1.
    ///
    /// One ulp is that of float64, on NumPy. If an operand is large, a sum of `lgamma` would have few correct digits,
    /// and SciPy's loses up to 9 of 16. For operands that are not positive, y equals SciPy's; at infinity it is −∞.
    ///
    /// The derivative with respect to a is as accurate, or, if b \< a \< 100, accurate to 1e-15 · a / b of its value.
    /// The same holds for b.
    ///
    /// Gradient: da = g · (digamma(a) − digamma(a + b)), db = g · (digamma(b) − digamma(a + b)).
    pub fn betaln(&self, b: &Node) -> Node {
        self.graph().typed("betaln", [self, b], Options::default())
    }

    /// y = x repeated along new leading axes and along axes of extent 1, to `shape`, by NumPy's rules.
    ///
    /// Gradient: g, summed over the repeated axes.
    pub fn broadcast_to(&self) -> Node {
        self.broadcast_to_with(BroadcastToOptions::new())
    }

    /// Appends [`broadcast_to`](Self::broadcast_to) with options.
    pub fn broadcast_to_with(&self, options: BroadcastToOptions) -> Node {
        self.graph().typed("broadcast_to", [self], options.0)
    }

    /// y = x converted to another dtype, as in NumPy's astype: fractions are truncated towards zero, nonzero is true.
    ///
    /// Float to float is differentiable; no gradient passes through integers or bool. A real x can become complex. To
    /// convert a complex x to real, use `real`.
    ///
    /// Gradient: g, cast back.
    ///
    /// `dtype`: dtype of the result.
    pub fn cast(&self, dtype: impl Into<DType>) -> Node {
        self.graph().typed("cast", [self], Options::default().made::<DType>("dtype", dtype))
    }

    /// y\[…, i, j\] = (Σ |a\[…, i, k\] − b\[…, j, k\]|ᵖ)^(1/p) over k: the distance between row i of a and row j of b.
    ///
    /// a \[..., m, d\], b \[..., n, d\], y \[..., m, n\]; leading axes broadcast. Where two rows coincide, the gradient
    /// and its own gradient are 0. Differences are taken before they are squared, so that no digits are lost. PyTorch:
    /// `cdist` with compute_mode donot_use_mm_for_euclid_dist. JAX has no equivalent.
    ///
    /// Since opset 2.
    ///
    /// Gradient: da = Σ g · sign(a − b) · (|a − b| / y)^(p − 1), 0 where y = 0; db likewise.
    pub fn cdist(&self, b: &Node) -> Node {
        self.cdist_with(b, CdistOptions::new())
    }

    /// Appends [`cdist`](Self::cdist) with options.
    pub fn cdist_with(&self, b: &Node, options: CdistOptions) -> Node {
        self.graph().typed("cdist", [self, b], options.0)
    }

    /// y = ⌈x⌉: x rounded up to a whole number.
    pub fn ceil(&self) -> Node {
        self.graph().typed("ceil", [self], Options::default())
    }

    /// y lower triangular with a positive diagonal and y yᴴ = (x + xᴴ) / 2, for matrices on the last two axes.
    ///
    /// x is made symmetric (Hermitian) first, as in JAX, so that the gradient is symmetric and valid in every
    /// direction. A matrix that is not positive definite gives NaN; the other matrices of the batch are unaffected.
    /// Integers give float64; float16 is computed in a wider float and rounded once.
    ///
    /// I. Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527 (2016), eq. 9.
    ///
    /// Gradient: (s + sᴴ) / 2, where s = y⁻ᴴ Φ(yᴴ g) y⁻¹ and Φ takes the lower triangle with half the diagonal.
    pub fn cholesky(&self) -> Node {
        self.graph().typed("cholesky", [self], Options::default())
    }

    /// y0, y1, … = x split along `axis` into at most `chunks` parts of extent ⌈n / chunks⌉; the last may be smaller.
    ///
    /// As in PyTorch, there may be fewer parts than requested (6 entries in 4 chunks: 2, 2, 2). An empty axis gives
    /// `chunks` empty parts.
    ///
    /// The op has several results. Read each with `get_output`.
    ///
    /// Gradient: the parts' cotangents, joined; zeros for parts that are not read.
    ///
    /// `chunks`: maximum number of parts.
    pub fn chunk(&self, chunks: i64) -> Node {
        self.chunk_with(chunks, ChunkOptions::new())
    }

    /// Appends [`chunk`](Self::chunk) with options.
    pub fn chunk_with(&self, chunks: i64, options: ChunkOptions) -> Node {
        self.graph().typed("chunk", [self], options.0.with("chunks", chunks))
    }

    /// y = x limited to \[min, max\]; either bound may be absent. If min \> max, y is max.
    ///
    /// NaN stays NaN and gets the gradient. Integers keep their dtype if all bounds given are whole numbers within its
    /// range; otherwise they give float64.
    ///
    /// Gradient: g where min ≤ x ≤ max or x is NaN, else 0.
    pub fn clamp(&self) -> Node {
        self.clamp_with(ClampOptions::new())
    }

    /// Appends [`clamp`](Self::clamp) with options.
    pub fn clamp_with(&self, options: ClampOptions) -> Node {
        self.graph().typed("clamp", [self], options.0)
    }

    /// The first k entries of x along `axis` where `mask` \[extent\] is true; and their total count: int64 \[\].
    ///
    /// You set k, so that shapes do not depend on the mask. If there are more than k entries, the rest are dropped; if
    /// there are fewer, the remaining entries are `fill`. The count, which is not limited to k, tells you which. NumPy:
    /// `compress`. JAX: `compress`, which also takes a size and a fill_value. PyTorch: x\[mask\], which has as many
    /// entries as the mask selects.
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with `get_output`.
    ///
    /// Gradient: g to the entries that were read; none for mask.
    ///
    /// `k`: number of entries in the result.
    pub fn compress(&self, mask: &Node, k: i64) -> Node {
        self.compress_with(mask, k, CompressOptions::new())
    }

    /// Appends [`compress`](Self::compress) with options.
    pub fn compress_with(&self, mask: &Node, k: i64, options: CompressOptions) -> Node {
        self.graph().typed("compress", [self, mask], options.0.with("k", k))
    }

    /// y = s₀ / sₖ₋₁, the condition number in the 2-norm: the largest singular value over the smallest.
    ///
    /// x \[batch…, m, n\], y \[batch…\]. A rank-deficient matrix gives infinity if rounding leaves an exact 0. A zero
    /// matrix, or one with an infinity or NaN, gives NaN. Integers give float64; float16 is computed in float32 and
    /// rounded once. PyTorch, JAX and NumPy: `linalg.cond` without p.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g y (u₀ v₀ᴴ / s₀ − uₖ₋₁ vₖ₋₁ᴴ / sₖ₋₁), with the singular vectors of s₀ and sₖ₋₁.
    pub fn cond_number(&self) -> Node {
        self.graph().typed("cond_number", [self], Options::default())
    }

    /// y = conj x: the imaginary part is negated; a real x is returned unchanged. PyTorch, JAX and NumPy: `conj`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: conj g.
    pub fn conj(&self) -> Node {
        self.graph().typed("conj", [self], Options::default())
    }

    /// y\[n, o, i\] = Σ x\[n, c, i·s + a·d − p\] · kernel\[o, c, a\] + bias\[o\], a cross-correlation.
    ///
    /// s, d and p are stride, dilation and padding. x \[n, channels, w\], zero outside; kernel \[features, channels /
    /// groups, kw\]; y \[n, features, w'\] with w' = ⌊(w + 2p − d·(kw − 1) − 1) / s⌋ + 1. Each feature reads only the
    /// channels of its own group. Same as PyTorch's conv1d.
    ///
    /// Gradient: dx = the transposed convolution of g, d kernel = x convolved with g, d bias = g summed.
    pub fn conv1d(&self, kernel: &Node) -> Node {
        self.conv1d_with(kernel, Conv1dOptions::new())
    }

    /// Appends [`conv1d`](Self::conv1d) with options.
    pub fn conv1d_with(&self, kernel: &Node, options: Conv1dOptions) -> Node {
        self.graph().typed("conv1d", [self, kernel], options.0)
    }

    /// y\[n, o, i, j\] = Σ x\[n, c, i·s + a·d − p, j·s + b·d − p\] · kernel\[o, c, a, b\] + bias\[o\], a
    /// cross-correlation.
    ///
    /// s, d and p are stride, dilation and padding. x \[n, channels, h, w\], zero outside; kernel \[features, channels
    /// / groups, kh, kw\]; y \[n, features, h', w'\] with h' = ⌊(h + 2p − d·(kh − 1) − 1) / s⌋ + 1. Each feature reads
    /// only the channels of its own group. Same as PyTorch's conv2d.
    ///
    /// Gradient: dx = conv_transpose2d(g, kernel), d kernel = conv2d(x, g) over images, d bias = g summed.
    pub fn conv2d(&self, kernel: &Node) -> Node {
        self.conv2d_with(kernel, Conv2dOptions::new())
    }

    /// Appends [`conv2d`](Self::conv2d) with options.
    pub fn conv2d_with(&self, kernel: &Node, options: Conv2dOptions) -> Node {
        self.graph().typed("conv2d", [self, kernel], options.0)
    }

    /// y\[n, o, i, j, k\] = Σ x\[n, c, i·s + a·d − p, j·s + b·d − p, k·s + e·d − p\] · kernel\[o, c, a, b, e\] +
    /// bias\[o\].
    ///
    /// A cross-correlation. x \[n, channels, d, h, w\], zero outside; kernel \[features, channels / groups, kd, kh,
    /// kw\]; y \[n, features, d', h', w'\] with extents as in conv2d. Same as PyTorch's conv3d.
    ///
    /// Gradient: dx = conv_transpose3d(g, kernel), d kernel = conv3d(x, g) over images, d bias = g summed.
    pub fn conv3d(&self, kernel: &Node) -> Node {
        self.conv3d_with(kernel, Conv3dOptions::new())
    }

    /// Appends [`conv3d`](Self::conv3d) with options.
    pub fn conv3d_with(&self, kernel: &Node, options: Conv3dOptions) -> Node {
        self.graph().typed("conv3d", [self, kernel], options.0)
    }

    /// y\[n, o, i·s + a·d − p\] = Σ x\[n, c, i\] · kernel\[c, o, a\] + bias\[o\]: the adjoint of conv1d.
    ///
    /// x \[n, channels, w\]; kernel \[channels, features / groups, kw\]; y \[n, features, w'\] with w' = (w − 1)·s +
    /// d·(kw − 1) + 1 + output_padding − 2p. PyTorch: `conv_transpose1d`. JAX: `lax.conv_transpose` with
    /// transpose_kernel, which has the kernel's axes in another order and takes the padding of the underlying dilated
    /// convolution.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = conv1d(g, kernel), d kernel = conv1d(g, x) over images, d bias = g summed.
    pub fn conv_transpose1d(&self, kernel: &Node) -> Node {
        self.conv_transpose1d_with(kernel, ConvTranspose1dOptions::new())
    }

    /// Appends [`conv_transpose1d`](Self::conv_transpose1d) with options.
    pub fn conv_transpose1d_with(&self, kernel: &Node, options: ConvTranspose1dOptions) -> Node {
        self.graph().typed("conv_transpose1d", [self, kernel], options.0)
    }

    /// y\[n, o, i·s + a·d − p, j·s + b·d − p\] = Σ x\[n, c, i, j\] · kernel\[c, o, a, b\] + bias\[o\]: the adjoint of
    /// conv2d.
    ///
    /// x \[n, channels, h, w\]; kernel \[channels, features / groups, kh, kw\]; y \[n, features, h', w'\] with h' = (h
    /// − 1)·s − 2p + d·(kh − 1) + 1 + output_padding. Same as PyTorch's conv_transpose2d.
    ///
    /// Gradient: dx = conv2d(g, kernel), d kernel = conv2d(g, x) over images, d bias = g summed.
    pub fn conv_transpose2d(&self, kernel: &Node) -> Node {
        self.conv_transpose2d_with(kernel, ConvTranspose2dOptions::new())
    }

    /// Appends [`conv_transpose2d`](Self::conv_transpose2d) with options.
    pub fn conv_transpose2d_with(&self, kernel: &Node, options: ConvTranspose2dOptions) -> Node {
        self.graph().typed("conv_transpose2d", [self, kernel], options.0)
    }

    /// y\[n, o, i·s + a·d − p, …\] = Σ x\[n, c, i, j, k\] · kernel\[c, o, a, b, e\] + bias\[o\]: the adjoint of conv3d.
    ///
    /// x \[n, channels, d, h, w\]; kernel \[channels, features / groups, kd, kh, kw\]; y \[n, features, d', h', w'\]
    /// with extents as in conv_transpose2d. Same as PyTorch's conv_transpose3d.
    ///
    /// Gradient: dx = conv3d(g, kernel), d kernel = conv3d(g, x) over images, d bias = g summed.
    pub fn conv_transpose3d(&self, kernel: &Node) -> Node {
        self.conv_transpose3d_with(kernel, ConvTranspose3dOptions::new())
    }

    /// Appends [`conv_transpose3d`](Self::conv_transpose3d) with options.
    pub fn conv_transpose3d_with(&self, kernel: &Node, options: ConvTranspose3dOptions) -> Node {
        self.graph().typed("conv_transpose3d", [self, kernel], options.0)
    }

    /// y = x.
    ///
    /// The server chooses where a graph runs, so nothing is moved. The gradient passes through.
    ///
    /// Gradient: g.
    pub fn copy_to_device(&self) -> Node {
        self.graph().typed("copy_to_device", [self], Options::default())
    }

    /// y = cos x.
    ///
    /// Gradient: −g · sin x.
    pub fn cos(&self) -> Node {
        self.graph().typed("cos", [self], Options::default())
    }

    /// y = cosh x.
    ///
    /// Gradient: g · sinh x.
    pub fn cosh(&self) -> Node {
        self.graph().typed("cosh", [self], Options::default())
    }

    /// loss = −Σ p · log softmax(logits) over the last axis, the axis of the classes; then the mean over all rows.
    ///
    /// logits \[..., classes\]; targets are either class indices \[...\] of an integer dtype (p is 1 at the index), or
    /// the distribution p itself, a float tensor of the logits' shape. Indices lie in \[0, classes).
    ///
    /// Gradient: d logits = g · (softmax(logits) · Σ p − p) / rows, d targets = −g · log softmax(logits) / rows if
    /// float.
    pub fn cross_entropy(&self, targets: &Node) -> Node {
        self.cross_entropy_with(targets, CrossEntropyOptions::new())
    }

    /// Appends [`cross_entropy`](Self::cross_entropy) with options.
    pub fn cross_entropy_with(&self, targets: &Node, options: CrossEntropyOptions) -> Node {
        self.graph().typed("cross_entropy", [self, targets], options.0)
    }

    /// y\[i\] = log(exp x\[0\] + … + exp x\[i\]) along `axis`, stable; with `reverse`, of x\[i\], …, x\[n − 1\].
    ///
    /// As in logsumexp: if all elements so far are −inf, y is −inf and the gradient is 0; elements that are inf share
    /// the gradient. If an element so far is NaN, y and the gradient are NaN. Integers give float64. PyTorch:
    /// `logcumsumexp`. JAX: `lax.cumlogsumexp`, which also has `reverse`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: Σ g\[k\] · exp(x\[i\] − y\[k\]) over k ≥ i.
    ///
    /// `axis`: axis to accumulate along.
    pub fn cumlogsumexp(&self, axis: i64) -> Node {
        self.cumlogsumexp_with(axis, CumlogsumexpOptions::new())
    }

    /// Appends [`cumlogsumexp`](Self::cumlogsumexp) with options.
    pub fn cumlogsumexp_with(&self, axis: i64, options: CumlogsumexpOptions) -> Node {
        self.graph().typed("cumlogsumexp", [self], options.0.with("axis", axis))
    }

    /// y\[i\] = the largest of x\[0\], …, x\[i\] along `axis`; with `reverse`, of x\[i\], …, x\[n − 1\].
    ///
    /// NaN from the first NaN on. In a tie, the first entry in the direction of accumulation gets the gradient.
    /// PyTorch: the values of `cummax`, whose gradient goes to the last entry in a tie. JAX: `lax.cummax`, which also
    /// has `reverse`, and in which ties share the gradient.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g to the entry that is y: the first in a tie, in the direction of accumulation; the first NaN.
    ///
    /// `axis`: axis to accumulate along.
    pub fn cummax(&self, axis: i64) -> Node {
        self.cummax_with(axis, CummaxOptions::new())
    }

    /// Appends [`cummax`](Self::cummax) with options.
    pub fn cummax_with(&self, axis: i64, options: CummaxOptions) -> Node {
        self.graph().typed("cummax", [self], options.0.with("axis", axis))
    }

    /// y\[i\] = the smallest of x\[0\], …, x\[i\] along `axis`; with `reverse`, of x\[i\], …, x\[n − 1\].
    ///
    /// NaN from the first NaN on. In a tie, the first entry in the direction of accumulation gets the gradient.
    /// PyTorch: the values of `cummin`, whose gradient goes to the last entry in a tie. JAX: `lax.cummin`, which also
    /// has `reverse`, and in which ties share the gradient.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g to the entry that is y: the first in a tie, in the direction of accumulation; the first NaN.
    ///
    /// `axis`: axis to accumulate along.
    pub fn cummin(&self, axis: i64) -> Node {
        self.cummin_with(axis, CumminOptions::new())
    }

    /// Appends [`cummin`](Self::cummin) with options.
    pub fn cummin_with(&self, axis: i64, options: CumminOptions) -> Node {
        self.graph().typed("cummin", [self], options.0.with("axis", axis))
    }

    /// y\[i\] = x\[0\] · … · x\[i\] along `axis`; with `reverse`, x\[i\] · … · x\[n − 1\].
    ///
    /// Integers and bool are multiplied in int64, float16 in float32. The gradient is exact for any number of zeros,
    /// and so are higher derivatives. PyTorch and NumPy: `cumprod`. JAX: `lax.cumprod`, which also has `reverse`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: (product of the entries before i) · Σ g\[k\] · (product of the entries after i, up to k), over k ≥ i.
    ///
    /// `axis`: axis to accumulate along.
    pub fn cumprod(&self, axis: i64) -> Node {
        self.cumprod_with(axis, CumprodOptions::new())
    }

    /// Appends [`cumprod`](Self::cumprod) with options.
    pub fn cumprod_with(&self, axis: i64, options: CumprodOptions) -> Node {
        self.graph().typed("cumprod", [self], options.0.with("axis", axis))
    }

    /// y\[i\] = x\[0\] + … + x\[i\] along `axis`; with `reverse`, x\[i\] + … + x\[n − 1\].
    ///
    /// Integers and bool are summed in int64, float16 in float32. PyTorch and NumPy: `cumsum`. JAX: `lax.cumsum`, which
    /// also has `reverse`.
    ///
    /// Gradient: g, summed from the end.
    ///
    /// `axis`: axis to sum along.
    pub fn cumsum(&self, axis: i64) -> Node {
        self.cumsum_with(axis, CumsumOptions::new())
    }

    /// Appends [`cumsum`](Self::cumsum) with options.
    pub fn cumsum_with(&self, axis: i64, options: CumsumOptions) -> Node {
        self.graph().typed("cumsum", [self], options.0.with("axis", axis))
    }

    /// y = det x of square matrices on the last two axes: \[batch…, n, n\] → \[batch…\]; 1 for an empty matrix.
    ///
    /// If the determinant may overflow or underflow, use `slogdet`. The first two derivatives are exact for singular
    /// matrices, too; their third ones are NaN or infinite. A matrix with NaN gives NaN; the other matrices of the
    /// batch are unaffected. Integers give float64; float16 is computed in a wider float and rounded once. PyTorch, JAX
    /// and NumPy: `linalg.det`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · the conjugate cofactors of x; if x is invertible, those are the conjugate of det(x) x⁻ᵀ.
    pub fn det(&self) -> Node {
        self.graph().typed("det", [self], Options::default())
    }

    /// The diagonal of the last two axes: y\[…, i\] = x\[…, i, i + offset\]; for a vector, the matrix with that
    /// diagonal.
    ///
    /// x \[n\] → \[n + |offset|, n + |offset|\], zero off the diagonal. x \[batch…, rows, columns\] → \[batch…, m\]. A
    /// negative offset counts downwards: y\[…, i\] = x\[…, i − offset, i\].
    ///
    /// Gradient: diag(g) for a vector; for matrices, g on the diagonal and 0 elsewhere.
    pub fn diag(&self) -> Node {
        self.diag_with(DiagOptions::new())
    }

    /// Appends [`diag`](Self::diag) with options.
    pub fn diag_with(&self, options: DiagOptions) -> Node {
        self.graph().typed("diag", [self], options.0)
    }

    /// y = ψ(x) = Γ'(x) / Γ(x); −∞ at 0, NaN at −1, −2, …. Accurate to 10 ulp; near its zeros below −1 to 1e-15.
    ///
    /// Near its negative poles all digits are correct; SciPy loses one digit for each digit by which x is closer to a
    /// pole.
    ///
    /// Gradient: g · polygamma(x, order=1).
    pub fn digamma(&self) -> Node {
        self.graph().typed("digamma", [self], Options::default())
    }

    /// y = a / b, elementwise, with NumPy broadcasting; integers give floats, x / 0 gives ±inf or NaN.
    ///
    /// Gradient: da = g / b, db = −y · g / b.
    pub fn div(&self, b: &Node) -> Node {
        self.graph().typed("div", [self, b], Options::default())
    }

    /// y = x / scalar. A scalar of 0 gives ±inf or NaN, as in `div`.
    ///
    /// Gradient: g / scalar.
    ///
    /// `scalar`: constant operand.
    pub fn div_scalar(&self, scalar: f64) -> Node {
        self.graph().typed("div_scalar", [self], Options::default().with("scalar", scalar))
    }

    /// w, v = the eigenvalues, ascending, and eigenvectors of (x + xᴴ) / 2 = v diag(w) vᴴ, with vᴴ v = 1.
    ///
    /// x \[batch…, n, n\], w \[batch…, n\], real, v \[batch…, n, n\], one vector per column. If you read only
    /// eigenvalues, vectors are not computed. The gradient of eigenvalues alone is valid at equal ones, too, if your
    /// function treats these alike.
    ///
    /// LAPACK chooses the signs of vectors, and the phases of complex ones. Use v only in functions that depend neither
    /// on them nor on single vectors of equal eigenvalues.
    ///
    /// Eigenvalues closer than 16 n ε ‖x‖ count as equal. For a matrix with equal eigenvalues, the gradient of a
    /// function of v is NaN. If `degenerate` is whole, the pair is left out instead. That is correct if the function
    /// depends on whole eigenspaces only, as a projector does, and wrong otherwise. For v √w vᵀ, which does not, use
    /// `symmetric_function`. Second derivatives are NaN if a pair was left out, and also for eigenvalues alone if some
    /// are equal.
    ///
    /// A matrix with an infinity or NaN, or for which LAPACK does not converge, gives NaN; the other matrices of the
    /// batch are unaffected. Integers give float64; float16 is computed in a wider float and rounded once.
    ///
    /// PyTorch: `linalg.eigh`, which reads the lower triangle by default. JAX: `linalg.eigh`, which symmetrizes its
    /// input by default. At equal eigenvalues, their gradients are NaN or rounding noise. M. B. Giles, Collected matrix
    /// derivative results for forward and reverse mode algorithmic differentiation (2008), section 3.1.
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with `get_output`.
    ///
    /// Gradient: the symmetric part of v (diag(ḡw) + F ∘ vᴴ ḡv) vᴴ, Fᵢⱼ = 1 / (wⱼ − wᵢ), Fᵢᵢ = 0; no F if v is unread.
    pub fn eigh(&self) -> Node {
        self.eigh_with(EighOptions::new())
    }

    /// Appends [`eigh`](Self::eigh) with options.
    pub fn eigh_with(&self, options: EighOptions) -> Node {
        self.graph().typed("eigh", [self], options.0)
    }

    /// y = x for x \> 0, else alpha · (eˣ − 1). Derivatives at 0 are the left ones: alpha.
    ///
    /// D.-A. Clevert, T. Unterthiner, S. Hochreiter, arXiv:1511.07289.
    ///
    /// Gradient: g where x \> 0 or NaN, else g · alpha · eˣ.
    pub fn elu(&self) -> Node {
        self.elu_with(EluOptions::new())
    }

    /// Appends [`elu`](Self::elu) with options.
    pub fn elu_with(&self, options: EluOptions) -> Node {
        self.graph().typed("elu", [self], options.0)
    }

    /// y\[i, j, …, :\] = weight\[indices\[i, j, …\], :\]: rows of a table.
    ///
    /// weight \[rows, features…\], indices of any shape with entries in \[0, rows), y \[shape of indices…, features…\].
    /// With `from_end`, entries lie in \[−rows, rows), and negative ones count from the end. PyTorch:
    /// `functional.embedding`, which rejects negative indices and has `padding_idx`. JAX: weight\[indices\], which
    /// accepts negative indices and moves those out of range to the nearest row.
    ///
    /// Gradient: d weight = g, added to the rows that were read: repeated indices accumulate; none for indices.
    pub fn embedding(&self, indices: &Node) -> Node {
        self.embedding_with(indices, EmbeddingOptions::new())
    }

    /// Appends [`embedding`](Self::embedding) with options.
    pub fn embedding_with(&self, indices: &Node, options: EmbeddingOptions) -> Node {
        self.graph().typed("embedding", [self, indices], options.0)
    }

    /// y = (a = b), elementwise; false if either is NaN.
    pub fn equal(&self, b: &Node) -> Node {
        self.graph().typed("equal", [self, b], Options::default())
    }

    /// y = erf x = 2/√π ∫₀ˣ exp(−t²) dt. Accurate to 2 units in the last place (ulp).
    ///
    /// Gradient: g · 2/√π · exp(−x²).
    pub fn erf(&self) -> Node {
        self.graph().typed("erf", [self], Options::default())
    }

    /// y = erfc x = 1 − erf x. Accurate to 2 units in the last place (ulp), even where y is small.
    ///
    /// Gradient: −g · 2/√π · exp(−x²).
    pub fn erfc(&self) -> Node {
        self.graph().typed("erfc", [self], Options::default())
    }

    /// y such that erf y = x: ±∞ at ±1, NaN beyond. Accurate to 2 ulp.
    ///
    /// Gradient: g · √π/2 · exp(y²).
    pub fn erfinv(&self) -> Node {
        self.graph().typed("erfinv", [self], Options::default())
    }

    /// y = eˣ.
    ///
    /// Gradient: g · y.
    pub fn exp(&self) -> Node {
        self.graph().typed("exp", [self], Options::default())
    }

    /// y = eˣ − 1, accurate near 0.
    ///
    /// Gradient: g · eˣ.
    pub fn expm1(&self) -> Node {
        self.graph().typed("expm1", [self], Options::default())
    }

    /// y\[k\] = Σ x\[j\] exp(−2πi j k / n) over `axes`, each of n points: the discrete Fourier transform.
    ///
    /// `norm` is as in NumPy: `forward` divides by n, `ortho` by √n. Real operands are converted to complex. float16
    /// gives complex64, integers give complex128. PyTorch, JAX and NumPy: `fft`; over several axes, `fft2` and `fftn`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: ifft(g) without the division by n; for a real operand, its real part.
    pub fn fft(&self) -> Node {
        self.fft_with(FftOptions::new())
    }

    /// Appends [`fft`](Self::fft) with options.
    pub fn fft_with(&self, options: FftOptions) -> Node {
        self.graph().typed("fft", [self], options.0)
    }

    /// y = x with adjacent axes merged into one; by default, all axes. A 0-d tensor becomes \[1\].
    ///
    /// Gradient: g, reshaped back.
    pub fn flatten(&self) -> Node {
        self.flatten_with(FlattenOptions::new())
    }

    /// Appends [`flatten`](Self::flatten) with options.
    pub fn flatten_with(&self, options: FlattenOptions) -> Node {
        self.graph().typed("flatten", [self], options.0)
    }

    /// y = x with the order of the entries reversed on `axes`; by default, on all axes.
    ///
    /// Gradient: g, flipped.
    pub fn flip(&self) -> Node {
        self.flip_with(FlipOptions::new())
    }

    /// Appends [`flip`](Self::flip) with options.
    pub fn flip_with(&self, options: FlipOptions) -> Node {
        self.graph().typed("flip", [self], options.0)
    }

    /// y = ⌊x⌋: x rounded down to a whole number.
    pub fn floor(&self) -> Node {
        self.graph().typed("floor", [self], Options::default())
    }

    /// y = ⌊a / b⌋, elementwise with broadcasting: Python's //; `mod` is the remainder. Integer division by 0 gives 0.
    ///
    /// PyTorch and NumPy: `floor_divide`. JAX: `jnp.floor_divide`, which gives −1 for integer division by 0.
    ///
    /// Since opset 2.
    pub fn floor_div(&self, b: &Node) -> Node {
        self.graph().typed("floor_div", [self, b], Options::default())
    }

    /// y\[i, j, …\] = x\[index\[i, j, …\], j, …\] for axis 0; likewise for the other axes.
    ///
    /// `index` has x's rank and may be smaller than x on the other axes, as in PyTorch; y has its shape. With one
    /// operand, the list `indices` selects slices: y is x at those positions of the axis. Indices lie in \[0, extent).
    /// With `from_end`, they lie in \[−extent, extent), and negative ones count from the end, as in x\[i\] of PyTorch,
    /// JAX and NumPy. PyTorch: `gather`, which rejects negative indices. JAX: `take_along_axis`.
    ///
    /// Gradient: dx = scatter_add(0, index, g): repeated indices accumulate; none for index.
    pub fn gather(&self) -> Node {
        self.gather_with(GatherOptions::new())
    }

    /// Appends [`gather`](Self::gather) with options.
    pub fn gather_with(&self, options: GatherOptions) -> Node {
        self.graph().typed("gather", [self], options.0)
    }

    /// y = x · Φ(x), with Φ the standard normal distribution function; 0 at −∞.
    ///
    /// With `approximate` set to tanh, y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), which many models were trained
    /// with. D. Hendrycks, K. Gimpel, arXiv:1606.08415.
    ///
    /// Gradient: g · (Φ(x) + x · Φ′(x)).
    pub fn gelu(&self) -> Node {
        self.gelu_with(GeluOptions::new())
    }

    /// Appends [`gelu`](Self::gelu) with options.
    pub fn gelu_with(&self, options: GeluOptions) -> Node {
        self.graph().typed("gelu", [self], options.0)
    }

    /// One result of an op with several results: y = x\[index\].
    ///
    /// Gradient: g for that result, 0 for the other results of the op.
    ///
    /// `index`: position of the result, from 0.
    pub fn get_output(&self, index: i64) -> Node {
        self.graph().typed("get_output", [self], Options::default().with("index", index))
    }

    /// The gradient of sum(y · cotangent) with respect to x, of x's type; without a cotangent, of sum(y).
    ///
    /// Other nodes can use the result, and you can differentiate it again, to any order. x may be any float node. If y
    /// does not depend on x, the result is zeros. A complex y needs a cotangent. With respect to a complex x, the
    /// gradient is ∂/∂Re x + i ∂/∂Im x.
    ///
    /// Gradient: that of the nodes that compute the gradient.
    pub fn grad(&self, x: &Node) -> Node {
        self.grad_with(x, GradOptions::new())
    }

    /// Appends [`grad`](Self::grad) with options.
    pub fn grad_with(&self, x: &Node, options: GradOptions) -> Node {
        self.graph().typed("grad", [self, x], options.0)
    }

    /// y = (a \> b), elementwise; false if either is NaN.
    pub fn greater(&self, b: &Node) -> Node {
        self.graph().typed("greater", [self, b], Options::default())
    }

    /// y = (a ≥ b), elementwise; false if either is NaN.
    pub fn greater_equal(&self, b: &Node) -> Node {
        self.graph().typed("greater_equal", [self, b], Options::default())
    }

    /// y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance of each group of channels per
    /// example.
    ///
    /// x \[n, channels, …\]; weight and bias \[channels\]. The channels are divided into `groups` equal groups. The
    /// variance has n in the denominator. PyTorch: `group_norm`. Flax: `GroupNorm`, with channels last. Y. Wu, K. He,
    /// "Group normalization" (2018).
    ///
    /// Since opset 2.
    ///
    /// Gradient: as in layer_norm, over each group.
    ///
    /// `groups`: number of equal groups of channels.
    pub fn group_norm(&self, groups: i64) -> Node {
        self.group_norm_with(groups, GroupNormOptions::new())
    }

    /// Appends [`group_norm`](Self::group_norm) with options.
    pub fn group_norm_with(&self, groups: i64, options: GroupNormOptions) -> Node {
        self.graph().typed("group_norm", [self], options.0.with("groups", groups))
    }

    /// y = I₀(x). Accurate to 5 ulp; infinite for |x| \> 713.98.
    ///
    /// SciPy's is infinite from 709.78 on. NumPy: `i0`. PyTorch: `special.i0`. JAX: `scipy.special.i0`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · i1(x).
    pub fn i0(&self) -> Node {
        self.graph().typed("i0", [self], Options::default())
    }

    /// y = exp(−|x|) I₀(x). Accurate to 4 ulp.
    ///
    /// The derivative is accurate even for large x, where I₀ and I₁ agree in most digits. At 0, where |x| has a kink,
    /// it is 0, as in PyTorch and JAX. SciPy and PyTorch: `special.i0e`. JAX: `bessel_i0e`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · (i1e(x) − sign(x) · y).
    pub fn i0e(&self) -> Node {
        self.graph().typed("i0e", [self], Options::default())
    }

    /// y = I₁(x). Accurate to 5 ulp. At 0, the derivative is 1/2.
    ///
    /// SciPy and PyTorch: `special.i1`. JAX: `scipy.special.i1`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · (i0(x) − y / x), and g / 2 at 0.
    pub fn i1(&self) -> Node {
        self.graph().typed("i1", [self], Options::default())
    }

    /// y = exp(−|x|) I₁(x). Accurate to 4 ulp. At 0, the derivative is 1/2.
    ///
    /// SciPy and PyTorch: `special.i1e`. JAX: `bessel_i1e`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · (i0e(x) − y · (sign(x) + 1 / x)), and g / 2 at 0.
    pub fn i1e(&self) -> Node {
        self.graph().typed("i1e", [self], Options::default())
    }

    /// y = x, as a separate node.
    ///
    /// Gradient: g.
    pub fn identity(&self) -> Node {
        self.graph().typed("identity", [self], Options::default())
    }

    /// y\[j\] = Σ x\[k\] exp(2πi j k / n) / n over `axes`, each of n points: the inverse of `fft`.
    ///
    /// `norm` is as in NumPy: `forward` does not divide, `ortho` divides by √n. Real operands are converted to complex.
    /// float16 gives complex64, integers give complex128. PyTorch, JAX and NumPy: `ifft`; over several axes, `ifft2`
    /// and `ifftn`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: fft(g) / n; for a real operand, its real part.
    pub fn ifft(&self) -> Node {
        self.ifft_with(IfftOptions::new())
    }

    /// Appends [`ifft`](Self::ifft) with options.
    pub fn ifft_with(&self, options: IfftOptions) -> Node {
        self.graph().typed("ifft", [self], options.0)
    }

    /// y = P(a, x) = ∫₀ˣ tᵃ⁻¹ exp(−t) dt / Γ(a), with broadcasting.
    ///
    /// On NumPy, this is SciPy's function. Accurate to 512 ulp; below 1e-290, to a relative error of 1e-12. The
    /// derivative with respect to x is accurate to 1e-12 of its value. The derivative with respect to a is accurate to
    /// 1e-12 (JAX's has an absolute error of 1e-7; PyTorch has none). It cannot be differentiated again with respect to
    /// a. SciPy and PyTorch: `special.gammainc`. JAX: `igamma`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: da = g · ∂P/∂a, an integral; dx = g · xᵃ⁻¹ exp(−x) / Γ(a).
    pub fn igamma(&self, x: &Node) -> Node {
        self.graph().typed("igamma", [self, x], Options::default())
    }

    /// y = Q(a, x) = 1 − P(a, x), with broadcasting; accurate even where y is small.
    ///
    /// On NumPy, this is SciPy's function. Accurate to 512 ulp; below 1e-290, to a relative error of 1e-12. Derivatives
    /// are those of `igamma` with the opposite sign. SciPy and PyTorch: `special.gammaincc`. JAX: `igammac`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: da = −g · ∂P/∂a, an integral; dx = −g · xᵃ⁻¹ exp(−x) / Γ(a).
    pub fn igammac(&self, x: &Node) -> Node {
        self.graph().typed("igammac", [self, x], Options::default())
    }

    /// y = Im x; 0 for a real x. JAX and NumPy: `imag`. PyTorch's `imag` rejects a real x.
    ///
    /// Since opset 2.
    ///
    /// Gradient: i · g.
    pub fn imag(&self) -> Node {
        self.graph().typed("imag", [self], Options::default())
    }

    /// y = x⁻¹, for matrices on the last two axes.
    ///
    /// If x is singular, y is NaN, or very large if rounding hides the singularity; the other matrices of the batch are
    /// unaffected. To solve a system, use `solve`, which is faster and more accurate. Integers give float64; float16 is
    /// computed in a wider float and rounded once.
    ///
    /// Gradient: −yᴴ g yᴴ.
    pub fn inv(&self) -> Node {
        self.graph().typed("inv", [self], Options::default())
    }

    /// The real y whose `rfft` is x, with n = `sizes` points on the last of `axes`; default: 2 (m − 1) for m entries.
    ///
    /// The imaginary parts of entry 0, and of entry n / 2 if n is even, are ignored. Real operands are converted to
    /// complex. float16 gives float16, integers give float64. `norm` is as in `ifft`. PyTorch, JAX and NumPy: `irfft`;
    /// over several axes, `irfft2` and `irfftn`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: rfft(g) / n, with the inner entries doubled.
    pub fn irfft(&self) -> Node {
        self.irfft_with(IrfftOptions::new())
    }

    /// Appends [`irfft`](Self::irfft) with options.
    pub fn irfft_with(&self, options: IrfftOptions) -> Node {
        self.graph().typed("irfft", [self], options.0)
    }

    /// y = true if x is neither infinite nor NaN.
    pub fn is_finite(&self) -> Node {
        self.graph().typed("is_finite", [self], Options::default())
    }

    /// y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance (n in the denominator) over `axes`.
    ///
    /// weight and bias have x's extents on `axes`, in ascending order. CJC normalises the whole tensor: for that, pass
    /// all axes. J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization" (2016).
    ///
    /// Gradient: with z normalised and h = g · weight: dx = (h − mean h − z · mean(h·z)) / √(variance + eps).
    pub fn layer_norm(&self) -> Node {
        self.layer_norm_with(LayerNormOptions::new())
    }

    /// Appends [`layer_norm`](Self::layer_norm) with options.
    pub fn layer_norm_with(&self, options: LayerNormOptions) -> Node {
        self.graph().typed("layer_norm", [self], options.0)
    }

    /// y = x for x \> 0, else alpha · x. The derivative at 0 is alpha.
    ///
    /// Gradient: g where x \> 0 or NaN, else g · alpha.
    pub fn leaky_relu(&self) -> Node {
        self.leaky_relu_with(LeakyReluOptions::new())
    }

    /// Appends [`leaky_relu`](Self::leaky_relu) with options.
    pub fn leaky_relu_with(&self, options: LeakyReluOptions) -> Node {
        self.graph().typed("leaky_relu", [self], options.0)
    }

    /// y = (a \< b), elementwise; false if either is NaN.
    pub fn less(&self, b: &Node) -> Node {
        self.graph().typed("less", [self, b], Options::default())
    }

    /// y = (a ≤ b), elementwise; false if either is NaN.
    pub fn less_equal(&self, b: &Node) -> Node {
        self.graph().typed("less_equal", [self, b], Options::default())
    }

    /// y = log |Γ(x)|; ∞ at 0, −1, −2, …. Accurate to 4 ulp; near zeros below 0 (−2.457, −2.748, −3.144, …) to 1e-15.
    ///
    /// Near its positive zeros, 1 and 2, all digits are correct; SciPy has no correct digit within 1e-16 of them.
    ///
    /// Gradient: g · digamma(x).
    pub fn lgamma(&self) -> Node {
        self.graph().typed("lgamma", [self], Options::default())
    }

    /// y = activation(x @ w + b) for x\[…, in\], w\[in, out\] and b\[out\]: y\[…, out\]. Without b, nothing is added.
    ///
    /// b may have any shape that broadcasts to y's shape. The activation is the op of that name with its defaults.
    ///
    /// Gradient: with h = g · activation′: dx = h @ wᵀ, dw = xᵀ @ h, db = Σ h over the rows.
    pub fn linear(&self, w: &Node) -> Node {
        self.linear_with(w, LinearOptions::new())
    }

    /// Appends [`linear`](Self::linear) with options.
    pub fn linear_with(&self, w: &Node, options: LinearOptions) -> Node {
        self.graph().typed("linear", [self, w], options.0)
    }

    /// y = ln x: −∞ at 0, NaN for x \< 0.
    ///
    /// For a complex x, y = ln |x| + i · angle x. The branch cut is the negative real axis; on it, the sign of the
    /// imaginary zero selects the side (C99).
    ///
    /// Gradient: g / x.
    pub fn log(&self) -> Node {
        self.graph().typed("log", [self], Options::default())
    }

    /// y = ln(1 + x), accurate near 0.
    ///
    /// Gradient: g / (1 + x).
    pub fn log1p(&self) -> Node {
        self.graph().typed("log1p", [self], Options::default())
    }

    /// y = log₂ x: −∞ at 0, NaN for x \< 0.
    ///
    /// Gradient: g / (x · ln 2).
    pub fn log2(&self) -> Node {
        self.graph().typed("log2", [self], Options::default())
    }

    /// y = ln(x + eps): finite at 0.
    ///
    /// Gradient: g / (x + eps).
    pub fn log_eps(&self) -> Node {
        self.log_eps_with(LogEpsOptions::new())
    }

    /// Appends [`log_eps`](Self::log_eps) with options.
    pub fn log_eps_with(&self, options: LogEpsOptions) -> Node {
        self.graph().typed("log_eps", [self], options.0)
    }

    /// y = log Φ(x), with Φ the standard normal distribution function. Accurate to 4 ulp in both tails.
    ///
    /// The derivative φ(x) / Φ(x) and its own derivatives keep their relative accuracy where Φ(x) underflows. For x \>
    /// 0, the derivative is as accurate as exp(−x²/2): to x²/2 ulp.
    ///
    /// Gradient: g · φ(x) / Φ(x), with φ the density.
    pub fn log_ndtr(&self) -> Node {
        self.graph().typed("log_ndtr", [self], Options::default())
    }

    /// y = ln sigmoid x = −softplus(−x).
    ///
    /// Gradient: g · sigmoid(−x).
    pub fn log_sigmoid(&self) -> Node {
        self.graph().typed("log_sigmoid", [self], Options::default())
    }

    /// y = x − log Σ exp(x) along `axis`, of x's shape; stable: computed from x − max x. Integers give float64.
    ///
    /// The largest x has y = −log(1 + Σ of the others), all of whose digits are kept. A row that contains only −inf
    /// gives NaN.
    ///
    /// Gradient: g − exp(y) · Σ g, with the sum along the axis, computed as −g · expm1(y) − (Σ g − g) · exp(y).
    pub fn log_softmax(&self) -> Node {
        self.log_softmax_with(LogSoftmaxOptions::new())
    }

    /// Appends [`log_softmax`](Self::log_softmax) with options.
    pub fn log_softmax_with(&self, options: LogSoftmaxOptions) -> Node {
        self.graph().typed("log_softmax", [self], options.0)
    }

    /// y = ln(eᵃ + eᵇ), stable. If both are −∞, y is −∞ and the gradients are 0; if both are ∞, each gets half of g.
    ///
    /// Gradient: da = g · sigmoid(a − b), db = g · sigmoid(b − a).
    pub fn logaddexp(&self, b: &Node) -> Node {
        self.graph().typed("logaddexp", [self, b], Options::default())
    }

    /// y = a and b, elementwise with broadcasting. Nonzero numbers, including NaN, are true.
    pub fn logical_and(&self, b: &Node) -> Node {
        self.graph().typed("logical_and", [self, b], Options::default())
    }

    /// y = not x, elementwise. Nonzero numbers, including NaN, are true.
    pub fn logical_not(&self) -> Node {
        self.graph().typed("logical_not", [self], Options::default())
    }

    /// y = a or b (or both), elementwise with broadcasting. Nonzero numbers, including NaN, are true.
    pub fn logical_or(&self, b: &Node) -> Node {
        self.graph().typed("logical_or", [self, b], Options::default())
    }

    /// y = log Σ exp x over axes, stable: m + log Σ exp(x − m) with m = max x. −inf if no elements are reduced.
    ///
    /// If all elements are −inf, y is −inf and the gradient is 0. Elements that are inf share the gradient. If an
    /// element is NaN, y and the gradient are NaN. Integers give float64.
    ///
    /// Gradient: g · exp(x − y).
    pub fn logsumexp(&self) -> Node {
        self.logsumexp_with(LogsumexpOptions::new())
    }

    /// Appends [`logsumexp`](Self::logsumexp) with options.
    pub fn logsumexp_with(&self, options: LogsumexpOptions) -> Node {
        self.graph().typed("logsumexp", [self], options.0)
    }

    /// y that minimises |a y − b|: a \[batch…, m, n\] with m ≥ n, b \[m\], \[batch…, m\] or \[batch…, m, k\].
    ///
    /// y \[n\], \[batch…, n\] or \[batch…, n, k\]. b holds vectors if it is 1-d, or if it has a's shape without the
    /// last axis and its last two axes cannot be matrices of m rows; otherwise it holds matrices. Without `rcond`, y is
    /// computed by `qr`, and the columns of a must be independent. With `rcond`, y is computed by `pinv`: singular
    /// values up to that fraction of the largest count as 0, and y is the solution of least norm. Integers give
    /// float64; float16 is computed in float32 and rounded once. PyTorch, JAX and NumPy: the first result of
    /// `linalg.lstsq`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: that of qr or pinv: db = a (aᴴ a)⁻¹ g, da = (b − a y) ((aᴴ a)⁻¹ g)ᴴ − db yᴴ.
    pub fn lstsq(&self, b: &Node) -> Node {
        self.lstsq_with(b, LstsqOptions::new())
    }

    /// Appends [`lstsq`](Self::lstsq) with options.
    pub fn lstsq_with(&self, b: &Node, options: LstsqOptions) -> Node {
        self.graph().typed("lstsq", [self, b], options.0)
    }

    /// permutation, l, u with x\[permutation\] = l u: rows are exchanged so that no entry of l is larger than 1.
    ///
    /// x \[batch…, m, n\], permutation int64 \[batch…, m\], l \[batch…, m, k\] lower triangular with 1 on its diagonal,
    /// u \[batch…, k, n\] upper triangular, k = min(m, n). To solve a system, use `solve`, which is faster. Complex
    /// numbers are compared by |Re| + |Im|. The gradient is valid if the first k columns of x\[permutation\] are
    /// independent in their first k rows; otherwise it is infinite or NaN. The permutation has no gradient. A matrix
    /// with an infinity or NaN gives NaN in l and u, and its rows are not exchanged; the other matrices of the batch
    /// are unaffected. Integers give float64; float16 is computed in a wider float and rounded once.
    ///
    /// PyTorch: `linalg.lu`, which returns a matrix instead of the permutation. JAX: `lax.linalg.lu`, which returns the
    /// results in another order. F. de Hoog, R. Anderssen, M. Lukas, Differentiation of matrix functionals using
    /// triangular factorization (2011).
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with `get_output`.
    ///
    /// Gradient: for square matrices, l⁻ᴴ (tril(lᴴ ḡl, −1) + triu(ḡu uᴴ)) u⁻ᴴ with rows moved back to their places.
    pub fn lu(&self) -> Node {
        self.graph().typed("lu", [self], Options::default())
    }

    /// y = re + i · im, elementwise with broadcasting; complex64 for float32 and narrower floats, else complex128.
    ///
    /// Infinities, NaN and the signs of zeros in both parts are preserved, unlike in the expression re + im · i.
    /// PyTorch: `complex`. JAX: `lax.complex`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: d re = Re g, d im = Im g.
    pub fn make_complex(&self, im: &Node) -> Node {
        self.graph().typed("make_complex", [self, im], Options::default())
    }

    /// The value under one key of a map that is stored as one tensor, with keys in insertion order.
    ///
    /// The leading axis is split into `total_keys` equal parts, and y is the part `key_index`; the axis remains.
    ///
    /// Gradient: g in that part, 0 in the others.
    ///
    /// `key_index`: position of the key in insertion order, from 0.
    ///
    /// `total_keys`: number of keys in the map.
    pub fn map_lookup(&self, key_index: i64, total_keys: i64) -> Node {
        self.graph().typed(
            "map_lookup",
            [self],
            Options::default().with("key_index", key_index).with("total_keys", total_keys),
        )
    }

    /// y = a @ b, as in NumPy: y\[…, i, j\] = Σₖ a\[…, i, k\] · b\[…, k, j\]; the leading axes broadcast.
    ///
    /// A 1-d operand is a row on the left and a column on the right; that axis is dropped from the result. float16
    /// accumulates in float32. Integers and bool are multiplied in their own dtype, as in NumPy.
    ///
    /// Gradient: da = g @ bᴴ, db = aᴴ @ g, summed over batch axes that were broadcast.
    pub fn matmul(&self, b: &Node) -> Node {
        self.graph().typed("matmul", [self, b], Options::default())
    }

    /// y = exp x = 1 + x + x² / 2 + … of square matrices on the last two axes.
    ///
    /// x is halved until its norm is below 1.1, a Taylor polynomial of degree 18 is evaluated, and the result is
    /// squared as often. The error is a few rounding units times the norm of y. A matrix with an infinity or NaN gives
    /// NaN; the other matrices of the batch are unaffected. Integers give float64; float16 is computed in a wider float
    /// and rounded once. The gradient, to any order, is an exponential again.
    ///
    /// PyTorch: `linalg.matrix_exp`. JAX and SciPy: `linalg.expm`. P. Bader, S. Blanes, F. Casas, Computing the matrix
    /// exponential with an optimized Taylor polynomial approximation (2019). For the derivative: I. Najfeld, T. F.
    /// Havel (1995), and A. H. Al-Mohy, N. J. Higham (2009).
    ///
    /// Since opset 2.
    ///
    /// Gradient: the upper right block of exp \[\[xᴴ, g\], \[0, xᴴ\]\].
    pub fn matrix_exp(&self) -> Node {
        self.graph().typed("matrix_exp", [self], Options::default())
    }

    /// y = xᵏ, the product of k square matrices x, on the last two axes; x⁰ = 1, and x⁻ᵏ is the power of the inverse.
    ///
    /// Computed by repeated squaring, with about 2 log₂ k products. A negative power of a singular matrix is NaN, or
    /// very large if rounding hides the singularity. Integers give float64; float16 is computed in a wider float and
    /// rounded once. PyTorch, JAX and NumPy: `linalg.matrix_power`; in JAX and NumPy, integers stay integers.
    ///
    /// Since opset 2.
    ///
    /// Gradient: Σ (xᴴ)ⁱ g (xᴴ)ʲ over i + j = k − 1, through the products.
    ///
    /// `k`: exponent; may be 0 or negative.
    pub fn matrix_power(&self, k: i64) -> Node {
        self.graph().typed("matrix_power", [self], Options::default().with("k", k))
    }

    /// y = the number of singular values larger than max(m, n) ε times the largest: int64, \[batch…, m, n\] →
    /// \[batch…\].
    ///
    /// ε is that of x's dtype. A matrix with an infinity or NaN has rank 0. PyTorch, JAX and NumPy:
    /// `linalg.matrix_rank` without a tolerance.
    ///
    /// Since opset 2.
    pub fn matrix_rank(&self) -> Node {
        self.graph().typed("matrix_rank", [self], Options::default())
    }

    /// y = max x over axes; NaN if an element is NaN. Ties, including NaN, share the gradient equally.
    ///
    /// Gradient: g / k to each of the k elements equal to y (if y is NaN, to each NaN); 0 to the others.
    pub fn max(&self) -> Node {
        self.max_with(MaxOptions::new())
    }

    /// Appends [`max`](Self::max) with options.
    pub fn max_with(&self, options: MaxOptions) -> Node {
        self.graph().typed("max", [self], options.0)
    }

    /// y\[…, i\] = the largest element of the window at i; NaN if it contains NaN. x \[..., w\]; padding counts as −∞.
    ///
    /// w' = ⌊(w + 2 · padding − dilation · (kernel_size − 1) − 1) / stride⌋ + 1; with `ceiling`, ⌈…⌉ + 1. PyTorch:
    /// `max_pool1d`, whose `ceil_mode` is `ceiling`. JAX: `lax.reduce_window` with window_dilation; it has no ceiling
    /// mode.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g, added at the first maximum (in row-major order) of each window.
    ///
    /// `kernel_size`: extents of the windows along each spatial axis.
    pub fn max_pool1d(&self, kernel_size: impl Into<Vec<i64>>) -> Node {
        self.max_pool1d_with(kernel_size, MaxPool1dOptions::new())
    }

    /// Appends [`max_pool1d`](Self::max_pool1d) with options.
    pub fn max_pool1d_with(&self, kernel_size: impl Into<Vec<i64>>, options: MaxPool1dOptions) -> Node {
        self.graph().typed("max_pool1d", [self], options.0.made::<Vec<i64>>("kernel_size", kernel_size))
    }

    /// y\[…, i, j\] = the largest element of the window at (i, j); NaN if the window contains NaN.
    ///
    /// x \[..., h, w\]; padding counts as −∞. Same as PyTorch's max_pool2d.
    ///
    /// Gradient: g, added at the first maximum (in row-major order) of each window.
    ///
    /// `kernel_size`: extents of the windows along each spatial axis.
    pub fn max_pool2d(&self, kernel_size: impl Into<Vec<i64>>) -> Node {
        self.max_pool2d_with(kernel_size, MaxPool2dOptions::new())
    }

    /// Appends [`max_pool2d`](Self::max_pool2d) with options.
    pub fn max_pool2d_with(&self, kernel_size: impl Into<Vec<i64>>, options: MaxPool2dOptions) -> Node {
        self.graph().typed("max_pool2d", [self], options.0.made::<Vec<i64>>("kernel_size", kernel_size))
    }

    /// y\[…, h, w\] = Σ g\[…, i, j\] over the windows (i, j) whose first maximum, in row-major order, is x\[…, h, w\].
    ///
    /// The gradient of max_pool2d with respect to x for the cotangent g \[..., h', w'\], with x \[..., h, w\]; 0 at all
    /// other elements. NaN counts as a maximum.
    ///
    /// Gradient: dg = the cotangent at max_pool2d_indices; none for x: the result is piecewise constant in x.
    ///
    /// `kernel_size`: extents of the windows along each spatial axis.
    pub fn max_pool2d_back(&self, x: &Node, kernel_size: impl Into<Vec<i64>>) -> Node {
        self.max_pool2d_back_with(x, kernel_size, MaxPool2dBackOptions::new())
    }

    /// Appends [`max_pool2d_back`](Self::max_pool2d_back) with options.
    pub fn max_pool2d_back_with(
        &self,
        x: &Node,
        kernel_size: impl Into<Vec<i64>>,
        options: MaxPool2dBackOptions,
    ) -> Node {
        self.graph().typed("max_pool2d_back", [self, x], options.0.made::<Vec<i64>>("kernel_size", kernel_size))
    }

    /// y\[…, i, j\] = the position h · width + w of the first maximum (in row-major order) of the window at (i, j).
    ///
    /// Positions are int64 and flat within each plane, as in PyTorch's return_indices. NaN counts as a maximum.
    ///
    /// `kernel_size`: extents of the windows along each spatial axis.
    pub fn max_pool2d_indices(&self, kernel_size: impl Into<Vec<i64>>) -> Node {
        self.max_pool2d_indices_with(kernel_size, MaxPool2dIndicesOptions::new())
    }

    /// Appends [`max_pool2d_indices`](Self::max_pool2d_indices) with options.
    pub fn max_pool2d_indices_with(&self, kernel_size: impl Into<Vec<i64>>, options: MaxPool2dIndicesOptions) -> Node {
        self.graph().typed("max_pool2d_indices", [self], options.0.made::<Vec<i64>>("kernel_size", kernel_size))
    }

    /// y\[…, i, j, k\] = the largest element of the window at (i, j, k); NaN if it contains NaN. x \[..., d, h, w\].
    ///
    /// Padding counts as −∞. Extents are as in max_pool1d. To pool planes with dilation or `ceiling`, use a first
    /// kernel size of 1. PyTorch: `max_pool3d`, whose `ceil_mode` is `ceiling`. JAX: `lax.reduce_window`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g, added at the first maximum (in row-major order) of each window.
    ///
    /// `kernel_size`: extents of the windows along each spatial axis.
    pub fn max_pool3d(&self, kernel_size: impl Into<Vec<i64>>) -> Node {
        self.max_pool3d_with(kernel_size, MaxPool3dOptions::new())
    }

    /// Appends [`max_pool3d`](Self::max_pool3d) with options.
    pub fn max_pool3d_with(&self, kernel_size: impl Into<Vec<i64>>, options: MaxPool3dOptions) -> Node {
        self.graph().typed("max_pool3d", [self], options.0.made::<Vec<i64>>("kernel_size", kernel_size))
    }

    /// y = the larger of a and b, elementwise with broadcasting; NaN if either is NaN.
    ///
    /// Gradient: da = g where a \> b or only a is NaN, g / 2 where a = b or both are NaN, else 0; db likewise.
    pub fn maximum(&self, b: &Node) -> Node {
        self.graph().typed("maximum", [self, b], Options::default())
    }

    /// y = Σ x / n over axes, n the number of elements reduced; NaN if n = 0. Integers give float64.
    ///
    /// Gradient: g / n, broadcast back over the axes.
    pub fn mean(&self) -> Node {
        self.mean_with(MeanOptions::new())
    }

    /// Appends [`mean`](Self::mean) with options.
    pub fn mean_with(&self, options: MeanOptions) -> Node {
        self.graph().typed("mean", [self], options.0)
    }

    /// y = min x over axes; NaN if an element is NaN. Ties, including NaN, share the gradient equally.
    ///
    /// Gradient: g / k to each of the k elements equal to y (if y is NaN, to each NaN); 0 to the others.
    pub fn min(&self) -> Node {
        self.min_with(MinOptions::new())
    }

    /// Appends [`min`](Self::min) with options.
    pub fn min_with(&self, options: MinOptions) -> Node {
        self.graph().typed("min", [self], options.0)
    }

    /// y = the smaller of a and b, elementwise with broadcasting; NaN if either is NaN.
    ///
    /// Gradient: da = g where a \< b or only a is NaN, g / 2 where a = b or both are NaN, else 0; db likewise.
    pub fn minimum(&self, b: &Node) -> Node {
        self.graph().typed("minimum", [self, b], Options::default())
    }

    /// y = activation(x @ wᵀ + b) for x\[…, in\], w\[out, in\] and b\[out\]: y\[…, out\].
    ///
    /// b may have any shape that broadcasts to y's shape. The activation is the op of that name with its defaults.
    /// CJC's layer uses the tanh form of `gelu`: for that, build the layer from its parts.
    ///
    /// Gradient: with h = g · activation′: dx = h @ w, dw = hᵀ @ x, db = Σ h over the rows.
    pub fn mlp_layer(&self, w: &Node, b: &Node) -> Node {
        self.mlp_layer_with(w, b, MlpLayerOptions::new())
    }

    /// Appends [`mlp_layer`](Self::mlp_layer) with options.
    pub fn mlp_layer_with(&self, w: &Node, b: &Node, options: MlpLayerOptions) -> Node {
        self.graph().typed("mlp_layer", [self, w, b], options.0)
    }

    /// y = a − b · ⌊a / b⌋: the remainder with the divisor's sign, as in Python's % and NumPy's mod.
    ///
    /// A float modulo 0 is NaN, an integer modulo 0 is 0.
    ///
    /// Gradient: da = g, db = −g · ⌊a / b⌋.
    pub fn mod_(&self, b: &Node) -> Node {
        self.graph().typed("mod", [self, b], Options::default())
    }

    /// loss = (x − y)², elementwise for equal shapes; then the mean.
    ///
    /// Gradient: dx = g · 2 (x − y) / n, dy = −dx.
    pub fn mse_loss(&self, y: &Node) -> Node {
        self.mse_loss_with(y, MseLossOptions::new())
    }

    /// Appends [`mse_loss`](Self::mse_loss) with options.
    pub fn mse_loss_with(&self, y: &Node, options: MseLossOptions) -> Node {
        self.graph().typed("mse_loss", [self, y], options.0)
    }

    /// y = a · b, elementwise, with NumPy broadcasting.
    ///
    /// Gradient: da = g · b, db = g · a.
    pub fn mul(&self, b: &Node) -> Node {
        self.graph().typed("mul", [self, b], Options::default())
    }

    /// y = x · scalar.
    ///
    /// Gradient: g · scalar.
    ///
    /// `scalar`: constant operand.
    pub fn mul_scalar(&self, scalar: f64) -> Node {
        self.graph().typed("mul_scalar", [self], Options::default().with("scalar", scalar))
    }

    /// y = −x.
    ///
    /// Gradient: −g.
    pub fn neg(&self) -> Node {
        self.graph().typed("neg", [self], Options::default())
    }

    /// The first k positions where `mask` is true, in row-major order: int64 \[k, rank\]; and their total count: int64
    /// \[\].
    ///
    /// You set k, so that shapes do not depend on the mask. If there are more than k positions, the rest are dropped;
    /// if there are fewer, the remaining rows are zeros. The count, which is not limited to k, tells you which. JAX:
    /// `nonzero` with a size, which returns the columns as a tuple. PyTorch: `nonzero`, which has as many rows as there
    /// are positions.
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with `get_output`.
    ///
    /// `k`: number of entries in the result.
    pub fn nonzero(&self, k: i64) -> Node {
        self.graph().typed("nonzero", [self], Options::default().with("k", k))
    }

    /// y = √Σ x² over axes, the Euclidean norm, without intermediate overflow or underflow. Integers give float64.
    ///
    /// At 0 the gradient is 0, the subgradient of least norm, and so is its own gradient. An infinite element gets g,
    /// with its sign. If an element is NaN, y and the gradient are NaN.
    ///
    /// Gradient: g · x / y, and 0 where y = 0.
    pub fn norm(&self) -> Node {
        self.norm_with(NormOptions::new())
    }

    /// Appends [`norm`](Self::norm) with options.
    pub fn norm_with(&self, options: NormOptions) -> Node {
        self.graph().typed("norm", [self], options.0)
    }

    /// y = (a ≠ b), elementwise; true if either is NaN.
    pub fn not_equal(&self, b: &Node) -> Node {
        self.graph().typed("not_equal", [self, b], Options::default())
    }

    /// y\[…, c\] = 1 where indices\[…\] = c, else 0, on a new last axis of extent `classes`. Indices lie in \[0,
    /// classes).
    ///
    /// `classes`: number of classes.
    pub fn one_hot(&self, classes: i64) -> Node {
        self.one_hot_with(classes, OneHotOptions::new())
    }

    /// Appends [`one_hot`](Self::one_hot) with options.
    pub fn one_hot_with(&self, classes: i64, options: OneHotOptions) -> Node {
        self.graph().typed("one_hot", [self], options.0.with("classes", classes))
    }

    /// y = x with `fill` around it: pad_width\[2i\] entries before and pad_width\[2i + 1\] after, on each axis i.
    ///
    /// To pad with an infinity or NaN, use `fill_as`. PyTorch's `functional.pad` lists the last axis first. JAX's and
    /// NumPy's `pad` take pairs, in the same order as here.
    ///
    /// Gradient: g without the padding.
    ///
    /// `pad_width`: entries before and after, one axis after the other.
    pub fn pad(&self, pad_width: impl Into<Vec<i64>>) -> Node {
        self.pad_with(pad_width, PadOptions::new())
    }

    /// Appends [`pad`](Self::pad) with options.
    pub fn pad_with(&self, pad_width: impl Into<Vec<i64>>, options: PadOptions) -> Node {
        self.graph().typed("pad", [self], options.0.made::<Vec<i64>>("pad_width", pad_width))
    }

    /// y = x⁺, the Moore–Penrose pseudoinverse: v diag(1 / s) uᴴ of x = u diag(s) vᴴ, without the s that are 0.
    ///
    /// x \[batch…, m, n\], y \[batch…, n, m\]. Singular values up to `rcond` times the largest count as 0; the default
    /// is max(m, n) ε. The gradient assumes constant rank. It is exact if only zeros are cut off, even with equal
    /// singular values. If larger values are cut off, its relative error is their ratio to the values that remain.
    /// Where the rank changes, the pseudoinverse is discontinuous. A matrix with an infinity or NaN, or for which
    /// LAPACK does not converge, gives NaN; the other matrices of the batch are unaffected. Integers give float64;
    /// float16 is computed in a wider float and rounded once.
    ///
    /// PyTorch: `linalg.pinv` (with rtol). JAX and NumPy: `linalg.pinv`, with other defaults. G. H. Golub, V. Pereyra,
    /// The differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate (1973), eq.
    /// 4.12.
    ///
    /// Since opset 2.
    ///
    /// Gradient: −yᴴ g yᴴ + (1 − x y) gᴴ y yᴴ + yᴴ y gᴴ (1 − y x).
    pub fn pinv(&self) -> Node {
        self.pinv_with(PinvOptions::new())
    }

    /// Appends [`pinv`](Self::pinv) with options.
    pub fn pinv_with(&self, options: PinvOptions) -> Node {
        self.graph().typed("pinv", [self], options.0)
    }

    /// y = ψ⁽ⁿ⁾(x) for n = `order`, the n-th derivative of `digamma`; order 0 is `digamma` itself.
    ///
    /// ±∞ at 0, −1, −2, …, with the sign that y has to the right of 0. Accurate to 10 ulp. For even orders, near the
    /// zeros below 0, accurate to 10 ulp of the sum over the nearest poles. Values below 1e-307 · n! are inaccurate or
    /// 0.
    ///
    /// The largest order is 170, because 170! is the largest factorial that fits in a float64; `polygamma` of order 170
    /// has no derivative.
    ///
    /// Gradient: g · polygamma(x, order + 1).
    ///
    /// `order`: order of the derivative of digamma, 0 to 170.
    pub fn polygamma(&self, order: i64) -> Node {
        self.graph().typed("polygamma", [self], Options::default().with("order", order))
    }

    /// y = aᵇ with broadcasting; with one operand, y = a^exponent, as in `pow_scalar`. 0⁰ = 1.
    ///
    /// A negative a to a fractional power is NaN, and so is its derivative with respect to b. The derivative with
    /// respect to b is 0 where a = 0 and b ≥ 0, and where a = ∞ and b \< 0. Powers of integers are integers and wrap
    /// around as in NumPy. With a negative exponent they are truncated towards zero (2⁻¹ → 0, as in CuPy and PyTorch;
    /// NumPy raises an error), and 0⁻¹ → 0.
    ///
    /// Gradient: da = g · b · aᵇ⁻¹, db = g · y · log a.
    pub fn pow(&self) -> Node {
        self.pow_with(PowOptions::new())
    }

    /// Appends [`pow`](Self::pow) with options.
    pub fn pow_with(&self, options: PowOptions) -> Node {
        self.graph().typed("pow", [self], options.0)
    }

    /// y = x^exponent for a real exponent. 0⁰ = 1; a negative x to a fractional power is NaN.
    ///
    /// For a complex x, y = exp(exponent · log x), with the branch cut of `log`.
    ///
    /// Gradient: g · exponent · x^(exponent − 1), and 0 for an exponent of 0.
    ///
    /// `exponent`: exponent.
    pub fn pow_scalar(&self, exponent: f64) -> Node {
        self.graph().typed("pow_scalar", [self], Options::default().with("exponent", exponent))
    }

    /// y = Π x over axes; 1 if no elements are reduced. Integers and bool are multiplied in int64, float16 in float32.
    ///
    /// The gradient is that of a tree of products. It is exact for any number of zeros, and so are higher derivatives.
    ///
    /// Gradient: g · (product of all other elements).
    pub fn prod(&self) -> Node {
        self.prod_with(ProdOptions::new())
    }

    /// Appends [`prod`](Self::prod) with options.
    pub fn prod_with(&self, options: ProdOptions) -> Node {
        self.graph().typed("prod", [self], options.0)
    }

    /// q, r with x = q r: the columns of q are orthonormal, r is upper triangular; reduced form.
    ///
    /// x \[batch…, m, n\], q \[batch…, m, k\], r \[batch…, k, n\], k = min(m, n). LAPACK chooses the signs of r's
    /// diagonal; each sign flips a row of r together with the column of q. Use q and r only in functions that do not
    /// depend on these signs. The gradient is valid if the columns of x are independent; otherwise it is infinite or
    /// NaN. With fewer rows than columns, there are values but no gradient: `not_differentiable`. A matrix with an
    /// infinity or NaN gives NaN; the other matrices of the batch are unaffected. Integers give float64; float16 is
    /// computed in a wider float and rounded once.
    ///
    /// PyTorch and JAX: `linalg.qr`, reduced. S. F. Walter, L. Lehmann, Algorithmic differentiation of linear algebra
    /// functions with application in optimum experimental design, arXiv:1001.1654 (2010).
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with `get_output`.
    ///
    /// Gradient: (ḡq + q (L + Lᴴ − Re diag L)) r⁻ᴴ, L the lower triangle of r ḡrᴴ − ḡqᴴ q; none if rows \< columns.
    pub fn qr(&self) -> Node {
        self.graph().typed("qr", [self], Options::default())
    }

    /// y = uniform \< p, of p's shape: true with probability p. The uniform numbers have p's dtype.
    ///
    /// Equals `jax.random.bernoulli`. PyTorch's `bernoulli` returns floats and uses a different generator.
    ///
    /// Since opset 2.
    pub fn random_bernoulli(&self, p: &Node) -> Node {
        self.graph().typed("random_bernoulli", [self, p], Options::default())
    }

    /// y = 32 random bits per element: the exclusive or of both words of counter i, row-major. Equals
    /// `jax.random.bits`.
    ///
    /// PyTorch's `randint` uses a different generator.
    ///
    /// Since opset 2.
    ///
    /// `shape`: shape of the result.
    pub fn random_bits(&self, shape: impl Into<Vec<i64>>) -> Node {
        self.random_bits_with(shape, RandomBitsOptions::new())
    }

    /// Appends [`random_bits`](Self::random_bits) with options.
    pub fn random_bits_with(&self, shape: impl Into<Vec<i64>>, options: RandomBitsOptions) -> Node {
        self.graph().typed("random_bits", [self], options.0.made::<Vec<i64>>("shape", shape))
    }

    /// y = argmax(logits + gumbel) along `axis`, int64: i with probability proportional to exp(logits\[i\]).
    ///
    /// Equals `jax.random.categorical`. PyTorch's `multinomial` takes weights and uses a different generator.
    ///
    /// Since opset 2.
    pub fn random_categorical(&self, logits: &Node) -> Node {
        self.random_categorical_with(logits, RandomCategoricalOptions::new())
    }

    /// Appends [`random_categorical`](Self::random_categorical) with options.
    pub fn random_categorical_with(&self, logits: &Node, options: RandomCategoricalOptions) -> Node {
        self.graph().typed("random_categorical", [self, logits], options.0)
    }

    /// y = −log1p(−u), u uniform in \[0, 1): exponential numbers with mean 1. Equals `jax.random.exponential`.
    ///
    /// PyTorch's `exponential_` uses a different generator.
    ///
    /// Since opset 2.
    ///
    /// `shape`: shape of the result.
    ///
    /// `dtype`: dtype of the result; one of float32, float64.
    pub fn random_exponential(&self, shape: impl Into<Vec<i64>>, dtype: impl Into<DType>) -> Node {
        self.graph().typed(
            "random_exponential",
            [self],
            Options::default().made::<Vec<i64>>("shape", shape).made::<DType>("dtype", dtype),
        )
    }

    /// key = a new key \[2\] for each number: the words of counter (0, number mod 2³²). Equals `jax.random.fold_in`.
    ///
    /// PyTorch has no keys; use one `Generator` for each.
    ///
    /// Since opset 2.
    pub fn random_fold_in(&self, number: &Node) -> Node {
        self.graph().typed("random_fold_in", [self, number], Options::default())
    }

    /// y = −log(−log u), u uniform in \[0, 1), with 0 replaced by the smallest normal number. Equals
    /// `jax.random.gumbel`.
    ///
    /// PyTorch's `distributions.Gumbel` uses a different generator.
    ///
    /// Since opset 2.
    ///
    /// `shape`: shape of the result.
    ///
    /// `dtype`: dtype of the result; one of float32, float64.
    pub fn random_gumbel(&self, shape: impl Into<Vec<i64>>, dtype: impl Into<DType>) -> Node {
        self.graph().typed(
            "random_gumbel",
            [self],
            Options::default().made::<Vec<i64>>("shape", shape).made::<DType>("dtype", dtype),
        )
    }

    /// key = (seed ≫ 32, seed mod 2³²): uint32 \[2\] from an int64 \[\]. Equals
    /// `jax.random.key_data(jax.random.key(seed))`.
    ///
    /// PyTorch's `manual_seed` starts a different sequence, and has state.
    ///
    /// Since opset 2.
    pub fn random_key(&self) -> Node {
        self.graph().typed("random_key", [self], Options::default())
    }

    /// y = √2 · erfinv(u), u uniform in (−1, 1): standard normal numbers. Equals `jax.random.normal` to 32 ulp.
    ///
    /// PyTorch's `randn` uses a different generator.
    ///
    /// Since opset 2.
    ///
    /// `shape`: shape of the result.
    ///
    /// `dtype`: dtype of the result; one of float32, float64.
    pub fn random_normal(&self, shape: impl Into<Vec<i64>>, dtype: impl Into<DType>) -> Node {
        self.graph().typed(
            "random_normal",
            [self],
            Options::default().made::<Vec<i64>>("shape", shape).made::<DType>("dtype", dtype),
        )
    }

    /// y = 0 … k−1 in random order, int64 \[k\]: a stable argsort of k random unsigned 64-bit numbers.
    ///
    /// `jax.random.permutation` uses a different algorithm, and PyTorch's `randperm` a different generator.
    ///
    /// Since opset 2.
    ///
    /// `k`: number of elements.
    pub fn random_permutation(&self, k: i64) -> Node {
        self.graph().typed("random_permutation", [self], Options::default().with("k", k))
    }

    /// keys = k new keys \[k, 2\], each with its own sequence: the words of counters 0 … k−1. Equals
    /// `jax.random.split`.
    ///
    /// PyTorch has no keys; use one `Generator` for each.
    ///
    /// Since opset 2.
    ///
    /// `k`: number of keys.
    pub fn random_split(&self, k: i64) -> Node {
        self.graph().typed("random_split", [self], Options::default().with("k", k))
    }

    /// y = uniform numbers in \[0, 1): 23 random bits (for float64, 52) over 2²³ (2⁵²). Equals `jax.random.uniform`.
    ///
    /// PyTorch's `rand` uses a different generator.
    ///
    /// Since opset 2.
    ///
    /// `shape`: shape of the result.
    ///
    /// `dtype`: dtype of the result; one of float32, float64.
    pub fn random_uniform(&self, shape: impl Into<Vec<i64>>, dtype: impl Into<DType>) -> Node {
        self.graph().typed(
            "random_uniform",
            [self],
            Options::default().made::<Vec<i64>>("shape", shape).made::<DType>("dtype", dtype),
        )
    }

    /// y = Re x; a real x is returned unchanged. PyTorch, JAX and NumPy: `real`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g, with the imaginary part 0.
    pub fn real(&self) -> Node {
        self.graph().typed("real", [self], Options::default())
    }

    /// y = 1 / x; integers give floats, as in `div`.
    ///
    /// Gradient: −g · y².
    pub fn reciprocal(&self) -> Node {
        self.graph().typed("reciprocal", [self], Options::default())
    }

    /// y = max(x, 0). The derivative at 0 is `at_zero`; some systems use 1.
    ///
    /// Gradient: g where x \> 0 or NaN, g · at_zero where x = 0, else 0.
    pub fn relu(&self) -> Node {
        self.relu_with(ReluOptions::new())
    }

    /// Appends [`relu`](Self::relu) with options.
    pub fn relu_with(&self, options: ReluOptions) -> Node {
        self.graph().typed("relu", [self], options.0)
    }

    /// y = a − b · (a / b rounded towards 0): C's % and fmod, with the sign of a. `mod` has the sign of b.
    ///
    /// If b is 0, y is NaN for floats and 0 for integers. PyTorch: `fmod`. JAX: `lax.rem`, which gives a for integers.
    ///
    /// Since opset 2.
    ///
    /// Gradient: da = g, db = −g · (a / b rounded towards 0).
    pub fn rem(&self, b: &Node) -> Node {
        self.graph().typed("rem", [self, b], Options::default())
    }

    /// y holds x's elements, in row-major order, in another shape; one extent may be −1 and is inferred.
    ///
    /// An absent or empty `shape` makes a 0-d tensor. `original_shape`, if given, must be x's shape.
    ///
    /// Gradient: g, reshaped back.
    pub fn reshape(&self) -> Node {
        self.reshape_with(ReshapeOptions::new())
    }

    /// Appends [`reshape`](Self::reshape) with options.
    pub fn reshape_with(&self, options: ReshapeOptions) -> Node {
        self.graph().typed("reshape", [self], options.0)
    }

    /// y = x resized to new extents on some axes, by interpolation.
    ///
    /// The centre of new entry i lies at (i + ½) · extent / size − ½; with `corners`, at i · (extent − 1) / (size − 1).
    /// `nearest` reads the nearest entry, `linear` two, and `cubic` four, with Keys's kernel and a = −0.75; beyond an
    /// end, the entry at that end is repeated. With `antialias`, kernels widen where the tensor shrinks, a is −0.5, and
    /// positions beyond an end are ignored. PyTorch: `interpolate` with modes nearest-exact, linear, bilinear,
    /// trilinear and bicubic, and with align_corners. JAX: `image.resize`, whose cubic always has a = −0.5, and which
    /// has no equivalent of `corners`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g times the weights of interpolation, added to the entries that were read.
    ///
    /// `sizes`: new extents.
    pub fn resize(&self, sizes: impl Into<Vec<i64>>) -> Node {
        self.resize_with(sizes, ResizeOptions::new())
    }

    /// Appends [`resize`](Self::resize) with options.
    pub fn resize_with(&self, sizes: impl Into<Vec<i64>>, options: ResizeOptions) -> Node {
        self.graph().typed("resize", [self], options.0.made::<Vec<i64>>("sizes", sizes))
    }

    /// The first ⌊n / 2⌋ + 1 entries of `fft` of a real x on the last of `axes`; the other entries are their
    /// conjugates.
    ///
    /// float16 gives complex64, integers give complex128. `norm` is as in `fft`. PyTorch, JAX and NumPy: `rfft`; over
    /// several axes, `rfft2` and `rfftn`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: the real part of ifft(g) without the division by n, with g padded with zeros.
    pub fn rfft(&self) -> Node {
        self.rfft_with(RfftOptions::new())
    }

    /// Appends [`rfft`](Self::rfft) with options.
    pub fn rfft_with(&self, options: RfftOptions) -> Node {
        self.graph().typed("rfft", [self], options.0)
    }

    /// y = x / √(mean x² + eps) · weight, with the mean over `axes`; weight has x's extents there, in ascending order.
    ///
    /// B. Zhang, R. Sennrich, "Root mean square layer normalization" (2019).
    ///
    /// Gradient: with z normalised and h = g · weight: dx = (h − z · mean(h·z)) / √(mean x² + eps).
    pub fn rms_norm(&self) -> Node {
        self.rms_norm_with(RmsNormOptions::new())
    }

    /// Appends [`rms_norm`](Self::rms_norm) with options.
    pub fn rms_norm_with(&self, options: RmsNormOptions) -> Node {
        self.graph().typed("rms_norm", [self], options.0)
    }

    /// y\[(i + shift) mod n\] = x\[i\] on each of `axes`; without `axes`, on the flattened tensor.
    ///
    /// Give one shift for each axis, or one shift without `axes`. Negative shifts move entries towards the front.
    ///
    /// Gradient: g, rolled back.
    ///
    /// `shifts`: distance to move, for each axis.
    pub fn roll(&self, shifts: impl Into<Vec<i64>>) -> Node {
        self.roll_with(shifts, RollOptions::new())
    }

    /// Appends [`roll`](Self::roll) with options.
    pub fn roll_with(&self, shifts: impl Into<Vec<i64>>, options: RollOptions) -> Node {
        self.graph().typed("roll", [self], options.0.made::<Vec<i64>>("shifts", shifts))
    }

    /// y = x rounded to the nearest whole number, ties to even: 0.5 → 0, 1.5 → 2.
    pub fn round(&self) -> Node {
        self.graph().typed("round", [self], Options::default())
    }

    /// y = 1 / √x; NaN for x \< 0.
    ///
    /// Gradient: −g · y³ / 2.
    pub fn rsqrt(&self) -> Node {
        self.graph().typed("rsqrt", [self], Options::default())
    }

    /// y = x, then y\[index\[i, j, …\], j, …\] += updates\[i, j, …\] for axis 0; likewise for the other axes.
    ///
    /// `index` and `updates` have the same shape, of x's rank, and may be smaller than x on the other axes. Repeated
    /// indices accumulate. This is the adjoint of `gather`. Indices lie in \[0, extent); with `from_end`, negative ones
    /// count from the end. PyTorch: `scatter_add`, which rejects negative indices. JAX: `x.at[…].add`, which accepts
    /// them and drops updates that are out of range.
    ///
    /// Gradient: dx = g, d updates = gather(g, index); none for index.
    pub fn scatter_add(&self, index: &Node, updates: &Node) -> Node {
        self.scatter_add_with(index, updates, ScatterAddOptions::new())
    }

    /// Appends [`scatter_add`](Self::scatter_add) with options.
    pub fn scatter_add_with(&self, index: &Node, updates: &Node, options: ScatterAddOptions) -> Node {
        self.graph().typed("scatter_add", [self, index, updates], options.0)
    }

    /// y\[s, …\] = the largest x\[i, …\] of the rows i with segment_ids\[i\] = s; NaN if one of them is NaN.
    ///
    /// x \[n, …\]; segment_ids \[n\], in any order, each in \[0, segments); y \[segments, …\]. Ties share the gradient
    /// equally. An empty segment gives −∞, or the smallest number of an integer dtype. JAX: `ops.segment_max`. PyTorch:
    /// `scatter_reduce` with amax, whose ties also share the gradient, and in which empty segments keep their old
    /// values.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g / k to each of the k rows equal to y (if y is NaN, to each NaN); 0 to the others.
    ///
    /// `segments`: number of segments.
    pub fn segment_max(&self, segment_ids: &Node, segments: i64) -> Node {
        self.graph().typed("segment_max", [self, segment_ids], Options::default().with("segments", segments))
    }

    /// y\[s, …\] = the mean of x\[i, …\] over the rows i with segment_ids\[i\] = s; NaN for an empty segment.
    ///
    /// x \[n, …\]; segment_ids \[n\], in any order, each in \[0, segments); y \[segments, …\]. Integers give float64;
    /// float16 is summed in float32. PyTorch: `scatter_reduce` with mean. JAX has no equivalent.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx\[i, …\] = g\[segment_ids\[i\], …\] / (number of rows in the segment); none for segment_ids.
    ///
    /// `segments`: number of segments.
    pub fn segment_mean(&self, segment_ids: &Node, segments: i64) -> Node {
        self.graph().typed("segment_mean", [self, segment_ids], Options::default().with("segments", segments))
    }

    /// y\[s, …\] = the smallest x\[i, …\] of the rows i with segment_ids\[i\] = s; NaN if one of them is NaN.
    ///
    /// x \[n, …\]; segment_ids \[n\], in any order, each in \[0, segments); y \[segments, …\]. Ties share the gradient
    /// equally. An empty segment gives ∞, or the largest number of an integer dtype. JAX: `ops.segment_min`. PyTorch:
    /// `scatter_reduce` with amin, whose ties also share the gradient, and in which empty segments keep their old
    /// values.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g / k to each of the k rows equal to y (if y is NaN, to each NaN); 0 to the others.
    ///
    /// `segments`: number of segments.
    pub fn segment_min(&self, segment_ids: &Node, segments: i64) -> Node {
        self.graph().typed("segment_min", [self, segment_ids], Options::default().with("segments", segments))
    }

    /// y\[s, …\] = Π x\[i, …\] over the rows i with segment_ids\[i\] = s; 1 for an empty segment.
    ///
    /// x \[n, …\]; segment_ids \[n\], in any order, each in \[0, segments); y \[segments, …\]. Integers and bool are
    /// multiplied in int64, float16 in float32. The gradient is exact for any number of zeros, and so are higher
    /// derivatives. JAX: `ops.segment_prod`, which has no gradient. PyTorch: `scatter_reduce` with prod.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g\[segment_ids\[i\], …\] · (product of the other rows of the segment); none for segment_ids.
    ///
    /// `segments`: number of segments.
    pub fn segment_prod(&self, segment_ids: &Node, segments: i64) -> Node {
        self.graph().typed("segment_prod", [self, segment_ids], Options::default().with("segments", segments))
    }

    /// y\[s, …\] = Σ x\[i, …\] over the rows i with segment_ids\[i\] = s; 0 for an empty segment.
    ///
    /// x \[n, …\]; segment_ids \[n\], in any order, each in \[0, segments); y \[segments, …\]. Integers and bool are
    /// summed in int64, float16 in float32.
    ///
    /// Gradient: dx\[i, …\] = g\[segment_ids\[i\], …\]; none for segment_ids.
    ///
    /// `segments`: number of segments.
    pub fn segment_sum(&self, segment_ids: &Node, segments: i64) -> Node {
        self.graph().typed("segment_sum", [self, segment_ids], Options::default().with("segments", segments))
    }

    /// y = x at one `index` along `axis`, without that axis: x\[index\], x\[:, index\], …
    ///
    /// A negative index counts from the end. Same as PyTorch's select. To read at many indices, use `gather`.
    ///
    /// Gradient: g at the index, 0 elsewhere.
    ///
    /// `index`: position to read.
    pub fn select(&self, index: i64) -> Node {
        self.select_with(index, SelectOptions::new())
    }

    /// Appends [`select`](Self::select) with options.
    pub fn select_with(&self, index: i64, options: SelectOptions) -> Node {
        self.graph().typed("select", [self], options.0.with("index", index))
    }

    /// y = 1.0507… · elu(x, alpha = 1.6732…), which preserves mean 0 and variance 1.
    ///
    /// G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter, arXiv:1706.02515.
    ///
    /// Gradient: 1.0507… · that of elu.
    pub fn selu(&self) -> Node {
        self.graph().typed("selu", [self], Options::default())
    }

    /// y = 1 / (1 + e⁻ˣ), accurate in both tails, down to the smallest number. The same formula holds for complex x.
    ///
    /// Gradient: g · y · (1 − y).
    pub fn sigmoid(&self) -> Node {
        self.graph().typed("sigmoid", [self], Options::default())
    }

    /// y = −1, 0 or 1: the sign of x. NaN stays NaN.
    pub fn sign(&self) -> Node {
        self.graph().typed("sign", [self], Options::default())
    }

    /// y = x · sigmoid x; 0 at −∞.
    ///
    /// Gradient: g · (s + x · s · (1 − s)), s = sigmoid x.
    pub fn silu(&self) -> Node {
        self.graph().typed("silu", [self], Options::default())
    }

    /// y = sin x.
    ///
    /// Gradient: g · cos x.
    pub fn sin(&self) -> Node {
        self.graph().typed("sin", [self], Options::default())
    }

    /// y = sin(πx) / πx, and 1 at 0. Exactly 0 at all other whole numbers and at infinity.
    ///
    /// Accurate to 4 ulp even next to whole numbers, where other libraries lose all digits. At whole numbers other than
    /// 0, the derivative is (−1)ˣ / x. NumPy, PyTorch and JAX: `sinc`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · (cos πx − y) / x, and 0 at 0.
    pub fn sinc(&self) -> Node {
        self.graph().typed("sinc", [self], Options::default())
    }

    /// y = sinh x.
    ///
    /// Gradient: g · cosh x.
    pub fn sinh(&self) -> Node {
        self.graph().typed("sinh", [self], Options::default())
    }

    /// y = x\[starts\[0\]:stops\[0\]:steps\[0\], starts\[1\]:stops\[1\]:steps\[1\], …\]: one entry for each axis.
    ///
    /// A list may have fewer entries than x has axes; the remaining axes use the defaults. Bounds are as in NumPy:
    /// negative ones count from the end, and bounds beyond an end are moved to that end. Steps are at least 1.
    ///
    /// Gradient: g at the positions that were read, 0 elsewhere.
    pub fn slice(&self) -> Node {
        self.slice_with(SliceOptions::new())
    }

    /// Appends [`slice`](Self::slice) with options.
    pub fn slice_with(&self, options: SliceOptions) -> Node {
        self.graph().typed("slice", [self], options.0)
    }

    /// y = x\[s₀ : s₀ + sizes\[0\], s₁ : s₁ + sizes\[1\], …\], where s is the operand `starts`: int64 \[rank\].
    ///
    /// Each start, negative ones included, is moved into \[0, extent − size\], so that the result always has the same
    /// shape. JAX: `lax.dynamic_slice`, which first counts negative starts from the end. PyTorch: x.narrow, which takes
    /// a start on one axis.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g in the box, 0 elsewhere; none for starts.
    ///
    /// `sizes`: extents of the box, one for each axis.
    pub fn slice_at(&self, starts: &Node, sizes: impl Into<Vec<i64>>) -> Node {
        self.graph().typed("slice_at", [self, starts], Options::default().made::<Vec<i64>>("sizes", sizes))
    }

    /// sign, log|det x| of matrices on the last two axes: \[batch…, n, n\] → \[batch…\] for both; det x = sign ·
    /// exp(log).
    ///
    /// The logarithm does not overflow or underflow where the determinant does. A singular matrix has sign 0 and
    /// logarithm −∞, and its gradient is NaN, as is that of the inverse; the other matrices of the batch are
    /// unaffected. The sign has no gradient. For a complex matrix, the sign is complex, det x / |det x|, and the
    /// logarithm is real. Integers give float64; float16 is computed in a wider float and rounded once.
    ///
    /// The op has several results. Read each with `get_output`.
    ///
    /// Gradient: g · x⁻ᴴ, g the cotangent of log|det x|.
    pub fn slogdet(&self) -> Node {
        self.graph().typed("slogdet", [self], Options::default())
    }

    /// y = exp(x) / Σ exp(x) along `axis`, of x's shape; stable: computed from x − max x. Integers give float64.
    ///
    /// A row that contains only −inf gives NaN, as 0 / 0.
    ///
    /// Gradient: y · (g − Σ g·y), with the sum along the axis.
    pub fn softmax(&self) -> Node {
        self.softmax_with(SoftmaxOptions::new())
    }

    /// Appends [`softmax`](Self::softmax) with options.
    pub fn softmax_with(&self, options: SoftmaxOptions) -> Node {
        self.graph().typed("softmax", [self], options.0)
    }

    /// y = ln(1 + eˣ).
    ///
    /// Gradient: g · sigmoid x.
    pub fn softplus(&self) -> Node {
        self.graph().typed("softplus", [self], Options::default())
    }

    /// y such that a y = b: a \[batch…, n, n\], b \[n\], \[batch…, n\] or \[batch…, n, m\]; batch axes of matrices
    /// broadcast.
    ///
    /// b holds vectors if it is 1-d, as in NumPy 2, or if it has a's shape without the last axis and its last two axes
    /// cannot be matrices of n rows; otherwise it holds matrices. If a is singular, y is NaN, or very large if rounding
    /// hides the singularity; the other systems of the batch are unaffected. Integers give float64; float16 is computed
    /// in a wider float and rounded once.
    ///
    /// M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation
    /// (2008).
    ///
    /// Gradient: db = a⁻ᴴ g, da = −(db yᴴ), summed over batch axes that were broadcast.
    pub fn solve(&self, b: &Node) -> Node {
        self.graph().typed("solve", [self, b], Options::default())
    }

    /// y = x sorted in ascending order along an axis; equal entries keep their order, NaN comes last.
    ///
    /// Gradient: g, moved back to the original positions.
    ///
    /// `axis`: axis to sort along.
    pub fn sort(&self, axis: i64) -> Node {
        self.graph().typed("sort", [self], Options::default().with("axis", axis))
    }

    /// y0, y1, … = x split along `axis` into parts of `sizes`, which add up to the extent; a part may be empty.
    ///
    /// The op has several results. Read each with `get_output`.
    ///
    /// Gradient: the parts' cotangents, joined; zeros for parts that are not read.
    ///
    /// `sizes`: extents of the parts on the axis.
    pub fn split(&self, sizes: impl Into<Vec<i64>>) -> Node {
        self.split_with(sizes, SplitOptions::new())
    }

    /// Appends [`split`](Self::split) with options.
    pub fn split_with(&self, sizes: impl Into<Vec<i64>>, options: SplitOptions) -> Node {
        self.graph().typed("split", [self], options.0.made::<Vec<i64>>("sizes", sizes))
    }

    /// y = √x; NaN for x \< 0. At 0 the derivative is infinite.
    ///
    /// For a complex x, y is the root with Re y ≥ 0. The branch cut is the negative real axis; on it, the sign of the
    /// imaginary zero selects the side for value and gradient, as in PyTorch. JAX uses the derivative of one side for
    /// both.
    ///
    /// Gradient: g / 2y.
    pub fn sqrt(&self) -> Node {
        self.graph().typed("sqrt", [self], Options::default())
    }

    /// y = x².
    ///
    /// Gradient: g · 2x.
    pub fn square(&self) -> Node {
        self.graph().typed("square", [self], Options::default())
    }

    /// y = x without `axes`, each of which must have extent 1; by default, without all axes of extent 1.
    ///
    /// Gradient: g, reshaped back.
    pub fn squeeze(&self) -> Node {
        self.squeeze_with(SqueezeOptions::new())
    }

    /// Appends [`squeeze`](Self::squeeze) with options.
    pub fn squeeze_with(&self, options: SqueezeOptions) -> Node {
        self.graph().typed("squeeze", [self], options.0)
    }

    /// y\[…, t, k\] = Σ window\[j\] x\[…, t · stride + j\] exp(−2πi j k / n) over j: \[… time\] → \[… frames, ⌊n / 2⌋ +
    /// 1\].
    ///
    /// Applies `rfft` to each part of x that the window \[w\] covers, with n = w points unless `sizes` states another
    /// number. x is not padded: to get frames around its ends, `pad` it first. TensorFlow: `signal.stft`. PyTorch and
    /// SciPy: `stft`, with the last two axes swapped, and with padding by default. NumPy and JAX: frames and `rfft`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: that of rfft, times the window, summed where frames overlap.
    ///
    /// `stride`: one number: distance between the starts of adjacent frames.
    pub fn stft(&self, window: &Node, stride: impl Into<Vec<i64>>) -> Node {
        self.stft_with(window, stride, StftOptions::new())
    }

    /// Appends [`stft`](Self::stft) with options.
    pub fn stft_with(&self, window: &Node, stride: impl Into<Vec<i64>>, options: StftOptions) -> Node {
        self.graph().typed("stft", [self, window], options.0.made::<Vec<i64>>("stride", stride))
    }

    /// y = x, treated as a constant in differentiation.
    pub fn stop_gradient(&self) -> Node {
        self.graph().typed("stop_gradient", [self], Options::default())
    }

    /// One field of a record that is stored as one tensor.
    ///
    /// The leading axis is split into `total_fields` equal parts, and y is the part `field_index`; the axis remains.
    ///
    /// Gradient: g in that part, 0 in the others.
    ///
    /// `field_index`: position of the field, from 0.
    ///
    /// `total_fields`: number of fields in the record.
    pub fn struct_field(&self, field_index: i64, total_fields: i64) -> Node {
        self.graph().typed(
            "struct_field",
            [self],
            Options::default().with("field_index", field_index).with("total_fields", total_fields),
        )
    }

    /// y = a − b, elementwise, with NumPy broadcasting.
    ///
    /// Gradient: da = g, db = −g.
    pub fn sub(&self, b: &Node) -> Node {
        self.graph().typed("sub", [self, b], Options::default())
    }

    /// y = x − scalar.
    ///
    /// Gradient: g.
    ///
    /// `scalar`: constant operand.
    pub fn sub_scalar(&self, scalar: f64) -> Node {
        self.graph().typed("sub_scalar", [self], Options::default().with("scalar", scalar))
    }

    /// y = Σ x over axes. Integers and bool are summed in int64, float16 in float32.
    ///
    /// Gradient: g, broadcast back over the axes.
    pub fn sum(&self) -> Node {
        self.sum_with(SumOptions::new())
    }

    /// Appends [`sum`](Self::sum) with options.
    pub fn sum_with(&self, options: SumOptions) -> Node {
        self.graph().typed("sum", [self], options.0)
    }

    /// u, s, vh with x = u diag(s) vh: s ≥ 0 descending, the columns of u and rows of vh orthonormal; reduced form.
    ///
    /// x \[batch…, m, n\], u \[batch…, m, k\], s \[batch…, k\], real, vh \[batch…, k, n\], k = min(m, n). If you read
    /// only s, vectors are not computed. The gradient of s alone is valid at equal values, too, if your function treats
    /// these alike.
    ///
    /// LAPACK chooses the signs, or for complex vectors the phases, of each column of u together with the row of vh.
    /// Use u and vh only in functions that do not depend on them.
    ///
    /// Singular values closer than 16 n ε ‖x‖, with n the larger extent, count as equal, and smaller ones count as 0. A
    /// value of 0 gets no gradient, like `abs` at 0. For a matrix with equal or zero values, the gradient of a function
    /// of u or vh is NaN. If `degenerate` is whole, such pairs are left out instead. That is correct if the function
    /// depends on whole spaces of vectors only, as a projector and u vh do, and wrong otherwise. Second derivatives are
    /// NaN if a pair was left out, and also for s alone if values are equal.
    ///
    /// A matrix with an infinity or NaN, or for which LAPACK does not converge, gives NaN; the other matrices of the
    /// batch are unaffected. Integers give float64; float16 is computed in a wider float and rounded once.
    ///
    /// PyTorch: `linalg.svd` with full_matrices false. JAX: `linalg.svd`. At a 0, both use whichever vectors LAPACK
    /// returned. J. Townsend, Differentiating the singular value decomposition (2016), with 1 / (sⱼ² − sᵢ²) in its
    /// partial fractions; Z.-Q. Wan, S.-X. Zhang, arXiv:1909.02659 (2019), on phases.
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with `get_output`.
    ///
    /// Gradient: u (diag(ḡs) + (F ∘ (P + Q) + G ∘ (P − Q)) / 2) vh, plus (1 − u uᴴ) ḡu s⁻¹ vh and u s⁻¹ ḡvh (1 − v vᴴ);
    /// P, Q = uᴴ ḡu, vh ḡvhᴴ minus their adjoints, Fᵢⱼ = 1 / (sⱼ − sᵢ), Gᵢⱼ = 1 / (sⱼ + sᵢ).
    pub fn svd(&self) -> Node {
        self.svd_with(SvdOptions::new())
    }

    /// Appends [`svd`](Self::svd) with options.
    pub fn svd_with(&self, options: SvdOptions) -> Node {
        self.graph().typed("svd", [self], options.0)
    }

    /// y = v f(diag w) vᵀ, a function of the symmetric part (x + xᵀ) / 2 = v diag(w) vᵀ of square matrices.
    ///
    /// f is applied to the eigenvalues: the square root, its reciprocal, the logarithm or the exponential. The gradient
    /// uses divided differences, which have a limit where eigenvalues meet. So it is exact at equal eigenvalues, and so
    /// is the second derivative; v f vᵀ written with `eigh` has no gradient there. A matrix gives NaN if f is not
    /// finite at an eigenvalue (such as log at 0 or below), if it contains an infinity or NaN, or if LAPACK does not
    /// converge; the other matrices of the batch are unaffected. Integers give float64; float16 is computed in a wider
    /// float and rounded once.
    ///
    /// SciPy: `sqrtm`, `logm` and `expm` of symmetric matrices. PyTorch and JAX have no such function with a gradient
    /// at equal eigenvalues, except for exp. N. J. Higham, Functions of Matrices (2008), theorem 3.11 of Daleckii and
    /// Krein.
    ///
    /// Since opset 2.
    ///
    /// Gradient: v (D ∘ (vᵀ (g + gᵀ) v / 2)) vᵀ, Dᵢⱼ = (f(wᵢ) − f(wⱼ)) / (wᵢ − wⱼ), or f′(wᵢ) if wᵢ = wⱼ.
    ///
    /// `function`: function of the eigenvalues; rsqrt is 1 / sqrt; one of sqrt, rsqrt, log, exp.
    pub fn symmetric_function(&self, function: &str) -> Node {
        self.graph().typed("symmetric_function", [self], Options::default().with("function", function))
    }

    /// y\[i, j, …\] = x\[index\[i, j, …\], j, …\] for axis 0; likewise for the other axes. Same as NumPy's
    /// take_along_axis.
    ///
    /// `index` has x's rank. On the axis, y has the extent of the index; on the other axes, x and the index broadcast.
    /// Indices lie in \[0, extent); with `from_end`, in \[−extent, extent), and negative ones count from the end.
    /// PyTorch: `take_along_dim`, which rejects negative indices. JAX: `take_along_axis`, which accepts them.
    ///
    /// Gradient: g, added where x was read: repeated indices accumulate; none for index.
    pub fn take_along(&self, index: &Node) -> Node {
        self.take_along_with(index, TakeAlongOptions::new())
    }

    /// Appends [`take_along`](Self::take_along) with options.
    pub fn take_along_with(&self, index: &Node, options: TakeAlongOptions) -> Node {
        self.graph().typed("take_along", [self, index], options.0)
    }

    /// y = tan x.
    ///
    /// Gradient: g · (1 + y²).
    pub fn tan(&self) -> Node {
        self.graph().typed("tan", [self], Options::default())
    }

    /// y = tanh x.
    ///
    /// Gradient: g · (1 − y²).
    pub fn tanh(&self) -> Node {
        self.graph().typed("tanh", [self], Options::default())
    }

    /// y = x repeated `repeats` times along each axis.
    ///
    /// As in NumPy, the shorter of shape and repeats is padded with leading ones.
    ///
    /// Gradient: g, summed over the repetitions.
    ///
    /// `repeats`: number of repetitions along each axis.
    pub fn tile(&self, repeats: impl Into<Vec<i64>>) -> Node {
        self.graph().typed("tile", [self], Options::default().made::<Vec<i64>>("repeats", repeats))
    }

    /// values, indices = the k largest entries of x along `axis`, largest first, and their int64 positions.
    ///
    /// Among equal entries, the one with the lowest index comes first; NaN counts as largest.
    ///
    /// The op has several results. Read each with `get_output`.
    ///
    /// Gradient: the cotangent of the values, moved back to the original positions; none for indices.
    ///
    /// `k`: number of entries; at most the axis's extent.
    pub fn topk(&self, k: i64) -> Node {
        self.topk_with(k, TopkOptions::new())
    }

    /// Appends [`topk`](Self::topk) with options.
    pub fn topk_with(&self, k: i64, options: TopkOptions) -> Node {
        self.graph().typed("topk", [self], options.0.with("k", k))
    }

    /// y = x with its axes permuted.
    ///
    /// y's axis i is x's axis axes\[i\]. Without `axes`, the last two axes are swapped (born reverses all axes: for
    /// that, pass `axes`). If x does not have rank 2, two entries swap those two axes (minima).
    ///
    /// Gradient: g, permuted back.
    pub fn transpose(&self) -> Node {
        self.transpose_with(TransposeOptions::new())
    }

    /// Appends [`transpose`](Self::transpose) with options.
    pub fn transpose_with(&self, options: TransposeOptions) -> Node {
        self.graph().typed("transpose", [self], options.0)
    }

    /// y such that t y = b, or tᵀ y = b with `transpose`; t is the lower (or upper) triangle of a, with the diagonal.
    ///
    /// a \[batch…, n, n\]: the other triangle is ignored, whatever it contains. b \[n\], \[batch…, n\] or \[batch…, n,
    /// m\], read as in `solve`. Batch axes broadcast. If the diagonal contains a 0, y is infinite or NaN. Integers are
    /// computed in float64, float16 in float32.
    ///
    /// M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation
    /// (2008).
    ///
    /// Gradient: db = t⁻ᴴ g, da = the triangle of −(db yᴴ); with transpose, db = (conj t)⁻¹ g, da that of −(conj y
    /// dbᵀ).
    pub fn triangular_solve(&self, b: &Node) -> Node {
        self.triangular_solve_with(b, TriangularSolveOptions::new())
    }

    /// Appends [`triangular_solve`](Self::triangular_solve) with options.
    pub fn triangular_solve_with(&self, b: &Node, options: TriangularSolveOptions) -> Node {
        self.graph().typed("triangular_solve", [self, b], options.0)
    }

    /// y = x on and below a diagonal of the last two axes, 0 above: y\[…, i, j\] = x\[…, i, j\] where j − i ≤ offset.
    ///
    /// Gradient: tril(g).
    pub fn tril(&self) -> Node {
        self.tril_with(TrilOptions::new())
    }

    /// Appends [`tril`](Self::tril) with options.
    pub fn tril_with(&self, options: TrilOptions) -> Node {
        self.graph().typed("tril", [self], options.0)
    }

    /// y = x on and above a diagonal of the last two axes, 0 below: y\[…, i, j\] = x\[…, i, j\] where j − i ≥ offset.
    ///
    /// Gradient: triu(g).
    pub fn triu(&self) -> Node {
        self.triu_with(TriuOptions::new())
    }

    /// Appends [`triu`](Self::triu) with options.
    pub fn triu_with(&self, options: TriuOptions) -> Node {
        self.graph().typed("triu", [self], options.0)
    }

    /// y = a / b rounded towards 0, elementwise with broadcasting: C's /. Integer division by 0 gives 0.
    ///
    /// `rem` is the remainder. PyTorch: `div` with rounding_mode trunc. JAX: `lax.div` of integers, which gives −1 for
    /// division by 0.
    ///
    /// Since opset 2.
    pub fn trunc_div(&self, b: &Node) -> Node {
        self.graph().typed("trunc_div", [self, b], Options::default())
    }

    /// y = x with axes of extent 1 inserted; `axes` are their positions in the result.
    ///
    /// Gradient: g, reshaped back.
    pub fn unsqueeze(&self) -> Node {
        self.unsqueeze_with(UnsqueezeOptions::new())
    }

    /// Appends [`unsqueeze`](Self::unsqueeze) with options.
    pub fn unsqueeze_with(&self, options: UnsqueezeOptions) -> Node {
        self.graph().typed("unsqueeze", [self], options.0)
    }

    /// y = x with the box that begins at `starts`, one entry for each axis, replaced by `update`.
    ///
    /// The box has the shape of `update`. A negative start counts from the end, as in slice. A box that extends beyond
    /// x is an error; it is not moved. The result has the common dtype of x and update.
    ///
    /// Gradient: dx = g, 0 in the box; d update = g in the box.
    ///
    /// `starts`: first position of the update on each axis.
    pub fn update_slice(&self, update: &Node, starts: impl Into<Vec<i64>>) -> Node {
        self.graph().typed("update_slice", [self, update], Options::default().made::<Vec<i64>>("starts", starts))
    }

    /// y = x with the box that begins at `starts` replaced by `updates`; `starts` is an operand, int64 \[rank\].
    ///
    /// The box has the shape of `updates`. Each start, negative ones included, is moved into \[0, extent − size\], so
    /// that the box fits into x. The result has the common dtype of x and updates. JAX: `lax.dynamic_update_slice`,
    /// which first counts negative starts from the end. PyTorch: `slice_scatter`, which takes a start on one axis, as a
    /// number.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = g, 0 in the box; d updates = g in the box; none for starts.
    pub fn update_slice_at(&self, updates: &Node, starts: &Node) -> Node {
        self.graph().typed("update_slice_at", [self, updates, starts], Options::default())
    }

    /// y = Σ (x − mean x)² / (n − ddof) over axes, n the number of elements reduced. Integers give float64.
    ///
    /// Computed in two passes, the mean first, so that a large mean costs no digits. If n ≤ ddof, the division is by
    /// zero as in NumPy: the result is NaN or infinity.
    ///
    /// Gradient: g · 2 (x − mean x) / (n − ddof).
    pub fn var(&self) -> Node {
        self.var_with(VarOptions::new())
    }

    /// Appends [`var`](Self::var) with options.
    pub fn var_with(&self, options: VarOptions) -> Node {
        self.graph().typed("var", [self], options.0)
    }

    /// y = on_true where cond is true, else on_false; all three broadcast. Nonzero numbers in cond are true.
    ///
    /// Each branch gets the cotangent where it was chosen and exactly zero elsewhere, whatever the other branch
    /// contains.
    ///
    /// Gradient: d on_true = where(cond, g, 0), d on_false = where(cond, 0, g); none for cond.
    pub fn where_(&self, on_true: &Node, on_false: &Node) -> Node {
        self.graph().typed("where", [self, on_true, on_false], Options::default())
    }

    /// y = x · log(1 + y), with broadcasting, accurate for small y; 0 where x = 0, unless y is NaN.
    ///
    /// Same as in SciPy and PyTorch (`special.xlog1py`); JAX gives 0 for NaN, too. The derivative with respect to x is
    /// log(1 + y): −∞ where y = −1, and NaN where y \< −1. The derivative with respect to y is x / (1 + y), and 0 where
    /// x = 0 and y = −1.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = g · log(1 + y); dy = g · x / (1 + y), and 0 where x = 0 and y = −1.
    pub fn xlog1py(&self, y: &Node) -> Node {
        self.graph().typed("xlog1py", [self, y], Options::default())
    }

    /// y = x · log y, with broadcasting; 0 where x = 0, unless y is NaN.
    ///
    /// Same as in SciPy and PyTorch; JAX gives 0 for NaN, too. The derivative with respect to x is log y: −∞ where y =
    /// 0, so that of xlogy(x, x) at 0 is, too. Where x = 0 and y \< 0 it is NaN, as in JAX (in PyTorch it is 0). The
    /// derivative with respect to y is x / y, and 0 where both are 0.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = g · log y; dy = g · x / y, and 0 where x = y = 0.
    pub fn xlogy(&self, y: &Node) -> Node {
        self.graph().typed("xlogy", [self, y], Options::default())
    }

    /// y = ζ(s, q) = Σ (q + k)⁻ˢ over k ≥ 0, with broadcasting, for s \> 1: the Hurwitz zeta function.
    ///
    /// ∞ at s = 1 and at q = 0, −1, −2, …; NaN for s \< 1, and for q \< 0 if s is not a whole number. For q \> 0
    /// accurate to 8 ulp (on NumPy, it is SciPy's function); for q \< 0 as accurate as `polygamma`. Derivatives exist
    /// to any order. With respect to q, they are as accurate as y. With respect to s, for which PyTorch and JAX have
    /// none, they are accurate to 1e-12 of the terms that they sum. With respect to s and then q, they are accurate to
    /// 1 ulp / (s − 1). SciPy and PyTorch: `special.zeta`. JAX: `zeta`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: ds = −g · Σ log(q + k) (q + k)⁻ˢ, dq = −g · s · zeta(s + 1, q).
    pub fn zeta(&self, q: &Node) -> Node {
        self.graph().typed("zeta", [self, q], Options::default())
    }
}

impl Graph {
    /// Evenly spaced numbers: y\[i\] = start + i · step, up to but not including stop.
    ///
    /// The result has ⌈(stop − start) / step⌉ elements, at least 0. Same as NumPy's arange, but exact: for an integer
    /// dtype, start and step must be whole numbers, and all numbers must be in its range.
    ///
    /// `stop`: end of the range, not included.
    pub fn arange(&self, stop: impl Into<Number>) -> Node {
        self.arange_with(stop, ArangeOptions::new())
    }

    /// Appends [`arange`](Self::arange) with options.
    pub fn arange_with(&self, stop: impl Into<Number>, options: ArangeOptions) -> Node {
        self.typed("arange", [], options.0.made::<Number>("stop", stop))
    }

    /// The results of body(operands).
    ///
    /// `derivative` defines a custom gradient: a function of the operands, the results and the cotangents of the
    /// results that returns one cotangent for each float operand. It replaces the derivative of the body. With
    /// `recompute`, no values inside the body are stored for the backward pass, which runs the body again.
    ///
    /// For `derivative`, JAX has `custom_vjp` and PyTorch has `autograd.Function`; their rules receive the values that
    /// the forward pass saved. For `recompute`, both have `checkpoint`.
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with `get_output`.
    ///
    /// Gradient: that of the body, or `derivative`.
    ///
    /// `body`: function of the operands.
    pub fn call<'n>(&self, operands: impl IntoIterator<Item = &'n Node>, body: &GraphFunction) -> Node {
        self.call_with(operands, body, CallOptions::new())
    }

    /// Appends [`call`](Self::call) with options.
    pub fn call_with<'n>(
        &self,
        operands: impl IntoIterator<Item = &'n Node>,
        body: &GraphFunction,
        options: CallOptions,
    ) -> Node {
        self.typed("call", operands, options.0.with("body", body))
    }

    /// y = the operands, joined along `axis`; their other extents must be equal.
    ///
    /// The result has their common dtype. `sizes`, if given, must be their extents on the axis.
    ///
    /// Gradient: g, split into the operands' parts.
    pub fn cat<'n>(&self, x: impl IntoIterator<Item = &'n Node>) -> Node {
        self.cat_with(x, CatOptions::new())
    }

    /// Appends [`cat`](Self::cat) with options.
    pub fn cat_with<'n>(&self, x: impl IntoIterator<Item = &'n Node>, options: CatOptions) -> Node {
        self.typed("cat", x, options.0)
    }

    /// then(operands) if the predicate, a bool \[\], is true, else otherwise(operands). Only one of them runs.
    ///
    /// Both functions must return results of the same types. JAX: `lax.cond`. PyTorch: `cond`.
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with `get_output`.
    ///
    /// Gradient: that of the function that ran; the other one contributes exact zeros.
    ///
    /// `then`: function of the operands after the predicate; runs if the predicate is true.
    ///
    /// `otherwise`: function of the same operands; runs if the predicate is false.
    pub fn cond<'n>(
        &self,
        predicate: &'n Node,
        operands: impl IntoIterator<Item = &'n Node>,
        then: &GraphFunction,
        otherwise: &GraphFunction,
    ) -> Node {
        self.typed(
            "cond",
            [predicate].into_iter().chain(operands),
            Options::default().with("then", then).with("otherwise", otherwise),
        )
    }

    /// A tensor that is part of the graph: y = value.
    ///
    /// `value`: value of the tensor.
    pub fn constant(&self, value: impl Into<Tensor>) -> Node {
        self.typed("constant", [], Options::default().made::<Tensor>("value", value))
    }

    /// y\[output letters\] = Σ a\[letters\] · b\[letters\] · … over all letters that are not in the output.
    ///
    /// For two operands, `equation` looks like "ab,bc-\>ac": a letter (a–z, A–Z) for each axis, a comma between
    /// operands, and after the arrow the axes of the result. Each letter has one extent and appears at most once in
    /// each operand. An ellipsis or an implicit output is not allowed; spaces are ignored. The number of operands is 1
    /// to 32. The result has the common dtype of the operands, as in NumPy.
    ///
    /// Operands are multiplied in pairs, each time the pair with the fewest multiplications, so that no step costs more
    /// than the equation evaluated as one loop (greedy order, as in numpy.einsum_path).
    ///
    /// Gradient: for each operand, the einsum of g with the other operands.
    ///
    /// `equation`: letters of each operand, then -\> and the letters of the result.
    pub fn einsum<'n>(&self, a: &'n Node, b: impl IntoIterator<Item = &'n Node>, equation: &str) -> Node {
        self.typed("einsum", [a].into_iter().chain(b), Options::default().with("equation", equation))
    }

    /// Repeats x = body(consts, x) until max |Δx| ≤ tolerance · (1 + max |x|), at most `max_steps` times.
    ///
    /// x stands for the `carries`, which must be floats; each maximum is over all of them, and max |x| is that of the
    /// new x. An infinity or NaN in x ends the iteration, unfinished. Results: x; `steps`, int64 \[\], the number of
    /// steps that ran; `finished`, bool \[\]. The gradient is implicit, as in JAX's `lax.custom_root`, which takes a
    /// solver. In PyTorch, write a Python loop and a custom rule.
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with `get_output`.
    ///
    /// Gradient: implicit: u = g + (∂body/∂x)ᵀu by the same iteration, then (∂body/∂consts)ᵀu; none for the initial x.
    ///
    /// `body`: function of consts and x; returns the next x.
    ///
    /// `tolerance`: largest change at which to stop, relative to 1 + max |x|; 0: no change.
    ///
    /// `max_steps`: maximum number of steps.
    pub fn fixed_point<'n>(
        &self,
        operands: impl IntoIterator<Item = &'n Node>,
        body: &GraphFunction,
        tolerance: f64,
        max_steps: i64,
    ) -> Node {
        self.fixed_point_with(operands, body, tolerance, max_steps, FixedPointOptions::new())
    }

    /// Appends [`fixed_point`](Self::fixed_point) with options.
    pub fn fixed_point_with<'n>(
        &self,
        operands: impl IntoIterator<Item = &'n Node>,
        body: &GraphFunction,
        tolerance: f64,
        max_steps: i64,
        options: FixedPointOptions,
    ) -> Node {
        self.typed(
            "fixed_point",
            operands,
            options.0.with("body", body).with("tolerance", tolerance).with("max_steps", max_steps),
        )
    }

    /// A tensor filled with one number, created on the server: y\[…\] = fill.
    ///
    /// An absent or empty `shape` makes a 0-d tensor. To fill with an infinity or NaN, use `fill_as`. PyTorch and JAX:
    /// `full`.
    pub fn full(&self) -> Node {
        self.full_with(FullOptions::new())
    }

    /// Appends [`full`](Self::full) with options.
    pub fn full_with(&self, options: FullOptions) -> Node {
        self.typed("full", [], options.0)
    }

    /// y = x\[i, j, …\]: entries or slices of x at index tensors, one for each of `axes`, which broadcast together.
    ///
    /// As in NumPy's x\[i, j\], the axes of the indices replace the indexed axes if these are adjacent, and come first
    /// otherwise. Indices lie in \[0, extent); with `from_end`, in \[−extent, extent), and negative ones count from the
    /// end. PyTorch and JAX: x\[i, j\], in which negative indices always count from the end. An index out of range is
    /// an error here and in PyTorch; JAX moves it into the range.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = index_add(0, indices, g): repeated indices accumulate; none for indices.
    pub fn index<'n>(&self, x: &'n Node, indices: impl IntoIterator<Item = &'n Node>) -> Node {
        self.index_with(x, indices, IndexOptions::new())
    }

    /// Appends [`index`](Self::index) with options.
    pub fn index_with<'n>(
        &self,
        x: &'n Node,
        indices: impl IntoIterator<Item = &'n Node>,
        options: IndexOptions,
    ) -> Node {
        self.typed("index", [x].into_iter().chain(indices), options.0)
    }

    /// y = x, then y\[i, j, …\] += updates, entry by entry: repeated indices accumulate.
    ///
    /// The operands are x, an index for each of `axes`, and updates, which broadcast to what `index` reads. Indices are
    /// as in `index`. PyTorch: `index_put` with accumulate. JAX: x.at\[i, j\].add, which drops updates that are out of
    /// range.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = g, d updates = index(g, indices); none for indices.
    pub fn index_add<'n>(&self, x: &'n Node, indices_and_updates: impl IntoIterator<Item = &'n Node>) -> Node {
        self.index_add_with(x, indices_and_updates, IndexAddOptions::new())
    }

    /// Appends [`index_add`](Self::index_add) with options.
    pub fn index_add_with<'n>(
        &self,
        x: &'n Node,
        indices_and_updates: impl IntoIterator<Item = &'n Node>,
        options: IndexAddOptions,
    ) -> Node {
        self.typed("index_add", [x].into_iter().chain(indices_and_updates), options.0)
    }

    /// y = x, then y\[i, j, …\] = updates. If a position is written twice, the last update in row-major order wins.
    ///
    /// Only the winning update gets a gradient. The operands are x, an index for each of `axes`, and updates, which
    /// broadcast to what `index` reads. Indices are as in `index`. PyTorch: `index_put`. JAX: x.at\[i, j\].set. Neither
    /// defines which of several updates wins; PyTorch sends the gradient to all of them, and JAX drops updates that are
    /// out of range.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = g, 0 where an update was written; d updates = g where the update won, else 0; none for indices.
    pub fn index_set<'n>(&self, x: &'n Node, indices_and_updates: impl IntoIterator<Item = &'n Node>) -> Node {
        self.index_set_with(x, indices_and_updates, IndexSetOptions::new())
    }

    /// Appends [`index_set`](Self::index_set) with options.
    pub fn index_set_with<'n>(
        &self,
        x: &'n Node,
        indices_and_updates: impl IntoIterator<Item = &'n Node>,
        options: IndexSetOptions,
    ) -> Node {
        self.typed("index_set", [x].into_iter().chain(indices_and_updates), options.0)
    }

    /// Data, fed with the request.
    ///
    /// Its gradient is computed only if `wrt` names it. A declared `dtype` or `shape` must match the feed.
    pub fn input(&self, name: &str) -> Node {
        self.input_with(name, InputOptions::new())
    }

    /// Appends [`input`](Self::input) with options.
    pub fn input_with(&self, name: &str, options: InputOptions) -> Node {
        self.typed("input", [], options.0).named(name)
    }

    /// stacks = body(consts, entry t of each sequence) for every t, in no particular order.
    ///
    /// The operands are consts, then `sequences` tensors of equal leading extent. `at_once` entries are computed in one
    /// batch. Each result of the body gives a stack \[entries, …\]. JAX: `lax.map`, whose batch_size is `at_once`. JAX
    /// and PyTorch: `vmap`, which computes all entries in one batch.
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with `get_output`.
    ///
    /// Gradient: a map of the body's gradient, summed over the entries for consts.
    ///
    /// `body`: function of consts and one entry of each sequence; returns the values to stack.
    pub fn map<'n>(&self, operands: impl IntoIterator<Item = &'n Node>, body: &GraphFunction) -> Node {
        self.map_with(operands, body, MapOptions::new())
    }

    /// Appends [`map`](Self::map) with options.
    pub fn map_with<'n>(
        &self,
        operands: impl IntoIterator<Item = &'n Node>,
        body: &GraphFunction,
        options: MapOptions,
    ) -> Node {
        self.typed("map", operands, options.0.with("body", body))
    }

    /// A trainable tensor, fed with the request.
    ///
    /// Same as `input`, but part of `wrt` by default.
    pub fn parameter(&self, name: &str) -> Node {
        self.parameter_with(name, ParameterOptions::new())
    }

    /// Appends [`parameter`](Self::parameter) with options.
    pub fn parameter_with(&self, name: &str, options: ParameterOptions) -> Node {
        self.typed("parameter", [], options.0).named(name)
    }

    /// carries, stacks = body(consts, carries, entry t of each sequence), step by step for t = 0 … length − 1.
    ///
    /// The operands are consts, then `carries` initial values, then `sequences` tensors that are read along the leading
    /// axis; with `reverse`, from the last entry to the first. The body returns the carries for the next step, of the
    /// same types, and then values to stack. Entry t of a stack is the value from step t. Results: the last carries,
    /// then the stacks \[length, …\]. JAX: `lax.scan`, whose body can read variables around it. PyTorch: a Python loop.
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with `get_output`.
    ///
    /// Gradient: a scan in the opposite direction that recomputes each step.
    ///
    /// `body`: function of consts, carries and one entry of each sequence; returns carries, then values to stack.
    pub fn scan<'n>(&self, operands: impl IntoIterator<Item = &'n Node>, body: &GraphFunction) -> Node {
        self.scan_with(operands, body, ScanOptions::new())
    }

    /// Appends [`scan`](Self::scan) with options.
    pub fn scan_with<'n>(
        &self,
        operands: impl IntoIterator<Item = &'n Node>,
        body: &GraphFunction,
        options: ScanOptions,
    ) -> Node {
        self.typed("scan", operands, options.0.with("body", body))
    }

    /// y = the operands, all of one shape, joined along a new axis at position `axis` of the result.
    ///
    /// The result has their common dtype.
    ///
    /// Gradient: for each operand, its part of g.
    pub fn stack<'n>(&self, x: impl IntoIterator<Item = &'n Node>) -> Node {
        self.stack_with(x, StackOptions::new())
    }

    /// Appends [`stack`](Self::stack) with options.
    pub fn stack_with<'n>(&self, x: impl IntoIterator<Item = &'n Node>, options: StackOptions) -> Node {
        self.typed("stack", x, options.0)
    }

    /// Repeats carries = body(consts, carries) while condition(consts, carries) is true, at most `max_steps` times.
    ///
    /// The condition returns a bool \[\]. It is evaluated before each step, and after the last step that is allowed.
    /// Results: the carries; `steps`, int64 \[\], the number of steps that ran; `finished`, bool \[\], false if the
    /// loop stopped at the bound. JAX: `lax.while_loop`, which has no bound and supports forward-mode derivatives only.
    /// PyTorch: a Python loop.
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with `get_output`.
    ///
    /// Gradient: backward over the steps that ran, recomputing each; the condition and `steps` have none.
    ///
    /// `condition`: function of consts and carries; returns whether to continue, a bool \[\].
    ///
    /// `body`: function of consts and carries; returns the next carries.
    ///
    /// `max_steps`: maximum number of steps.
    pub fn while_<'n>(
        &self,
        operands: impl IntoIterator<Item = &'n Node>,
        condition: &GraphFunction,
        body: &GraphFunction,
        max_steps: i64,
    ) -> Node {
        self.while_with(operands, condition, body, max_steps, WhileOptions::new())
    }

    /// Appends [`while_`](Self::while_) with options.
    pub fn while_with<'n>(
        &self,
        operands: impl IntoIterator<Item = &'n Node>,
        condition: &GraphFunction,
        body: &GraphFunction,
        max_steps: i64,
        options: WhileOptions,
    ) -> Node {
        self.typed(
            "while",
            operands,
            options.0.with("condition", condition).with("body", body).with("max_steps", max_steps),
        )
    }
}

/// Options of [`Node::all_with`].
#[derive(Clone, Debug, Default)]
pub struct AllOptions(Options);

impl AllOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reduce; default: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Whether to keep the reduced axes, with extent 1; default false.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// Options of [`Node::any_with`].
#[derive(Clone, Debug, Default)]
pub struct AnyOptions(Options);

impl AnyOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reduce; default: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Whether to keep the reduced axes, with extent 1; default false.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// Options of [`Graph::arange_with`].
#[derive(Clone, Debug, Default)]
pub struct ArangeOptions(Options);

impl ArangeOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// First number; default 0.0.
    pub fn start(self, start: impl Into<Number>) -> Self {
        Self(self.0.made::<Number>("start", start))
    }

    /// Distance between numbers; negative to count down, not 0; default 1.0.
    pub fn step(self, step: impl Into<Number>) -> Self {
        Self(self.0.made::<Number>("step", step))
    }

    /// Dtype of the result; default int64.
    pub fn dtype(self, dtype: impl Into<DType>) -> Self {
        Self(self.0.made::<DType>("dtype", dtype))
    }
}

/// Options of [`Node::argmax_with`].
#[derive(Clone, Debug, Default)]
pub struct ArgmaxOptions(Options);

impl ArgmaxOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to keep the reduced axes, with extent 1; default false.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// Options of [`Node::argmin_with`].
#[derive(Clone, Debug, Default)]
pub struct ArgminOptions(Options);

impl ArgminOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to keep the reduced axes, with extent 1; default false.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// Options of [`Node::attention_with`].
#[derive(Clone, Debug, Default)]
pub struct AttentionOptions(Options);

impl AttentionOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets operand 3, which is optional.
    pub fn mask(self, mask: &Node) -> Self {
        Self(self.0.operand(3, mask))
    }

    /// Factor of q kᵀ; default: 1/√d.
    pub fn scale(self, scale: f64) -> Self {
        Self(self.0.with("scale", scale))
    }

    /// Whether to hide key j from query i if j \> i; default false.
    pub fn causal(self, causal: bool) -> Self {
        Self(self.0.with("causal", causal))
    }

    /// Whether each head of k and v serves several heads of q; axis -3; since opset 2; default false.
    pub fn grouped(self, grouped: bool) -> Self {
        Self(self.0.with("grouped", grouped))
    }
}

/// Options of [`Node::avg_pool1d_with`].
#[derive(Clone, Debug, Default)]
pub struct AvgPool1dOptions(Options);

impl AvgPool1dOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Distance between windows along each spatial axis; default: the kernel size.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Padding on both sides of each axis; at most half the kernel size; default \[0\].
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }

    /// Whether to count a last window that extends past the end padding but starts before it; default false.
    pub fn ceiling(self, ceiling: bool) -> Self {
        Self(self.0.with("ceiling", ceiling))
    }
}

/// Options of [`Node::avg_pool2d_with`].
#[derive(Clone, Debug, Default)]
pub struct AvgPool2dOptions(Options);

impl AvgPool2dOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Distance between windows along each spatial axis; default: the kernel size.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Padding on both sides of each spatial axis; at most half the kernel size; default \[0, 0\].
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }
}

/// Options of [`Node::avg_pool3d_with`].
#[derive(Clone, Debug, Default)]
pub struct AvgPool3dOptions(Options);

impl AvgPool3dOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Distance between windows along each spatial axis; default: the kernel size.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Padding on both sides of each axis; at most half the kernel size; default \[0, 0, 0\].
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }

    /// Whether to count a last window that extends past the end padding but starts before it; default false.
    pub fn ceiling(self, ceiling: bool) -> Self {
        Self(self.0.with("ceiling", ceiling))
    }
}

/// Options of [`Node::batch_norm_with`].
#[derive(Clone, Debug, Default)]
pub struct BatchNormOptions(Options);

impl BatchNormOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets operand 1, which is optional.
    pub fn weight(self, weight: &Node) -> Self {
        Self(self.0.operand(1, weight))
    }

    /// Sets operand 2, which is optional.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(2, bias))
    }

    /// Axis of the features; default 1.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }

    /// Positive number added to the variance or mean square; default 1e-05.
    pub fn eps(self, eps: f64) -> Self {
        Self(self.0.with("eps", eps))
    }
}

/// Options of [`Node::batch_norm_given_with`].
#[derive(Clone, Debug, Default)]
pub struct BatchNormGivenOptions(Options);

impl BatchNormGivenOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets operand 3, which is optional.
    pub fn weight(self, weight: &Node) -> Self {
        Self(self.0.operand(3, weight))
    }

    /// Sets operand 4, which is optional.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(4, bias))
    }

    /// Axis of the features; default 1.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }

    /// Positive number added to the variance or mean square; default 1e-05.
    pub fn eps(self, eps: f64) -> Self {
        Self(self.0.with("eps", eps))
    }
}

/// Options of [`Node::batch_norm_running_with`].
#[derive(Clone, Debug, Default)]
pub struct BatchNormRunningOptions(Options);

impl BatchNormRunningOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets operand 3, which is optional.
    pub fn weight(self, weight: &Node) -> Self {
        Self(self.0.operand(3, weight))
    }

    /// Sets operand 4, which is optional.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(4, bias))
    }

    /// Axis of the features; default 1.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }

    /// Positive number added to the variance or mean square; default 1e-05.
    pub fn eps(self, eps: f64) -> Self {
        Self(self.0.with("eps", eps))
    }

    /// Weight of the batch's statistics in the running ones; default 0.1.
    pub fn momentum(self, momentum: f64) -> Self {
        Self(self.0.with("momentum", momentum))
    }
}

/// Options of [`Node::bce_with_logits_with`].
#[derive(Clone, Debug, Default)]
pub struct BceWithLogitsOptions(Options);

impl BceWithLogitsOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// How to combine the losses; none: return each one; one of mean, sum, none; default mean.
    pub fn reduction(self, reduction: &str) -> Self {
        Self(self.0.with("reduction", reduction))
    }
}

/// Options of [`Node::broadcast_to_with`].
#[derive(Clone, Debug, Default)]
pub struct BroadcastToOptions(Options);

impl BroadcastToOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Shape of the result; default \[\].
    pub fn shape(self, shape: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("shape", shape))
    }
}

/// Options of [`Graph::call_with`].
#[derive(Clone, Debug, Default)]
pub struct CallOptions(Options);

impl CallOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Function of operands, results and cotangents; returns a cotangent for each float operand; default: the body's
    /// derivative.
    pub fn derivative(self, derivative: &GraphFunction) -> Self {
        Self(self.0.with("derivative", derivative))
    }

    /// Whether the backward pass recomputes the body instead of storing its values; default false.
    pub fn recompute(self, recompute: bool) -> Self {
        Self(self.0.with("recompute", recompute))
    }
}

/// Options of [`Graph::cat_with`].
#[derive(Clone, Debug, Default)]
pub struct CatOptions(Options);

impl CatOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axis to join along; default 0.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }

    /// The operands' extents on the axis, checked if given.
    pub fn sizes(self, sizes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("sizes", sizes))
    }
}

/// Options of [`Node::cdist_with`].
#[derive(Clone, Debug, Default)]
pub struct CdistOptions(Options);

impl CdistOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Exponent; positive; default 2.0.
    pub fn p(self, p: f64) -> Self {
        Self(self.0.with("p", p))
    }
}

/// Options of [`Node::chunk_with`].
#[derive(Clone, Debug, Default)]
pub struct ChunkOptions(Options);

impl ChunkOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axis to split; default 0.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }
}

/// Options of [`Node::clamp_with`].
#[derive(Clone, Debug, Default)]
pub struct ClampOptions(Options);

impl ClampOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lower bound; default: none.
    pub fn min(self, min: impl Into<Number>) -> Self {
        Self(self.0.made::<Number>("min", min))
    }

    /// Upper bound; default: none.
    pub fn max(self, max: impl Into<Number>) -> Self {
        Self(self.0.made::<Number>("max", max))
    }
}

/// Options of [`Node::compress_with`].
#[derive(Clone, Debug, Default)]
pub struct CompressOptions(Options);

impl CompressOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axis that the mask applies to; default 0.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }

    /// Value of the remaining entries; default 0.0.
    pub fn fill(self, fill: impl Into<Number>) -> Self {
        Self(self.0.made::<Number>("fill", fill))
    }

    /// Infinity or NaN to use instead of `fill`; float dtypes only; one of inf, -inf, nan.
    pub fn fill_as(self, fill_as: &str) -> Self {
        Self(self.0.with("fill_as", fill_as))
    }
}

/// Options of [`Node::conv1d_with`].
#[derive(Clone, Debug, Default)]
pub struct Conv1dOptions(Options);

impl Conv1dOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets operand 2, which is optional.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(2, bias))
    }

    /// Distance between windows along each spatial axis; default \[1\].
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Zeros added on both sides of each spatial axis; default \[0\].
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }

    /// Distance between the kernel's taps along each spatial axis; default \[1\].
    pub fn dilation(self, dilation: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("dilation", dilation))
    }

    /// Number of equal groups of channels, each with its own kernels; default 1.
    pub fn groups(self, groups: i64) -> Self {
        Self(self.0.with("groups", groups))
    }
}

/// Options of [`Node::conv2d_with`].
#[derive(Clone, Debug, Default)]
pub struct Conv2dOptions(Options);

impl Conv2dOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets operand 2, which is optional.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(2, bias))
    }

    /// Distance between windows along each spatial axis; default \[1, 1\].
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Zeros added on both sides of each spatial axis; default \[0, 0\].
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }

    /// Distance between the kernel's taps along each spatial axis; default \[1, 1\].
    pub fn dilation(self, dilation: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("dilation", dilation))
    }

    /// Number of equal groups of channels, each with its own kernels; default 1.
    pub fn groups(self, groups: i64) -> Self {
        Self(self.0.with("groups", groups))
    }
}

/// Options of [`Node::conv3d_with`].
#[derive(Clone, Debug, Default)]
pub struct Conv3dOptions(Options);

impl Conv3dOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets operand 2, which is optional.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(2, bias))
    }

    /// Distance between windows along each spatial axis; default \[1, 1, 1\].
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Zeros added on both sides of each spatial axis; default \[0, 0, 0\].
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }

    /// Distance between the kernel's taps along each spatial axis; default \[1, 1, 1\].
    pub fn dilation(self, dilation: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("dilation", dilation))
    }

    /// Number of equal groups of channels, each with its own kernels; default 1.
    pub fn groups(self, groups: i64) -> Self {
        Self(self.0.with("groups", groups))
    }
}

/// Options of [`Node::conv_transpose1d_with`].
#[derive(Clone, Debug, Default)]
pub struct ConvTranspose1dOptions(Options);

impl ConvTranspose1dOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets operand 2, which is optional.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(2, bias))
    }

    /// Distance between windows along each spatial axis; default \[1\].
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Zeros added on both sides of each spatial axis; default \[0\].
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }

    /// Distance between the kernel's taps along each spatial axis; default \[1\].
    pub fn dilation(self, dilation: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("dilation", dilation))
    }

    /// Number of equal groups of channels, each with its own kernels; default 1.
    pub fn groups(self, groups: i64) -> Self {
        Self(self.0.with("groups", groups))
    }

    /// Extent added at the end of each spatial axis of the result; default \[0\].
    pub fn output_padding(self, output_padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("output_padding", output_padding))
    }
}

/// Options of [`Node::conv_transpose2d_with`].
#[derive(Clone, Debug, Default)]
pub struct ConvTranspose2dOptions(Options);

impl ConvTranspose2dOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets operand 2, which is optional.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(2, bias))
    }

    /// Distance between windows along each spatial axis; default \[1, 1\].
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Zeros added on both sides of each spatial axis; default \[0, 0\].
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }

    /// Distance between the kernel's taps along each spatial axis; default \[1, 1\].
    pub fn dilation(self, dilation: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("dilation", dilation))
    }

    /// Number of equal groups of channels, each with its own kernels; default 1.
    pub fn groups(self, groups: i64) -> Self {
        Self(self.0.with("groups", groups))
    }

    /// Extent added at the end of each spatial axis of the result; default \[0, 0\].
    pub fn output_padding(self, output_padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("output_padding", output_padding))
    }
}

/// Options of [`Node::conv_transpose3d_with`].
#[derive(Clone, Debug, Default)]
pub struct ConvTranspose3dOptions(Options);

impl ConvTranspose3dOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets operand 2, which is optional.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(2, bias))
    }

    /// Distance between windows along each spatial axis; default \[1, 1, 1\].
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Zeros added on both sides of each spatial axis; default \[0, 0, 0\].
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }

    /// Distance between the kernel's taps along each spatial axis; default \[1, 1, 1\].
    pub fn dilation(self, dilation: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("dilation", dilation))
    }

    /// Number of equal groups of channels, each with its own kernels; default 1.
    pub fn groups(self, groups: i64) -> Self {
        Self(self.0.with("groups", groups))
    }

    /// Extent added at the end of each spatial axis of the result; default \[0, 0, 0\].
    pub fn output_padding(self, output_padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("output_padding", output_padding))
    }
}

/// Options of [`Node::cross_entropy_with`].
#[derive(Clone, Debug, Default)]
pub struct CrossEntropyOptions(Options);

impl CrossEntropyOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// How to combine the losses; none: return each one; one of mean, sum, none; default mean.
    pub fn reduction(self, reduction: &str) -> Self {
        Self(self.0.with("reduction", reduction))
    }
}

/// Options of [`Node::cumlogsumexp_with`].
#[derive(Clone, Debug, Default)]
pub struct CumlogsumexpOptions(Options);

impl CumlogsumexpOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to accumulate from the end to the front; default false.
    pub fn reverse(self, reverse: bool) -> Self {
        Self(self.0.with("reverse", reverse))
    }
}

/// Options of [`Node::cummax_with`].
#[derive(Clone, Debug, Default)]
pub struct CummaxOptions(Options);

impl CummaxOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to accumulate from the end to the front; default false.
    pub fn reverse(self, reverse: bool) -> Self {
        Self(self.0.with("reverse", reverse))
    }
}

/// Options of [`Node::cummin_with`].
#[derive(Clone, Debug, Default)]
pub struct CumminOptions(Options);

impl CumminOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to accumulate from the end to the front; default false.
    pub fn reverse(self, reverse: bool) -> Self {
        Self(self.0.with("reverse", reverse))
    }
}

/// Options of [`Node::cumprod_with`].
#[derive(Clone, Debug, Default)]
pub struct CumprodOptions(Options);

impl CumprodOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to accumulate from the end to the front; default false.
    pub fn reverse(self, reverse: bool) -> Self {
        Self(self.0.with("reverse", reverse))
    }
}

/// Options of [`Node::cumsum_with`].
#[derive(Clone, Debug, Default)]
pub struct CumsumOptions(Options);

impl CumsumOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to accumulate from the end to the front; since opset 2; default false.
    pub fn reverse(self, reverse: bool) -> Self {
        Self(self.0.with("reverse", reverse))
    }
}

/// Options of [`Node::diag_with`].
#[derive(Clone, Debug, Default)]
pub struct DiagOptions(Options);

impl DiagOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Diagonal: 0 is the main one, positive above it, negative below it; default 0.
    pub fn offset(self, offset: i64) -> Self {
        Self(self.0.with("offset", offset))
    }
}

/// Options of [`Node::eigh_with`].
#[derive(Clone, Debug, Default)]
pub struct EighOptions(Options);

impl EighOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gradient through vectors of equal values; nan: NaN; whole: assume that only whole spaces matter; one of nan,
    /// whole; default nan.
    pub fn degenerate(self, degenerate: &str) -> Self {
        Self(self.0.with("degenerate", degenerate))
    }
}

/// Options of [`Node::elu_with`].
#[derive(Clone, Debug, Default)]
pub struct EluOptions(Options);

impl EluOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limit of −y for x → −∞; default 1.0.
    pub fn alpha(self, alpha: f64) -> Self {
        Self(self.0.with("alpha", alpha))
    }
}

/// Options of [`Node::embedding_with`].
#[derive(Clone, Debug, Default)]
pub struct EmbeddingOptions(Options);

impl EmbeddingOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether negative indices count from the end; −1 is the last; since opset 2; default false.
    pub fn from_end(self, from_end: bool) -> Self {
        Self(self.0.with("from_end", from_end))
    }

    /// Row that gets no gradient but is read as usual; default: none; since opset 2.
    pub fn padding_idx(self, padding_idx: i64) -> Self {
        Self(self.0.with("padding_idx", padding_idx))
    }
}

/// Options of [`Node::fft_with`].
#[derive(Clone, Debug, Default)]
pub struct FftOptions(Options);

impl FftOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to transform; default: the last axis, or as many last axes as there are sizes.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Points on each axis, to which x is cut or zero-padded; default: x's extents.
    pub fn sizes(self, sizes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("sizes", sizes))
    }

    /// Direction that divides by the number of points; ortho: both, by its square root; one of backward, ortho,
    /// forward; default backward.
    pub fn norm(self, norm: &str) -> Self {
        Self(self.0.with("norm", norm))
    }
}

/// Options of [`Graph::fixed_point_with`].
#[derive(Clone, Debug, Default)]
pub struct FixedPointOptions(Options);

impl FixedPointOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of operands, the last ones, that are the initial x; at least one; default 0.
    pub fn carries(self, carries: i64) -> Self {
        Self(self.0.with("carries", carries))
    }
}

/// Options of [`Node::flatten_with`].
#[derive(Clone, Debug, Default)]
pub struct FlattenOptions(Options);

impl FlattenOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adjacent axes to merge; default: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }
}

/// Options of [`Node::flip_with`].
#[derive(Clone, Debug, Default)]
pub struct FlipOptions(Options);

impl FlipOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reverse; default: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }
}

/// Options of [`Graph::full_with`].
#[derive(Clone, Debug, Default)]
pub struct FullOptions(Options);

impl FullOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Shape of the result; default \[\].
    pub fn shape(self, shape: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("shape", shape))
    }

    /// Value of every element; default 0.0.
    pub fn fill(self, fill: impl Into<Number>) -> Self {
        Self(self.0.made::<Number>("fill", fill))
    }

    /// Dtype of the result; default float64.
    pub fn dtype(self, dtype: impl Into<DType>) -> Self {
        Self(self.0.made::<DType>("dtype", dtype))
    }

    /// Infinity or NaN to use instead of `fill`; float dtypes only; since opset 2; one of inf, -inf, nan.
    pub fn fill_as(self, fill_as: &str) -> Self {
        Self(self.0.with("fill_as", fill_as))
    }
}

/// Options of [`Node::gather_with`].
#[derive(Clone, Debug, Default)]
pub struct GatherOptions(Options);

impl GatherOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets operand 1, which is optional.
    pub fn index(self, index: &Node) -> Self {
        Self(self.0.operand(1, index))
    }

    /// Axis to index; default 0.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }

    /// Positions on the axis, instead of `index`.
    pub fn indices(self, indices: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("indices", indices))
    }

    /// Whether negative indices count from the end; −1 is the last; since opset 2; default false.
    pub fn from_end(self, from_end: bool) -> Self {
        Self(self.0.with("from_end", from_end))
    }
}

/// Options of [`Node::gelu_with`].
#[derive(Clone, Debug, Default)]
pub struct GeluOptions(Options);

impl GeluOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// None: use the error function; tanh: approximate it; one of none, tanh; default none.
    pub fn approximate(self, approximate: &str) -> Self {
        Self(self.0.with("approximate", approximate))
    }
}

/// Options of [`Node::grad_with`].
#[derive(Clone, Debug, Default)]
pub struct GradOptions(Options);

impl GradOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets operand 2, which is optional.
    pub fn cotangent(self, cotangent: &Node) -> Self {
        Self(self.0.operand(2, cotangent))
    }
}

/// Options of [`Node::group_norm_with`].
#[derive(Clone, Debug, Default)]
pub struct GroupNormOptions(Options);

impl GroupNormOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets operand 1, which is optional.
    pub fn weight(self, weight: &Node) -> Self {
        Self(self.0.operand(1, weight))
    }

    /// Sets operand 2, which is optional.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(2, bias))
    }

    /// Positive number added to the variance or mean square; default 1e-05.
    pub fn eps(self, eps: f64) -> Self {
        Self(self.0.with("eps", eps))
    }
}

/// Options of [`Node::ifft_with`].
#[derive(Clone, Debug, Default)]
pub struct IfftOptions(Options);

impl IfftOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to transform; default: the last axis, or as many last axes as there are sizes.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Points on each axis, to which x is cut or zero-padded; default: x's extents.
    pub fn sizes(self, sizes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("sizes", sizes))
    }

    /// Direction that divides by the number of points; ortho: both, by its square root; one of backward, ortho,
    /// forward; default backward.
    pub fn norm(self, norm: &str) -> Self {
        Self(self.0.with("norm", norm))
    }
}

/// Options of [`Graph::index_with`].
#[derive(Clone, Debug, Default)]
pub struct IndexOptions(Options);

impl IndexOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axis of each index; default: the first axes, in order.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Whether negative indices count from the end; −1 is the last; default false.
    pub fn from_end(self, from_end: bool) -> Self {
        Self(self.0.with("from_end", from_end))
    }
}

/// Options of [`Graph::index_add_with`].
#[derive(Clone, Debug, Default)]
pub struct IndexAddOptions(Options);

impl IndexAddOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axis of each index; default: the first axes, in order.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Whether negative indices count from the end; −1 is the last; default false.
    pub fn from_end(self, from_end: bool) -> Self {
        Self(self.0.with("from_end", from_end))
    }
}

/// Options of [`Graph::index_set_with`].
#[derive(Clone, Debug, Default)]
pub struct IndexSetOptions(Options);

impl IndexSetOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axis of each index; default: the first axes, in order.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Whether negative indices count from the end; −1 is the last; default false.
    pub fn from_end(self, from_end: bool) -> Self {
        Self(self.0.with("from_end", from_end))
    }
}

/// Options of [`Graph::input_with`].
#[derive(Clone, Debug, Default)]
pub struct InputOptions(Options);

impl InputOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Required dtype of the feed; default: any.
    pub fn dtype(self, dtype: impl Into<DType>) -> Self {
        Self(self.0.made::<DType>("dtype", dtype))
    }

    /// Required shape of the feed, -1 for any extent; default: any.
    pub fn shape(self, shape: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("shape", shape))
    }

    /// Whether the feed must be 0-d; default false.
    pub fn zero_d(self, zero_d: bool) -> Self {
        Self(self.0.with("zero_d", zero_d))
    }
}

/// Options of [`Node::irfft_with`].
#[derive(Clone, Debug, Default)]
pub struct IrfftOptions(Options);

impl IrfftOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to transform; default: the last axis, or as many last axes as there are sizes.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Points on each axis, to which x is cut or zero-padded; default: x's extents.
    pub fn sizes(self, sizes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("sizes", sizes))
    }

    /// Direction that divides by the number of points; ortho: both, by its square root; one of backward, ortho,
    /// forward; default backward.
    pub fn norm(self, norm: &str) -> Self {
        Self(self.0.with("norm", norm))
    }
}

/// Options of [`Node::layer_norm_with`].
#[derive(Clone, Debug, Default)]
pub struct LayerNormOptions(Options);

impl LayerNormOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets operand 1, which is optional.
    pub fn weight(self, weight: &Node) -> Self {
        Self(self.0.operand(1, weight))
    }

    /// Sets operand 2, which is optional.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(2, bias))
    }

    /// Axes to normalise over; default \[-1\].
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Positive number added to the variance or mean square; default 1e-05.
    pub fn eps(self, eps: f64) -> Self {
        Self(self.0.with("eps", eps))
    }
}

/// Options of [`Node::leaky_relu_with`].
#[derive(Clone, Debug, Default)]
pub struct LeakyReluOptions(Options);

impl LeakyReluOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Slope for x ≤ 0; default 0.01.
    pub fn alpha(self, alpha: f64) -> Self {
        Self(self.0.with("alpha", alpha))
    }
}

/// Options of [`Node::linear_with`].
#[derive(Clone, Debug, Default)]
pub struct LinearOptions(Options);

impl LinearOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets operand 2, which is optional.
    pub fn b(self, b: &Node) -> Self {
        Self(self.0.operand(2, b))
    }

    /// Op applied to the sum; one of none, relu, tanh, sigmoid, gelu, silu, elu, selu, sin; default none.
    pub fn activation(self, activation: &str) -> Self {
        Self(self.0.with("activation", activation))
    }
}

/// Options of [`Node::log_eps_with`].
#[derive(Clone, Debug, Default)]
pub struct LogEpsOptions(Options);

impl LogEpsOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number added to x; default 1e-05.
    pub fn eps(self, eps: f64) -> Self {
        Self(self.0.with("eps", eps))
    }
}

/// Options of [`Node::log_softmax_with`].
#[derive(Clone, Debug, Default)]
pub struct LogSoftmaxOptions(Options);

impl LogSoftmaxOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axis to normalise along; default -1.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }
}

/// Options of [`Node::logsumexp_with`].
#[derive(Clone, Debug, Default)]
pub struct LogsumexpOptions(Options);

impl LogsumexpOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reduce; default: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Whether to keep the reduced axes, with extent 1; default false.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// Options of [`Node::lstsq_with`].
#[derive(Clone, Debug, Default)]
pub struct LstsqOptions(Options);

impl LstsqOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Singular values up to this fraction of the largest count as 0; default: none, and the columns must be
    /// independent.
    pub fn rcond(self, rcond: f64) -> Self {
        Self(self.0.with("rcond", rcond))
    }
}

/// Options of [`Graph::map_with`].
#[derive(Clone, Debug, Default)]
pub struct MapOptions(Options);

impl MapOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of operands, the last ones, that are sequences; at least one; default 0.
    pub fn sequences(self, sequences: i64) -> Self {
        Self(self.0.with("sequences", sequences))
    }

    /// Number of entries computed in one batch; default: as many as fit.
    pub fn at_once(self, at_once: i64) -> Self {
        Self(self.0.with("at_once", at_once))
    }
}

/// Options of [`Node::max_with`].
#[derive(Clone, Debug, Default)]
pub struct MaxOptions(Options);

impl MaxOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reduce; default: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Whether to keep the reduced axes, with extent 1; default false.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// Options of [`Node::max_pool1d_with`].
#[derive(Clone, Debug, Default)]
pub struct MaxPool1dOptions(Options);

impl MaxPool1dOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Distance between windows along each spatial axis; default: the kernel size.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Padding on both sides of each axis; at most half the kernel size; default \[0\].
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }

    /// Distance between a window's taps along each axis; default \[1\].
    pub fn dilation(self, dilation: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("dilation", dilation))
    }

    /// Whether to count a last window that extends past the end padding but starts before it; default false.
    pub fn ceiling(self, ceiling: bool) -> Self {
        Self(self.0.with("ceiling", ceiling))
    }
}

/// Options of [`Node::max_pool2d_with`].
#[derive(Clone, Debug, Default)]
pub struct MaxPool2dOptions(Options);

impl MaxPool2dOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Distance between windows along each spatial axis; default: the kernel size.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Padding on both sides of each spatial axis; at most half the kernel size; default \[0, 0\].
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }
}

/// Options of [`Node::max_pool2d_back_with`].
#[derive(Clone, Debug, Default)]
pub struct MaxPool2dBackOptions(Options);

impl MaxPool2dBackOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Distance between windows along each spatial axis; default: the kernel size.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Padding on both sides of each spatial axis; at most half the kernel size; default \[0, 0\].
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }
}

/// Options of [`Node::max_pool2d_indices_with`].
#[derive(Clone, Debug, Default)]
pub struct MaxPool2dIndicesOptions(Options);

impl MaxPool2dIndicesOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Distance between windows along each spatial axis; default: the kernel size.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Padding on both sides of each spatial axis; at most half the kernel size; default \[0, 0\].
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }
}

/// Options of [`Node::max_pool3d_with`].
#[derive(Clone, Debug, Default)]
pub struct MaxPool3dOptions(Options);

impl MaxPool3dOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Distance between windows along each spatial axis; default: the kernel size.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Padding on both sides of each axis; at most half the kernel size; default \[0, 0, 0\].
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }

    /// Distance between a window's taps along each axis; default \[1, 1, 1\].
    pub fn dilation(self, dilation: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("dilation", dilation))
    }

    /// Whether to count a last window that extends past the end padding but starts before it; default false.
    pub fn ceiling(self, ceiling: bool) -> Self {
        Self(self.0.with("ceiling", ceiling))
    }
}

/// Options of [`Node::mean_with`].
#[derive(Clone, Debug, Default)]
pub struct MeanOptions(Options);

impl MeanOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reduce; default: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Whether to keep the reduced axes, with extent 1; default false.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// Options of [`Node::min_with`].
#[derive(Clone, Debug, Default)]
pub struct MinOptions(Options);

impl MinOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reduce; default: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Whether to keep the reduced axes, with extent 1; default false.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// Options of [`Node::mlp_layer_with`].
#[derive(Clone, Debug, Default)]
pub struct MlpLayerOptions(Options);

impl MlpLayerOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Op applied to the sum; one of none, relu, tanh, sigmoid, gelu, silu, elu, selu, sin; default none.
    pub fn activation(self, activation: &str) -> Self {
        Self(self.0.with("activation", activation))
    }
}

/// Options of [`Node::mse_loss_with`].
#[derive(Clone, Debug, Default)]
pub struct MseLossOptions(Options);

impl MseLossOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// How to combine the losses; none: return each one; one of mean, sum, none; default mean.
    pub fn reduction(self, reduction: &str) -> Self {
        Self(self.0.with("reduction", reduction))
    }
}

/// Options of [`Node::norm_with`].
#[derive(Clone, Debug, Default)]
pub struct NormOptions(Options);

impl NormOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reduce; default: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Whether to keep the reduced axes, with extent 1; default false.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// Options of [`Node::one_hot_with`].
#[derive(Clone, Debug, Default)]
pub struct OneHotOptions(Options);

impl OneHotOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Dtype of the result; default float64.
    pub fn dtype(self, dtype: impl Into<DType>) -> Self {
        Self(self.0.made::<DType>("dtype", dtype))
    }
}

/// Options of [`Node::pad_with`].
#[derive(Clone, Debug, Default)]
pub struct PadOptions(Options);

impl PadOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Value of the padding; default 0.0.
    pub fn fill(self, fill: impl Into<Number>) -> Self {
        Self(self.0.made::<Number>("fill", fill))
    }

    /// Infinity or NaN to use instead of `fill`; float dtypes only; since opset 2; one of inf, -inf, nan.
    pub fn fill_as(self, fill_as: &str) -> Self {
        Self(self.0.with("fill_as", fill_as))
    }
}

/// Options of [`Graph::parameter_with`].
#[derive(Clone, Debug, Default)]
pub struct ParameterOptions(Options);

impl ParameterOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Required dtype of the feed; default: any.
    pub fn dtype(self, dtype: impl Into<DType>) -> Self {
        Self(self.0.made::<DType>("dtype", dtype))
    }

    /// Required shape of the feed, -1 for any extent; default: any.
    pub fn shape(self, shape: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("shape", shape))
    }

    /// Whether the feed must be 0-d; default false.
    pub fn zero_d(self, zero_d: bool) -> Self {
        Self(self.0.with("zero_d", zero_d))
    }
}

/// Options of [`Node::pinv_with`].
#[derive(Clone, Debug, Default)]
pub struct PinvOptions(Options);

impl PinvOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Singular values up to this fraction of the largest count as 0; default: max(m, n) ε.
    pub fn rcond(self, rcond: f64) -> Self {
        Self(self.0.with("rcond", rcond))
    }
}

/// Options of [`Node::pow_with`].
#[derive(Clone, Debug, Default)]
pub struct PowOptions(Options);

impl PowOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets operand 1, which is optional.
    pub fn b(self, b: &Node) -> Self {
        Self(self.0.operand(1, b))
    }

    /// Exponent, if there is no operand b.
    pub fn exponent(self, exponent: f64) -> Self {
        Self(self.0.with("exponent", exponent))
    }
}

/// Options of [`Node::prod_with`].
#[derive(Clone, Debug, Default)]
pub struct ProdOptions(Options);

impl ProdOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reduce; default: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Whether to keep the reduced axes, with extent 1; default false.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// Options of [`Node::random_bits_with`].
#[derive(Clone, Debug, Default)]
pub struct RandomBitsOptions(Options);

impl RandomBitsOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Dtype of the result; one of uint32; default uint32.
    pub fn dtype(self, dtype: impl Into<DType>) -> Self {
        Self(self.0.made::<DType>("dtype", dtype))
    }
}

/// Options of [`Node::random_categorical_with`].
#[derive(Clone, Debug, Default)]
pub struct RandomCategoricalOptions(Options);

impl RandomCategoricalOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axis of the categories; default -1.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }
}

/// Options of [`Node::relu_with`].
#[derive(Clone, Debug, Default)]
pub struct ReluOptions(Options);

impl ReluOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Derivative at 0; default 0.0.
    pub fn at_zero(self, at_zero: f64) -> Self {
        Self(self.0.with("at_zero", at_zero))
    }
}

/// Options of [`Node::reshape_with`].
#[derive(Clone, Debug, Default)]
pub struct ReshapeOptions(Options);

impl ReshapeOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Shape of the result; one extent may be -1 and is inferred; default \[\].
    pub fn shape(self, shape: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("shape", shape))
    }

    /// X's shape, checked if given.
    pub fn original_shape(self, original_shape: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("original_shape", original_shape))
    }
}

/// Options of [`Node::resize_with`].
#[derive(Clone, Debug, Default)]
pub struct ResizeOptions(Options);

impl ResizeOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to resize; default: the last ones.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Interpolation method; one of nearest, linear, cubic; default linear.
    pub fn method(self, method: &str) -> Self {
        Self(self.0.with("method", method))
    }

    /// Whether to antialias where x shrinks; linear and cubic only; default false.
    pub fn antialias(self, antialias: bool) -> Self {
        Self(self.0.with("antialias", antialias))
    }

    /// Whether to align the end entries; linear and cubic only, without antialias; default false.
    pub fn corners(self, corners: bool) -> Self {
        Self(self.0.with("corners", corners))
    }
}

/// Options of [`Node::rfft_with`].
#[derive(Clone, Debug, Default)]
pub struct RfftOptions(Options);

impl RfftOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to transform; default: the last axis, or as many last axes as there are sizes.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Points on each axis, to which x is cut or zero-padded; default: x's extents.
    pub fn sizes(self, sizes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("sizes", sizes))
    }

    /// Direction that divides by the number of points; ortho: both, by its square root; one of backward, ortho,
    /// forward; default backward.
    pub fn norm(self, norm: &str) -> Self {
        Self(self.0.with("norm", norm))
    }
}

/// Options of [`Node::rms_norm_with`].
#[derive(Clone, Debug, Default)]
pub struct RmsNormOptions(Options);

impl RmsNormOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets operand 1, which is optional.
    pub fn weight(self, weight: &Node) -> Self {
        Self(self.0.operand(1, weight))
    }

    /// Axes to normalise over; default \[-1\].
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Positive number added to the variance or mean square; default 1e-05.
    pub fn eps(self, eps: f64) -> Self {
        Self(self.0.with("eps", eps))
    }
}

/// Options of [`Node::roll_with`].
#[derive(Clone, Debug, Default)]
pub struct RollOptions(Options);

impl RollOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to move along; default: the flattened tensor.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }
}

/// Options of [`Graph::scan_with`].
#[derive(Clone, Debug, Default)]
pub struct ScanOptions(Options);

impl ScanOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of operands that are initial values of carries; default 0.
    pub fn carries(self, carries: i64) -> Self {
        Self(self.0.with("carries", carries))
    }

    /// Number of operands, the last ones, that are sequences; default 0.
    pub fn sequences(self, sequences: i64) -> Self {
        Self(self.0.with("sequences", sequences))
    }

    /// Number of steps; default: the sequences' number of entries.
    pub fn length(self, length: i64) -> Self {
        Self(self.0.with("length", length))
    }

    /// Whether to run from the last entry to the first; default false.
    pub fn reverse(self, reverse: bool) -> Self {
        Self(self.0.with("reverse", reverse))
    }
}

/// Options of [`Node::scatter_add_with`].
#[derive(Clone, Debug, Default)]
pub struct ScatterAddOptions(Options);

impl ScatterAddOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axis to index; default 0.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }

    /// Whether negative indices count from the end; −1 is the last; since opset 2; default false.
    pub fn from_end(self, from_end: bool) -> Self {
        Self(self.0.with("from_end", from_end))
    }
}

/// Options of [`Node::select_with`].
#[derive(Clone, Debug, Default)]
pub struct SelectOptions(Options);

impl SelectOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axis to read at one position; default 0.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }
}

/// Options of [`Node::slice_with`].
#[derive(Clone, Debug, Default)]
pub struct SliceOptions(Options);

impl SliceOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// First position on each axis; default: 0.
    pub fn starts(self, starts: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("starts", starts))
    }

    /// End position on each axis, not included; default: the extent.
    pub fn stops(self, stops: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stops", stops))
    }

    /// Distance between positions on each axis; default: 1.
    pub fn steps(self, steps: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("steps", steps))
    }
}

/// Options of [`Node::softmax_with`].
#[derive(Clone, Debug, Default)]
pub struct SoftmaxOptions(Options);

impl SoftmaxOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axis to normalise along; default -1.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }
}

/// Options of [`Node::split_with`].
#[derive(Clone, Debug, Default)]
pub struct SplitOptions(Options);

impl SplitOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axis to split; default 0.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }
}

/// Options of [`Node::squeeze_with`].
#[derive(Clone, Debug, Default)]
pub struct SqueezeOptions(Options);

impl SqueezeOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes of extent 1 to remove; default: all of them.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }
}

/// Options of [`Graph::stack_with`].
#[derive(Clone, Debug, Default)]
pub struct StackOptions(Options);

impl StackOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Position of the new axis in the result; default 0.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }
}

/// Options of [`Node::stft_with`].
#[derive(Clone, Debug, Default)]
pub struct StftOptions(Options);

impl StftOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// One number: points of each transform; default: the window's length.
    pub fn sizes(self, sizes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("sizes", sizes))
    }
}

/// Options of [`Node::sum_with`].
#[derive(Clone, Debug, Default)]
pub struct SumOptions(Options);

impl SumOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reduce; default: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Whether to keep the reduced axes, with extent 1; default false.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// Options of [`Node::svd_with`].
#[derive(Clone, Debug, Default)]
pub struct SvdOptions(Options);

impl SvdOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gradient through vectors of equal values; nan: NaN; whole: assume that only whole spaces matter; one of nan,
    /// whole; default nan.
    pub fn degenerate(self, degenerate: &str) -> Self {
        Self(self.0.with("degenerate", degenerate))
    }
}

/// Options of [`Node::take_along_with`].
#[derive(Clone, Debug, Default)]
pub struct TakeAlongOptions(Options);

impl TakeAlongOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axis to index; default 0.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }

    /// Whether negative indices count from the end; −1 is the last; since opset 2; default false.
    pub fn from_end(self, from_end: bool) -> Self {
        Self(self.0.with("from_end", from_end))
    }
}

/// Options of [`Node::topk_with`].
#[derive(Clone, Debug, Default)]
pub struct TopkOptions(Options);

impl TopkOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axis to search; default 0.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }
}

/// Options of [`Node::transpose_with`].
#[derive(Clone, Debug, Default)]
pub struct TransposeOptions(Options);

impl TransposeOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Permutation, or two axes to swap; default: the last two.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }
}

/// Options of [`Node::triangular_solve_with`].
#[derive(Clone, Debug, Default)]
pub struct TriangularSolveOptions(Options);

impl TriangularSolveOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to read the lower triangle of a; false: the upper one; default true.
    pub fn lower(self, lower: bool) -> Self {
        Self(self.0.with("lower", lower))
    }

    /// Whether to solve with the triangle's transpose; default false.
    pub fn transpose(self, transpose: bool) -> Self {
        Self(self.0.with("transpose", transpose))
    }
}

/// Options of [`Node::tril_with`].
#[derive(Clone, Debug, Default)]
pub struct TrilOptions(Options);

impl TrilOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Diagonal: 0 is the main one, positive above it, negative below it; default 0.
    pub fn offset(self, offset: i64) -> Self {
        Self(self.0.with("offset", offset))
    }
}

/// Options of [`Node::triu_with`].
#[derive(Clone, Debug, Default)]
pub struct TriuOptions(Options);

impl TriuOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Diagonal: 0 is the main one, positive above it, negative below it; default 0.
    pub fn offset(self, offset: i64) -> Self {
        Self(self.0.with("offset", offset))
    }
}

/// Options of [`Node::unsqueeze_with`].
#[derive(Clone, Debug, Default)]
pub struct UnsqueezeOptions(Options);

impl UnsqueezeOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Positions of the new axes in the result; must be given.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }
}

/// Options of [`Node::var_with`].
#[derive(Clone, Debug, Default)]
pub struct VarOptions(Options);

impl VarOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reduce; default: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Whether to keep the reduced axes, with extent 1; default false.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }

    /// Number subtracted from n; 1 for the unbiased estimate; default 0.
    pub fn ddof(self, ddof: i64) -> Self {
        Self(self.0.with("ddof", ddof))
    }
}

/// Options of [`Graph::while_with`].
#[derive(Clone, Debug, Default)]
pub struct WhileOptions(Options);

impl WhileOptions {
    /// Creates options without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of operands, the last ones, that are initial values of carries; default 0.
    pub fn carries(self, carries: i64) -> Self {
        Self(self.0.with("carries", carries))
    }
}
