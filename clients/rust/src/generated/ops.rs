//! The ops, each as a method. Written by `python -m clients.ops` from the registry of ops: edit that.

use crate::graph::Options;
use crate::{DType, Graph, GraphFunction, Node, Number, Tensor};

/// The opset that graphs have an op, or an attribute as `op.attribute`, since.
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
    /// y = |x|, real where x is complex. At 0 the gradient is 0, in every order.
    ///
    /// Gradient: g · sign x; of a complex x, g · x / |x|.
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
    /// As many windows as `sizes` say, on as many of the last axes. PyTorch's `adaptive_avg_pool1d`, 2d and 3d; JAX has
    /// none.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g / (elements of the window) to each of these.
    ///
    /// `sizes`: how many windows there are on each of the last axes.
    pub fn adaptive_avg_pool(&self, sizes: impl Into<Vec<i64>>) -> Node {
        self.graph().typed("adaptive_avg_pool", [self], Options::default().made::<Vec<i64>>("sizes", sizes))
    }

    /// y\[…, i\] = the largest element of window i, from ⌊i · n / size⌋ to ⌈(i + 1) · n / size⌉; NaN where it holds
    /// one.
    ///
    /// As many windows as `sizes` say, on as many of the last axes. PyTorch's `adaptive_max_pool1d`, 2d and 3d; JAX has
    /// none.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g, added at the first maximum (in row-major order) of each window.
    ///
    /// `sizes`: how many windows there are on each of the last axes.
    pub fn adaptive_max_pool(&self, sizes: impl Into<Vec<i64>>) -> Node {
        self.graph().typed("adaptive_max_pool", [self], Options::default().made::<Vec<i64>>("sizes", sizes))
    }

    /// y = a + b, elementwise, broadcasting as NumPy.
    ///
    /// Gradient: da = g, db = g.
    pub fn add(&self, b: &Node) -> Node {
        self.graph().typed("add", [self, b], Options::default())
    }

    /// y = x + scalar.
    ///
    /// Gradient: g.
    ///
    /// `scalar`: the constant.
    pub fn add_scalar(&self, scalar: f64) -> Node {
        self.graph().typed("add_scalar", [self], Options::default().with("scalar", scalar))
    }

    /// y = whether all elements over axes are true; a number is true unless it is 0. True over nothing.
    pub fn all(&self) -> Node {
        self.all_with(AllOptions::new())
    }

    /// [`all`](Self::all) with options.
    pub fn all_with(&self, options: AllOptions) -> Node {
        self.graph().typed("all", [self], options.0)
    }

    /// y = the angle of x in \[−π, π\]: atan2(Im x, Re x); 0 or π for a real x. NaN where a part is NaN.
    ///
    /// The cut is the negative real axis, and the sign of the imaginary zero says from which side it is seen (C99's
    /// carg). At 0 the gradient is 0, as in PyTorch; JAX's is NaN.
    ///
    /// Since opset 2.
    ///
    /// Gradient: i · g · x / |x|², 0 at 0; none for a real x.
    pub fn angle(&self) -> Node {
        self.graph().typed("angle", [self], Options::default())
    }

    /// y = whether any element over axes is true; a number is true unless it is 0. False over nothing.
    pub fn any(&self) -> Node {
        self.any_with(AnyOptions::new())
    }

    /// [`any`](Self::any) with options.
    pub fn any_with(&self, options: AnyOptions) -> Node {
        self.graph().typed("any", [self], options.0)
    }

    /// y = position along `axis` of the largest element, int64: the first of equal ones, the first NaN before all.
    ///
    /// `axis`: the axis to search.
    pub fn argmax(&self, axis: i64) -> Node {
        self.argmax_with(axis, ArgmaxOptions::new())
    }

    /// [`argmax`](Self::argmax) with options.
    pub fn argmax_with(&self, axis: i64, options: ArgmaxOptions) -> Node {
        self.graph().typed("argmax", [self], options.0.with("axis", axis))
    }

    /// y = position along `axis` of the smallest element, int64: the first of equal ones, the first NaN before all.
    ///
    /// `axis`: the axis to search.
    pub fn argmin(&self, axis: i64) -> Node {
        self.argmin_with(axis, ArgminOptions::new())
    }

    /// [`argmin`](Self::argmin) with options.
    pub fn argmin_with(&self, axis: i64, options: ArgminOptions) -> Node {
        self.graph().typed("argmin", [self], options.0.with("axis", axis))
    }

    /// y = the int64 positions that put x in ascending order along an axis; equal entries keep theirs, NaN last.
    ///
    /// `axis`: the axis to sort along.
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

    /// y = the angle in \[−π, π\] of the point with abscissa b and ordinate a, broadcasting.
    ///
    /// At a = b = 0 the value is NumPy's (0 or ±π) and the derivatives are NaN: there are none. At infinity they are 0.
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

    /// y = softmax(q kᵀ · scale + mask) v, for each query the mean of the values weighted by how its key fits.
    ///
    /// q \[..., queries, d\], k \[..., keys, d\], v \[..., keys, width\], y \[..., queries, width\]; leading axes
    /// broadcast. The mask broadcasts to \[..., queries, keys\]: bool (true = keep) or float (added). `causal` also
    /// hides key j from query i where j \> i. A query that is left no key has NaN. Scores of 16 MiB and more that
    /// outweigh q, k and v are not held in memory, but for tangents and second derivatives. With `grouped`, the heads
    /// of q, on its axis -3, are a multiple of those of k and v, each of which serves as many, side by side: PyTorch's
    /// enable_gqa, and what JAX's dot_product_attention does where there are fewer. A. Vaswani et al., "Attention is
    /// all you need" (2017); J. Ainslie et al., "GQA" (2023).
    ///
    /// Gradient: with p = softmax(…), dp = g vᵀ, ds = p · (dp − Σ dp·p): dq = scale · ds k, dk = scale · dsᵀ q, dv = pᵀ
    /// g.
    pub fn attention(&self, k: &Node, v: &Node) -> Node {
        self.attention_with(k, v, AttentionOptions::new())
    }

    /// [`attention`](Self::attention) with options.
    pub fn attention_with(&self, k: &Node, v: &Node, options: AttentionOptions) -> Node {
        self.graph().typed("attention", [self, k, v], options.0)
    }

    /// y\[…, i\] = the mean of the window at i. x \[..., w\]; padding counts as zeros. Integers give float64.
    ///
    /// Extents as those of max_pool1d. What a window of a `ceiling` has beyond the padding does not count. PyTorch's
    /// `avg_pool1d`, whose `ceil_mode` is `ceiling`; Flax's `avg_pool`, without a ceiling.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g / (taps of the window) to each of its elements.
    ///
    /// `kernel_size`: extents of the windows along each spatial axis.
    pub fn avg_pool1d(&self, kernel_size: impl Into<Vec<i64>>) -> Node {
        self.avg_pool1d_with(kernel_size, AvgPool1dOptions::new())
    }

    /// [`avg_pool1d`](Self::avg_pool1d) with options.
    pub fn avg_pool1d_with(&self, kernel_size: impl Into<Vec<i64>>, options: AvgPool1dOptions) -> Node {
        self.graph().typed("avg_pool1d", [self], options.0.made::<Vec<i64>>("kernel_size", kernel_size))
    }

    /// y\[…, i, j\] = the sum of the window at (i, j), divided by the kernel size; padding counts as zeros.
    ///
    /// x \[..., h, w\]. Integers give float64. As PyTorch's avg_pool2d.
    ///
    /// Gradient: conv_transpose2d of g / kernel size with ones.
    ///
    /// `kernel_size`: extents of the windows along each spatial axis.
    pub fn avg_pool2d(&self, kernel_size: impl Into<Vec<i64>>) -> Node {
        self.avg_pool2d_with(kernel_size, AvgPool2dOptions::new())
    }

    /// [`avg_pool2d`](Self::avg_pool2d) with options.
    pub fn avg_pool2d_with(&self, kernel_size: impl Into<Vec<i64>>, options: AvgPool2dOptions) -> Node {
        self.graph().typed("avg_pool2d", [self], options.0.made::<Vec<i64>>("kernel_size", kernel_size))
    }

    /// y\[…, i, j, k\] = the mean of the window at (i, j, k). x \[..., d, h, w\]; padding counts as zeros.
    ///
    /// Integers give float64. Extents as those of max_pool1d. What a window of a `ceiling` has beyond the padding does
    /// not count. PyTorch's `avg_pool3d`, whose `ceil_mode` is `ceiling`; Flax's `avg_pool`, without a ceiling.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g / (taps of the window) to each of its elements.
    ///
    /// `kernel_size`: extents of the windows along each spatial axis.
    pub fn avg_pool3d(&self, kernel_size: impl Into<Vec<i64>>) -> Node {
        self.avg_pool3d_with(kernel_size, AvgPool3dOptions::new())
    }

    /// [`avg_pool3d`](Self::avg_pool3d) with options.
    pub fn avg_pool3d_with(&self, kernel_size: impl Into<Vec<i64>>, options: AvgPool3dOptions) -> Node {
        self.graph().typed("avg_pool3d", [self], options.0.made::<Vec<i64>>("kernel_size", kernel_size))
    }

    /// y = (x − mean) / √(variance + eps) · weight + bias, mean and variance of each feature over all other axes.
    ///
    /// `axis` is that of the features; weight and bias have its extent. These are the statistics of the operand (as in
    /// training), with n in the denominator. S. Ioffe, C. Szegedy, "Batch normalization" (2015). CJC normalises the
    /// whole tensor: reshape it to \[n, 1\].
    ///
    /// Gradient: as of layer_norm, over all axes but the features'.
    pub fn batch_norm(&self) -> Node {
        self.batch_norm_with(BatchNormOptions::new())
    }

    /// [`batch_norm`](Self::batch_norm) with options.
    pub fn batch_norm_with(&self, options: BatchNormOptions) -> Node {
        self.graph().typed("batch_norm", [self], options.0)
    }

    /// y = (x − mean) / √(variance + eps) · weight + bias, by statistics that are given, as when a network is used.
    ///
    /// `axis` is that of the features; all other operands have its extent. PyTorch's `batch_norm` with training false;
    /// Flax's `BatchNorm` with use_running_average, whose features are last.
    ///
    /// Since opset 2.
    ///
    /// Gradient: with r = 1 / √(variance + eps): dx = g · weight · r, and those of all others as the formula says.
    pub fn batch_norm_given(&self, mean: &Node, variance: &Node) -> Node {
        self.batch_norm_given_with(mean, variance, BatchNormGivenOptions::new())
    }

    /// [`batch_norm_given`](Self::batch_norm_given) with options.
    pub fn batch_norm_given_with(&self, mean: &Node, variance: &Node, options: BatchNormGivenOptions) -> Node {
        self.graph().typed("batch_norm_given", [self, mean, variance], options.0)
    }

    /// y of `batch_norm`, and the running mean and variance, moved on: (1 − momentum) · old + momentum · this batch's.
    ///
    /// `axis` is that of the features; all other operands have its extent. The variance that is moved to has n − 1 in
    /// the denominator, that of y has n. Three results, read through get_output. PyTorch's `batch_norm` with training
    /// true, whose running statistics are written in place, and carry no gradient; Flax's `BatchNorm`, whose momentum
    /// is 1 − this one, and whose running variance has n.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through `get_output`.
    ///
    /// Gradient: as of batch_norm; of the running statistics as their formula.
    pub fn batch_norm_running(&self, mean: &Node, variance: &Node) -> Node {
        self.batch_norm_running_with(mean, variance, BatchNormRunningOptions::new())
    }

    /// [`batch_norm_running`](Self::batch_norm_running) with options.
    pub fn batch_norm_running_with(&self, mean: &Node, variance: &Node, options: BatchNormRunningOptions) -> Node {
        self.graph().typed("batch_norm_running", [self, mean, variance], options.0)
    }

    /// loss = −y · log σ(x) − (1 − y) · log σ(−x), binary cross-entropy, elementwise on equal shapes; then the mean.
    ///
    /// x are logits, y probabilities. Exact in both tails: the logarithm of σ is taken in one step.
    ///
    /// Gradient: dx = g · (σ(x) − y) / n, dy = −g · x / n.
    pub fn bce_with_logits(&self, y: &Node) -> Node {
        self.bce_with_logits_with(y, BceWithLogitsOptions::new())
    }

    /// [`bce_with_logits`](Self::bce_with_logits) with options.
    pub fn bce_with_logits_with(&self, y: &Node, options: BceWithLogitsOptions) -> Node {
        self.graph().typed("bce_with_logits", [self, y], options.0)
    }

    /// y = I(x; a, b) = ∫₀ˣ tᵃ⁻¹ (1 − t)ᵇ⁻¹ dt / B(a, b), broadcasting, for 0 ≤ x ≤ 1, and a, b \> 0: SciPy's, JAX's.
    ///
    /// To 256 units, SciPy's own on NumPy. Derivatives by all operands, of any order: by x to 1e-12 of their value, by
    /// a and b, of which JAX has none, to 1e-11. PyTorch has no such function.
    ///
    /// Since opset 2.
    ///
    /// Gradient: da, db = g · ∂I/∂a, g · ∂I/∂b by an integral; dx = g · xᵃ⁻¹ (1 − x)ᵇ⁻¹ / B(a, b).
    pub fn betainc(&self, b: &Node, x: &Node) -> Node {
        self.graph().typed("betainc", [self, b, x], Options::default())
    }

    /// y = log |B(a, b)| = log |Γ(a) Γ(b) / Γ(a + b)|, broadcasting. To 10 units of y, or of 1 where |y| is less.
    ///
    /// Units are those in the last place of a float64, on NumPy. Where an operand is large, `lgamma` would leave few
    /// digits of y, and SciPy's own loses up to 9 of 16. Where an operand is not positive, y is SciPy's; at infinity it
    /// is −∞.
    ///
    /// The derivative by a is as accurate, or, where b \< a \< 100, to 1e-15 · a / b of its value; and likewise by b.
    ///
    /// Gradient: da = g · (digamma(a) − digamma(a + b)), db = g · (digamma(b) − digamma(a + b)).
    pub fn betaln(&self, b: &Node) -> Node {
        self.graph().typed("betaln", [self, b], Options::default())
    }

    /// y = x repeated along new leading axes and along axes of extent 1, to `shape`, by NumPy's rule.
    ///
    /// Gradient: g, summed over the axes that were repeated.
    pub fn broadcast_to(&self) -> Node {
        self.broadcast_to_with(BroadcastToOptions::new())
    }

    /// [`broadcast_to`](Self::broadcast_to) with options.
    pub fn broadcast_to_with(&self, options: BroadcastToOptions) -> Node {
        self.graph().typed("broadcast_to", [self], options.0)
    }

    /// y = x in another dtype, as NumPy's astype: fractions are cut off towards zero, nonzero is true.
    ///
    /// float → float is differentiable; through integers and bool there is no path. A real x becomes complex; a complex
    /// one never real, of which `real` says what is meant.
    ///
    /// Gradient: g, cast back.
    ///
    /// `dtype`: the result's dtype.
    pub fn cast(&self, dtype: impl Into<DType>) -> Node {
        self.graph().typed("cast", [self], Options::default().made::<DType>("dtype", dtype))
    }

    /// y\[…, i, j\] = (Σ |a\[…, i, k\] − b\[…, j, k\]|ᵖ)^(1/p) over k: the distance of each row of a from each of b.
    ///
    /// a \[..., m, d\], b \[..., n, d\], y \[..., m, n\]; leading axes broadcast. Where two rows coincide, the gradient
    /// is 0, and so is that of the gradient. Differences are taken before they are squared, so that no digits are lost:
    /// PyTorch's `cdist` with compute_mode donot_use_mm_for_euclid_dist; JAX has none.
    ///
    /// Since opset 2.
    ///
    /// Gradient: da = Σ g · sign(a − b) · (|a − b| / y)^(p − 1), db likewise, and 0 where y = 0.
    pub fn cdist(&self, b: &Node) -> Node {
        self.cdist_with(b, CdistOptions::new())
    }

    /// [`cdist`](Self::cdist) with options.
    pub fn cdist_with(&self, b: &Node, options: CdistOptions) -> Node {
        self.graph().typed("cdist", [self, b], options.0)
    }

    /// y = ⌈x⌉: up to the next whole number.
    pub fn ceil(&self) -> Node {
        self.graph().typed("ceil", [self], Options::default())
    }

    /// y lower triangular, its diagonal positive, with y yᴴ = (x + xᴴ) / 2, for matrices on the last two axes.
    ///
    /// x is made symmetric (Hermitian) first, as in JAX: so the gradient is symmetric, and holds along every direction.
    /// A matrix that is not positive definite gives a matrix of NaN; the others of its batch are as if it were not
    /// there. Integers give float64; float16 is computed in a wider float, and rounded once. I. Murray, Differentiation
    /// of the Cholesky decomposition, arXiv:1602.07527 (2016), eq. 9.
    ///
    /// Gradient: (s + sᴴ) / 2, where s = y⁻ᴴ Φ(yᴴ g) y⁻¹ and Φ takes the lower triangle, half the diagonal.
    pub fn cholesky(&self) -> Node {
        self.graph().typed("cholesky", [self], Options::default())
    }

    /// y0, y1, … = x cut along `axis` into at most `chunks` parts of extent ⌈n / chunks⌉, the last of what is left.
    ///
    /// As PyTorch: there may be fewer parts than asked for (6 entries in 4 chunks: 2, 2, 2); an empty axis gives
    /// `chunks` empty parts. Several results, read through get_output.
    ///
    /// It has several results, each read through `get_output`.
    ///
    /// Gradient: the parts' cotangents, joined; zeros for parts that are not read.
    ///
    /// `chunks`: the most parts to cut into.
    pub fn chunk(&self, chunks: i64) -> Node {
        self.chunk_with(chunks, ChunkOptions::new())
    }

    /// [`chunk`](Self::chunk) with options.
    pub fn chunk_with(&self, chunks: i64, options: ChunkOptions) -> Node {
        self.graph().typed("chunk", [self], options.0.with("chunks", chunks))
    }

    /// y = x, but at least min and at most max; either bound may be absent. Where min \> max, y is max.
    ///
    /// NaN stays NaN, and takes the gradient. Integers keep their dtype where it holds the bounds that there are: whole
    /// numbers within its range; else they give float64.
    ///
    /// Gradient: g where min ≤ x ≤ max or x is NaN, else 0.
    pub fn clamp(&self) -> Node {
        self.clamp_with(ClampOptions::new())
    }

    /// [`clamp`](Self::clamp) with options.
    pub fn clamp_with(&self, options: ClampOptions) -> Node {
        self.graph().typed("clamp", [self], options.0)
    }

    /// The entries of x along `axis` where `mask` \[extent\] is true, k of them; and how many there are: int64 \[\].
    ///
    /// k is stated, and may be more than there are, or fewer: what is beyond k is cut, and the count tells; behind it
    /// lies `fill`. Two results, read through get_output. JAX's and NumPy's `compress`, of which JAX's takes a size and
    /// a fill_value, too; PyTorch's x\[mask\], which has as many entries as there are.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through `get_output`.
    ///
    /// Gradient: g to the entries taken; none for mask.
    ///
    /// `k`: how many entries there are to be.
    pub fn compress(&self, mask: &Node, k: i64) -> Node {
        self.compress_with(mask, k, CompressOptions::new())
    }

    /// [`compress`](Self::compress) with options.
    pub fn compress_with(&self, mask: &Node, k: i64, options: CompressOptions) -> Node {
        self.graph().typed("compress", [self, mask], options.0.with("k", k))
    }

    /// y = s₀ / sₖ₋₁, the condition in the 2-norm: the largest over the smallest singular value.
    ///
    /// x \[batch…, m, n\], y \[batch…\]. Infinite for a matrix of lower rank, as far as rounding leaves a 0; NaN for
    /// one of zeros, or that holds an infinity or NaN. Integers give float64; float16 is computed in float32, and
    /// rounded once. PyTorch's, JAX's and NumPy's `linalg.cond` with p absent.
    ///
    /// Since opset 2.
    ///
    /// Gradient: that of svd, whose vectors are those of s₀ and sₖ₋₁: g y (u₀ v₀ᴴ / s₀ − uₖ₋₁ vₖ₋₁ᴴ / sₖ₋₁).
    pub fn cond_number(&self) -> Node {
        self.graph().typed("cond_number", [self], Options::default())
    }

    /// y = conj x, the imaginary part negated; a real x itself. PyTorch's, JAX's and NumPy's `conj`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: conj g.
    pub fn conj(&self) -> Node {
        self.graph().typed("conj", [self], Options::default())
    }

    /// y\[n, o, i\] = Σ x\[n, c, i·s + a·d − p\] · kernel\[o, c, a\] + bias\[o\], a cross-correlation.
    ///
    /// x \[n, channels, w\], zero outside; kernel \[features, channels / groups, kw\]; y \[n, features, w'\] with w' =
    /// ⌊(w + 2p − d·(kw − 1) − 1) / s⌋ + 1. Feature o sees the channels of its own group. As PyTorch's conv1d.
    ///
    /// Gradient: dx = the transposed convolution of g, d kernel = x convolved with g, d bias = g summed.
    pub fn conv1d(&self, kernel: &Node) -> Node {
        self.conv1d_with(kernel, Conv1dOptions::new())
    }

    /// [`conv1d`](Self::conv1d) with options.
    pub fn conv1d_with(&self, kernel: &Node, options: Conv1dOptions) -> Node {
        self.graph().typed("conv1d", [self, kernel], options.0)
    }

    /// y\[n, o, i, j\] = Σ x\[n, c, i·s + a·d − p, j·s + b·d − p\] · kernel\[o, c, a, b\] + bias\[o\], a
    /// cross-correlation.
    ///
    /// x \[n, channels, h, w\], zero outside; kernel \[features, channels / groups, kh, kw\]; y \[n, features, h', w'\]
    /// with h' = ⌊(h + 2p − d·(kh − 1) − 1) / s⌋ + 1. Feature o sees the channels of its own group. As PyTorch's
    /// conv2d.
    ///
    /// Gradient: dx = conv_transpose2d(g, kernel), d kernel = conv2d(x, g) over images, d bias = g summed.
    pub fn conv2d(&self, kernel: &Node) -> Node {
        self.conv2d_with(kernel, Conv2dOptions::new())
    }

    /// [`conv2d`](Self::conv2d) with options.
    pub fn conv2d_with(&self, kernel: &Node, options: Conv2dOptions) -> Node {
        self.graph().typed("conv2d", [self, kernel], options.0)
    }

    /// y\[n, o, i, j, k\] = Σ x\[n, c, i·s + a·d − p, j·s + b·d − p, k·s + e·d − p\] · kernel\[o, c, a, b, e\] +
    /// bias\[o\].
    ///
    /// x \[n, channels, d, h, w\], zero outside; kernel \[features, channels / groups, kd, kh, kw\]; y \[n, features,
    /// d', h', w'\] with extents as conv2d's, a cross-correlation. As PyTorch's conv3d.
    ///
    /// Gradient: dx = conv_transpose3d(g, kernel), d kernel = conv3d(x, g) over images, d bias = g summed.
    pub fn conv3d(&self, kernel: &Node) -> Node {
        self.conv3d_with(kernel, Conv3dOptions::new())
    }

    /// [`conv3d`](Self::conv3d) with options.
    pub fn conv3d_with(&self, kernel: &Node, options: Conv3dOptions) -> Node {
        self.graph().typed("conv3d", [self, kernel], options.0)
    }

    /// y\[n, o, i·s + a·d − p\] = Σ x\[n, c, i\] · kernel\[c, o, a\] + bias\[o\]: the adjoint of conv1d.
    ///
    /// x \[n, channels, w\]; kernel \[channels, features / groups, kw\]; y \[n, features, w'\], and w' = (w − 1)·s +
    /// d·(kw − 1) + 1 + output_padding − 2p. PyTorch's `conv_transpose1d`; JAX's `lax.conv_transpose` with
    /// transpose_kernel, which has the kernel's axes in another order, and paddings of the convolution that it widens.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = conv1d(g, kernel), d kernel = conv1d(g, x) over images, d bias = g summed.
    pub fn conv_transpose1d(&self, kernel: &Node) -> Node {
        self.conv_transpose1d_with(kernel, ConvTranspose1dOptions::new())
    }

    /// [`conv_transpose1d`](Self::conv_transpose1d) with options.
    pub fn conv_transpose1d_with(&self, kernel: &Node, options: ConvTranspose1dOptions) -> Node {
        self.graph().typed("conv_transpose1d", [self, kernel], options.0)
    }

    /// y\[n, o, i·s + a·d − p, j·s + b·d − p\] = Σ x\[n, c, i, j\] · kernel\[c, o, a, b\] + bias\[o\]: the adjoint of
    /// conv2d.
    ///
    /// x \[n, channels, h, w\]; kernel \[channels, features / groups, kh, kw\]; y \[n, features, h', w'\] with h' = (h
    /// − 1)·s − 2p + d·(kh − 1) + 1 + output_padding. As PyTorch's conv_transpose2d.
    ///
    /// Gradient: dx = conv2d(g, kernel), d kernel = conv2d(g, x) over images, d bias = g summed.
    pub fn conv_transpose2d(&self, kernel: &Node) -> Node {
        self.conv_transpose2d_with(kernel, ConvTranspose2dOptions::new())
    }

    /// [`conv_transpose2d`](Self::conv_transpose2d) with options.
    pub fn conv_transpose2d_with(&self, kernel: &Node, options: ConvTranspose2dOptions) -> Node {
        self.graph().typed("conv_transpose2d", [self, kernel], options.0)
    }

    /// y\[n, o, i·s + a·d − p, …\] = Σ x\[n, c, i, j, k\] · kernel\[c, o, a, b, e\] + bias\[o\]: the adjoint of conv3d.
    ///
    /// x \[n, channels, d, h, w\]; kernel \[channels, features / groups, kd, kh, kw\]; y \[n, features, d', h', w'\]
    /// with extents as conv_transpose2d's. As PyTorch's conv_transpose3d.
    ///
    /// Gradient: dx = conv3d(g, kernel), d kernel = conv3d(g, x) over images, d bias = g summed.
    pub fn conv_transpose3d(&self, kernel: &Node) -> Node {
        self.conv_transpose3d_with(kernel, ConvTranspose3dOptions::new())
    }

    /// [`conv_transpose3d`](Self::conv_transpose3d) with options.
    pub fn conv_transpose3d_with(&self, kernel: &Node, options: ConvTranspose3dOptions) -> Node {
        self.graph().typed("conv_transpose3d", [self, kernel], options.0)
    }

    /// y = x.
    ///
    /// Where a graph runs is the server's choice, so there is nothing to move; the gradient passes through.
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

    /// loss = −Σ p · log softmax(logits) over the last axis, which holds the classes; then the mean over all rows.
    ///
    /// logits \[..., classes\]; targets are class indices \[...\] of an integer dtype (p is 1 at the index), or the
    /// distribution p itself, float, of the logits' shape. Indices lie in \[0, classes).
    ///
    /// Gradient: d logits = g · (softmax(logits) · Σ p − p) / rows, d targets = −g · log softmax(logits) / rows if
    /// float.
    pub fn cross_entropy(&self, targets: &Node) -> Node {
        self.cross_entropy_with(targets, CrossEntropyOptions::new())
    }

    /// [`cross_entropy`](Self::cross_entropy) with options.
    pub fn cross_entropy_with(&self, targets: &Node, options: CrossEntropyOptions) -> Node {
        self.graph().typed("cross_entropy", [self, targets], options.0)
    }

    /// y\[i\] = log(exp x\[0\] + … + exp x\[i\]) along `axis`, stable; with `reverse`, of x\[i\] to x\[n − 1\].
    ///
    /// As of logsumexp: where all so far is −inf, y is −inf and the gradient 0; those that are inf share it. Where one
    /// so far is NaN, so are y and the gradient. Integers give float64. PyTorch's `logcumsumexp`; JAX's
    /// `lax.cumlogsumexp`, which has `reverse`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: Σ g\[k\] · exp(x\[i\] − y\[k\]) over k from i on.
    ///
    /// `axis`: the axis to run along.
    pub fn cumlogsumexp(&self, axis: i64) -> Node {
        self.cumlogsumexp_with(axis, CumlogsumexpOptions::new())
    }

    /// [`cumlogsumexp`](Self::cumlogsumexp) with options.
    pub fn cumlogsumexp_with(&self, axis: i64, options: CumlogsumexpOptions) -> Node {
        self.graph().typed("cumlogsumexp", [self], options.0.with("axis", axis))
    }

    /// y\[i\] = the largest of x\[0\], …, x\[i\] along `axis`; with `reverse`, of x\[i\], …, x\[n − 1\].
    ///
    /// NaN from the first NaN on. Of ties, the first in the direction of the run takes the gradient. The values of
    /// PyTorch's `cummax`, whose gradient takes the last of ties; JAX's `lax.cummax`, which has `reverse`, and shares.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g to the entry that is y: of ties the first in the direction of the run, the first NaN.
    ///
    /// `axis`: the axis to run along.
    pub fn cummax(&self, axis: i64) -> Node {
        self.cummax_with(axis, CummaxOptions::new())
    }

    /// [`cummax`](Self::cummax) with options.
    pub fn cummax_with(&self, axis: i64, options: CummaxOptions) -> Node {
        self.graph().typed("cummax", [self], options.0.with("axis", axis))
    }

    /// y\[i\] = the smallest of x\[0\], …, x\[i\] along `axis`; with `reverse`, of x\[i\], …, x\[n − 1\].
    ///
    /// NaN from the first NaN on. Of ties, the first in the direction of the run takes the gradient. The values of
    /// PyTorch's `cummin`, whose gradient takes the last of ties; JAX's `lax.cummin`, which has `reverse`, and shares.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g to the entry that is y: of ties the first in the direction of the run, the first NaN.
    ///
    /// `axis`: the axis to run along.
    pub fn cummin(&self, axis: i64) -> Node {
        self.cummin_with(axis, CumminOptions::new())
    }

    /// [`cummin`](Self::cummin) with options.
    pub fn cummin_with(&self, axis: i64, options: CumminOptions) -> Node {
        self.graph().typed("cummin", [self], options.0.with("axis", axis))
    }

    /// y\[i\] = x\[0\] · … · x\[i\] along `axis`; with `reverse`, x\[i\] · … · x\[n − 1\].
    ///
    /// Integers and bool multiply in int64, float16 in float32. The gradient is exact whatever the number of zeros, and
    /// so are those of higher order. PyTorch's and NumPy's `cumprod`; `reverse` is that of JAX's `lax.cumprod`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: (product of those before i) · Σ g\[k\] · (product of those behind i, to k), over k from i on.
    ///
    /// `axis`: the axis to run along.
    pub fn cumprod(&self, axis: i64) -> Node {
        self.cumprod_with(axis, CumprodOptions::new())
    }

    /// [`cumprod`](Self::cumprod) with options.
    pub fn cumprod_with(&self, axis: i64, options: CumprodOptions) -> Node {
        self.graph().typed("cumprod", [self], options.0.with("axis", axis))
    }

    /// y\[i\] = x\[0\] + … + x\[i\] along `axis`; with `reverse`, x\[i\] + … + x\[n − 1\].
    ///
    /// Integers and bool add up in int64, float16 in float32. PyTorch's and NumPy's `cumsum`; `reverse` is that of
    /// JAX's `lax.cumsum`.
    ///
    /// Gradient: g, added up from the end.
    ///
    /// `axis`: the axis to add up along.
    pub fn cumsum(&self, axis: i64) -> Node {
        self.cumsum_with(axis, CumsumOptions::new())
    }

    /// [`cumsum`](Self::cumsum) with options.
    pub fn cumsum_with(&self, axis: i64, options: CumsumOptions) -> Node {
        self.graph().typed("cumsum", [self], options.0.with("axis", axis))
    }

    /// y = det x of the square matrices on the last two axes: \[batch…, n, n\] → \[batch…\]; 1 of a matrix without
    /// entries.
    ///
    /// `slogdet` neither overflows nor underflows. The gradient is the matrix of cofactors, exact for singular
    /// matrices, too; second derivatives of these are NaN, or infinite. A matrix that holds NaN gives NaN for itself
    /// alone. Integers give float64; float16 is computed in a wider float, and rounded once. PyTorch's, JAX's and
    /// NumPy's `linalg.det`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · the conjugate cofactors of x: of det(x) x⁻ᵀ where x is regular.
    pub fn det(&self) -> Node {
        self.graph().typed("det", [self], Options::default())
    }

    /// The diagonal of the last two axes: y\[…, i\] = x\[…, i, i + offset\]; of a vector, the matrix with that
    /// diagonal.
    ///
    /// x \[n\] → \[n + |offset|, n + |offset|\], zero off the diagonal. x \[batch…, rows, columns\] → \[batch…, m\]. A
    /// negative offset counts downwards: y\[…, i\] = x\[…, i − offset, i\].
    ///
    /// Gradient: diag(g) for a vector; for matrices, g on the diagonal and 0 elsewhere.
    pub fn diag(&self) -> Node {
        self.diag_with(DiagOptions::new())
    }

    /// [`diag`](Self::diag) with options.
    pub fn diag_with(&self, options: DiagOptions) -> Node {
        self.graph().typed("diag", [self], options.0)
    }

    /// y = ψ(x) = Γ'(x) / Γ(x): −∞ at 0, NaN at −1, −2, …. To 10 units; near its zeros below −1 to 1e-15.
    ///
    /// SciPy's loses one digit with each digit by which x \< 0 is closer to a pole; this one keeps all.
    ///
    /// Gradient: g · polygamma(x, order=1).
    pub fn digamma(&self) -> Node {
        self.graph().typed("digamma", [self], Options::default())
    }

    /// y = a / b, elementwise, broadcasting as NumPy; integers give floats, x / 0 gives ±inf or NaN.
    ///
    /// Gradient: da = g / b, db = −y · g / b.
    pub fn div(&self, b: &Node) -> Node {
        self.graph().typed("div", [self, b], Options::default())
    }

    /// y = x / scalar. A scalar of 0 gives ±inf or NaN, as `div`.
    ///
    /// Gradient: g / scalar.
    ///
    /// `scalar`: the constant.
    pub fn div_scalar(&self, scalar: f64) -> Node {
        self.graph().typed("div_scalar", [self], Options::default().with("scalar", scalar))
    }

    /// w, v = the eigenvalues, ascending, and eigenvectors of (x + xᴴ) / 2: that is v diag(w) vᴴ, and vᴴ v = 1.
    ///
    /// x \[batch…, n, n\], w \[batch…, n\], real, v \[batch…, n, n\], a vector in each column. Two results, read
    /// through get_output. Where only eigenvalues are read, vectors are not computed, and the gradient of eigenvalues
    /// alone holds at equal ones, too, as long as the function treats these alike.
    ///
    /// Signs of vectors, and phases of complex ones, are as LAPACK leaves them: a function has a meaning only if it
    /// does not depend on them. Nor do single vectors of equal eigenvalues have one. Eigenvalues closer than 16 n ε ‖x‖
    /// are taken for equal; the gradient of a function of v there is NaN, of that matrix alone; or, where `degenerate`
    /// is whole, right if the function depends on whole eigenspaces, as a projector does, and wrong else: v √w vᵀ does
    /// not, and is what `symmetric_function` is for. Second derivatives where a pair was left out are NaN, and so are
    /// those of equal eigenvalues alone. A matrix that holds an infinity or NaN, or for which LAPACK finds no answer,
    /// gives NaN for itself alone. Integers give float64; float16 is computed in a wider float, and rounded once. M. B.
    /// Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008),
    /// section 3.1. PyTorch's and JAX's `linalg.eigh`, which take the lower triangle unless told to take both, and
    /// answer NaN, or what rounding makes of it, at equal eigenvalues.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through `get_output`.
    ///
    /// Gradient: the symmetric part of v (diag(ḡw) + F ∘ vᴴ ḡv) vᴴ, Fᵢⱼ = 1 / (wⱼ − wᵢ), Fᵢᵢ = 0; no F where v is
    /// unread.
    pub fn eigh(&self) -> Node {
        self.eigh_with(EighOptions::new())
    }

    /// [`eigh`](Self::eigh) with options.
    pub fn eigh_with(&self, options: EighOptions) -> Node {
        self.graph().typed("eigh", [self], options.0)
    }

    /// y = x for x \> 0, else alpha · (eˣ − 1). Derivatives at 0 are those from below: alpha.
    ///
    /// D.-A. Clevert, T. Unterthiner, S. Hochreiter, arXiv:1511.07289.
    ///
    /// Gradient: g where x \> 0 or NaN, else g · alpha · eˣ.
    pub fn elu(&self) -> Node {
        self.elu_with(EluOptions::new())
    }

    /// [`elu`](Self::elu) with options.
    pub fn elu_with(&self, options: EluOptions) -> Node {
        self.graph().typed("elu", [self], options.0)
    }

    /// y\[i, j, …, :\] = weight\[indices\[i, j, …\], :\]: rows of a table.
    ///
    /// weight \[rows, features…\], indices of any shape with entries in \[0, rows); y \[shape of indices…, features…\].
    /// With `from_end`, entries lie in \[−rows, rows), and negative ones count from the end. PyTorch's
    /// `functional.embedding`, which takes no negative index, and has `padding_idx`; JAX's weight\[indices\], which
    /// takes negative ones, and moves those outside to the nearest row.
    ///
    /// Gradient: d weight = g added to the rows that were read, repeated ones accumulating; none for indices.
    pub fn embedding(&self, indices: &Node) -> Node {
        self.embedding_with(indices, EmbeddingOptions::new())
    }

    /// [`embedding`](Self::embedding) with options.
    pub fn embedding_with(&self, indices: &Node, options: EmbeddingOptions) -> Node {
        self.graph().typed("embedding", [self, indices], options.0)
    }

    /// y = (a = b), elementwise; NaN equals nothing.
    pub fn equal(&self, b: &Node) -> Node {
        self.graph().typed("equal", [self, b], Options::default())
    }

    /// y = erf x = 2/√π ∫₀ˣ exp(−t²) dt, to 2 units in the last place.
    ///
    /// Gradient: g · 2/√π · exp(−x²).
    pub fn erf(&self) -> Node {
        self.graph().typed("erf", [self], Options::default())
    }

    /// y = erfc x = 1 − erf x, to 2 units in the last place, also where it is small.
    ///
    /// Gradient: −g · 2/√π · exp(−x²).
    pub fn erfc(&self) -> Node {
        self.graph().typed("erfc", [self], Options::default())
    }

    /// y with erf y = x: ±∞ at ±1, NaN beyond. To 2 units.
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
    /// `norm` is NumPy's: `forward` divides by n, `ortho` by √n. Real operands are taken as complex. float16 gives
    /// complex64, integers complex128. PyTorch's, JAX's and NumPy's `fft`, and `fft2` and `fftn` by several axes.
    ///
    /// Since opset 2.
    ///
    /// Gradient: ifft(g) without its division: of a real operand, the real part.
    pub fn fft(&self) -> Node {
        self.fft_with(FftOptions::new())
    }

    /// [`fft`](Self::fft) with options.
    pub fn fft_with(&self, options: FftOptions) -> Node {
        self.graph().typed("fft", [self], options.0)
    }

    /// y = x with a run of neighbouring axes merged into one; absent: all of them. A 0-d tensor becomes \[1\].
    ///
    /// Gradient: g, reshaped back.
    pub fn flatten(&self) -> Node {
        self.flatten_with(FlattenOptions::new())
    }

    /// [`flatten`](Self::flatten) with options.
    pub fn flatten_with(&self, options: FlattenOptions) -> Node {
        self.graph().typed("flatten", [self], options.0)
    }

    /// y = x with the order of the entries reversed on `axes`; absent: on all.
    ///
    /// Gradient: g, flipped.
    pub fn flip(&self) -> Node {
        self.flip_with(FlipOptions::new())
    }

    /// [`flip`](Self::flip) with options.
    pub fn flip_with(&self, options: FlipOptions) -> Node {
        self.graph().typed("flip", [self], options.0)
    }

    /// y = ⌊x⌋: down to the next whole number.
    pub fn floor(&self) -> Node {
        self.graph().typed("floor", [self], Options::default())
    }

    /// y = ⌊a / b⌋, elementwise, broadcasting: Python's //, with the remainder `mod`. An integer by 0 is 0.
    ///
    /// PyTorch's and NumPy's `floor_divide`, JAX's `jnp.floor_divide`. JAX's gives −1 for an integer by 0.
    ///
    /// Since opset 2.
    pub fn floor_div(&self, b: &Node) -> Node {
        self.graph().typed("floor_div", [self, b], Options::default())
    }

    /// y\[i, j, …\] = x\[index\[i, j, …\], j, …\] for axis 0, and alike for the others.
    ///
    /// `index` has x's rank and may be smaller than x off the axis, as in PyTorch; y has its shape. With one operand,
    /// the list `indices` picks slices: y = x at those positions of the axis. Indices lie in \[0, extent); with
    /// `from_end`, in \[−extent, extent), and negative ones count from the end, as those of x\[i\] in PyTorch, JAX and
    /// NumPy do. PyTorch's `gather` and JAX's `take_along_axis`, of which the former takes no negative index.
    ///
    /// Gradient: dx = scatter_add(0, index, g): repeated indices accumulate; none for index.
    pub fn gather(&self) -> Node {
        self.gather_with(GatherOptions::new())
    }

    /// [`gather`](Self::gather) with options.
    pub fn gather_with(&self, options: GatherOptions) -> Node {
        self.graph().typed("gather", [self], options.0)
    }

    /// y = x · Φ(x), Φ the standard normal distribution function; 0 at −∞. D. Hendrycks, K. Gimpel, arXiv:1606.08415.
    ///
    /// `approximate` tanh: y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), the curve that many models were trained
    /// with.
    ///
    /// Gradient: g · (Φ(x) + x · Φ′(x)).
    pub fn gelu(&self) -> Node {
        self.gelu_with(GeluOptions::new())
    }

    /// [`gelu`](Self::gelu) with options.
    pub fn gelu_with(&self, options: GeluOptions) -> Node {
        self.graph().typed("gelu", [self], options.0)
    }

    /// One result of an op that has several: y = x\[index\].
    ///
    /// Gradient: g lands on that result; the others of the same op have 0.
    ///
    /// `index`: which result, from 0.
    pub fn get_output(&self, index: i64) -> Node {
        self.graph().typed("get_output", [self], Options::default().with("index", index))
    }

    /// The gradient of sum(y · cotangent) with respect to x, of x's type; without a cotangent, of sum(y).
    ///
    /// A node like any other: usable downstream, and differentiable again, to any order. x may be any float node; zeros
    /// where y does not depend on it. A complex y needs a cotangent; by a complex x, the gradient is ∂/∂Re x + i ∂/∂Im
    /// x.
    ///
    /// Gradient: the gradient is written out as nodes first, and those are differentiated.
    pub fn grad(&self, x: &Node) -> Node {
        self.grad_with(x, GradOptions::new())
    }

    /// [`grad`](Self::grad) with options.
    pub fn grad_with(&self, x: &Node, options: GradOptions) -> Node {
        self.graph().typed("grad", [self, x], options.0)
    }

    /// y = (a \> b), elementwise; false beside NaN.
    pub fn greater(&self, b: &Node) -> Node {
        self.graph().typed("greater", [self, b], Options::default())
    }

    /// y = (a ≥ b), elementwise; false beside NaN.
    pub fn greater_equal(&self, b: &Node) -> Node {
        self.graph().typed("greater_equal", [self, b], Options::default())
    }

    /// y = (x − mean) / √(variance + eps) · weight + bias, mean and variance of each example's groups of channels.
    ///
    /// x \[n, channels, …\]; weight and bias \[channels\], which are cut into `groups` equal parts. n in the
    /// denominator. Y. Wu, K. He, "Group normalization" (2018). PyTorch's `group_norm`, Flax's `GroupNorm`, whose
    /// channels are last.
    ///
    /// Since opset 2.
    ///
    /// Gradient: as of layer_norm, over each group.
    ///
    /// `groups`: how many equal parts the channels are cut into.
    pub fn group_norm(&self, groups: i64) -> Node {
        self.group_norm_with(groups, GroupNormOptions::new())
    }

    /// [`group_norm`](Self::group_norm) with options.
    pub fn group_norm_with(&self, groups: i64, options: GroupNormOptions) -> Node {
        self.graph().typed("group_norm", [self], options.0.with("groups", groups))
    }

    /// y = I₀(x): NumPy's, `torch.special.i0`, JAX's `scipy.special.i0`. To 5 units; infinite beyond |x| = 713.98.
    ///
    /// There SciPy's is infinite from 709.78 on.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · i1(x).
    pub fn i0(&self) -> Node {
        self.graph().typed("i0", [self], Options::default())
    }

    /// y = exp(−|x|) I₀(x): SciPy's, `torch.special.i0e`, JAX's `bessel_i0e`. To 4 units.
    ///
    /// The derivative keeps its digits for large x, where I₀ and I₁ have most in common. At 0, where |x| has a kink, it
    /// is 0, as PyTorch's and JAX's.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · (i1e(x) − sign(x) · y).
    pub fn i0e(&self) -> Node {
        self.graph().typed("i0e", [self], Options::default())
    }

    /// y = I₁(x): SciPy's, `torch.special.i1`, JAX's `scipy.special.i1`. To 5 units. At 0, the derivative is 1/2.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · (i0(x) − y / x), and g / 2 at 0.
    pub fn i1(&self) -> Node {
        self.graph().typed("i1", [self], Options::default())
    }

    /// y = exp(−|x|) I₁(x): SciPy's, `torch.special.i1e`, JAX's `bessel_i1e`. To 4 units.
    ///
    /// At 0, the derivative is 1/2.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · (i0e(x) − y · (sign(x) + 1 / x)), and g / 2 at 0.
    pub fn i1e(&self) -> Node {
        self.graph().typed("i1e", [self], Options::default())
    }

    /// y = x, as a node of its own.
    ///
    /// Gradient: g.
    pub fn identity(&self) -> Node {
        self.graph().typed("identity", [self], Options::default())
    }

    /// y\[j\] = Σ x\[k\] exp(2πi j k / n) / n over `axes`, each of n points: the inverse of `fft`.
    ///
    /// `norm` is NumPy's: `forward` does not divide, `ortho` does by √n. Real operands are taken as complex. float16
    /// gives complex64, integers complex128. PyTorch's, JAX's and NumPy's `ifft`, and `ifft2` and `ifftn` by several
    /// axes.
    ///
    /// Since opset 2.
    ///
    /// Gradient: fft(g) / n: of a real operand, the real part.
    pub fn ifft(&self) -> Node {
        self.ifft_with(IfftOptions::new())
    }

    /// [`ifft`](Self::ifft) with options.
    pub fn ifft_with(&self, options: IfftOptions) -> Node {
        self.graph().typed("ifft", [self], options.0)
    }

    /// y = P(a, x) = ∫₀ˣ tᵃ⁻¹ exp(−t) dt / Γ(a), broadcasting: `torch.special.gammainc`, JAX's `igamma`, SciPy's.
    ///
    /// To 512 units, SciPy's own on NumPy; below 1e-290 to a part of 1e-12. Derivatives by x are to 1e-12 of their
    /// value, by a (of which PyTorch has none, and JAX's are to 1e-7 of 1) to 1e-12; there is no second derivative by
    /// a.
    ///
    /// Since opset 2.
    ///
    /// Gradient: da = g · ∂P/∂a by an integral; dx = g · xᵃ⁻¹ exp(−x) / Γ(a).
    pub fn igamma(&self, x: &Node) -> Node {
        self.graph().typed("igamma", [self, x], Options::default())
    }

    /// y = Q(a, x) = 1 − P(a, x), accurate where it is small: `torch.special.gammaincc`, JAX's `igammac`, SciPy's.
    ///
    /// To 512 units, SciPy's own on NumPy; below 1e-290 to a part of 1e-12. Derivatives as those of `igamma`, with the
    /// other sign.
    ///
    /// Since opset 2.
    ///
    /// Gradient: da = −g · ∂P/∂a by an integral; dx = −g · xᵃ⁻¹ exp(−x) / Γ(a).
    pub fn igammac(&self, x: &Node) -> Node {
        self.graph().typed("igammac", [self, x], Options::default())
    }

    /// y = Im x; 0 for a real x. JAX's and NumPy's `imag`; PyTorch's refuses a real x.
    ///
    /// Since opset 2.
    ///
    /// Gradient: i · g.
    pub fn imag(&self) -> Node {
        self.graph().typed("imag", [self], Options::default())
    }

    /// y = x⁻¹, for matrices on the last two axes.
    ///
    /// Where x is singular y is NaN, or, where rounding hides that, very large; the others of the batch are as if it
    /// were not there. To solve a system, `solve` is quicker and more accurate. Integers give float64; float16 is
    /// computed in a wider float, and rounded once.
    ///
    /// Gradient: −yᴴ g yᴴ.
    pub fn inv(&self) -> Node {
        self.graph().typed("inv", [self], Options::default())
    }

    /// The real tensor whose `rfft` x is: of n = `sizes` points on the last of `axes`, 2 (m − 1) for m entries of x.
    ///
    /// The imaginary parts of entry 0, and of entry n / 2 where n is even, count for nothing. Real operands are taken
    /// as complex. float16 gives float16, integers float64. `norm` is that of `ifft`. PyTorch's, JAX's and NumPy's
    /// `irfft`, and `irfft2` and `irfftn` by several axes.
    ///
    /// Since opset 2.
    ///
    /// Gradient: rfft(g) / n, the inner entries twice.
    pub fn irfft(&self) -> Node {
        self.irfft_with(IrfftOptions::new())
    }

    /// [`irfft`](Self::irfft) with options.
    pub fn irfft_with(&self, options: IrfftOptions) -> Node {
        self.graph().typed("irfft", [self], options.0)
    }

    /// y = whether x is neither infinite nor NaN.
    pub fn is_finite(&self) -> Node {
        self.graph().typed("is_finite", [self], Options::default())
    }

    /// y = (x − mean) / √(variance + eps) · weight + bias, mean and variance (n in the denominator) over `axes`.
    ///
    /// weight and bias have x's extents on `axes`, in ascending order. J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer
    /// normalization" (2016). CJC normalises the whole tensor: give all axes.
    ///
    /// Gradient: with z normalised and h = g · weight: dx = (h − mean h − z · mean(h·z)) / √(variance + eps).
    pub fn layer_norm(&self) -> Node {
        self.layer_norm_with(LayerNormOptions::new())
    }

    /// [`layer_norm`](Self::layer_norm) with options.
    pub fn layer_norm_with(&self, options: LayerNormOptions) -> Node {
        self.graph().typed("layer_norm", [self], options.0)
    }

    /// y = x for x \> 0, else alpha · x. The derivative at 0 is alpha.
    ///
    /// Gradient: g where x \> 0 or NaN, else g · alpha.
    pub fn leaky_relu(&self) -> Node {
        self.leaky_relu_with(LeakyReluOptions::new())
    }

    /// [`leaky_relu`](Self::leaky_relu) with options.
    pub fn leaky_relu_with(&self, options: LeakyReluOptions) -> Node {
        self.graph().typed("leaky_relu", [self], options.0)
    }

    /// y = (a \< b), elementwise; false beside NaN.
    pub fn less(&self, b: &Node) -> Node {
        self.graph().typed("less", [self, b], Options::default())
    }

    /// y = (a ≤ b), elementwise; false beside NaN.
    pub fn less_equal(&self, b: &Node) -> Node {
        self.graph().typed("less_equal", [self, b], Options::default())
    }

    /// y = log |Γ(x)|: ∞ at 0, −1, −2, …. To 4 units; near its zeros below 0 (−2.457, −2.748, −3.144, …) to 1e-15.
    ///
    /// SciPy's has no correct digit left where x is within 1e-16 of 1 or 2, the zeros above 0; this one keeps all.
    ///
    /// Gradient: g · digamma(x).
    pub fn lgamma(&self) -> Node {
        self.graph().typed("lgamma", [self], Options::default())
    }

    /// y = activation(x @ w + b) for x\[…, in\], w\[in, out\] and b\[out\]: y\[…, out\]. Without b nothing is added.
    ///
    /// b may have any shape that broadcasts to y's. The activation is the op of that name with its defaults.
    ///
    /// Gradient: with h = g · activation′: dx = h @ wᵀ, dw = xᵀ @ h, db = Σ h over the rows.
    pub fn linear(&self, w: &Node) -> Node {
        self.linear_with(w, LinearOptions::new())
    }

    /// [`linear`](Self::linear) with options.
    pub fn linear_with(&self, w: &Node, options: LinearOptions) -> Node {
        self.graph().typed("linear", [self, w], options.0)
    }

    /// y = ln x: −∞ at 0, NaN for x \< 0.
    ///
    /// Of a complex x ln |x| + i · angle x. The cut is the negative real axis: the sign of the imaginary zero says from
    /// which side it is seen (C99).
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

    /// [`log_eps`](Self::log_eps) with options.
    pub fn log_eps_with(&self, options: LogEpsOptions) -> Node {
        self.graph().typed("log_eps", [self], options.0)
    }

    /// y = log Φ(x), of the standard normal distribution function Φ, in both tails. To 4 units.
    ///
    /// Its derivative φ(x) / Φ(x) keeps its relative accuracy where Φ(x) is too small for a number, and so do the
    /// derivatives of that. Where x \> 0, it is as accurate as exp(−x²/2): to x²/2 units.
    ///
    /// Gradient: g · φ(x) / Φ(x), φ the density.
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
    /// A row that is −inf throughout gives NaN.
    ///
    /// Gradient: g − exp(y) · Σ g, the sum along the axis.
    pub fn log_softmax(&self) -> Node {
        self.log_softmax_with(LogSoftmaxOptions::new())
    }

    /// [`log_softmax`](Self::log_softmax) with options.
    pub fn log_softmax_with(&self, options: LogSoftmaxOptions) -> Node {
        self.graph().typed("log_softmax", [self], options.0)
    }

    /// y = ln(eᵃ + eᵇ), stable. Where both are −∞, y is −∞ and the gradients are 0; where both are ∞, a half each.
    ///
    /// Gradient: da = g · sigmoid(a − b), db = g · sigmoid(b − a).
    pub fn logaddexp(&self, b: &Node) -> Node {
        self.graph().typed("logaddexp", [self, b], Options::default())
    }

    /// y = a and b, elementwise, broadcasting. Numbers are true where they are not 0; NaN is true.
    pub fn logical_and(&self, b: &Node) -> Node {
        self.graph().typed("logical_and", [self, b], Options::default())
    }

    /// y = not x, elementwise. Numbers are true where they are not 0; NaN is true.
    pub fn logical_not(&self) -> Node {
        self.graph().typed("logical_not", [self], Options::default())
    }

    /// y = a or b (or both), elementwise, broadcasting. Numbers are true where they are not 0; NaN is true.
    pub fn logical_or(&self, b: &Node) -> Node {
        self.graph().typed("logical_or", [self, b], Options::default())
    }

    /// y = log Σ exp x over axes, stable: m + log Σ exp(x − m) with m = max x. −inf over nothing.
    ///
    /// Where all of x is −inf, y is −inf and the gradient 0. Where some of it is inf, these share the gradient. Where
    /// one is NaN, so are y and the gradient. Integers give float64.
    ///
    /// Gradient: g · exp(x − y).
    pub fn logsumexp(&self) -> Node {
        self.logsumexp_with(LogsumexpOptions::new())
    }

    /// [`logsumexp`](Self::logsumexp) with options.
    pub fn logsumexp_with(&self, options: LogsumexpOptions) -> Node {
        self.graph().typed("logsumexp", [self], options.0)
    }

    /// y that makes |a y − b| least: a \[batch…, m, n\] with m ≥ n, b \[m\], \[batch…, m\] or \[batch…, m, k\].
    ///
    /// y \[n\], \[batch…, n\] or \[batch…, n, k\]. b is a vector if it is 1-d, or one for each matrix if it has a's
    /// shape without the last axis and its last two axes cannot be matrices of m rows; else they are. Without `rcond`,
    /// by `qr`: the columns of a have to be independent. With it, by `pinv`: singular values up to that part of the
    /// largest are taken for 0, and of all y the shortest is given. Integers give float64; float16 is computed in
    /// float32, and rounded once. PyTorch's, JAX's and NumPy's `linalg.lstsq`, of which the first result alone.
    ///
    /// Since opset 2.
    ///
    /// Gradient: that of qr or pinv: db = a (aᴴ a)⁻¹ g, da = (b − a y) ((aᴴ a)⁻¹ g)ᴴ − db yᴴ.
    pub fn lstsq(&self, b: &Node) -> Node {
        self.lstsq_with(b, LstsqOptions::new())
    }

    /// [`lstsq`](Self::lstsq) with options.
    pub fn lstsq_with(&self, b: &Node, options: LstsqOptions) -> Node {
        self.graph().typed("lstsq", [self, b], options.0)
    }

    /// permutation, l, u with x\[permutation\] = l u: rows exchanged so that no entry of l is larger than 1.
    ///
    /// x \[batch…, m, n\], permutation int64 \[batch…, m\], l \[batch…, m, k\] lower triangular with 1 on its diagonal,
    /// u \[batch…, k, n\] upper triangular, k = min(m, n). Three results, read through get_output. To solve a system,
    /// `solve` is quicker. Complex numbers are compared by |Re| + |Im|. The gradient holds where the first k columns of
    /// x\[permutation\] are independent in their first k rows; where they are not, it is infinite or NaN. The
    /// permutation has none. A matrix that holds an infinity or NaN gives NaN for itself alone, and its rows as they
    /// are. Integers give float64; float16 is computed in a wider float, and rounded once. F. de Hoog, R. Anderssen, M.
    /// Lukas, Differentiation of matrix functionals using triangular factorization (2011). PyTorch's `linalg.lu`, which
    /// has a matrix in place of the permutation; JAX's `lax.linalg.lu`, in another order.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through `get_output`.
    ///
    /// Gradient: of x\[permutation\]: l⁻ᴴ (tril(lᴴ ḡl, −1) + triu(ḡu uᴴ)) u⁻ᴴ for square matrices; rows put back.
    pub fn lu(&self) -> Node {
        self.graph().typed("lu", [self], Options::default())
    }

    /// y = re + i · im, elementwise, broadcasting: complex64 of float32 and narrower floats, else complex128.
    ///
    /// The parts stay as they are, infinities, NaN and signs of zeros too, which re + im · i would not leave so.
    /// PyTorch's `complex`, JAX's `lax.complex`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: d re = Re g, d im = Im g.
    pub fn make_complex(&self, im: &Node) -> Node {
        self.graph().typed("make_complex", [self, im], Options::default())
    }

    /// The value under one key of a map that is kept as one tensor, keys in insertion order.
    ///
    /// The leading axis is cut into `total_keys` equal parts, and y is the part `key_index`; the axis stays.
    ///
    /// Gradient: g on that part, 0 on the others.
    ///
    /// `key_index`: which key, from 0, in insertion order.
    ///
    /// `total_keys`: how many keys the map has.
    pub fn map_lookup(&self, key_index: i64, total_keys: i64) -> Node {
        self.graph().typed(
            "map_lookup",
            [self],
            Options::default().with("key_index", key_index).with("total_keys", total_keys),
        )
    }

    /// y = a @ b, as NumPy: y\[…, i, j\] = Σₖ a\[…, i, k\] · b\[…, k, j\], and the axes before broadcast.
    ///
    /// A 1-d operand counts as a row on the left and as a column on the right, and that axis is dropped from the
    /// result. float16 adds up in float32; integers and bool are multiplied in their own dtype, as NumPy does.
    ///
    /// Gradient: da = g @ bᴴ, db = aᴴ @ g, summed over batch axes that were broadcast.
    pub fn matmul(&self, b: &Node) -> Node {
        self.graph().typed("matmul", [self, b], Options::default())
    }

    /// y = exp x = 1 + x + x² / 2 + …, of the square matrices on the last two axes.
    ///
    /// Scaled until its norm is below 1.1, approximated by Taylor's polynomial of degree 18, and squared as often: the
    /// error is some units of rounding times the norm of y. A matrix that holds an infinity or NaN gives NaN for itself
    /// alone. Integers give float64; float16 is computed in a wider float, and rounded once. To any order, the gradient
    /// is an exponential again. P. Bader, S. Blanes, F. Casas, Computing the matrix exponential with an optimized
    /// Taylor polynomial approximation (2019); its derivative by I. Najfeld, T. F. Havel (1995), and A. H. Al-Mohy, N.
    /// J. Higham (2009). PyTorch's `linalg.matrix_exp`, JAX's and SciPy's `linalg.expm`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: the upper right block of exp \[\[xᴴ, g\], \[0, xᴴ\]\].
    pub fn matrix_exp(&self) -> Node {
        self.graph().typed("matrix_exp", [self], Options::default())
    }

    /// y = xᵏ, the product of k square matrices x, on the last two axes; x⁰ = 1, and x⁻ᵏ the power of the inverse.
    ///
    /// By squares: some 2 log₂ k products. A negative power of a singular matrix is NaN, or, where rounding hides that,
    /// very large. Integers give float64; float16 is computed in a wider float, and rounded once. PyTorch's, JAX's and
    /// NumPy's `linalg.matrix_power`, of which the latter keep whole numbers whole.
    ///
    /// Since opset 2.
    ///
    /// Gradient: Σ (xᴴ)ⁱ g (xᴴ)ʲ over i + j = k − 1, as the products give it.
    ///
    /// `k`: the exponent; may be 0 or negative.
    pub fn matrix_power(&self, k: i64) -> Node {
        self.graph().typed("matrix_power", [self], Options::default().with("k", k))
    }

    /// y = how many singular values are larger than max(m, n) ε times the largest: int64, \[batch…, m, n\] →
    /// \[batch…\].
    ///
    /// ε is that of x's dtype. A matrix that holds an infinity or NaN has rank 0. PyTorch's, JAX's and NumPy's
    /// `linalg.matrix_rank` without a tolerance.
    ///
    /// Since opset 2.
    pub fn matrix_rank(&self) -> Node {
        self.graph().typed("matrix_rank", [self], Options::default())
    }

    /// y = max x over axes; NaN if one of the elements is. Ties, also of NaN, share the gradient equally.
    ///
    /// Gradient: g / k to each of the k elements equal to y, or NaN where y is; zero to the others.
    pub fn max(&self) -> Node {
        self.max_with(MaxOptions::new())
    }

    /// [`max`](Self::max) with options.
    pub fn max_with(&self, options: MaxOptions) -> Node {
        self.graph().typed("max", [self], options.0)
    }

    /// y\[…, i\] = the largest element of the window at i; NaN where it holds one. x \[..., w\]; padding counts as −∞.
    ///
    /// w' = ⌊(w + 2 · padding − dilation · (kernel_size − 1) − 1) / stride⌋ + 1; with `ceiling`, ⌈…⌉ + 1. PyTorch's
    /// `max_pool1d`, whose `ceil_mode` is `ceiling`; JAX's `lax.reduce_window` with window_dilation, without a ceiling.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g, added at the first maximum (in row-major order) of each window.
    ///
    /// `kernel_size`: extents of the windows along each spatial axis.
    pub fn max_pool1d(&self, kernel_size: impl Into<Vec<i64>>) -> Node {
        self.max_pool1d_with(kernel_size, MaxPool1dOptions::new())
    }

    /// [`max_pool1d`](Self::max_pool1d) with options.
    pub fn max_pool1d_with(&self, kernel_size: impl Into<Vec<i64>>, options: MaxPool1dOptions) -> Node {
        self.graph().typed("max_pool1d", [self], options.0.made::<Vec<i64>>("kernel_size", kernel_size))
    }

    /// y\[…, i, j\] = the largest element of the window at (i, j); NaN where it holds one.
    ///
    /// x \[..., h, w\]; padding counts as −∞. As PyTorch's max_pool2d.
    ///
    /// Gradient: g, added at the first maximum (in row-major order) of each window.
    ///
    /// `kernel_size`: extents of the windows along each spatial axis.
    pub fn max_pool2d(&self, kernel_size: impl Into<Vec<i64>>) -> Node {
        self.max_pool2d_with(kernel_size, MaxPool2dOptions::new())
    }

    /// [`max_pool2d`](Self::max_pool2d) with options.
    pub fn max_pool2d_with(&self, kernel_size: impl Into<Vec<i64>>, options: MaxPool2dOptions) -> Node {
        self.graph().typed("max_pool2d", [self], options.0.made::<Vec<i64>>("kernel_size", kernel_size))
    }

    /// y\[…, h, w\] = Σ g\[…, i, j\] over the windows (i, j) of which x\[…, h, w\] is the first maximum, in row-major
    /// order.
    ///
    /// g \[..., h', w'\], x \[..., h, w\]: what is 0 elsewhere, and what max_pool2d gives back of g. A NaN counts as a
    /// maximum.
    ///
    /// Gradient: dg = the cotangent at max_pool2d_indices; none for x, of which the result is constant in pieces.
    ///
    /// `kernel_size`: extents of the windows along each spatial axis.
    pub fn max_pool2d_back(&self, x: &Node, kernel_size: impl Into<Vec<i64>>) -> Node {
        self.max_pool2d_back_with(x, kernel_size, MaxPool2dBackOptions::new())
    }

    /// [`max_pool2d_back`](Self::max_pool2d_back) with options.
    pub fn max_pool2d_back_with(
        &self,
        x: &Node,
        kernel_size: impl Into<Vec<i64>>,
        options: MaxPool2dBackOptions,
    ) -> Node {
        self.graph().typed("max_pool2d_back", [self, x], options.0.made::<Vec<i64>>("kernel_size", kernel_size))
    }

    /// y\[…, i, j\] = where the first maximum (in row-major order) of the window at (i, j) lies: h · width + w.
    ///
    /// int64, flat within its plane, as PyTorch's return_indices; a NaN counts as a maximum.
    ///
    /// `kernel_size`: extents of the windows along each spatial axis.
    pub fn max_pool2d_indices(&self, kernel_size: impl Into<Vec<i64>>) -> Node {
        self.max_pool2d_indices_with(kernel_size, MaxPool2dIndicesOptions::new())
    }

    /// [`max_pool2d_indices`](Self::max_pool2d_indices) with options.
    pub fn max_pool2d_indices_with(&self, kernel_size: impl Into<Vec<i64>>, options: MaxPool2dIndicesOptions) -> Node {
        self.graph().typed("max_pool2d_indices", [self], options.0.made::<Vec<i64>>("kernel_size", kernel_size))
    }

    /// y\[…, i, j, k\] = the largest element of the window at (i, j, k); NaN where it holds one. x \[..., d, h, w\].
    ///
    /// Padding counts as −∞; extents as those of max_pool1d. A pool of planes that is dilated, or has a ceiling, is one
    /// whose first kernel size is 1. PyTorch's `max_pool3d`, whose `ceil_mode` is `ceiling`; JAX's `lax.reduce_window`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g, added at the first maximum (in row-major order) of each window.
    ///
    /// `kernel_size`: extents of the windows along each spatial axis.
    pub fn max_pool3d(&self, kernel_size: impl Into<Vec<i64>>) -> Node {
        self.max_pool3d_with(kernel_size, MaxPool3dOptions::new())
    }

    /// [`max_pool3d`](Self::max_pool3d) with options.
    pub fn max_pool3d_with(&self, kernel_size: impl Into<Vec<i64>>, options: MaxPool3dOptions) -> Node {
        self.graph().typed("max_pool3d", [self], options.0.made::<Vec<i64>>("kernel_size", kernel_size))
    }

    /// y = the larger of a and b, elementwise, broadcasting; NaN where either is NaN.
    ///
    /// Gradient: da = g where a \> b, or a alone is NaN; g / 2 where a = b, or both are NaN; else 0; db likewise.
    pub fn maximum(&self, b: &Node) -> Node {
        self.graph().typed("maximum", [self, b], Options::default())
    }

    /// y = Σ x / n over axes, n the number of elements reduced; NaN where n = 0. Integers give float64.
    ///
    /// Gradient: g / n, broadcast back over the axes.
    pub fn mean(&self) -> Node {
        self.mean_with(MeanOptions::new())
    }

    /// [`mean`](Self::mean) with options.
    pub fn mean_with(&self, options: MeanOptions) -> Node {
        self.graph().typed("mean", [self], options.0)
    }

    /// y = min x over axes; NaN if one of the elements is. Ties, also of NaN, share the gradient equally.
    ///
    /// Gradient: g / k to each of the k elements equal to y, or NaN where y is; zero to the others.
    pub fn min(&self) -> Node {
        self.min_with(MinOptions::new())
    }

    /// [`min`](Self::min) with options.
    pub fn min_with(&self, options: MinOptions) -> Node {
        self.graph().typed("min", [self], options.0)
    }

    /// y = the smaller of a and b, elementwise, broadcasting; NaN where either is NaN.
    ///
    /// Gradient: da = g where a \< b, or a alone is NaN; g / 2 where a = b, or both are NaN; else 0; db likewise.
    pub fn minimum(&self, b: &Node) -> Node {
        self.graph().typed("minimum", [self, b], Options::default())
    }

    /// y = activation(x @ wᵀ + b) for x\[…, in\], w\[out, in\] and b\[out\]: y\[…, out\].
    ///
    /// b may have any shape that broadcasts to y's. The activation is the op of that name with its defaults; CJC's
    /// `gelu` here is the tanh form: write that one as parts.
    ///
    /// Gradient: with h = g · activation′: dx = h @ w, dw = hᵀ @ x, db = Σ h over the rows.
    pub fn mlp_layer(&self, w: &Node, b: &Node) -> Node {
        self.mlp_layer_with(w, b, MlpLayerOptions::new())
    }

    /// [`mlp_layer`](Self::mlp_layer) with options.
    pub fn mlp_layer_with(&self, w: &Node, b: &Node, options: MlpLayerOptions) -> Node {
        self.graph().typed("mlp_layer", [self, w, b], options.0)
    }

    /// y = a − b · ⌊a / b⌋: the remainder, with the divisor's sign, as Python's % and NumPy's mod.
    ///
    /// A float modulo 0 is NaN, an integer modulo 0 is 0.
    ///
    /// Gradient: da = g, db = −g · ⌊a / b⌋.
    pub fn mod_(&self, b: &Node) -> Node {
        self.graph().typed("mod", [self, b], Options::default())
    }

    /// loss = (x − y)², elementwise on equal shapes; then the mean.
    ///
    /// Gradient: dx = g · 2 (x − y) / n, dy = −dx.
    pub fn mse_loss(&self, y: &Node) -> Node {
        self.mse_loss_with(y, MseLossOptions::new())
    }

    /// [`mse_loss`](Self::mse_loss) with options.
    pub fn mse_loss_with(&self, y: &Node, options: MseLossOptions) -> Node {
        self.graph().typed("mse_loss", [self, y], options.0)
    }

    /// y = a · b, elementwise, broadcasting as NumPy.
    ///
    /// Gradient: da = g · b, db = g · a.
    pub fn mul(&self, b: &Node) -> Node {
        self.graph().typed("mul", [self, b], Options::default())
    }

    /// y = x · scalar.
    ///
    /// Gradient: g · scalar.
    ///
    /// `scalar`: the constant.
    pub fn mul_scalar(&self, scalar: f64) -> Node {
        self.graph().typed("mul_scalar", [self], Options::default().with("scalar", scalar))
    }

    /// y = −x.
    ///
    /// Gradient: −g.
    pub fn neg(&self) -> Node {
        self.graph().typed("neg", [self], Options::default())
    }

    /// The places where `mask` is true, in row-major order: int64 \[k, rank\], and how many there are: int64 \[\].
    ///
    /// k is stated, and may be more than there are, or fewer: what is beyond k is cut, and the count tells; behind it
    /// there are zeros. Two results, read through get_output. JAX's `nonzero` with a size, whose rows are its tuple
    /// side by side; PyTorch's `nonzero`, which has as many rows as there are.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through `get_output`.
    ///
    /// `k`: how many entries there are to be.
    pub fn nonzero(&self, k: i64) -> Node {
        self.graph().typed("nonzero", [self], Options::default().with("k", k))
    }

    /// y = √Σ x² over axes, the Euclidean norm, without overflow or underflow on the way. Integers give float64.
    ///
    /// At 0 the gradient is 0, the subgradient of least norm, and so is that of the gradient. An infinite element gets
    /// g, with its sign. Where one is NaN, so are y and the gradient.
    ///
    /// Gradient: g · x / y, and 0 where y = 0.
    pub fn norm(&self) -> Node {
        self.norm_with(NormOptions::new())
    }

    /// [`norm`](Self::norm) with options.
    pub fn norm_with(&self, options: NormOptions) -> Node {
        self.graph().typed("norm", [self], options.0)
    }

    /// y = (a ≠ b), elementwise; NaN differs from everything.
    pub fn not_equal(&self, b: &Node) -> Node {
        self.graph().typed("not_equal", [self, b], Options::default())
    }

    /// y\[…, c\] = 1 where indices\[…\] = c, else 0; a new last axis of extent `classes`. Indices lie in \[0, classes).
    ///
    /// `classes`: the number of classes.
    pub fn one_hot(&self, classes: i64) -> Node {
        self.one_hot_with(classes, OneHotOptions::new())
    }

    /// [`one_hot`](Self::one_hot) with options.
    pub fn one_hot_with(&self, classes: i64, options: OneHotOptions) -> Node {
        self.graph().typed("one_hot", [self], options.0.with("classes", classes))
    }

    /// y = x with `fill` around it: pad_width\[2i\] entries before and pad_width\[2i + 1\] after, on each axis i.
    ///
    /// An infinity or NaN is stated by `fill_as`. PyTorch's `functional.pad` lists the last axis first; JAX's and
    /// NumPy's `pad` have pairs, in the order here.
    ///
    /// Gradient: g where x is.
    ///
    /// `pad_width`: entries before and after, for one axis after the other.
    pub fn pad(&self, pad_width: impl Into<Vec<i64>>) -> Node {
        self.pad_with(pad_width, PadOptions::new())
    }

    /// [`pad`](Self::pad) with options.
    pub fn pad_with(&self, pad_width: impl Into<Vec<i64>>, options: PadOptions) -> Node {
        self.graph().typed("pad", [self], options.0.made::<Vec<i64>>("pad_width", pad_width))
    }

    /// y = x⁺, the pseudoinverse of Moore and Penrose: v diag(1 / s) uᴴ of x = u diag(s) vᴴ, without those s that are
    /// 0.
    ///
    /// x \[batch…, m, n\], y \[batch…, n, m\]. Singular values up to `rcond` times the largest are taken for 0: by
    /// default max(m, n) ε. The gradient is that at constant rank, which is exact where nothing but zeros is cut, equal
    /// singular values or not; of larger ones that are cut, it is off by their part of those that are kept. Where the
    /// rank changes, the pseudoinverse jumps. A matrix that holds an infinity or NaN, or for which LAPACK finds no
    /// answer, gives NaN for itself alone. Integers give float64; float16 is computed in a wider float, and rounded
    /// once. G. H. Golub, V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose
    /// variables separate (1973), eq. 4.12. PyTorch's `linalg.pinv` (rtol); JAX's and NumPy's have other defaults.
    ///
    /// Since opset 2.
    ///
    /// Gradient: −yᴴ g yᴴ + (1 − x y) gᴴ y yᴴ + yᴴ y gᴴ (1 − y x).
    pub fn pinv(&self) -> Node {
        self.pinv_with(PinvOptions::new())
    }

    /// [`pinv`](Self::pinv) with options.
    pub fn pinv_with(&self, options: PinvOptions) -> Node {
        self.graph().typed("pinv", [self], options.0)
    }

    /// y = ψ⁽ⁿ⁾(x) for n = `order`, the n-th derivative of `digamma`; order 0 is `digamma` itself.
    ///
    /// ±∞ at 0, −1, −2, …, with the sign that it has to the right of 0. To 10 units; for even orders, near the zeros
    /// below 0, to 10 units of what the nearest poles add up to. Values of less than 1e-307 · n! are inaccurate or 0.
    ///
    /// Orders go to 170, whose factorial is the largest in a float64; `polygamma` of order 170 has no derivative.
    ///
    /// Gradient: g · polygamma(x, order + 1).
    ///
    /// `order`: which derivative of digamma: 0 to 170.
    pub fn polygamma(&self, order: i64) -> Node {
        self.graph().typed("polygamma", [self], Options::default().with("order", order))
    }

    /// y = aᵇ, broadcasting; with one operand y = a^exponent, which is `pow_scalar`. 0⁰ = 1.
    ///
    /// A negative a to a fractional power is NaN, and so is its derivative by b. By b, the derivative is 0 where a = 0
    /// and b ≥ 0, or where a = ∞ and b \< 0. Powers of integers are integers: they wrap around as NumPy's, and to a
    /// negative exponent they are cut off towards zero (2⁻¹ → 0, as CuPy and PyTorch have it, where NumPy refuses) with
    /// 0⁻¹ → 0.
    ///
    /// Gradient: da = g · b · aᵇ⁻¹, db = g · y · log a.
    pub fn pow(&self) -> Node {
        self.pow_with(PowOptions::new())
    }

    /// [`pow`](Self::pow) with options.
    pub fn pow_with(&self, options: PowOptions) -> Node {
        self.graph().typed("pow", [self], options.0)
    }

    /// y = x^exponent for a real exponent. 0⁰ = 1; a negative x to a fractional power is NaN.
    ///
    /// Of a complex x, exp(exponent · log x), with the cut of `log`.
    ///
    /// Gradient: g · exponent · x^(exponent − 1), and 0 for an exponent of 0.
    ///
    /// `exponent`: the exponent.
    pub fn pow_scalar(&self, exponent: f64) -> Node {
        self.graph().typed("pow_scalar", [self], Options::default().with("exponent", exponent))
    }

    /// y = Π x over axes; 1 over nothing. Integers and bool multiply in int64, float16 in float32.
    ///
    /// The gradient is that of a tree of products, exact whatever the number of zeros, and so are those of higher
    /// order.
    ///
    /// Gradient: g · (product of all other elements).
    pub fn prod(&self) -> Node {
        self.prod_with(ProdOptions::new())
    }

    /// [`prod`](Self::prod) with options.
    pub fn prod_with(&self, options: ProdOptions) -> Node {
        self.graph().typed("prod", [self], options.0)
    }

    /// q, r with x = q r: the columns of q orthonormal, r upper triangular; reduced.
    ///
    /// x \[batch…, m, n\], q \[batch…, m, k\], r \[batch…, k, n\], k = min(m, n). Two results, read through get_output.
    /// The signs of r's diagonal are as LAPACK leaves them, of a row of r together with the column of q: a function has
    /// a meaning only if it does not depend on them. The gradient holds where the columns of x are independent; where
    /// they are not, it is infinite or NaN. Of fewer rows than columns there are values, and no gradient:
    /// `not_differentiable`. A matrix that holds an infinity or NaN gives NaN for itself alone. Integers give float64;
    /// float16 is computed in a wider float, and rounded once. S. F. Walter, L. Lehmann, Algorithmic differentiation of
    /// linear algebra functions with application in optimum experimental design, arXiv:1001.1654 (2010). PyTorch's and
    /// JAX's `linalg.qr`, reduced.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through `get_output`.
    ///
    /// Gradient: (ḡq + q (L + Lᴴ − Re diag L)) r⁻ᴴ, L the lower triangle of r ḡrᴴ − ḡqᴴ q; none where rows \< columns.
    pub fn qr(&self) -> Node {
        self.graph().typed("qr", [self], Options::default())
    }

    /// y = uniform \< p, of p's shape: true with probability p. The uniform numbers are of p's dtype.
    ///
    /// As `jax.random.bernoulli`. PyTorch's `bernoulli` has floats of another generator.
    ///
    /// Since opset 2.
    pub fn random_bernoulli(&self, p: &Node) -> Node {
        self.graph().typed("random_bernoulli", [self, p], Options::default())
    }

    /// y = 32 random bits an element: the exclusive or of both words of counter i, row-major. As `jax.random.bits`.
    ///
    /// PyTorch's `randint` has bits of another generator.
    ///
    /// Since opset 2.
    ///
    /// `shape`: the result's shape.
    pub fn random_bits(&self, shape: impl Into<Vec<i64>>) -> Node {
        self.random_bits_with(shape, RandomBitsOptions::new())
    }

    /// [`random_bits`](Self::random_bits) with options.
    pub fn random_bits_with(&self, shape: impl Into<Vec<i64>>, options: RandomBitsOptions) -> Node {
        self.graph().typed("random_bits", [self], options.0.made::<Vec<i64>>("shape", shape))
    }

    /// y = argmax(logits + gumbel) along `axis`, int64: i with a probability that goes as exp(logits\[i\]).
    ///
    /// As `jax.random.categorical`. PyTorch's `multinomial` takes weights, and has another generator.
    ///
    /// Since opset 2.
    pub fn random_categorical(&self, logits: &Node) -> Node {
        self.random_categorical_with(logits, RandomCategoricalOptions::new())
    }

    /// [`random_categorical`](Self::random_categorical) with options.
    pub fn random_categorical_with(&self, logits: &Node, options: RandomCategoricalOptions) -> Node {
        self.graph().typed("random_categorical", [self, logits], options.0)
    }

    /// y = −log1p(−u), u uniform in \[0, 1): exponential numbers of mean 1. As `jax.random.exponential`.
    ///
    /// PyTorch's `exponential_` has numbers of another generator.
    ///
    /// Since opset 2.
    ///
    /// `shape`: the result's shape.
    ///
    /// `dtype`: the result's dtype; one of float32, float64.
    pub fn random_exponential(&self, shape: impl Into<Vec<i64>>, dtype: impl Into<DType>) -> Node {
        self.graph().typed(
            "random_exponential",
            [self],
            Options::default().made::<Vec<i64>>("shape", shape).made::<DType>("dtype", dtype),
        )
    }

    /// key = a new key \[2\] for each number: the words of counter (0, number mod 2³²). As `jax.random.fold_in`.
    ///
    /// PyTorch has no keys: a `Generator` each.
    ///
    /// Since opset 2.
    pub fn random_fold_in(&self, number: &Node) -> Node {
        self.graph().typed("random_fold_in", [self, number], Options::default())
    }

    /// y = −log(−log u), u uniform in \[0, 1), its 0 replaced by the least normal number. As `jax.random.gumbel`.
    ///
    /// PyTorch's `distributions.Gumbel` has numbers of another generator.
    ///
    /// Since opset 2.
    ///
    /// `shape`: the result's shape.
    ///
    /// `dtype`: the result's dtype; one of float32, float64.
    pub fn random_gumbel(&self, shape: impl Into<Vec<i64>>, dtype: impl Into<DType>) -> Node {
        self.graph().typed(
            "random_gumbel",
            [self],
            Options::default().made::<Vec<i64>>("shape", shape).made::<DType>("dtype", dtype),
        )
    }

    /// key = (seed ≫ 32, seed mod 2³²): uint32 \[2\] from an int64 \[\]. As
    /// `jax.random.key_data(jax.random.key(seed))`.
    ///
    /// PyTorch's `manual_seed` begins another sequence, which goes on by itself.
    ///
    /// Since opset 2.
    pub fn random_key(&self) -> Node {
        self.graph().typed("random_key", [self], Options::default())
    }

    /// y = √2 · erfinv(u), u uniform in (−1, 1): standard normal numbers. As `jax.random.normal`, to 32 ulp.
    ///
    /// PyTorch's `randn` has numbers of another generator.
    ///
    /// Since opset 2.
    ///
    /// `shape`: the result's shape.
    ///
    /// `dtype`: the result's dtype; one of float32, float64.
    pub fn random_normal(&self, shape: impl Into<Vec<i64>>, dtype: impl Into<DType>) -> Node {
        self.graph().typed(
            "random_normal",
            [self],
            Options::default().made::<Vec<i64>>("shape", shape).made::<DType>("dtype", dtype),
        )
    }

    /// y = 0 … k−1 in random order, int64 \[k\]: a stable argsort of k numbers of 64 random bits, unsigned.
    ///
    /// `jax.random.permutation` has another rule, and PyTorch's `randperm` another generator.
    ///
    /// Since opset 2.
    ///
    /// `k`: how many numbers.
    pub fn random_permutation(&self, k: i64) -> Node {
        self.graph().typed("random_permutation", [self], Options::default().with("k", k))
    }

    /// keys = k new keys \[k, 2\], each of its own sequence: the words of the counters 0 … k−1. As `jax.random.split`.
    ///
    /// PyTorch has no keys: a `Generator` each.
    ///
    /// Since opset 2.
    ///
    /// `k`: how many keys.
    pub fn random_split(&self, k: i64) -> Node {
        self.graph().typed("random_split", [self], Options::default().with("k", k))
    }

    /// y = uniform numbers in \[0, 1): 23 random bits (of float64, 52), over 2²³ (2⁵²). As `jax.random.uniform`.
    ///
    /// PyTorch's `rand` has numbers of another generator.
    ///
    /// Since opset 2.
    ///
    /// `shape`: the result's shape.
    ///
    /// `dtype`: the result's dtype; one of float32, float64.
    pub fn random_uniform(&self, shape: impl Into<Vec<i64>>, dtype: impl Into<DType>) -> Node {
        self.graph().typed(
            "random_uniform",
            [self],
            Options::default().made::<Vec<i64>>("shape", shape).made::<DType>("dtype", dtype),
        )
    }

    /// y = Re x; a real x itself. PyTorch's, JAX's and NumPy's `real`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g, with the imaginary part 0.
    pub fn real(&self) -> Node {
        self.graph().typed("real", [self], Options::default())
    }

    /// y = 1 / x; integers give floats, as `div`.
    ///
    /// Gradient: −g · y².
    pub fn reciprocal(&self) -> Node {
        self.graph().typed("reciprocal", [self], Options::default())
    }

    /// y = max(x, 0). The derivative at 0 is `at_zero`; some systems let the gradient pass there.
    ///
    /// Gradient: g where x \> 0 or NaN, g · at_zero where x = 0, else 0.
    pub fn relu(&self) -> Node {
        self.relu_with(ReluOptions::new())
    }

    /// [`relu`](Self::relu) with options.
    pub fn relu_with(&self, options: ReluOptions) -> Node {
        self.graph().typed("relu", [self], options.0)
    }

    /// y = a − b · (a / b without its fraction): C's % and fmod, with a's sign. `mod` has b's.
    ///
    /// A float by 0 gives NaN, an integer 0. PyTorch's `fmod`, JAX's `lax.rem`, which gives a for an integer by 0.
    ///
    /// Since opset 2.
    ///
    /// Gradient: da = g, db = −g · (a / b without its fraction).
    pub fn rem(&self, b: &Node) -> Node {
        self.graph().typed("rem", [self, b], Options::default())
    }

    /// y holds x's elements, in row-major order, in another shape; one extent may be −1 and follows from the others.
    ///
    /// An absent or empty `shape` makes a 0-d tensor. `original_shape`, where given, must be x's shape.
    ///
    /// Gradient: g, reshaped back.
    pub fn reshape(&self) -> Node {
        self.reshape_with(ReshapeOptions::new())
    }

    /// [`reshape`](Self::reshape) with options.
    pub fn reshape_with(&self, options: ReshapeOptions) -> Node {
        self.graph().typed("reshape", [self], options.0)
    }

    /// y = x with other extents on some axes, each new entry interpolated from those around its place.
    ///
    /// The middle of new entry i lies at (i + ½) · extent / size − ½; with `corners`, at i · (extent − 1) / (size − 1).
    /// `nearest` takes the entry that is nearest, `linear` two, `cubic` four, by Keys's kernel with a = −0.75; beyond
    /// an end there is what is at the end. With `antialias`, kernels are wider where the tensor shrinks, a is −0.5, and
    /// what is beyond an end does not count. PyTorch's `interpolate` with modes nearest-exact, linear, bilinear,
    /// trilinear and bicubic, and align_corners; JAX's `image.resize`, whose cubic has a = −0.5 always, and which has
    /// no corners.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g, each entry's shares added where they were read.
    ///
    /// `sizes`: the new extents.
    pub fn resize(&self, sizes: impl Into<Vec<i64>>) -> Node {
        self.resize_with(sizes, ResizeOptions::new())
    }

    /// [`resize`](Self::resize) with options.
    pub fn resize_with(&self, sizes: impl Into<Vec<i64>>, options: ResizeOptions) -> Node {
        self.graph().typed("resize", [self], options.0.made::<Vec<i64>>("sizes", sizes))
    }

    /// The first ⌊n / 2⌋ + 1 entries of `fft` on the last of `axes`, of a real x: the others are their conjugates.
    ///
    /// float16 gives complex64, integers complex128. `norm` is that of `fft`. PyTorch's, JAX's and NumPy's `rfft`, and
    /// `rfft2` and `rfftn` by several axes.
    ///
    /// Since opset 2.
    ///
    /// Gradient: the real part of ifft(g) without its division, g filled up with zeros.
    pub fn rfft(&self) -> Node {
        self.rfft_with(RfftOptions::new())
    }

    /// [`rfft`](Self::rfft) with options.
    pub fn rfft_with(&self, options: RfftOptions) -> Node {
        self.graph().typed("rfft", [self], options.0)
    }

    /// y = x / √(mean x² + eps) · weight, the mean over `axes`; weight has x's extents there, in ascending order.
    ///
    /// B. Zhang, R. Sennrich, "Root mean square layer normalization" (2019).
    ///
    /// Gradient: with z normalised and h = g · weight: dx = (h − z · mean(h·z)) / √(mean x² + eps).
    pub fn rms_norm(&self) -> Node {
        self.rms_norm_with(RmsNormOptions::new())
    }

    /// [`rms_norm`](Self::rms_norm) with options.
    pub fn rms_norm_with(&self, options: RmsNormOptions) -> Node {
        self.graph().typed("rms_norm", [self], options.0)
    }

    /// y\[(i + shift) mod n\] = x\[i\] on each of `axes`; without axes, on the flattened tensor.
    ///
    /// As many shifts as axes, and one without axes. Negative shifts go towards the front.
    ///
    /// Gradient: g, rolled back.
    ///
    /// `shifts`: how far to move, for each axis.
    pub fn roll(&self, shifts: impl Into<Vec<i64>>) -> Node {
        self.roll_with(shifts, RollOptions::new())
    }

    /// [`roll`](Self::roll) with options.
    pub fn roll_with(&self, shifts: impl Into<Vec<i64>>, options: RollOptions) -> Node {
        self.graph().typed("roll", [self], options.0.made::<Vec<i64>>("shifts", shifts))
    }

    /// y = x rounded to the nearest whole number, halves to the even one: 0.5 → 0, 1.5 → 2.
    pub fn round(&self) -> Node {
        self.graph().typed("round", [self], Options::default())
    }

    /// y = 1 / √x, NaN for x \< 0.
    ///
    /// Gradient: −g · y³ / 2.
    pub fn rsqrt(&self) -> Node {
        self.graph().typed("rsqrt", [self], Options::default())
    }

    /// y = x, and then y\[index\[i, j, …\], j, …\] += updates\[i, j, …\] for axis 0, and alike for the others.
    ///
    /// `index` and `updates` have the same shape, of x's rank, and may be smaller than x off the axis. Repeated indices
    /// accumulate. The adjoint of `gather`. Indices lie in \[0, extent); with `from_end`, negative ones count from the
    /// end. PyTorch's `scatter_add`, which takes no negative index; JAX's `x.at[…].add`, which does, and drops those
    /// outside.
    ///
    /// Gradient: dx = g, d updates = gather(g, index); none for index.
    pub fn scatter_add(&self, index: &Node, updates: &Node) -> Node {
        self.scatter_add_with(index, updates, ScatterAddOptions::new())
    }

    /// [`scatter_add`](Self::scatter_add) with options.
    pub fn scatter_add_with(&self, index: &Node, updates: &Node, options: ScatterAddOptions) -> Node {
        self.graph().typed("scatter_add", [self, index, updates], options.0)
    }

    /// y\[s, …\] = the largest x\[i, …\] of the rows i with segment_ids\[i\] = s; NaN if one is.
    ///
    /// x \[n, …\]; segment_ids \[n\], in any order, each in \[0, segments); y \[segments, …\]. Ties share the gradient
    /// equally. A segment without rows is −∞, or the least number of an integer dtype. JAX's `ops.segment_max`;
    /// PyTorch's `scatter_reduce` with amax, whose ties share, too, which gives segments without rows what was there.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g / k to each of the k rows equal to y, or NaN where y is; zero to the others.
    ///
    /// `segments`: how many segments there are.
    pub fn segment_max(&self, segment_ids: &Node, segments: i64) -> Node {
        self.graph().typed("segment_max", [self, segment_ids], Options::default().with("segments", segments))
    }

    /// y\[s, …\] = the mean of x\[i, …\] over the rows i with segment_ids\[i\] = s; NaN where there is none.
    ///
    /// x \[n, …\]; segment_ids \[n\], in any order, each in \[0, segments); y \[segments, …\]. Integers give float64;
    /// float16 adds up in float32. PyTorch's `scatter_reduce` with mean; JAX has none.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx\[i, …\] = g\[segment_ids\[i\], …\] / (rows of the segment); none for segment_ids.
    ///
    /// `segments`: how many segments there are.
    pub fn segment_mean(&self, segment_ids: &Node, segments: i64) -> Node {
        self.graph().typed("segment_mean", [self, segment_ids], Options::default().with("segments", segments))
    }

    /// y\[s, …\] = the smallest x\[i, …\] of the rows i with segment_ids\[i\] = s; NaN if one is.
    ///
    /// x \[n, …\]; segment_ids \[n\], in any order, each in \[0, segments); y \[segments, …\]. Ties share the gradient
    /// equally. A segment without rows is ∞, or the greatest number of an integer dtype. JAX's `ops.segment_min`;
    /// PyTorch's `scatter_reduce` with amin, whose ties share, too, which gives segments without rows what was there.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g / k to each of the k rows equal to y, or NaN where y is; zero to the others.
    ///
    /// `segments`: how many segments there are.
    pub fn segment_min(&self, segment_ids: &Node, segments: i64) -> Node {
        self.graph().typed("segment_min", [self, segment_ids], Options::default().with("segments", segments))
    }

    /// y\[s, …\] = Π x\[i, …\] over the rows i with segment_ids\[i\] = s; 1 where there is none.
    ///
    /// x \[n, …\]; segment_ids \[n\], in any order, each in \[0, segments); y \[segments, …\]. Integers and bool
    /// multiply in int64, float16 in float32. The gradient is exact whatever the number of zeros, and so are those of
    /// higher order. JAX's `ops.segment_prod`, which has no gradient; PyTorch's `scatter_reduce` with prod.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g\[segment_ids\[i\], …\] · (product of the other rows of the segment); none for segment_ids.
    ///
    /// `segments`: how many segments there are.
    pub fn segment_prod(&self, segment_ids: &Node, segments: i64) -> Node {
        self.graph().typed("segment_prod", [self, segment_ids], Options::default().with("segments", segments))
    }

    /// y\[s, …\] = Σ x\[i, …\] over the rows i with segment_ids\[i\] = s; 0 where there is none.
    ///
    /// x \[n, …\]; segment_ids \[n\], in any order, each in \[0, segments); y \[segments, …\]. Integers and bool add up
    /// in int64, float16 in float32.
    ///
    /// Gradient: dx\[i, …\] = g\[segment_ids\[i\], …\]; none for segment_ids.
    ///
    /// `segments`: how many segments there are.
    pub fn segment_sum(&self, segment_ids: &Node, segments: i64) -> Node {
        self.graph().typed("segment_sum", [self, segment_ids], Options::default().with("segments", segments))
    }

    /// y = x at one `index` along `axis`, without that axis: x\[index\], x\[:, index\], …
    ///
    /// A negative index counts from the end. As PyTorch's select; `gather` reads at many indices.
    ///
    /// Gradient: g at the index, 0 elsewhere.
    ///
    /// `index`: the position to read at.
    pub fn select(&self, index: i64) -> Node {
        self.select_with(index, SelectOptions::new())
    }

    /// [`select`](Self::select) with options.
    pub fn select_with(&self, index: i64, options: SelectOptions) -> Node {
        self.graph().typed("select", [self], options.0.with("index", index))
    }

    /// y = 1.0507… · elu(x, alpha = 1.6732…): keeps mean 0 and variance 1 of what it is applied to.
    ///
    /// G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter, arXiv:1706.02515.
    ///
    /// Gradient: 1.0507… · that of elu.
    pub fn selu(&self) -> Node {
        self.graph().typed("selu", [self], Options::default())
    }

    /// y = 1 / (1 + e⁻ˣ), accurate in both tails, down to the smallest number. Of a complex x, by the same formula.
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

    /// y = sin(πx) / πx, and 1 at 0: NumPy's, PyTorch's and JAX's. 0 at whole numbers, exactly, and at infinity.
    ///
    /// To 4 units, next to whole numbers as well, where the libraries' lose all digits; there the derivative is (−1)ˣ /
    /// x.
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
    /// A list may be shorter: the axes that it does not reach are whole, or every position of theirs is read. Bounds as
    /// NumPy's: negative ones count from the end, and beyond an end means at that end. Steps are at least 1.
    ///
    /// Gradient: g at the positions that were read, 0 elsewhere.
    pub fn slice(&self) -> Node {
        self.slice_with(SliceOptions::new())
    }

    /// [`slice`](Self::slice) with options.
    pub fn slice_with(&self, options: SliceOptions) -> Node {
        self.graph().typed("slice", [self], options.0)
    }

    /// y = x\[s₀ : s₀ + sizes\[0\], s₁ : s₁ + sizes\[1\], …\], s being `starts`: int64 \[rank\], which are computed.
    ///
    /// Each is moved into \[0, extent − size\], negative ones too, so that there are always as many entries. JAX's
    /// `lax.dynamic_slice`, which first counts negative starts from the end; PyTorch's x.narrow takes a start on one
    /// axis.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g where the box was, 0 elsewhere; none for starts.
    ///
    /// `sizes`: extents of the box, one for each axis.
    pub fn slice_at(&self, starts: &Node, sizes: impl Into<Vec<i64>>) -> Node {
        self.graph().typed("slice_at", [self, starts], Options::default().made::<Vec<i64>>("sizes", sizes))
    }

    /// sign, log|det x| of the matrices on the last two axes: \[batch…, n, n\] → \[batch…\] twice; det x = sign ·
    /// exp(log).
    ///
    /// The logarithm neither overflows nor underflows where the determinant does. A singular matrix has sign 0 and the
    /// logarithm −∞, and its gradient is NaN, as that of the inverse; the others of its batch are as if it were not
    /// there. The sign carries no gradient. Of a complex matrix it is complex, det x / |det x|, and the logarithm real.
    /// Several results, read through get_output. Integers give float64; float16 is computed in a wider float, and
    /// rounded once.
    ///
    /// It has several results, each read through `get_output`.
    ///
    /// Gradient: g · x⁻ᴴ, g the cotangent of log|det x|.
    pub fn slogdet(&self) -> Node {
        self.graph().typed("slogdet", [self], Options::default())
    }

    /// y = exp(x) / Σ exp(x) along `axis`, of x's shape; stable: computed from x − max x. Integers give float64.
    ///
    /// A row that is −inf throughout gives NaN, as 0 / 0.
    ///
    /// Gradient: y · (g − Σ g·y), the sum along the axis.
    pub fn softmax(&self) -> Node {
        self.softmax_with(SoftmaxOptions::new())
    }

    /// [`softmax`](Self::softmax) with options.
    pub fn softmax_with(&self, options: SoftmaxOptions) -> Node {
        self.graph().typed("softmax", [self], options.0)
    }

    /// y = ln(1 + eˣ).
    ///
    /// Gradient: g · sigmoid x.
    pub fn softplus(&self) -> Node {
        self.graph().typed("softplus", [self], Options::default())
    }

    /// y with a y = b: a \[batch…, n, n\], b \[n\], \[batch…, n\] or \[batch…, n, m\]; batch axes of matrices
    /// broadcast.
    ///
    /// b is a vector if it is 1-d, as in NumPy 2, or one for each matrix if it has a's shape without the last axis and
    /// its last two axes cannot be matrices of n rows; else they are. Where a is singular y is NaN, or, where rounding
    /// hides that, very large; the other systems of the batch are as if it were not there. Integers give float64;
    /// float16 is computed in a wider float, and rounded once. M. B. Giles, Collected matrix derivative results for
    /// forward and reverse mode algorithmic differentiation (2008).
    ///
    /// Gradient: db = a⁻ᴴ g, da = −(db yᴴ), summed over batch axes that were broadcast.
    pub fn solve(&self, b: &Node) -> Node {
        self.graph().typed("solve", [self, b], Options::default())
    }

    /// y = x in ascending order along an axis; equal entries keep their order, NaN comes last.
    ///
    /// Gradient: g, put back where the entries came from.
    ///
    /// `axis`: the axis to sort along.
    pub fn sort(&self, axis: i64) -> Node {
        self.graph().typed("sort", [self], Options::default().with("axis", axis))
    }

    /// y0, y1, … = x cut along `axis` into parts of `sizes`, which add up to the extent; a part may be empty.
    ///
    /// Several results, read through get_output.
    ///
    /// It has several results, each read through `get_output`.
    ///
    /// Gradient: the parts' cotangents, joined; zeros for parts that are not read.
    ///
    /// `sizes`: the parts' extents on the axis.
    pub fn split(&self, sizes: impl Into<Vec<i64>>) -> Node {
        self.split_with(sizes, SplitOptions::new())
    }

    /// [`split`](Self::split) with options.
    pub fn split_with(&self, sizes: impl Into<Vec<i64>>, options: SplitOptions) -> Node {
        self.graph().typed("split", [self], options.0.made::<Vec<i64>>("sizes", sizes))
    }

    /// y = √x, NaN for x \< 0. At 0 the derivative is infinite.
    ///
    /// Of a complex x the root with Re y ≥ 0. The cut is the negative real axis: the sign of the imaginary zero says
    /// from which side value and gradient are taken, as in PyTorch. JAX takes the derivative of one side for both.
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

    /// y = x without `axes`, each of which must have extent 1; absent: without all axes of extent 1.
    ///
    /// Gradient: g, reshaped back.
    pub fn squeeze(&self) -> Node {
        self.squeeze_with(SqueezeOptions::new())
    }

    /// [`squeeze`](Self::squeeze) with options.
    pub fn squeeze_with(&self, options: SqueezeOptions) -> Node {
        self.graph().typed("squeeze", [self], options.0)
    }

    /// y\[…, t, k\] = Σ window\[j\] x\[…, t · stride + j\] exp(−2πi j k / n) over j: \[… time\] → \[… frames, ⌊n / 2⌋ +
    /// 1\].
    ///
    /// `rfft` of each part of x that the window \[w\] covers, of n = w points unless `sizes` states more or fewer.
    /// Nothing is padded: `pad` x first to have frames around its ends. TensorFlow's `signal.stft`; PyTorch's and
    /// SciPy's `stft` have the last two axes the other way round, and pad by default. By NumPy and JAX, frames and
    /// `rfft`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: that of rfft, times the window, added where frames overlap.
    ///
    /// `stride`: one: from the beginning of a frame to that of the next.
    pub fn stft(&self, window: &Node, stride: impl Into<Vec<i64>>) -> Node {
        self.stft_with(window, stride, StftOptions::new())
    }

    /// [`stft`](Self::stft) with options.
    pub fn stft_with(&self, window: &Node, stride: impl Into<Vec<i64>>, options: StftOptions) -> Node {
        self.graph().typed("stft", [self, window], options.0.made::<Vec<i64>>("stride", stride))
    }

    /// y = x, and no derivative passes: for differentiation y is a constant.
    pub fn stop_gradient(&self) -> Node {
        self.graph().typed("stop_gradient", [self], Options::default())
    }

    /// One field of a record that is kept as one tensor.
    ///
    /// The leading axis is cut into `total_fields` equal parts, and y is the part `field_index`; the axis stays.
    ///
    /// Gradient: g on that part, 0 on the others.
    ///
    /// `field_index`: which field, from 0.
    ///
    /// `total_fields`: how many fields the record has.
    pub fn struct_field(&self, field_index: i64, total_fields: i64) -> Node {
        self.graph().typed(
            "struct_field",
            [self],
            Options::default().with("field_index", field_index).with("total_fields", total_fields),
        )
    }

    /// y = a − b, elementwise, broadcasting as NumPy.
    ///
    /// Gradient: da = g, db = −g.
    pub fn sub(&self, b: &Node) -> Node {
        self.graph().typed("sub", [self, b], Options::default())
    }

    /// y = x − scalar.
    ///
    /// Gradient: g.
    ///
    /// `scalar`: the constant.
    pub fn sub_scalar(&self, scalar: f64) -> Node {
        self.graph().typed("sub_scalar", [self], Options::default().with("scalar", scalar))
    }

    /// y = Σ x over axes. Integers and bool add up in int64, float16 in float32.
    ///
    /// Gradient: g, broadcast back over the axes.
    pub fn sum(&self) -> Node {
        self.sum_with(SumOptions::new())
    }

    /// [`sum`](Self::sum) with options.
    pub fn sum_with(&self, options: SumOptions) -> Node {
        self.graph().typed("sum", [self], options.0)
    }

    /// u, s, vh with x = u diag(s) vh: s ≥ 0 descending, the columns of u and rows of vh orthonormal; thin.
    ///
    /// x \[batch…, m, n\], u \[batch…, m, k\], s \[batch…, k\], real, vh \[batch…, k, n\], k = min(m, n). Three
    /// results, read through get_output. Where only s is read, vectors are not computed, and the gradient of s alone
    /// holds at equal values, too, as long as the function treats these alike.
    ///
    /// Signs, and phases of complex vectors, are as LAPACK leaves them, of a column of u together with the row of vh: a
    /// function has a meaning only if it does not depend on them. Singular values closer than 16 n ε ‖x‖, n the larger
    /// extent, are taken for equal, and those below that for 0. One that is 0 passes nothing, as `abs` at 0. Where
    /// vectors are read, equal ones and zeros make the gradient NaN, of that matrix alone; or, where `degenerate` is
    /// whole, they are left out, which is right if the function depends on whole spaces of vectors, as a projector and
    /// u vh do, and wrong else. Second derivatives where something was left out are NaN, and so are those of s alone at
    /// equal values. A matrix that holds an infinity or NaN, or for which LAPACK finds no answer, gives NaN for itself
    /// alone. Integers give float64; float16 is computed in a wider float, and rounded once. J. Townsend,
    /// Differentiating the singular value decomposition (2016), with 1 / (sⱼ² − sᵢ²) in its partial fractions; Z.-Q.
    /// Wan, S.-X. Zhang, arXiv:1909.02659 (2019) on phases. PyTorch's `linalg.svd` with full_matrices false, and JAX's,
    /// which at a 0 take whichever vectors LAPACK gave.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through `get_output`.
    ///
    /// Gradient: u (diag(ḡs) + (F ∘ (P + Q) + G ∘ (P − Q)) / 2) vh, and (1 − u uᴴ) ḡu s⁻¹ vh, u s⁻¹ ḡvh (1 − v vᴴ); P,
    /// Q = uᴴ ḡu, vh ḡvhᴴ less their adjoints, Fᵢⱼ = 1 / (sⱼ − sᵢ), Gᵢⱼ = 1 / (sⱼ + sᵢ).
    pub fn svd(&self) -> Node {
        self.svd_with(SvdOptions::new())
    }

    /// [`svd`](Self::svd) with options.
    pub fn svd_with(&self, options: SvdOptions) -> Node {
        self.graph().typed("svd", [self], options.0)
    }

    /// y = v f(diag w) vᵀ, a function of the symmetric part (x + xᵀ) / 2 = v diag(w) vᵀ of square matrices.
    ///
    /// f is the square root, its reciprocal, the logarithm or the exponential, of eigenvalues. The gradient is by
    /// divided differences, which have a limit where eigenvalues meet: it is exact at equal ones, and so is the second,
    /// where v f vᵀ written with `eigh` has none. A matrix with an eigenvalue at which f is not finite, as log at 0 or
    /// below, gives NaN for itself alone, and so does one that holds an infinity or NaN, or for which LAPACK finds no
    /// answer. Integers give float64; float16 is computed in a wider float, and rounded once. N. J. Higham, Functions
    /// of Matrices (2008), theorem 3.11 of Daleckii and Krein. SciPy's `sqrtm`, `logm` and `expm` of symmetric
    /// matrices; PyTorch and JAX have none whose gradient holds at equal eigenvalues, but for exp.
    ///
    /// Since opset 2.
    ///
    /// Gradient: v (D ∘ (vᵀ (g + gᵀ) v / 2)) vᵀ, Dᵢⱼ = (f(wᵢ) − f(wⱼ)) / (wᵢ − wⱼ), f′(wᵢ) where wᵢ = wⱼ.
    ///
    /// `function`: the function of eigenvalues; rsqrt is 1 / sqrt; one of sqrt, rsqrt, log, exp.
    pub fn symmetric_function(&self, function: &str) -> Node {
        self.graph().typed("symmetric_function", [self], Options::default().with("function", function))
    }

    /// y\[i, j, …\] = x\[index\[i, j, …\], j, …\] for axis 0, and alike for the others: NumPy's take_along_axis.
    ///
    /// `index` has x's rank; off the axis the two broadcast, and on it y has the index's extent. Indices lie in \[0,
    /// extent); with `from_end`, in \[−extent, extent), and negative ones count from the end. PyTorch's
    /// `take_along_dim`, which takes no negative index, and JAX's `take_along_axis`, which does.
    ///
    /// Gradient: g added where it was read: repeated indices accumulate; none for index.
    pub fn take_along(&self, index: &Node) -> Node {
        self.take_along_with(index, TakeAlongOptions::new())
    }

    /// [`take_along`](Self::take_along) with options.
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

    /// y = x repeated `repeats` times along each axis. As NumPy: the shorter of shape and repeats is led by ones.
    ///
    /// Gradient: g, summed over the repetitions.
    ///
    /// `repeats`: how many times, for each axis.
    pub fn tile(&self, repeats: impl Into<Vec<i64>>) -> Node {
        self.graph().typed("tile", [self], Options::default().made::<Vec<i64>>("repeats", repeats))
    }

    /// values, indices = the k largest entries of x along `axis`, largest first, and their int64 positions there.
    ///
    /// Of equal entries the one with the lowest index comes first; NaN counts as largest. Two results, read through
    /// get_output.
    ///
    /// It has several results, each read through `get_output`.
    ///
    /// Gradient: that of the values, put back where they came from; none for indices.
    ///
    /// `k`: how many, at most the axis's extent.
    pub fn topk(&self, k: i64) -> Node {
        self.topk_with(k, TopkOptions::new())
    }

    /// [`topk`](Self::topk) with options.
    pub fn topk_with(&self, k: i64, options: TopkOptions) -> Node {
        self.graph().typed("topk", [self], options.0.with("k", k))
    }

    /// y = x with its axes permuted.
    ///
    /// Without `axes` the last two are swapped (born reverses all: give `axes`). As many entries as axes: y's axis i is
    /// x's axis axes\[i\]. Two entries on another rank: those two are swapped (minima).
    ///
    /// Gradient: g, permuted back.
    pub fn transpose(&self) -> Node {
        self.transpose_with(TransposeOptions::new())
    }

    /// [`transpose`](Self::transpose) with options.
    pub fn transpose_with(&self, options: TransposeOptions) -> Node {
        self.graph().typed("transpose", [self], options.0)
    }

    /// y with t y = b, or tᵀ y = b where `transpose`; t is the lower (else the upper) triangle of a, with the diagonal.
    ///
    /// a \[batch…, n, n\]: the other triangle is ignored, whatever it holds. b \[n\], \[batch…, n\] or \[batch…, n,
    /// m\], read as in `solve`. Batch axes broadcast. Where the diagonal holds a 0, y is infinite or NaN. Integers
    /// compute in float64, float16 in float32. M. B. Giles, Collected matrix derivative results for forward and reverse
    /// mode algorithmic differentiation (2008).
    ///
    /// Gradient: db = t⁻ᴴ g, da = −(db yᴴ), its triangle; with transpose db = (conj t)⁻¹ g, da = −(conj y dbᵀ).
    pub fn triangular_solve(&self, b: &Node) -> Node {
        self.triangular_solve_with(b, TriangularSolveOptions::new())
    }

    /// [`triangular_solve`](Self::triangular_solve) with options.
    pub fn triangular_solve_with(&self, b: &Node, options: TriangularSolveOptions) -> Node {
        self.graph().typed("triangular_solve", [self, b], options.0)
    }

    /// y = x on and below a diagonal of the last two axes, 0 above: y\[…, i, j\] = x\[…, i, j\] where j − i ≤ offset.
    ///
    /// Gradient: tril(g).
    pub fn tril(&self) -> Node {
        self.tril_with(TrilOptions::new())
    }

    /// [`tril`](Self::tril) with options.
    pub fn tril_with(&self, options: TrilOptions) -> Node {
        self.graph().typed("tril", [self], options.0)
    }

    /// y = x on and above a diagonal of the last two axes, 0 below: y\[…, i, j\] = x\[…, i, j\] where j − i ≥ offset.
    ///
    /// Gradient: triu(g).
    pub fn triu(&self) -> Node {
        self.triu_with(TriuOptions::new())
    }

    /// [`triu`](Self::triu) with options.
    pub fn triu_with(&self, options: TriuOptions) -> Node {
        self.graph().typed("triu", [self], options.0)
    }

    /// y = a / b without its fraction, elementwise, broadcasting: C's /, with the remainder `rem`. An integer by 0 is
    /// 0.
    ///
    /// PyTorch's `div` with rounding_mode trunc; JAX's `lax.div` of integers, which gives −1 for one by 0.
    ///
    /// Since opset 2.
    pub fn trunc_div(&self, b: &Node) -> Node {
        self.graph().typed("trunc_div", [self, b], Options::default())
    }

    /// y = x with axes of extent 1 put in; `axes` are their positions in the result.
    ///
    /// Gradient: g, reshaped back.
    pub fn unsqueeze(&self) -> Node {
        self.unsqueeze_with(UnsqueezeOptions::new())
    }

    /// [`unsqueeze`](Self::unsqueeze) with options.
    pub fn unsqueeze_with(&self, options: UnsqueezeOptions) -> Node {
        self.graph().typed("unsqueeze", [self], options.0)
    }

    /// y = x, with `update` in place of the box of its shape that begins at `starts`, one entry for each axis.
    ///
    /// A negative start counts from the end, as in slice; a box that reaches beyond x is refused, not moved. The result
    /// has the common dtype of x and update.
    ///
    /// Gradient: dx = g, zero where the update lies; d update = g there.
    ///
    /// `starts`: first position of the update on each axis.
    pub fn update_slice(&self, update: &Node, starts: impl Into<Vec<i64>>) -> Node {
        self.graph().typed("update_slice", [self, update], Options::default().made::<Vec<i64>>("starts", starts))
    }

    /// y = x, with `updates` in place of the box of its shape that begins at `starts`: int64 \[rank\], which are
    /// computed.
    ///
    /// Each start is moved into \[0, extent − size\], negative ones too, so that all of updates lies within. The result
    /// has the common dtype of x and updates. JAX's `lax.dynamic_update_slice`, which first counts negative starts from
    /// the end; PyTorch's `slice_scatter` takes a start on one axis, as a number.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = g, zero where the updates lie; d updates = g there; none for starts.
    pub fn update_slice_at(&self, updates: &Node, starts: &Node) -> Node {
        self.graph().typed("update_slice_at", [self, updates, starts], Options::default())
    }

    /// y = Σ (x − mean x)² / (n − ddof) over axes, n the number of elements reduced. Integers give float64.
    ///
    /// Computed in two passes, the mean first, so that a large mean costs no digits. Where n ≤ ddof it divides by zero,
    /// as NumPy does: NaN, or infinity.
    ///
    /// Gradient: g · 2 (x − mean x) / (n − ddof).
    pub fn var(&self) -> Node {
        self.var_with(VarOptions::new())
    }

    /// [`var`](Self::var) with options.
    pub fn var_with(&self, options: VarOptions) -> Node {
        self.graph().typed("var", [self], options.0)
    }

    /// y = on_true where cond, else on_false; the three broadcast. A number as cond is true where it is not zero.
    ///
    /// Each branch gets the cotangent where it was chosen and exactly zero elsewhere, whatever the other branch holds.
    ///
    /// Gradient: d on_true = where(cond, g, 0), d on_false = where(cond, 0, g); none for cond.
    pub fn where_(&self, on_true: &Node, on_false: &Node) -> Node {
        self.graph().typed("where", [self, on_true, on_false], Options::default())
    }

    /// y = x · log(1 + y), broadcasting, accurate for small y; 0 where x = 0, whatever y is but NaN.
    ///
    /// As SciPy and PyTorch (`special.xlog1py`) have it; JAX has 0 for NaN, too. By x, the derivative is 0 where x = 0
    /// and y = −1, and where x = 0 and y \< −1 it is NaN, as JAX's; by y, it is x / (1 + y) everywhere: NaN where x = 0
    /// and y = −1.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = g · log(1 + y), and 0 where x = 0 and y = −1; dy = g · x / (1 + y).
    pub fn xlog1py(&self, y: &Node) -> Node {
        self.graph().typed("xlog1py", [self, y], Options::default())
    }

    /// y = x · log y, broadcasting; 0 where x = 0, whatever y is but NaN.
    ///
    /// As SciPy and PyTorch have it; JAX has 0 for NaN, too. By x, the derivative is 0 where x and y are, and where x =
    /// 0 and y \< 0 it is NaN, as JAX's (PyTorch's is 0); by y, it is x / y everywhere: NaN where both are 0.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = g · log y, and 0 where x = y = 0; dy = g · x / y.
    pub fn xlogy(&self, y: &Node) -> Node {
        self.graph().typed("xlogy", [self, y], Options::default())
    }

    /// y = ζ(s, q) = Σ (q + k)⁻ˢ over k ≥ 0, broadcasting, for s \> 1: SciPy's, `torch.special.zeta`, JAX's `zeta`.
    ///
    /// ∞ at s = 1 and at q = 0, −1, −2, …; NaN for s \< 1, and where q \< 0 and s is no whole number. To 8 units where
    /// q \> 0, SciPy's own on NumPy; below, as `polygamma`. Derivatives are of any order: those by q as accurate, those
    /// by s, of which PyTorch and JAX have none, to 1e-12 of the terms that they add up; by s and then by q, to a unit
    /// over s − 1.
    ///
    /// Since opset 2.
    ///
    /// Gradient: ds = −g · Σ log(q + k) (q + k)⁻ˢ, dq = −g · s · zeta(s + 1, q).
    pub fn zeta(&self, q: &Node) -> Node {
        self.graph().typed("zeta", [self, q], Options::default())
    }
}

