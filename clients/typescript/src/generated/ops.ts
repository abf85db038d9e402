/** The ops, each as a method. Written by `python -m clients.ops` from the registry: edit that. */

import type { Dtype } from "../dtypes.js";
import type { GraphFunction, Node, StatedAttributes } from "../graph.js";
import type { TensorLike } from "../tensor.js";

/** Attributes whose values are tensors. */
export const TENSOR_ATTRIBUTES: ReadonlySet<string> = new Set(["value"]);
/** Attributes whose values are whole numbers, or lists of these. */
export const WHOLE_ATTRIBUTES: ReadonlySet<string> = new Set([
  "at_once", "axes", "axis", "carries", "chunks", "classes", "ddof", "dilation", "field_index", "groups", "index",
  "indices", "k", "kernel_size", "key_index", "length", "max_steps", "offset", "order", "original_shape",
  "output_padding", "pad_width", "padding", "padding_idx", "repeats", "segments", "sequences", "shape", "shifts",
  "sizes", "starts", "steps", "stops", "stride", "total_fields", "total_keys",
]);
/** The opset that graphs have an op, or `op.attribute`, since, where it is not the first. */
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

/** A whole number; a bigint where a number would not hold it. */
export type Int = number | bigint;
export type Ints = readonly Int[];
/** A number; a bigint for a whole one that a number would not hold. */
export type Float = number | bigint;
/** A dtype by its name. A server may know more of them than this client. */
export type DtypeName = Dtype | (string & {});
/** What need not be stated. */
export type Optional<T> = { readonly [K in keyof T]?: T[K] | undefined };

/** The methods of graphs that write a node each. */
export abstract class Ops {
  /** An op by its name, called by a method that the program calls. Operands at the end may be left out. */
  protected abstract append(
    op: string,
    operands: readonly (Node | undefined)[],
    attrs: StatedAttributes,
    name?: string,
  ): Node;

  /**
   * y = |x|, real where x is complex. At 0 the gradient is 0, in every order.
   *
   * Gradient: g · sign x; of a complex x, g · x / |x|.
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
   * As many windows as `sizes` say, on as many of the last axes. PyTorch's `adaptive_avg_pool1d`, 2d and 3d; JAX has
   * none.
   *
   * Since opset 2.
   *
   * Gradient: g / (elements of the window) to each of these.
   *
   * @param sizes how many windows there are on each of the last axes
   */
  adaptiveAvgPool(x: Node, sizes: Ints, options: Optional<{ name: string }> = {}): Node {
    return this.append("adaptive_avg_pool", [x], { sizes }, options.name);
  }

  /**
   * y[…, i] = the largest element of window i, from ⌊i · n / size⌋ to ⌈(i + 1) · n / size⌉; NaN where it holds one.
   *
   * As many windows as `sizes` say, on as many of the last axes. PyTorch's `adaptive_max_pool1d`, 2d and 3d; JAX has
   * none.
   *
   * Since opset 2.
   *
   * Gradient: g, added at the first maximum (in row-major order) of each window.
   *
   * @param sizes how many windows there are on each of the last axes
   */
  adaptiveMaxPool(x: Node, sizes: Ints, options: Optional<{ name: string }> = {}): Node {
    return this.append("adaptive_max_pool", [x], { sizes }, options.name);
  }

  /**
   * y = a + b, elementwise, broadcasting as NumPy.
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
   * @param scalar the constant
   */
  addScalar(x: Node, scalar: Float, options: Optional<{ name: string }> = {}): Node {
    return this.append("add_scalar", [x], { scalar }, options.name);
  }

  /**
   * y = whether all elements over axes are true; a number is true unless it is 0. True over nothing.
   *
   * @param options.axes axes to reduce over; absent: all
   * @param options.keepdims keep the reduced axes, with extent 1; false unless stated
   */
  all(x: Node, options: Optional<{ axes: Ints; keepdims: boolean; name: string }> = {}): Node {
    return this.append("all", [x], { axes: options.axes, keepdims: options.keepdims }, options.name);
  }

  /**
   * y = the angle of x in [−π, π]: atan2(Im x, Re x); 0 or π for a real x. NaN where a part is NaN.
   *
   * The cut is the negative real axis, and the sign of the imaginary zero says from which side it is seen (C99's carg).
   * At 0 the gradient is 0, as in PyTorch; JAX's is NaN.
   *
   * Since opset 2.
   *
   * Gradient: i · g · x / |x|², 0 at 0; none for a real x.
   */
  angle(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("angle", [x], {}, options.name);
  }

  /**
   * y = whether any element over axes is true; a number is true unless it is 0. False over nothing.
   *
   * @param options.axes axes to reduce over; absent: all
   * @param options.keepdims keep the reduced axes, with extent 1; false unless stated
   */
  any(x: Node, options: Optional<{ axes: Ints; keepdims: boolean; name: string }> = {}): Node {
    return this.append("any", [x], { axes: options.axes, keepdims: options.keepdims }, options.name);
  }

  /**
   * Evenly spaced numbers: y[i] = start + i · step, for as long as they lie before stop.
   *
   * Result [⌈(stop − start) / step⌉], at least 0. As NumPy's arange, but exact: integer dtypes need a whole start and
   * step, and a range that they hold.
   *
   * @param options.start the first number; 0.0 unless stated
   * @param stop the end, not included
   * @param options.step the distance; negative to count down, not 0; 1.0 unless stated
   * @param options.dtype the result's dtype; "int64" unless stated
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
   * y = position along `axis` of the largest element, int64: the first of equal ones, the first NaN before all.
   *
   * @param axis the axis to search
   * @param options.keepdims keep the reduced axes, with extent 1; false unless stated
   */
  argmax(x: Node, axis: Int, options: Optional<{ keepdims: boolean; name: string }> = {}): Node {
    return this.append("argmax", [x], { axis, keepdims: options.keepdims }, options.name);
  }

  /**
   * y = position along `axis` of the smallest element, int64: the first of equal ones, the first NaN before all.
   *
   * @param axis the axis to search
   * @param options.keepdims keep the reduced axes, with extent 1; false unless stated
   */
  argmin(x: Node, axis: Int, options: Optional<{ keepdims: boolean; name: string }> = {}): Node {
    return this.append("argmin", [x], { axis, keepdims: options.keepdims }, options.name);
  }

  /**
   * y = the int64 positions that put x in ascending order along an axis; equal entries keep theirs, NaN last.
   *
   * @param axis the axis to sort along
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
   * y = the angle in [−π, π] of the point with abscissa b and ordinate a, broadcasting.
   *
   * At a = b = 0 the value is NumPy's (0 or ±π) and the derivatives are NaN: there are none. At infinity they are 0.
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
   * y = softmax(q kᵀ · scale + mask) v, for each query the mean of the values weighted by how its key fits.
   *
   * q [..., queries, d], k [..., keys, d], v [..., keys, width], y [..., queries, width]; leading axes broadcast. The
   * mask broadcasts to [..., queries, keys]: bool (true = keep) or float (added). `causal` also hides key j from query
   * i where j > i. A query that is left no key has NaN. Scores of 16 MiB and more that outweigh q, k and v are not held
   * in memory, but for tangents and second derivatives. With `grouped`, the heads of q, on its axis -3, are a multiple
   * of those of k and v, each of which serves as many, side by side: PyTorch's enable_gqa, and what JAX's
   * dot_product_attention does where there are fewer. A. Vaswani et al., "Attention is all you need" (2017); J. Ainslie
   * et al., "GQA" (2023).
   *
   * Gradient: with p = softmax(…), dp = g vᵀ, ds = p · (dp − Σ dp·p): dq = scale · ds k, dk = scale · dsᵀ q, dv = pᵀ g.
   *
   * @param options.scale what q kᵀ is multiplied by; absent: 1/√d
   * @param options.causal hide key j from query i where j > i; false unless stated
   * @param options.grouped whether each head of k and v serves several of q, on the axis -3; since opset 2; false
   *   unless stated
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
   * Extents as those of max_pool1d. What a window of a `ceiling` has beyond the padding does not count. PyTorch's
   * `avg_pool1d`, whose `ceil_mode` is `ceiling`; Flax's `avg_pool`, without a ceiling.
   *
   * Since opset 2.
   *
   * Gradient: g / (taps of the window) to each of its elements.
   *
   * @param kernelSize extents of the windows along each spatial axis
   * @param options.stride distance of the windows along each spatial axis; absent: the kernel size
   * @param options.padding added on both sides of each axis, at most half the kernel size; [0] unless stated
   * @param options.ceiling whether a window that reaches beyond the padding counts, if it begins before that; false
   *   unless stated
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
   * x [..., h, w]. Integers give float64. As PyTorch's avg_pool2d.
   *
   * Gradient: conv_transpose2d of g / kernel size with ones.
   *
   * @param kernelSize extents of the windows along each spatial axis
   * @param options.stride distance of the windows along each spatial axis; absent: the kernel size
   * @param options.padding added on both sides of each spatial axis, at most half the kernel size; [0, 0] unless stated
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
   * Integers give float64. Extents as those of max_pool1d. What a window of a `ceiling` has beyond the padding does not
   * count. PyTorch's `avg_pool3d`, whose `ceil_mode` is `ceiling`; Flax's `avg_pool`, without a ceiling.
   *
   * Since opset 2.
   *
   * Gradient: g / (taps of the window) to each of its elements.
   *
   * @param kernelSize extents of the windows along each spatial axis
   * @param options.stride distance of the windows along each spatial axis; absent: the kernel size
   * @param options.padding added on both sides of each axis, at most half the kernel size; [0, 0, 0] unless stated
   * @param options.ceiling whether a window that reaches beyond the padding counts, if it begins before that; false
   *   unless stated
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
   * y = (x − mean) / √(variance + eps) · weight + bias, mean and variance of each feature over all other axes.
   *
   * `axis` is that of the features; weight and bias have its extent. These are the statistics of the operand (as in
   * training), with n in the denominator. S. Ioffe, C. Szegedy, "Batch normalization" (2015). CJC normalises the whole
   * tensor: reshape it to [n, 1].
   *
   * Gradient: as of layer_norm, over all axes but the features'.
   *
   * @param options.axis the axis of the features; 1 unless stated
   * @param options.eps added to the variance or mean square; positive; 1e-05 unless stated
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
   * y = (x − mean) / √(variance + eps) · weight + bias, by statistics that are given, as when a network is used.
   *
   * `axis` is that of the features; all other operands have its extent. PyTorch's `batch_norm` with training false;
   * Flax's `BatchNorm` with use_running_average, whose features are last.
   *
   * Since opset 2.
   *
   * Gradient: with r = 1 / √(variance + eps): dx = g · weight · r, and those of all others as the formula says.
   *
   * @param options.axis the axis of the features; 1 unless stated
   * @param options.eps added to the variance or mean square; positive; 1e-05 unless stated
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
   * y of `batch_norm`, and the running mean and variance, moved on: (1 − momentum) · old + momentum · this batch's.
   *
   * `axis` is that of the features; all other operands have its extent. The variance that is moved to has n − 1 in the
   * denominator, that of y has n. Three results, read through get_output. PyTorch's `batch_norm` with training true,
   * whose running statistics are written in place, and carry no gradient; Flax's `BatchNorm`, whose momentum is 1 −
   * this one, and whose running variance has n.
   *
   * Since opset 2.
   *
   * Several results, each read through getOutput.
   *
   * Gradient: as of batch_norm; of the running statistics as their formula.
   *
   * @param options.axis the axis of the features; 1 unless stated
   * @param options.eps added to the variance or mean square; positive; 1e-05 unless stated
   * @param options.momentum how much of the new statistics the running ones take; 0.1 unless stated
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
   * loss = −y · log σ(x) − (1 − y) · log σ(−x), binary cross-entropy, elementwise on equal shapes; then the mean.
   *
   * x are logits, y probabilities. Exact in both tails: the logarithm of σ is taken in one step.
   *
   * Gradient: dx = g · (σ(x) − y) / n, dy = −g · x / n.
   *
   * @param options.reduction what is made of the single losses; none: they are the result; "mean" unless stated
   */
  bceWithLogits(x: Node, y: Node, options: Optional<{ reduction: "mean" | "sum" | "none"; name: string }> = {}): Node {
    return this.append("bce_with_logits", [x, y], { reduction: options.reduction }, options.name);
  }

  /**
   * y = I(x; a, b) = ∫₀ˣ tᵃ⁻¹ (1 − t)ᵇ⁻¹ dt / B(a, b), broadcasting, for 0 ≤ x ≤ 1, and a, b > 0: SciPy's, JAX's.
   *
   * To 256 units, SciPy's own on NumPy. Derivatives by all operands, of any order: by x to 1e-12 of their value, by a
   * and b, of which JAX has none, to 1e-11. PyTorch has no such function.
   *
   * Since opset 2.
   *
   * Gradient: da, db = g · ∂I/∂a, g · ∂I/∂b by an integral; dx = g · xᵃ⁻¹ (1 − x)ᵇ⁻¹ / B(a, b).
   */
  betainc(a: Node, b: Node, x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("betainc", [a, b, x], {}, options.name);
  }

  /**
   * y = log |B(a, b)| = log |Γ(a) Γ(b) / Γ(a + b)|, broadcasting. To 10 units of y, or of 1 where |y| is less.
   *
   * Units are those in the last place of a float64, on NumPy. Where an operand is large, `lgamma` would leave few
   * digits of y, and SciPy's own loses up to 9 of 16. Where an operand is not positive, y is SciPy's; at infinity it is
   * −∞.
   *
   * The derivative by a is as accurate, or, where b < a < 100, to 1e-15 · a / b of its value; and likewise by b.
   *
   * Gradient: da = g · (digamma(a) − digamma(a + b)), db = g · (digamma(b) − digamma(a + b)).
   */
  betaln(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("betaln", [a, b], {}, options.name);
  }

  /**
   * y = x repeated along new leading axes and along axes of extent 1, to `shape`, by NumPy's rule.
   *
   * Gradient: g, summed over the axes that were repeated.
   *
   * @param options.shape the result's shape; [] unless stated
   */
  broadcastTo(x: Node, options: Optional<{ shape: Ints; name: string }> = {}): Node {
    return this.append("broadcast_to", [x], { shape: options.shape }, options.name);
  }

