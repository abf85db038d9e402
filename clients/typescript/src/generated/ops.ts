/** The ops as methods. Written by `python -m clients.ops` from the op registry: do not edit. */

import type { Dtype } from "../dtypes.js";
import type { GraphFunction, Node, StatedAttributes } from "../graph.js";
import type { TensorLike } from "../tensor.js";

/** Attributes whose values are tensors. */
export const TENSOR_ATTRIBUTES: ReadonlySet<string> = new Set(["value"]);
/** Attributes whose values are integers or lists of integers. */
export const WHOLE_ATTRIBUTES: ReadonlySet<string> = new Set([
  "at_once", "axes", "axis", "carries", "chunks", "classes", "ddof", "dilation", "field_index", "groups", "index",
  "indices", "k", "kernel_size", "key_index", "length", "max_steps", "offset", "order", "original_shape",
  "output_padding", "pad_width", "padding", "padding_idx", "repeats", "segments", "sequences", "shape", "shifts",
  "sizes", "starts", "steps", "stops", "stride", "total_fields", "total_keys",
]);
/** The first opset with an op, or with `op.attribute`, unless it is opset 1. */
export const SINCE: { readonly [name: string]: number } = {
  adaptive_avg_pool: 2,
  adaptive_max_pool: 2,
  angle: 2,
  "attention.grouped": 2,
  avg_pool1d: 2,
  avg_pool3d: 2,
  batch_norm_given: 2,
  batch_norm_running: 2,
  betainc: 2,
  call: 2,
  cdist: 2,
  compress: 2,
  cond: 2,
  cond_number: 2,
  conj: 2,
  conv_transpose1d: 2,
  cumlogsumexp: 2,
  cummax: 2,
  cummin: 2,
  cumprod: 2,
  "cumsum.reverse": 2,
  det: 2,
  eigh: 2,
  "embedding.from_end": 2,
  "embedding.padding_idx": 2,
  fft: 2,
  fixed_point: 2,
  floor_div: 2,
  "full.fill_as": 2,
  "gather.from_end": 2,
  group_norm: 2,
  i0: 2,
  i0e: 2,
  i1: 2,
  i1e: 2,
  ifft: 2,
  igamma: 2,
  igammac: 2,
  imag: 2,
  index: 2,
  index_add: 2,
  index_set: 2,
  irfft: 2,
  lstsq: 2,
  lu: 2,
  make_complex: 2,
  map: 2,
  matrix_exp: 2,
  matrix_power: 2,
  matrix_rank: 2,
  max_pool1d: 2,
  max_pool3d: 2,
  nonzero: 2,
  "pad.fill_as": 2,
  pinv: 2,
  qr: 2,
  random_bernoulli: 2,
  random_bits: 2,
  random_categorical: 2,
  random_exponential: 2,
  random_fold_in: 2,
  random_gumbel: 2,
  random_key: 2,
  random_normal: 2,
  random_permutation: 2,
  random_split: 2,
  random_uniform: 2,
  real: 2,
  rem: 2,
  resize: 2,
  rfft: 2,
  scan: 2,
  "scatter_add.from_end": 2,
  segment_max: 2,
  segment_mean: 2,
  segment_min: 2,
  segment_prod: 2,
  sinc: 2,
  slice_at: 2,
  stft: 2,
  svd: 2,
  symmetric_function: 2,
  "take_along.from_end": 2,
  trunc_div: 2,
  update_slice_at: 2,
  while: 2,
  xlog1py: 2,
  xlogy: 2,
  zeta: 2,
};

/** An integer: a bigint if a number cannot represent it exactly. */
export type Int = number | bigint;
export type Ints = readonly Int[];
/** A number: a bigint for an integer that a number cannot represent exactly. */
export type Float = number | bigint;
/** The name of a dtype. Servers may support more dtypes than this client. */
export type DtypeName = Dtype | (string & {});
/** Optional members. */
export type Optional<T> = { readonly [K in keyof T]?: T[K] | undefined };

/** The op methods of graphs. Each appends a node. */
export abstract class Ops {
  /** Appends an op by name. The methods of ops call it. Operands at the end may be omitted. */
  protected abstract append(
    op: string,
    operands: readonly (Node | undefined)[],
    attrs: StatedAttributes,
    name?: string,
  ): Node;

  /**
   * y = |x|; real for a complex x. At 0 the gradient is 0, in every order.
   *
   * Gradient: g · sign x; for a complex x, g · x / |x|.
   */
  abs(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("abs", [x], {}, options.name);
  }

  /**
   * y = arccos x in [0, π], NaN for |x| > 1. At ±1 the derivative is infinite.
   *
   * Gradient: −g / √(1 − x²).
   */
  acos(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("acos", [x], {}, options.name);
  }

  /**
   * y = arcosh x, NaN for x < 1. At 1 the derivative is infinite.
   *
   * Gradient: g / sinh y = g / √(x² − 1).
   */
  acosh(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("acosh", [x], {}, options.name);
  }

  /**
   * y[…, i] = the mean of window i, from ⌊i · n / size⌋ to ⌈(i + 1) · n / size⌉. Integers give float64.
   *
   * Pools as many of the last axes as `sizes` has entries. PyTorch: `adaptive_avg_pool1d`, 2d and 3d. JAX has no
   * equivalent.
   *
   * Since opset 2.
   *
   * Gradient: g / (number of elements in the window), added to each of them.
   *
   * @param sizes number of windows on each of the last axes
   */
  adaptiveAvgPool(x: Node, sizes: Ints, options: Optional<{ name: string }> = {}): Node {
    return this.append("adaptive_avg_pool", [x], { sizes }, options.name);
  }

  /**
   * y[…, i] = the maximum of window i, from ⌊i · n / size⌋ to ⌈(i + 1) · n / size⌉; NaN if the window contains NaN.
   *
   * Pools as many of the last axes as `sizes` has entries. PyTorch: `adaptive_max_pool1d`, 2d and 3d. JAX has no
   * equivalent.
   *
   * Since opset 2.
   *
   * Gradient: g, added at the first maximum (in row-major order) of each window.
   *
   * @param sizes number of windows on each of the last axes
   */
  adaptiveMaxPool(x: Node, sizes: Ints, options: Optional<{ name: string }> = {}): Node {
    return this.append("adaptive_max_pool", [x], { sizes }, options.name);
  }

  /**
   * y = a + b, elementwise, with NumPy broadcasting.
   *
   * Gradient: da = g, db = g.
   */
  add(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("add", [a, b], {}, options.name);
  }

  /**
   * y = x + scalar.
   *
   * Gradient: g.
   *
   * @param scalar constant operand
   */
  addScalar(x: Node, scalar: Float, options: Optional<{ name: string }> = {}): Node {
    return this.append("add_scalar", [x], { scalar }, options.name);
  }

  /**
   * y = whether all elements over axes are true; nonzero numbers are true. True if no elements are reduced.
   *
   * @param options.axes axes to reduce; default: all
   * @param options.keepdims whether to keep the reduced axes, with extent 1; default false
   */
  all(x: Node, options: Optional<{ axes: Ints; keepdims: boolean; name: string }> = {}): Node {
    return this.append("all", [x], { axes: options.axes, keepdims: options.keepdims }, options.name);
  }

  /**
   * y = the angle of x in [−π, π]: atan2(Im x, Re x); 0 or π for a real x. NaN if a part is NaN.
   *
   * The branch cut is the negative real axis; on it, the sign of the imaginary zero selects the side (as in C99's
   * carg). At 0 the gradient is 0, as in PyTorch; in JAX it is NaN.
   *
   * Since opset 2.
   *
   * Gradient: i · g · x / |x|², 0 at 0; none for a real x.
   */
  angle(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("angle", [x], {}, options.name);
  }

  /**
   * y = whether any element over axes is true; nonzero numbers are true. False if no elements are reduced.
   *
   * @param options.axes axes to reduce; default: all
   * @param options.keepdims whether to keep the reduced axes, with extent 1; default false
   */
  any(x: Node, options: Optional<{ axes: Ints; keepdims: boolean; name: string }> = {}): Node {
    return this.append("any", [x], { axes: options.axes, keepdims: options.keepdims }, options.name);
  }

  /**
   * Evenly spaced numbers: y[i] = start + i · step, up to but not including stop.
   *
   * The result has ⌈(stop − start) / step⌉ elements, at least 0. Same as NumPy's arange, but exact: for an integer
   * dtype, start and step must be whole numbers, and all numbers must be in its range.
   *
   * @param options.start first number; default 0.0
   * @param stop end of the range, not included
   * @param options.step distance between numbers; negative to count down, not 0; default 1.0
   * @param options.dtype dtype of the result; default "int64"
   */
  arange(stop: Float, options: Optional<{ start: Float; step: Float; dtype: DtypeName; name: string }> = {}): Node {
    return this.append(
      "arange",
      [],
      { start: options.start, stop, step: options.step, dtype: options.dtype },
      options.name,
    );
  }

  /**
   * y = the int64 position of the largest element along `axis`: the first in a tie; the first NaN if any.
   *
   * @param axis axis to search
   * @param options.keepdims whether to keep the reduced axes, with extent 1; default false
   */
  argmax(x: Node, axis: Int, options: Optional<{ keepdims: boolean; name: string }> = {}): Node {
    return this.append("argmax", [x], { axis, keepdims: options.keepdims }, options.name);
  }

  /**
   * y = the int64 position of the smallest element along `axis`: the first in a tie; the first NaN if any.
   *
   * @param axis axis to search
   * @param options.keepdims whether to keep the reduced axes, with extent 1; default false
   */
  argmin(x: Node, axis: Int, options: Optional<{ keepdims: boolean; name: string }> = {}): Node {
    return this.append("argmin", [x], { axis, keepdims: options.keepdims }, options.name);
  }

  /**
   * y = the int64 positions that sort x in ascending order along an axis; equal entries keep their order.
   *
   * NaN comes last.
   *
   * @param axis axis to sort along
   */
  argsort(x: Node, axis: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("argsort", [x], { axis }, options.name);
  }

  /**
   * y = arcsin x in [−π/2, π/2], NaN for |x| > 1. At ±1 the derivative is infinite.
   *
   * Gradient: g / √(1 − x²).
   */
  asin(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("asin", [x], {}, options.name);
  }

  /**
   * y = arsinh x.
   *
   * Gradient: g / cosh y = g / √(x² + 1).
   */
  asinh(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("asinh", [x], {}, options.name);
  }

  /**
   * y = arctan x in [−π/2, π/2].
   *
   * Gradient: g / (1 + x²).
   */
  atan(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("atan", [x], {}, options.name);
  }

  /**
   * y = the angle in [−π, π] of the point with abscissa b and ordinate a, with broadcasting.
   *
   * At a = b = 0 the value is NumPy's (0 or ±π), and the derivatives, which do not exist there, are NaN. At infinity
   * the derivatives are 0.
   *
   * Gradient: da = g · b / (a² + b²), db = −g · a / (a² + b²).
   */
  atan2(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("atan2", [a, b], {}, options.name);
  }

  /**
   * y = artanh x: ±∞ at ±1, NaN beyond.
   *
   * Gradient: g / (1 − x²).
   */
  atanh(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("atanh", [x], {}, options.name);
  }

  /**
   * y = softmax(q kᵀ · scale + mask) v: for each query, the mean of the values, weighted by how well its key matches.
   *
   * q [..., queries, d], k [..., keys, d], v [..., keys, width], y [..., queries, width]; leading axes broadcast. The
   * mask broadcasts to [..., queries, keys]; it is bool (true = keep) or float (added). `causal` also hides key j from
   * query i if j > i. A query with no visible keys gives NaN. With `grouped`, the number of heads of q (axis -3) is a
   * multiple of that of k and v, and adjacent heads of q share a head of k and v: PyTorch's enable_gqa, and what JAX's
   * dot_product_attention does if k and v have fewer heads. Scores of at least 16 MiB that are larger than q, k and v
   * together are not stored, except for tangents and second derivatives.
   *
   * A. Vaswani et al., "Attention is all you need" (2017); J. Ainslie et al., "GQA" (2023).
   *
   * Gradient: with p = softmax(…), dp = g vᵀ, ds = p · (dp − Σ dp·p): dq = scale · ds k, dk = scale · dsᵀ q, dv = pᵀ g.
   *
   * @param options.scale factor of q kᵀ; default: 1/√d
   * @param options.causal whether to hide key j from query i if j > i; default false
   * @param options.grouped whether each head of k and v serves several heads of q; axis -3; since opset 2; default
   *   false
   */
  attention(
    q: Node,
    k: Node,
    v: Node,
    mask?: Node,
    options: Optional<{ scale: Float; causal: boolean; grouped: boolean; name: string }> = {},
  ): Node {
    return this.append(
      "attention",
      [q, k, v, mask],
      { scale: options.scale, causal: options.causal, grouped: options.grouped },
      options.name,
    );
  }

  /**
   * y[…, i] = the mean of the window at i. x [..., w]; padding counts as zeros. Integers give float64.
   *
   * Extents are as in max_pool1d. With `ceiling`, the part of a window beyond the padding is not counted. PyTorch:
   * `avg_pool1d`, whose `ceil_mode` is `ceiling`. Flax: `avg_pool`, which has no ceiling mode.
   *
   * Since opset 2.
   *
   * Gradient: g / (number of taps in the window), added to each of its elements.
   *
   * @param kernelSize extents of the windows along each spatial axis
   * @param options.stride distance between windows along each spatial axis; default: the kernel size
   * @param options.padding padding on both sides of each axis; at most half the kernel size; default [0]
   * @param options.ceiling whether to count a last window that extends past the end padding but starts before it;
   *   default false
   */
  avgPool1d(
    x: Node,
    kernelSize: Ints,
    options: Optional<{ stride: Ints; padding: Ints; ceiling: boolean; name: string }> = {},
  ): Node {
    return this.append(
      "avg_pool1d",
      [x],
      { kernel_size: kernelSize, stride: options.stride, padding: options.padding, ceiling: options.ceiling },
      options.name,
    );
  }

  /**
   * y[…, i, j] = the sum of the window at (i, j), divided by the kernel size; padding counts as zeros.
   *
   * x [..., h, w]. Integers give float64. Same as PyTorch's avg_pool2d.
   *
   * Gradient: conv_transpose2d of g / kernel size with ones.
   *
   * @param kernelSize extents of the windows along each spatial axis
   * @param options.stride distance between windows along each spatial axis; default: the kernel size
   * @param options.padding padding on both sides of each spatial axis; at most half the kernel size; default [0, 0]
   */
  avgPool2d(x: Node, kernelSize: Ints, options: Optional<{ stride: Ints; padding: Ints; name: string }> = {}): Node {
    return this.append(
      "avg_pool2d",
      [x],
      { kernel_size: kernelSize, stride: options.stride, padding: options.padding },
      options.name,
    );
  }

  /**
   * y[…, i, j, k] = the mean of the window at (i, j, k). x [..., d, h, w]; padding counts as zeros.
   *
   * Integers give float64. Extents are as in max_pool1d. With `ceiling`, the part of a window beyond the padding is not
   * counted. PyTorch: `avg_pool3d`, whose `ceil_mode` is `ceiling`. Flax: `avg_pool`, which has no ceiling mode.
   *
   * Since opset 2.
   *
   * Gradient: g / (number of taps in the window), added to each of its elements.
   *
   * @param kernelSize extents of the windows along each spatial axis
   * @param options.stride distance between windows along each spatial axis; default: the kernel size
   * @param options.padding padding on both sides of each axis; at most half the kernel size; default [0, 0, 0]
   * @param options.ceiling whether to count a last window that extends past the end padding but starts before it;
   *   default false
   */
  avgPool3d(
    x: Node,
    kernelSize: Ints,
    options: Optional<{ stride: Ints; padding: Ints; ceiling: boolean; name: string }> = {},
  ): Node {
    return this.append(
      "avg_pool3d",
      [x],
      { kernel_size: kernelSize, stride: options.stride, padding: options.padding, ceiling: options.ceiling },
      options.name,
    );
  }

  /**
   * y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance of each feature over all other axes.
   *
   * `axis` is the axis of the features; weight and bias have its extent. The statistics are those of the operand, as in
   * training, with n in the denominator. CJC normalises the whole tensor: for that, reshape it to [n, 1]. S. Ioffe, C.
   * Szegedy, "Batch normalization" (2015).
   *
   * Gradient: as in layer_norm, over all axes but that of the features.
   *
   * @param options.axis axis of the features; default 1
   * @param options.eps positive number added to the variance or mean square; default 1e-05
   */
  batchNorm(
    x: Node,
    weight?: Node,
    bias?: Node,
    options: Optional<{ axis: Int; eps: Float; name: string }> = {},
  ): Node {
    return this.append("batch_norm", [x, weight, bias], { axis: options.axis, eps: options.eps }, options.name);
  }

  /**
   * y = (x − mean) / √(variance + eps) · weight + bias, with given statistics, as in inference.
   *
   * `axis` is the axis of the features; all other operands have its extent. PyTorch: `batch_norm` with training false.
   * Flax: `BatchNorm` with use_running_average, with features last.
   *
   * Since opset 2.
   *
   * Gradient: with r = 1 / √(variance + eps): dx = g · weight · r; for the other operands, that of the formula.
   *
   * @param options.axis axis of the features; default 1
   * @param options.eps positive number added to the variance or mean square; default 1e-05
   */
  batchNormGiven(
    x: Node,
    mean: Node,
    variance: Node,
    weight?: Node,
    bias?: Node,
    options: Optional<{ axis: Int; eps: Float; name: string }> = {},
  ): Node {
    return this.append(
      "batch_norm_given",
      [x, mean, variance, weight, bias],
      { axis: options.axis, eps: options.eps },
      options.name,
    );
  }