impl Graph {
    /// Evenly spaced numbers: y\[i\] = start + i · step, for as long as they lie before stop.
    ///
    /// Result \[⌈(stop − start) / step⌉\], at least 0. As NumPy's arange, but exact: integer dtypes need a whole start
    /// and step, and a range that they hold.
    ///
    /// `stop`: the end, not included.
    pub fn arange(&self, stop: impl Into<Number>) -> Node {
        self.arange_with(stop, ArangeOptions::new())
    }

    /// [`arange`](Self::arange) with options.
    pub fn arange_with(&self, stop: impl Into<Number>, options: ArangeOptions) -> Node {
        self.typed("arange", [], options.0.made::<Number>("stop", stop))
    }

    /// body(operands).
    ///
    /// With `derivative`, a function of the operands, the results and the cotangents of the results, which gives one
    /// cotangent for each float operand: that is differentiated by, and nothing else. With `recompute`, nothing inside
    /// is kept for the way back, which computes the body once more. With `derivative`, JAX's `custom_vjp` and PyTorch's
    /// `autograd.Function`, whose rules are given what they have kept; with `recompute`, JAX's and PyTorch's
    /// `checkpoint`.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through `get_output`.
    ///
    /// Gradient: that of the body, or its own `derivative`.
    ///
    /// `body`: of the operands.
    pub fn call<'n>(&self, operands: impl IntoIterator<Item = &'n Node>, body: &GraphFunction) -> Node {
        self.call_with(operands, body, CallOptions::new())
    }

    /// [`call`](Self::call) with options.
    pub fn call_with<'n>(
        &self,
        operands: impl IntoIterator<Item = &'n Node>,
        body: &GraphFunction,
        options: CallOptions,
    ) -> Node {
        self.typed("call", operands, options.0.with("body", body))
    }

    /// y = the operands one after the other along `axis`; elsewhere their extents are the same.
    ///
    /// The result has their common dtype. `sizes`, where given, must be their extents on the axis.
    ///
    /// Gradient: g, cut apart.
    pub fn cat<'n>(&self, x: impl IntoIterator<Item = &'n Node>) -> Node {
        self.cat_with(x, CatOptions::new())
    }

    /// [`cat`](Self::cat) with options.
    pub fn cat_with<'n>(&self, x: impl IntoIterator<Item = &'n Node>, options: CatOptions) -> Node {
        self.typed("cat", x, options.0)
    }

    /// then(operands), where the predicate, a bool \[\], holds; else otherwise(operands). Only one of them runs.
    ///
    /// Both give results of the same types. JAX's `lax.cond`, PyTorch's `cond`.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through `get_output`.
    ///
    /// Gradient: that of the function that ran; the other adds exact zeros.
    ///
    /// `then`: of the operands behind the predicate, where that holds.
    ///
    /// `otherwise`: of the same, where it does not.
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
    /// `value`: the tensor.
    pub fn constant(&self, value: impl Into<Tensor>) -> Node {
        self.typed("constant", [], Options::default().made::<Tensor>("value", value))
    }

    /// y\[output letters\] = Σ a\[letters\] · b\[letters\] · … over all letters that the output does not have.
    ///
    /// `equation` is, for two operands, "ab,bc-\>ac": a letter (a–z, A–Z) for each axis, a comma between operands, and
    /// after the arrow the axes of the result. A letter stands for one extent, at most once in each operand. No
    /// ellipsis and no implicit output; spaces do not count. One operand is allowed as well, 32 at most. The result has
    /// the common dtype of the operands, as NumPy's.
    ///
    /// Operands are multiplied in pairs, each time the pair with the fewest multiplications, so that no step costs more
    /// than the equation written as one loop (greedy order, as in numpy.einsum_path).
    ///
    /// Gradient: for each operand the einsum of g with the other operands.
    ///
    /// `equation`: letters of each operand, and after -\> those of the result.
    pub fn einsum<'n>(&self, a: &'n Node, b: impl IntoIterator<Item = &'n Node>, equation: &str) -> Node {
        self.typed("einsum", [a].into_iter().chain(b), Options::default().with("equation", equation))
    }

    /// x = body(consts, x), again and again until max |Δx| ≤ tolerance · (1 + max |x|), at most `max_steps` times.
    ///
    /// x are the `carries`, floats, all of them together; max |x| is that of the new x. What is not finite ends the
    /// iteration, unfinished. Results: x; `steps`, int64 \[\], those that ran; `finished`, bool \[\]. The gradient is
    /// implicit, as that of JAX's `lax.custom_root`, which is given a solver; of PyTorch, a loop of Python and a rule.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through `get_output`.
    ///
    /// Gradient: implicit: u = g + (∂body/∂x)ᵀu by the same iteration, then (∂body/∂consts)ᵀu; none by the first x.
    ///
    /// `body`: of consts and x: the next x.
    ///
    /// `tolerance`: how much may change, relative to 1 + max |x|; 0: nothing.
    ///
    /// `max_steps`: how many steps there may be at most.
    pub fn fixed_point<'n>(
        &self,
        operands: impl IntoIterator<Item = &'n Node>,
        body: &GraphFunction,
        tolerance: f64,
        max_steps: i64,
    ) -> Node {
        self.fixed_point_with(operands, body, tolerance, max_steps, FixedPointOptions::new())
    }

    /// [`fixed_point`](Self::fixed_point) with options.
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

    /// A tensor of one number, made on the server: y\[…\] = fill.
    ///
    /// An absent or empty `shape` makes a 0-d tensor. An infinity or NaN is stated by `fill_as`. PyTorch's and JAX's
    /// `full`.
    pub fn full(&self) -> Node {
        self.full_with(FullOptions::new())
    }

    /// [`full`](Self::full) with options.
    pub fn full_with(&self, options: FullOptions) -> Node {
        self.typed("full", [], options.0)
    }

    /// y = x\[i, j, …\]: the entries, or slices, at index tensors, one for each of `axes`, which broadcast together.
    ///
    /// As NumPy's x\[i, j\]: of axes that are side by side, the indices' axes take the place; of others, they come
    /// first. Indices lie in \[0, extent); with `from_end`, in \[−extent, extent), and negative ones count from the
    /// end. PyTorch's and JAX's x\[i, j\], which count negative ones always; PyTorch refuses those outside, as here,
    /// and JAX moves them.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = index_add(0, indices, g): repeated indices accumulate; none for indices.
    pub fn index<'n>(&self, x: &'n Node, indices: impl IntoIterator<Item = &'n Node>) -> Node {
        self.index_with(x, indices, IndexOptions::new())
    }

    /// [`index`](Self::index) with options.
    pub fn index_with<'n>(
        &self,
        x: &'n Node,
        indices: impl IntoIterator<Item = &'n Node>,
        options: IndexOptions,
    ) -> Node {
        self.typed("index", [x].into_iter().chain(indices), options.0)
    }

    /// y = x, and then y\[i, j, …\] += updates, entry by entry: repeated indices accumulate.
    ///
    /// Operands: x, an index for each of `axes`, updates, which broadcast to what `index` reads. Indices as those of
    /// `index`. PyTorch's `index_put` with accumulate; JAX's x.at\[i, j\].add, which drops updates outside.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = g, d updates = index(g, indices); none for indices.
    pub fn index_add<'n>(&self, x: &'n Node, indices_and_updates: impl IntoIterator<Item = &'n Node>) -> Node {
        self.index_add_with(x, indices_and_updates, IndexAddOptions::new())
    }

    /// [`index_add`](Self::index_add) with options.
    pub fn index_add_with<'n>(
        &self,
        x: &'n Node,
        indices_and_updates: impl IntoIterator<Item = &'n Node>,
        options: IndexAddOptions,
    ) -> Node {
        self.typed("index_add", [x].into_iter().chain(indices_and_updates), options.0)
    }

    /// y = x, and then y\[i, j, …\] = updates: where one place is written twice, the last in row-major order stands.
    ///
    /// It takes the gradient. Operands: x, an index for each of `axes`, updates, which broadcast to what `index` reads.
    /// Indices as those of `index`. PyTorch's `index_put`, JAX's x.at\[i, j\].set: neither says which of several
    /// stands, and the gradient of PyTorch's goes to all of them; JAX drops updates outside.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = g, 0 where something was written; d updates = g where they stand, else 0; none for indices.
    pub fn index_set<'n>(&self, x: &'n Node, indices_and_updates: impl IntoIterator<Item = &'n Node>) -> Node {
        self.index_set_with(x, indices_and_updates, IndexSetOptions::new())
    }

    /// [`index_set`](Self::index_set) with options.
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
    /// Differentiated with respect to only when `wrt` names it. A declared `dtype` or `shape` must match the feed.
    pub fn input(&self, name: &str) -> Node {
        self.input_with(name, InputOptions::new())
    }

    /// [`input`](Self::input) with options.
    pub fn input_with(&self, name: &str, options: InputOptions) -> Node {
        self.typed("input", [], options.0).named(name)
    }

    /// stacks = body(consts, entry t of each sequence), for every t, in no order.
    ///
    /// Operands are consts, then `sequences` tensors of equal leading extent. `at_once` entries are computed in one
    /// batch. Results: for each of the body's a stack \[entries, …\]. JAX's `lax.map`, whose batch_size is `at_once`;
    /// JAX's and PyTorch's `vmap`, which computes all entries in one batch.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through `get_output`.
    ///
    /// Gradient: a map of the body's, summed over the entries for consts.
    ///
    /// `body`: of consts and one entry of each sequence: what is stacked.
    pub fn map<'n>(&self, operands: impl IntoIterator<Item = &'n Node>, body: &GraphFunction) -> Node {
        self.map_with(operands, body, MapOptions::new())
    }

    /// [`map`](Self::map) with options.
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
    /// As `input`, but part of `wrt` by default.
    pub fn parameter(&self, name: &str) -> Node {
        self.parameter_with(name, ParameterOptions::new())
    }

    /// [`parameter`](Self::parameter) with options.
    pub fn parameter_with(&self, name: &str, options: ParameterOptions) -> Node {
        self.typed("parameter", [], options.0).named(name)
    }

    /// carries, stacks = body, step by step: for t = 0 … length − 1, body(consts, carries, entry t of each sequence).
    ///
    /// The body gives the carries for the next step, of the same types, and then values that are stacked. Operands are
    /// consts, then `carries` initial values, then `sequences` tensors whose entries along the leading axis it goes
    /// through, with `reverse` from the last; entry t of a stack is what step t gave. Results: the last carries, then
    /// the stacks \[length, …\]. JAX's `lax.scan`, whose body may read what is around it; of PyTorch, a loop of Python.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through `get_output`.
    ///
    /// Gradient: a scan the other way round, which computes each step again.
    ///
    /// `body`: of consts, carries and one entry of each sequence: carries, and what is stacked.
    pub fn scan<'n>(&self, operands: impl IntoIterator<Item = &'n Node>, body: &GraphFunction) -> Node {
        self.scan_with(operands, body, ScanOptions::new())
    }

    /// [`scan`](Self::scan) with options.
    pub fn scan_with<'n>(
        &self,
        operands: impl IntoIterator<Item = &'n Node>,
        body: &GraphFunction,
        options: ScanOptions,
    ) -> Node {
        self.typed("scan", operands, options.0.with("body", body))
    }

    /// y = the operands, all of one shape, one after the other along a new axis; `axis` is its place in the result.
    ///
    /// The result has their common dtype.
    ///
    /// Gradient: to each operand its part of g.
    pub fn stack<'n>(&self, x: impl IntoIterator<Item = &'n Node>) -> Node {
        self.stack_with(x, StackOptions::new())
    }

    /// [`stack`](Self::stack) with options.
    pub fn stack_with<'n>(&self, x: impl IntoIterator<Item = &'n Node>, options: StackOptions) -> Node {
        self.typed("stack", x, options.0)
    }

    /// carries = body(consts, carries), again and again while condition(consts, carries) holds.
    ///
    /// At most `max_steps` times. The condition gives a bool \[\]; it is looked at before each step, and once more
    /// after the last one that is allowed. Results: the carries; `steps`, int64 \[\], those that ran; `finished`, bool
    /// \[\], false where the bound ended it. JAX's `lax.while_loop`, which has no bound, and is differentiated forwards
    /// alone; of PyTorch, a loop of Python.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through `get_output`.
    ///
    /// Gradient: back over the steps that ran, each computed again; none by the condition, and none of `steps`.
    ///
    /// `condition`: of consts and carries: whether to go on, a bool \[\].
    ///
    /// `body`: of consts and carries: the carries after a step.
    ///
    /// `max_steps`: how many steps there may be at most.
    pub fn while_<'n>(
        &self,
        operands: impl IntoIterator<Item = &'n Node>,
        condition: &GraphFunction,
        body: &GraphFunction,
        max_steps: i64,
    ) -> Node {
        self.while_with(operands, condition, body, max_steps, WhileOptions::new())
    }

    /// [`while_`](Self::while_) with options.
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