  /**
   * body(operands).
   *
   * With `derivative`, a function of the operands, the results and the cotangents of the results, which gives one
   * cotangent for each float operand: that is differentiated by, and nothing else. With `recompute`, nothing inside is
   * kept for the way back, which computes the body once more. With `derivative`, JAX's `custom_vjp` and PyTorch's
   * `autograd.Function`, whose rules are given what they have kept; with `recompute`, JAX's and PyTorch's `checkpoint`.
   *
   * Since opset 2.
   *
   * Several results, each read through getOutput.
   *
   * Gradient: that of the body, or its own `derivative`.
   *
   * @param body of the operands
   * @param options.derivative of operands, results and cotangents: a cotangent for each float operand; absent: the
   *   body's
   * @param options.recompute keep nothing inside for the way back, but compute it again; false unless stated
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
   * y = x in another dtype, as NumPy's astype: fractions are cut off towards zero, nonzero is true.
   *
   * float → float is differentiable; through integers and bool there is no path. A real x becomes complex; a complex
   * one never real, of which `real` says what is meant.
   *
   * Gradient: g, cast back.
   *
   * @param dtype the result's dtype
   */
  cast(x: Node, dtype: DtypeName, options: Optional<{ name: string }> = {}): Node {
    return this.append("cast", [x], { dtype }, options.name);
  }

  /**
   * y = the operands one after the other along `axis`; elsewhere their extents are the same.
   *
   * The result has their common dtype. `sizes`, where given, must be their extents on the axis.
   *
   * Gradient: g, cut apart.
   *
   * @param options.axis the axis to join along; 0 unless stated
   * @param options.sizes the operands' extents on the axis, checked where given
   */
  cat(x: readonly Node[], options: Optional<{ axis: Int; sizes: Ints; name: string }> = {}): Node {
    return this.append("cat", [...x], { axis: options.axis, sizes: options.sizes }, options.name);
  }

  /**
   * y[…, i, j] = (Σ |a[…, i, k] − b[…, j, k]|ᵖ)^(1/p) over k: the distance of each row of a from each of b.
   *
   * a [..., m, d], b [..., n, d], y [..., m, n]; leading axes broadcast. Where two rows coincide, the gradient is 0,
   * and so is that of the gradient. Differences are taken before they are squared, so that no digits are lost:
   * PyTorch's `cdist` with compute_mode donot_use_mm_for_euclid_dist; JAX has none.
   *
   * Since opset 2.
   *
   * Gradient: da = Σ g · sign(a − b) · (|a − b| / y)^(p − 1), db likewise, and 0 where y = 0.
   *
   * @param options.p the exponent; positive; 2.0 unless stated
   */
  cdist(a: Node, b: Node, options: Optional<{ p: Float; name: string }> = {}): Node {
    return this.append("cdist", [a, b], { p: options.p }, options.name);
  }

  /** y = ⌈x⌉: up to the next whole number. */
  ceil(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("ceil", [x], {}, options.name);
  }

  /**
   * y lower triangular, its diagonal positive, with y yᴴ = (x + xᴴ) / 2, for matrices on the last two axes.
   *
   * x is made symmetric (Hermitian) first, as in JAX: so the gradient is symmetric, and holds along every direction.
   * A matrix that is not positive definite gives a matrix of NaN; the others of its batch are as if it were not there.
   * Integers give float64; float16 is computed in a wider float, and rounded once.
   * I. Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527 (2016), eq. 9.
   *
   * Gradient: (s + sᴴ) / 2, where s = y⁻ᴴ Φ(yᴴ g) y⁻¹ and Φ takes the lower triangle, half the diagonal.
   */
  cholesky(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("cholesky", [x], {}, options.name);
  }

  /**
   * y0, y1, … = x cut along `axis` into at most `chunks` parts of extent ⌈n / chunks⌉, the last of what is left.
   *
   * As PyTorch: there may be fewer parts than asked for (6 entries in 4 chunks: 2, 2, 2); an empty axis gives `chunks`
   * empty parts. Several results, read through get_output.
   *
   * Several results, each read through getOutput.
   *
   * Gradient: the parts' cotangents, joined; zeros for parts that are not read.
   *
   * @param chunks the most parts to cut into
   * @param options.axis the axis that is cut; 0 unless stated
   */
  chunk(x: Node, chunks: Int, options: Optional<{ axis: Int; name: string }> = {}): Node {
    return this.append("chunk", [x], { chunks, axis: options.axis }, options.name);
  }

  /**
   * y = x, but at least min and at most max; either bound may be absent. Where min > max, y is max.
   *
   * NaN stays NaN, and takes the gradient. Integers keep their dtype where it holds the bounds that there
   * are: whole numbers within its range; else they give float64.
   *
   * Gradient: g where min ≤ x ≤ max or x is NaN, else 0.
   *
   * @param options.min the lower bound; absent: none
   * @param options.max the upper bound; absent: none
   */
  clamp(x: Node, options: Optional<{ min: Float; max: Float; name: string }> = {}): Node {
    return this.append("clamp", [x], { min: options.min, max: options.max }, options.name);
  }

  /**
   * The entries of x along `axis` where `mask` [extent] is true, k of them; and how many there are: int64 [].
   *
   * k is stated, and may be more than there are, or fewer: what is beyond k is cut, and the count tells; behind it
   * lies `fill`. Two results, read through get_output. JAX's and NumPy's `compress`, of which JAX's takes a size and a
   * fill_value, too; PyTorch's x[mask], which has as many entries as there are.
   *
   * Since opset 2.
   *
   * Several results, each read through getOutput.
   *
   * Gradient: g to the entries taken; none for mask.
   *
   * @param k how many entries there are to be
   * @param options.axis the axis that the mask is of; 0 unless stated
   * @param options.fill what lies behind the count; 0.0 unless stated
   * @param options.fillAs an infinity or NaN, in place of `fill`; of a float dtype
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
   * then(operands), where the predicate, a bool [], holds; else otherwise(operands). Only one of them runs.
   *
   * Both give results of the same types. JAX's `lax.cond`, PyTorch's `cond`.
   *
   * Since opset 2.
   *
   * Several results, each read through getOutput.
   *
   * Gradient: that of the function that ran; the other adds exact zeros.
   *
   * @param then of the operands behind the predicate, where that holds
   * @param otherwise of the same, where it does not
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
   * y = s₀ / sₖ₋₁, the condition in the 2-norm: the largest over the smallest singular value.
   *
   * x [batch…, m, n], y [batch…]. Infinite for a matrix of lower rank, as far as rounding leaves a 0; NaN for one of
   * zeros, or that holds an infinity or NaN. Integers give float64; float16 is computed in float32, and rounded once.
   * PyTorch's, JAX's and NumPy's `linalg.cond` with p absent.
   *
   * Since opset 2.
   *
   * Gradient: that of svd, whose vectors are those of s₀ and sₖ₋₁: g y (u₀ v₀ᴴ / s₀ − uₖ₋₁ vₖ₋₁ᴴ / sₖ₋₁).
   */
  condNumber(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("cond_number", [x], {}, options.name);
  }

  /**
   * y = conj x, the imaginary part negated; a real x itself. PyTorch's, JAX's and NumPy's `conj`.
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
   * @param value the tensor
   */
  constant(value: TensorLike, options: Optional<{ name: string }> = {}): Node {
    return this.append("constant", [], { value }, options.name);
  }

  /**
   * y[n, o, i] = Σ x[n, c, i·s + a·d − p] · kernel[o, c, a] + bias[o], a cross-correlation.
   *
   * x [n, channels, w], zero outside; kernel [features, channels / groups, kw]; y [n, features, w'] with
   * w' = ⌊(w + 2p − d·(kw − 1) − 1) / s⌋ + 1. Feature o sees the channels of its own group. As PyTorch's conv1d.
   *
   * Gradient: dx = the transposed convolution of g, d kernel = x convolved with g, d bias = g summed.
   *
   * @param options.stride distance of the windows along each spatial axis; [1] unless stated
   * @param options.padding zeros put on both sides of each spatial axis; [0] unless stated
   * @param options.dilation distance of the kernel's taps along each spatial axis; [1] unless stated
   * @param options.groups how many equal parts the channels are cut into, each with its own kernels; 1 unless stated
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
   * x [n, channels, h, w], zero outside; kernel [features, channels / groups, kh, kw]; y [n, features, h', w'] with
   * h' = ⌊(h + 2p − d·(kh − 1) − 1) / s⌋ + 1. Feature o sees the channels of its own group. As PyTorch's conv2d.
   *
   * Gradient: dx = conv_transpose2d(g, kernel), d kernel = conv2d(x, g) over images, d bias = g summed.
   *
   * @param options.stride distance of the windows along each spatial axis; [1, 1] unless stated
   * @param options.padding zeros put on both sides of each spatial axis; [0, 0] unless stated
   * @param options.dilation distance of the kernel's taps along each spatial axis; [1, 1] unless stated
   * @param options.groups how many equal parts the channels are cut into, each with its own kernels; 1 unless stated
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
   * x [n, channels, d, h, w], zero outside; kernel [features, channels / groups, kd, kh, kw]; y [n, features, d', h',
   * w'] with extents as conv2d's, a cross-correlation. As PyTorch's conv3d.
   *
   * Gradient: dx = conv_transpose3d(g, kernel), d kernel = conv3d(x, g) over images, d bias = g summed.
   *
   * @param options.stride distance of the windows along each spatial axis; [1, 1, 1] unless stated
   * @param options.padding zeros put on both sides of each spatial axis; [0, 0, 0] unless stated
   * @param options.dilation distance of the kernel's taps along each spatial axis; [1, 1, 1] unless stated
   * @param options.groups how many equal parts the channels are cut into, each with its own kernels; 1 unless stated
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
   * x [n, channels, w]; kernel [channels, features / groups, kw]; y [n, features, w'], and w' = (w − 1)·s + d·(kw − 1)
   * + 1 + output_padding − 2p. PyTorch's `conv_transpose1d`; JAX's `lax.conv_transpose` with transpose_kernel, which
   * has the kernel's axes in another order, and paddings of the convolution that it widens.
   *
   * Since opset 2.
   *
   * Gradient: dx = conv1d(g, kernel), d kernel = conv1d(g, x) over images, d bias = g summed.
   *
   * @param options.stride distance of the windows along each spatial axis; [1] unless stated
   * @param options.padding zeros put on both sides of each spatial axis; [0] unless stated
   * @param options.dilation distance of the kernel's taps along each spatial axis; [1] unless stated
   * @param options.groups how many equal parts the channels are cut into, each with its own kernels; 1 unless stated
   * @param options.outputPadding extent added at the end of each spatial axis of the result; [0] unless stated
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
   * x [n, channels, h, w]; kernel [channels, features / groups, kh, kw]; y [n, features, h', w'] with
   * h' = (h − 1)·s − 2p + d·(kh − 1) + 1 + output_padding. As PyTorch's conv_transpose2d.
   *
   * Gradient: dx = conv2d(g, kernel), d kernel = conv2d(g, x) over images, d bias = g summed.
   *
   * @param options.stride distance of the windows along each spatial axis; [1, 1] unless stated
   * @param options.padding zeros put on both sides of each spatial axis; [0, 0] unless stated
   * @param options.dilation distance of the kernel's taps along each spatial axis; [1, 1] unless stated
   * @param options.groups how many equal parts the channels are cut into, each with its own kernels; 1 unless stated
   * @param options.outputPadding extent added at the end of each spatial axis of the result; [0, 0] unless stated
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
   * extents as conv_transpose2d's. As PyTorch's conv_transpose3d.
   *
   * Gradient: dx = conv3d(g, kernel), d kernel = conv3d(g, x) over images, d bias = g summed.
   *
   * @param options.stride distance of the windows along each spatial axis; [1, 1, 1] unless stated
   * @param options.padding zeros put on both sides of each spatial axis; [0, 0, 0] unless stated
   * @param options.dilation distance of the kernel's taps along each spatial axis; [1, 1, 1] unless stated
   * @param options.groups how many equal parts the channels are cut into, each with its own kernels; 1 unless stated
   * @param options.outputPadding extent added at the end of each spatial axis of the result; [0, 0, 0] unless stated
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
   * Where a graph runs is the server's choice, so there is nothing to move; the gradient passes through.
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
   * loss = −Σ p · log softmax(logits) over the last axis, which holds the classes; then the mean over all rows.
   *
   * logits [..., classes]; targets are class indices [...] of an integer dtype (p is 1 at the index), or the
   * distribution p itself, float, of the logits' shape. Indices lie in [0, classes).
   *
   * Gradient: d logits = g · (softmax(logits) · Σ p − p) / rows, d targets = −g · log softmax(logits) / rows if float.
   *
   * @param options.reduction what is made of the single losses; none: they are the result; "mean" unless stated
   */
  crossEntropy(
    logits: Node,
    targets: Node,
    options: Optional<{ reduction: "mean" | "sum" | "none"; name: string }> = {},
  ): Node {
    return this.append("cross_entropy", [logits, targets], { reduction: options.reduction }, options.name);
  }

  /**
   * y[i] = log(exp x[0] + … + exp x[i]) along `axis`, stable; with `reverse`, of x[i] to x[n − 1].
   *
   * As of logsumexp: where all so far is −inf, y is −inf and the gradient 0; those that are inf share it. Where one so
   * far is NaN, so are y and the gradient. Integers give float64. PyTorch's `logcumsumexp`; JAX's `lax.cumlogsumexp`,
   * which has `reverse`.
   *
   * Since opset 2.
   *
   * Gradient: Σ g[k] · exp(x[i] − y[k]) over k from i on.
   *
   * @param axis the axis to run along
   * @param options.reverse whether to run from the end to the front; false unless stated
   */
  cumlogsumexp(x: Node, axis: Int, options: Optional<{ reverse: boolean; name: string }> = {}): Node {
    return this.append("cumlogsumexp", [x], { axis, reverse: options.reverse }, options.name);
  }

  /**
   * y[i] = the largest of x[0], …, x[i] along `axis`; with `reverse`, of x[i], …, x[n − 1].
   *
   * NaN from the first NaN on. Of ties, the first in the direction of the run takes the gradient. The values of
   * PyTorch's `cummax`, whose gradient takes the last of ties; JAX's `lax.cummax`, which has `reverse`, and shares.
   *
   * Since opset 2.
   *
   * Gradient: g to the entry that is y: of ties the first in the direction of the run, the first NaN.
   *
   * @param axis the axis to run along
   * @param options.reverse whether to run from the end to the front; false unless stated
   */
  cummax(x: Node, axis: Int, options: Optional<{ reverse: boolean; name: string }> = {}): Node {
    return this.append("cummax", [x], { axis, reverse: options.reverse }, options.name);
  }

  /**
   * y[i] = the smallest of x[0], …, x[i] along `axis`; with `reverse`, of x[i], …, x[n − 1].
   *
   * NaN from the first NaN on. Of ties, the first in the direction of the run takes the gradient. The values of
   * PyTorch's `cummin`, whose gradient takes the last of ties; JAX's `lax.cummin`, which has `reverse`, and shares.
   *
   * Since opset 2.
   *
   * Gradient: g to the entry that is y: of ties the first in the direction of the run, the first NaN.
   *
   * @param axis the axis to run along
   * @param options.reverse whether to run from the end to the front; false unless stated
   */
  cummin(x: Node, axis: Int, options: Optional<{ reverse: boolean; name: string }> = {}): Node {
    return this.append("cummin", [x], { axis, reverse: options.reverse }, options.name);
  }