  /**
   * y of `batch_norm`, and the updated running mean and variance: (1 − momentum) · old + momentum · this batch's.
   *
   * `axis` is the axis of the features; all other operands have its extent. The variance of the batch has n − 1 in the
   * denominator in the running variance, and n in y. PyTorch: `batch_norm` with training true, which updates the
   * running statistics in place and gives them no gradient. Flax: `BatchNorm`, whose momentum is 1 minus this one, and
   * whose running variance has n in the denominator.
   *
   * Since opset 2.
   *
   * The op has several results. Read each with getOutput.
   *
   * Gradient: as in batch_norm; for the running statistics, that of their formula.
   *
   * @param options.axis axis of the features; default 1
   * @param options.eps positive number added to the variance or mean square; default 1e-05
   * @param options.momentum weight of the batch's statistics in the running ones; default 0.1
   */
  batchNormRunning(
    x: Node,
    mean: Node,
    variance: Node,
    weight?: Node,
    bias?: Node,
    options: Optional<{ axis: Int; eps: Float; momentum: Float; name: string }> = {},
  ): Node {
    return this.append(
      "batch_norm_running",
      [x, mean, variance, weight, bias],
      { axis: options.axis, eps: options.eps, momentum: options.momentum },
      options.name,
    );
  }

  /**
   * loss = −y · log σ(x) − (1 − y) · log σ(−x), binary cross-entropy, elementwise for equal shapes; then the mean.
   *
   * x contains logits, y probabilities. Accurate in both tails, because the logarithm of σ is computed in one step.
   *
   * Gradient: dx = g · (σ(x) − y) / n, dy = −g · x / n.
   *
   * @param options.reduction how to combine the losses; none: return each one; default "mean"
   */
  bceWithLogits(x: Node, y: Node, options: Optional<{ reduction: "mean" | "sum" | "none"; name: string }> = {}): Node {
    return this.append("bce_with_logits", [x, y], { reduction: options.reduction }, options.name);
  }

  /**
   * y = I(x; a, b) = ∫₀ˣ tᵃ⁻¹ (1 − t)ᵇ⁻¹ dt / B(a, b), with broadcasting, for 0 ≤ x ≤ 1 and a, b > 0.
   *
   * On NumPy, this is SciPy's function. Accurate to 256 ulp. Derivatives with respect to all operands exist to any
   * order. They are accurate to 1e-12 of their value with respect to x, and to 1e-11 with respect to a and b, for which
   * JAX has none. SciPy and JAX: `betainc`. PyTorch has no equivalent.
   *
   * Since opset 2.
   *
   * Gradient: da, db = g · ∂I/∂a, g · ∂I/∂b, integrals; dx = g · xᵃ⁻¹ (1 − x)ᵇ⁻¹ / B(a, b).
   */
  betainc(a: Node, b: Node, x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("betainc", [a, b, x], {}, options.name);
  }

  /**
   * y = log |B(a, b)| = log |Γ(a) Γ(b) / Γ(a + b)|, with broadcasting. Accurate to 10 ulp of y, or of 1 if |y| < 1.
   *
   * One ulp is that of float64, on NumPy. If an operand is large, a sum of `lgamma` would have few correct digits, and
   * SciPy's loses up to 9 of 16. For operands that are not positive, y equals SciPy's; at infinity it is −∞.
   *
   * The derivative with respect to a is as accurate, or, if b < a < 100, accurate to 1e-15 · a / b of its value. The
   * same holds for b.
   *
   * Gradient: da = g · (digamma(a) − digamma(a + b)), db = g · (digamma(b) − digamma(a + b)).
   */
  betaln(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("betaln", [a, b], {}, options.name);
  }

  /**
   * y = x repeated along new leading axes and along axes of extent 1, to `shape`, by NumPy's rules.
   *
   * Gradient: g, summed over the repeated axes.
   *
   * @param options.shape shape of the result; default []
   */
  broadcastTo(x: Node, options: Optional<{ shape: Ints; name: string }> = {}): Node {
    return this.append("broadcast_to", [x], { shape: options.shape }, options.name);
  }

  /**
   * The results of body(operands).
   *
   * `derivative` defines a custom gradient: a function of the operands, the results and the cotangents of the results
   * that returns one cotangent for each float operand. It replaces the derivative of the body. With `recompute`, no
   * values inside the body are stored for the backward pass, which runs the body again.
   *
   * For `derivative`, JAX has `custom_vjp` and PyTorch has `autograd.Function`; their rules receive the values that the
   * forward pass saved. For `recompute`, both have `checkpoint`.
   *
   * Since opset 2.
   *
   * The op has several results. Read each with getOutput.
   *
   * Gradient: that of the body, or `derivative`.
   *
   * @param body function of the operands
   * @param options.derivative function of operands, results and cotangents; returns a cotangent for each float operand;
   *   default: the body's derivative
   * @param options.recompute whether the backward pass recomputes the body instead of storing its values; default false
   */
  call(
    operands: readonly Node[],
    body: GraphFunction,
    options: Optional<{ derivative: GraphFunction; recompute: boolean; name: string }> = {},
  ): Node {
    return this.append(
      "call",
      [...operands],
      { body, derivative: options.derivative, recompute: options.recompute },
      options.name,
    );
  }

  /**
   * y = x converted to another dtype, as in NumPy's astype: fractions are truncated towards zero, nonzero is true.
   *
   * Float to float is differentiable; no gradient passes through integers or bool. A real x can become complex. To
   * convert a complex x to real, use `real`.
   *
   * Gradient: g, cast back.
   *
   * @param dtype dtype of the result
   */
  cast(x: Node, dtype: DtypeName, options: Optional<{ name: string }> = {}): Node {
    return this.append("cast", [x], { dtype }, options.name);
  }

  /**
   * y = the operands, joined along `axis`; their other extents must be equal.
   *
   * The result has their common dtype. `sizes`, if given, must be their extents on the axis.
   *
   * Gradient: g, split into the operands' parts.
   *
   * @param options.axis axis to join along; default 0
   * @param options.sizes the operands' extents on the axis, checked if given
   */
  cat(x: readonly Node[], options: Optional<{ axis: Int; sizes: Ints; name: string }> = {}): Node {
    return this.append("cat", [...x], { axis: options.axis, sizes: options.sizes }, options.name);
  }

  /**
   * y[…, i, j] = (Σ |a[…, i, k] − b[…, j, k]|ᵖ)^(1/p) over k: the distance between row i of a and row j of b.
   *
   * a [..., m, d], b [..., n, d], y [..., m, n]; leading axes broadcast. Where two rows coincide, the gradient and its
   * own gradient are 0. Differences are taken before they are squared, so that no digits are lost. PyTorch: `cdist`
   * with compute_mode donot_use_mm_for_euclid_dist. JAX has no equivalent.
   *
   * Since opset 2.
   *
   * Gradient: da = Σ g · sign(a − b) · (|a − b| / y)^(p − 1), 0 where y = 0; db likewise.
   *
   * @param options.p exponent; positive; default 2.0
   */
  cdist(a: Node, b: Node, options: Optional<{ p: Float; name: string }> = {}): Node {
    return this.append("cdist", [a, b], { p: options.p }, options.name);
  }

  /** y = ⌈x⌉: x rounded up to a whole number. */
  ceil(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("ceil", [x], {}, options.name);
  }

  /**
   * y lower triangular with a positive diagonal and y yᴴ = (x + xᴴ) / 2, for matrices on the last two axes.
   *
   * x is made symmetric (Hermitian) first, as in JAX, so that the gradient is symmetric and valid in every direction. A
   * matrix that is not positive definite gives NaN; the other matrices of the batch are unaffected. Integers give
   * float64; float16 is computed in a wider float and rounded once.
   *
   * I. Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527 (2016), eq. 9.
   *
   * Gradient: (s + sᴴ) / 2, where s = y⁻ᴴ Φ(yᴴ g) y⁻¹ and Φ takes the lower triangle with half the diagonal.
   */
  cholesky(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("cholesky", [x], {}, options.name);
  }

  /**
   * y0, y1, … = x split along `axis` into at most `chunks` parts of extent ⌈n / chunks⌉; the last may be smaller.
   *
   * As in PyTorch, there may be fewer parts than requested (6 entries in 4 chunks: 2, 2, 2). An empty axis gives
   * `chunks` empty parts.
   *
   * The op has several results. Read each with getOutput.
   *
   * Gradient: the parts' cotangents, joined; zeros for parts that are not read.
   *
   * @param chunks maximum number of parts
   * @param options.axis axis to split; default 0
   */
  chunk(x: Node, chunks: Int, options: Optional<{ axis: Int; name: string }> = {}): Node {
    return this.append("chunk", [x], { chunks, axis: options.axis }, options.name);
  }

  /**
   * y = x limited to [min, max]; either bound may be absent. If min > max, y is max.
   *
   * NaN stays NaN and gets the gradient. Integers keep their dtype if all bounds given are whole numbers within its
   * range; otherwise they give float64.
   *
   * Gradient: g where min ≤ x ≤ max or x is NaN, else 0.
   *
   * @param options.min lower bound; default: none
   * @param options.max upper bound; default: none
   */
  clamp(x: Node, options: Optional<{ min: Float; max: Float; name: string }> = {}): Node {
    return this.append("clamp", [x], { min: options.min, max: options.max }, options.name);
  }

  /**
   * The first k entries of x along `axis` where `mask` [extent] is true; and their total count: int64 [].
   *
   * You set k, so that shapes do not depend on the mask. If there are more than k entries, the rest are dropped; if
   * there are fewer, the remaining entries are `fill`. The count, which is not limited to k, tells you which. NumPy:
   * `compress`. JAX: `compress`, which also takes a size and a fill_value. PyTorch: x[mask], which has as many entries
   * as the mask selects.
   *
   * Since opset 2.
   *
   * The op has several results. Read each with getOutput.
   *
   * Gradient: g to the entries that were read; none for mask.
   *
   * @param k number of entries in the result
   * @param options.axis axis that the mask applies to; default 0
   * @param options.fill value of the remaining entries; default 0.0
   * @param options.fillAs infinity or NaN to use instead of `fill`; float dtypes only
   */
  compress(
    x: Node,
    mask: Node,
    k: Int,
    options: Optional<{ axis: Int; fill: Float; fillAs: "inf" | "-inf" | "nan"; name: string }> = {},
  ): Node {
    return this.append(
      "compress",
      [x, mask],
      { k, axis: options.axis, fill: options.fill, fill_as: options.fillAs },
      options.name,
    );
  }

  /**
   * then(operands) if the predicate, a bool [], is true, else otherwise(operands). Only one of them runs.
   *
   * Both functions must return results of the same types. JAX: `lax.cond`. PyTorch: `cond`.
   *
   * Since opset 2.
   *
   * The op has several results. Read each with getOutput.
   *
   * Gradient: that of the function that ran; the other one contributes exact zeros.
   *
   * @param then function of the operands after the predicate; runs if the predicate is true
   * @param otherwise function of the same operands; runs if the predicate is false
   */
  cond(
    predicate: Node,
    operands: readonly Node[],
    then: GraphFunction,
    otherwise: GraphFunction,
    options: Optional<{ name: string }> = {},
  ): Node {
    return this.append("cond", [predicate, ...operands], { then, otherwise }, options.name);
  }

  /**
   * y = s₀ / sₖ₋₁, the condition number in the 2-norm: the largest singular value over the smallest.
   *
   * x [batch…, m, n], y [batch…]. A rank-deficient matrix gives infinity if rounding leaves an exact 0. A zero matrix,
   * or one with an infinity or NaN, gives NaN. Integers give float64; float16 is computed in float32 and rounded once.
   * PyTorch, JAX and NumPy: `linalg.cond` without p.
   *
   * Since opset 2.
   *
   * Gradient: g y (u₀ v₀ᴴ / s₀ − uₖ₋₁ vₖ₋₁ᴴ / sₖ₋₁), with the singular vectors of s₀ and sₖ₋₁.
   */
  condNumber(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("cond_number", [x], {}, options.name);
  }

  /**
   * y = conj x: the imaginary part is negated; a real x is returned unchanged. PyTorch, JAX and NumPy: `conj`.
   *
   * Since opset 2.
   *
   * Gradient: conj g.
   */
  conj(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("conj", [x], {}, options.name);
  }

  /**
   * A tensor that is part of the graph: y = value.
   *
   * @param value value of the tensor
   */
  constant(value: TensorLike, options: Optional<{ name: string }> = {}): Node {
    return this.append("constant", [], { value }, options.name);
  }

  /**
   * y[n, o, i] = Σ x[n, c, i·s + a·d − p] · kernel[o, c, a] + bias[o], a cross-correlation.
   *
   * s, d and p are stride, dilation and padding. x [n, channels, w], zero outside; kernel [features, channels / groups,
   * kw]; y [n, features, w'] with w' = ⌊(w + 2p − d·(kw − 1) − 1) / s⌋ + 1. Each feature reads only the channels of its
   * own group. Same as PyTorch's conv1d.
   *
   * Gradient: dx = the transposed convolution of g, d kernel = x convolved with g, d bias = g summed.
   *
   * @param options.stride distance between windows along each spatial axis; default [1]
   * @param options.padding zeros added on both sides of each spatial axis; default [0]
   * @param options.dilation distance between the kernel's taps along each spatial axis; default [1]
   * @param options.groups number of equal groups of channels, each with its own kernels; default 1
   */
  conv1d(
    x: Node,
    kernel: Node,
    bias?: Node,
    options: Optional<{ stride: Ints; padding: Ints; dilation: Ints; groups: Int; name: string }> = {},
  ): Node {
    return this.append(
      "conv1d",
      [x, kernel, bias],
      { stride: options.stride, padding: options.padding, dilation: options.dilation, groups: options.groups },
      options.name,
    );
  }

  /**
   * y[n, o, i, j] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p] · kernel[o, c, a, b] + bias[o], a cross-correlation.
   *
   * s, d and p are stride, dilation and padding. x [n, channels, h, w], zero outside; kernel [features, channels /
   * groups, kh, kw]; y [n, features, h', w'] with h' = ⌊(h + 2p − d·(kh − 1) − 1) / s⌋ + 1. Each feature reads only the
   * channels of its own group. Same as PyTorch's conv2d.
   *
   * Gradient: dx = conv_transpose2d(g, kernel), d kernel = conv2d(x, g) over images, d bias = g summed.
   *
   * @param options.stride distance between windows along each spatial axis; default [1, 1]
   * @param options.padding zeros added on both sides of each spatial axis; default [0, 0]
   * @param options.dilation distance between the kernel's taps along each spatial axis; default [1, 1]
   * @param options.groups number of equal groups of channels, each with its own kernels; default 1
   */
  conv2d(
    x: Node,
    kernel: Node,
    bias?: Node,
    options: Optional<{ stride: Ints; padding: Ints; dilation: Ints; groups: Int; name: string }> = {},
  ): Node {
    return this.append(
      "conv2d",
      [x, kernel, bias],
      { stride: options.stride, padding: options.padding, dilation: options.dilation, groups: options.groups },
      options.name,
    );
  }

  /**
   * y[n, o, i, j, k] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p, k·s + e·d − p] · kernel[o, c, a, b, e] + bias[o].
   *
   * A cross-correlation. x [n, channels, d, h, w], zero outside; kernel [features, channels / groups, kd, kh, kw]; y
   * [n, features, d', h', w'] with extents as in conv2d. Same as PyTorch's conv3d.
   *
   * Gradient: dx = conv_transpose3d(g, kernel), d kernel = conv3d(x, g) over images, d bias = g summed.
   *
   * @param options.stride distance between windows along each spatial axis; default [1, 1, 1]
   * @param options.padding zeros added on both sides of each spatial axis; default [0, 0, 0]
   * @param options.dilation distance between the kernel's taps along each spatial axis; default [1, 1, 1]
   * @param options.groups number of equal groups of channels, each with its own kernels; default 1
   */
  conv3d(
    x: Node,
    kernel: Node,
    bias?: Node,
    options: Optional<{ stride: Ints; padding: Ints; dilation: Ints; groups: Int; name: string }> = {},
  ): Node {
    return this.append(
      "conv3d",
      [x, kernel, bias],
      { stride: options.stride, padding: options.padding, dilation: options.dilation, groups: options.groups },
      options.name,
    );
  }

  /**
   * y[n, o, i·s + a·d − p] = Σ x[n, c, i] · kernel[c, o, a] + bias[o]: the adjoint of conv1d.
   *
   * x [n, channels, w]; kernel [channels, features / groups, kw]; y [n, features, w'] with w' = (w − 1)·s + d·(kw − 1)
   * + 1 + output_padding − 2p. PyTorch: `conv_transpose1d`. JAX: `lax.conv_transpose` with transpose_kernel, which has
   * the kernel's axes in another order and takes the padding of the underlying dilated convolution.
   *
   * Since opset 2.
   *
   * Gradient: dx = conv1d(g, kernel), d kernel = conv1d(g, x) over images, d bias = g summed.
   *
   * @param options.stride distance between windows along each spatial axis; default [1]
   * @param options.padding zeros added on both sides of each spatial axis; default [0]
   * @param options.dilation distance between the kernel's taps along each spatial axis; default [1]
   * @param options.groups number of equal groups of channels, each with its own kernels; default 1
   * @param options.outputPadding extent added at the end of each spatial axis of the result; default [0]
   */
  convTranspose1d(
    x: Node,
    kernel: Node,
    bias?: Node,
    options: Optional<{
      stride: Ints;
      padding: Ints;
      dilation: Ints;
      groups: Int;
      outputPadding: Ints;
      name: string;
    }> = {},
  ): Node {
    return this.append(
      "conv_transpose1d",
      [x, kernel, bias],
      {
        stride: options.stride,
        padding: options.padding,
        dilation: options.dilation,
        groups: options.groups,
        output_padding: options.outputPadding,
      },
      options.name,
    );
  }

  /**
   * y[n, o, i·s + a·d − p, j·s + b·d − p] = Σ x[n, c, i, j] · kernel[c, o, a, b] + bias[o]: the adjoint of conv2d.
   *
   * x [n, channels, h, w]; kernel [channels, features / groups, kh, kw]; y [n, features, h', w'] with h' = (h − 1)·s −
   * 2p + d·(kh − 1) + 1 + output_padding. Same as PyTorch's conv_transpose2d.
   *
   * Gradient: dx = conv2d(g, kernel), d kernel = conv2d(g, x) over images, d bias = g summed.
   *
   * @param options.stride distance between windows along each spatial axis; default [1, 1]
   * @param options.padding zeros added on both sides of each spatial axis; default [0, 0]
   * @param options.dilation distance between the kernel's taps along each spatial axis; default [1, 1]
   * @param options.groups number of equal groups of channels, each with its own kernels; default 1
   * @param options.outputPadding extent added at the end of each spatial axis of the result; default [0, 0]
   */
  convTranspose2d(
    x: Node,
    kernel: Node,
    bias?: Node,
    options: Optional<{
      stride: Ints;
      padding: Ints;
      dilation: Ints;
      groups: Int;
      outputPadding: Ints;
      name: string;
    }> = {},
  ): Node {
    return this.append(
      "conv_transpose2d",
      [x, kernel, bias],
      {
        stride: options.stride,
        padding: options.padding,
        dilation: options.dilation,
        groups: options.groups,
        output_padding: options.outputPadding,
      },
      options.name,
    );
  }