/// What [`Node::all_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct AllOptions(Options);

impl AllOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reduce over; absent: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Keep the reduced axes, with extent 1; false unless stated.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// What [`Node::any_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct AnyOptions(Options);

impl AnyOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reduce over; absent: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Keep the reduced axes, with extent 1; false unless stated.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// What [`Graph::arange_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct ArangeOptions(Options);

impl ArangeOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The first number; 0.0 unless stated.
    pub fn start(self, start: impl Into<Number>) -> Self {
        Self(self.0.made::<Number>("start", start))
    }

    /// The distance; negative to count down, not 0; 1.0 unless stated.
    pub fn step(self, step: impl Into<Number>) -> Self {
        Self(self.0.made::<Number>("step", step))
    }

    /// The result's dtype; int64 unless stated.
    pub fn dtype(self, dtype: impl Into<DType>) -> Self {
        Self(self.0.made::<DType>("dtype", dtype))
    }
}

/// What [`Node::argmax_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct ArgmaxOptions(Options);

impl ArgmaxOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keep the reduced axes, with extent 1; false unless stated.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// What [`Node::argmin_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct ArgminOptions(Options);

impl ArgminOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keep the reduced axes, with extent 1; false unless stated.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// What [`Node::attention_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct AttentionOptions(Options);