  /**
   * y[i] = x[0] · … · x[i] along `axis`; with `reverse`, x[i] · … · x[n − 1].
   *
   * Integers and bool multiply in int64, float16 in float32. The gradient is exact whatever the number of zeros, and so
   * are those of higher order. PyTorch's and NumPy's `cumprod`; `reverse` is that of JAX's `lax.cumprod`.
   *
   * Since opset 2.
   *
   * Gradient: (product of those before i) · Σ g[k] · (product of those behind i, to k), over k from i on.
   *
   * @param axis the axis to run along
   * @param options.reverse whether to run from the end to the front; false unless stated
   */
  cumprod(x: Node, axis: Int, options: Optional<{ reverse: boolean; name: string }> = {}): Node {
    return this.append("cumprod", [x], { axis, reverse: options.reverse }, options.name);
  }

  /**
   * y[i] = x[0] + … + x[i] along `axis`; with `reverse`, x[i] + … + x[n − 1].
   *
   * Integers and bool add up in int64, float16 in float32. PyTorch's and NumPy's `cumsum`; `reverse` is that of JAX's
   * `lax.cumsum`.
   *
   * Gradient: g, added up from the end.
   *
   * @param axis the axis to add up along
   * @param options.reverse whether to run from the end to the front; since opset 2; false unless stated
   */
  cumsum(x: Node, axis: Int, options: Optional<{ reverse: boolean; name: string }> = {}): Node {
    return this.append("cumsum", [x], { axis, reverse: options.reverse }, options.name);
  }

  /**
   * y = det x of the square matrices on the last two axes: [batch…, n, n] → [batch…]; 1 of a matrix without entries.
   *
   * `slogdet` neither overflows nor underflows. The gradient is the matrix of cofactors, exact for singular matrices,
   * too; second derivatives of these are NaN, or infinite. A matrix that holds NaN gives NaN for itself alone. Integers
   * give float64; float16 is computed in a wider float, and rounded once. PyTorch's, JAX's and NumPy's `linalg.det`.
   *
   * Since opset 2.
   *
   * Gradient: g · the conjugate cofactors of x: of det(x) x⁻ᵀ where x is regular.
   */
  det(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("det", [x], {}, options.name);
  }

  /**
   * The diagonal of the last two axes: y[…, i] = x[…, i, i + offset]; of a vector, the matrix with that diagonal.
   *
   * x [n] → [n + |offset|, n + |offset|], zero off the diagonal. x [batch…, rows, columns] → [batch…, m].
   * A negative offset counts downwards: y[…, i] = x[…, i − offset, i].
   *
   * Gradient: diag(g) for a vector; for matrices, g on the diagonal and 0 elsewhere.
   *
   * @param options.offset which diagonal: 0 the main one, above it positive, below it negative; 0 unless stated
   */
  diag(x: Node, options: Optional<{ offset: Int; name: string }> = {}): Node {
    return this.append("diag", [x], { offset: options.offset }, options.name);
  }

  /**
   * y = ψ(x) = Γ'(x) / Γ(x): −∞ at 0, NaN at −1, −2, …. To 10 units; near its zeros below −1 to 1e-15.
   *
   * SciPy's loses one digit with each digit by which x < 0 is closer to a pole; this one keeps all.
   *
   * Gradient: g · polygamma(x, order=1).
   */
  digamma(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("digamma", [x], {}, options.name);
  }

  /**
   * y = a / b, elementwise, broadcasting as NumPy; integers give floats, x / 0 gives ±inf or NaN.
   *
   * Gradient: da = g / b, db = −y · g / b.
   */
  div(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("div", [a, b], {}, options.name);
  }

  /**
   * y = x / scalar. A scalar of 0 gives ±inf or NaN, as `div`.
   *
   * Gradient: g / scalar.
   *
   * @param scalar the constant
   */
  divScalar(x: Node, scalar: Float, options: Optional<{ name: string }> = {}): Node {
    return this.append("div_scalar", [x], { scalar }, options.name);
  }

  /**
   * w, v = the eigenvalues, ascending, and eigenvectors of (x + xᴴ) / 2: that is v diag(w) vᴴ, and vᴴ v = 1.
   *
   * x [batch…, n, n], w [batch…, n], real, v [batch…, n, n], a vector in each column. Two results, read through
   * get_output.
   * Where only eigenvalues are read, vectors are not computed, and the gradient of eigenvalues alone holds at equal
   * ones, too, as long as the function treats these alike.
   *
   * Signs of vectors, and phases of complex ones, are as LAPACK leaves them: a function has a meaning only if it does
   * not depend on them. Nor do single vectors of equal eigenvalues have one. Eigenvalues closer than 16 n ε ‖x‖ are
   * taken for equal; the gradient of a function of v there is NaN, of that matrix alone; or, where `degenerate` is
   * whole, right if the function depends on whole eigenspaces, as a projector does, and wrong else: v √w vᵀ does not,
   * and is what `symmetric_function` is for. Second derivatives where a pair was left out are NaN, and so are those of
   * equal eigenvalues alone. A matrix that holds an infinity or NaN, or for which LAPACK finds no answer, gives NaN for
   * itself alone. Integers give float64; float16 is computed in a wider float, and rounded once.
   * M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008),
   * section 3.1. PyTorch's and JAX's `linalg.eigh`, which take the lower triangle unless told to take both, and answer
   * NaN, or what rounding makes of it, at equal eigenvalues.
   *
   * Since opset 2.
   *
   * Several results, each read through getOutput.
   *
   * Gradient: the symmetric part of v (diag(ḡw) + F ∘ vᴴ ḡv) vᴴ, Fᵢⱼ = 1 / (wⱼ − wᵢ), Fᵢᵢ = 0; no F where v is unread.
   *
   * @param options.degenerate where values are equal and vectors are read: nan, or whole: only whole spaces are
   *   depended on; "nan" unless stated
   */
  eigh(x: Node, options: Optional<{ degenerate: "nan" | "whole"; name: string }> = {}): Node {
    return this.append("eigh", [x], { degenerate: options.degenerate }, options.name);
  }

  /**
   * y[output letters] = Σ a[letters] · b[letters] · … over all letters that the output does not have.
   *
   * `equation` is, for two operands, "ab,bc->ac": a letter (a–z, A–Z) for each axis, a comma between operands, and
   * after the arrow the axes of the result. A letter stands for one extent, at most once in each operand. No ellipsis
   * and no implicit output; spaces do not count. One operand is allowed as well, 32 at most. The result has the common
   * dtype of the operands, as NumPy's.
   *
   * Operands are multiplied in pairs, each time the pair with the fewest multiplications, so that no step costs more
   * than the equation written as one loop (greedy order, as in numpy.einsum_path).
   *
   * Gradient: for each operand the einsum of g with the other operands.
   *
   * @param equation letters of each operand, and after -> those of the result
   */
  einsum(a: Node, b: readonly Node[], equation: string, options: Optional<{ name: string }> = {}): Node {
    return this.append("einsum", [a, ...b], { equation }, options.name);
  }

  /**
   * y = x for x > 0, else alpha · (eˣ − 1). Derivatives at 0 are those from below: alpha.
   *
   * D.-A. Clevert, T. Unterthiner, S. Hochreiter, arXiv:1511.07289.
   *
   * Gradient: g where x > 0 or NaN, else g · alpha · eˣ.
   *
   * @param options.alpha −y for x → −∞; 1.0 unless stated
   */
  elu(x: Node, options: Optional<{ alpha: Float; name: string }> = {}): Node {
    return this.append("elu", [x], { alpha: options.alpha }, options.name);
  }

  /**
   * y[i, j, …, :] = weight[indices[i, j, …], :]: rows of a table.
   *
   * weight [rows, features…], indices of any shape with entries in [0, rows); y [shape of indices…, features…]. With
   * `from_end`, entries lie in [−rows, rows), and negative ones count from the end. PyTorch's `functional.embedding`,
   * which takes no negative index, and has `padding_idx`; JAX's weight[indices], which takes negative ones, and moves
   * those outside to the nearest row.
   *
   * Gradient: d weight = g added to the rows that were read, repeated ones accumulating; none for indices.
   *
   * @param options.fromEnd whether a negative index counts from the end: −1 is the last; since opset 2; false unless
   *   stated
   * @param options.paddingIdx a row that gets no gradient, read as others are; absent: none; since opset 2
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

  /** y = (a = b), elementwise; NaN equals nothing. */
  equal(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("equal", [a, b], {}, options.name);
  }

  /**
   * y = erf x = 2/√π ∫₀ˣ exp(−t²) dt, to 2 units in the last place.
   *
   * Gradient: g · 2/√π · exp(−x²).
   */
  erf(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("erf", [x], {}, options.name);
  }

  /**
   * y = erfc x = 1 − erf x, to 2 units in the last place, also where it is small.
   *
   * Gradient: −g · 2/√π · exp(−x²).
   */
  erfc(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("erfc", [x], {}, options.name);
  }

  /**
   * y with erf y = x: ±∞ at ±1, NaN beyond. To 2 units.
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
   * `norm` is NumPy's: `forward` divides by n, `ortho` by √n. Real operands are taken as complex. float16 gives
   * complex64, integers complex128. PyTorch's, JAX's and NumPy's `fft`, and `fft2` and `fftn` by several axes.
   *
   * Since opset 2.
   *
   * Gradient: ifft(g) without its division: of a real operand, the real part.
   *
   * @param options.axes the axes to transform; absent: the last
   * @param options.sizes points on each of axes: x is cut, or padded with zeros; absent: as many as x has
   * @param options.norm which way is divided by the number of points: that back, that forth, or both by its root;
   *   "backward" unless stated
   */
  fft(
    x: Node,
    options: Optional<{ axes: Ints; sizes: Ints; norm: "backward" | "ortho" | "forward"; name: string }> = {},
  ): Node {
    return this.append("fft", [x], { axes: options.axes, sizes: options.sizes, norm: options.norm }, options.name);
  }

  /**
   * x = body(consts, x), again and again until max |Δx| ≤ tolerance · (1 + max |x|), at most `max_steps` times.
   *
   * x are the `carries`, floats, all of them together; max |x| is that of the new x. What is not finite ends the
   * iteration, unfinished. Results: x; `steps`, int64 [], those that ran; `finished`, bool []. The gradient is
   * implicit, as that of JAX's `lax.custom_root`, which is given a solver; of PyTorch, a loop of Python and a rule.
   *
   * Since opset 2.
   *
   * Several results, each read through getOutput.
   *
   * Gradient: implicit: u = g + (∂body/∂x)ᵀu by the same iteration, then (∂body/∂consts)ᵀu; none by the first x.
   *
   * @param body of consts and x: the next x
   * @param options.carries how many operands, the last ones, are x at first; at least one; 0 unless stated
   * @param tolerance how much may change, relative to 1 + max |x|; 0: nothing
   * @param maxSteps how many steps there may be at most
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
   * y = x with a run of neighbouring axes merged into one; absent: all of them. A 0-d tensor becomes [1].
   *
   * Gradient: g, reshaped back.
   *
   * @param options.axes neighbouring axes to merge; absent: all
   */
  flatten(x: Node, options: Optional<{ axes: Ints; name: string }> = {}): Node {
    return this.append("flatten", [x], { axes: options.axes }, options.name);
  }

  /**
   * y = x with the order of the entries reversed on `axes`; absent: on all.
   *
   * Gradient: g, flipped.
   *
   * @param options.axes axes to reverse; absent: all
   */
  flip(x: Node, options: Optional<{ axes: Ints; name: string }> = {}): Node {
    return this.append("flip", [x], { axes: options.axes }, options.name);
  }

  /** y = ⌊x⌋: down to the next whole number. */
  floor(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("floor", [x], {}, options.name);
  }

  /**
   * y = ⌊a / b⌋, elementwise, broadcasting: Python's //, with the remainder `mod`. An integer by 0 is 0.
   *
   * PyTorch's and NumPy's `floor_divide`, JAX's `jnp.floor_divide`. JAX's gives −1 for an integer by 0.
   *
   * Since opset 2.
   */
  floorDiv(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("floor_div", [a, b], {}, options.name);
  }

  /**
   * A tensor of one number, made on the server: y[…] = fill.
   *
   * An absent or empty `shape` makes a 0-d tensor. An infinity or NaN is stated by `fill_as`. PyTorch's and
   * JAX's `full`.
   *
   * @param options.shape the result's shape; [] unless stated
   * @param options.fill the number; 0.0 unless stated
   * @param options.dtype the result's dtype; "float64" unless stated
   * @param options.fillAs an infinity or NaN, in place of `fill`; of a float dtype; since opset 2
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
   * y[i, j, …] = x[index[i, j, …], j, …] for axis 0, and alike for the others.
   *
   * `index` has x's rank and may be smaller than x off the axis, as in PyTorch; y has its shape. With one operand,
   * the list `indices` picks slices: y = x at those positions of the axis. Indices lie in [0, extent); with `from_end`,
   * in [−extent, extent), and negative ones count from the end, as those of x[i] in PyTorch, JAX and NumPy do.
   * PyTorch's `gather` and JAX's `take_along_axis`, of which the former takes no negative index.
   *
   * Gradient: dx = scatter_add(0, index, g): repeated indices accumulate; none for index.
   *
   * @param options.axis the axis that is indexed; 0 unless stated
   * @param options.indices positions on the axis, in place of `index`
   * @param options.fromEnd whether a negative index counts from the end: −1 is the last; since opset 2; false unless
   *   stated
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
   * y = x · Φ(x), Φ the standard normal distribution function; 0 at −∞. D. Hendrycks, K. Gimpel, arXiv:1606.08415.
   *
   * `approximate` tanh: y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), the curve that many models were trained with.
   *
   * Gradient: g · (Φ(x) + x · Φ′(x)).
   *
   * @param options.approximate none: by the error function; tanh: its approximation; "none" unless stated
   */
  gelu(x: Node, options: Optional<{ approximate: "none" | "tanh"; name: string }> = {}): Node {
    return this.append("gelu", [x], { approximate: options.approximate }, options.name);
  }

  /**
   * One result of an op that has several: y = x[index].
   *
   * Gradient: g lands on that result; the others of the same op have 0.
   *
   * @param index which result, from 0
   */
  getOutput(x: Node, index: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("get_output", [x], { index }, options.name);
  }

  /**
   * The gradient of sum(y · cotangent) with respect to x, of x's type; without a cotangent, of sum(y).
   *
   * A node like any other: usable downstream, and differentiable again, to any order. x may be any float node; zeros
   * where y does not depend on it. A complex y needs a cotangent; by a complex x, the gradient is ∂/∂Re x + i ∂/∂Im x.
   *
   * Gradient: the gradient is written out as nodes first, and those are differentiated.
   */
  grad(y: Node, x: Node, cotangent?: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("grad", [y, x, cotangent], {}, options.name);
  }

  /** y = (a > b), elementwise; false beside NaN. */
  greater(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("greater", [a, b], {}, options.name);
  }