  /**
   * y[n, o, i·s + a·d − p, …] = Σ x[n, c, i, j, k] · kernel[c, o, a, b, e] + bias[o]: the adjoint of conv3d.
   *
   * x [n, channels, d, h, w]; kernel [channels, features / groups, kd, kh, kw]; y [n, features, d', h', w'] with
   * extents as in conv_transpose2d. Same as PyTorch's conv_transpose3d.
   *
   * Gradient: dx = conv3d(g, kernel), d kernel = conv3d(g, x) over images, d bias = g summed.
   *
   * @param options.stride distance between windows along each spatial axis; default [1, 1, 1]
   * @param options.padding zeros added on both sides of each spatial axis; default [0, 0, 0]
   * @param options.dilation distance between the kernel's taps along each spatial axis; default [1, 1, 1]
   * @param options.groups number of equal groups of channels, each with its own kernels; default 1
   * @param options.outputPadding extent added at the end of each spatial axis of the result; default [0, 0, 0]
   */
  convTranspose3d(
    x: Node,
    kernel: Node,
    bias?: Node,
    options: Optional<{
      stride: Ints;
      padding: Ints;
      dilation: Ints;
      groups: Int;
      outputPadding: Ints;
      name: string;
    }> = {},
  ): Node {
    return this.append(
      "conv_transpose3d",
      [x, kernel, bias],
      {
        stride: options.stride,
        padding: options.padding,
        dilation: options.dilation,
        groups: options.groups,
        output_padding: options.outputPadding,
      },
      options.name,
    );
  }

  /**
   * y = x.
   *
   * The server chooses where a graph runs, so nothing is moved. The gradient passes through.
   *
   * Gradient: g.
   */
  copyToDevice(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("copy_to_device", [x], {}, options.name);
  }

  /**
   * y = cos x.
   *
   * Gradient: −g · sin x.
   */
  cos(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("cos", [x], {}, options.name);
  }

  /**
   * y = cosh x.
   *
   * Gradient: g · sinh x.
   */
  cosh(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("cosh", [x], {}, options.name);
  }

  /**
   * loss = −Σ p · log softmax(logits) over the last axis, the axis of the classes; then the mean over all rows.
   *
   * logits [..., classes]; targets are either class indices [...] of an integer dtype (p is 1 at the index), or the
   * distribution p itself, a float tensor of the logits' shape. Indices lie in [0, classes).
   *
   * Gradient: d logits = g · (softmax(logits) · Σ p − p) / rows, d targets = −g · log softmax(logits) / rows if float.
   *
   * @param options.reduction how to combine the losses; none: return each one; default "mean"
   */
  crossEntropy(
    logits: Node,
    targets: Node,
    options: Optional<{ reduction: "mean" | "sum" | "none"; name: string }> = {},
  ): Node {
    return this.append("cross_entropy", [logits, targets], { reduction: options.reduction }, options.name);
  }

  /**
   * y[i] = log(exp x[0] + … + exp x[i]) along `axis`, stable; with `reverse`, of x[i], …, x[n − 1].
   *
   * As in logsumexp: if all elements so far are −inf, y is −inf and the gradient is 0; elements that are inf share the
   * gradient. If an element so far is NaN, y and the gradient are NaN. Integers give float64. PyTorch: `logcumsumexp`.
   * JAX: `lax.cumlogsumexp`, which also has `reverse`.
   *
   * Since opset 2.
   *
   * Gradient: Σ g[k] · exp(x[i] − y[k]) over k ≥ i.
   *
   * @param axis axis to accumulate along
   * @param options.reverse whether to accumulate from the end to the front; default false
   */
  cumlogsumexp(x: Node, axis: Int, options: Optional<{ reverse: boolean; name: string }> = {}): Node {
    return this.append("cumlogsumexp", [x], { axis, reverse: options.reverse }, options.name);
  }

  /**
   * y[i] = the largest of x[0], …, x[i] along `axis`; with `reverse`, of x[i], …, x[n − 1].
   *
   * NaN from the first NaN on. In a tie, the first entry in the direction of accumulation gets the gradient. PyTorch:
   * the values of `cummax`, whose gradient goes to the last entry in a tie. JAX: `lax.cummax`, which also has
   * `reverse`, and in which ties share the gradient.
   *
   * Since opset 2.
   *
   * Gradient: g to the entry that is y: the first in a tie, in the direction of accumulation; the first NaN.
   *
   * @param axis axis to accumulate along
   * @param options.reverse whether to accumulate from the end to the front; default false
   */
  cummax(x: Node, axis: Int, options: Optional<{ reverse: boolean; name: string }> = {}): Node {
    return this.append("cummax", [x], { axis, reverse: options.reverse }, options.name);
  }

  /**
   * y[i] = the smallest of x[0], …, x[i] along `axis`; with `reverse`, of x[i], …, x[n − 1].
   *
   * NaN from the first NaN on. In a tie, the first entry in the direction of accumulation gets the gradient. PyTorch:
   * the values of `cummin`, whose gradient goes to the last entry in a tie. JAX: `lax.cummin`, which also has
   * `reverse`, and in which ties share the gradient.
   *
   * Since opset 2.
   *
   * Gradient: g to the entry that is y: the first in a tie, in the direction of accumulation; the first NaN.
   *
   * @param axis axis to accumulate along
   * @param options.reverse whether to accumulate from the end to the front; default false
   */
  cummin(x: Node, axis: Int, options: Optional<{ reverse: boolean; name: string }> = {}): Node {
    return this.append("cummin", [x], { axis, reverse: options.reverse }, options.name);
  }

  /**
   * y[i] = x[0] · … · x[i] along `axis`; with `reverse`, x[i] · … · x[n − 1].
   *
   * Integers and bool are multiplied in int64, float16 in float32. The gradient is exact for any number of zeros, and
   * so are higher derivatives. PyTorch and NumPy: `cumprod`. JAX: `lax.cumprod`, which also has `reverse`.
   *
   * Since opset 2.
   *
   * Gradient: (product of the entries before i) · Σ g[k] · (product of the entries after i, up to k), over k ≥ i.
   *
   * @param axis axis to accumulate along
   * @param options.reverse whether to accumulate from the end to the front; default false
   */
  cumprod(x: Node, axis: Int, options: Optional<{ reverse: boolean; name: string }> = {}): Node {
    return this.append("cumprod", [x], { axis, reverse: options.reverse }, options.name);
  }

  /**
   * y[i] = x[0] + … + x[i] along `axis`; with `reverse`, x[i] + … + x[n − 1].
   *
   * Integers and bool are summed in int64, float16 in float32. PyTorch and NumPy: `cumsum`. JAX: `lax.cumsum`, which
   * also has `reverse`.
   *
   * Gradient: g, summed from the end.
   *
   * @param axis axis to sum along
   * @param options.reverse whether to accumulate from the end to the front; since opset 2; default false
   */
  cumsum(x: Node, axis: Int, options: Optional<{ reverse: boolean; name: string }> = {}): Node {
    return this.append("cumsum", [x], { axis, reverse: options.reverse }, options.name);
  }

  /**
   * y = det x of square matrices on the last two axes: [batch…, n, n] → [batch…]; 1 for an empty matrix.
   *
   * If the determinant may overflow or underflow, use `slogdet`. The first two derivatives are exact for singular
   * matrices, too; their third ones are NaN or infinite. A matrix with NaN gives NaN; the other matrices of the batch
   * are unaffected. Integers give float64; float16 is computed in a wider float and rounded once. PyTorch, JAX and
   * NumPy: `linalg.det`.
   *
   * Since opset 2.
   *
   * Gradient: g · the conjugate cofactors of x; if x is invertible, those are the conjugate of det(x) x⁻ᵀ.
   */
  det(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("det", [x], {}, options.name);
  }

  /**
   * The diagonal of the last two axes: y[…, i] = x[…, i, i + offset]; for a vector, the matrix with that diagonal.
   *
   * x [n] → [n + |offset|, n + |offset|], zero off the diagonal. x [batch…, rows, columns] → [batch…, m]. A negative
   * offset counts downwards: y[…, i] = x[…, i − offset, i].
   *
   * Gradient: diag(g) for a vector; for matrices, g on the diagonal and 0 elsewhere.
   *
   * @param options.offset diagonal: 0 is the main one, positive above it, negative below it; default 0
   */
  diag(x: Node, options: Optional<{ offset: Int; name: string }> = {}): Node {
    return this.append("diag", [x], { offset: options.offset }, options.name);
  }

  /**
   * y = ψ(x) = Γ'(x) / Γ(x); −∞ at 0, NaN at −1, −2, …. Accurate to 10 ulp; near its zeros below −1 to 1e-15.
   *
   * Near its negative poles all digits are correct; SciPy loses one digit for each digit by which x is closer to a
   * pole.
   *
   * Gradient: g · polygamma(x, order=1).
   */
  digamma(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("digamma", [x], {}, options.name);
  }

  /**
   * y = a / b, elementwise, with NumPy broadcasting; integers give floats, x / 0 gives ±inf or NaN.
   *
   * Gradient: da = g / b, db = −y · g / b.
   */
  div(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("div", [a, b], {}, options.name);
  }

  /**
   * y = x / scalar. A scalar of 0 gives ±inf or NaN, as in `div`.
   *
   * Gradient: g / scalar.
   *
   * @param scalar constant operand
   */
  divScalar(x: Node, scalar: Float, options: Optional<{ name: string }> = {}): Node {
    return this.append("div_scalar", [x], { scalar }, options.name);
  }

  /**
   * w, v = the eigenvalues, ascending, and eigenvectors of (x + xᴴ) / 2 = v diag(w) vᴴ, with vᴴ v = 1.
   *
   * x [batch…, n, n], w [batch…, n], real, v [batch…, n, n], one vector per column. If you read only eigenvalues,
   * vectors are not computed. The gradient of eigenvalues alone is valid at equal ones, too, if your function treats
   * these alike.
   *
   * LAPACK chooses the signs of vectors, and the phases of complex ones. Use v only in functions that depend neither on
   * them nor on single vectors of equal eigenvalues.
   *
   * Eigenvalues closer than 16 n ε ‖x‖ count as equal. For a matrix with equal eigenvalues, the gradient of a function
   * of v is NaN. If `degenerate` is whole, the pair is left out instead. That is correct if the function depends on
   * whole eigenspaces only, as a projector does, and wrong otherwise. For v √w vᵀ, which does not, use
   * `symmetric_function`. Second derivatives are NaN if a pair was left out, and also for eigenvalues alone if some are
   * equal.
   *
   * A matrix with an infinity or NaN, or for which LAPACK does not converge, gives NaN; the other matrices of the batch
   * are unaffected. Integers give float64; float16 is computed in a wider float and rounded once.
   *
   * PyTorch: `linalg.eigh`, which reads the lower triangle by default. JAX: `linalg.eigh`, which symmetrizes its input
   * by default. At equal eigenvalues, their gradients are NaN or rounding noise. M. B. Giles, Collected matrix
   * derivative results for forward and reverse mode algorithmic differentiation (2008), section 3.1.
   *
   * Since opset 2.
   *
   * The op has several results. Read each with getOutput.
   *
   * Gradient: the symmetric part of v (diag(ḡw) + F ∘ vᴴ ḡv) vᴴ, Fᵢⱼ = 1 / (wⱼ − wᵢ), Fᵢᵢ = 0; no F if v is unread.
   *
   * @param options.degenerate gradient through vectors of equal values; nan: NaN; whole: assume that only whole spaces
   *   matter; default "nan"
   */
  eigh(x: Node, options: Optional<{ degenerate: "nan" | "whole"; name: string }> = {}): Node {
    return this.append("eigh", [x], { degenerate: options.degenerate }, options.name);
  }

  /**
   * y[output letters] = Σ a[letters] · b[letters] · … over all letters that are not in the output.
   *
   * For two operands, `equation` looks like "ab,bc->ac": a letter (a–z, A–Z) for each axis, a comma between operands,
   * and after the arrow the axes of the result. Each letter has one extent and appears at most once in each operand. An
   * ellipsis or an implicit output is not allowed; spaces are ignored. The number of operands is 1 to 32. The result
   * has the common dtype of the operands, as in NumPy.
   *
   * Operands are multiplied in pairs, each time the pair with the fewest multiplications, so that no step costs more
   * than the equation evaluated as one loop (greedy order, as in numpy.einsum_path).
   *
   * Gradient: for each operand, the einsum of g with the other operands.
   *
   * @param equation letters of each operand, then -> and the letters of the result
   */
  einsum(a: Node, b: readonly Node[], equation: string, options: Optional<{ name: string }> = {}): Node {
    return this.append("einsum", [a, ...b], { equation }, options.name);
  }

  /**
   * y = x for x > 0, else alpha · (eˣ − 1). Derivatives at 0 are the left ones: alpha.
   *
   * D.-A. Clevert, T. Unterthiner, S. Hochreiter, arXiv:1511.07289.
   *
   * Gradient: g where x > 0 or NaN, else g · alpha · eˣ.
   *
   * @param options.alpha limit of −y for x → −∞; default 1.0
   */
  elu(x: Node, options: Optional<{ alpha: Float; name: string }> = {}): Node {
    return this.append("elu", [x], { alpha: options.alpha }, options.name);
  }

  /**
   * y[i, j, …, :] = weight[indices[i, j, …], :]: rows of a table.
   *
   * weight [rows, features…], indices of any shape with entries in [0, rows), y [shape of indices…, features…]. With
   * `from_end`, entries lie in [−rows, rows), and negative ones count from the end. PyTorch: `functional.embedding`,
   * which rejects negative indices and has `padding_idx`. JAX: weight[indices], which accepts negative indices and
   * moves those out of range to the nearest row.
   *
   * Gradient: d weight = g, added to the rows that were read: repeated indices accumulate; none for indices.
   *
   * @param options.fromEnd whether negative indices count from the end; −1 is the last; since opset 2; default false
   * @param options.paddingIdx row that gets no gradient but is read as usual; default: none; since opset 2
   */
  embedding(
    weight: Node,
    indices: Node,
    options: Optional<{ fromEnd: boolean; paddingIdx: Int; name: string }> = {},
  ): Node {
    return this.append(
      "embedding",
      [weight, indices],
      { from_end: options.fromEnd, padding_idx: options.paddingIdx },
      options.name,
    );
  }

  /** y = (a = b), elementwise; false if either is NaN. */
  equal(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("equal", [a, b], {}, options.name);
  }

  /**
   * y = erf x = 2/√π ∫₀ˣ exp(−t²) dt. Accurate to 2 units in the last place (ulp).
   *
   * Gradient: g · 2/√π · exp(−x²).
   */
  erf(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("erf", [x], {}, options.name);
  }

  /**
   * y = erfc x = 1 − erf x. Accurate to 2 units in the last place (ulp), even where y is small.
   *
   * Gradient: −g · 2/√π · exp(−x²).
   */
  erfc(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("erfc", [x], {}, options.name);
  }

  /**
   * y such that erf y = x: ±∞ at ±1, NaN beyond. Accurate to 2 ulp.
   *
   * Gradient: g · √π/2 · exp(y²).
   */
  erfinv(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("erfinv", [x], {}, options.name);
  }

  /**
   * y = eˣ.
   *
   * Gradient: g · y.
   */
  exp(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("exp", [x], {}, options.name);
  }

  /**
   * y = eˣ − 1, accurate near 0.
   *
   * Gradient: g · eˣ.
   */
  expm1(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("expm1", [x], {}, options.name);
  }

  /**
   * y[k] = Σ x[j] exp(−2πi j k / n) over `axes`, each of n points: the discrete Fourier transform.
   *
   * `norm` is as in NumPy: `forward` divides by n, `ortho` by √n. Real operands are converted to complex. float16 gives
   * complex64, integers give complex128. PyTorch, JAX and NumPy: `fft`; over several axes, `fft2` and `fftn`.
   *
   * Since opset 2.
   *
   * Gradient: ifft(g) without the division by n; for a real operand, its real part.
   *
   * @param options.axes axes to transform; default: the last axis, or as many last axes as there are sizes
   * @param options.sizes points on each axis, to which x is cut or zero-padded; default: x's extents
   * @param options.norm direction that divides by the number of points; ortho: both, by its square root; default
   *   "backward"
   */
  fft(
    x: Node,
    options: Optional<{ axes: Ints; sizes: Ints; norm: "backward" | "ortho" | "forward"; name: string }> = {},
  ): Node {
    return this.append("fft", [x], { axes: options.axes, sizes: options.sizes, norm: options.norm }, options.name);
  }

  /**
   * Repeats x = body(consts, x) until max |Δx| ≤ tolerance · (1 + max |x|), at most `max_steps` times.
   *
   * x stands for the `carries`, which must be floats; each maximum is over all of them, and max |x| is that of the new
   * x. An infinity or NaN in x ends the iteration, unfinished. Results: x; `steps`, int64 [], the number of steps that
   * ran; `finished`, bool []. The gradient is implicit, as in JAX's `lax.custom_root`, which takes a solver. In
   * PyTorch, write a Python loop and a custom rule.
   *
   * Since opset 2.
   *
   * The op has several results. Read each with getOutput.
   *
   * Gradient: implicit: u = g + (∂body/∂x)ᵀu by the same iteration, then (∂body/∂consts)ᵀu; none for the initial x.
   *
   * @param body function of consts and x; returns the next x
   * @param options.carries number of operands, the last ones, that are the initial x; at least one; default 0
   * @param tolerance largest change at which to stop, relative to 1 + max |x|; 0: no change
   * @param maxSteps maximum number of steps
   */
  fixedPoint(
    operands: readonly Node[],
    body: GraphFunction,
    tolerance: Float,
    maxSteps: Int,
    options: Optional<{ carries: Int; name: string }> = {},
  ): Node {
    return this.append(
      "fixed_point",
      [...operands],
      { body, carries: options.carries, tolerance, max_steps: maxSteps },
      options.name,
    );
  }