impl AttentionOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The operand 3, which may be left out.
    pub fn mask(self, mask: &Node) -> Self {
        Self(self.0.operand(3, mask))
    }

    /// What q kᵀ is multiplied by; absent: 1/√d.
    pub fn scale(self, scale: f64) -> Self {
        Self(self.0.with("scale", scale))
    }

    /// Hide key j from query i where j \> i; false unless stated.
    pub fn causal(self, causal: bool) -> Self {
        Self(self.0.with("causal", causal))
    }

    /// Whether each head of k and v serves several of q, on the axis -3; since opset 2; false unless stated.
    pub fn grouped(self, grouped: bool) -> Self {
        Self(self.0.with("grouped", grouped))
    }
}

/// What [`Node::avg_pool1d_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct AvgPool1dOptions(Options);

impl AvgPool1dOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Distance of the windows along each spatial axis; absent: the kernel size.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Added on both sides of each axis, at most half the kernel size; \[0\] unless stated.
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }

    /// Whether a window that reaches beyond the padding counts, if it begins before that; false unless stated.
    pub fn ceiling(self, ceiling: bool) -> Self {
        Self(self.0.with("ceiling", ceiling))
    }
}

/// What [`Node::avg_pool2d_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct AvgPool2dOptions(Options);

impl AvgPool2dOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Distance of the windows along each spatial axis; absent: the kernel size.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Added on both sides of each spatial axis, at most half the kernel size; \[0, 0\] unless stated.
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }
}

