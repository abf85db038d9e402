// Written by `python -m clients.ops` from the op registry: do not edit.
package example.gradserve.conformance;

import example.gradserve.Graph;
import example.gradserve.Node;

/** Calls the methods of ops by name. */
final class Ops {
    private Ops() {}

    /** Calls the method of a step's op, or the generic method if there is none. */
    static Node appended(Graph graph, Step s) {
        return switch (s.op()) {
            case "abs" -> s.operand(0).abs();
            case "acos" -> s.operand(0).acos();
            case "acosh" -> s.operand(0).acosh();
            case "adaptive_avg_pool" -> s.operand(0).adaptiveAvgPool(s.wholes("sizes"));
            case "adaptive_max_pool" -> s.operand(0).adaptiveMaxPool(s.wholes("sizes"));
            case "add" -> s.operand(0).add(s.operand(1));
            case "add_scalar" -> s.operand(0).addScalar(s.real("scalar"));
            case "all" -> s.operand(0).all(o -> {
                s.wholes("axes", o::axes);
                s.truth("keepdims", o::keepdims);
            });
            case "angle" -> s.operand(0).angle();
            case "any" -> s.operand(0).any(o -> {
                s.wholes("axes", o::axes);
                s.truth("keepdims", o::keepdims);
            });
            case "arange" -> graph.arange(s.number("stop"), o -> {
                s.number("start", o::start);
                s.number("step", o::step);
                s.dtype("dtype", o::dtype);
            });
            case "argmax" -> s.operand(0).argmax(s.whole("axis"), o -> s.truth("keepdims", o::keepdims));
            case "argmin" -> s.operand(0).argmin(s.whole("axis"), o -> s.truth("keepdims", o::keepdims));
            case "argsort" -> s.operand(0).argsort(s.whole("axis"));
            case "asin" -> s.operand(0).asin();
            case "asinh" -> s.operand(0).asinh();
            case "atan" -> s.operand(0).atan();
            case "atan2" -> s.operand(0).atan2(s.operand(1));
            case "atanh" -> s.operand(0).atanh();
            case "attention" -> s.operand(0).attention(s.operand(1), s.operand(2), o -> {
                s.operand(3, o::mask);
                s.real("scale", o::scale);
                s.truth("causal", o::causal);
                s.truth("grouped", o::grouped);
            });
            case "avg_pool1d" -> s.operand(0).avgPool1d(s.wholes("kernel_size"), o -> {
                s.wholes("stride", o::stride);
                s.wholes("padding", o::padding);
                s.truth("ceiling", o::ceiling);
            });
            case "avg_pool2d" -> s.operand(0).avgPool2d(s.wholes("kernel_size"), o -> {
                s.wholes("stride", o::stride);
                s.wholes("padding", o::padding);
            });
            case "avg_pool3d" -> s.operand(0).avgPool3d(s.wholes("kernel_size"), o -> {
                s.wholes("stride", o::stride);
                s.wholes("padding", o::padding);
                s.truth("ceiling", o::ceiling);
            });
            case "batch_norm" -> s.operand(0).batchNorm(o -> {
                s.operand(1, o::weight);
                s.operand(2, o::bias);
                s.whole("axis", o::axis);
                s.real("eps", o::eps);
            });
            case "batch_norm_given" -> s.operand(0).batchNormGiven(s.operand(1), s.operand(2), o -> {
                s.operand(3, o::weight);
                s.operand(4, o::bias);
                s.whole("axis", o::axis);
                s.real("eps", o::eps);
            });
            case "batch_norm_running" -> s.operand(0).batchNormRunning(s.operand(1), s.operand(2), o -> {
                s.operand(3, o::weight);
                s.operand(4, o::bias);
                s.whole("axis", o::axis);
                s.real("eps", o::eps);
                s.real("momentum", o::momentum);
            });
            case "bce_with_logits" -> s.operand(0).bceWithLogits(s.operand(1), o -> s.text("reduction", o::reduction));
            case "betainc" -> s.operand(0).betainc(s.operand(1), s.operand(2));
            case "betaln" -> s.operand(0).betaln(s.operand(1));
            case "broadcast_to" -> s.operand(0).broadcastTo(s.wholes("shape"));
            case "call" -> graph.call(s.function("body"), s.operandsFrom(0), o -> {
                s.function("derivative", o::derivative);
                s.truth("recompute", o::recompute);
            });
            case "cast" -> s.operand(0).cast(s.dtype("dtype"));
            case "cat" -> graph.cat(s.operandsFrom(0), o -> {
                s.whole("axis", o::axis);
                s.wholes("sizes", o::sizes);
            });
            case "cdist" -> s.operand(0).cdist(s.operand(1), o -> s.real("p", o::p));
            case "ceil" -> s.operand(0).ceil();
            case "cholesky" -> s.operand(0).cholesky();
            case "chunk" -> s.operand(0).chunk(s.whole("chunks"), o -> s.whole("axis", o::axis));
            case "clamp" -> s.operand(0).clamp(o -> {
                s.number("min", o::min);
                s.number("max", o::max);
            });
            case "compress" -> s.operand(0).compress(s.operand(1), s.whole("k"), o -> {
                s.whole("axis", o::axis);
                s.number("fill", o::fill);
                s.text("fill_as", o::fillAs);
            });
            case "cond" -> graph.cond(s.function("then"), s.function("otherwise"), s.operand(0), s.operandsFrom(1).toArray(Node[]::new));
            case "cond_number" -> s.operand(0).condNumber();
            case "conj" -> s.operand(0).conj();
            case "constant" -> graph.constant(s.tensor("value"));
            case "conv1d" -> s.operand(0).conv1d(s.operand(1), o -> {
                s.operand(2, o::bias);
                s.wholes("stride", o::stride);
                s.wholes("padding", o::padding);
                s.wholes("dilation", o::dilation);
                s.whole("groups", o::groups);
            });
            case "conv2d" -> s.operand(0).conv2d(s.operand(1), o -> {
                s.operand(2, o::bias);
                s.wholes("stride", o::stride);
                s.wholes("padding", o::padding);
                s.wholes("dilation", o::dilation);
                s.whole("groups", o::groups);
            });
            case "conv3d" -> s.operand(0).conv3d(s.operand(1), o -> {
                s.operand(2, o::bias);
                s.wholes("stride", o::stride);
                s.wholes("padding", o::padding);
                s.wholes("dilation", o::dilation);
                s.whole("groups", o::groups);
            });
            case "conv_transpose1d" -> s.operand(0).convTranspose1d(s.operand(1), o -> {
                s.operand(2, o::bias);
                s.wholes("stride", o::stride);
                s.wholes("padding", o::padding);
                s.wholes("dilation", o::dilation);
                s.whole("groups", o::groups);
                s.wholes("output_padding", o::outputPadding);
            });
            case "conv_transpose2d" -> s.operand(0).convTranspose2d(s.operand(1), o -> {
                s.operand(2, o::bias);
                s.wholes("stride", o::stride);
                s.wholes("padding", o::padding);
                s.wholes("dilation", o::dilation);
                s.whole("groups", o::groups);
                s.wholes("output_padding", o::outputPadding);
            });
            case "conv_transpose3d" -> s.operand(0).convTranspose3d(s.operand(1), o -> {
                s.operand(2, o::bias);
                s.wholes("stride", o::stride);
                s.wholes("padding", o::padding);
                s.wholes("dilation", o::dilation);
                s.whole("groups", o::groups);
                s.wholes("output_padding", o::outputPadding);
            });
            case "copy_to_device" -> s.operand(0).copyToDevice();
            case "cos" -> s.operand(0).cos();
            case "cosh" -> s.operand(0).cosh();
            case "cross_entropy" -> s.operand(0).crossEntropy(s.operand(1), o -> s.text("reduction", o::reduction));
            case "cumlogsumexp" -> s.operand(0).cumlogsumexp(s.whole("axis"), o -> s.truth("reverse", o::reverse));
            case "cummax" -> s.operand(0).cummax(s.whole("axis"), o -> s.truth("reverse", o::reverse));
            case "cummin" -> s.operand(0).cummin(s.whole("axis"), o -> s.truth("reverse", o::reverse));
            case "cumprod" -> s.operand(0).cumprod(s.whole("axis"), o -> s.truth("reverse", o::reverse));
            case "cumsum" -> s.operand(0).cumsum(s.whole("axis"), o -> s.truth("reverse", o::reverse));
            case "det" -> s.operand(0).det();
            case "diag" -> s.operand(0).diag(o -> s.whole("offset", o::offset));
            case "digamma" -> s.operand(0).digamma();
            case "div" -> s.operand(0).div(s.operand(1));
            case "div_scalar" -> s.operand(0).divScalar(s.real("scalar"));
            case "eigh" -> s.operand(0).eigh(o -> s.text("degenerate", o::degenerate));
            case "einsum" -> graph.einsum(s.text("equation"), s.operand(0), s.operandsFrom(1).toArray(Node[]::new));
            case "elu" -> s.operand(0).elu(o -> s.real("alpha", o::alpha));
            case "embedding" -> s.operand(0).embedding(s.operand(1), o -> {
                s.truth("from_end", o::fromEnd);
                s.whole("padding_idx", o::paddingIdx);
            });
            case "equal" -> s.operand(0).equal(s.operand(1));
            case "erf" -> s.operand(0).erf();
            case "erfc" -> s.operand(0).erfc();
            case "erfinv" -> s.operand(0).erfinv();
            case "exp" -> s.operand(0).exp();
            case "expm1" -> s.operand(0).expm1();
            case "fft" -> s.operand(0).fft(o -> {
                s.wholes("axes", o::axes);
                s.wholes("sizes", o::sizes);
                s.text("norm", o::norm);
            });
            case "fixed_point" -> graph.fixedPoint(s.function("body"), s.real("tolerance"), s.whole("max_steps"), s.operandsFrom(0), o -> s.whole("carries", o::carries));
            case "flatten" -> s.operand(0).flatten(s.wholes("axes"));
            case "flip" -> s.operand(0).flip(s.wholes("axes"));
            case "floor" -> s.operand(0).floor();
            case "floor_div" -> s.operand(0).floorDiv(s.operand(1));
            case "full" -> graph.full(s.wholes("shape"), o -> {
                s.number("fill", o::fill);
                s.dtype("dtype", o::dtype);
                s.text("fill_as", o::fillAs);
            });
            case "gather" -> s.operand(0).gather(o -> {
                s.operand(1, o::index);
                s.whole("axis", o::axis);
                s.wholes("indices", o::indices);
                s.truth("from_end", o::fromEnd);
            });
            case "gelu" -> s.operand(0).gelu(o -> s.text("approximate", o::approximate));
            case "get_output" -> s.operand(0).getOutput(s.whole("index"));
            case "grad" -> s.operand(0).grad(s.operand(1), s.operand(2));
            case "greater" -> s.operand(0).greater(s.operand(1));
            case "greater_equal" -> s.operand(0).greaterEqual(s.operand(1));
            case "group_norm" -> s.operand(0).groupNorm(s.whole("groups"), o -> {
                s.operand(1, o::weight);
                s.operand(2, o::bias);
                s.real("eps", o::eps);
            });
            case "i0" -> s.operand(0).i0();
            case "i0e" -> s.operand(0).i0e();
            case "i1" -> s.operand(0).i1();
            case "i1e" -> s.operand(0).i1e();
            case "identity" -> s.operand(0).identity();
            case "ifft" -> s.operand(0).ifft(o -> {
                s.wholes("axes", o::axes);
                s.wholes("sizes", o::sizes);
                s.text("norm", o::norm);
            });
            case "igamma" -> s.operand(0).igamma(s.operand(1));
            case "igammac" -> s.operand(0).igammac(s.operand(1));
            case "imag" -> s.operand(0).imag();
            case "index" -> graph.index(s.operand(0), s.operandsFrom(1), o -> {
                s.wholes("axes", o::axes);
                s.truth("from_end", o::fromEnd);
            });
            case "index_add" -> graph.indexAdd(s.operand(0), s.operandsFrom(1), o -> {
                s.wholes("axes", o::axes);
                s.truth("from_end", o::fromEnd);
            });
            case "index_set" -> graph.indexSet(s.operand(0), s.operandsFrom(1), o -> {
                s.wholes("axes", o::axes);
                s.truth("from_end", o::fromEnd);
            });
            case "input" -> graph.input(s.name(), o -> {
                s.dtype("dtype", o::dtype);
                s.wholes("shape", o::shape);
                s.truth("zero_d", o::zeroD);
            });
            case "inv" -> s.operand(0).inv();
            case "irfft" -> s.operand(0).irfft(o -> {
                s.wholes("axes", o::axes);
                s.wholes("sizes", o::sizes);
                s.text("norm", o::norm);
            });
            case "is_finite" -> s.operand(0).isFinite();
            case "layer_norm" -> s.operand(0).layerNorm(o -> {
                s.operand(1, o::weight);
                s.operand(2, o::bias);
                s.wholes("axes", o::axes);
                s.real("eps", o::eps);
            });
            case "leaky_relu" -> s.operand(0).leakyRelu(o -> s.real("alpha", o::alpha));
            case "less" -> s.operand(0).less(s.operand(1));
            case "less_equal" -> s.operand(0).lessEqual(s.operand(1));
            case "lgamma" -> s.operand(0).lgamma();
            case "linear" -> s.operand(0).linear(s.operand(1), o -> {
                s.operand(2, o::b);
                s.text("activation", o::activation);
            });
            case "log" -> s.operand(0).log();
            case "log1p" -> s.operand(0).log1p();
            case "log2" -> s.operand(0).log2();
            case "log_eps" -> s.operand(0).logEps(o -> s.real("eps", o::eps));
            case "log_ndtr" -> s.operand(0).logNdtr();
            case "log_sigmoid" -> s.operand(0).logSigmoid();
            case "log_softmax" -> s.operand(0).logSoftmax(o -> s.whole("axis", o::axis));
            case "logaddexp" -> s.operand(0).logaddexp(s.operand(1));
            case "logical_and" -> s.operand(0).logicalAnd(s.operand(1));
            case "logical_not" -> s.operand(0).logicalNot();
            case "logical_or" -> s.operand(0).logicalOr(s.operand(1));
            case "logsumexp" -> s.operand(0).logsumexp(o -> {
                s.wholes("axes", o::axes);
                s.truth("keepdims", o::keepdims);
            });
            case "lstsq" -> s.operand(0).lstsq(s.operand(1), o -> s.real("rcond", o::rcond));
            case "lu" -> s.operand(0).lu();
            case "make_complex" -> s.operand(0).makeComplex(s.operand(1));
            case "map" -> graph.map(s.function("body"), s.operandsFrom(0), o -> {
                s.whole("sequences", o::sequences);
                s.whole("at_once", o::atOnce);
            });
            case "map_lookup" -> s.operand(0).mapLookup(s.whole("key_index"), s.whole("total_keys"));
            case "matmul" -> s.operand(0).matmul(s.operand(1));
            case "matrix_exp" -> s.operand(0).matrixExp();
            case "matrix_power" -> s.operand(0).matrixPower(s.whole("k"));
            case "matrix_rank" -> s.operand(0).matrixRank();
            case "max" -> s.operand(0).max(o -> {
                s.wholes("axes", o::axes);
                s.truth("keepdims", o::keepdims);
            });
            case "max_pool1d" -> s.operand(0).maxPool1d(s.wholes("kernel_size"), o -> {
                s.wholes("stride", o::stride);
                s.wholes("padding", o::padding);
                s.wholes("dilation", o::dilation);
                s.truth("ceiling", o::ceiling);
            });
            case "max_pool2d" -> s.operand(0).maxPool2d(s.wholes("kernel_size"), o -> {
                s.wholes("stride", o::stride);
                s.wholes("padding", o::padding);
            });
            case "max_pool2d_back" -> s.operand(0).maxPool2dBack(s.operand(1), s.wholes("kernel_size"), o -> {
                s.wholes("stride", o::stride);
                s.wholes("padding", o::padding);
            });
            case "max_pool2d_indices" -> s.operand(0).maxPool2dIndices(s.wholes("kernel_size"), o -> {
                s.wholes("stride", o::stride);
                s.wholes("padding", o::padding);
            });
            case "max_pool3d" -> s.operand(0).maxPool3d(s.wholes("kernel_size"), o -> {
                s.wholes("stride", o::stride);
                s.wholes("padding", o::padding);
                s.wholes("dilation", o::dilation);
                s.truth("ceiling", o::ceiling);
            });
            case "maximum" -> s.operand(0).maximum(s.operand(1));
            case "mean" -> s.operand(0).mean(o -> {
                s.wholes("axes", o::axes);
                s.truth("keepdims", o::keepdims);
            });
            case "min" -> s.operand(0).min(o -> {
                s.wholes("axes", o::axes);
                s.truth("keepdims", o::keepdims);
            });
            case "minimum" -> s.operand(0).minimum(s.operand(1));
            case "mlp_layer" -> s.operand(0).mlpLayer(s.operand(1), s.operand(2), o -> s.text("activation", o::activation));
            case "mod" -> s.operand(0).mod(s.operand(1));
            case "mse_loss" -> s.operand(0).mseLoss(s.operand(1), o -> s.text("reduction", o::reduction));
            case "mul" -> s.operand(0).mul(s.operand(1));
            case "mul_scalar" -> s.operand(0).mulScalar(s.real("scalar"));
            case "neg" -> s.operand(0).neg();
            case "nonzero" -> s.operand(0).nonzero(s.whole("k"));
            case "norm" -> s.operand(0).norm(o -> {
                s.wholes("axes", o::axes);
                s.truth("keepdims", o::keepdims);
            });
            case "not_equal" -> s.operand(0).notEqual(s.operand(1));
            case "one_hot" -> s.operand(0).oneHot(s.whole("classes"), o -> s.dtype("dtype", o::dtype));
            case "pad" -> s.operand(0).pad(s.wholes("pad_width"), o -> {
                s.number("fill", o::fill);
                s.text("fill_as", o::fillAs);
            });
            case "parameter" -> graph.parameter(s.name(), o -> {
                s.dtype("dtype", o::dtype);
                s.wholes("shape", o::shape);
                s.truth("zero_d", o::zeroD);
            });
            case "pinv" -> s.operand(0).pinv(o -> s.real("rcond", o::rcond));
            case "polygamma" -> s.operand(0).polygamma(s.whole("order"));
            case "pow" -> s.operand(0).pow(o -> {
                s.operand(1, o::b);
                s.real("exponent", o::exponent);
            });
            case "pow_scalar" -> s.operand(0).powScalar(s.real("exponent"));
            case "prod" -> s.operand(0).prod(o -> {
                s.wholes("axes", o::axes);
                s.truth("keepdims", o::keepdims);
            });
            case "qr" -> s.operand(0).qr();
            case "random_bernoulli" -> s.operand(0).randomBernoulli(s.operand(1));
            case "random_bits" -> s.operand(0).randomBits(s.wholes("shape"), o -> s.dtype("dtype", o::dtype));
            case "random_categorical" -> s.operand(0).randomCategorical(s.operand(1), o -> s.whole("axis", o::axis));
            case "random_exponential" -> s.operand(0).randomExponential(s.wholes("shape"), s.dtype("dtype"));
            case "random_fold_in" -> s.operand(0).randomFoldIn(s.operand(1));
            case "random_gumbel" -> s.operand(0).randomGumbel(s.wholes("shape"), s.dtype("dtype"));
            case "random_key" -> s.operand(0).randomKey();
            case "random_normal" -> s.operand(0).randomNormal(s.wholes("shape"), s.dtype("dtype"));
            case "random_permutation" -> s.operand(0).randomPermutation(s.whole("k"));
            case "random_split" -> s.operand(0).randomSplit(s.whole("k"));
            case "random_uniform" -> s.operand(0).randomUniform(s.wholes("shape"), s.dtype("dtype"));
            case "real" -> s.operand(0).real();
            case "reciprocal" -> s.operand(0).reciprocal();
            case "relu" -> s.operand(0).relu(o -> s.real("at_zero", o::atZero));
            case "rem" -> s.operand(0).rem_(s.operand(1));
            case "reshape" -> s.operand(0).reshape(s.wholes("shape"), o -> s.wholes("original_shape", o::originalShape));
            case "resize" -> s.operand(0).resize(s.wholes("sizes"), o -> {
                s.wholes("axes", o::axes);
                s.text("method", o::method);
                s.truth("antialias", o::antialias);
                s.truth("corners", o::corners);
            });
            case "rfft" -> s.operand(0).rfft(o -> {
                s.wholes("axes", o::axes);
                s.wholes("sizes", o::sizes);
                s.text("norm", o::norm);
            });
            case "rms_norm" -> s.operand(0).rmsNorm(o -> {
                s.operand(1, o::weight);
                s.wholes("axes", o::axes);
                s.real("eps", o::eps);
            });
            case "roll" -> s.operand(0).roll(s.wholes("shifts"), o -> s.wholes("axes", o::axes));
            case "round" -> s.operand(0).round();
            case "rsqrt" -> s.operand(0).rsqrt();
            case "scan" -> graph.scan(s.function("body"), s.operandsFrom(0), o -> {
                s.whole("carries", o::carries);
                s.whole("sequences", o::sequences);
                s.whole("length", o::length);
                s.truth("reverse", o::reverse);
            });
            case "scatter_add" -> s.operand(0).scatterAdd(s.operand(1), s.operand(2), o -> {
                s.whole("axis", o::axis);
                s.truth("from_end", o::fromEnd);
            });
            case "segment_max" -> s.operand(0).segmentMax(s.operand(1), s.whole("segments"));
            case "segment_mean" -> s.operand(0).segmentMean(s.operand(1), s.whole("segments"));
            case "segment_min" -> s.operand(0).segmentMin(s.operand(1), s.whole("segments"));
            case "segment_prod" -> s.operand(0).segmentProd(s.operand(1), s.whole("segments"));
            case "segment_sum" -> s.operand(0).segmentSum(s.operand(1), s.whole("segments"));
            case "select" -> s.operand(0).select(s.whole("index"), o -> s.whole("axis", o::axis));
            case "selu" -> s.operand(0).selu();
            case "sigmoid" -> s.operand(0).sigmoid();
            case "sign" -> s.operand(0).sign();
            case "silu" -> s.operand(0).silu();
            case "sin" -> s.operand(0).sin();
            case "sinc" -> s.operand(0).sinc();
            case "sinh" -> s.operand(0).sinh();
            case "slice" -> s.operand(0).slice(o -> {
                s.wholes("starts", o::starts);
                s.wholes("stops", o::stops);
                s.wholes("steps", o::steps);
            });
            case "slice_at" -> s.operand(0).sliceAt(s.operand(1), s.wholes("sizes"));
            case "slogdet" -> s.operand(0).slogdet();
            case "softmax" -> s.operand(0).softmax(o -> s.whole("axis", o::axis));
            case "softplus" -> s.operand(0).softplus();
            case "solve" -> s.operand(0).solve(s.operand(1));
            case "sort" -> s.operand(0).sort(s.whole("axis"));
            case "split" -> s.operand(0).split(s.wholes("sizes"), o -> s.whole("axis", o::axis));
            case "sqrt" -> s.operand(0).sqrt();
            case "square" -> s.operand(0).square();
            case "squeeze" -> s.operand(0).squeeze(s.wholes("axes"));
            case "stack" -> graph.stack(s.operandsFrom(0), o -> s.whole("axis", o::axis));
            case "stft" -> s.operand(0).stft(s.operand(1), s.wholes("stride"), o -> s.wholes("sizes", o::sizes));
            case "stop_gradient" -> s.operand(0).stopGradient();
            case "struct_field" -> s.operand(0).structField(s.whole("field_index"), s.whole("total_fields"));
            case "sub" -> s.operand(0).sub(s.operand(1));
            case "sub_scalar" -> s.operand(0).subScalar(s.real("scalar"));
            case "sum" -> s.operand(0).sum(o -> {
                s.wholes("axes", o::axes);
                s.truth("keepdims", o::keepdims);
            });
            case "svd" -> s.operand(0).svd(o -> s.text("degenerate", o::degenerate));
            case "symmetric_function" -> s.operand(0).symmetricFunction(s.text("function"));
            case "take_along" -> s.operand(0).takeAlong(s.operand(1), o -> {
                s.whole("axis", o::axis);
                s.truth("from_end", o::fromEnd);
            });
            case "tan" -> s.operand(0).tan();
            case "tanh" -> s.operand(0).tanh();
            case "tile" -> s.operand(0).tile(s.wholes("repeats"));
            case "topk" -> s.operand(0).topk(s.whole("k"), o -> s.whole("axis", o::axis));
            case "transpose" -> s.operand(0).transpose(s.wholes("axes"));
            case "triangular_solve" -> s.operand(0).triangularSolve(s.operand(1), o -> {
                s.truth("lower", o::lower);
                s.truth("transpose", o::transpose);
            });
            case "tril" -> s.operand(0).tril(o -> s.whole("offset", o::offset));
            case "triu" -> s.operand(0).triu(o -> s.whole("offset", o::offset));
            case "trunc_div" -> s.operand(0).truncDiv(s.operand(1));
            case "unsqueeze" -> s.operand(0).unsqueeze(s.wholes("axes"));
            case "update_slice" -> s.operand(0).updateSlice(s.operand(1), s.wholes("starts"));
            case "update_slice_at" -> s.operand(0).updateSliceAt(s.operand(1), s.operand(2));
            case "var" -> s.operand(0).var(o -> {
                s.wholes("axes", o::axes);
                s.truth("keepdims", o::keepdims);
                s.whole("ddof", o::ddof);
            });
            case "where" -> s.operand(0).where(s.operand(1), s.operand(2));
            case "while" -> graph.while_(s.function("condition"), s.function("body"), s.whole("max_steps"), s.operandsFrom(0), o -> s.whole("carries", o::carries));
            case "xlog1py" -> s.operand(0).xlog1py(s.operand(1));
            case "xlogy" -> s.operand(0).xlogy(s.operand(1));
            case "zeta" -> s.operand(0).zeta(s.operand(1));
            default -> s.any(graph);
        };
    }
}