  /** y = (a ≥ b), elementwise; false beside NaN. */
  greaterEqual(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("greater_equal", [a, b], {}, options.name);
  }

  /**
   * y = (x − mean) / √(variance + eps) · weight + bias, mean and variance of each example's groups of channels.
   *
   * x [n, channels, …]; weight and bias [channels], which are cut into `groups` equal parts. n in the denominator.
   * Y. Wu, K. He, "Group normalization" (2018). PyTorch's `group_norm`, Flax's `GroupNorm`, whose channels are last.
   *
   * Since opset 2.
   *
   * Gradient: as of layer_norm, over each group.
   *
   * @param groups how many equal parts the channels are cut into
   * @param options.eps added to the variance or mean square; positive; 1e-05 unless stated
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
   * y = I₀(x): NumPy's, `torch.special.i0`, JAX's `scipy.special.i0`. To 5 units; infinite beyond |x| = 713.98.
   *
   * There SciPy's is infinite from 709.78 on.
   *
   * Since opset 2.
   *
   * Gradient: g · i1(x).
   */
  i0(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("i0", [x], {}, options.name);
  }

  /**
   * y = exp(−|x|) I₀(x): SciPy's, `torch.special.i0e`, JAX's `bessel_i0e`. To 4 units.
   *
   * The derivative keeps its digits for large x, where I₀ and I₁ have most in common. At 0, where |x| has a kink, it is
   * 0, as PyTorch's and JAX's.
   *
   * Since opset 2.
   *
   * Gradient: g · (i1e(x) − sign(x) · y).
   */
  i0e(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("i0e", [x], {}, options.name);
  }

  /**
   * y = I₁(x): SciPy's, `torch.special.i1`, JAX's `scipy.special.i1`. To 5 units. At 0, the derivative is 1/2.
   *
   * Since opset 2.
   *
   * Gradient: g · (i0(x) − y / x), and g / 2 at 0.
   */
  i1(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("i1", [x], {}, options.name);
  }

  /**
   * y = exp(−|x|) I₁(x): SciPy's, `torch.special.i1e`, JAX's `bessel_i1e`. To 4 units.
   *
   * At 0, the derivative is 1/2.
   *
   * Since opset 2.
   *
   * Gradient: g · (i0e(x) − y · (sign(x) + 1 / x)), and g / 2 at 0.
   */
  i1e(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("i1e", [x], {}, options.name);
  }

  /**
   * y = x, as a node of its own.
   *
   * Gradient: g.
   */
  identity(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("identity", [x], {}, options.name);
  }

  /**
   * y[j] = Σ x[k] exp(2πi j k / n) / n over `axes`, each of n points: the inverse of `fft`.
   *
   * `norm` is NumPy's: `forward` does not divide, `ortho` does by √n. Real operands are taken as complex. float16 gives
   * complex64, integers complex128. PyTorch's, JAX's and NumPy's `ifft`, and `ifft2` and `ifftn` by several axes.
   *
   * Since opset 2.
   *
   * Gradient: fft(g) / n: of a real operand, the real part.
   *
   * @param options.axes the axes to transform; absent: the last
   * @param options.sizes points on each of axes: x is cut, or padded with zeros; absent: as many as x has
   * @param options.norm which way is divided by the number of points: that back, that forth, or both by its root;
   *   "backward" unless stated
   */
  ifft(
    x: Node,
    options: Optional<{ axes: Ints; sizes: Ints; norm: "backward" | "ortho" | "forward"; name: string }> = {},
  ): Node {
    return this.append("ifft", [x], { axes: options.axes, sizes: options.sizes, norm: options.norm }, options.name);
  }

  /**
   * y = P(a, x) = ∫₀ˣ tᵃ⁻¹ exp(−t) dt / Γ(a), broadcasting: `torch.special.gammainc`, JAX's `igamma`, SciPy's.
   *
   * To 512 units, SciPy's own on NumPy; below 1e-290 to a part of 1e-12. Derivatives by x are to 1e-12 of their value,
   * by a (of which PyTorch has none, and JAX's are to 1e-7 of 1) to 1e-12; there is no second derivative by a.
   *
   * Since opset 2.
   *
   * Gradient: da = g · ∂P/∂a by an integral; dx = g · xᵃ⁻¹ exp(−x) / Γ(a).
   */
  igamma(a: Node, x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("igamma", [a, x], {}, options.name);
  }

  /**
   * y = Q(a, x) = 1 − P(a, x), accurate where it is small: `torch.special.gammaincc`, JAX's `igammac`, SciPy's.
   *
   * To 512 units, SciPy's own on NumPy; below 1e-290 to a part of 1e-12. Derivatives as those of `igamma`, with the
   * other sign.
   *
   * Since opset 2.
   *
   * Gradient: da = −g · ∂P/∂a by an integral; dx = −g · xᵃ⁻¹ exp(−x) / Γ(a).
   */
  igammac(a: Node, x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("igammac", [a, x], {}, options.name);
  }

  /**
   * y = Im x; 0 for a real x. JAX's and NumPy's `imag`; PyTorch's refuses a real x.
   *
   * Since opset 2.
   *
   * Gradient: i · g.
   */
  imag(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("imag", [x], {}, options.name);
  }

  /**
   * y = x[i, j, …]: the entries, or slices, at index tensors, one for each of `axes`, which broadcast together.
   *
   * As NumPy's x[i, j]: of axes that are side by side, the indices' axes take the place; of others, they come first.
   * Indices lie in [0, extent); with `from_end`, in [−extent, extent), and negative ones count from the end. PyTorch's
   * and JAX's x[i, j], which count negative ones always; PyTorch refuses those outside, as here, and JAX moves them.
   *
   * Since opset 2.
   *
   * Gradient: dx = index_add(0, indices, g): repeated indices accumulate; none for indices.
   *
   * @param options.axes the axis that each index is of; absent: the first ones, in their order
   * @param options.fromEnd whether a negative index counts from the end: −1 is the last; false unless stated
   */
  index(
    x: Node,
    indices: readonly Node[],
    options: Optional<{ axes: Ints; fromEnd: boolean; name: string }> = {},
  ): Node {
    return this.append("index", [x, ...indices], { axes: options.axes, from_end: options.fromEnd }, options.name);
  }

  /**
   * y = x, and then y[i, j, …] += updates, entry by entry: repeated indices accumulate.
   *
   * Operands: x, an index for each of `axes`, updates, which broadcast to what `index` reads. Indices as those of
   * `index`. PyTorch's `index_put` with accumulate; JAX's x.at[i, j].add, which drops updates outside.
   *
   * Since opset 2.
   *
   * Gradient: dx = g, d updates = index(g, indices); none for indices.
   *
   * @param options.axes the axis that each index is of; absent: the first ones, in their order
   * @param options.fromEnd whether a negative index counts from the end: −1 is the last; false unless stated
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
   * y = x, and then y[i, j, …] = updates: where one place is written twice, the last in row-major order stands.
   *
   * It takes the gradient. Operands: x, an index for each of `axes`, updates, which broadcast to what `index` reads.
   * Indices as those of `index`. PyTorch's `index_put`, JAX's x.at[i, j].set: neither says which of several stands, and
   * the gradient of PyTorch's goes to all of them; JAX drops updates outside.
   *
   * Since opset 2.
   *
   * Gradient: dx = g, 0 where something was written; d updates = g where they stand, else 0; none for indices.
   *
   * @param options.axes the axis that each index is of; absent: the first ones, in their order
   * @param options.fromEnd whether a negative index counts from the end: −1 is the last; false unless stated
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
   * Differentiated with respect to only when `wrt` names it. A declared `dtype` or `shape` must match the feed.
   *
   * @param options.dtype declares the feed's dtype; absent: any
   * @param options.shape declares the feed's shape, -1 for a free extent; absent: any
   * @param options.zeroD declares a 0-d feed; false unless stated
   */
  input(name?: string, options: Optional<{ dtype: DtypeName; shape: Ints; zeroD: boolean }> = {}): Node {
    return this.append("input", [], { dtype: options.dtype, shape: options.shape, zero_d: options.zeroD }, name);
  }

  /**
   * y = x⁻¹, for matrices on the last two axes.
   *
   * Where x is singular y is NaN, or, where rounding hides that, very large; the others of the batch are as if it were
   * not there. To solve a system, `solve` is quicker and more accurate.
   * Integers give float64; float16 is computed in a wider float, and rounded once.
   *
   * Gradient: −yᴴ g yᴴ.
   */
  inv(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("inv", [x], {}, options.name);
  }

  /**
   * The real tensor whose `rfft` x is: of n = `sizes` points on the last of `axes`, 2 (m − 1) for m entries of x.
   *
   * The imaginary parts of entry 0, and of entry n / 2 where n is even, count for nothing. Real operands are taken as
   * complex. float16 gives float16, integers float64. `norm` is that of `ifft`. PyTorch's, JAX's and NumPy's `irfft`,
   * and `irfft2` and `irfftn` by several axes.
   *
   * Since opset 2.
   *
   * Gradient: rfft(g) / n, the inner entries twice.
   *
   * @param options.axes the axes to transform; absent: the last
   * @param options.sizes points on each of axes: x is cut, or padded with zeros; absent: as many as x has
   * @param options.norm which way is divided by the number of points: that back, that forth, or both by its root;
   *   "backward" unless stated
   */
  irfft(
    x: Node,
    options: Optional<{ axes: Ints; sizes: Ints; norm: "backward" | "ortho" | "forward"; name: string }> = {},
  ): Node {
    return this.append("irfft", [x], { axes: options.axes, sizes: options.sizes, norm: options.norm }, options.name);
  }

  /** y = whether x is neither infinite nor NaN. */
  isFinite(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("is_finite", [x], {}, options.name);
  }

  /**
   * y = (x − mean) / √(variance + eps) · weight + bias, mean and variance (n in the denominator) over `axes`.
   *
   * weight and bias have x's extents on `axes`, in ascending order. J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer
   * normalization" (2016). CJC normalises the whole tensor: give all axes.
   *
   * Gradient: with z normalised and h = g · weight: dx = (h − mean h − z · mean(h·z)) / √(variance + eps).
   *
   * @param options.axes axes to normalise over; [-1] unless stated
   * @param options.eps added to the variance or mean square; positive; 1e-05 unless stated
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
   * @param options.alpha the slope for x ≤ 0; 0.01 unless stated
   */
  leakyRelu(x: Node, options: Optional<{ alpha: Float; name: string }> = {}): Node {
    return this.append("leaky_relu", [x], { alpha: options.alpha }, options.name);
  }

  /** y = (a < b), elementwise; false beside NaN. */
  less(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("less", [a, b], {}, options.name);
  }

  /** y = (a ≤ b), elementwise; false beside NaN. */
  lessEqual(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("less_equal", [a, b], {}, options.name);
  }

  /**
   * y = log |Γ(x)|: ∞ at 0, −1, −2, …. To 4 units; near its zeros below 0 (−2.457, −2.748, −3.144, …) to 1e-15.
   *
   * SciPy's has no correct digit left where x is within 1e-16 of 1 or 2, the zeros above 0; this one keeps all.
   *
   * Gradient: g · digamma(x).
   */
  lgamma(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("lgamma", [x], {}, options.name);
  }

  /**
   * y = activation(x @ w + b) for x[…, in], w[in, out] and b[out]: y[…, out]. Without b nothing is added.
   *
   * b may have any shape that broadcasts to y's. The activation is the op of that name with its defaults.
   *
   * Gradient: with h = g · activation′: dx = h @ wᵀ, dw = xᵀ @ h, db = Σ h over the rows.
   *
   * @param options.activation the op that is applied to the sum; "none" unless stated
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
   * Of a complex x ln |x| + i · angle x. The cut is the negative real axis: the sign of the imaginary zero says from
   * which side it is seen (C99).
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
   * @param options.eps what is added to x; 1e-05 unless stated
   */
  logEps(x: Node, options: Optional<{ eps: Float; name: string }> = {}): Node {
    return this.append("log_eps", [x], { eps: options.eps }, options.name);
  }

  /**
   * y = log Φ(x), of the standard normal distribution function Φ, in both tails. To 4 units.
   *
   * Its derivative φ(x) / Φ(x) keeps its relative accuracy where Φ(x) is too small for a number, and so do the
   * derivatives of that. Where x > 0, it is as accurate as exp(−x²/2): to x²/2 units.
   *
   * Gradient: g · φ(x) / Φ(x), φ the density.
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
   * A row that is −inf throughout gives NaN.
   *
   * Gradient: g − exp(y) · Σ g, the sum along the axis.
   *
   * @param options.axis the axis that adds up to 1; -1 unless stated
   */
  logSoftmax(x: Node, options: Optional<{ axis: Int; name: string }> = {}): Node {
    return this.append("log_softmax", [x], { axis: options.axis }, options.name);
  }

  /**
   * y = ln(eᵃ + eᵇ), stable. Where both are −∞, y is −∞ and the gradients are 0; where both are ∞, a half each.
   *
   * Gradient: da = g · sigmoid(a − b), db = g · sigmoid(b − a).
   */
  logaddexp(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("logaddexp", [a, b], {}, options.name);
  }

  /** y = a and b, elementwise, broadcasting. Numbers are true where they are not 0; NaN is true. */
  logicalAnd(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("logical_and", [a, b], {}, options.name);
  }

  /** y = not x, elementwise. Numbers are true where they are not 0; NaN is true. */
  logicalNot(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("logical_not", [x], {}, options.name);
  }

  /** y = a or b (or both), elementwise, broadcasting. Numbers are true where they are not 0; NaN is true. */
  logicalOr(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("logical_or", [a, b], {}, options.name);
  }

  /**
   * y = log Σ exp x over axes, stable: m + log Σ exp(x − m) with m = max x. −inf over nothing.
   *
   * Where all of x is −inf, y is −inf and the gradient 0. Where some of it is inf, these share the gradient. Where one
   * is NaN, so are y and the gradient. Integers give float64.
   *
   * Gradient: g · exp(x − y).
   *
   * @param options.axes axes to reduce over; absent: all
   * @param options.keepdims keep the reduced axes, with extent 1; false unless stated
   */
  logsumexp(x: Node, options: Optional<{ axes: Ints; keepdims: boolean; name: string }> = {}): Node {
    return this.append("logsumexp", [x], { axes: options.axes, keepdims: options.keepdims }, options.name);
  }