/// What [`Node::avg_pool3d_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct AvgPool3dOptions(Options);

impl AvgPool3dOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Distance of the windows along each spatial axis; absent: the kernel size.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Added on both sides of each axis, at most half the kernel size; \[0, 0, 0\] unless stated.
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }

    /// Whether a window that reaches beyond the padding counts, if it begins before that; false unless stated.
    pub fn ceiling(self, ceiling: bool) -> Self {
        Self(self.0.with("ceiling", ceiling))
    }
}

/// What [`Node::batch_norm_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct BatchNormOptions(Options);

impl BatchNormOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The operand 1, which may be left out.
    pub fn weight(self, weight: &Node) -> Self {
        Self(self.0.operand(1, weight))
    }

    /// The operand 2, which may be left out.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(2, bias))
    }

    /// The axis of the features; 1 unless stated.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }

    /// Added to the variance or mean square; positive; 1e-05 unless stated.
    pub fn eps(self, eps: f64) -> Self {
        Self(self.0.with("eps", eps))
    }
}

/// What [`Node::batch_norm_given_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct BatchNormGivenOptions(Options);

impl BatchNormGivenOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The operand 3, which may be left out.
    pub fn weight(self, weight: &Node) -> Self {
        Self(self.0.operand(3, weight))
    }

    /// The operand 4, which may be left out.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(4, bias))
    }

    /// The axis of the features; 1 unless stated.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }

    /// Added to the variance or mean square; positive; 1e-05 unless stated.
    pub fn eps(self, eps: f64) -> Self {
        Self(self.0.with("eps", eps))
    }
}