  /**
   * y = x with adjacent axes merged into one; by default, all axes. A 0-d tensor becomes [1].
   *
   * Gradient: g, reshaped back.
   *
   * @param options.axes adjacent axes to merge; default: all
   */
  flatten(x: Node, options: Optional<{ axes: Ints; name: string }> = {}): Node {
    return this.append("flatten", [x], { axes: options.axes }, options.name);
  }

  /**
   * y = x with the order of the entries reversed on `axes`; by default, on all axes.
   *
   * Gradient: g, flipped.
   *
   * @param options.axes axes to reverse; default: all
   */
  flip(x: Node, options: Optional<{ axes: Ints; name: string }> = {}): Node {
    return this.append("flip", [x], { axes: options.axes }, options.name);
  }

  /** y = ⌊x⌋: x rounded down to a whole number. */
  floor(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("floor", [x], {}, options.name);
  }

  /**
   * y = ⌊a / b⌋, elementwise with broadcasting: Python's //; `mod` is the remainder. Integer division by 0 gives 0.
   *
   * PyTorch and NumPy: `floor_divide`. JAX: `jnp.floor_divide`, which gives −1 for integer division by 0.
   *
   * Since opset 2.
   */
  floorDiv(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("floor_div", [a, b], {}, options.name);
  }

  /**
   * A tensor filled with one number, created on the server: y[…] = fill.
   *
   * An absent or empty `shape` makes a 0-d tensor. To fill with an infinity or NaN, use `fill_as`. PyTorch and JAX:
   * `full`.
   *
   * @param options.shape shape of the result; default []
   * @param options.fill value of every element; default 0.0
   * @param options.dtype dtype of the result; default "float64"
   * @param options.fillAs infinity or NaN to use instead of `fill`; float dtypes only; since opset 2
   */
  full(
    options: Optional<{
      shape: Ints;
      fill: Float;
      dtype: DtypeName;
      fillAs: "inf" | "-inf" | "nan";
      name: string;
    }> = {},
  ): Node {
    return this.append(
      "full",
      [],
      { shape: options.shape, fill: options.fill, dtype: options.dtype, fill_as: options.fillAs },
      options.name,
    );
  }

  /**
   * y[i, j, …] = x[index[i, j, …], j, …] for axis 0; likewise for the other axes.
   *
   * `index` has x's rank and may be smaller than x on the other axes, as in PyTorch; y has its shape. With one operand,
   * the list `indices` selects slices: y is x at those positions of the axis. Indices lie in [0, extent). With
   * `from_end`, they lie in [−extent, extent), and negative ones count from the end, as in x[i] of PyTorch, JAX and
   * NumPy. PyTorch: `gather`, which rejects negative indices. JAX: `take_along_axis`.
   *
   * Gradient: dx = scatter_add(0, index, g): repeated indices accumulate; none for index.
   *
   * @param options.axis axis to index; default 0
   * @param options.indices positions on the axis, instead of `index`
   * @param options.fromEnd whether negative indices count from the end; −1 is the last; since opset 2; default false
   */
  gather(
    x: Node,
    index?: Node,
    options: Optional<{ axis: Int; indices: Ints; fromEnd: boolean; name: string }> = {},
  ): Node {
    return this.append(
      "gather",
      [x, index],
      { axis: options.axis, indices: options.indices, from_end: options.fromEnd },
      options.name,
    );
  }

  /**
   * y = x · Φ(x), with Φ the standard normal distribution function; 0 at −∞.
   *
   * With `approximate` set to tanh, y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), which many models were trained
   * with. D. Hendrycks, K. Gimpel, arXiv:1606.08415.
   *
   * Gradient: g · (Φ(x) + x · Φ′(x)).
   *
   * @param options.approximate none: use the error function; tanh: approximate it; default "none"
   */
  gelu(x: Node, options: Optional<{ approximate: "none" | "tanh"; name: string }> = {}): Node {
    return this.append("gelu", [x], { approximate: options.approximate }, options.name);
  }

  /**
   * One result of an op with several results: y = x[index].
   *
   * Gradient: g for that result, 0 for the other results of the op.
   *
   * @param index position of the result, from 0
   */
  getOutput(x: Node, index: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("get_output", [x], { index }, options.name);
  }

  /**
   * The gradient of sum(y · cotangent) with respect to x, of x's type; without a cotangent, of sum(y).
   *
   * Other nodes can use the result, and you can differentiate it again, to any order. x may be any float node. If y
   * does not depend on x, the result is zeros. A complex y needs a cotangent. With respect to a complex x, the gradient
   * is ∂/∂Re x + i ∂/∂Im x.
   *
   * Gradient: that of the nodes that compute the gradient.
   */
  grad(y: Node, x: Node, cotangent?: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("grad", [y, x, cotangent], {}, options.name);
  }

  /** y = (a > b), elementwise; false if either is NaN. */
  greater(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("greater", [a, b], {}, options.name);
  }

  /** y = (a ≥ b), elementwise; false if either is NaN. */
  greaterEqual(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("greater_equal", [a, b], {}, options.name);
  }

  /**
   * y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance of each group of channels per example.
   *
   * x [n, channels, …]; weight and bias [channels]. The channels are divided into `groups` equal groups. The variance
   * has n in the denominator. PyTorch: `group_norm`. Flax: `GroupNorm`, with channels last. Y. Wu, K. He, "Group
   * normalization" (2018).
   *
   * Since opset 2.
   *
   * Gradient: as in layer_norm, over each group.
   *
   * @param groups number of equal groups of channels
   * @param options.eps positive number added to the variance or mean square; default 1e-05
   */
  groupNorm(
    x: Node,
    groups: Int,
    weight?: Node,
    bias?: Node,
    options: Optional<{ eps: Float; name: string }> = {},
  ): Node {
    return this.append("group_norm", [x, weight, bias], { groups, eps: options.eps }, options.name);
  }

  /**
   * y = I₀(x). Accurate to 5 ulp; infinite for |x| > 713.98.
   *
   * SciPy's is infinite from 709.78 on. NumPy: `i0`. PyTorch: `special.i0`. JAX: `scipy.special.i0`.
   *
   * Since opset 2.
   *
   * Gradient: g · i1(x).
   */
  i0(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("i0", [x], {}, options.name);
  }

  /**
   * y = exp(−|x|) I₀(x). Accurate to 4 ulp.
   *
   * The derivative is accurate even for large x, where I₀ and I₁ agree in most digits. At 0, where |x| has a kink, it
   * is 0, as in PyTorch and JAX. SciPy and PyTorch: `special.i0e`. JAX: `bessel_i0e`.
   *
   * Since opset 2.
   *
   * Gradient: g · (i1e(x) − sign(x) · y).
   */
  i0e(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("i0e", [x], {}, options.name);
  }

  /**
   * y = I₁(x). Accurate to 5 ulp. At 0, the derivative is 1/2.
   *
   * SciPy and PyTorch: `special.i1`. JAX: `scipy.special.i1`.
   *
   * Since opset 2.
   *
   * Gradient: g · (i0(x) − y / x), and g / 2 at 0.
   */
  i1(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("i1", [x], {}, options.name);
  }

  /**
   * y = exp(−|x|) I₁(x). Accurate to 4 ulp. At 0, the derivative is 1/2.
   *
   * SciPy and PyTorch: `special.i1e`. JAX: `bessel_i1e`.
   *
   * Since opset 2.
   *
   * Gradient: g · (i0e(x) − y · (sign(x) + 1 / x)), and g / 2 at 0.
   */
  i1e(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("i1e", [x], {}, options.name);
  }

  /**
   * y = x, as a separate node.
   *
   * Gradient: g.
   */
  identity(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("identity", [x], {}, options.name);
  }

  /**
   * y[j] = Σ x[k] exp(2πi j k / n) / n over `axes`, each of n points: the inverse of `fft`.
   *
   * `norm` is as in NumPy: `forward` does not divide, `ortho` divides by √n. Real operands are converted to complex.
   * float16 gives complex64, integers give complex128. PyTorch, JAX and NumPy: `ifft`; over several axes, `ifft2` and
   * `ifftn`.
   *
   * Since opset 2.
   *
   * Gradient: fft(g) / n; for a real operand, its real part.
   *
   * @param options.axes axes to transform; default: the last axis, or as many last axes as there are sizes
   * @param options.sizes points on each axis, to which x is cut or zero-padded; default: x's extents
   * @param options.norm direction that divides by the number of points; ortho: both, by its square root; default
   *   "backward"
   */
  ifft(
    x: Node,
    options: Optional<{ axes: Ints; sizes: Ints; norm: "backward" | "ortho" | "forward"; name: string }> = {},
  ): Node {
    return this.append("ifft", [x], { axes: options.axes, sizes: options.sizes, norm: options.norm }, options.name);
  }

  /**
   * y = P(a, x) = ∫₀ˣ tᵃ⁻¹ exp(−t) dt / Γ(a), with broadcasting.
   *
   * On NumPy, this is SciPy's function. Accurate to 512 ulp; below 1e-290, to a relative error of 1e-12. The derivative
   * with respect to x is accurate to 1e-12 of its value. The derivative with respect to a is accurate to 1e-12 (JAX's
   * has an absolute error of 1e-7; PyTorch has none). It cannot be differentiated again with respect to a. SciPy and
   * PyTorch: `special.gammainc`. JAX: `igamma`.
   *
   * Since opset 2.
   *
   * Gradient: da = g · ∂P/∂a, an integral; dx = g · xᵃ⁻¹ exp(−x) / Γ(a).
   */
  igamma(a: Node, x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("igamma", [a, x], {}, options.name);
  }

  /**
   * y = Q(a, x) = 1 − P(a, x), with broadcasting; accurate even where y is small.
   *
   * On NumPy, this is SciPy's function. Accurate to 512 ulp; below 1e-290, to a relative error of 1e-12. Derivatives
   * are those of `igamma` with the opposite sign. SciPy and PyTorch: `special.gammaincc`. JAX: `igammac`.
   *
   * Since opset 2.
   *
   * Gradient: da = −g · ∂P/∂a, an integral; dx = −g · xᵃ⁻¹ exp(−x) / Γ(a).
   */
  igammac(a: Node, x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("igammac", [a, x], {}, options.name);
  }

  /**
   * y = Im x; 0 for a real x. JAX and NumPy: `imag`. PyTorch's `imag` rejects a real x.
   *
   * Since opset 2.
   *
   * Gradient: i · g.
   */
  imag(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("imag", [x], {}, options.name);
  }

  /**
   * y = x[i, j, …]: entries or slices of x at index tensors, one for each of `axes`, which broadcast together.
   *
   * As in NumPy's x[i, j], the axes of the indices replace the indexed axes if these are adjacent, and come first
   * otherwise. Indices lie in [0, extent); with `from_end`, in [−extent, extent), and negative ones count from the end.
   * PyTorch and JAX: x[i, j], in which negative indices always count from the end. An index out of range is an error
   * here and in PyTorch; JAX moves it into the range.
   *
   * Since opset 2.
   *
   * Gradient: dx = index_add(0, indices, g): repeated indices accumulate; none for indices.
   *
   * @param options.axes axis of each index; default: the first axes, in order
   * @param options.fromEnd whether negative indices count from the end; −1 is the last; default false
   */
  index(
    x: Node,
    indices: readonly Node[],
    options: Optional<{ axes: Ints; fromEnd: boolean; name: string }> = {},
  ): Node {
    return this.append("index", [x, ...indices], { axes: options.axes, from_end: options.fromEnd }, options.name);
  }

  /**
   * y = x, then y[i, j, …] += updates, entry by entry: repeated indices accumulate.
   *
   * The operands are x, an index for each of `axes`, and updates, which broadcast to what `index` reads. Indices are as
   * in `index`. PyTorch: `index_put` with accumulate. JAX: x.at[i, j].add, which drops updates that are out of range.
   *
   * Since opset 2.
   *
   * Gradient: dx = g, d updates = index(g, indices); none for indices.
   *
   * @param options.axes axis of each index; default: the first axes, in order
   * @param options.fromEnd whether negative indices count from the end; −1 is the last; default false
   */
  indexAdd(
    x: Node,
    indicesAndUpdates: readonly Node[],
    options: Optional<{ axes: Ints; fromEnd: boolean; name: string }> = {},
  ): Node {
    return this.append(
      "index_add",
      [x, ...indicesAndUpdates],
      { axes: options.axes, from_end: options.fromEnd },
      options.name,
    );
  }

  /**
   * y = x, then y[i, j, …] = updates. If a position is written twice, the last update in row-major order wins.
   *
   * Only the winning update gets a gradient. The operands are x, an index for each of `axes`, and updates, which
   * broadcast to what `index` reads. Indices are as in `index`. PyTorch: `index_put`. JAX: x.at[i, j].set. Neither
   * defines which of several updates wins; PyTorch sends the gradient to all of them, and JAX drops updates that are
   * out of range.
   *
   * Since opset 2.
   *
   * Gradient: dx = g, 0 where an update was written; d updates = g where the update won, else 0; none for indices.
   *
   * @param options.axes axis of each index; default: the first axes, in order
   * @param options.fromEnd whether negative indices count from the end; −1 is the last; default false
   */
  indexSet(
    x: Node,
    indicesAndUpdates: readonly Node[],
    options: Optional<{ axes: Ints; fromEnd: boolean; name: string }> = {},
  ): Node {
    return this.append(
      "index_set",
      [x, ...indicesAndUpdates],
      { axes: options.axes, from_end: options.fromEnd },
      options.name,
    );
  }

  /**
   * Data, fed with the request.
   *
   * Its gradient is computed only if `wrt` names it. A declared `dtype` or `shape` must match the feed.
   *
   * @param options.dtype required dtype of the feed; default: any
   * @param options.shape required shape of the feed, -1 for any extent; default: any
   * @param options.zeroD whether the feed must be 0-d; default false
   */
  input(name?: string, options: Optional<{ dtype: DtypeName; shape: Ints; zeroD: boolean }> = {}): Node {
    return this.append("input", [], { dtype: options.dtype, shape: options.shape, zero_d: options.zeroD }, name);
  }

  /**
   * y = x⁻¹, for matrices on the last two axes.
   *
   * If x is singular, y is NaN, or very large if rounding hides the singularity; the other matrices of the batch are
   * unaffected. To solve a system, use `solve`, which is faster and more accurate. Integers give float64; float16 is
   * computed in a wider float and rounded once.
   *
   * Gradient: −yᴴ g yᴴ.
   */
  inv(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("inv", [x], {}, options.name);
  }

  /**
   * The real y whose `rfft` is x, with n = `sizes` points on the last of `axes`; default: 2 (m − 1) for m entries.
   *
   * The imaginary parts of entry 0, and of entry n / 2 if n is even, are ignored. Real operands are converted to
   * complex. float16 gives float16, integers give float64. `norm` is as in `ifft`. PyTorch, JAX and NumPy: `irfft`;
   * over several axes, `irfft2` and `irfftn`.
   *
   * Since opset 2.
   *
   * Gradient: rfft(g) / n, with the inner entries doubled.
   *
   * @param options.axes axes to transform; default: the last axis, or as many last axes as there are sizes
   * @param options.sizes points on each axis, to which x is cut or zero-padded; default: x's extents
   * @param options.norm direction that divides by the number of points; ortho: both, by its square root; default
   *   "backward"
   */
  irfft(
    x: Node,
    options: Optional<{ axes: Ints; sizes: Ints; norm: "backward" | "ortho" | "forward"; name: string }> = {},
  ): Node {
    return this.append("irfft", [x], { axes: options.axes, sizes: options.sizes, norm: options.norm }, options.name);
  }

  /** y = true if x is neither infinite nor NaN. */
  isFinite(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("is_finite", [x], {}, options.name);
  }

  /**
   * y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance (n in the denominator) over `axes`.
   *
   * weight and bias have x's extents on `axes`, in ascending order. CJC normalises the whole tensor: for that, pass all
   * axes. J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization" (2016).
   *
   * Gradient: with z normalised and h = g · weight: dx = (h − mean h − z · mean(h·z)) / √(variance + eps).
   *
   * @param options.axes axes to normalise over; default [-1]
   * @param options.eps positive number added to the variance or mean square; default 1e-05
   */
  layerNorm(
    x: Node,
    weight?: Node,
    bias?: Node,
    options: Optional<{ axes: Ints; eps: Float; name: string }> = {},
  ): Node {
    return this.append("layer_norm", [x, weight, bias], { axes: options.axes, eps: options.eps }, options.name);
  }

  /**
   * y = x for x > 0, else alpha · x. The derivative at 0 is alpha.
   *
   * Gradient: g where x > 0 or NaN, else g · alpha.
   *
   * @param options.alpha slope for x ≤ 0; default 0.01
   */
  leakyRelu(x: Node, options: Optional<{ alpha: Float; name: string }> = {}): Node {
    return this.append("leaky_relu", [x], { alpha: options.alpha }, options.name);
  }

  /** y = (a < b), elementwise; false if either is NaN. */
  less(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("less", [a, b], {}, options.name);
  }

  /** y = (a ≤ b), elementwise; false if either is NaN. */
  lessEqual(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("less_equal", [a, b], {}, options.name);
  }

  /**
   * y = log |Γ(x)|; ∞ at 0, −1, −2, …. Accurate to 4 ulp; near zeros below 0 (−2.457, −2.748, −3.144, …) to 1e-15.
   *
   * Near its positive zeros, 1 and 2, all digits are correct; SciPy has no correct digit within 1e-16 of them.
   *
   * Gradient: g · digamma(x).
   */
  lgamma(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("lgamma", [x], {}, options.name);
  }

  /**
   * y = activation(x @ w + b) for x[…, in], w[in, out] and b[out]: y[…, out]. Without b, nothing is added.
   *
   * b may have any shape that broadcasts to y's shape. The activation is the op of that name with its defaults.
   *
   * Gradient: with h = g · activation′: dx = h @ wᵀ, dw = xᵀ @ h, db = Σ h over the rows.
   *
   * @param options.activation op applied to the sum; default "none"
   */
  linear(
    x: Node,
    w: Node,
    b?: Node,
    options: Optional<{
      activation: "none" | "relu" | "tanh" | "sigmoid" | "gelu" | "silu" | "elu" | "selu" | "sin";
      name: string;
    }> = {},
  ): Node {
    return this.append("linear", [x, w, b], { activation: options.activation }, options.name);
  }