  /**
   * y that makes |a y − b| least: a [batch…, m, n] with m ≥ n, b [m], [batch…, m] or [batch…, m, k].
   *
   * y [n], [batch…, n] or [batch…, n, k]. b is a vector if it is 1-d, or one for each matrix if it has a's shape
   * without the last axis and its last two axes cannot be matrices of m rows; else they are. Without `rcond`, by `qr`:
   * the columns of a have to be independent. With it, by `pinv`: singular values up to that part of the largest are
   * taken for 0, and of all y the shortest is given. Integers give float64; float16 is computed in float32, and rounded
   * once. PyTorch's, JAX's and NumPy's `linalg.lstsq`, of which the first result alone.
   *
   * Since opset 2.
   *
   * Gradient: that of qr or pinv: db = a (aᴴ a)⁻¹ g, da = (b − a y) ((aᴴ a)⁻¹ g)ᴴ − db yᴴ.
   *
   * @param options.rcond of the largest singular value, the part up to which others are taken for 0; absent: none is,
   *   and columns are independent
   */
  lstsq(a: Node, b: Node, options: Optional<{ rcond: Float; name: string }> = {}): Node {
    return this.append("lstsq", [a, b], { rcond: options.rcond }, options.name);
  }

  /**
   * permutation, l, u with x[permutation] = l u: rows exchanged so that no entry of l is larger than 1.
   *
   * x [batch…, m, n], permutation int64 [batch…, m], l [batch…, m, k] lower triangular with 1 on its diagonal, u
   * [batch…, k, n] upper triangular, k = min(m, n). Three results, read through get_output. To solve a system, `solve`
   * is quicker. Complex numbers are compared by |Re| + |Im|. The gradient holds where the first k columns of
   * x[permutation] are independent in their first k rows; where they are not, it is infinite or NaN. The permutation
   * has none. A matrix that holds an infinity or NaN gives NaN for itself alone, and its rows as they are. Integers
   * give float64; float16 is computed in a wider float, and rounded once. F. de Hoog, R. Anderssen, M. Lukas,
   * Differentiation of matrix functionals using triangular factorization (2011). PyTorch's `linalg.lu`, which has a
   * matrix in place of the permutation; JAX's `lax.linalg.lu`, in another order.
   *
   * Since opset 2.
   *
   * Several results, each read through getOutput.
   *
   * Gradient: of x[permutation]: l⁻ᴴ (tril(lᴴ ḡl, −1) + triu(ḡu uᴴ)) u⁻ᴴ for square matrices; rows put back.
   */
  lu(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("lu", [x], {}, options.name);
  }

  /**
   * y = re + i · im, elementwise, broadcasting: complex64 of float32 and narrower floats, else complex128.
   *
   * The parts stay as they are, infinities, NaN and signs of zeros too, which re + im · i would not leave so.
   * PyTorch's `complex`, JAX's `lax.complex`.
   *
   * Since opset 2.
   *
   * Gradient: d re = Re g, d im = Im g.
   */
  makeComplex(re: Node, im: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("make_complex", [re, im], {}, options.name);
  }

  /**
   * stacks = body(consts, entry t of each sequence), for every t, in no order.
   *
   * Operands are consts, then `sequences` tensors of equal leading extent. `at_once` entries are computed in one batch.
   * Results: for each of the body's a stack [entries, …]. JAX's `lax.map`, whose batch_size is `at_once`; JAX's and
   * PyTorch's `vmap`, which computes all entries in one batch.
   *
   * Since opset 2.
   *
   * Several results, each read through getOutput.
   *
   * Gradient: a map of the body's, summed over the entries for consts.
   *
   * @param body of consts and one entry of each sequence: what is stacked
   * @param options.sequences how many operands, the last ones, are gone through; at least one; 0 unless stated
   * @param options.atOnce how many entries are computed in one batch; absent: as many as fit
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
   * The value under one key of a map that is kept as one tensor, keys in insertion order.
   *
   * The leading axis is cut into `total_keys` equal parts, and y is the part `key_index`; the axis stays.
   *
   * Gradient: g on that part, 0 on the others.
   *
   * @param keyIndex which key, from 0, in insertion order
   * @param totalKeys how many keys the map has
   */
  mapLookup(x: Node, keyIndex: Int, totalKeys: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("map_lookup", [x], { key_index: keyIndex, total_keys: totalKeys }, options.name);
  }

  /**
   * y = a @ b, as NumPy: y[…, i, j] = Σₖ a[…, i, k] · b[…, k, j], and the axes before broadcast.
   *
   * A 1-d operand counts as a row on the left and as a column on the right, and that axis is dropped from the result.
   * float16 adds up in float32; integers and bool are multiplied in their own dtype, as NumPy does.
   *
   * Gradient: da = g @ bᴴ, db = aᴴ @ g, summed over batch axes that were broadcast.
   */
  matmul(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("matmul", [a, b], {}, options.name);
  }

  /**
   * y = exp x = 1 + x + x² / 2 + …, of the square matrices on the last two axes.
   *
   * Scaled until its norm is below 1.1, approximated by Taylor's polynomial of degree 18, and squared as often: the
   * error is some units of rounding times the norm of y. A matrix that holds an infinity or NaN gives NaN for itself
   * alone. Integers give float64; float16 is computed in a wider float, and rounded once. To any order, the gradient is
   * an exponential again.
   * P. Bader, S. Blanes, F. Casas, Computing the matrix exponential with an optimized Taylor polynomial approximation
   * (2019); its derivative by I. Najfeld, T. F. Havel (1995), and A. H. Al-Mohy, N. J. Higham (2009). PyTorch's
   * `linalg.matrix_exp`, JAX's and SciPy's `linalg.expm`.
   *
   * Since opset 2.
   *
   * Gradient: the upper right block of exp [[xᴴ, g], [0, xᴴ]].
   */
  matrixExp(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("matrix_exp", [x], {}, options.name);
  }

  /**
   * y = xᵏ, the product of k square matrices x, on the last two axes; x⁰ = 1, and x⁻ᵏ the power of the inverse.
   *
   * By squares: some 2 log₂ k products. A negative power of a singular matrix is NaN, or, where rounding hides that,
   * very large. Integers give float64; float16 is computed in a wider float, and rounded once. PyTorch's, JAX's and
   * NumPy's `linalg.matrix_power`, of which the latter keep whole numbers whole.
   *
   * Since opset 2.
   *
   * Gradient: Σ (xᴴ)ⁱ g (xᴴ)ʲ over i + j = k − 1, as the products give it.
   *
   * @param k the exponent; may be 0 or negative
   */
  matrixPower(x: Node, k: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("matrix_power", [x], { k }, options.name);
  }

  /**
   * y = how many singular values are larger than max(m, n) ε times the largest: int64, [batch…, m, n] → [batch…].
   *
   * ε is that of x's dtype. A matrix that holds an infinity or NaN has rank 0. PyTorch's, JAX's and NumPy's
   * `linalg.matrix_rank` without a tolerance.
   *
   * Since opset 2.
   */
  matrixRank(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("matrix_rank", [x], {}, options.name);
  }

  /**
   * y = max x over axes; NaN if one of the elements is. Ties, also of NaN, share the gradient equally.
   *
   * Gradient: g / k to each of the k elements equal to y, or NaN where y is; zero to the others.
   *
   * @param options.axes axes to reduce over; absent: all
   * @param options.keepdims keep the reduced axes, with extent 1; false unless stated
   */
  max(x: Node, options: Optional<{ axes: Ints; keepdims: boolean; name: string }> = {}): Node {
    return this.append("max", [x], { axes: options.axes, keepdims: options.keepdims }, options.name);
  }

  /**
   * y[…, i] = the largest element of the window at i; NaN where it holds one. x [..., w]; padding counts as −∞.
   *
   * w' = ⌊(w + 2 · padding − dilation · (kernel_size − 1) − 1) / stride⌋ + 1; with `ceiling`, ⌈…⌉ + 1. PyTorch's
   * `max_pool1d`, whose `ceil_mode` is `ceiling`; JAX's `lax.reduce_window` with window_dilation, without a ceiling.
   *
   * Since opset 2.
   *
   * Gradient: g, added at the first maximum (in row-major order) of each window.
   *
   * @param kernelSize extents of the windows along each spatial axis
   * @param options.stride distance of the windows along each spatial axis; absent: the kernel size
   * @param options.padding added on both sides of each axis, at most half the kernel size; [0] unless stated
   * @param options.dilation distance of a window's taps along each axis; [1] unless stated
   * @param options.ceiling whether a window that reaches beyond the padding counts, if it begins before that; false
   *   unless stated
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
   * y[…, i, j] = the largest element of the window at (i, j); NaN where it holds one.
   *
   * x [..., h, w]; padding counts as −∞. As PyTorch's max_pool2d.
   *
   * Gradient: g, added at the first maximum (in row-major order) of each window.
   *
   * @param kernelSize extents of the windows along each spatial axis
   * @param options.stride distance of the windows along each spatial axis; absent: the kernel size
   * @param options.padding added on both sides of each spatial axis, at most half the kernel size; [0, 0] unless stated
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
   * y[…, h, w] = Σ g[…, i, j] over the windows (i, j) of which x[…, h, w] is the first maximum, in row-major order.
   *
   * g [..., h', w'], x [..., h, w]: what is 0 elsewhere, and what max_pool2d gives back of g. A NaN counts as a
   * maximum.
   *
   * Gradient: dg = the cotangent at max_pool2d_indices; none for x, of which the result is constant in pieces.
   *
   * @param kernelSize extents of the windows along each spatial axis
   * @param options.stride distance of the windows along each spatial axis; absent: the kernel size
   * @param options.padding added on both sides of each spatial axis, at most half the kernel size; [0, 0] unless stated
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
   * y[…, i, j] = where the first maximum (in row-major order) of the window at (i, j) lies: h · width + w.
   *
   * int64, flat within its plane, as PyTorch's return_indices; a NaN counts as a maximum.
   *
   * @param kernelSize extents of the windows along each spatial axis
   * @param options.stride distance of the windows along each spatial axis; absent: the kernel size
   * @param options.padding added on both sides of each spatial axis, at most half the kernel size; [0, 0] unless stated
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
   * y[…, i, j, k] = the largest element of the window at (i, j, k); NaN where it holds one. x [..., d, h, w].
   *
   * Padding counts as −∞; extents as those of max_pool1d. A pool of planes that is dilated, or has a ceiling, is one
   * whose first kernel size is 1. PyTorch's `max_pool3d`, whose `ceil_mode` is `ceiling`; JAX's `lax.reduce_window`.
   *
   * Since opset 2.
   *
   * Gradient: g, added at the first maximum (in row-major order) of each window.
   *
   * @param kernelSize extents of the windows along each spatial axis
   * @param options.stride distance of the windows along each spatial axis; absent: the kernel size
   * @param options.padding added on both sides of each axis, at most half the kernel size; [0, 0, 0] unless stated
   * @param options.dilation distance of a window's taps along each axis; [1, 1, 1] unless stated
   * @param options.ceiling whether a window that reaches beyond the padding counts, if it begins before that; false
   *   unless stated
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
   * y = the larger of a and b, elementwise, broadcasting; NaN where either is NaN.
   *
   * Gradient: da = g where a > b, or a alone is NaN; g / 2 where a = b, or both are NaN; else 0; db likewise.
   */
  maximum(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("maximum", [a, b], {}, options.name);
  }

  /**
   * y = Σ x / n over axes, n the number of elements reduced; NaN where n = 0. Integers give float64.
   *
   * Gradient: g / n, broadcast back over the axes.
   *
   * @param options.axes axes to reduce over; absent: all
   * @param options.keepdims keep the reduced axes, with extent 1; false unless stated
   */
  mean(x: Node, options: Optional<{ axes: Ints; keepdims: boolean; name: string }> = {}): Node {
    return this.append("mean", [x], { axes: options.axes, keepdims: options.keepdims }, options.name);
  }

  /**
   * y = min x over axes; NaN if one of the elements is. Ties, also of NaN, share the gradient equally.
   *
   * Gradient: g / k to each of the k elements equal to y, or NaN where y is; zero to the others.
   *
   * @param options.axes axes to reduce over; absent: all
   * @param options.keepdims keep the reduced axes, with extent 1; false unless stated
   */
  min(x: Node, options: Optional<{ axes: Ints; keepdims: boolean; name: string }> = {}): Node {
    return this.append("min", [x], { axes: options.axes, keepdims: options.keepdims }, options.name);
  }

  /**
   * y = the smaller of a and b, elementwise, broadcasting; NaN where either is NaN.
   *
   * Gradient: da = g where a < b, or a alone is NaN; g / 2 where a = b, or both are NaN; else 0; db likewise.
   */
  minimum(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("minimum", [a, b], {}, options.name);
  }

  /**
   * y = activation(x @ wᵀ + b) for x[…, in], w[out, in] and b[out]: y[…, out].
   *
   * b may have any shape that broadcasts to y's. The activation is the op of that name with its defaults; CJC's `gelu`
   * here is the tanh form: write that one as parts.
   *
   * Gradient: with h = g · activation′: dx = h @ w, dw = hᵀ @ x, db = Σ h over the rows.
   *
   * @param options.activation the op that is applied to the sum; "none" unless stated
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
   * y = a − b · ⌊a / b⌋: the remainder, with the divisor's sign, as Python's % and NumPy's mod.
   *
   * A float modulo 0 is NaN, an integer modulo 0 is 0.
   *
   * Gradient: da = g, db = −g · ⌊a / b⌋.
   */
  mod(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("mod", [a, b], {}, options.name);
  }

  /**
   * loss = (x − y)², elementwise on equal shapes; then the mean.
   *
   * Gradient: dx = g · 2 (x − y) / n, dy = −dx.
   *
   * @param options.reduction what is made of the single losses; none: they are the result; "mean" unless stated
   */
  mseLoss(x: Node, y: Node, options: Optional<{ reduction: "mean" | "sum" | "none"; name: string }> = {}): Node {
    return this.append("mse_loss", [x, y], { reduction: options.reduction }, options.name);
  }

  /**
   * y = a · b, elementwise, broadcasting as NumPy.
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
   * @param scalar the constant
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
   * The places where `mask` is true, in row-major order: int64 [k, rank], and how many there are: int64 [].
   *
   * k is stated, and may be more than there are, or fewer: what is beyond k is cut, and the count tells; behind it
   * there are zeros. Two results, read through get_output. JAX's `nonzero` with a size, whose rows are its tuple side
   * by side; PyTorch's `nonzero`, which has as many rows as there are.
   *
   * Since opset 2.
   *
   * Several results, each read through getOutput.
   *
   * @param k how many entries there are to be
   */
  nonzero(mask: Node, k: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("nonzero", [mask], { k }, options.name);
  }

  /**
   * y = √Σ x² over axes, the Euclidean norm, without overflow or underflow on the way. Integers give float64.
   *
   * At 0 the gradient is 0, the subgradient of least norm, and so is that of the gradient. An infinite element gets g,
   * with its sign. Where one is NaN, so are y and the gradient.
   *
   * Gradient: g · x / y, and 0 where y = 0.
   *
   * @param options.axes axes to reduce over; absent: all
   * @param options.keepdims keep the reduced axes, with extent 1; false unless stated
   */
  norm(x: Node, options: Optional<{ axes: Ints; keepdims: boolean; name: string }> = {}): Node {
    return this.append("norm", [x], { axes: options.axes, keepdims: options.keepdims }, options.name);
  }