/// What [`Node::batch_norm_running_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct BatchNormRunningOptions(Options);

impl BatchNormRunningOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The operand 3, which may be left out.
    pub fn weight(self, weight: &Node) -> Self {
        Self(self.0.operand(3, weight))
    }

    /// The operand 4, which may be left out.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(4, bias))
    }

    /// The axis of the features; 1 unless stated.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }

    /// Added to the variance or mean square; positive; 1e-05 unless stated.
    pub fn eps(self, eps: f64) -> Self {
        Self(self.0.with("eps", eps))
    }

    /// How much of the new statistics the running ones take; 0.1 unless stated.
    pub fn momentum(self, momentum: f64) -> Self {
        Self(self.0.with("momentum", momentum))
    }
}

/// What [`Node::bce_with_logits_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct BceWithLogitsOptions(Options);

impl BceWithLogitsOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is made of the single losses; none: they are the result; one of mean, sum, none; mean unless stated.
    pub fn reduction(self, reduction: &str) -> Self {
        Self(self.0.with("reduction", reduction))
    }
}

/// What [`Node::broadcast_to_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct BroadcastToOptions(Options);

impl BroadcastToOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The result's shape; \[\] unless stated.
    pub fn shape(self, shape: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("shape", shape))
    }
}

/// What [`Graph::call_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct CallOptions(Options);