  /**
   * y = ln x: −∞ at 0, NaN for x < 0.
   *
   * For a complex x, y = ln |x| + i · angle x. The branch cut is the negative real axis; on it, the sign of the
   * imaginary zero selects the side (C99).
   *
   * Gradient: g / x.
   */
  log(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("log", [x], {}, options.name);
  }

  /**
   * y = ln(1 + x), accurate near 0.
   *
   * Gradient: g / (1 + x).
   */
  log1p(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("log1p", [x], {}, options.name);
  }

  /**
   * y = log₂ x: −∞ at 0, NaN for x < 0.
   *
   * Gradient: g / (x · ln 2).
   */
  log2(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("log2", [x], {}, options.name);
  }

  /**
   * y = ln(x + eps): finite at 0.
   *
   * Gradient: g / (x + eps).
   *
   * @param options.eps number added to x; default 1e-05
   */
  logEps(x: Node, options: Optional<{ eps: Float; name: string }> = {}): Node {
    return this.append("log_eps", [x], { eps: options.eps }, options.name);
  }

  /**
   * y = log Φ(x), with Φ the standard normal distribution function. Accurate to 4 ulp in both tails.
   *
   * The derivative φ(x) / Φ(x) and its own derivatives keep their relative accuracy where Φ(x) underflows. For x > 0,
   * the derivative is as accurate as exp(−x²/2): to x²/2 ulp.
   *
   * Gradient: g · φ(x) / Φ(x), with φ the density.
   */
  logNdtr(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("log_ndtr", [x], {}, options.name);
  }

  /**
   * y = ln sigmoid x = −softplus(−x).
   *
   * Gradient: g · sigmoid(−x).
   */
  logSigmoid(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("log_sigmoid", [x], {}, options.name);
  }

  /**
   * y = x − log Σ exp(x) along `axis`, of x's shape; stable: computed from x − max x. Integers give float64.
   *
   * The largest x has y = −log(1 + Σ of the others), all of whose digits are kept. A row that contains only −inf gives
   * NaN.
   *
   * Gradient: g − exp(y) · Σ g, with the sum along the axis, computed as −g · expm1(y) − (Σ g − g) · exp(y).
   *
   * @param options.axis axis to normalise along; default -1
   */
  logSoftmax(x: Node, options: Optional<{ axis: Int; name: string }> = {}): Node {
    return this.append("log_softmax", [x], { axis: options.axis }, options.name);
  }

  /**
   * y = ln(eᵃ + eᵇ), stable. If both are −∞, y is −∞ and the gradients are 0; if both are ∞, each gets half of g.
   *
   * Gradient: da = g · sigmoid(a − b), db = g · sigmoid(b − a).
   */
  logaddexp(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("logaddexp", [a, b], {}, options.name);
  }

  /** y = a and b, elementwise with broadcasting. Nonzero numbers, including NaN, are true. */
  logicalAnd(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("logical_and", [a, b], {}, options.name);
  }

  /** y = not x, elementwise. Nonzero numbers, including NaN, are true. */
  logicalNot(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("logical_not", [x], {}, options.name);
  }

  /** y = a or b (or both), elementwise with broadcasting. Nonzero numbers, including NaN, are true. */
  logicalOr(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("logical_or", [a, b], {}, options.name);
  }

  /**
   * y = log Σ exp x over axes, stable: m + log Σ exp(x − m) with m = max x. −inf if no elements are reduced.
   *
   * If all elements are −inf, y is −inf and the gradient is 0. Elements that are inf share the gradient. If an element
   * is NaN, y and the gradient are NaN. Integers give float64.
   *
   * Gradient: g · exp(x − y).
   *
   * @param options.axes axes to reduce; default: all
   * @param options.keepdims whether to keep the reduced axes, with extent 1; default false
   */
  logsumexp(x: Node, options: Optional<{ axes: Ints; keepdims: boolean; name: string }> = {}): Node {
    return this.append("logsumexp", [x], { axes: options.axes, keepdims: options.keepdims }, options.name);
  }

  /**
   * y that minimises |a y − b|: a [batch…, m, n] with m ≥ n, b [m], [batch…, m] or [batch…, m, k].
   *
   * y [n], [batch…, n] or [batch…, n, k]. b holds vectors if it is 1-d, or if it has a's shape without the last axis
   * and its last two axes cannot be matrices of m rows; otherwise it holds matrices. Without `rcond`, y is computed by
   * `qr`, and the columns of a must be independent. With `rcond`, y is computed by `pinv`: singular values up to that
   * fraction of the largest count as 0, and y is the solution of least norm. Integers give float64; float16 is computed
   * in float32 and rounded once. PyTorch, JAX and NumPy: the first result of `linalg.lstsq`.
   *
   * Since opset 2.
   *
   * Gradient: that of qr or pinv: db = a (aᴴ a)⁻¹ g, da = (b − a y) ((aᴴ a)⁻¹ g)ᴴ − db yᴴ.
   *
   * @param options.rcond singular values up to this fraction of the largest count as 0; default: none, and the columns
   *   must be independent
   */
  lstsq(a: Node, b: Node, options: Optional<{ rcond: Float; name: string }> = {}): Node {
    return this.append("lstsq", [a, b], { rcond: options.rcond }, options.name);
  }

  /**
   * permutation, l, u with x[permutation] = l u: rows are exchanged so that no entry of l is larger than 1.
   *
   * x [batch…, m, n], permutation int64 [batch…, m], l [batch…, m, k] lower triangular with 1 on its diagonal, u
   * [batch…, k, n] upper triangular, k = min(m, n). To solve a system, use `solve`, which is faster. Complex numbers
   * are compared by |Re| + |Im|. The gradient is valid if the first k columns of x[permutation] are independent in
   * their first k rows; otherwise it is infinite or NaN. The permutation has no gradient. A matrix with an infinity or
   * NaN gives NaN in l and u, and its rows are not exchanged; the other matrices of the batch are unaffected. Integers
   * give float64; float16 is computed in a wider float and rounded once.
   *
   * PyTorch: `linalg.lu`, which returns a matrix instead of the permutation. JAX: `lax.linalg.lu`, which returns the
   * results in another order. F. de Hoog, R. Anderssen, M. Lukas, Differentiation of matrix functionals using
   * triangular factorization (2011).
   *
   * Since opset 2.
   *
   * The op has several results. Read each with getOutput.
   *
   * Gradient: for square matrices, l⁻ᴴ (tril(lᴴ ḡl, −1) + triu(ḡu uᴴ)) u⁻ᴴ with rows moved back to their places.
   */
  lu(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("lu", [x], {}, options.name);
  }

  /**
   * y = re + i · im, elementwise with broadcasting; complex64 for float32 and narrower floats, else complex128.
   *
   * Infinities, NaN and the signs of zeros in both parts are preserved, unlike in the expression re + im · i. PyTorch:
   * `complex`. JAX: `lax.complex`.
   *
   * Since opset 2.
   *
   * Gradient: d re = Re g, d im = Im g.
   */
  makeComplex(re: Node, im: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("make_complex", [re, im], {}, options.name);
  }

  /**
   * stacks = body(consts, entry t of each sequence) for every t, in no particular order.
   *
   * The operands are consts, then `sequences` tensors of equal leading extent. `at_once` entries are computed in one
   * batch. Each result of the body gives a stack [entries, …]. JAX: `lax.map`, whose batch_size is `at_once`. JAX and
   * PyTorch: `vmap`, which computes all entries in one batch.
   *
   * Since opset 2.
   *
   * The op has several results. Read each with getOutput.
   *
   * Gradient: a map of the body's gradient, summed over the entries for consts.
   *
   * @param body function of consts and one entry of each sequence; returns the values to stack
   * @param options.sequences number of operands, the last ones, that are sequences; at least one; default 0
   * @param options.atOnce number of entries computed in one batch; default: as many as fit
   */
  map(
    operands: readonly Node[],
    body: GraphFunction,
    options: Optional<{ sequences: Int; atOnce: Int; name: string }> = {},
  ): Node {
    return this.append(
      "map",
      [...operands],
      { body, sequences: options.sequences, at_once: options.atOnce },
      options.name,
    );
  }

  /**
   * The value under one key of a map that is stored as one tensor, with keys in insertion order.
   *
   * The leading axis is split into `total_keys` equal parts, and y is the part `key_index`; the axis remains.
   *
   * Gradient: g in that part, 0 in the others.
   *
   * @param keyIndex position of the key in insertion order, from 0
   * @param totalKeys number of keys in the map
   */
  mapLookup(x: Node, keyIndex: Int, totalKeys: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("map_lookup", [x], { key_index: keyIndex, total_keys: totalKeys }, options.name);
  }

  /**
   * y = a @ b, as in NumPy: y[…, i, j] = Σₖ a[…, i, k] · b[…, k, j]; the leading axes broadcast.
   *
   * A 1-d operand is a row on the left and a column on the right; that axis is dropped from the result. float16
   * accumulates in float32. Integers and bool are multiplied in their own dtype, as in NumPy.
   *
   * Gradient: da = g @ bᴴ, db = aᴴ @ g, summed over batch axes that were broadcast.
   */
  matmul(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("matmul", [a, b], {}, options.name);
  }

  /**
   * y = exp x = 1 + x + x² / 2 + … of square matrices on the last two axes.
   *
   * x is halved until its norm is below 1.1, a Taylor polynomial of degree 18 is evaluated, and the result is squared
   * as often. The error is a few rounding units times the norm of y. A matrix with an infinity or NaN gives NaN; the
   * other matrices of the batch are unaffected. Integers give float64; float16 is computed in a wider float and rounded
   * once. The gradient, to any order, is an exponential again.
   *
   * PyTorch: `linalg.matrix_exp`. JAX and SciPy: `linalg.expm`. P. Bader, S. Blanes, F. Casas, Computing the matrix
   * exponential with an optimized Taylor polynomial approximation (2019). For the derivative: I. Najfeld, T. F. Havel
   * (1995), and A. H. Al-Mohy, N. J. Higham (2009).
   *
   * Since opset 2.
   *
   * Gradient: the upper right block of exp [[xᴴ, g], [0, xᴴ]].
   */
  matrixExp(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("matrix_exp", [x], {}, options.name);
  }

  /**
   * y = xᵏ, the product of k square matrices x, on the last two axes; x⁰ = 1, and x⁻ᵏ is the power of the inverse.
   *
   * Computed by repeated squaring, with about 2 log₂ k products. A negative power of a singular matrix is NaN, or very
   * large if rounding hides the singularity. Integers give float64; float16 is computed in a wider float and rounded
   * once. PyTorch, JAX and NumPy: `linalg.matrix_power`; in JAX and NumPy, integers stay integers.
   *
   * Since opset 2.
   *
   * Gradient: Σ (xᴴ)ⁱ g (xᴴ)ʲ over i + j = k − 1, through the products.
   *
   * @param k exponent; may be 0 or negative
   */
  matrixPower(x: Node, k: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("matrix_power", [x], { k }, options.name);
  }

  /**
   * y = the number of singular values larger than max(m, n) ε times the largest: int64, [batch…, m, n] → [batch…].
   *
   * ε is that of x's dtype. A matrix with an infinity or NaN has rank 0. PyTorch, JAX and NumPy: `linalg.matrix_rank`
   * without a tolerance.
   *
   * Since opset 2.
   */
  matrixRank(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("matrix_rank", [x], {}, options.name);
  }

  /**
   * y = max x over axes; NaN if an element is NaN. Ties, including NaN, share the gradient equally.
   *
   * Gradient: g / k to each of the k elements equal to y (if y is NaN, to each NaN); 0 to the others.
   *
   * @param options.axes axes to reduce; default: all
   * @param options.keepdims whether to keep the reduced axes, with extent 1; default false
   */
  max(x: Node, options: Optional<{ axes: Ints; keepdims: boolean; name: string }> = {}): Node {
    return this.append("max", [x], { axes: options.axes, keepdims: options.keepdims }, options.name);
  }

  /**
   * y[…, i] = the largest element of the window at i; NaN if it contains NaN. x [..., w]; padding counts as −∞.
   *
   * w' = ⌊(w + 2 · padding − dilation · (kernel_size − 1) − 1) / stride⌋ + 1; with `ceiling`, ⌈…⌉ + 1. PyTorch:
   * `max_pool1d`, whose `ceil_mode` is `ceiling`. JAX: `lax.reduce_window` with window_dilation; it has no ceiling
   * mode.
   *
   * Since opset 2.
   *
   * Gradient: g, added at the first maximum (in row-major order) of each window.
   *
   * @param kernelSize extents of the windows along each spatial axis
   * @param options.stride distance between windows along each spatial axis; default: the kernel size
   * @param options.padding padding on both sides of each axis; at most half the kernel size; default [0]
   * @param options.dilation distance between a window's taps along each axis; default [1]
   * @param options.ceiling whether to count a last window that extends past the end padding but starts before it;
   *   default false
   */
  maxPool1d(
    x: Node,
    kernelSize: Ints,
    options: Optional<{ stride: Ints; padding: Ints; dilation: Ints; ceiling: boolean; name: string }> = {},
  ): Node {
    return this.append(
      "max_pool1d",
      [x],
      {
        kernel_size: kernelSize,
        stride: options.stride,
        padding: options.padding,
        dilation: options.dilation,
        ceiling: options.ceiling,
      },
      options.name,
    );
  }

  /**
   * y[…, i, j] = the largest element of the window at (i, j); NaN if the window contains NaN.
   *
   * x [..., h, w]; padding counts as −∞. Same as PyTorch's max_pool2d.
   *
   * Gradient: g, added at the first maximum (in row-major order) of each window.
   *
   * @param kernelSize extents of the windows along each spatial axis
   * @param options.stride distance between windows along each spatial axis; default: the kernel size
   * @param options.padding padding on both sides of each spatial axis; at most half the kernel size; default [0, 0]
   */
  maxPool2d(x: Node, kernelSize: Ints, options: Optional<{ stride: Ints; padding: Ints; name: string }> = {}): Node {
    return this.append(
      "max_pool2d",
      [x],
      { kernel_size: kernelSize, stride: options.stride, padding: options.padding },
      options.name,
    );
  }

  /**
   * y[…, h, w] = Σ g[…, i, j] over the windows (i, j) whose first maximum, in row-major order, is x[…, h, w].
   *
   * The gradient of max_pool2d with respect to x for the cotangent g [..., h', w'], with x [..., h, w]; 0 at all other
   * elements. NaN counts as a maximum.
   *
   * Gradient: dg = the cotangent at max_pool2d_indices; none for x: the result is piecewise constant in x.
   *
   * @param kernelSize extents of the windows along each spatial axis
   * @param options.stride distance between windows along each spatial axis; default: the kernel size
   * @param options.padding padding on both sides of each spatial axis; at most half the kernel size; default [0, 0]
   */
  maxPool2dBack(
    g: Node,
    x: Node,
    kernelSize: Ints,
    options: Optional<{ stride: Ints; padding: Ints; name: string }> = {},
  ): Node {
    return this.append(
      "max_pool2d_back",
      [g, x],
      { kernel_size: kernelSize, stride: options.stride, padding: options.padding },
      options.name,
    );
  }

  /**
   * y[…, i, j] = the position h · width + w of the first maximum (in row-major order) of the window at (i, j).
   *
   * Positions are int64 and flat within each plane, as in PyTorch's return_indices. NaN counts as a maximum.
   *
   * @param kernelSize extents of the windows along each spatial axis
   * @param options.stride distance between windows along each spatial axis; default: the kernel size
   * @param options.padding padding on both sides of each spatial axis; at most half the kernel size; default [0, 0]
   */
  maxPool2dIndices(
    x: Node,
    kernelSize: Ints,
    options: Optional<{ stride: Ints; padding: Ints; name: string }> = {},
  ): Node {
    return this.append(
      "max_pool2d_indices",
      [x],
      { kernel_size: kernelSize, stride: options.stride, padding: options.padding },
      options.name,
    );
  }

  /**
   * y[…, i, j, k] = the largest element of the window at (i, j, k); NaN if it contains NaN. x [..., d, h, w].
   *
   * Padding counts as −∞. Extents are as in max_pool1d. To pool planes with dilation or `ceiling`, use a first kernel
   * size of 1. PyTorch: `max_pool3d`, whose `ceil_mode` is `ceiling`. JAX: `lax.reduce_window`.
   *
   * Since opset 2.
   *
   * Gradient: g, added at the first maximum (in row-major order) of each window.
   *
   * @param kernelSize extents of the windows along each spatial axis
   * @param options.stride distance between windows along each spatial axis; default: the kernel size
   * @param options.padding padding on both sides of each axis; at most half the kernel size; default [0, 0, 0]
   * @param options.dilation distance between a window's taps along each axis; default [1, 1, 1]
   * @param options.ceiling whether to count a last window that extends past the end padding but starts before it;
   *   default false
   */
  maxPool3d(
    x: Node,
    kernelSize: Ints,
    options: Optional<{ stride: Ints; padding: Ints; dilation: Ints; ceiling: boolean; name: string }> = {},
  ): Node {
    return this.append(
      "max_pool3d",
      [x],
      {
        kernel_size: kernelSize,
        stride: options.stride,
        padding: options.padding,
        dilation: options.dilation,
        ceiling: options.ceiling,
      },
      options.name,
    );
  }

  /**
   * y = the larger of a and b, elementwise with broadcasting; NaN if either is NaN.
   *
   * Gradient: da = g where a > b or only a is NaN, g / 2 where a = b or both are NaN, else 0; db likewise.
   */
  maximum(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("maximum", [a, b], {}, options.name);
  }

  /**
   * y = Σ x / n over axes, n the number of elements reduced; NaN if n = 0. Integers give float64.
   *
   * Gradient: g / n, broadcast back over the axes.
   *
   * @param options.axes axes to reduce; default: all
   * @param options.keepdims whether to keep the reduced axes, with extent 1; default false
   */
  mean(x: Node, options: Optional<{ axes: Ints; keepdims: boolean; name: string }> = {}): Node {
    return this.append("mean", [x], { axes: options.axes, keepdims: options.keepdims }, options.name);
  }