  /** y = (a ≠ b), elementwise; NaN differs from everything. */
  notEqual(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("not_equal", [a, b], {}, options.name);
  }

  /**
   * y[…, c] = 1 where indices[…] = c, else 0; a new last axis of extent `classes`. Indices lie in [0, classes).
   *
   * @param classes the number of classes
   * @param options.dtype the result's dtype; "float64" unless stated
   */
  oneHot(indices: Node, classes: Int, options: Optional<{ dtype: DtypeName; name: string }> = {}): Node {
    return this.append("one_hot", [indices], { classes, dtype: options.dtype }, options.name);
  }

  /**
   * y = x with `fill` around it: pad_width[2i] entries before and pad_width[2i + 1] after, on each axis i.
   *
   * An infinity or NaN is stated by `fill_as`. PyTorch's `functional.pad` lists the last axis first; JAX's and NumPy's
   * `pad` have pairs, in the order here.
   *
   * Gradient: g where x is.
   *
   * @param padWidth entries before and after, for one axis after the other
   * @param options.fill the number around x; 0.0 unless stated
   * @param options.fillAs an infinity or NaN, in place of `fill`; of a float dtype; since opset 2
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
   * As `input`, but part of `wrt` by default.
   *
   * @param options.dtype declares the feed's dtype; absent: any
   * @param options.shape declares the feed's shape, -1 for a free extent; absent: any
   * @param options.zeroD declares a 0-d feed; false unless stated
   */
  parameter(name?: string, options: Optional<{ dtype: DtypeName; shape: Ints; zeroD: boolean }> = {}): Node {
    return this.append("parameter", [], { dtype: options.dtype, shape: options.shape, zero_d: options.zeroD }, name);
  }

  /**
   * y = x⁺, the pseudoinverse of Moore and Penrose: v diag(1 / s) uᴴ of x = u diag(s) vᴴ, without those s that are 0.
   *
   * x [batch…, m, n], y [batch…, n, m]. Singular values up to `rcond` times the largest are taken for 0: by default
   * max(m, n) ε. The gradient is that at constant rank, which is exact where nothing but zeros is cut, equal singular
   * values or not; of larger ones that are cut, it is off by their part of those that are kept. Where the rank changes,
   * the pseudoinverse jumps. A matrix that holds an infinity or NaN, or for which LAPACK finds no answer, gives NaN for
   * itself alone. Integers give float64; float16 is computed in a wider float, and rounded once. G. H. Golub, V.
   * Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate
   * (1973), eq. 4.12. PyTorch's `linalg.pinv` (rtol); JAX's and NumPy's have other defaults.
   *
   * Since opset 2.
   *
   * Gradient: −yᴴ g yᴴ + (1 − x y) gᴴ y yᴴ + yᴴ y gᴴ (1 − y x).
   *
   * @param options.rcond of the largest singular value, the part up to which others are taken for 0; absent: max(m, n)
   *   ε
   */
  pinv(x: Node, options: Optional<{ rcond: Float; name: string }> = {}): Node {
    return this.append("pinv", [x], { rcond: options.rcond }, options.name);
  }

  /**
   * y = ψ⁽ⁿ⁾(x) for n = `order`, the n-th derivative of `digamma`; order 0 is `digamma` itself.
   *
   * ±∞ at 0, −1, −2, …, with the sign that it has to the right of 0. To 10 units; for even orders, near the zeros
   * below 0, to 10 units of what the nearest poles add up to. Values of less than 1e-307 · n! are inaccurate or 0.
   *
   * Orders go to 170, whose factorial is the largest in a float64; `polygamma` of order 170 has no derivative.
   *
   * Gradient: g · polygamma(x, order + 1).
   *
   * @param order which derivative of digamma: 0 to 170
   */
  polygamma(x: Node, order: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("polygamma", [x], { order }, options.name);
  }

  /**
   * y = aᵇ, broadcasting; with one operand y = a^exponent, which is `pow_scalar`. 0⁰ = 1.
   *
   * A negative a to a fractional power is NaN, and so is its derivative by b. By b, the derivative is 0 where a = 0 and
   * b ≥ 0, or where a = ∞ and b < 0. Powers of integers are integers: they wrap around as NumPy's, and to a negative
   * exponent they are cut off towards zero (2⁻¹ → 0, as CuPy and PyTorch have it, where NumPy refuses) with 0⁻¹ → 0.
   *
   * Gradient: da = g · b · aᵇ⁻¹, db = g · y · log a.
   *
   * @param options.exponent the exponent, where there is no operand b
   */
  pow(a: Node, b?: Node, options: Optional<{ exponent: Float; name: string }> = {}): Node {
    return this.append("pow", [a, b], { exponent: options.exponent }, options.name);
  }

  /**
   * y = x^exponent for a real exponent. 0⁰ = 1; a negative x to a fractional power is NaN.
   *
   * Of a complex x, exp(exponent · log x), with the cut of `log`.
   *
   * Gradient: g · exponent · x^(exponent − 1), and 0 for an exponent of 0.
   *
   * @param exponent the exponent
   */
  powScalar(x: Node, exponent: Float, options: Optional<{ name: string }> = {}): Node {
    return this.append("pow_scalar", [x], { exponent }, options.name);
  }

  /**
   * y = Π x over axes; 1 over nothing. Integers and bool multiply in int64, float16 in float32.
   *
   * The gradient is that of a tree of products, exact whatever the number of zeros, and so are those of higher order.
   *
   * Gradient: g · (product of all other elements).
   *
   * @param options.axes axes to reduce over; absent: all
   * @param options.keepdims keep the reduced axes, with extent 1; false unless stated
   */
  prod(x: Node, options: Optional<{ axes: Ints; keepdims: boolean; name: string }> = {}): Node {
    return this.append("prod", [x], { axes: options.axes, keepdims: options.keepdims }, options.name);
  }

  /**
   * q, r with x = q r: the columns of q orthonormal, r upper triangular; reduced.
   *
   * x [batch…, m, n], q [batch…, m, k], r [batch…, k, n], k = min(m, n). Two results, read through get_output. The
   * signs of r's diagonal are as LAPACK leaves them, of a row of r together with the column of q: a function has a
   * meaning only if it does not depend on them. The gradient holds where the columns of x are independent; where they
   * are not, it is infinite or NaN. Of fewer rows than columns there are values, and no gradient: `not_differentiable`.
   * A matrix that holds an infinity or NaN gives NaN for itself alone. Integers give float64; float16 is computed in a
   * wider float, and rounded once. S. F. Walter, L. Lehmann, Algorithmic differentiation of linear algebra functions
   * with application in optimum experimental design, arXiv:1001.1654 (2010). PyTorch's and JAX's `linalg.qr`, reduced.
   *
   * Since opset 2.
   *
   * Several results, each read through getOutput.
   *
   * Gradient: (ḡq + q (L + Lᴴ − Re diag L)) r⁻ᴴ, L the lower triangle of r ḡrᴴ − ḡqᴴ q; none where rows < columns.
   */
  qr(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("qr", [x], {}, options.name);
  }

  /**
   * y = uniform < p, of p's shape: true with probability p. The uniform numbers are of p's dtype.
   *
   * As `jax.random.bernoulli`. PyTorch's `bernoulli` has floats of another generator.
   *
   * Since opset 2.
   */
  randomBernoulli(key: Node, p: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("random_bernoulli", [key, p], {}, options.name);
  }

  /**
   * y = 32 random bits an element: the exclusive or of both words of counter i, row-major. As `jax.random.bits`.
   *
   * PyTorch's `randint` has bits of another generator.
   *
   * Since opset 2.
   *
   * @param shape the result's shape
   * @param options.dtype the result's dtype; "uint32" unless stated
   */
  randomBits(key: Node, shape: Ints, options: Optional<{ dtype: "uint32"; name: string }> = {}): Node {
    return this.append("random_bits", [key], { shape, dtype: options.dtype }, options.name);
  }

  /**
   * y = argmax(logits + gumbel) along `axis`, int64: i with a probability that goes as exp(logits[i]).
   *
   * As `jax.random.categorical`. PyTorch's `multinomial` takes weights, and has another generator.
   *
   * Since opset 2.
   *
   * @param options.axis the axis of the categories; -1 unless stated
   */
  randomCategorical(key: Node, logits: Node, options: Optional<{ axis: Int; name: string }> = {}): Node {
    return this.append("random_categorical", [key, logits], { axis: options.axis }, options.name);
  }

  /**
   * y = −log1p(−u), u uniform in [0, 1): exponential numbers of mean 1. As `jax.random.exponential`.
   *
   * PyTorch's `exponential_` has numbers of another generator.
   *
   * Since opset 2.
   *
   * @param shape the result's shape
   * @param dtype the result's dtype
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
   * key = a new key [2] for each number: the words of counter (0, number mod 2³²). As `jax.random.fold_in`.
   *
   * PyTorch has no keys: a `Generator` each.
   *
   * Since opset 2.
   */
  randomFoldIn(key: Node, number: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("random_fold_in", [key, number], {}, options.name);
  }

  /**
   * y = −log(−log u), u uniform in [0, 1), its 0 replaced by the least normal number. As `jax.random.gumbel`.
   *
   * PyTorch's `distributions.Gumbel` has numbers of another generator.
   *
   * Since opset 2.
   *
   * @param shape the result's shape
   * @param dtype the result's dtype
   */
  randomGumbel(key: Node, shape: Ints, dtype: "float32" | "float64", options: Optional<{ name: string }> = {}): Node {
    return this.append("random_gumbel", [key], { shape, dtype }, options.name);
  }

  /**
   * key = (seed ≫ 32, seed mod 2³²): uint32 [2] from an int64 []. As `jax.random.key_data(jax.random.key(seed))`.
   *
   * PyTorch's `manual_seed` begins another sequence, which goes on by itself.
   *
   * Since opset 2.
   */
  randomKey(seed: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("random_key", [seed], {}, options.name);
  }

  /**
   * y = √2 · erfinv(u), u uniform in (−1, 1): standard normal numbers. As `jax.random.normal`, to 32 ulp.
   *
   * PyTorch's `randn` has numbers of another generator.
   *
   * Since opset 2.
   *
   * @param shape the result's shape
   * @param dtype the result's dtype
   */
  randomNormal(key: Node, shape: Ints, dtype: "float32" | "float64", options: Optional<{ name: string }> = {}): Node {
    return this.append("random_normal", [key], { shape, dtype }, options.name);
  }

  /**
   * y = 0 … k−1 in random order, int64 [k]: a stable argsort of k numbers of 64 random bits, unsigned.
   *
   * `jax.random.permutation` has another rule, and PyTorch's `randperm` another generator.
   *
   * Since opset 2.
   *
   * @param k how many numbers
   */
  randomPermutation(key: Node, k: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("random_permutation", [key], { k }, options.name);
  }

  /**
   * keys = k new keys [k, 2], each of its own sequence: the words of the counters 0 … k−1. As `jax.random.split`.
   *
   * PyTorch has no keys: a `Generator` each.
   *
   * Since opset 2.
   *
   * @param k how many keys
   */
  randomSplit(key: Node, k: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("random_split", [key], { k }, options.name);
  }

  /**
   * y = uniform numbers in [0, 1): 23 random bits (of float64, 52), over 2²³ (2⁵²). As `jax.random.uniform`.
   *
   * PyTorch's `rand` has numbers of another generator.
   *
   * Since opset 2.
   *
   * @param shape the result's shape
   * @param dtype the result's dtype
   */
  randomUniform(key: Node, shape: Ints, dtype: "float32" | "float64", options: Optional<{ name: string }> = {}): Node {
    return this.append("random_uniform", [key], { shape, dtype }, options.name);
  }

  /**
   * y = Re x; a real x itself. PyTorch's, JAX's and NumPy's `real`.
   *
   * Since opset 2.
   *
   * Gradient: g, with the imaginary part 0.
   */
  real(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("real", [x], {}, options.name);
  }

  /**
   * y = 1 / x; integers give floats, as `div`.
   *
   * Gradient: −g · y².
   */
  reciprocal(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("reciprocal", [x], {}, options.name);
  }

  /**
   * y = max(x, 0). The derivative at 0 is `at_zero`; some systems let the gradient pass there.
   *
   * Gradient: g where x > 0 or NaN, g · at_zero where x = 0, else 0.
   *
   * @param options.atZero the derivative at 0; 0.0 unless stated
   */
  relu(x: Node, options: Optional<{ atZero: Float; name: string }> = {}): Node {
    return this.append("relu", [x], { at_zero: options.atZero }, options.name);
  }

  /**
   * y = a − b · (a / b without its fraction): C's % and fmod, with a's sign. `mod` has b's.
   *
   * A float by 0 gives NaN, an integer 0. PyTorch's `fmod`, JAX's `lax.rem`, which gives a for an integer by 0.
   *
   * Since opset 2.
   *
   * Gradient: da = g, db = −g · (a / b without its fraction).
   */
  rem(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("rem", [a, b], {}, options.name);
  }

  /**
   * y holds x's elements, in row-major order, in another shape; one extent may be −1 and follows from the others.
   *
   * An absent or empty `shape` makes a 0-d tensor. `original_shape`, where given, must be x's shape.
   *
   * Gradient: g, reshaped back.
   *
   * @param options.shape the result's shape; one -1 is inferred; [] unless stated
   * @param options.originalShape x's shape, checked where given
   */
  reshape(x: Node, options: Optional<{ shape: Ints; originalShape: Ints; name: string }> = {}): Node {
    return this.append("reshape", [x], { shape: options.shape, original_shape: options.originalShape }, options.name);
  }

  /**
   * y = x with other extents on some axes, each new entry interpolated from those around its place.
   *
   * The middle of new entry i lies at (i + ½) · extent / size − ½; with `corners`, at i · (extent − 1) / (size − 1).
   * `nearest` takes the entry that is nearest, `linear` two, `cubic` four, by Keys's kernel with a = −0.75; beyond an
   * end there is what is at the end. With `antialias`, kernels are wider where the tensor shrinks, a is −0.5, and what
   * is beyond an end does not count. PyTorch's `interpolate` with modes nearest-exact, linear, bilinear, trilinear and
   * bicubic, and align_corners; JAX's `image.resize`, whose cubic has a = −0.5 always, and which has no corners.
   *
   * Since opset 2.
   *
   * Gradient: g, each entry's shares added where they were read.
   *
   * @param sizes the new extents
   * @param options.axes the axes that have them; absent: the last ones
   * @param options.method how entries are found; "linear" unless stated
   * @param options.antialias whether all of what shrinks counts; of linear and cubic; false unless stated
   * @param options.corners whether the middles of the first and last entries stay; without antialias; false unless
   *   stated
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
   * The first ⌊n / 2⌋ + 1 entries of `fft` on the last of `axes`, of a real x: the others are their conjugates.
   *
   * float16 gives complex64, integers complex128. `norm` is that of `fft`. PyTorch's, JAX's and NumPy's `rfft`, and
   * `rfft2` and `rfftn` by several axes.
   *
   * Since opset 2.
   *
   * Gradient: the real part of ifft(g) without its division, g filled up with zeros.
   *
   * @param options.axes the axes to transform; absent: the last
   * @param options.sizes points on each of axes: x is cut, or padded with zeros; absent: as many as x has
   * @param options.norm which way is divided by the number of points: that back, that forth, or both by its root;
   *   "backward" unless stated
   */
  rfft(
    x: Node,
    options: Optional<{ axes: Ints; sizes: Ints; norm: "backward" | "ortho" | "forward"; name: string }> = {},
  ): Node {
    return this.append("rfft", [x], { axes: options.axes, sizes: options.sizes, norm: options.norm }, options.name);
  }