impl CallOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Of operands, results and cotangents: a cotangent for each float operand; absent: the body's.
    pub fn derivative(self, derivative: &GraphFunction) -> Self {
        Self(self.0.with("derivative", derivative))
    }

    /// Keep nothing inside for the way back, but compute it again; false unless stated.
    pub fn recompute(self, recompute: bool) -> Self {
        Self(self.0.with("recompute", recompute))
    }
}

/// What [`Graph::cat_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct CatOptions(Options);

impl CatOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The axis to join along; 0 unless stated.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }

    /// The operands' extents on the axis, checked where given.
    pub fn sizes(self, sizes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("sizes", sizes))
    }
}

/// What [`Node::cdist_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct CdistOptions(Options);

impl CdistOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The exponent; positive; 2.0 unless stated.
    pub fn p(self, p: f64) -> Self {
        Self(self.0.with("p", p))
    }
}

/// What [`Node::chunk_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct ChunkOptions(Options);

impl ChunkOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The axis that is cut; 0 unless stated.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }
}

/// What [`Node::clamp_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct ClampOptions(Options);

impl ClampOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The lower bound; absent: none.
    pub fn min(self, min: impl Into<Number>) -> Self {
        Self(self.0.made::<Number>("min", min))
    }

    /// The upper bound; absent: none.
    pub fn max(self, max: impl Into<Number>) -> Self {
        Self(self.0.made::<Number>("max", max))
    }
}

/// What [`Node::compress_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct CompressOptions(Options);

impl CompressOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The axis that the mask is of; 0 unless stated.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }

    /// What lies behind the count; 0.0 unless stated.
    pub fn fill(self, fill: impl Into<Number>) -> Self {
        Self(self.0.made::<Number>("fill", fill))
    }

    /// An infinity or NaN, in place of `fill`; of a float dtype; one of inf, -inf, nan.
    pub fn fill_as(self, fill_as: &str) -> Self {
        Self(self.0.with("fill_as", fill_as))
    }
}

/// What [`Node::conv1d_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct Conv1dOptions(Options);

impl Conv1dOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The operand 2, which may be left out.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(2, bias))
    }

    /// Distance of the windows along each spatial axis; \[1\] unless stated.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Zeros put on both sides of each spatial axis; \[0\] unless stated.
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }

    /// Distance of the kernel's taps along each spatial axis; \[1\] unless stated.
    pub fn dilation(self, dilation: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("dilation", dilation))
    }

    /// How many equal parts the channels are cut into, each with its own kernels; 1 unless stated.
    pub fn groups(self, groups: i64) -> Self {
        Self(self.0.with("groups", groups))
    }
}

/// What [`Node::conv2d_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct Conv2dOptions(Options);

impl Conv2dOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The operand 2, which may be left out.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(2, bias))
    }

    /// Distance of the windows along each spatial axis; \[1, 1\] unless stated.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Zeros put on both sides of each spatial axis; \[0, 0\] unless stated.
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }

    /// Distance of the kernel's taps along each spatial axis; \[1, 1\] unless stated.
    pub fn dilation(self, dilation: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("dilation", dilation))
    }

    /// How many equal parts the channels are cut into, each with its own kernels; 1 unless stated.
    pub fn groups(self, groups: i64) -> Self {
        Self(self.0.with("groups", groups))
    }
}

/// What [`Node::conv3d_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct Conv3dOptions(Options);

impl Conv3dOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The operand 2, which may be left out.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(2, bias))
    }

    /// Distance of the windows along each spatial axis; \[1, 1, 1\] unless stated.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Zeros put on both sides of each spatial axis; \[0, 0, 0\] unless stated.
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }

    /// Distance of the kernel's taps along each spatial axis; \[1, 1, 1\] unless stated.
    pub fn dilation(self, dilation: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("dilation", dilation))
    }

    /// How many equal parts the channels are cut into, each with its own kernels; 1 unless stated.
    pub fn groups(self, groups: i64) -> Self {
        Self(self.0.with("groups", groups))
    }
}

/// What [`Node::conv_transpose1d_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct ConvTranspose1dOptions(Options);

impl ConvTranspose1dOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The operand 2, which may be left out.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(2, bias))
    }

    /// Distance of the windows along each spatial axis; \[1\] unless stated.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Zeros put on both sides of each spatial axis; \[0\] unless stated.
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }

    /// Distance of the kernel's taps along each spatial axis; \[1\] unless stated.
    pub fn dilation(self, dilation: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("dilation", dilation))
    }

    /// How many equal parts the channels are cut into, each with its own kernels; 1 unless stated.
    pub fn groups(self, groups: i64) -> Self {
        Self(self.0.with("groups", groups))
    }

    /// Extent added at the end of each spatial axis of the result; \[0\] unless stated.
    pub fn output_padding(self, output_padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("output_padding", output_padding))
    }
}

/// What [`Node::conv_transpose2d_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct ConvTranspose2dOptions(Options);

impl ConvTranspose2dOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The operand 2, which may be left out.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(2, bias))
    }

    /// Distance of the windows along each spatial axis; \[1, 1\] unless stated.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Zeros put on both sides of each spatial axis; \[0, 0\] unless stated.
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }

    /// Distance of the kernel's taps along each spatial axis; \[1, 1\] unless stated.
    pub fn dilation(self, dilation: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("dilation", dilation))
    }

    /// How many equal parts the channels are cut into, each with its own kernels; 1 unless stated.
    pub fn groups(self, groups: i64) -> Self {
        Self(self.0.with("groups", groups))
    }

    /// Extent added at the end of each spatial axis of the result; \[0, 0\] unless stated.
    pub fn output_padding(self, output_padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("output_padding", output_padding))
    }
}

/// What [`Node::conv_transpose3d_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct ConvTranspose3dOptions(Options);

impl ConvTranspose3dOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The operand 2, which may be left out.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(2, bias))
    }

    /// Distance of the windows along each spatial axis; \[1, 1, 1\] unless stated.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Zeros put on both sides of each spatial axis; \[0, 0, 0\] unless stated.
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }

    /// Distance of the kernel's taps along each spatial axis; \[1, 1, 1\] unless stated.
    pub fn dilation(self, dilation: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("dilation", dilation))
    }

    /// How many equal parts the channels are cut into, each with its own kernels; 1 unless stated.
    pub fn groups(self, groups: i64) -> Self {
        Self(self.0.with("groups", groups))
    }

    /// Extent added at the end of each spatial axis of the result; \[0, 0, 0\] unless stated.
    pub fn output_padding(self, output_padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("output_padding", output_padding))
    }
}

/// What [`Node::cross_entropy_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct CrossEntropyOptions(Options);

impl CrossEntropyOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is made of the single losses; none: they are the result; one of mean, sum, none; mean unless stated.
    pub fn reduction(self, reduction: &str) -> Self {
        Self(self.0.with("reduction", reduction))
    }
}

/// What [`Node::cumlogsumexp_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct CumlogsumexpOptions(Options);

impl CumlogsumexpOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to run from the end to the front; false unless stated.
    pub fn reverse(self, reverse: bool) -> Self {
        Self(self.0.with("reverse", reverse))
    }
}

/// What [`Node::cummax_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct CummaxOptions(Options);

impl CummaxOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to run from the end to the front; false unless stated.
    pub fn reverse(self, reverse: bool) -> Self {
        Self(self.0.with("reverse", reverse))
    }
}

/// What [`Node::cummin_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct CumminOptions(Options);

impl CumminOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to run from the end to the front; false unless stated.
    pub fn reverse(self, reverse: bool) -> Self {
        Self(self.0.with("reverse", reverse))
    }
}

/// What [`Node::cumprod_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct CumprodOptions(Options);

impl CumprodOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to run from the end to the front; false unless stated.
    pub fn reverse(self, reverse: bool) -> Self {
        Self(self.0.with("reverse", reverse))
    }
}

/// What [`Node::cumsum_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct CumsumOptions(Options);

impl CumsumOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to run from the end to the front; since opset 2; false unless stated.
    pub fn reverse(self, reverse: bool) -> Self {
        Self(self.0.with("reverse", reverse))
    }
}

/// What [`Node::diag_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct DiagOptions(Options);

impl DiagOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Which diagonal: 0 the main one, above it positive, below it negative; 0 unless stated.
    pub fn offset(self, offset: i64) -> Self {
        Self(self.0.with("offset", offset))
    }
}

/// What [`Node::eigh_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct EighOptions(Options);

impl EighOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where values are equal and vectors are read: nan, or whole: only whole spaces are depended on; one of nan,
    /// whole; nan unless stated.
    pub fn degenerate(self, degenerate: &str) -> Self {
        Self(self.0.with("degenerate", degenerate))
    }
}

/// What [`Node::elu_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct EluOptions(Options);

impl EluOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// −y for x → −∞; 1.0 unless stated.
    pub fn alpha(self, alpha: f64) -> Self {
        Self(self.0.with("alpha", alpha))
    }
}

/// What [`Node::embedding_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct EmbeddingOptions(Options);

impl EmbeddingOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a negative index counts from the end: −1 is the last; since opset 2; false unless stated.
    pub fn from_end(self, from_end: bool) -> Self {
        Self(self.0.with("from_end", from_end))
    }

    /// A row that gets no gradient, read as others are; absent: none; since opset 2.
    pub fn padding_idx(self, padding_idx: i64) -> Self {
        Self(self.0.with("padding_idx", padding_idx))
    }
}

/// What [`Node::fft_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct FftOptions(Options);

impl FftOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The axes to transform; absent: the last.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Points on each of axes: x is cut, or padded with zeros; absent: as many as x has.
    pub fn sizes(self, sizes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("sizes", sizes))
    }

    /// Which way is divided by the number of points: that back, that forth, or both by its root; one of backward,
    /// ortho, forward; backward unless stated.
    pub fn norm(self, norm: &str) -> Self {
        Self(self.0.with("norm", norm))
    }
}

/// What [`Graph::fixed_point_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct FixedPointOptions(Options);

impl FixedPointOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many operands, the last ones, are x at first; at least one; 0 unless stated.
    pub fn carries(self, carries: i64) -> Self {
        Self(self.0.with("carries", carries))
    }
}

/// What [`Node::flatten_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct FlattenOptions(Options);

impl FlattenOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Neighbouring axes to merge; absent: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }
}

/// What [`Node::flip_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct FlipOptions(Options);

impl FlipOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reverse; absent: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }
}

/// What [`Graph::full_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct FullOptions(Options);