  /**
   * y = min x over axes; NaN if an element is NaN. Ties, including NaN, share the gradient equally.
   *
   * Gradient: g / k to each of the k elements equal to y (if y is NaN, to each NaN); 0 to the others.
   *
   * @param options.axes axes to reduce; default: all
   * @param options.keepdims whether to keep the reduced axes, with extent 1; default false
   */
  min(x: Node, options: Optional<{ axes: Ints; keepdims: boolean; name: string }> = {}): Node {
    return this.append("min", [x], { axes: options.axes, keepdims: options.keepdims }, options.name);
  }

  /**
   * y = the smaller of a and b, elementwise with broadcasting; NaN if either is NaN.
   *
   * Gradient: da = g where a < b or only a is NaN, g / 2 where a = b or both are NaN, else 0; db likewise.
   */
  minimum(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("minimum", [a, b], {}, options.name);
  }

  /**
   * y = activation(x @ wᵀ + b) for x[…, in], w[out, in] and b[out]: y[…, out].
   *
   * b may have any shape that broadcasts to y's shape. The activation is the op of that name with its defaults. CJC's
   * layer uses the tanh form of `gelu`: for that, build the layer from its parts.
   *
   * Gradient: with h = g · activation′: dx = h @ w, dw = hᵀ @ x, db = Σ h over the rows.
   *
   * @param options.activation op applied to the sum; default "none"
   */
  mlpLayer(
    x: Node,
    w: Node,
    b: Node,
    options: Optional<{
      activation: "none" | "relu" | "tanh" | "sigmoid" | "gelu" | "silu" | "elu" | "selu" | "sin";
      name: string;
    }> = {},
  ): Node {
    return this.append("mlp_layer", [x, w, b], { activation: options.activation }, options.name);
  }

  /**
   * y = a − b · ⌊a / b⌋: the remainder with the divisor's sign, as in Python's % and NumPy's mod.
   *
   * A float modulo 0 is NaN, an integer modulo 0 is 0.
   *
   * Gradient: da = g, db = −g · ⌊a / b⌋.
   */
  mod(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("mod", [a, b], {}, options.name);
  }

  /**
   * loss = (x − y)², elementwise for equal shapes; then the mean.
   *
   * Gradient: dx = g · 2 (x − y) / n, dy = −dx.
   *
   * @param options.reduction how to combine the losses; none: return each one; default "mean"
   */
  mseLoss(x: Node, y: Node, options: Optional<{ reduction: "mean" | "sum" | "none"; name: string }> = {}): Node {
    return this.append("mse_loss", [x, y], { reduction: options.reduction }, options.name);
  }

  /**
   * y = a · b, elementwise, with NumPy broadcasting.
   *
   * Gradient: da = g · b, db = g · a.
   */
  mul(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("mul", [a, b], {}, options.name);
  }

  /**
   * y = x · scalar.
   *
   * Gradient: g · scalar.
   *
   * @param scalar constant operand
   */
  mulScalar(x: Node, scalar: Float, options: Optional<{ name: string }> = {}): Node {
    return this.append("mul_scalar", [x], { scalar }, options.name);
  }

  /**
   * y = −x.
   *
   * Gradient: −g.
   */
  neg(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("neg", [x], {}, options.name);
  }

  /**
   * The first k positions where `mask` is true, in row-major order: int64 [k, rank]; and their total count: int64 [].
   *
   * You set k, so that shapes do not depend on the mask. If there are more than k positions, the rest are dropped; if
   * there are fewer, the remaining rows are zeros. The count, which is not limited to k, tells you which. JAX:
   * `nonzero` with a size, which returns the columns as a tuple. PyTorch: `nonzero`, which has as many rows as there
   * are positions.
   *
   * Since opset 2.
   *
   * The op has several results. Read each with getOutput.
   *
   * @param k number of entries in the result
   */
  nonzero(mask: Node, k: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("nonzero", [mask], { k }, options.name);
  }

  /**
   * y = √Σ x² over axes, the Euclidean norm, without intermediate overflow or underflow. Integers give float64.
   *
   * At 0 the gradient is 0, the subgradient of least norm, and so is its own gradient. An infinite element gets g, with
   * its sign. If an element is NaN, y and the gradient are NaN.
   *
   * Gradient: g · x / y, and 0 where y = 0.
   *
   * @param options.axes axes to reduce; default: all
   * @param options.keepdims whether to keep the reduced axes, with extent 1; default false
   */
  norm(x: Node, options: Optional<{ axes: Ints; keepdims: boolean; name: string }> = {}): Node {
    return this.append("norm", [x], { axes: options.axes, keepdims: options.keepdims }, options.name);
  }

  /** y = (a ≠ b), elementwise; true if either is NaN. */
  notEqual(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("not_equal", [a, b], {}, options.name);
  }

  /**
   * y[…, c] = 1 where indices[…] = c, else 0, on a new last axis of extent `classes`. Indices lie in [0, classes).
   *
   * @param classes number of classes
   * @param options.dtype dtype of the result; default "float64"
   */
  oneHot(indices: Node, classes: Int, options: Optional<{ dtype: DtypeName; name: string }> = {}): Node {
    return this.append("one_hot", [indices], { classes, dtype: options.dtype }, options.name);
  }

  /**
   * y = x with `fill` around it: pad_width[2i] entries before and pad_width[2i + 1] after, on each axis i.
   *
   * To pad with an infinity or NaN, use `fill_as`. PyTorch's `functional.pad` lists the last axis first. JAX's and
   * NumPy's `pad` take pairs, in the same order as here.
   *
   * Gradient: g without the padding.
   *
   * @param padWidth entries before and after, one axis after the other
   * @param options.fill value of the padding; default 0.0
   * @param options.fillAs infinity or NaN to use instead of `fill`; float dtypes only; since opset 2
   */
  pad(
    x: Node,
    padWidth: Ints,
    options: Optional<{ fill: Float; fillAs: "inf" | "-inf" | "nan"; name: string }> = {},
  ): Node {
    return this.append("pad", [x], { pad_width: padWidth, fill: options.fill, fill_as: options.fillAs }, options.name);
  }

  /**
   * A trainable tensor, fed with the request.
   *
   * Same as `input`, but part of `wrt` by default.
   *
   * @param options.dtype required dtype of the feed; default: any
   * @param options.shape required shape of the feed, -1 for any extent; default: any
   * @param options.zeroD whether the feed must be 0-d; default false
   */
  parameter(name?: string, options: Optional<{ dtype: DtypeName; shape: Ints; zeroD: boolean }> = {}): Node {
    return this.append("parameter", [], { dtype: options.dtype, shape: options.shape, zero_d: options.zeroD }, name);
  }

  /**
   * y = x⁺, the Moore–Penrose pseudoinverse: v diag(1 / s) uᴴ of x = u diag(s) vᴴ, without the s that are 0.
   *
   * x [batch…, m, n], y [batch…, n, m]. Singular values up to `rcond` times the largest count as 0; the default is
   * max(m, n) ε. The gradient assumes constant rank. It is exact if only zeros are cut off, even with equal singular
   * values. If larger values are cut off, its relative error is their ratio to the values that remain. Where the rank
   * changes, the pseudoinverse is discontinuous. A matrix with an infinity or NaN, or for which LAPACK does not
   * converge, gives NaN; the other matrices of the batch are unaffected. Integers give float64; float16 is computed in
   * a wider float and rounded once.
   *
   * PyTorch: `linalg.pinv` (with rtol). JAX and NumPy: `linalg.pinv`, with other defaults. G. H. Golub, V. Pereyra, The
   * differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate (1973), eq. 4.12.
   *
   * Since opset 2.
   *
   * Gradient: −yᴴ g yᴴ + (1 − x y) gᴴ y yᴴ + yᴴ y gᴴ (1 − y x).
   *
   * @param options.rcond singular values up to this fraction of the largest count as 0; default: max(m, n) ε
   */
  pinv(x: Node, options: Optional<{ rcond: Float; name: string }> = {}): Node {
    return this.append("pinv", [x], { rcond: options.rcond }, options.name);
  }

  /**
   * y = ψ⁽ⁿ⁾(x) for n = `order`, the n-th derivative of `digamma`; order 0 is `digamma` itself.
   *
   * ±∞ at 0, −1, −2, …, with the sign that y has to the right of 0. Accurate to 10 ulp. For even orders, near the zeros
   * below 0, accurate to 10 ulp of the sum over the nearest poles. Values below 1e-307 · n! are inaccurate or 0.
   *
   * The largest order is 170, because 170! is the largest factorial that fits in a float64; `polygamma` of order 170
   * has no derivative.
   *
   * Gradient: g · polygamma(x, order + 1).
   *
   * @param order order of the derivative of digamma, 0 to 170
   */
  polygamma(x: Node, order: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("polygamma", [x], { order }, options.name);
  }

  /**
   * y = aᵇ with broadcasting; with one operand, y = a^exponent, as in `pow_scalar`. 0⁰ = 1.
   *
   * A negative a to a fractional power is NaN, and so is its derivative with respect to b. The derivative with respect
   * to b is 0 where a = 0 and b ≥ 0, and where a = ∞ and b < 0. Powers of integers are integers and wrap around as in
   * NumPy. With a negative exponent they are truncated towards zero (2⁻¹ → 0, as in CuPy and PyTorch; NumPy raises an
   * error), and 0⁻¹ → 0.
   *
   * Gradient: da = g · b · aᵇ⁻¹, db = g · y · log a.
   *
   * @param options.exponent exponent, if there is no operand b
   */
  pow(a: Node, b?: Node, options: Optional<{ exponent: Float; name: string }> = {}): Node {
    return this.append("pow", [a, b], { exponent: options.exponent }, options.name);
  }

  /**
   * y = x^exponent for a real exponent. 0⁰ = 1; a negative x to a fractional power is NaN.
   *
   * For a complex x, y = exp(exponent · log x), with the branch cut of `log`.
   *
   * Gradient: g · exponent · x^(exponent − 1), and 0 for an exponent of 0.
   *
   * @param exponent exponent
   */
  powScalar(x: Node, exponent: Float, options: Optional<{ name: string }> = {}): Node {
    return this.append("pow_scalar", [x], { exponent }, options.name);
  }

  /**
   * y = Π x over axes; 1 if no elements are reduced. Integers and bool are multiplied in int64, float16 in float32.
   *
   * The gradient is that of a tree of products. It is exact for any number of zeros, and so are higher derivatives.
   *
   * Gradient: g · (product of all other elements).
   *
   * @param options.axes axes to reduce; default: all
   * @param options.keepdims whether to keep the reduced axes, with extent 1; default false
   */
  prod(x: Node, options: Optional<{ axes: Ints; keepdims: boolean; name: string }> = {}): Node {
    return this.append("prod", [x], { axes: options.axes, keepdims: options.keepdims }, options.name);
  }

  /**
   * q, r with x = q r: the columns of q are orthonormal, r is upper triangular; reduced form.
   *
   * x [batch…, m, n], q [batch…, m, k], r [batch…, k, n], k = min(m, n). LAPACK chooses the signs of r's diagonal; each
   * sign flips a row of r together with the column of q. Use q and r only in functions that do not depend on these
   * signs. The gradient is valid if the columns of x are independent; otherwise it is infinite or NaN. With fewer rows
   * than columns, there are values but no gradient: `not_differentiable`. A matrix with an infinity or NaN gives NaN;
   * the other matrices of the batch are unaffected. Integers give float64; float16 is computed in a wider float and
   * rounded once.
   *
   * PyTorch and JAX: `linalg.qr`, reduced. S. F. Walter, L. Lehmann, Algorithmic differentiation of linear algebra
   * functions with application in optimum experimental design, arXiv:1001.1654 (2010).
   *
   * Since opset 2.
   *
   * The op has several results. Read each with getOutput.
   *
   * Gradient: (ḡq + q (L + Lᴴ − Re diag L)) r⁻ᴴ, L the lower triangle of r ḡrᴴ − ḡqᴴ q; none if rows < columns.
   */
  qr(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("qr", [x], {}, options.name);
  }

  /**
   * y = uniform < p, of p's shape: true with probability p. The uniform numbers have p's dtype.
   *
   * Equals `jax.random.bernoulli`. PyTorch's `bernoulli` returns floats and uses a different generator.
   *
   * Since opset 2.
   */
  randomBernoulli(key: Node, p: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("random_bernoulli", [key, p], {}, options.name);
  }

  /**
   * y = 32 random bits per element: the exclusive or of both words of counter i, row-major. Equals `jax.random.bits`.
   *
   * PyTorch's `randint` uses a different generator.
   *
   * Since opset 2.
   *
   * @param shape shape of the result
   * @param options.dtype dtype of the result; default "uint32"
   */
  randomBits(key: Node, shape: Ints, options: Optional<{ dtype: "uint32"; name: string }> = {}): Node {
    return this.append("random_bits", [key], { shape, dtype: options.dtype }, options.name);
  }

  /**
   * y = argmax(logits + gumbel) along `axis`, int64: i with probability proportional to exp(logits[i]).
   *
   * Equals `jax.random.categorical`. PyTorch's `multinomial` takes weights and uses a different generator.
   *
   * Since opset 2.
   *
   * @param options.axis axis of the categories; default -1
   */
  randomCategorical(key: Node, logits: Node, options: Optional<{ axis: Int; name: string }> = {}): Node {
    return this.append("random_categorical", [key, logits], { axis: options.axis }, options.name);
  }

  /**
   * y = −log1p(−u), u uniform in [0, 1): exponential numbers with mean 1. Equals `jax.random.exponential`.
   *
   * PyTorch's `exponential_` uses a different generator.
   *
   * Since opset 2.
   *
   * @param shape shape of the result
   * @param dtype dtype of the result
   */
  randomExponential(
    key: Node,
    shape: Ints,
    dtype: "float32" | "float64",
    options: Optional<{ name: string }> = {},
  ): Node {
    return this.append("random_exponential", [key], { shape, dtype }, options.name);
  }

  /**
   * key = a new key [2] for each number: the words of counter (0, number mod 2³²). Equals `jax.random.fold_in`.
   *
   * PyTorch has no keys; use one `Generator` for each.
   *
   * Since opset 2.
   */
  randomFoldIn(key: Node, number: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("random_fold_in", [key, number], {}, options.name);
  }

  /**
   * y = −log(−log u), u uniform in [0, 1), with 0 replaced by the smallest normal number. Equals `jax.random.gumbel`.
   *
   * PyTorch's `distributions.Gumbel` uses a different generator.
   *
   * Since opset 2.
   *
   * @param shape shape of the result
   * @param dtype dtype of the result
   */
  randomGumbel(key: Node, shape: Ints, dtype: "float32" | "float64", options: Optional<{ name: string }> = {}): Node {
    return this.append("random_gumbel", [key], { shape, dtype }, options.name);
  }

  /**
   * key = (seed ≫ 32, seed mod 2³²): uint32 [2] from an int64 []. Equals `jax.random.key_data(jax.random.key(seed))`.
   *
   * PyTorch's `manual_seed` starts a different sequence, and has state.
   *
   * Since opset 2.
   */
  randomKey(seed: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("random_key", [seed], {}, options.name);
  }

  /**
   * y = √2 · erfinv(u), u uniform in (−1, 1): standard normal numbers. Equals `jax.random.normal` to 32 ulp.
   *
   * PyTorch's `randn` uses a different generator.
   *
   * Since opset 2.
   *
   * @param shape shape of the result
   * @param dtype dtype of the result
   */
  randomNormal(key: Node, shape: Ints, dtype: "float32" | "float64", options: Optional<{ name: string }> = {}): Node {
    return this.append("random_normal", [key], { shape, dtype }, options.name);
  }

  /**
   * y = 0 … k−1 in random order, int64 [k]: a stable argsort of k random unsigned 64-bit numbers.
   *
   * `jax.random.permutation` uses a different algorithm, and PyTorch's `randperm` a different generator.
   *
   * Since opset 2.
   *
   * @param k number of elements
   */
  randomPermutation(key: Node, k: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("random_permutation", [key], { k }, options.name);
  }

  /**
   * keys = k new keys [k, 2], each with its own sequence: the words of counters 0 … k−1. Equals `jax.random.split`.
   *
   * PyTorch has no keys; use one `Generator` for each.
   *
   * Since opset 2.
   *
   * @param k number of keys
   */
  randomSplit(key: Node, k: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("random_split", [key], { k }, options.name);
  }

  /**
   * y = uniform numbers in [0, 1): 23 random bits (for float64, 52) over 2²³ (2⁵²). Equals `jax.random.uniform`.
   *
   * PyTorch's `rand` uses a different generator.
   *
   * Since opset 2.
   *
   * @param shape shape of the result
   * @param dtype dtype of the result
   */
  randomUniform(key: Node, shape: Ints, dtype: "float32" | "float64", options: Optional<{ name: string }> = {}): Node {
    return this.append("random_uniform", [key], { shape, dtype }, options.name);
  }

  /**
   * y = Re x; a real x is returned unchanged. PyTorch, JAX and NumPy: `real`.
   *
   * Since opset 2.
   *
   * Gradient: g, with the imaginary part 0.
   */
  real(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("real", [x], {}, options.name);
  }

  /**
   * y = 1 / x; integers give floats, as in `div`.
   *
   * Gradient: −g · y².
   */
  reciprocal(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("reciprocal", [x], {}, options.name);
  }

  /**
   * y = max(x, 0). The derivative at 0 is `at_zero`; some systems use 1.
   *
   * Gradient: g where x > 0 or NaN, g · at_zero where x = 0, else 0.
   *
   * @param options.atZero derivative at 0; default 0.0
   */
  relu(x: Node, options: Optional<{ atZero: Float; name: string }> = {}): Node {
    return this.append("relu", [x], { at_zero: options.atZero }, options.name);
  }

  /**
   * y = a − b · (a / b rounded towards 0): C's % and fmod, with the sign of a. `mod` has the sign of b.
   *
   * If b is 0, y is NaN for floats and 0 for integers. PyTorch: `fmod`. JAX: `lax.rem`, which gives a for integers.
   *
   * Since opset 2.
   *
   * Gradient: da = g, db = −g · (a / b rounded towards 0).
   */
  rem(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("rem", [a, b], {}, options.name);
  }