  /**
   * y = x / √(mean x² + eps) · weight, the mean over `axes`; weight has x's extents there, in ascending order.
   *
   * B. Zhang, R. Sennrich, "Root mean square layer normalization" (2019).
   *
   * Gradient: with z normalised and h = g · weight: dx = (h − z · mean(h·z)) / √(mean x² + eps).
   *
   * @param options.axes axes to normalise over; [-1] unless stated
   * @param options.eps added to the variance or mean square; positive; 1e-05 unless stated
   */
  rmsNorm(x: Node, weight?: Node, options: Optional<{ axes: Ints; eps: Float; name: string }> = {}): Node {
    return this.append("rms_norm", [x, weight], { axes: options.axes, eps: options.eps }, options.name);
  }

  /**
   * y[(i + shift) mod n] = x[i] on each of `axes`; without axes, on the flattened tensor.
   *
   * As many shifts as axes, and one without axes. Negative shifts go towards the front.
   *
   * Gradient: g, rolled back.
   *
   * @param shifts how far to move, for each axis
   * @param options.axes the axes to move along; absent: the flattened tensor
   */
  roll(x: Node, shifts: Ints, options: Optional<{ axes: Ints; name: string }> = {}): Node {
    return this.append("roll", [x], { shifts, axes: options.axes }, options.name);
  }

  /** y = x rounded to the nearest whole number, halves to the even one: 0.5 → 0, 1.5 → 2. */
  round(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("round", [x], {}, options.name);
  }

  /**
   * y = 1 / √x, NaN for x < 0.
   *
   * Gradient: −g · y³ / 2.
   */
  rsqrt(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("rsqrt", [x], {}, options.name);
  }

  /**
   * carries, stacks = body, step by step: for t = 0 … length − 1, body(consts, carries, entry t of each sequence).
   *
   * The body gives the carries for the next step, of the same types, and then values that are stacked. Operands are
   * consts, then `carries` initial values, then `sequences` tensors whose entries along the leading axis it goes
   * through, with `reverse` from the last; entry t of a stack is what step t gave. Results: the last carries, then the
   * stacks [length, …]. JAX's `lax.scan`, whose body may read what is around it; of PyTorch, a loop of Python.
   *
   * Since opset 2.
   *
   * Several results, each read through getOutput.
   *
   * Gradient: a scan the other way round, which computes each step again.
   *
   * @param body of consts, carries and one entry of each sequence: carries, and what is stacked
   * @param options.carries how many operands are initial values of carries; 0 unless stated
   * @param options.sequences how many operands, the last ones, are gone through; 0 unless stated
   * @param options.length how many steps; absent: as many as the sequences have entries
   * @param options.reverse from the last entry to the first; false unless stated
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
   * y = x, and then y[index[i, j, …], j, …] += updates[i, j, …] for axis 0, and alike for the others.
   *
   * `index` and `updates` have the same shape, of x's rank, and may be smaller than x off the axis. Repeated indices
   * accumulate. The adjoint of `gather`. Indices lie in [0, extent); with `from_end`, negative ones count from the end.
   * PyTorch's `scatter_add`, which takes no negative index; JAX's `x.at[…].add`, which does, and drops those outside.
   *
   * Gradient: dx = g, d updates = gather(g, index); none for index.
   *
   * @param options.axis the axis that is indexed; 0 unless stated
   * @param options.fromEnd whether a negative index counts from the end: −1 is the last; since opset 2; false unless
   *   stated
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
   * y[s, …] = the largest x[i, …] of the rows i with segment_ids[i] = s; NaN if one is.
   *
   * x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Ties share the gradient equally. A
   * segment without rows is −∞, or the least number of an integer dtype. JAX's `ops.segment_max`; PyTorch's
   * `scatter_reduce` with amax, whose ties share, too, which gives segments without rows what was there.
   *
   * Since opset 2.
   *
   * Gradient: g / k to each of the k rows equal to y, or NaN where y is; zero to the others.
   *
   * @param segments how many segments there are
   */
  segmentMax(x: Node, segmentIds: Node, segments: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("segment_max", [x, segmentIds], { segments }, options.name);
  }

  /**
   * y[s, …] = the mean of x[i, …] over the rows i with segment_ids[i] = s; NaN where there is none.
   *
   * x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers give float64; float16
   * adds up in float32. PyTorch's `scatter_reduce` with mean; JAX has none.
   *
   * Since opset 2.
   *
   * Gradient: dx[i, …] = g[segment_ids[i], …] / (rows of the segment); none for segment_ids.
   *
   * @param segments how many segments there are
   */
  segmentMean(x: Node, segmentIds: Node, segments: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("segment_mean", [x, segmentIds], { segments }, options.name);
  }

  /**
   * y[s, …] = the smallest x[i, …] of the rows i with segment_ids[i] = s; NaN if one is.
   *
   * x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Ties share the gradient equally. A
   * segment without rows is ∞, or the greatest number of an integer dtype. JAX's `ops.segment_min`; PyTorch's
   * `scatter_reduce` with amin, whose ties share, too, which gives segments without rows what was there.
   *
   * Since opset 2.
   *
   * Gradient: g / k to each of the k rows equal to y, or NaN where y is; zero to the others.
   *
   * @param segments how many segments there are
   */
  segmentMin(x: Node, segmentIds: Node, segments: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("segment_min", [x, segmentIds], { segments }, options.name);
  }

  /**
   * y[s, …] = Π x[i, …] over the rows i with segment_ids[i] = s; 1 where there is none.
   *
   * x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers and bool multiply in
   * int64, float16 in float32. The gradient is exact whatever the number of zeros, and so are those of higher order.
   * JAX's `ops.segment_prod`, which has no gradient; PyTorch's `scatter_reduce` with prod.
   *
   * Since opset 2.
   *
   * Gradient: g[segment_ids[i], …] · (product of the other rows of the segment); none for segment_ids.
   *
   * @param segments how many segments there are
   */
  segmentProd(x: Node, segmentIds: Node, segments: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("segment_prod", [x, segmentIds], { segments }, options.name);
  }

  /**
   * y[s, …] = Σ x[i, …] over the rows i with segment_ids[i] = s; 0 where there is none.
   *
   * x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers and bool add up in int64,
   * float16 in float32.
   *
   * Gradient: dx[i, …] = g[segment_ids[i], …]; none for segment_ids.
   *
   * @param segments how many segments there are
   */
  segmentSum(x: Node, segmentIds: Node, segments: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("segment_sum", [x, segmentIds], { segments }, options.name);
  }

  /**
   * y = x at one `index` along `axis`, without that axis: x[index], x[:, index], …
   *
   * A negative index counts from the end. As PyTorch's select; `gather` reads at many indices.
   *
   * Gradient: g at the index, 0 elsewhere.
   *
   * @param index the position to read at
   * @param options.axis the axis that is read at one position; 0 unless stated
   */
  select(x: Node, index: Int, options: Optional<{ axis: Int; name: string }> = {}): Node {
    return this.append("select", [x], { index, axis: options.axis }, options.name);
  }

  /**
   * y = 1.0507… · elu(x, alpha = 1.6732…): keeps mean 0 and variance 1 of what it is applied to.
   *
   * G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter, arXiv:1706.02515.
   *
   * Gradient: 1.0507… · that of elu.
   */
  selu(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("selu", [x], {}, options.name);
  }

  /**
   * y = 1 / (1 + e⁻ˣ), accurate in both tails, down to the smallest number. Of a complex x, by the same formula.
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
   * y = sin(πx) / πx, and 1 at 0: NumPy's, PyTorch's and JAX's. 0 at whole numbers, exactly, and at infinity.
   *
   * To 4 units, next to whole numbers as well, where the libraries' lose all digits; there the derivative is (−1)ˣ / x.
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
   * A list may be shorter: the axes that it does not reach are whole, or every position of theirs is read. Bounds as
   * NumPy's: negative ones count from the end, and beyond an end means at that end. Steps are at least 1.
   *
   * Gradient: g at the positions that were read, 0 elsewhere.
   *
   * @param options.starts first position on each axis; absent: 0
   * @param options.stops the position to stop before, on each axis; absent: the extent
   * @param options.steps distance between positions on each axis; absent: 1
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
   * y = x[s₀ : s₀ + sizes[0], s₁ : s₁ + sizes[1], …], s being `starts`: int64 [rank], which are computed.
   *
   * Each is moved into [0, extent − size], negative ones too, so that there are always as many entries. JAX's
   * `lax.dynamic_slice`, which first counts negative starts from the end; PyTorch's x.narrow takes a start on one axis.
   *
   * Since opset 2.
   *
   * Gradient: g where the box was, 0 elsewhere; none for starts.
   *
   * @param sizes extents of the box, one for each axis
   */
  sliceAt(x: Node, starts: Node, sizes: Ints, options: Optional<{ name: string }> = {}): Node {
    return this.append("slice_at", [x, starts], { sizes }, options.name);
  }

  /**
   * sign, log|det x| of the matrices on the last two axes: [batch…, n, n] → [batch…] twice; det x = sign · exp(log).
   *
   * The logarithm neither overflows nor underflows where the determinant does. A singular matrix has sign 0 and the
   * logarithm −∞, and its gradient is NaN, as that of the inverse; the others of its batch are as if it were not there.
   * The sign carries no gradient. Of a complex matrix it is complex, det x / |det x|, and the logarithm real.
   * Several results, read through get_output.
   * Integers give float64; float16 is computed in a wider float, and rounded once.
   *
   * Several results, each read through getOutput.
   *
   * Gradient: g · x⁻ᴴ, g the cotangent of log|det x|.
   */
  slogdet(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("slogdet", [x], {}, options.name);
  }

  /**
   * y = exp(x) / Σ exp(x) along `axis`, of x's shape; stable: computed from x − max x. Integers give float64.
   *
   * A row that is −inf throughout gives NaN, as 0 / 0.
   *
   * Gradient: y · (g − Σ g·y), the sum along the axis.
   *
   * @param options.axis the axis that adds up to 1; -1 unless stated
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
   * y with a y = b: a [batch…, n, n], b [n], [batch…, n] or [batch…, n, m]; batch axes of matrices broadcast.
   *
   * b is a vector if it is 1-d, as in NumPy 2, or one for each matrix if it has a's shape without the last axis and its
   * last two axes cannot be matrices of n rows; else they are. Where a is singular y is NaN, or, where rounding hides
   * that, very large; the other systems of the batch are as if it were not there.
   * Integers give float64; float16 is computed in a wider float, and rounded once.
   * M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008).
   *
   * Gradient: db = a⁻ᴴ g, da = −(db yᴴ), summed over batch axes that were broadcast.
   */
  solve(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("solve", [a, b], {}, options.name);
  }

  /**
   * y = x in ascending order along an axis; equal entries keep their order, NaN comes last.
   *
   * Gradient: g, put back where the entries came from.
   *
   * @param axis the axis to sort along
   */
  sort(x: Node, axis: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("sort", [x], { axis }, options.name);
  }

  /**
   * y0, y1, … = x cut along `axis` into parts of `sizes`, which add up to the extent; a part may be empty.
   *
   * Several results, read through get_output.
   *
   * Several results, each read through getOutput.
   *
   * Gradient: the parts' cotangents, joined; zeros for parts that are not read.
   *
   * @param sizes the parts' extents on the axis
   * @param options.axis the axis that is cut; 0 unless stated
   */
  split(x: Node, sizes: Ints, options: Optional<{ axis: Int; name: string }> = {}): Node {
    return this.append("split", [x], { sizes, axis: options.axis }, options.name);
  }

  /**
   * y = √x, NaN for x < 0. At 0 the derivative is infinite.
   *
   * Of a complex x the root with Re y ≥ 0. The cut is the negative real axis: the sign of the imaginary zero says from
   * which side value and gradient are taken, as in PyTorch. JAX takes the derivative of one side for both.
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
   * y = x without `axes`, each of which must have extent 1; absent: without all axes of extent 1.
   *
   * Gradient: g, reshaped back.
   *
   * @param options.axes axes of extent 1; absent: all there are
   */
  squeeze(x: Node, options: Optional<{ axes: Ints; name: string }> = {}): Node {
    return this.append("squeeze", [x], { axes: options.axes }, options.name);
  }

  /**
   * y = the operands, all of one shape, one after the other along a new axis; `axis` is its place in the result.
   *
   * The result has their common dtype.
   *
   * Gradient: to each operand its part of g.
   *
   * @param options.axis the new axis, counted in the result; 0 unless stated
   */
  stack(x: readonly Node[], options: Optional<{ axis: Int; name: string }> = {}): Node {
    return this.append("stack", [...x], { axis: options.axis }, options.name);
  }

  /**
   * y[…, t, k] = Σ window[j] x[…, t · stride + j] exp(−2πi j k / n) over j: [… time] → [… frames, ⌊n / 2⌋ + 1].
   *
   * `rfft` of each part of x that the window [w] covers, of n = w points unless `sizes` states more or fewer. Nothing
   * is padded: `pad` x first to have frames around its ends. TensorFlow's `signal.stft`; PyTorch's and SciPy's `stft`
   * have the last two axes the other way round, and pad by default. By NumPy and JAX, frames and `rfft`.
   *
   * Since opset 2.
   *
   * Gradient: that of rfft, times the window, added where frames overlap.
   *
   * @param stride one: from the beginning of a frame to that of the next
   * @param options.sizes one: the points of each transform; absent: as many as the window has
   */
  stft(x: Node, window: Node, stride: Ints, options: Optional<{ sizes: Ints; name: string }> = {}): Node {
    return this.append("stft", [x, window], { stride, sizes: options.sizes }, options.name);
  }

  /** y = x, and no derivative passes: for differentiation y is a constant. */
  stopGradient(x: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("stop_gradient", [x], {}, options.name);
  }

  /**
   * One field of a record that is kept as one tensor.
   *
   * The leading axis is cut into `total_fields` equal parts, and y is the part `field_index`; the axis stays.
   *
   * Gradient: g on that part, 0 on the others.
   *
   * @param fieldIndex which field, from 0
   * @param totalFields how many fields the record has
   */
  structField(x: Node, fieldIndex: Int, totalFields: Int, options: Optional<{ name: string }> = {}): Node {
    return this.append("struct_field", [x], { field_index: fieldIndex, total_fields: totalFields }, options.name);
  }