impl FullOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The result's shape; \[\] unless stated.
    pub fn shape(self, shape: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("shape", shape))
    }

    /// The number; 0.0 unless stated.
    pub fn fill(self, fill: impl Into<Number>) -> Self {
        Self(self.0.made::<Number>("fill", fill))
    }

    /// The result's dtype; float64 unless stated.
    pub fn dtype(self, dtype: impl Into<DType>) -> Self {
        Self(self.0.made::<DType>("dtype", dtype))
    }

    /// An infinity or NaN, in place of `fill`; of a float dtype; since opset 2; one of inf, -inf, nan.
    pub fn fill_as(self, fill_as: &str) -> Self {
        Self(self.0.with("fill_as", fill_as))
    }
}

/// What [`Node::gather_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct GatherOptions(Options);

impl GatherOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The operand 1, which may be left out.
    pub fn index(self, index: &Node) -> Self {
        Self(self.0.operand(1, index))
    }

    /// The axis that is indexed; 0 unless stated.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }

    /// Positions on the axis, in place of `index`.
    pub fn indices(self, indices: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("indices", indices))
    }

    /// Whether a negative index counts from the end: −1 is the last; since opset 2; false unless stated.
    pub fn from_end(self, from_end: bool) -> Self {
        Self(self.0.with("from_end", from_end))
    }
}

/// What [`Node::gelu_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct GeluOptions(Options);

impl GeluOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// None: by the error function; tanh: its approximation; one of none, tanh; none unless stated.
    pub fn approximate(self, approximate: &str) -> Self {
        Self(self.0.with("approximate", approximate))
    }
}

/// What [`Node::grad_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct GradOptions(Options);

impl GradOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The operand 2, which may be left out.
    pub fn cotangent(self, cotangent: &Node) -> Self {
        Self(self.0.operand(2, cotangent))
    }
}

/// What [`Node::group_norm_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct GroupNormOptions(Options);

impl GroupNormOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The operand 1, which may be left out.
    pub fn weight(self, weight: &Node) -> Self {
        Self(self.0.operand(1, weight))
    }

    /// The operand 2, which may be left out.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(2, bias))
    }

    /// Added to the variance or mean square; positive; 1e-05 unless stated.
    pub fn eps(self, eps: f64) -> Self {
        Self(self.0.with("eps", eps))
    }
}

/// What [`Node::ifft_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct IfftOptions(Options);

impl IfftOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The axes to transform; absent: the last.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Points on each of axes: x is cut, or padded with zeros; absent: as many as x has.
    pub fn sizes(self, sizes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("sizes", sizes))
    }

    /// Which way is divided by the number of points: that back, that forth, or both by its root; one of backward,
    /// ortho, forward; backward unless stated.
    pub fn norm(self, norm: &str) -> Self {
        Self(self.0.with("norm", norm))
    }
}

/// What [`Graph::index_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct IndexOptions(Options);

impl IndexOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The axis that each index is of; absent: the first ones, in their order.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Whether a negative index counts from the end: −1 is the last; false unless stated.
    pub fn from_end(self, from_end: bool) -> Self {
        Self(self.0.with("from_end", from_end))
    }
}

/// What [`Graph::index_add_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct IndexAddOptions(Options);

impl IndexAddOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The axis that each index is of; absent: the first ones, in their order.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Whether a negative index counts from the end: −1 is the last; false unless stated.
    pub fn from_end(self, from_end: bool) -> Self {
        Self(self.0.with("from_end", from_end))
    }
}

/// What [`Graph::index_set_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct IndexSetOptions(Options);

impl IndexSetOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The axis that each index is of; absent: the first ones, in their order.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Whether a negative index counts from the end: −1 is the last; false unless stated.
    pub fn from_end(self, from_end: bool) -> Self {
        Self(self.0.with("from_end", from_end))
    }
}

/// What [`Graph::input_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct InputOptions(Options);

impl InputOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares the feed's dtype; absent: any.
    pub fn dtype(self, dtype: impl Into<DType>) -> Self {
        Self(self.0.made::<DType>("dtype", dtype))
    }

    /// Declares the feed's shape, -1 for a free extent; absent: any.
    pub fn shape(self, shape: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("shape", shape))
    }

    /// Declares a 0-d feed; false unless stated.
    pub fn zero_d(self, zero_d: bool) -> Self {
        Self(self.0.with("zero_d", zero_d))
    }
}

/// What [`Node::irfft_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct IrfftOptions(Options);

impl IrfftOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The axes to transform; absent: the last.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Points on each of axes: x is cut, or padded with zeros; absent: as many as x has.
    pub fn sizes(self, sizes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("sizes", sizes))
    }

    /// Which way is divided by the number of points: that back, that forth, or both by its root; one of backward,
    /// ortho, forward; backward unless stated.
    pub fn norm(self, norm: &str) -> Self {
        Self(self.0.with("norm", norm))
    }
}

/// What [`Node::layer_norm_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct LayerNormOptions(Options);

impl LayerNormOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The operand 1, which may be left out.
    pub fn weight(self, weight: &Node) -> Self {
        Self(self.0.operand(1, weight))
    }

    /// The operand 2, which may be left out.
    pub fn bias(self, bias: &Node) -> Self {
        Self(self.0.operand(2, bias))
    }

    /// Axes to normalise over; \[-1\] unless stated.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Added to the variance or mean square; positive; 1e-05 unless stated.
    pub fn eps(self, eps: f64) -> Self {
        Self(self.0.with("eps", eps))
    }
}

/// What [`Node::leaky_relu_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct LeakyReluOptions(Options);

impl LeakyReluOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The slope for x ≤ 0; 0.01 unless stated.
    pub fn alpha(self, alpha: f64) -> Self {
        Self(self.0.with("alpha", alpha))
    }
}

/// What [`Node::linear_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct LinearOptions(Options);

impl LinearOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The operand 2, which may be left out.
    pub fn b(self, b: &Node) -> Self {
        Self(self.0.operand(2, b))
    }

    /// The op that is applied to the sum; one of none, relu, tanh, sigmoid, gelu, silu, elu, selu, sin; none unless
    /// stated.
    pub fn activation(self, activation: &str) -> Self {
        Self(self.0.with("activation", activation))
    }
}

/// What [`Node::log_eps_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct LogEpsOptions(Options);

impl LogEpsOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is added to x; 1e-05 unless stated.
    pub fn eps(self, eps: f64) -> Self {
        Self(self.0.with("eps", eps))
    }
}

/// What [`Node::log_softmax_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct LogSoftmaxOptions(Options);

impl LogSoftmaxOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The axis that adds up to 1; -1 unless stated.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }
}

/// What [`Node::logsumexp_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct LogsumexpOptions(Options);

impl LogsumexpOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reduce over; absent: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Keep the reduced axes, with extent 1; false unless stated.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// What [`Node::lstsq_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct LstsqOptions(Options);

impl LstsqOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Of the largest singular value, the part up to which others are taken for 0; absent: none is, and columns are
    /// independent.
    pub fn rcond(self, rcond: f64) -> Self {
        Self(self.0.with("rcond", rcond))
    }
}

/// What [`Graph::map_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct MapOptions(Options);

impl MapOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many operands, the last ones, are gone through; at least one; 0 unless stated.
    pub fn sequences(self, sequences: i64) -> Self {
        Self(self.0.with("sequences", sequences))
    }

    /// How many entries are computed in one batch; absent: as many as fit.
    pub fn at_once(self, at_once: i64) -> Self {
        Self(self.0.with("at_once", at_once))
    }
}

/// What [`Node::max_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct MaxOptions(Options);

impl MaxOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reduce over; absent: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Keep the reduced axes, with extent 1; false unless stated.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// What [`Node::max_pool1d_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct MaxPool1dOptions(Options);

impl MaxPool1dOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Distance of the windows along each spatial axis; absent: the kernel size.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Added on both sides of each axis, at most half the kernel size; \[0\] unless stated.
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }

    /// Distance of a window's taps along each axis; \[1\] unless stated.
    pub fn dilation(self, dilation: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("dilation", dilation))
    }

    /// Whether a window that reaches beyond the padding counts, if it begins before that; false unless stated.
    pub fn ceiling(self, ceiling: bool) -> Self {
        Self(self.0.with("ceiling", ceiling))
    }
}

/// What [`Node::max_pool2d_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct MaxPool2dOptions(Options);

impl MaxPool2dOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Distance of the windows along each spatial axis; absent: the kernel size.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Added on both sides of each spatial axis, at most half the kernel size; \[0, 0\] unless stated.
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }
}

/// What [`Node::max_pool2d_back_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct MaxPool2dBackOptions(Options);

impl MaxPool2dBackOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Distance of the windows along each spatial axis; absent: the kernel size.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Added on both sides of each spatial axis, at most half the kernel size; \[0, 0\] unless stated.
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }
}

/// What [`Node::max_pool2d_indices_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct MaxPool2dIndicesOptions(Options);

impl MaxPool2dIndicesOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Distance of the windows along each spatial axis; absent: the kernel size.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Added on both sides of each spatial axis, at most half the kernel size; \[0, 0\] unless stated.
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }
}

/// What [`Node::max_pool3d_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct MaxPool3dOptions(Options);

impl MaxPool3dOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Distance of the windows along each spatial axis; absent: the kernel size.
    pub fn stride(self, stride: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stride", stride))
    }

    /// Added on both sides of each axis, at most half the kernel size; \[0, 0, 0\] unless stated.
    pub fn padding(self, padding: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("padding", padding))
    }

    /// Distance of a window's taps along each axis; \[1, 1, 1\] unless stated.
    pub fn dilation(self, dilation: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("dilation", dilation))
    }

    /// Whether a window that reaches beyond the padding counts, if it begins before that; false unless stated.
    pub fn ceiling(self, ceiling: bool) -> Self {
        Self(self.0.with("ceiling", ceiling))
    }
}

/// What [`Node::mean_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct MeanOptions(Options);

impl MeanOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reduce over; absent: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Keep the reduced axes, with extent 1; false unless stated.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// What [`Node::min_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct MinOptions(Options);

impl MinOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reduce over; absent: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Keep the reduced axes, with extent 1; false unless stated.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// What [`Node::mlp_layer_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct MlpLayerOptions(Options);

impl MlpLayerOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The op that is applied to the sum; one of none, relu, tanh, sigmoid, gelu, silu, elu, selu, sin; none unless
    /// stated.
    pub fn activation(self, activation: &str) -> Self {
        Self(self.0.with("activation", activation))
    }
}

/// What [`Node::mse_loss_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct MseLossOptions(Options);

impl MseLossOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is made of the single losses; none: they are the result; one of mean, sum, none; mean unless stated.
    pub fn reduction(self, reduction: &str) -> Self {
        Self(self.0.with("reduction", reduction))
    }
}

/// What [`Node::norm_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct NormOptions(Options);

impl NormOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reduce over; absent: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Keep the reduced axes, with extent 1; false unless stated.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// What [`Node::one_hot_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct OneHotOptions(Options);

impl OneHotOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The result's dtype; float64 unless stated.
    pub fn dtype(self, dtype: impl Into<DType>) -> Self {
        Self(self.0.made::<DType>("dtype", dtype))
    }
}

/// What [`Node::pad_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct PadOptions(Options);

impl PadOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number around x; 0.0 unless stated.
    pub fn fill(self, fill: impl Into<Number>) -> Self {
        Self(self.0.made::<Number>("fill", fill))
    }

    /// An infinity or NaN, in place of `fill`; of a float dtype; since opset 2; one of inf, -inf, nan.
    pub fn fill_as(self, fill_as: &str) -> Self {
        Self(self.0.with("fill_as", fill_as))
    }
}

/// What [`Graph::parameter_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct ParameterOptions(Options);

impl ParameterOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares the feed's dtype; absent: any.
    pub fn dtype(self, dtype: impl Into<DType>) -> Self {
        Self(self.0.made::<DType>("dtype", dtype))
    }

    /// Declares the feed's shape, -1 for a free extent; absent: any.
    pub fn shape(self, shape: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("shape", shape))
    }

    /// Declares a 0-d feed; false unless stated.
    pub fn zero_d(self, zero_d: bool) -> Self {
        Self(self.0.with("zero_d", zero_d))
    }
}

/// What [`Node::pinv_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct PinvOptions(Options);

impl PinvOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Of the largest singular value, the part up to which others are taken for 0; absent: max(m, n) ε.
    pub fn rcond(self, rcond: f64) -> Self {
        Self(self.0.with("rcond", rcond))
    }
}

/// What [`Node::pow_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct PowOptions(Options);

impl PowOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The operand 1, which may be left out.
    pub fn b(self, b: &Node) -> Self {
        Self(self.0.operand(1, b))
    }

    /// The exponent, where there is no operand b.
    pub fn exponent(self, exponent: f64) -> Self {
        Self(self.0.with("exponent", exponent))
    }
}

/// What [`Node::prod_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct ProdOptions(Options);

impl ProdOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reduce over; absent: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Keep the reduced axes, with extent 1; false unless stated.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// What [`Node::random_bits_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct RandomBitsOptions(Options);

impl RandomBitsOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The result's dtype; one of uint32; uint32 unless stated.
    pub fn dtype(self, dtype: impl Into<DType>) -> Self {
        Self(self.0.made::<DType>("dtype", dtype))
    }
}

/// What [`Node::random_categorical_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct RandomCategoricalOptions(Options);

impl RandomCategoricalOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The axis of the categories; -1 unless stated.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }
}

/// What [`Node::relu_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct ReluOptions(Options);

impl ReluOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The derivative at 0; 0.0 unless stated.
    pub fn at_zero(self, at_zero: f64) -> Self {
        Self(self.0.with("at_zero", at_zero))
    }
}

/// What [`Node::reshape_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct ReshapeOptions(Options);

impl ReshapeOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The result's shape; one -1 is inferred; \[\] unless stated.
    pub fn shape(self, shape: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("shape", shape))
    }

    /// X's shape, checked where given.
    pub fn original_shape(self, original_shape: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("original_shape", original_shape))
    }
}

/// What [`Node::resize_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct ResizeOptions(Options);

impl ResizeOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The axes that have them; absent: the last ones.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// How entries are found; one of nearest, linear, cubic; linear unless stated.
    pub fn method(self, method: &str) -> Self {
        Self(self.0.with("method", method))
    }

    /// Whether all of what shrinks counts; of linear and cubic; false unless stated.
    pub fn antialias(self, antialias: bool) -> Self {
        Self(self.0.with("antialias", antialias))
    }

    /// Whether the middles of the first and last entries stay; without antialias; false unless stated.
    pub fn corners(self, corners: bool) -> Self {
        Self(self.0.with("corners", corners))
    }
}

/// What [`Node::rfft_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct RfftOptions(Options);

impl RfftOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The axes to transform; absent: the last.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Points on each of axes: x is cut, or padded with zeros; absent: as many as x has.
    pub fn sizes(self, sizes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("sizes", sizes))
    }

    /// Which way is divided by the number of points: that back, that forth, or both by its root; one of backward,
    /// ortho, forward; backward unless stated.
    pub fn norm(self, norm: &str) -> Self {
        Self(self.0.with("norm", norm))
    }
}

/// What [`Node::rms_norm_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct RmsNormOptions(Options);

impl RmsNormOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The operand 1, which may be left out.
    pub fn weight(self, weight: &Node) -> Self {
        Self(self.0.operand(1, weight))
    }

    /// Axes to normalise over; \[-1\] unless stated.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Added to the variance or mean square; positive; 1e-05 unless stated.
    pub fn eps(self, eps: f64) -> Self {
        Self(self.0.with("eps", eps))
    }
}

/// What [`Node::roll_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct RollOptions(Options);

impl RollOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The axes to move along; absent: the flattened tensor.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }
}

/// What [`Graph::scan_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct ScanOptions(Options);

impl ScanOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many operands are initial values of carries; 0 unless stated.
    pub fn carries(self, carries: i64) -> Self {
        Self(self.0.with("carries", carries))
    }

    /// How many operands, the last ones, are gone through; 0 unless stated.
    pub fn sequences(self, sequences: i64) -> Self {
        Self(self.0.with("sequences", sequences))
    }

    /// How many steps; absent: as many as the sequences have entries.
    pub fn length(self, length: i64) -> Self {
        Self(self.0.with("length", length))
    }

    /// From the last entry to the first; false unless stated.
    pub fn reverse(self, reverse: bool) -> Self {
        Self(self.0.with("reverse", reverse))
    }
}

/// What [`Node::scatter_add_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct ScatterAddOptions(Options);

impl ScatterAddOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The axis that is indexed; 0 unless stated.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }

    /// Whether a negative index counts from the end: −1 is the last; since opset 2; false unless stated.
    pub fn from_end(self, from_end: bool) -> Self {
        Self(self.0.with("from_end", from_end))
    }
}

/// What [`Node::select_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct SelectOptions(Options);

impl SelectOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The axis that is read at one position; 0 unless stated.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }
}

/// What [`Node::slice_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct SliceOptions(Options);

impl SliceOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// First position on each axis; absent: 0.
    pub fn starts(self, starts: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("starts", starts))
    }

    /// The position to stop before, on each axis; absent: the extent.
    pub fn stops(self, stops: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("stops", stops))
    }

    /// Distance between positions on each axis; absent: 1.
    pub fn steps(self, steps: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("steps", steps))
    }
}

/// What [`Node::softmax_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct SoftmaxOptions(Options);

impl SoftmaxOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The axis that adds up to 1; -1 unless stated.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }
}

/// What [`Node::split_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct SplitOptions(Options);

impl SplitOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The axis that is cut; 0 unless stated.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }
}

/// What [`Node::squeeze_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct SqueezeOptions(Options);

impl SqueezeOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes of extent 1; absent: all there are.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }
}

/// What [`Graph::stack_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct StackOptions(Options);

impl StackOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The new axis, counted in the result; 0 unless stated.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }
}

/// What [`Node::stft_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct StftOptions(Options);

impl StftOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// One: the points of each transform; absent: as many as the window has.
    pub fn sizes(self, sizes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("sizes", sizes))
    }
}

/// What [`Node::sum_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct SumOptions(Options);

impl SumOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reduce over; absent: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Keep the reduced axes, with extent 1; false unless stated.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }
}

/// What [`Node::svd_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct SvdOptions(Options);

impl SvdOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where values are equal and vectors are read: nan, or whole: only whole spaces are depended on; one of nan,
    /// whole; nan unless stated.
    pub fn degenerate(self, degenerate: &str) -> Self {
        Self(self.0.with("degenerate", degenerate))
    }
}

/// What [`Node::take_along_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct TakeAlongOptions(Options);

impl TakeAlongOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The axis that is indexed; 0 unless stated.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }

    /// Whether a negative index counts from the end: −1 is the last; since opset 2; false unless stated.
    pub fn from_end(self, from_end: bool) -> Self {
        Self(self.0.with("from_end", from_end))
    }
}

/// What [`Node::topk_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct TopkOptions(Options);

impl TopkOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// The axis to search; 0 unless stated.
    pub fn axis(self, axis: i64) -> Self {
        Self(self.0.with("axis", axis))
    }
}

/// What [`Node::transpose_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct TransposeOptions(Options);

impl TransposeOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// A permutation, or two axes to swap; absent: the last two.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }
}

/// What [`Node::triangular_solve_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct TriangularSolveOptions(Options);

impl TriangularSolveOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Read the lower triangle of a; false: the upper one; true unless stated.
    pub fn lower(self, lower: bool) -> Self {
        Self(self.0.with("lower", lower))
    }

    /// Solve with the triangle's transpose; false unless stated.
    pub fn transpose(self, transpose: bool) -> Self {
        Self(self.0.with("transpose", transpose))
    }
}

/// What [`Node::tril_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct TrilOptions(Options);

impl TrilOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Which diagonal: 0 the main one, above it positive, below it negative; 0 unless stated.
    pub fn offset(self, offset: i64) -> Self {
        Self(self.0.with("offset", offset))
    }
}

/// What [`Node::triu_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct TriuOptions(Options);

impl TriuOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Which diagonal: 0 the main one, above it positive, below it negative; 0 unless stated.
    pub fn offset(self, offset: i64) -> Self {
        Self(self.0.with("offset", offset))
    }
}

/// What [`Node::unsqueeze_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct UnsqueezeOptions(Options);

impl UnsqueezeOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Positions of the new axes in the result; must be given.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }
}

/// What [`Node::var_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct VarOptions(Options);

impl VarOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// Axes to reduce over; absent: all.
    pub fn axes(self, axes: impl Into<Vec<i64>>) -> Self {
        Self(self.0.made::<Vec<i64>>("axes", axes))
    }

    /// Keep the reduced axes, with extent 1; false unless stated.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(self.0.with("keepdims", keepdims))
    }

    /// What is taken off n: 1 for the unbiased estimate; 0 unless stated.
    pub fn ddof(self, ddof: i64) -> Self {
        Self(self.0.with("ddof", ddof))
    }
}

/// What [`Graph::while_with`] takes beside what is required.
#[derive(Clone, Debug, Default)]
pub struct WhileOptions(Options);

impl WhileOptions {
    /// Nothing beside what is required.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many operands, the last ones, are initial values of carries; 0 unless stated.
    pub fn carries(self, carries: i64) -> Self {
        Self(self.0.with("carries", carries))
    }
}