  /**
   * y holds x's elements, in row-major order, in another shape; one extent may be −1 and is inferred.
   *
   * An absent or empty `shape` makes a 0-d tensor. `original_shape`, if given, must be x's shape.
   *
   * Gradient: g, reshaped back.
   *
   * @param options.shape shape of the result; one extent may be -1 and is inferred; default []
   * @param options.originalShape x's shape, checked if given
   */
  reshape(x: Node, options: Optional<{ shape: Ints; originalShape: Ints; name: string }> = {}): Node {
    return this.append("reshape", [x], { shape: options.shape, original_shape: options.originalShape }, options.name);
  }

  /**
   * y = x resized to new extents on some axes, by interpolation.
   *
   * The centre of new entry i lies at (i + ½) · extent / size − ½; with `corners`, at i · (extent − 1) / (size − 1).
   * `nearest` reads the nearest entry, `linear` two, and `cubic` four, with Keys's kernel and a = −0.75; beyond an end,
   * the entry at that end is repeated. With `antialias`, kernels widen where the tensor shrinks, a is −0.5, and
   * positions beyond an end are ignored. PyTorch: `interpolate` with modes nearest-exact, linear, bilinear, trilinear
   * and bicubic, and with align_corners. JAX: `image.resize`, whose cubic always has a = −0.5, and which has no
   * equivalent of `corners`.
   *
   * Since opset 2.
   *
   * Gradient: g times the weights of interpolation, added to the entries that were read.
   *
   * @param sizes new extents
   * @param options.axes axes to resize; default: the last ones
   * @param options.method interpolation method; default "linear"
   * @param options.antialias whether to antialias where x shrinks; linear and cubic only; default false
   * @param options.corners whether to align the end entries; linear and cubic only, without antialias; default false
   */
  resize(
    x: Node,
    sizes: Ints,
    options: Optional<{
      axes: Ints;
      method: "nearest" | "linear" | "cubic";
      antialias: boolean;
      corners: boolean;
      name: string;
    }> = {},
  ): Node {
    return this.append(
      "resize",
      [x],
      { sizes, axes: options.axes, method: options.method, antialias: options.antialias, corners: options.corners },
      options.name,
    );
  }

  /**
   * The first ⌊n / 2⌋ + 1 entries of `fft` of a real x on the last of `axes`; the other entries are their conjugates.
   *
   * float16 gives complex64, integers give complex128. `norm` is as in `fft`. PyTorch, JAX and NumPy: `rfft`; over
   * several axes, `rfft2` and `rfftn`.
   *
   * Since opset 2.
   *
   * Gradient: the real part of ifft(g) without the division by n, with g padded with zeros.
   *
   * @param options.axes axes to transform; default: the last axis, or as many last axes as there are sizes
   * @param options.sizes points on each axis, to which x is cut or zero-padded; default: x's extents
   * @param options.norm direction that divides by the number of points; ortho: both, by its square root; default
   *   "backward"
   */
  rfft(
    x: Node,
    options: Optional<{ axes: Ints; sizes: Ints; norm: "backward" | "ortho" | "forward"; name: string }> = {},
  ): Node {
    return this.append("rfft", [x], { axes: options.axes, sizes: options.sizes, norm: options.norm }, options.name);
  }

  /**
   * y = x / √(mean x² + eps) · weight, with the mean over `axes`; weight has x's extents there, in ascending order.
   *
   * B. Zhang, R. Sennrich, "Root mean square layer normalization" (2019).
   *
   * Gradient: with z normalised and h = g · weight: dx = (h − z · mean(h·z)) / √(mean x² + eps).
   *
   * @param options.axes axes to normalise over; default [-1]
   * @param options.eps positive number added to the variance or mean square; default 1e-05
   */
  rmsNorm(x: Node, weight?: Node, options: Optional<{ axes: Ints; eps: Float; name: string }> = {}): Node {
    return this.append("rms_norm", [x, weight], { axes: options.axes, eps: options.eps }, options.name);
  }

  /**
   * y[(i + shift) mod n] = x[i] on each of `axes`; without `axes`, on the flattened tensor.
   *
   * Give one shift for each axis, or one shift without `axes`. Negative shifts move entries towards the front.
   *
   * Gradient: g, rolled back.
   *
   * @param shifts distance to move, for each axis
   * @param options.axes axes to move along; default: the flattened tensor
   */
  roll(x: Node, shifts: Ints, options: Optional<{ axes: Ints; name: string }> = {}): Node {
    return this.append("roll", [x], { shifts, axes: options.axes }, options.name);
  }

  /** y = x rounded to the nearest whole number, ties to even: 0.5 → 0, 1.5 → 2. */
  round(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("round", [x], {}, options.name);
  }

  /**
   * y = 1 / √x; NaN for x < 0.
   *
   * Gradient: −g · y³ / 2.
   */
  rsqrt(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("rsqrt", [x], {}, options.name);
  }

  /**
   * carries, stacks = body(consts, carries, entry t of each sequence), step by step for t = 0 … length − 1.
   *
   * The operands are consts, then `carries` initial values, then `sequences` tensors that are read along the leading
   * axis; with `reverse`, from the last entry to the first. The body returns the carries for the next step, of the same
   * types, and then values to stack. Entry t of a stack is the value from step t. Results: the last carries, then the
   * stacks [length, …]. JAX: `lax.scan`, whose body can read variables around it. PyTorch: a Python loop.
   *
   * Since opset 2.
   *
   * The op has several results. Read each with getOutput.
   *
   * Gradient: a scan in the opposite direction that recomputes each step.
   *
   * @param body function of consts, carries and one entry of each sequence; returns carries, then values to stack
   * @param options.carries number of operands that are initial values of carries; default 0
   * @param options.sequences number of operands, the last ones, that are sequences; default 0
   * @param options.length number of steps; default: the sequences' number of entries
   * @param options.reverse whether to run from the last entry to the first; default false
   */
  scan(
    operands: readonly Node[],
    body: GraphFunction,
    options: Optional<{ carries: Int; sequences: Int; length: Int; reverse: boolean; name: string }> = {},
  ): Node {
    return this.append(
      "scan",
      [...operands],
      {
        body,
        carries: options.carries,
        sequences: options.sequences,
        length: options.length,
        reverse: options.reverse,
      },
      options.name,
    );
  }

  /**
   * y = x, then y[index[i, j, …], j, …] += updates[i, j, …] for axis 0; likewise for the other axes.
   *
   * `index` and `updates` have the same shape, of x's rank, and may be smaller than x on the other axes. Repeated
   * indices accumulate. This is the adjoint of `gather`. Indices lie in [0, extent); with `from_end`, negative ones
   * count from the end. PyTorch: `scatter_add`, which rejects negative indices. JAX: `x.at[…].add`, which accepts them
   * and drops updates that are out of range.
   *
   * Gradient: dx = g, d updates = gather(g, index); none for index.
   *
   * @param options.axis axis to index; default 0
   * @param options.fromEnd whether negative indices count from the end; −1 is the last; since opset 2; default false
   */
  scatterAdd(
    x: Node,
    index: Node,
    updates: Node,
    options: Optional<{ axis: Int; fromEnd: boolean; name: string }> = {},
  ): Node {
    return this.append(
      "scatter_add",
      [x, index, updates],
      { axis: options.axis, from_end: options.fromEnd },
      options.name,
    );
  }

  /**
   * y[s, …] = the largest x[i, …] of the rows i with segment_ids[i] = s; NaN if one of them is NaN.
   *
   * x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Ties share the gradient equally.
   * An empty segment gives −∞, or the smallest number of an integer dtype. JAX: `ops.segment_max`. PyTorch:
   * `scatter_reduce` with amax, whose ties also share the gradient, and in which empty segments keep their old values.
   *
   * Since opset 2.
   *
   * Gradient: g / k to each of the k rows equal to y (if y is NaN, to each NaN); 0 to the others.
   *
   * @param segments number of segments
   */
  segmentMax(x: Node, segmentIds: Node, segments: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("segment_max", [x, segmentIds], { segments }, options.name);
  }

  /**
   * y[s, …] = the mean of x[i, …] over the rows i with segment_ids[i] = s; NaN for an empty segment.
   *
   * x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers give float64; float16 is
   * summed in float32. PyTorch: `scatter_reduce` with mean. JAX has no equivalent.
   *
   * Since opset 2.
   *
   * Gradient: dx[i, …] = g[segment_ids[i], …] / (number of rows in the segment); none for segment_ids.
   *
   * @param segments number of segments
   */
  segmentMean(x: Node, segmentIds: Node, segments: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("segment_mean", [x, segmentIds], { segments }, options.name);
  }

  /**
   * y[s, …] = the smallest x[i, …] of the rows i with segment_ids[i] = s; NaN if one of them is NaN.
   *
   * x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Ties share the gradient equally.
   * An empty segment gives ∞, or the largest number of an integer dtype. JAX: `ops.segment_min`. PyTorch:
   * `scatter_reduce` with amin, whose ties also share the gradient, and in which empty segments keep their old values.
   *
   * Since opset 2.
   *
   * Gradient: g / k to each of the k rows equal to y (if y is NaN, to each NaN); 0 to the others.
   *
   * @param segments number of segments
   */
  segmentMin(x: Node, segmentIds: Node, segments: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("segment_min", [x, segmentIds], { segments }, options.name);
  }

  /**
   * y[s, …] = Π x[i, …] over the rows i with segment_ids[i] = s; 1 for an empty segment.
   *
   * x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers and bool are multiplied
   * in int64, float16 in float32. The gradient is exact for any number of zeros, and so are higher derivatives. JAX:
   * `ops.segment_prod`, which has no gradient. PyTorch: `scatter_reduce` with prod.
   *
   * Since opset 2.
   *
   * Gradient: g[segment_ids[i], …] · (product of the other rows of the segment); none for segment_ids.
   *
   * @param segments number of segments
   */
  segmentProd(x: Node, segmentIds: Node, segments: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("segment_prod", [x, segmentIds], { segments }, options.name);
  }

  /**
   * y[s, …] = Σ x[i, …] over the rows i with segment_ids[i] = s; 0 for an empty segment.
   *
   * x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers and bool are summed in
   * int64, float16 in float32.
   *
   * Gradient: dx[i, …] = g[segment_ids[i], …]; none for segment_ids.
   *
   * @param segments number of segments
   */
  segmentSum(x: Node, segmentIds: Node, segments: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("segment_sum", [x, segmentIds], { segments }, options.name);
  }

  /**
   * y = x at one `index` along `axis`, without that axis: x[index], x[:, index], …
   *
   * A negative index counts from the end. Same as PyTorch's select. To read at many indices, use `gather`.
   *
   * Gradient: g at the index, 0 elsewhere.
   *
   * @param index position to read
   * @param options.axis axis to read at one position; default 0
   */
  select(x: Node, index: Int, options: Optional<{ axis: Int; name: string }> = {}): Node {
    return this.append("select", [x], { index, axis: options.axis }, options.name);
  }

  /**
   * y = 1.0507… · elu(x, alpha = 1.6732…), which preserves mean 0 and variance 1.
   *
   * G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter, arXiv:1706.02515.
   *
   * Gradient: 1.0507… · that of elu.
   */
  selu(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("selu", [x], {}, options.name);
  }

  /**
   * y = 1 / (1 + e⁻ˣ), accurate in both tails, down to the smallest number. The same formula holds for complex x.
   *
   * Gradient: g · y · (1 − y).
   */
  sigmoid(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("sigmoid", [x], {}, options.name);
  }

  /** y = −1, 0 or 1: the sign of x. NaN stays NaN. */
  sign(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("sign", [x], {}, options.name);
  }

  /**
   * y = x · sigmoid x; 0 at −∞.
   *
   * Gradient: g · (s + x · s · (1 − s)), s = sigmoid x.
   */
  silu(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("silu", [x], {}, options.name);
  }

  /**
   * y = sin x.
   *
   * Gradient: g · cos x.
   */
  sin(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("sin", [x], {}, options.name);
  }

  /**
   * y = sin(πx) / πx, and 1 at 0. Exactly 0 at all other whole numbers and at infinity.
   *
   * Accurate to 4 ulp even next to whole numbers, where other libraries lose all digits. At whole numbers other than 0,
   * the derivative is (−1)ˣ / x. NumPy, PyTorch and JAX: `sinc`.
   *
   * Since opset 2.
   *
   * Gradient: g · (cos πx − y) / x, and 0 at 0.
   */
  sinc(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("sinc", [x], {}, options.name);
  }

  /**
   * y = sinh x.
   *
   * Gradient: g · cosh x.
   */
  sinh(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("sinh", [x], {}, options.name);
  }

  /**
   * y = x[starts[0]:stops[0]:steps[0], starts[1]:stops[1]:steps[1], …]: one entry for each axis.
   *
   * A list may have fewer entries than x has axes; the remaining axes use the defaults. Bounds are as in NumPy:
   * negative ones count from the end, and bounds beyond an end are moved to that end. Steps are at least 1.
   *
   * Gradient: g at the positions that were read, 0 elsewhere.
   *
   * @param options.starts first position on each axis; default: 0
   * @param options.stops end position on each axis, not included; default: the extent
   * @param options.steps distance between positions on each axis; default: 1
   */
  slice(x: Node, options: Optional<{ starts: Ints; stops: Ints; steps: Ints; name: string }> = {}): Node {
    return this.append(
      "slice",
      [x],
      { starts: options.starts, stops: options.stops, steps: options.steps },
      options.name,
    );
  }

  /**
   * y = x[s₀ : s₀ + sizes[0], s₁ : s₁ + sizes[1], …], where s is the operand `starts`: int64 [rank].
   *
   * Each start, negative ones included, is moved into [0, extent − size], so that the result always has the same shape.
   * JAX: `lax.dynamic_slice`, which first counts negative starts from the end. PyTorch: x.narrow, which takes a start
   * on one axis.
   *
   * Since opset 2.
   *
   * Gradient: g in the box, 0 elsewhere; none for starts.
   *
   * @param sizes extents of the box, one for each axis
   */
  sliceAt(x: Node, starts: Node, sizes: Ints, options: Optional<{ name: string }> = {}): Node {
    return this.append("slice_at", [x, starts], { sizes }, options.name);
  }

  /**
   * sign, log|det x| of matrices on the last two axes: [batch…, n, n] → [batch…] for both; det x = sign · exp(log).
   *
   * The logarithm does not overflow or underflow where the determinant does. A singular matrix has sign 0 and logarithm
   * −∞, and its gradient is NaN, as is that of the inverse; the other matrices of the batch are unaffected. The sign
   * has no gradient. For a complex matrix, the sign is complex, det x / |det x|, and the logarithm is real. Integers
   * give float64; float16 is computed in a wider float and rounded once.
   *
   * The op has several results. Read each with getOutput.
   *
   * Gradient: g · x⁻ᴴ, g the cotangent of log|det x|.
   */
  slogdet(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("slogdet", [x], {}, options.name);
  }

  /**
   * y = exp(x) / Σ exp(x) along `axis`, of x's shape; stable: computed from x − max x. Integers give float64.
   *
   * A row that contains only −inf gives NaN, as 0 / 0.
   *
   * Gradient: y · (g − Σ g·y), with the sum along the axis.
   *
   * @param options.axis axis to normalise along; default -1
   */
  softmax(x: Node, options: Optional<{ axis: Int; name: string }> = {}): Node {
    return this.append("softmax", [x], { axis: options.axis }, options.name);
  }

  /**
   * y = ln(1 + eˣ).
   *
   * Gradient: g · sigmoid x.
   */
  softplus(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("softplus", [x], {}, options.name);
  }

  /**
   * y such that a y = b: a [batch…, n, n], b [n], [batch…, n] or [batch…, n, m]; batch axes of matrices broadcast.
   *
   * b holds vectors if it is 1-d, as in NumPy 2, or if it has a's shape without the last axis and its last two axes
   * cannot be matrices of n rows; otherwise it holds matrices. If a is singular, y is NaN, or very large if rounding
   * hides the singularity; the other systems of the batch are unaffected. Integers give float64; float16 is computed in
   * a wider float and rounded once.
   *
   * M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008).
   *
   * Gradient: db = a⁻ᴴ g, da = −(db yᴴ), summed over batch axes that were broadcast.
   */
  solve(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("solve", [a, b], {}, options.name);
  }

  /**
   * y = x sorted in ascending order along an axis; equal entries keep their order, NaN comes last.
   *
   * Gradient: g, moved back to the original positions.
   *
   * @param axis axis to sort along
   */
  sort(x: Node, axis: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("sort", [x], { axis }, options.name);
  }

  /**
   * y0, y1, … = x split along `axis` into parts of `sizes`, which add up to the extent; a part may be empty.
   *
   * The op has several results. Read each with getOutput.
   *
   * Gradient: the parts' cotangents, joined; zeros for parts that are not read.
   *
   * @param sizes extents of the parts on the axis
   * @param options.axis axis to split; default 0
   */
  split(x: Node, sizes: Ints, options: Optional<{ axis: Int; name: string }> = {}): Node {
    return this.append("split", [x], { sizes, axis: options.axis }, options.name);
  }

  /**
   * y = √x; NaN for x < 0. At 0 the derivative is infinite.
   *
   * For a complex x, y is the root with Re y ≥ 0. The branch cut is the negative real axis; on it, the sign of the
   * imaginary zero selects the side for value and gradient, as in PyTorch. JAX uses the derivative of one side for
   * both.
   *
   * Gradient: g / 2y.
   */
  sqrt(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("sqrt", [x], {}, options.name);
  }

  /**
   * y = x².
   *
   * Gradient: g · 2x.
   */
  square(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("square", [x], {}, options.name);
  }

  /**
   * y = x without `axes`, each of which must have extent 1; by default, without all axes of extent 1.
   *
   * Gradient: g, reshaped back.
   *
   * @param options.axes axes of extent 1 to remove; default: all of them
   */
  squeeze(x: Node, options: Optional<{ axes: Ints; name: string }> = {}): Node {
    return this.append("squeeze", [x], { axes: options.axes }, options.name);
  }

  /**
   * y = the operands, all of one shape, joined along a new axis at position `axis` of the result.
   *
   * The result has their common dtype.
   *
   * Gradient: for each operand, its part of g.
   *
   * @param options.axis position of the new axis in the result; default 0
   */
  stack(x: readonly Node[], options: Optional<{ axis: Int; name: string }> = {}): Node {
    return this.append("stack", [...x], { axis: options.axis }, options.name);
  }