  /**
   * y = a − b, elementwise, broadcasting as NumPy.
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
   * @param scalar the constant
   */
  subScalar(x: Node, scalar: Float, options: Optional<{ name: string }> = {}): Node {
    return this.append("sub_scalar", [x], { scalar }, options.name);
  }

  /**
   * y = Σ x over axes. Integers and bool add up in int64, float16 in float32.
   *
   * Gradient: g, broadcast back over the axes.
   *
   * @param options.axes axes to reduce over; absent: all
   * @param options.keepdims keep the reduced axes, with extent 1; false unless stated
   */
  sum(x: Node, options: Optional<{ axes: Ints; keepdims: boolean; name: string }> = {}): Node {
    return this.append("sum", [x], { axes: options.axes, keepdims: options.keepdims }, options.name);
  }

  /**
   * u, s, vh with x = u diag(s) vh: s ≥ 0 descending, the columns of u and rows of vh orthonormal; thin.
   *
   * x [batch…, m, n], u [batch…, m, k], s [batch…, k], real, vh [batch…, k, n], k = min(m, n). Three results, read
   * through get_output. Where only s is read, vectors are not computed, and the gradient of s alone holds at equal
   * values, too, as long as the function treats these alike.
   *
   * Signs, and phases of complex vectors, are as LAPACK leaves them, of a column of u together with the row of vh: a
   * function has a meaning only if it does not depend on them. Singular values closer than 16 n ε ‖x‖, n the larger
   * extent, are taken for equal, and those below that for 0. One that is 0 passes nothing, as `abs` at 0. Where vectors
   * are read, equal ones and zeros make the gradient NaN, of that matrix alone; or, where `degenerate` is whole, they
   * are left out, which is right if the function depends on whole spaces of vectors, as a projector and u vh do, and
   * wrong else. Second derivatives where something was left out are NaN, and so are those of s alone at equal values. A
   * matrix that holds an infinity or NaN, or for which LAPACK finds no answer, gives NaN for itself alone. Integers
   * give float64; float16 is computed in a wider float, and rounded once. J. Townsend, Differentiating the singular
   * value decomposition (2016), with 1 / (sⱼ² − sᵢ²) in its partial fractions; Z.-Q. Wan, S.-X. Zhang, arXiv:1909.02659
   * (2019) on phases. PyTorch's `linalg.svd` with full_matrices false, and JAX's, which at a 0 take whichever vectors
   * LAPACK gave.
   *
   * Since opset 2.
   *
   * Several results, each read through getOutput.
   *
   * Gradient: u (diag(ḡs) + (F ∘ (P + Q) + G ∘ (P − Q)) / 2) vh, and (1 − u uᴴ) ḡu s⁻¹ vh, u s⁻¹ ḡvh (1 − v vᴴ); P, Q =
   * uᴴ ḡu, vh ḡvhᴴ less their adjoints, Fᵢⱼ = 1 / (sⱼ − sᵢ), Gᵢⱼ = 1 / (sⱼ + sᵢ).
   *
   * @param options.degenerate where values are equal and vectors are read: nan, or whole: only whole spaces are
   *   depended on; "nan" unless stated
   */
  svd(x: Node, options: Optional<{ degenerate: "nan" | "whole"; name: string }> = {}): Node {
    return this.append("svd", [x], { degenerate: options.degenerate }, options.name);
  }

  /**
   * y = v f(diag w) vᵀ, a function of the symmetric part (x + xᵀ) / 2 = v diag(w) vᵀ of square matrices.
   *
   * f is the square root, its reciprocal, the logarithm or the exponential, of eigenvalues. The gradient is by divided
   * differences, which have a limit where eigenvalues meet: it is exact at equal ones, and so is the second, where
   * v f vᵀ written with `eigh` has none. A matrix with an eigenvalue at which f is not finite, as log at 0 or below,
   * gives NaN for itself alone, and so does one that holds an infinity or NaN, or for which LAPACK finds no answer.
   * Integers give float64; float16 is computed in a wider float, and rounded once.
   * N. J. Higham, Functions of Matrices (2008), theorem 3.11 of Daleckii and Krein. SciPy's `sqrtm`, `logm` and `expm`
   * of symmetric matrices; PyTorch and JAX have none whose gradient holds at equal eigenvalues, but for exp.
   *
   * Since opset 2.
   *
   * Gradient: v (D ∘ (vᵀ (g + gᵀ) v / 2)) vᵀ, Dᵢⱼ = (f(wᵢ) − f(wⱼ)) / (wᵢ − wⱼ), f′(wᵢ) where wᵢ = wⱼ.
   *
   * @param function_ the function of eigenvalues; rsqrt is 1 / sqrt
   */
  symmetricFunction(
    x: Node,
    function_: "sqrt" | "rsqrt" | "log" | "exp",
    options: Optional<{ name: string }> = {},
  ): Node {
    return this.append("symmetric_function", [x], { function: function_ }, options.name);
  }

  /**
   * y[i, j, …] = x[index[i, j, …], j, …] for axis 0, and alike for the others: NumPy's take_along_axis.
   *
   * `index` has x's rank; off the axis the two broadcast, and on it y has the index's extent. Indices lie in
   * [0, extent); with `from_end`, in [−extent, extent), and negative ones count from the end. PyTorch's
   * `take_along_dim`, which takes no negative index, and JAX's `take_along_axis`, which does.
   *
   * Gradient: g added where it was read: repeated indices accumulate; none for index.
   *
   * @param options.axis the axis that is indexed; 0 unless stated
   * @param options.fromEnd whether a negative index counts from the end: −1 is the last; since opset 2; false unless
   *   stated
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
   * y = x repeated `repeats` times along each axis. As NumPy: the shorter of shape and repeats is led by ones.
   *
   * Gradient: g, summed over the repetitions.
   *
   * @param repeats how many times, for each axis
   */
  tile(x: Node, repeats: Ints, options: Optional<{ name: string }> = {}): Node {
    return this.append("tile", [x], { repeats }, options.name);
  }

  /**
   * values, indices = the k largest entries of x along `axis`, largest first, and their int64 positions there.
   *
   * Of equal entries the one with the lowest index comes first; NaN counts as largest. Two results, read through
   * get_output.
   *
   * Several results, each read through getOutput.
   *
   * Gradient: that of the values, put back where they came from; none for indices.
   *
   * @param k how many, at most the axis's extent
   * @param options.axis the axis to search; 0 unless stated
   */
  topk(x: Node, k: Int, options: Optional<{ axis: Int; name: string }> = {}): Node {
    return this.append("topk", [x], { k, axis: options.axis }, options.name);
  }

  /**
   * y = x with its axes permuted.
   *
   * Without `axes` the last two are swapped (born reverses all: give `axes`). As many entries as axes: y's axis i is
   * x's axis axes[i]. Two entries on another rank: those two are swapped (minima).
   *
   * Gradient: g, permuted back.
   *
   * @param options.axes a permutation, or two axes to swap; absent: the last two
   */
  transpose(x: Node, options: Optional<{ axes: Ints; name: string }> = {}): Node {
    return this.append("transpose", [x], { axes: options.axes }, options.name);
  }

  /**
   * y with t y = b, or tᵀ y = b where `transpose`; t is the lower (else the upper) triangle of a, with the diagonal.
   *
   * a [batch…, n, n]: the other triangle is ignored, whatever it holds. b [n], [batch…, n] or [batch…, n, m], read as
   * in `solve`. Batch axes broadcast. Where the diagonal holds a 0, y is infinite or NaN.
   * Integers compute in float64, float16 in float32.
   * M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation (2008).
   *
   * Gradient: db = t⁻ᴴ g, da = −(db yᴴ), its triangle; with transpose db = (conj t)⁻¹ g, da = −(conj y dbᵀ).
   *
   * @param options.lower read the lower triangle of a; false: the upper one; true unless stated
   * @param options.transpose solve with the triangle's transpose; false unless stated
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
   * @param options.offset which diagonal: 0 the main one, above it positive, below it negative; 0 unless stated
   */
  tril(x: Node, options: Optional<{ offset: Int; name: string }> = {}): Node {
    return this.append("tril", [x], { offset: options.offset }, options.name);
  }

  /**
   * y = x on and above a diagonal of the last two axes, 0 below: y[…, i, j] = x[…, i, j] where j − i ≥ offset.
   *
   * Gradient: triu(g).
   *
   * @param options.offset which diagonal: 0 the main one, above it positive, below it negative; 0 unless stated
   */
  triu(x: Node, options: Optional<{ offset: Int; name: string }> = {}): Node {
    return this.append("triu", [x], { offset: options.offset }, options.name);
  }

  /**
   * y = a / b without its fraction, elementwise, broadcasting: C's /, with the remainder `rem`. An integer by 0 is 0.
   *
   * PyTorch's `div` with rounding_mode trunc; JAX's `lax.div` of integers, which gives −1 for one by 0.
   *
   * Since opset 2.
   */
  truncDiv(a: Node, b: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("trunc_div", [a, b], {}, options.name);
  }

  /**
   * y = x with axes of extent 1 put in; `axes` are their positions in the result.
   *
   * Gradient: g, reshaped back.
   *
   * @param options.axes positions of the new axes in the result; must be given
   */
  unsqueeze(x: Node, options: Optional<{ axes: Ints; name: string }> = {}): Node {
    return this.append("unsqueeze", [x], { axes: options.axes }, options.name);
  }

  /**
   * y = x, with `update` in place of the box of its shape that begins at `starts`, one entry for each axis.
   *
   * A negative start counts from the end, as in slice; a box that reaches beyond x is refused, not moved. The result
   * has the common dtype of x and update.
   *
   * Gradient: dx = g, zero where the update lies; d update = g there.
   *
   * @param starts first position of the update on each axis
   */
  updateSlice(x: Node, update: Node, starts: Ints, options: Optional<{ name: string }> = {}): Node {
    return this.append("update_slice", [x, update], { starts }, options.name);
  }

  /**
   * y = x, with `updates` in place of the box of its shape that begins at `starts`: int64 [rank], which are computed.
   *
   * Each start is moved into [0, extent − size], negative ones too, so that all of updates lies within. The result has
   * the common dtype of x and updates. JAX's `lax.dynamic_update_slice`, which first counts negative starts from the
   * end; PyTorch's `slice_scatter` takes a start on one axis, as a number.
   *
   * Since opset 2.
   *
   * Gradient: dx = g, zero where the updates lie; d updates = g there; none for starts.
   */
  updateSliceAt(x: Node, updates: Node, starts: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("update_slice_at", [x, updates, starts], {}, options.name);
  }

  /**
   * y = Σ (x − mean x)² / (n − ddof) over axes, n the number of elements reduced. Integers give float64.
   *
   * Computed in two passes, the mean first, so that a large mean costs no digits. Where n ≤ ddof it divides by zero,
   * as NumPy does: NaN, or infinity.
   *
   * Gradient: g · 2 (x − mean x) / (n − ddof).
   *
   * @param options.axes axes to reduce over; absent: all
   * @param options.keepdims keep the reduced axes, with extent 1; false unless stated
   * @param options.ddof what is taken off n: 1 for the unbiased estimate; 0 unless stated
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
   * y = on_true where cond, else on_false; the three broadcast. A number as cond is true where it is not zero.
   *
   * Each branch gets the cotangent where it was chosen and exactly zero elsewhere, whatever the other branch holds.
   *
   * Gradient: d on_true = where(cond, g, 0), d on_false = where(cond, 0, g); none for cond.
   */
  where(cond: Node, onTrue: Node, onFalse: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("where", [cond, onTrue, onFalse], {}, options.name);
  }

  /**
   * carries = body(consts, carries), again and again while condition(consts, carries) holds.
   *
   * At most `max_steps` times. The condition gives a bool []; it is looked at before each step, and once more after the
   * last one that is allowed. Results: the carries; `steps`, int64 [], those that ran; `finished`, bool [], false where
   * the bound ended it. JAX's `lax.while_loop`, which has no bound, and is differentiated forwards alone; of PyTorch, a
   * loop of Python.
   *
   * Since opset 2.
   *
   * Several results, each read through getOutput.
   *
   * Gradient: back over the steps that ran, each computed again; none by the condition, and none of `steps`.
   *
   * @param condition of consts and carries: whether to go on, a bool []
   * @param body of consts and carries: the carries after a step
   * @param options.carries how many operands, the last ones, are initial values of carries; 0 unless stated
   * @param maxSteps how many steps there may be at most
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
   * y = x · log(1 + y), broadcasting, accurate for small y; 0 where x = 0, whatever y is but NaN.
   *
   * As SciPy and PyTorch (`special.xlog1py`) have it; JAX has 0 for NaN, too. By x, the derivative is 0 where x = 0 and
   * y = −1, and where x = 0 and y < −1 it is NaN, as JAX's; by y, it is x / (1 + y) everywhere: NaN where x = 0 and
   * y = −1.
   *
   * Since opset 2.
   *
   * Gradient: dx = g · log(1 + y), and 0 where x = 0 and y = −1; dy = g · x / (1 + y).
   */
  xlog1py(x: Node, y: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("xlog1py", [x, y], {}, options.name);
  }

  /**
   * y = x · log y, broadcasting; 0 where x = 0, whatever y is but NaN.
   *
   * As SciPy and PyTorch have it; JAX has 0 for NaN, too. By x, the derivative is 0 where x and y are, and where x = 0
   * and y < 0 it is NaN, as JAX's (PyTorch's is 0); by y, it is x / y everywhere: NaN where both are 0.
   *
   * Since opset 2.
   *
   * Gradient: dx = g · log y, and 0 where x = y = 0; dy = g · x / y.
   */
  xlogy(x: Node, y: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("xlogy", [x, y], {}, options.name);
  }

  /**
   * y = ζ(s, q) = Σ (q + k)⁻ˢ over k ≥ 0, broadcasting, for s > 1: SciPy's, `torch.special.zeta`, JAX's `zeta`.
   *
   * ∞ at s = 1 and at q = 0, −1, −2, …; NaN for s < 1, and where q < 0 and s is no whole number. To 8 units where q >
   * 0, SciPy's own on NumPy; below, as `polygamma`. Derivatives are of any order: those by q as accurate, those by s,
   * of which PyTorch and JAX have none, to 1e-12 of the terms that they add up; by s and then by q, to a unit over s −
   * 1.
   *
   * Since opset 2.
   *
   * Gradient: ds = −g · Σ log(q + k) (q + k)⁻ˢ, dq = −g · s · zeta(s + 1, q).
   */
  zeta(s: Node, q: Node, options: Optional<{ name: string }> = {}): Node {
    return this.append("zeta", [s, q], {}, options.name);
  }
}
