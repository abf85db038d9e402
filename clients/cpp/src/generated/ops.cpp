// Written by `python -m clients.ops` from the op registry: do not edit.
#include <gradserve/generated/ops.hpp>

#include "../opset.hpp"

#include <map>
#include <string_view>

namespace gradserve {

std::int64_t opset_of_name(std::string_view name) {
    static const std::map<std::string_view, std::int64_t> since{
        {"adaptive_avg_pool", 2},
        {"adaptive_max_pool", 2},
        {"angle", 2},
        {"attention.grouped", 2},
        {"avg_pool1d", 2},
        {"avg_pool3d", 2},
        {"batch_norm_given", 2},
        {"batch_norm_running", 2},
        {"betainc", 2},
        {"call", 2},
        {"cdist", 2},
        {"compress", 2},
        {"cond", 2},
        {"cond_number", 2},
        {"conj", 2},
        {"conv_transpose1d", 2},
        {"cumlogsumexp", 2},
        {"cummax", 2},
        {"cummin", 2},
        {"cumprod", 2},
        {"cumsum.reverse", 2},
        {"det", 2},
        {"eigh", 2},
        {"embedding.from_end", 2},
        {"embedding.padding_idx", 2},
        {"fft", 2},
        {"fixed_point", 2},
        {"floor_div", 2},
        {"full.fill_as", 2},
        {"gather.from_end", 2},
        {"group_norm", 2},
        {"i0", 2},
        {"i0e", 2},
        {"i1", 2},
        {"i1e", 2},
        {"ifft", 2},
        {"igamma", 2},
        {"igammac", 2},
        {"imag", 2},
        {"index", 2},
        {"index_add", 2},
        {"index_set", 2},
        {"irfft", 2},
        {"lstsq", 2},
        {"lu", 2},
        {"make_complex", 2},
        {"map", 2},
        {"matrix_exp", 2},
        {"matrix_power", 2},
        {"matrix_rank", 2},
        {"max_pool1d", 2},
        {"max_pool3d", 2},
        {"nonzero", 2},
        {"pad.fill_as", 2},
        {"pinv", 2},
        {"qr", 2},
        {"random_bernoulli", 2},
        {"random_bits", 2},
        {"random_categorical", 2},
        {"random_exponential", 2},
        {"random_fold_in", 2},
        {"random_gumbel", 2},
        {"random_key", 2},
        {"random_normal", 2},
        {"random_permutation", 2},
        {"random_split", 2},
        {"random_uniform", 2},
        {"real", 2},
        {"rem", 2},
        {"resize", 2},
        {"rfft", 2},
        {"scan", 2},
        {"scatter_add.from_end", 2},
        {"segment_max", 2},
        {"segment_mean", 2},
        {"segment_min", 2},
        {"segment_prod", 2},
        {"sinc", 2},
        {"slice_at", 2},
        {"stft", 2},
        {"svd", 2},
        {"symmetric_function", 2},
        {"take_along.from_end", 2},
        {"trunc_div", 2},
        {"update_slice_at", 2},
        {"while", 2},
        {"xlog1py", 2},
        {"xlogy", 2},
        {"zeta", 2},
    };
    const auto found = since.find(name);
    return found == since.end() ? first_opset : found->second;
}

Node Ops::abs(const Node& x) {
    return typed("abs", {x}, {});
}

Node Ops::acos(const Node& x) {
    return typed("acos", {x}, {});
}

Node Ops::acosh(const Node& x) {
    return typed("acosh", {x}, {});
}

Node Ops::adaptive_avg_pool(const Node& x, const std::vector<std::int64_t>& sizes) {
    return typed("adaptive_avg_pool", {x}, {{"sizes", sizes}});
}

Node Ops::adaptive_max_pool(const Node& x, const std::vector<std::int64_t>& sizes) {
    return typed("adaptive_max_pool", {x}, {{"sizes", sizes}});
}

Node Ops::add(const Node& a, const Node& b) {
    return typed("add", {a, b}, {});
}

Node Ops::add_scalar(const Node& x, double scalar) {
    return typed("add_scalar", {x}, {{"scalar", scalar}});
}

Node Ops::all(const Node& x, const AllOptions& options) {
    return typed("all", {x}, {{"axes", options.axes}, {"keepdims", options.keepdims}});
}

Node Ops::angle(const Node& x) {
    return typed("angle", {x}, {});
}

Node Ops::any(const Node& x, const AnyOptions& options) {
    return typed("any", {x}, {{"axes", options.axes}, {"keepdims", options.keepdims}});
}

Node Ops::arange(const Number& stop, const ArangeOptions& options) {
    return typed("arange", {}, {
        {"start", options.start},
        {"stop", stop},
        {"step", options.step},
        {"dtype", options.dtype}});
}

Node Ops::argmax(const Node& x, std::int64_t axis, const ArgmaxOptions& options) {
    return typed("argmax", {x}, {{"axis", axis}, {"keepdims", options.keepdims}});
}

Node Ops::argmin(const Node& x, std::int64_t axis, const ArgminOptions& options) {
    return typed("argmin", {x}, {{"axis", axis}, {"keepdims", options.keepdims}});
}

Node Ops::argsort(const Node& x, std::int64_t axis) {
    return typed("argsort", {x}, {{"axis", axis}});
}

Node Ops::asin(const Node& x) {
    return typed("asin", {x}, {});
}

Node Ops::asinh(const Node& x) {
    return typed("asinh", {x}, {});
}

Node Ops::atan(const Node& x) {
    return typed("atan", {x}, {});
}

Node Ops::atan2(const Node& a, const Node& b) {
    return typed("atan2", {a, b}, {});
}

Node Ops::atanh(const Node& x) {
    return typed("atanh", {x}, {});
}

Node Ops::attention(const Node& q, const Node& k, const Node& v, const AttentionOptions& options) {
    return typed("attention", {q, k, v, options.mask}, {
        {"scale", options.scale},
        {"causal", options.causal},
        {"grouped", options.grouped}});
}

Node Ops::avg_pool1d(const Node& x, const std::vector<std::int64_t>& kernel_size, const AvgPool1dOptions& options) {
    return typed("avg_pool1d", {x}, {
        {"kernel_size", kernel_size},
        {"stride", options.stride},
        {"padding", options.padding},
        {"ceiling", options.ceiling}});
}

Node Ops::avg_pool2d(const Node& x, const std::vector<std::int64_t>& kernel_size, const AvgPool2dOptions& options) {
    return typed("avg_pool2d", {x}, {
        {"kernel_size", kernel_size},
        {"stride", options.stride},
        {"padding", options.padding}});
}

Node Ops::avg_pool3d(const Node& x, const std::vector<std::int64_t>& kernel_size, const AvgPool3dOptions& options) {
    return typed("avg_pool3d", {x}, {
        {"kernel_size", kernel_size},
        {"stride", options.stride},
        {"padding", options.padding},
        {"ceiling", options.ceiling}});
}

Node Ops::batch_norm(const Node& x, const BatchNormOptions& options) {
    return typed("batch_norm", {x, options.weight, options.bias}, {{"axis", options.axis}, {"eps", options.eps}});
}

Node Ops::batch_norm_given(
    const Node& x,
    const Node& mean,
    const Node& variance,
    const BatchNormGivenOptions& options) {
    return typed("batch_norm_given", {x, mean, variance, options.weight, options.bias}, {
        {"axis", options.axis},
        {"eps", options.eps}});
}

Node Ops::batch_norm_running(
    const Node& x,
    const Node& mean,
    const Node& variance,
    const BatchNormRunningOptions& options) {
    return typed("batch_norm_running", {x, mean, variance, options.weight, options.bias}, {
        {"axis", options.axis},
        {"eps", options.eps},
        {"momentum", options.momentum}});
}

Node Ops::bce_with_logits(const Node& x, const Node& y, const BceWithLogitsOptions& options) {
    return typed("bce_with_logits", {x, y}, {{"reduction", options.reduction}});
}

Node Ops::betainc(const Node& a, const Node& b, const Node& x) {
    return typed("betainc", {a, b, x}, {});
}

Node Ops::betaln(const Node& a, const Node& b) {
    return typed("betaln", {a, b}, {});
}

Node Ops::broadcast_to(const Node& x, const BroadcastToOptions& options) {
    return typed("broadcast_to", {x}, {{"shape", options.shape}});
}

Node Ops::call(const GraphFunction& body, const std::vector<Node>& operands, const CallOptions& options) {
    return typed("call", operands, {
        {"body", body},
        {"derivative", options.derivative},
        {"recompute", options.recompute}});
}

Node Ops::cast(const Node& x, const DType& dtype) {
    return typed("cast", {x}, {{"dtype", dtype}});
}

Node Ops::cat(const std::vector<Node>& x, const CatOptions& options) {
    return typed("cat", x, {{"axis", options.axis}, {"sizes", options.sizes}});
}

Node Ops::cdist(const Node& a, const Node& b, const CdistOptions& options) {
    return typed("cdist", {a, b}, {{"p", options.p}});
}

Node Ops::ceil(const Node& x) {
    return typed("ceil", {x}, {});
}

Node Ops::cholesky(const Node& x) {
    return typed("cholesky", {x}, {});
}

Node Ops::chunk(const Node& x, std::int64_t chunks, const ChunkOptions& options) {
    return typed("chunk", {x}, {{"chunks", chunks}, {"axis", options.axis}});
}

Node Ops::clamp(const Node& x, const ClampOptions& options) {
    return typed("clamp", {x}, {{"min", options.min}, {"max", options.max}});
}

Node Ops::compress(const Node& x, const Node& mask, std::int64_t k, const CompressOptions& options) {
    return typed("compress", {x, mask}, {
        {"k", k},
        {"axis", options.axis},
        {"fill", options.fill},
        {"fill_as", options.fill_as}});
}

Node Ops::cond(
    const GraphFunction& then,
    const GraphFunction& otherwise,
    const Node& predicate,
    const std::vector<Node>& operands) {
    std::vector<Node> every{predicate};
    every.insert(every.end(), operands.begin(), operands.end());
    return typed("cond", every, {{"then", then}, {"otherwise", otherwise}});
}

Node Ops::cond_number(const Node& x) {
    return typed("cond_number", {x}, {});
}

Node Ops::conj(const Node& x) {
    return typed("conj", {x}, {});
}

Node Ops::constant(const Tensor& value) {
    return typed("constant", {}, {{"value", value}});
}

Node Ops::conv1d(const Node& x, const Node& kernel, const Conv1dOptions& options) {
    return typed("conv1d", {x, kernel, options.bias}, {
        {"stride", options.stride},
        {"padding", options.padding},
        {"dilation", options.dilation},
        {"groups", options.groups}});
}

Node Ops::conv2d(const Node& x, const Node& kernel, const Conv2dOptions& options) {
    return typed("conv2d", {x, kernel, options.bias}, {
        {"stride", options.stride},
        {"padding", options.padding},
        {"dilation", options.dilation},
        {"groups", options.groups}});
}

Node Ops::conv3d(const Node& x, const Node& kernel, const Conv3dOptions& options) {
    return typed("conv3d", {x, kernel, options.bias}, {
        {"stride", options.stride},
        {"padding", options.padding},
        {"dilation", options.dilation},
        {"groups", options.groups}});
}

Node Ops::conv_transpose1d(const Node& x, const Node& kernel, const ConvTranspose1dOptions& options) {
    return typed("conv_transpose1d", {x, kernel, options.bias}, {
        {"stride", options.stride},
        {"padding", options.padding},
        {"dilation", options.dilation},
        {"groups", options.groups},
        {"output_padding", options.output_padding}});
}

Node Ops::conv_transpose2d(const Node& x, const Node& kernel, const ConvTranspose2dOptions& options) {
    return typed("conv_transpose2d", {x, kernel, options.bias}, {
        {"stride", options.stride},
        {"padding", options.padding},
        {"dilation", options.dilation},
        {"groups", options.groups},
        {"output_padding", options.output_padding}});
}

Node Ops::conv_transpose3d(const Node& x, const Node& kernel, const ConvTranspose3dOptions& options) {
    return typed("conv_transpose3d", {x, kernel, options.bias}, {
        {"stride", options.stride},
        {"padding", options.padding},
        {"dilation", options.dilation},
        {"groups", options.groups},
        {"output_padding", options.output_padding}});
}

Node Ops::copy_to_device(const Node& x) {
    return typed("copy_to_device", {x}, {});
}

Node Ops::cos(const Node& x) {
    return typed("cos", {x}, {});
}

Node Ops::cosh(const Node& x) {
    return typed("cosh", {x}, {});
}

Node Ops::cross_entropy(const Node& logits, const Node& targets, const CrossEntropyOptions& options) {
    return typed("cross_entropy", {logits, targets}, {{"reduction", options.reduction}});
}

Node Ops::cumlogsumexp(const Node& x, std::int64_t axis, const CumlogsumexpOptions& options) {
    return typed("cumlogsumexp", {x}, {{"axis", axis}, {"reverse", options.reverse}});
}

Node Ops::cummax(const Node& x, std::int64_t axis, const CummaxOptions& options) {
    return typed("cummax", {x}, {{"axis", axis}, {"reverse", options.reverse}});
}

Node Ops::cummin(const Node& x, std::int64_t axis, const CumminOptions& options) {
    return typed("cummin", {x}, {{"axis", axis}, {"reverse", options.reverse}});
}

Node Ops::cumprod(const Node& x, std::int64_t axis, const CumprodOptions& options) {
    return typed("cumprod", {x}, {{"axis", axis}, {"reverse", options.reverse}});
}

Node Ops::cumsum(const Node& x, std::int64_t axis, const CumsumOptions& options) {
    return typed("cumsum", {x}, {{"axis", axis}, {"reverse", options.reverse}});
}

Node Ops::det(const Node& x) {
    return typed("det", {x}, {});
}

Node Ops::diag(const Node& x, const DiagOptions& options) {
    return typed("diag", {x}, {{"offset", options.offset}});
}

Node Ops::digamma(const Node& x) {
    return typed("digamma", {x}, {});
}

Node Ops::div(const Node& a, const Node& b) {
    return typed("div", {a, b}, {});
}

Node Ops::div_scalar(const Node& x, double scalar) {
    return typed("div_scalar", {x}, {{"scalar", scalar}});
}

Node Ops::eigh(const Node& x, const EighOptions& options) {
    return typed("eigh", {x}, {{"degenerate", options.degenerate}});
}

Node Ops::einsum(const std::string& equation, const Node& a, const std::vector<Node>& b) {
    std::vector<Node> every{a};
    every.insert(every.end(), b.begin(), b.end());
    return typed("einsum", every, {{"equation", equation}});
}

Node Ops::elu(const Node& x, const EluOptions& options) {
    return typed("elu", {x}, {{"alpha", options.alpha}});
}

Node Ops::embedding(const Node& weight, const Node& indices, const EmbeddingOptions& options) {
    return typed("embedding", {weight, indices}, {
        {"from_end", options.from_end},
        {"padding_idx", options.padding_idx}});
}

Node Ops::equal(const Node& a, const Node& b) {
    return typed("equal", {a, b}, {});
}

Node Ops::erf(const Node& x) {
    return typed("erf", {x}, {});
}

Node Ops::erfc(const Node& x) {
    return typed("erfc", {x}, {});
}

Node Ops::erfinv(const Node& x) {
    return typed("erfinv", {x}, {});
}

Node Ops::exp(const Node& x) {
    return typed("exp", {x}, {});
}

Node Ops::expm1(const Node& x) {
    return typed("expm1", {x}, {});
}

Node Ops::fft(const Node& x, const FftOptions& options) {
    return typed("fft", {x}, {{"axes", options.axes}, {"sizes", options.sizes}, {"norm", options.norm}});
}

Node Ops::fixed_point(
    const GraphFunction& body,
    double tolerance,
    std::int64_t max_steps,
    const std::vector<Node>& operands,
    const FixedPointOptions& options) {
    return typed("fixed_point", operands, {
        {"body", body},
        {"carries", options.carries},
        {"tolerance", tolerance},
        {"max_steps", max_steps}});
}

Node Ops::flatten(const Node& x, const FlattenOptions& options) {
    return typed("flatten", {x}, {{"axes", options.axes}});
}

Node Ops::flip(const Node& x, const FlipOptions& options) {
    return typed("flip", {x}, {{"axes", options.axes}});
}

Node Ops::floor(const Node& x) {
    return typed("floor", {x}, {});
}

Node Ops::floor_div(const Node& a, const Node& b) {
    return typed("floor_div", {a, b}, {});
}

Node Ops::full(const FullOptions& options) {
    return typed("full", {}, {
        {"shape", options.shape},
        {"fill", options.fill},
        {"dtype", options.dtype},
        {"fill_as", options.fill_as}});
}

Node Ops::gather(const Node& x, const GatherOptions& options) {
    return typed("gather", {x, options.index}, {
        {"axis", options.axis},
        {"indices", options.indices},
        {"from_end", options.from_end}});
}

Node Ops::gelu(const Node& x, const GeluOptions& options) {
    return typed("gelu", {x}, {{"approximate", options.approximate}});
}

Node Ops::get_output(const Node& x, std::int64_t index) {
    return typed("get_output", {x}, {{"index", index}});
}

Node Ops::grad(const Node& y, const Node& x, const GradOptions& options) {
    return typed("grad", {y, x, options.cotangent}, {});
}

Node Ops::greater(const Node& a, const Node& b) {
    return typed("greater", {a, b}, {});
}

Node Ops::greater_equal(const Node& a, const Node& b) {
    return typed("greater_equal", {a, b}, {});
}

Node Ops::group_norm(const Node& x, std::int64_t groups, const GroupNormOptions& options) {
    return typed("group_norm", {x, options.weight, options.bias}, {{"groups", groups}, {"eps", options.eps}});
}

Node Ops::i0(const Node& x) {
    return typed("i0", {x}, {});
}

Node Ops::i0e(const Node& x) {
    return typed("i0e", {x}, {});
}

Node Ops::i1(const Node& x) {
    return typed("i1", {x}, {});
}

Node Ops::i1e(const Node& x) {
    return typed("i1e", {x}, {});
}

Node Ops::identity(const Node& x) {
    return typed("identity", {x}, {});
}

Node Ops::ifft(const Node& x, const IfftOptions& options) {
    return typed("ifft", {x}, {{"axes", options.axes}, {"sizes", options.sizes}, {"norm", options.norm}});
}

Node Ops::igamma(const Node& a, const Node& x) {
    return typed("igamma", {a, x}, {});
}

Node Ops::igammac(const Node& a, const Node& x) {
    return typed("igammac", {a, x}, {});
}

Node Ops::imag(const Node& x) {
    return typed("imag", {x}, {});
}

Node Ops::index(const Node& x, const std::vector<Node>& indices, const IndexOptions& options) {
    std::vector<Node> every{x};
    every.insert(every.end(), indices.begin(), indices.end());
    return typed("index", every, {{"axes", options.axes}, {"from_end", options.from_end}});
}

Node Ops::index_add(const Node& x, const std::vector<Node>& indices_and_updates, const IndexAddOptions& options) {
    std::vector<Node> every{x};
    every.insert(every.end(), indices_and_updates.begin(), indices_and_updates.end());
    return typed("index_add", every, {{"axes", options.axes}, {"from_end", options.from_end}});
}

Node Ops::index_set(const Node& x, const std::vector<Node>& indices_and_updates, const IndexSetOptions& options) {
    std::vector<Node> every{x};
    every.insert(every.end(), indices_and_updates.begin(), indices_and_updates.end());
    return typed("index_set", every, {{"axes", options.axes}, {"from_end", options.from_end}});
}

Node Ops::input(const std::string& name, const InputOptions& options) {
    return typed("input", {}, {
        {"dtype", options.dtype},
        {"shape", options.shape},
        {"zero_d", options.zero_d}}).named(name);
}

Node Ops::inv(const Node& x) {
    return typed("inv", {x}, {});
}

Node Ops::irfft(const Node& x, const IrfftOptions& options) {
    return typed("irfft", {x}, {{"axes", options.axes}, {"sizes", options.sizes}, {"norm", options.norm}});
}

Node Ops::is_finite(const Node& x) {
    return typed("is_finite", {x}, {});
}

Node Ops::layer_norm(const Node& x, const LayerNormOptions& options) {
    return typed("layer_norm", {x, options.weight, options.bias}, {{"axes", options.axes}, {"eps", options.eps}});
}

Node Ops::leaky_relu(const Node& x, const LeakyReluOptions& options) {
    return typed("leaky_relu", {x}, {{"alpha", options.alpha}});
}

Node Ops::less(const Node& a, const Node& b) {
    return typed("less", {a, b}, {});
}

Node Ops::less_equal(const Node& a, const Node& b) {
    return typed("less_equal", {a, b}, {});
}

Node Ops::lgamma(const Node& x) {
    return typed("lgamma", {x}, {});
}

Node Ops::linear(const Node& x, const Node& w, const LinearOptions& options) {
    return typed("linear", {x, w, options.b}, {{"activation", options.activation}});
}

Node Ops::log(const Node& x) {
    return typed("log", {x}, {});
}

Node Ops::log1p(const Node& x) {
    return typed("log1p", {x}, {});
}

Node Ops::log2(const Node& x) {
    return typed("log2", {x}, {});
}

Node Ops::log_eps(const Node& x, const LogEpsOptions& options) {
    return typed("log_eps", {x}, {{"eps", options.eps}});
}

Node Ops::log_ndtr(const Node& x) {
    return typed("log_ndtr", {x}, {});
}

Node Ops::log_sigmoid(const Node& x) {
    return typed("log_sigmoid", {x}, {});
}

Node Ops::log_softmax(const Node& x, const LogSoftmaxOptions& options) {
    return typed("log_softmax", {x}, {{"axis", options.axis}});
}

Node Ops::logaddexp(const Node& a, const Node& b) {
    return typed("logaddexp", {a, b}, {});
}

Node Ops::logical_and(const Node& a, const Node& b) {
    return typed("logical_and", {a, b}, {});
}

Node Ops::logical_not(const Node& x) {
    return typed("logical_not", {x}, {});
}

Node Ops::logical_or(const Node& a, const Node& b) {
    return typed("logical_or", {a, b}, {});
}

Node Ops::logsumexp(const Node& x, const LogsumexpOptions& options) {
    return typed("logsumexp", {x}, {{"axes", options.axes}, {"keepdims", options.keepdims}});
}

Node Ops::lstsq(const Node& a, const Node& b, const LstsqOptions& options) {
    return typed("lstsq", {a, b}, {{"rcond", options.rcond}});
}

Node Ops::lu(const Node& x) {
    return typed("lu", {x}, {});
}

Node Ops::make_complex(const Node& re, const Node& im) {
    return typed("make_complex", {re, im}, {});
}

Node Ops::map(const GraphFunction& body, const std::vector<Node>& operands, const MapOptions& options) {
    return typed("map", operands, {{"body", body}, {"sequences", options.sequences}, {"at_once", options.at_once}});
}

Node Ops::map_lookup(const Node& x, std::int64_t key_index, std::int64_t total_keys) {
    return typed("map_lookup", {x}, {{"key_index", key_index}, {"total_keys", total_keys}});
}

Node Ops::matmul(const Node& a, const Node& b) {
    return typed("matmul", {a, b}, {});
}

Node Ops::matrix_exp(const Node& x) {
    return typed("matrix_exp", {x}, {});
}

Node Ops::matrix_power(const Node& x, std::int64_t k) {
    return typed("matrix_power", {x}, {{"k", k}});
}

Node Ops::matrix_rank(const Node& x) {
    return typed("matrix_rank", {x}, {});
}

Node Ops::max(const Node& x, const MaxOptions& options) {
    return typed("max", {x}, {{"axes", options.axes}, {"keepdims", options.keepdims}});
}

Node Ops::max_pool1d(const Node& x, const std::vector<std::int64_t>& kernel_size, const MaxPool1dOptions& options) {
    return typed("max_pool1d", {x}, {
        {"kernel_size", kernel_size},
        {"stride", options.stride},
        {"padding", options.padding},
        {"dilation", options.dilation},
        {"ceiling", options.ceiling}});
}

Node Ops::max_pool2d(const Node& x, const std::vector<std::int64_t>& kernel_size, const MaxPool2dOptions& options) {
    return typed("max_pool2d", {x}, {
        {"kernel_size", kernel_size},
        {"stride", options.stride},
        {"padding", options.padding}});
}

Node Ops::max_pool2d_back(
    const Node& g,
    const Node& x,
    const std::vector<std::int64_t>& kernel_size,
    const MaxPool2dBackOptions& options) {
    return typed("max_pool2d_back", {g, x}, {
        {"kernel_size", kernel_size},
        {"stride", options.stride},
        {"padding", options.padding}});
}

Node Ops::max_pool2d_indices(
    const Node& x,
    const std::vector<std::int64_t>& kernel_size,
    const MaxPool2dIndicesOptions& options) {
    return typed("max_pool2d_indices", {x}, {
        {"kernel_size", kernel_size},
        {"stride", options.stride},
        {"padding", options.padding}});
}

Node Ops::max_pool3d(const Node& x, const std::vector<std::int64_t>& kernel_size, const MaxPool3dOptions& options) {
    return typed("max_pool3d", {x}, {
        {"kernel_size", kernel_size},
        {"stride", options.stride},
        {"padding", options.padding},
        {"dilation", options.dilation},
        {"ceiling", options.ceiling}});
}

Node Ops::maximum(const Node& a, const Node& b) {
    return typed("maximum", {a, b}, {});
}

Node Ops::mean(const Node& x, const MeanOptions& options) {
    return typed("mean", {x}, {{"axes", options.axes}, {"keepdims", options.keepdims}});
}

Node Ops::min(const Node& x, const MinOptions& options) {
    return typed("min", {x}, {{"axes", options.axes}, {"keepdims", options.keepdims}});
}

Node Ops::minimum(const Node& a, const Node& b) {
    return typed("minimum", {a, b}, {});
}

Node Ops::mlp_layer(const Node& x, const Node& w, const Node& b, const MlpLayerOptions& options) {
    return typed("mlp_layer", {x, w, b}, {{"activation", options.activation}});
}

Node Ops::mod(const Node& a, const Node& b) {
    return typed("mod", {a, b}, {});
}

Node Ops::mse_loss(const Node& x, const Node& y, const MseLossOptions& options) {
    return typed("mse_loss", {x, y}, {{"reduction", options.reduction}});
}

Node Ops::mul(const Node& a, const Node& b) {
    return typed("mul", {a, b}, {});
}

Node Ops::mul_scalar(const Node& x, double scalar) {
    return typed("mul_scalar", {x}, {{"scalar", scalar}});
}

Node Ops::neg(const Node& x) {
    return typed("neg", {x}, {});
}

Node Ops::nonzero(const Node& mask, std::int64_t k) {
    return typed("nonzero", {mask}, {{"k", k}});
}

Node Ops::norm(const Node& x, const NormOptions& options) {
    return typed("norm", {x}, {{"axes", options.axes}, {"keepdims", options.keepdims}});
}

Node Ops::not_equal(const Node& a, const Node& b) {
    return typed("not_equal", {a, b}, {});
}

Node Ops::one_hot(const Node& indices, std::int64_t classes, const OneHotOptions& options) {
    return typed("one_hot", {indices}, {{"classes", classes}, {"dtype", options.dtype}});
}

Node Ops::pad(const Node& x, const std::vector<std::int64_t>& pad_width, const PadOptions& options) {
    return typed("pad", {x}, {{"pad_width", pad_width}, {"fill", options.fill}, {"fill_as", options.fill_as}});
}

Node Ops::parameter(const std::string& name, const ParameterOptions& options) {
    return typed("parameter", {}, {
        {"dtype", options.dtype},
        {"shape", options.shape},
        {"zero_d", options.zero_d}}).named(name);
}

Node Ops::pinv(const Node& x, const PinvOptions& options) {
    return typed("pinv", {x}, {{"rcond", options.rcond}});
}

Node Ops::polygamma(const Node& x, std::int64_t order) {
    return typed("polygamma", {x}, {{"order", order}});
}

Node Ops::pow(const Node& a, const PowOptions& options) {
    return typed("pow", {a, options.b}, {{"exponent", options.exponent}});
}

Node Ops::pow_scalar(const Node& x, double exponent) {
    return typed("pow_scalar", {x}, {{"exponent", exponent}});
}

Node Ops::prod(const Node& x, const ProdOptions& options) {
    return typed("prod", {x}, {{"axes", options.axes}, {"keepdims", options.keepdims}});
}

Node Ops::qr(const Node& x) {
    return typed("qr", {x}, {});
}

Node Ops::random_bernoulli(const Node& key, const Node& p) {
    return typed("random_bernoulli", {key, p}, {});
}

Node Ops::random_bits(const Node& key, const std::vector<std::int64_t>& shape, const RandomBitsOptions& options) {
    return typed("random_bits", {key}, {{"shape", shape}, {"dtype", options.dtype}});
}

Node Ops::random_categorical(const Node& key, const Node& logits, const RandomCategoricalOptions& options) {
    return typed("random_categorical", {key, logits}, {{"axis", options.axis}});
}

Node Ops::random_exponential(const Node& key, const std::vector<std::int64_t>& shape, const DType& dtype) {
    return typed("random_exponential", {key}, {{"shape", shape}, {"dtype", dtype}});
}

Node Ops::random_fold_in(const Node& key, const Node& number) {
    return typed("random_fold_in", {key, number}, {});
}

Node Ops::random_gumbel(const Node& key, const std::vector<std::int64_t>& shape, const DType& dtype) {
    return typed("random_gumbel", {key}, {{"shape", shape}, {"dtype", dtype}});
}

Node Ops::random_key(const Node& seed) {
    return typed("random_key", {seed}, {});
}

Node Ops::random_normal(const Node& key, const std::vector<std::int64_t>& shape, const DType& dtype) {
    return typed("random_normal", {key}, {{"shape", shape}, {"dtype", dtype}});
}

Node Ops::random_permutation(const Node& key, std::int64_t k) {
    return typed("random_permutation", {key}, {{"k", k}});
}

Node Ops::random_split(const Node& key, std::int64_t k) {
    return typed("random_split", {key}, {{"k", k}});
}

Node Ops::random_uniform(const Node& key, const std::vector<std::int64_t>& shape, const DType& dtype) {
    return typed("random_uniform", {key}, {{"shape", shape}, {"dtype", dtype}});
}

Node Ops::real(const Node& x) {
    return typed("real", {x}, {});
}

Node Ops::reciprocal(const Node& x) {
    return typed("reciprocal", {x}, {});
}

Node Ops::relu(const Node& x, const ReluOptions& options) {
    return typed("relu", {x}, {{"at_zero", options.at_zero}});
}

Node Ops::rem(const Node& a, const Node& b) {
    return typed("rem", {a, b}, {});
}

Node Ops::reshape(const Node& x, const ReshapeOptions& options) {
    return typed("reshape", {x}, {{"shape", options.shape}, {"original_shape", options.original_shape}});
}

Node Ops::resize(const Node& x, const std::vector<std::int64_t>& sizes, const ResizeOptions& options) {
    return typed("resize", {x}, {
        {"sizes", sizes},
        {"axes", options.axes},
        {"method", options.method},
        {"antialias", options.antialias},
        {"corners", options.corners}});
}

Node Ops::rfft(const Node& x, const RfftOptions& options) {
    return typed("rfft", {x}, {{"axes", options.axes}, {"sizes", options.sizes}, {"norm", options.norm}});
}

Node Ops::rms_norm(const Node& x, const RmsNormOptions& options) {
    return typed("rms_norm", {x, options.weight}, {{"axes", options.axes}, {"eps", options.eps}});
}

Node Ops::roll(const Node& x, const std::vector<std::int64_t>& shifts, const RollOptions& options) {
    return typed("roll", {x}, {{"shifts", shifts}, {"axes", options.axes}});
}

Node Ops::round(const Node& x) {
    return typed("round", {x}, {});
}

Node Ops::rsqrt(const Node& x) {
    return typed("rsqrt", {x}, {});
}

Node Ops::scan(const GraphFunction& body, const std::vector<Node>& operands, const ScanOptions& options) {
    return typed("scan", operands, {
        {"body", body},
        {"carries", options.carries},
        {"sequences", options.sequences},
        {"length", options.length},
        {"reverse", options.reverse}});
}

Node Ops::scatter_add(const Node& x, const Node& index, const Node& updates, const ScatterAddOptions& options) {
    return typed("scatter_add", {x, index, updates}, {{"axis", options.axis}, {"from_end", options.from_end}});
}

Node Ops::segment_max(const Node& x, const Node& segment_ids, std::int64_t segments) {
    return typed("segment_max", {x, segment_ids}, {{"segments", segments}});
}

Node Ops::segment_mean(const Node& x, const Node& segment_ids, std::int64_t segments) {
    return typed("segment_mean", {x, segment_ids}, {{"segments", segments}});
}

Node Ops::segment_min(const Node& x, const Node& segment_ids, std::int64_t segments) {
    return typed("segment_min", {x, segment_ids}, {{"segments", segments}});
}

Node Ops::segment_prod(const Node& x, const Node& segment_ids, std::int64_t segments) {
    return typed("segment_prod", {x, segment_ids}, {{"segments", segments}});
}

Node Ops::segment_sum(const Node& x, const Node& segment_ids, std::int64_t segments) {
    return typed("segment_sum", {x, segment_ids}, {{"segments", segments}});
}

Node Ops::select(const Node& x, std::int64_t index, const SelectOptions& options) {
    return typed("select", {x}, {{"index", index}, {"axis", options.axis}});
}

Node Ops::selu(const Node& x) {
    return typed("selu", {x}, {});
}

Node Ops::sigmoid(const Node& x) {
    return typed("sigmoid", {x}, {});
}

Node Ops::sign(const Node& x) {
    return typed("sign", {x}, {});
}

Node Ops::silu(const Node& x) {
    return typed("silu", {x}, {});
}

Node Ops::sin(const Node& x) {
    return typed("sin", {x}, {});
}

Node Ops::sinc(const Node& x) {
    return typed("sinc", {x}, {});
}

Node Ops::sinh(const Node& x) {
    return typed("sinh", {x}, {});
}

Node Ops::slice(const Node& x, const SliceOptions& options) {
    return typed("slice", {x}, {{"starts", options.starts}, {"stops", options.stops}, {"steps", options.steps}});
}

Node Ops::slice_at(const Node& x, const Node& starts, const std::vector<std::int64_t>& sizes) {
    return typed("slice_at", {x, starts}, {{"sizes", sizes}});
}

Node Ops::slogdet(const Node& x) {
    return typed("slogdet", {x}, {});
}

Node Ops::softmax(const Node& x, const SoftmaxOptions& options) {
    return typed("softmax", {x}, {{"axis", options.axis}});
}

Node Ops::softplus(const Node& x) {
    return typed("softplus", {x}, {});
}

Node Ops::solve(const Node& a, const Node& b) {
    return typed("solve", {a, b}, {});
}

Node Ops::sort(const Node& x, std::int64_t axis) {
    return typed("sort", {x}, {{"axis", axis}});
}

Node Ops::split(const Node& x, const std::vector<std::int64_t>& sizes, const SplitOptions& options) {
    return typed("split", {x}, {{"sizes", sizes}, {"axis", options.axis}});
}

Node Ops::sqrt(const Node& x) {
    return typed("sqrt", {x}, {});
}

Node Ops::square(const Node& x) {
    return typed("square", {x}, {});
}

Node Ops::squeeze(const Node& x, const SqueezeOptions& options) {
    return typed("squeeze", {x}, {{"axes", options.axes}});
}

Node Ops::stack(const std::vector<Node>& x, const StackOptions& options) {
    return typed("stack", x, {{"axis", options.axis}});
}

Node Ops::stft(const Node& x, const Node& window, const std::vector<std::int64_t>& stride, const StftOptions& options) {
    return typed("stft", {x, window}, {{"stride", stride}, {"sizes", options.sizes}});
}

Node Ops::stop_gradient(const Node& x) {
    return typed("stop_gradient", {x}, {});
}

Node Ops::struct_field(const Node& x, std::int64_t field_index, std::int64_t total_fields) {
    return typed("struct_field", {x}, {{"field_index", field_index}, {"total_fields", total_fields}});
}

Node Ops::sub(const Node& a, const Node& b) {
    return typed("sub", {a, b}, {});
}

Node Ops::sub_scalar(const Node& x, double scalar) {
    return typed("sub_scalar", {x}, {{"scalar", scalar}});
}

Node Ops::sum(const Node& x, const SumOptions& options) {
    return typed("sum", {x}, {{"axes", options.axes}, {"keepdims", options.keepdims}});
}

Node Ops::svd(const Node& x, const SvdOptions& options) {
    return typed("svd", {x}, {{"degenerate", options.degenerate}});
}

Node Ops::symmetric_function(const Node& x, const std::string& function) {
    return typed("symmetric_function", {x}, {{"function", function}});
}

Node Ops::take_along(const Node& x, const Node& index, const TakeAlongOptions& options) {
    return typed("take_along", {x, index}, {{"axis", options.axis}, {"from_end", options.from_end}});
}

Node Ops::tan(const Node& x) {
    return typed("tan", {x}, {});
}

Node Ops::tanh(const Node& x) {
    return typed("tanh", {x}, {});
}

Node Ops::tile(const Node& x, const std::vector<std::int64_t>& repeats) {
    return typed("tile", {x}, {{"repeats", repeats}});
}

Node Ops::topk(const Node& x, std::int64_t k, const TopkOptions& options) {
    return typed("topk", {x}, {{"k", k}, {"axis", options.axis}});
}

Node Ops::transpose(const Node& x, const TransposeOptions& options) {
    return typed("transpose", {x}, {{"axes", options.axes}});
}

Node Ops::triangular_solve(const Node& a, const Node& b, const TriangularSolveOptions& options) {
    return typed("triangular_solve", {a, b}, {{"lower", options.lower}, {"transpose", options.transpose}});
}

Node Ops::tril(const Node& x, const TrilOptions& options) {
    return typed("tril", {x}, {{"offset", options.offset}});
}

Node Ops::triu(const Node& x, const TriuOptions& options) {
    return typed("triu", {x}, {{"offset", options.offset}});
}

Node Ops::trunc_div(const Node& a, const Node& b) {
    return typed("trunc_div", {a, b}, {});
}

Node Ops::unsqueeze(const Node& x, const UnsqueezeOptions& options) {
    return typed("unsqueeze", {x}, {{"axes", options.axes}});
}

Node Ops::update_slice(const Node& x, const Node& update, const std::vector<std::int64_t>& starts) {
    return typed("update_slice", {x, update}, {{"starts", starts}});
}

Node Ops::update_slice_at(const Node& x, const Node& updates, const Node& starts) {
    return typed("update_slice_at", {x, updates, starts}, {});
}

Node Ops::var(const Node& x, const VarOptions& options) {
    return typed("var", {x}, {{"axes", options.axes}, {"keepdims", options.keepdims}, {"ddof", options.ddof}});
}

Node Ops::where(const Node& cond, const Node& on_true, const Node& on_false) {
    return typed("where", {cond, on_true, on_false}, {});
}

Node Ops::while_(
    const GraphFunction& condition,
    const GraphFunction& body,
    std::int64_t max_steps,
    const std::vector<Node>& operands,
    const WhileOptions& options) {
    return typed("while", operands, {
        {"condition", condition},
        {"body", body},
        {"carries", options.carries},
        {"max_steps", max_steps}});
}

Node Ops::xlog1py(const Node& x, const Node& y) {
    return typed("xlog1py", {x, y}, {});
}

Node Ops::xlogy(const Node& x, const Node& y) {
    return typed("xlogy", {x, y}, {});
}

Node Ops::zeta(const Node& s, const Node& q) {
    return typed("zeta", {s, q}, {});
}

}  // namespace gradserve