  /**
   * y[…, t, k] = Σ window[j] x[…, t · stride + j] exp(−2πi j k / n) over j: [… time] → [… frames, ⌊n / 2⌋ + 1].
   *
   * Applies `rfft` to each part of x that the window [w] covers, with n = w points unless `sizes` states another
   * number. x is not padded: to get frames around its ends, `pad` it first. TensorFlow: `signal.stft`. PyTorch and
   * SciPy: `stft`, with the last two axes swapped, and with padding by default. NumPy and JAX: frames and `rfft`.
   *
   * Since opset 2.
   *
   * Gradient: that of rfft, times the window, summed where frames overlap.
   *
   * @param stride one number: distance between the starts of adjacent frames
   * @param options.sizes one number: points of each transform; default: the window's length
   */
  stft(x: Node, window: Node, stride: Ints, options: Optional<{ sizes: Ints; name: string }> = {}): Node {
    return this.append("stft", [x, window], { stride, sizes: options.sizes }, options.name);
  }

  /** y = x, treated as a constant in differentiation. */
  stopGradient(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("stop_gradient", [x], {}, options.name);
  }

  /**
   * One field of a record that is stored as one tensor.
   *
   * The leading axis is split into `total_fields` equal parts, and y is the part `field_index`; the axis remains.
   *
   * Gradient: g in that part, 0 in the others.
   *
   * @param fieldIndex position of the field, from 0
   * @param totalFields number of fields in the record
   */
  structField(x: Node, fieldIndex: Int, totalFields: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("struct_field", [x], { field_index: fieldIndex, total_fields: totalFields }, options.name);
  }

  /**
   * y = a − b, elementwise, with NumPy broadcasting.
   *
   * Gradient: da = g, db = −g.
   */
  sub(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("sub", [a, b], {}, options.name);
  }

  /**
   * y = x − scalar.
   *
   * Gradient: g.
   *
   * @param scalar constant operand
   */
  subScalar(x: Node, scalar: Float, options: Optional<{ name: string }> = {}): Node {
    return this.append("sub_scalar", [x], { scalar }, options.name);
  }

  /**
   * y = Σ x over axes. Integers and bool are summed in int64, float16 in float32.
   *
   * Gradient: g, broadcast back over the axes.
   *
   * @param options.axes axes to reduce; default: all
   * @param options.keepdims whether to keep the reduced axes, with extent 1; default false
   */
  sum(x: Node, options: Optional<{ axes: Ints; keepdims: boolean; name: string }> = {}): Node {
    return this.append("sum", [x], { axes: options.axes, keepdims: options.keepdims }, options.name);
  }

  /**
   * u, s, vh with x = u diag(s) vh: s ≥ 0 descending, the columns of u and rows of vh orthonormal; reduced form.
   *
   * x [batch…, m, n], u [batch…, m, k], s [batch…, k], real, vh [batch…, k, n], k = min(m, n). If you read only s,
   * vectors are not computed. The gradient of s alone is valid at equal values, too, if your function treats these
   * alike.
   *
   * LAPACK chooses the signs, or for complex vectors the phases, of each column of u together with the row of vh. Use u
   * and vh only in functions that do not depend on them.
   *
   * Singular values closer than 16 n ε ‖x‖, with n the larger extent, count as equal, and smaller ones count as 0. A
   * value of 0 gets no gradient, like `abs` at 0. For a matrix with equal or zero values, the gradient of a function of
   * u or vh is NaN. If `degenerate` is whole, such pairs are left out instead. That is correct if the function depends
   * on whole spaces of vectors only, as a projector and u vh do, and wrong otherwise. Second derivatives are NaN if a
   * pair was left out, and also for s alone if values are equal.
   *
   * A matrix with an infinity or NaN, or for which LAPACK does not converge, gives NaN; the other matrices of the batch
   * are unaffected. Integers give float64; float16 is computed in a wider float and rounded once.
   *
   * PyTorch: `linalg.svd` with full_matrices false. JAX: `linalg.svd`. At a 0, both use whichever vectors LAPACK
   * returned. J. Townsend, Differentiating the singular value decomposition (2016), with 1 / (sⱼ² − sᵢ²) in its partial
   * fractions; Z.-Q. Wan, S.-X. Zhang, arXiv:1909.02659 (2019), on phases.
   *
   * Since opset 2.
   *
   * The op has several results. Read each with getOutput.
   *
   * Gradient: u (diag(ḡs) + (F ∘ (P + Q) + G ∘ (P − Q)) / 2) vh, plus (1 − u uᴴ) ḡu s⁻¹ vh and u s⁻¹ ḡvh (1 − v vᴴ); P,
   * Q = uᴴ ḡu, vh ḡvhᴴ minus their adjoints, Fᵢⱼ = 1 / (sⱼ − sᵢ), Gᵢⱼ = 1 / (sⱼ + sᵢ).
   *
   * @param options.degenerate gradient through vectors of equal values; nan: NaN; whole: assume that only whole spaces
   *   matter; default "nan"
   */
  svd(x: Node, options: Optional<{ degenerate: "nan" | "whole"; name: string }> = {}): Node {
    return this.append("svd", [x], { degenerate: options.degenerate }, options.name);
  }

  /**
   * y = v f(diag w) vᵀ, a function of the symmetric part (x + xᵀ) / 2 = v diag(w) vᵀ of square matrices.
   *
   * f is applied to the eigenvalues: the square root, its reciprocal, the logarithm or the exponential. The gradient
   * uses divided differences, which have a limit where eigenvalues meet. So it is exact at equal eigenvalues, and so is
   * the second derivative; v f vᵀ written with `eigh` has no gradient there. A matrix gives NaN if f is not finite at
   * an eigenvalue (such as log at 0 or below), if it contains an infinity or NaN, or if LAPACK does not converge; the
   * other matrices of the batch are unaffected. Integers give float64; float16 is computed in a wider float and rounded
   * once.
   *
   * SciPy: `sqrtm`, `logm` and `expm` of symmetric matrices. PyTorch and JAX have no such function with a gradient at
   * equal eigenvalues, except for exp. N. J. Higham, Functions of Matrices (2008), theorem 3.11 of Daleckii and Krein.
   *
   * Since opset 2.
   *
   * Gradient: v (D ∘ (vᵀ (g + gᵀ) v / 2)) vᵀ, Dᵢⱼ = (f(wᵢ) − f(wⱼ)) / (wᵢ − wⱼ), or f′(wᵢ) if wᵢ = wⱼ.
   *
   * @param function_ function of the eigenvalues; rsqrt is 1 / sqrt
   */
  symmetricFunction(
    x: Node,
    function_: "sqrt" | "rsqrt" | "log" | "exp",
    options: Optional<{ name: string }> = {},
  ): Node {
    return this.append("symmetric_function", [x], { function: function_ }, options.name);
  }

  /**
   * y[i, j, …] = x[index[i, j, …], j, …] for axis 0; likewise for the other axes. Same as NumPy's take_along_axis.
   *
   * `index` has x's rank. On the axis, y has the extent of the index; on the other axes, x and the index broadcast.
   * Indices lie in [0, extent); with `from_end`, in [−extent, extent), and negative ones count from the end. PyTorch:
   * `take_along_dim`, which rejects negative indices. JAX: `take_along_axis`, which accepts them.
   *
   * Gradient: g, added where x was read: repeated indices accumulate; none for index.
   *
   * @param options.axis axis to index; default 0
   * @param options.fromEnd whether negative indices count from the end; −1 is the last; since opset 2; default false
   */
  takeAlong(x: Node, index: Node, options: Optional<{ axis: Int; fromEnd: boolean; name: string }> = {}): Node {
    return this.append("take_along", [x, index], { axis: options.axis, from_end: options.fromEnd }, options.name);
  }

  /**
   * y = tan x.
   *
   * Gradient: g · (1 + y²).
   */
  tan(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("tan", [x], {}, options.name);
  }

  /**
   * y = tanh x.
   *
   * Gradient: g · (1 − y²).
   */
  tanh(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("tanh", [x], {}, options.name);
  }

  /**
   * y = x repeated `repeats` times along each axis.
   *
   * As in NumPy, the shorter of shape and repeats is padded with leading ones.
   *
   * Gradient: g, summed over the repetitions.
   *
   * @param repeats number of repetitions along each axis
   */
  tile(x: Node, repeats: Ints, options: Optional<{ name: string }> = {}): Node {
    return this.append("tile", [x], { repeats }, options.name);
  }

  /**
   * values, indices = the k largest entries of x along `axis`, largest first, and their int64 positions.
   *
   * Among equal entries, the one with the lowest index comes first; NaN counts as largest.
   *
   * The op has several results. Read each with getOutput.
   *
   * Gradient: the cotangent of the values, moved back to the original positions; none for indices.
   *
   * @param k number of entries; at most the axis's extent
   * @param options.axis axis to search; default 0
   */
  topk(x: Node, k: Int, options: Optional<{ axis: Int; name: string }> = {}): Node {
    return this.append("topk", [x], { k, axis: options.axis }, options.name);
  }

  /**
   * y = x with its axes permuted.
   *
   * y's axis i is x's axis axes[i]. Without `axes`, the last two axes are swapped (born reverses all axes: for that,
   * pass `axes`). If x does not have rank 2, two entries swap those two axes (minima).
   *
   * Gradient: g, permuted back.
   *
   * @param options.axes permutation, or two axes to swap; default: the last two
   */
  transpose(x: Node, options: Optional<{ axes: Ints; name: string }> = {}): Node {
    return this.append("transpose", [x], { axes: options.axes }, options.name);
  }

  /**
   * y such that t y = b, or tᵀ y = b with `transpose`; t is the lower (or upper) triangle of a, with the diagonal.
   *
   * a [batch…, n, n]: the other triangle is ignored, whatever it contains. b [n], [batch…, n] or [batch…, n, m], read
   * as in `solve`. Batch axes broadcast. If the diagonal contains a 0, y is infinite or NaN. Integers are computed in
   * float64, float16 in float32.
   *
   * M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008).
   *
   * Gradient: db = t⁻ᴴ g, da = the triangle of −(db yᴴ); with transpose, db = (conj t)⁻¹ g, da that of −(conj y dbᵀ).
   *
   * @param options.lower whether to read the lower triangle of a; false: the upper one; default true
   * @param options.transpose whether to solve with the triangle's transpose; default false
   */
  triangularSolve(
    a: Node,
    b: Node,
    options: Optional<{ lower: boolean; transpose: boolean; name: string }> = {},
  ): Node {
    return this.append(
      "triangular_solve",
      [a, b],
      { lower: options.lower, transpose: options.transpose },
      options.name,
    );
  }

  /**
   * y = x on and below a diagonal of the last two axes, 0 above: y[…, i, j] = x[…, i, j] where j − i ≤ offset.
   *
   * Gradient: tril(g).
   *
   * @param options.offset diagonal: 0 is the main one, positive above it, negative below it; default 0
   */
  tril(x: Node, options: Optional<{ offset: Int; name: string }> = {}): Node {
    return this.append("tril", [x], { offset: options.offset }, options.name);
  }

  /**
   * y = x on and above a diagonal of the last two axes, 0 below: y[…, i, j] = x[…, i, j] where j − i ≥ offset.
   *
   * Gradient: triu(g).
   *
   * @param options.offset diagonal: 0 is the main one, positive above it, negative below it; default 0
   */
  triu(x: Node, options: Optional<{ offset: Int; name: string }> = {}): Node {
    return this.append("triu", [x], { offset: options.offset }, options.name);
  }

  /**
   * y = a / b rounded towards 0, elementwise with broadcasting: C's /. Integer division by 0 gives 0.
   *
   * `rem` is the remainder. PyTorch: `div` with rounding_mode trunc. JAX: `lax.div` of integers, which gives −1 for
   * division by 0.
   *
   * Since opset 2.
   */
  truncDiv(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("trunc_div", [a, b], {}, options.name);
  }

  /**
   * y = x with axes of extent 1 inserted; `axes` are their positions in the result.
   *
   * Gradient: g, reshaped back.
   *
   * @param options.axes positions of the new axes in the result; must be given
   */
  unsqueeze(x: Node, options: Optional<{ axes: Ints; name: string }> = {}): Node {
    return this.append("unsqueeze", [x], { axes: options.axes }, options.name);
  }

  /**
   * y = x with the box that begins at `starts`, one entry for each axis, replaced by `update`.
   *
   * The box has the shape of `update`. A negative start counts from the end, as in slice. A box that extends beyond x
   * is an error; it is not moved. The result has the common dtype of x and update.
   *
   * Gradient: dx = g, 0 in the box; d update = g in the box.
   *
   * @param starts first position of the update on each axis
   */
  updateSlice(x: Node, update: Node, starts: Ints, options: Optional<{ name: string }> = {}): Node {
    return this.append("update_slice", [x, update], { starts }, options.name);
  }

  /**
   * y = x with the box that begins at `starts` replaced by `updates`; `starts` is an operand, int64 [rank].
   *
   * The box has the shape of `updates`. Each start, negative ones included, is moved into [0, extent − size], so that
   * the box fits into x. The result has the common dtype of x and updates. JAX: `lax.dynamic_update_slice`, which first
   * counts negative starts from the end. PyTorch: `slice_scatter`, which takes a start on one axis, as a number.
   *
   * Since opset 2.
   *
   * Gradient: dx = g, 0 in the box; d updates = g in the box; none for starts.
   */
  updateSliceAt(x: Node, updates: Node, starts: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("update_slice_at", [x, updates, starts], {}, options.name);
  }

  /**
   * y = Σ (x − mean x)² / (n − ddof) over axes, n the number of elements reduced. Integers give float64.
   *
   * Computed in two passes, the mean first, so that a large mean costs no digits. If n ≤ ddof, the division is by zero
   * as in NumPy: the result is NaN or infinity.
   *
   * Gradient: g · 2 (x − mean x) / (n − ddof).
   *
   * @param options.axes axes to reduce; default: all
   * @param options.keepdims whether to keep the reduced axes, with extent 1; default false
   * @param options.ddof number subtracted from n; 1 for the unbiased estimate; default 0
   */
  var(x: Node, options: Optional<{ axes: Ints; keepdims: boolean; ddof: Int; name: string }> = {}): Node {
    return this.append(
      "var",
      [x],
      { axes: options.axes, keepdims: options.keepdims, ddof: options.ddof },
      options.name,
    );
  }

  /**
   * y = on_true where cond is true, else on_false; all three broadcast. Nonzero numbers in cond are true.
   *
   * Each branch gets the cotangent where it was chosen and exactly zero elsewhere, whatever the other branch contains.
   *
   * Gradient: d on_true = where(cond, g, 0), d on_false = where(cond, 0, g); none for cond.
   */
  where(cond: Node, onTrue: Node, onFalse: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("where", [cond, onTrue, onFalse], {}, options.name);
  }

  /**
   * Repeats carries = body(consts, carries) while condition(consts, carries) is true, at most `max_steps` times.
   *
   * The condition returns a bool []. It is evaluated before each step, and after the last step that is allowed.
   * Results: the carries; `steps`, int64 [], the number of steps that ran; `finished`, bool [], false if the loop
   * stopped at the bound. JAX: `lax.while_loop`, which has no bound and supports forward-mode derivatives only.
   * PyTorch: a Python loop.
   *
   * Since opset 2.
   *
   * The op has several results. Read each with getOutput.
   *
   * Gradient: backward over the steps that ran, recomputing each; the condition and `steps` have none.
   *
   * @param condition function of consts and carries; returns whether to continue, a bool []
   * @param body function of consts and carries; returns the next carries
   * @param options.carries number of operands, the last ones, that are initial values of carries; default 0
   * @param maxSteps maximum number of steps
   */
  while(
    operands: readonly Node[],
    condition: GraphFunction,
    body: GraphFunction,
    maxSteps: Int,
    options: Optional<{ carries: Int; name: string }> = {},
  ): Node {
    return this.append(
      "while",
      [...operands],
      { condition, body, carries: options.carries, max_steps: maxSteps },
      options.name,
    );
  }

  /**
   * y = x · log(1 + y), with broadcasting, accurate for small y; 0 where x = 0, unless y is NaN.
   *
   * Same as in SciPy and PyTorch (`special.xlog1py`); JAX gives 0 for NaN, too. The derivative with respect to x is
   * log(1 + y): −∞ where y = −1, and NaN where y < −1. The derivative with respect to y is x / (1 + y), and 0 where
   * x = 0 and y = −1.
   *
   * Since opset 2.
   *
   * Gradient: dx = g · log(1 + y); dy = g · x / (1 + y), and 0 where x = 0 and y = −1.
   */
  xlog1py(x: Node, y: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("xlog1py", [x, y], {}, options.name);
  }

  /**
   * y = x · log y, with broadcasting; 0 where x = 0, unless y is NaN.
   *
   * Same as in SciPy and PyTorch; JAX gives 0 for NaN, too. The derivative with respect to x is log y: −∞ where y = 0,
   * so that of xlogy(x, x) at 0 is, too. Where x = 0 and y < 0 it is NaN, as in JAX (in PyTorch it is 0). The
   * derivative with respect to y is x / y, and 0 where both are 0.
   *
   * Since opset 2.
   *
   * Gradient: dx = g · log y; dy = g · x / y, and 0 where x = y = 0.
   */
  xlogy(x: Node, y: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("xlogy", [x, y], {}, options.name);
  }

  /**
   * y = ζ(s, q) = Σ (q + k)⁻ˢ over k ≥ 0, with broadcasting, for s > 1: the Hurwitz zeta function.
   *
   * ∞ at s = 1 and at q = 0, −1, −2, …; NaN for s < 1, and for q < 0 if s is not a whole number. For q > 0 accurate to
   * 8 ulp (on NumPy, it is SciPy's function); for q < 0 as accurate as `polygamma`. Derivatives exist to any order.
   * With respect to q, they are as accurate as y. With respect to s, for which PyTorch and JAX have none, they are
   * accurate to 1e-12 of the terms that they sum. With respect to s and then q, they are accurate to 1 ulp / (s − 1).
   * SciPy and PyTorch: `special.zeta`. JAX: `zeta`.
   *
   * Since opset 2.
   *
   * Gradient: ds = −g · Σ log(q + k) (q + k)⁻ˢ, dq = −g · s · zeta(s + 1, q).
   */
  zeta(s: Node, q: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("zeta", [s, q], {}, options.name);
  }
}
