// Written by `python -m clients.ops` from the op registry: do not edit.
#include "../step.hpp"

#include <functional>
#include <map>
#include <string>

namespace conformance {

using Append = std::function<gs::Node(gs::Graph&, const Step&)>;

static const std::map<std::string, Append>& methods() {
    static const std::map<std::string, Append> all{
        {"abs", [](gs::Graph& graph, const Step& step) {
            return graph.abs(step.operand(0));
        }},
        {"acos", [](gs::Graph& graph, const Step& step) {
            return graph.acos(step.operand(0));
        }},
        {"acosh", [](gs::Graph& graph, const Step& step) {
            return graph.acosh(step.operand(0));
        }},
        {"adaptive_avg_pool", [](gs::Graph& graph, const Step& step) {
            return graph.adaptive_avg_pool(step.operand(0), step.attr<std::vector<std::int64_t>>("sizes"));
        }},
        {"adaptive_max_pool", [](gs::Graph& graph, const Step& step) {
            return graph.adaptive_max_pool(step.operand(0), step.attr<std::vector<std::int64_t>>("sizes"));
        }},
        {"add", [](gs::Graph& graph, const Step& step) {
            return graph.add(step.operand(0), step.operand(1));
        }},
        {"add_scalar", [](gs::Graph& graph, const Step& step) {
            return graph.add_scalar(step.operand(0), step.attr<double>("scalar"));
        }},
        {"all", [](gs::Graph& graph, const Step& step) {
            gs::AllOptions options;
            step.read("axes", options.axes);
            step.read("keepdims", options.keepdims);
            return graph.all(step.operand(0), options);
        }},
        {"angle", [](gs::Graph& graph, const Step& step) {
            return graph.angle(step.operand(0));
        }},
        {"any", [](gs::Graph& graph, const Step& step) {
            gs::AnyOptions options;
            step.read("axes", options.axes);
            step.read("keepdims", options.keepdims);
            return graph.any(step.operand(0), options);
        }},
        {"arange", [](gs::Graph& graph, const Step& step) {
            gs::ArangeOptions options;
            step.read("start", options.start);
            step.read("step", options.step);
            step.read("dtype", options.dtype);
            return graph.arange(step.attr<gs::Number>("stop"), options);
        }},
        {"argmax", [](gs::Graph& graph, const Step& step) {
            gs::ArgmaxOptions options;
            step.read("keepdims", options.keepdims);
            return graph.argmax(step.operand(0), step.attr<std::int64_t>("axis"), options);
        }},
        {"argmin", [](gs::Graph& graph, const Step& step) {
            gs::ArgminOptions options;
            step.read("keepdims", options.keepdims);
            return graph.argmin(step.operand(0), step.attr<std::int64_t>("axis"), options);
        }},
        {"argsort", [](gs::Graph& graph, const Step& step) {
            return graph.argsort(step.operand(0), step.attr<std::int64_t>("axis"));
        }},
        {"asin", [](gs::Graph& graph, const Step& step) {
            return graph.asin(step.operand(0));
        }},
        {"asinh", [](gs::Graph& graph, const Step& step) {
            return graph.asinh(step.operand(0));
        }},
        {"atan", [](gs::Graph& graph, const Step& step) {
            return graph.atan(step.operand(0));
        }},
        {"atan2", [](gs::Graph& graph, const Step& step) {
            return graph.atan2(step.operand(0), step.operand(1));
        }},
        {"atanh", [](gs::Graph& graph, const Step& step) {
            return graph.atanh(step.operand(0));
        }},
        {"attention", [](gs::Graph& graph, const Step& step) {
            gs::AttentionOptions options;
            options.mask = step.operand_if_any(3);
            step.read("scale", options.scale);
            step.read("causal", options.causal);
            step.read("grouped", options.grouped);
            return graph.attention(step.operand(0), step.operand(1), step.operand(2), options);
        }},
        {"avg_pool1d", [](gs::Graph& graph, const Step& step) {
            gs::AvgPool1dOptions options;
            step.read("stride", options.stride);
            step.read("padding", options.padding);
            step.read("ceiling", options.ceiling);
            return graph.avg_pool1d(step.operand(0), step.attr<std::vector<std::int64_t>>("kernel_size"), options);
        }},
        {"avg_pool2d", [](gs::Graph& graph, const Step& step) {
            gs::AvgPool2dOptions options;
            step.read("stride", options.stride);
            step.read("padding", options.padding);
            return graph.avg_pool2d(step.operand(0), step.attr<std::vector<std::int64_t>>("kernel_size"), options);
        }},
        {"avg_pool3d", [](gs::Graph& graph, const Step& step) {
            gs::AvgPool3dOptions options;
            step.read("stride", options.stride);
            step.read("padding", options.padding);
            step.read("ceiling", options.ceiling);
            return graph.avg_pool3d(step.operand(0), step.attr<std::vector<std::int64_t>>("kernel_size"), options);
        }},
        {"batch_norm", [](gs::Graph& graph, const Step& step) {
            gs::BatchNormOptions options;
            options.weight = step.operand_if_any(1);
            options.bias = step.operand_if_any(2);
            step.read("axis", options.axis);
            step.read("eps", options.eps);
            return graph.batch_norm(step.operand(0), options);
        }},
        {"batch_norm_given", [](gs::Graph& graph, const Step& step) {
            gs::BatchNormGivenOptions options;
            options.weight = step.operand_if_any(3);
            options.bias = step.operand_if_any(4);
            step.read("axis", options.axis);
            step.read("eps", options.eps);
            return graph.batch_norm_given(step.operand(0), step.operand(1), step.operand(2), options);
        }},
        {"batch_norm_running", [](gs::Graph& graph, const Step& step) {
            gs::BatchNormRunningOptions options;
            options.weight = step.operand_if_any(3);
            options.bias = step.operand_if_any(4);
            step.read("axis", options.axis);
            step.read("eps", options.eps);
            step.read("momentum", options.momentum);
            return graph.batch_norm_running(step.operand(0), step.operand(1), step.operand(2), options);
        }},
        {"bce_with_logits", [](gs::Graph& graph, const Step& step) {
            gs::BceWithLogitsOptions options;
            step.read("reduction", options.reduction);
            return graph.bce_with_logits(step.operand(0), step.operand(1), options);
        }},
        {"betainc", [](gs::Graph& graph, const Step& step) {
            return graph.betainc(step.operand(0), step.operand(1), step.operand(2));
        }},
        {"betaln", [](gs::Graph& graph, const Step& step) {
            return graph.betaln(step.operand(0), step.operand(1));
        }},
        {"broadcast_to", [](gs::Graph& graph, const Step& step) {
            gs::BroadcastToOptions options;
            step.read("shape", options.shape);
            return graph.broadcast_to(step.operand(0), options);
        }},
        {"call", [](gs::Graph& graph, const Step& step) {
            gs::CallOptions options;
            step.read("derivative", options.derivative);
            step.read("recompute", options.recompute);
            return graph.call(step.attr<gs::GraphFunction>("body"), step.operands_from(0), options);
        }},
        {"cast", [](gs::Graph& graph, const Step& step) {
            return graph.cast(step.operand(0), step.attr<gs::DType>("dtype"));
        }},
        {"cat", [](gs::Graph& graph, const Step& step) {
            gs::CatOptions options;
            step.read("axis", options.axis);
            step.read("sizes", options.sizes);
            return graph.cat(step.operands_from(0), options);
        }},
        {"cdist", [](gs::Graph& graph, const Step& step) {
            gs::CdistOptions options;
            step.read("p", options.p);
            return graph.cdist(step.operand(0), step.operand(1), options);
        }},
        {"ceil", [](gs::Graph& graph, const Step& step) {
            return graph.ceil(step.operand(0));
        }},
        {"cholesky", [](gs::Graph& graph, const Step& step) {
            return graph.cholesky(step.operand(0));
        }},
        {"chunk", [](gs::Graph& graph, const Step& step) {
            gs::ChunkOptions options;
            step.read("axis", options.axis);
            return graph.chunk(step.operand(0), step.attr<std::int64_t>("chunks"), options);
        }},
        {"clamp", [](gs::Graph& graph, const Step& step) {
            gs::ClampOptions options;
            step.read("min", options.min);
            step.read("max", options.max);
            return graph.clamp(step.operand(0), options);
        }},
        {"compress", [](gs::Graph& graph, const Step& step) {
            gs::CompressOptions options;
            step.read("axis", options.axis);
            step.read("fill", options.fill);
            step.read("fill_as", options.fill_as);
            return graph.compress(step.operand(0), step.operand(1), step.attr<std::int64_t>("k"), options);
        }},
        {"cond", [](gs::Graph& graph, const Step& step) {
            return graph.cond(
                step.attr<gs::GraphFunction>("then"),
                step.attr<gs::GraphFunction>("otherwise"),
                step.operand(0),
                step.operands_from(1));
        }},
        {"cond_number", [](gs::Graph& graph, const Step& step) {
            return graph.cond_number(step.operand(0));
        }},
        {"conj", [](gs::Graph& graph, const Step& step) {
            return graph.conj(step.operand(0));
        }},
        {"constant", [](gs::Graph& graph, const Step& step) {
            return graph.constant(step.attr<gs::Tensor>("value"));
        }},
        {"conv1d", [](gs::Graph& graph, const Step& step) {
            gs::Conv1dOptions options;
            options.bias = step.operand_if_any(2);
            step.read("stride", options.stride);
            step.read("padding", options.padding);
            step.read("dilation", options.dilation);
            step.read("groups", options.groups);
            return graph.conv1d(step.operand(0), step.operand(1), options);
        }},
        {"conv2d", [](gs::Graph& graph, const Step& step) {
            gs::Conv2dOptions options;
            options.bias = step.operand_if_any(2);
            step.read("stride", options.stride);
            step.read("padding", options.padding);
            step.read("dilation", options.dilation);
            step.read("groups", options.groups);
            return graph.conv2d(step.operand(0), step.operand(1), options);
        }},
        {"conv3d", [](gs::Graph& graph, const Step& step) {
            gs::Conv3dOptions options;
            options.bias = step.operand_if_any(2);
            step.read("stride", options.stride);
            step.read("padding", options.padding);
            step.read("dilation", options.dilation);
            step.read("groups", options.groups);
            return graph.conv3d(step.operand(0), step.operand(1), options);
        }},
        {"conv_transpose1d", [](gs::Graph& graph, const Step& step) {
            gs::ConvTranspose1dOptions options;
            options.bias = step.operand_if_any(2);
            step.read("stride", options.stride);
            step.read("padding", options.padding);
            step.read("dilation", options.dilation);
            step.read("groups", options.groups);
            step.read("output_padding", options.output_padding);
            return graph.conv_transpose1d(step.operand(0), step.operand(1), options);
        }},
        {"conv_transpose2d", [](gs::Graph& graph, const Step& step) {
            gs::ConvTranspose2dOptions options;
            options.bias = step.operand_if_any(2);
            step.read("stride", options.stride);
            step.read("padding", options.padding);
            step.read("dilation", options.dilation);
            step.read("groups", options.groups);
            step.read("output_padding", options.output_padding);
            return graph.conv_transpose2d(step.operand(0), step.operand(1), options);
        }},
        {"conv_transpose3d", [](gs::Graph& graph, const Step& step) {
            gs::ConvTranspose3dOptions options;
            options.bias = step.operand_if_any(2);
            step.read("stride", options.stride);
            step.read("padding", options.padding);
            step.read("dilation", options.dilation);
            step.read("groups", options.groups);
            step.read("output_padding", options.output_padding);
            return graph.conv_transpose3d(step.operand(0), step.operand(1), options);
        }},
        {"copy_to_device", [](gs::Graph& graph, const Step& step) {
            return graph.copy_to_device(step.operand(0));
        }},
        {"cos", [](gs::Graph& graph, const Step& step) {
            return graph.cos(step.operand(0));
        }},
        {"cosh", [](gs::Graph& graph, const Step& step) {
            return graph.cosh(step.operand(0));
        }},
        {"cross_entropy", [](gs::Graph& graph, const Step& step) {
            gs::CrossEntropyOptions options;
            step.read("reduction", options.reduction);
            return graph.cross_entropy(step.operand(0), step.operand(1), options);
        }},
        {"cumlogsumexp", [](gs::Graph& graph, const Step& step) {
            gs::CumlogsumexpOptions options;
            step.read("reverse", options.reverse);
            return graph.cumlogsumexp(step.operand(0), step.attr<std::int64_t>("axis"), options);
        }},
        {"cummax", [](gs::Graph& graph, const Step& step) {
            gs::CummaxOptions options;
            step.read("reverse", options.reverse);
            return graph.cummax(step.operand(0), step.attr<std::int64_t>("axis"), options);
        }},
        {"cummin", [](gs::Graph& graph, const Step& step) {
            gs::CumminOptions options;
            step.read("reverse", options.reverse);
            return graph.cummin(step.operand(0), step.attr<std::int64_t>("axis"), options);
        }},
        {"cumprod", [](gs::Graph& graph, const Step& step) {
            gs::CumprodOptions options;
            step.read("reverse", options.reverse);
            return graph.cumprod(step.operand(0), step.attr<std::int64_t>("axis"), options);
        }},
        {"cumsum", [](gs::Graph& graph, const Step& step) {
            gs::CumsumOptions options;
            step.read("reverse", options.reverse);
            return graph.cumsum(step.operand(0), step.attr<std::int64_t>("axis"), options);
        }},
        {"det", [](gs::Graph& graph, const Step& step) {
            return graph.det(step.operand(0));
        }},
        {"diag", [](gs::Graph& graph, const Step& step) {
            gs::DiagOptions options;
            step.read("offset", options.offset);
            return graph.diag(step.operand(0), options);
        }},
        {"digamma", [](gs::Graph& graph, const Step& step) {
            return graph.digamma(step.operand(0));
        }},
        {"div", [](gs::Graph& graph, const Step& step) {
            return graph.div(step.operand(0), step.operand(1));
        }},
        {"div_scalar", [](gs::Graph& graph, const Step& step) {
            return graph.div_scalar(step.operand(0), step.attr<double>("scalar"));
        }},
        {"eigh", [](gs::Graph& graph, const Step& step) {
            gs::EighOptions options;
            step.read("degenerate", options.degenerate);
            return graph.eigh(step.operand(0), options);
        }},
        {"einsum", [](gs::Graph& graph, const Step& step) {
            return graph.einsum(step.attr<std::string>("equation"), step.operand(0), step.operands_from(1));
        }},
        {"elu", [](gs::Graph& graph, const Step& step) {
            gs::EluOptions options;
            step.read("alpha", options.alpha);
            return graph.elu(step.operand(0), options);
        }},
        {"embedding", [](gs::Graph& graph, const Step& step) {
            gs::EmbeddingOptions options;
            step.read("from_end", options.from_end);
            step.read("padding_idx", options.padding_idx);
            return graph.embedding(step.operand(0), step.operand(1), options);
        }},
        {"equal", [](gs::Graph& graph, const Step& step) {
            return graph.equal(step.operand(0), step.operand(1));
        }},
        {"erf", [](gs::Graph& graph, const Step& step) {
            return graph.erf(step.operand(0));
        }},
        {"erfc", [](gs::Graph& graph, const Step& step) {
            return graph.erfc(step.operand(0));
        }},
        {"erfinv", [](gs::Graph& graph, const Step& step) {
            return graph.erfinv(step.operand(0));
        }},
        {"exp", [](gs::Graph& graph, const Step& step) {
            return graph.exp(step.operand(0));
        }},
        {"expm1", [](gs::Graph& graph, const Step& step) {
            return graph.expm1(step.operand(0));
        }},
        {"fft", [](gs::Graph& graph, const Step& step) {
            gs::FftOptions options;
            step.read("axes", options.axes);
            step.read("sizes", options.sizes);
            step.read("norm", options.norm);
            return graph.fft(step.operand(0), options);
        }},
        {"fixed_point", [](gs::Graph& graph, const Step& step) {
            gs::FixedPointOptions options;
            step.read("carries", options.carries);
            return graph.fixed_point(
                step.attr<gs::GraphFunction>("body"),
                step.attr<double>("tolerance"),
                step.attr<std::int64_t>("max_steps"),
                step.operands_from(0),
                options);
        }},
        {"flatten", [](gs::Graph& graph, const Step& step) {
            gs::FlattenOptions options;
            step.read("axes", options.axes);
            return graph.flatten(step.operand(0), options);
        }},
        {"flip", [](gs::Graph& graph, const Step& step) {
            gs::FlipOptions options;
            step.read("axes", options.axes);
            return graph.flip(step.operand(0), options);
        }},
        {"floor", [](gs::Graph& graph, const Step& step) {
            return graph.floor(step.operand(0));
        }},
        {"floor_div", [](gs::Graph& graph, const Step& step) {
            return graph.floor_div(step.operand(0), step.operand(1));
        }},
        {"full", [](gs::Graph& graph, const Step& step) {
            gs::FullOptions options;
            step.read("shape", options.shape);
            step.read("fill", options.fill);
            step.read("dtype", options.dtype);
            step.read("fill_as", options.fill_as);
            return graph.full(options);
        }},
        {"gather", [](gs::Graph& graph, const Step& step) {
            gs::GatherOptions options;
            options.index = step.operand_if_any(1);
            step.read("axis", options.axis);
            step.read("indices", options.indices);
            step.read("from_end", options.from_end);
            return graph.gather(step.operand(0), options);
        }},
        {"gelu", [](gs::Graph& graph, const Step& step) {
            gs::GeluOptions options;
            step.read("approximate", options.approximate);
            return graph.gelu(step.operand(0), options);
        }},
        {"get_output", [](gs::Graph& graph, const Step& step) {
            return graph.get_output(step.operand(0), step.attr<std::int64_t>("index"));
        }},
        {"grad", [](gs::Graph& graph, const Step& step) {
            gs::GradOptions options;
            options.cotangent = step.operand_if_any(2);
            return graph.grad(step.operand(0), step.operand(1), options);
        }},
        {"greater", [](gs::Graph& graph, const Step& step) {
            return graph.greater(step.operand(0), step.operand(1));
        }},
        {"greater_equal", [](gs::Graph& graph, const Step& step) {
            return graph.greater_equal(step.operand(0), step.operand(1));
        }},
        {"group_norm", [](gs::Graph& graph, const Step& step) {
            gs::GroupNormOptions options;
            options.weight = step.operand_if_any(1);
            options.bias = step.operand_if_any(2);
            step.read("eps", options.eps);
            return graph.group_norm(step.operand(0), step.attr<std::int64_t>("groups"), options);
        }},
        {"i0", [](gs::Graph& graph, const Step& step) {
            return graph.i0(step.operand(0));
        }},
        {"i0e", [](gs::Graph& graph, const Step& step) {
            return graph.i0e(step.operand(0));
        }},
        {"i1", [](gs::Graph& graph, const Step& step) {
            return graph.i1(step.operand(0));
        }},
        {"i1e", [](gs::Graph& graph, const Step& step) {
            return graph.i1e(step.operand(0));
        }},
        {"identity", [](gs::Graph& graph, const Step& step) {
            return graph.identity(step.operand(0));
        }},
        {"ifft", [](gs::Graph& graph, const Step& step) {
            gs::IfftOptions options;
            step.read("axes", options.axes);
            step.read("sizes", options.sizes);
            step.read("norm", options.norm);
            return graph.ifft(step.operand(0), options);
        }},
        {"igamma", [](gs::Graph& graph, const Step& step) {
            return graph.igamma(step.operand(0), step.operand(1));
        }},
        {"igammac", [](gs::Graph& graph, const Step& step) {
            return graph.igammac(step.operand(0), step.operand(1));
        }},
        {"imag", [](gs::Graph& graph, const Step& step) {
            return graph.imag(step.operand(0));
        }},
        {"index", [](gs::Graph& graph, const Step& step) {
            gs::IndexOptions options;
            step.read("axes", options.axes);
            step.read("from_end", options.from_end);
            return graph.index(step.operand(0), step.operands_from(1), options);
        }},
        {"index_add", [](gs::Graph& graph, const Step& step) {
            gs::IndexAddOptions options;
            step.read("axes", options.axes);
            step.read("from_end", options.from_end);
            return graph.index_add(step.operand(0), step.operands_from(1), options);
        }},
        {"index_set", [](gs::Graph& graph, const Step& step) {
            gs::IndexSetOptions options;
            step.read("axes", options.axes);
            step.read("from_end", options.from_end);
            return graph.index_set(step.operand(0), step.operands_from(1), options);
        }},
        {"input", [](gs::Graph& graph, const Step& step) {
            gs::InputOptions options;
            step.read("dtype", options.dtype);
            step.read("shape", options.shape);
            step.read("zero_d", options.zero_d);
            return graph.input(step.name(), options);
        }},
        {"inv", [](gs::Graph& graph, const Step& step) {
            return graph.inv(step.operand(0));
        }},
        {"irfft", [](gs::Graph& graph, const Step& step) {
            gs::IrfftOptions options;
            step.read("axes", options.axes);
            step.read("sizes", options.sizes);
            step.read("norm", options.norm);
            return graph.irfft(step.operand(0), options);
        }},
        {"is_finite", [](gs::Graph& graph, const Step& step) {
            return graph.is_finite(step.operand(0));
        }},
        {"layer_norm", [](gs::Graph& graph, const Step& step) {
            gs::LayerNormOptions options;
            options.weight = step.operand_if_any(1);
            options.bias = step.operand_if_any(2);
            step.read("axes", options.axes);
            step.read("eps", options.eps);
            return graph.layer_norm(step.operand(0), options);
        }},
        {"leaky_relu", [](gs::Graph& graph, const Step& step) {
            gs::LeakyReluOptions options;
            step.read("alpha", options.alpha);
            return graph.leaky_relu(step.operand(0), options);
        }},
        {"less", [](gs::Graph& graph, const Step& step) {
            return graph.less(step.operand(0), step.operand(1));
        }},
        {"less_equal", [](gs::Graph& graph, const Step& step) {
            return graph.less_equal(step.operand(0), step.operand(1));
        }},
        {"lgamma", [](gs::Graph& graph, const Step& step) {
            return graph.lgamma(step.operand(0));
        }},
        {"linear", [](gs::Graph& graph, const Step& step) {
            gs::LinearOptions options;
            options.b = step.operand_if_any(2);
            step.read("activation", options.activation);
            return graph.linear(step.operand(0), step.operand(1), options);
        }},
        {"log", [](gs::Graph& graph, const Step& step) {
            return graph.log(step.operand(0));
        }},
        {"log1p", [](gs::Graph& graph, const Step& step) {
            return graph.log1p(step.operand(0));
        }},
        {"log2", [](gs::Graph& graph, const Step& step) {
            return graph.log2(step.operand(0));
        }},
        {"log_eps", [](gs::Graph& graph, const Step& step) {
            gs::LogEpsOptions options;
            step.read("eps", options.eps);
            return graph.log_eps(step.operand(0), options);
        }},
        {"log_ndtr", [](gs::Graph& graph, const Step& step) {
            return graph.log_ndtr(step.operand(0));
        }},
        {"log_sigmoid", [](gs::Graph& graph, const Step& step) {
            return graph.log_sigmoid(step.operand(0));
        }},
        {"log_softmax", [](gs::Graph& graph, const Step& step) {
            gs::LogSoftmaxOptions options;
            step.read("axis", options.axis);
            return graph.log_softmax(step.operand(0), options);
        }},
        {"logaddexp", [](gs::Graph& graph, const Step& step) {
            return graph.logaddexp(step.operand(0), step.operand(1));
        }},
        {"logical_and", [](gs::Graph& graph, const Step& step) {
            return graph.logical_and(step.operand(0), step.operand(1));
        }},
        {"logical_not", [](gs::Graph& graph, const Step& step) {
            return graph.logical_not(step.operand(0));
        }},
        {"logical_or", [](gs::Graph& graph, const Step& step) {
            return graph.logical_or(step.operand(0), step.operand(1));
        }},
        {"logsumexp", [](gs::Graph& graph, const Step& step) {
            gs::LogsumexpOptions options;
            step.read("axes", options.axes);
            step.read("keepdims", options.keepdims);
            return graph.logsumexp(step.operand(0), options);
        }},
        {"lstsq", [](gs::Graph& graph, const Step& step) {
            gs::LstsqOptions options;
            step.read("rcond", options.rcond);
            return graph.lstsq(step.operand(0), step.operand(1), options);
        }},
        {"lu", [](gs::Graph& graph, const Step& step) {
            return graph.lu(step.operand(0));
        }},
        {"make_complex", [](gs::Graph& graph, const Step& step) {
            return graph.make_complex(step.operand(0), step.operand(1));
        }},
        {"map", [](gs::Graph& graph, const Step& step) {
            gs::MapOptions options;
            step.read("sequences", options.sequences);
            step.read("at_once", options.at_once);
            return graph.map(step.attr<gs::GraphFunction>("body"), step.operands_from(0), options);
        }},
        {"map_lookup", [](gs::Graph& graph, const Step& step) {
            return graph.map_lookup(
                step.operand(0),
                step.attr<std::int64_t>("key_index"),
                step.attr<std::int64_t>("total_keys"));
        }},
        {"matmul", [](gs::Graph& graph, const Step& step) {
            return graph.matmul(step.operand(0), step.operand(1));
        }},
        {"matrix_exp", [](gs::Graph& graph, const Step& step) {
            return graph.matrix_exp(step.operand(0));
        }},
        {"matrix_power", [](gs::Graph& graph, const Step& step) {
            return graph.matrix_power(step.operand(0), step.attr<std::int64_t>("k"));
        }},
        {"matrix_rank", [](gs::Graph& graph, const Step& step) {
            return graph.matrix_rank(step.operand(0));
        }},
        {"max", [](gs::Graph& graph, const Step& step) {
            gs::MaxOptions options;
            step.read("axes", options.axes);
            step.read("keepdims", options.keepdims);
            return graph.max(step.operand(0), options);
        }},
        {"max_pool1d", [](gs::Graph& graph, const Step& step) {
            gs::MaxPool1dOptions options;
            step.read("stride", options.stride);
            step.read("padding", options.padding);
            step.read("dilation", options.dilation);
            step.read("ceiling", options.ceiling);
            return graph.max_pool1d(step.operand(0), step.attr<std::vector<std::int64_t>>("kernel_size"), options);
        }},
        {"max_pool2d", [](gs::Graph& graph, const Step& step) {
            gs::MaxPool2dOptions options;
            step.read("stride", options.stride);
            step.read("padding", options.padding);
            return graph.max_pool2d(step.operand(0), step.attr<std::vector<std::int64_t>>("kernel_size"), options);
        }},
        {"max_pool2d_back", [](gs::Graph& graph, const Step& step) {
            gs::MaxPool2dBackOptions options;
            step.read("stride", options.stride);
            step.read("padding", options.padding);
            return graph.max_pool2d_back(
                step.operand(0),
                step.operand(1),
                step.attr<std::vector<std::int64_t>>("kernel_size"),
                options);
        }},
        {"max_pool2d_indices", [](gs::Graph& graph, const Step& step) {
            gs::MaxPool2dIndicesOptions options;
            step.read("stride", options.stride);
            step.read("padding", options.padding);
            return graph.max_pool2d_indices(
                step.operand(0),
                step.attr<std::vector<std::int64_t>>("kernel_size"),
                options);
        }},
        {"max_pool3d", [](gs::Graph& graph, const Step& step) {
            gs::MaxPool3dOptions options;
            step.read("stride", options.stride);
            step.read("padding", options.padding);
            step.read("dilation", options.dilation);
            step.read("ceiling", options.ceiling);
            return graph.max_pool3d(step.operand(0), step.attr<std::vector<std::int64_t>>("kernel_size"), options);
        }},
        {"maximum", [](gs::Graph& graph, const Step& step) {
            return graph.maximum(step.operand(0), step.operand(1));
        }},
        {"mean", [](gs::Graph& graph, const Step& step) {
            gs::MeanOptions options;
            step.read("axes", options.axes);
            step.read("keepdims", options.keepdims);
            return graph.mean(step.operand(0), options);
        }},
        {"min", [](gs::Graph& graph, const Step& step) {
            gs::MinOptions options;
            step.read("axes", options.axes);
            step.read("keepdims", options.keepdims);
            return graph.min(step.operand(0), options);
        }},
        {"minimum", [](gs::Graph& graph, const Step& step) {
            return graph.minimum(step.operand(0), step.operand(1));
        }},
        {"mlp_layer", [](gs::Graph& graph, const Step& step) {
            gs::MlpLayerOptions options;
            step.read("activation", options.activation);
            return graph.mlp_layer(step.operand(0), step.operand(1), step.operand(2), options);
        }},
        {"mod", [](gs::Graph& graph, const Step& step) {
            return graph.mod(step.operand(0), step.operand(1));
        }},
        {"mse_loss", [](gs::Graph& graph, const Step& step) {
            gs::MseLossOptions options;
            step.read("reduction", options.reduction);
            return graph.mse_loss(step.operand(0), step.operand(1), options);
        }},
        {"mul", [](gs::Graph& graph, const Step& step) {
            return graph.mul(step.operand(0), step.operand(1));
        }},
        {"mul_scalar", [](gs::Graph& graph, const Step& step) {
            return graph.mul_scalar(step.operand(0), step.attr<double>("scalar"));
        }},
        {"neg", [](gs::Graph& graph, const Step& step) {
            return graph.neg(step.operand(0));
        }},
        {"nonzero", [](gs::Graph& graph, const Step& step) {
            return graph.nonzero(step.operand(0), step.attr<std::int64_t>("k"));
        }},
        {"norm", [](gs::Graph& graph, const Step& step) {
            gs::NormOptions options;
            step.read("axes", options.axes);
            step.read("keepdims", options.keepdims);
            return graph.norm(step.operand(0), options);
        }},
        {"not_equal", [](gs::Graph& graph, const Step& step) {
            return graph.not_equal(step.operand(0), step.operand(1));
        }},
        {"one_hot", [](gs::Graph& graph, const Step& step) {
            gs::OneHotOptions options;
            step.read("dtype", options.dtype);
            return graph.one_hot(step.operand(0), step.attr<std::int64_t>("classes"), options);
        }},
        {"pad", [](gs::Graph& graph, const Step& step) {
            gs::PadOptions options;
            step.read("fill", options.fill);
            step.read("fill_as", options.fill_as);
            return graph.pad(step.operand(0), step.attr<std::vector<std::int64_t>>("pad_width"), options);
        }},
        {"parameter", [](gs::Graph& graph, const Step& step) {
            gs::ParameterOptions options;
            step.read("dtype", options.dtype);
            step.read("shape", options.shape);
            step.read("zero_d", options.zero_d);
            return graph.parameter(step.name(), options);
        }},
        {"pinv", [](gs::Graph& graph, const Step& step) {
            gs::PinvOptions options;
            step.read("rcond", options.rcond);
            return graph.pinv(step.operand(0), options);
        }},
        {"polygamma", [](gs::Graph& graph, const Step& step) {
            return graph.polygamma(step.operand(0), step.attr<std::int64_t>("order"));
        }},
        {"pow", [](gs::Graph& graph, const Step& step) {
            gs::PowOptions options;
            options.b = step.operand_if_any(1);
            step.read("exponent", options.exponent);
            return graph.pow(step.operand(0), options);
        }},
        {"pow_scalar", [](gs::Graph& graph, const Step& step) {
            return graph.pow_scalar(step.operand(0), step.attr<double>("exponent"));
        }},
        {"prod", [](gs::Graph& graph, const Step& step) {
            gs::ProdOptions options;
            step.read("axes", options.axes);
            step.read("keepdims", options.keepdims);
            return graph.prod(step.operand(0), options);
        }},
        {"qr", [](gs::Graph& graph, const Step& step) {
            return graph.qr(step.operand(0));
        }},
        {"random_bernoulli", [](gs::Graph& graph, const Step& step) {
            return graph.random_bernoulli(step.operand(0), step.operand(1));
        }},
        {"random_bits", [](gs::Graph& graph, const Step& step) {
            gs::RandomBitsOptions options;
            step.read("dtype", options.dtype);
            return graph.random_bits(step.operand(0), step.attr<std::vector<std::int64_t>>("shape"), options);
        }},
        {"random_categorical", [](gs::Graph& graph, const Step& step) {
            gs::RandomCategoricalOptions options;
            step.read("axis", options.axis);
            return graph.random_categorical(step.operand(0), step.operand(1), options);
        }},
        {"random_exponential", [](gs::Graph& graph, const Step& step) {
            return graph.random_exponential(
                step.operand(0),
                step.attr<std::vector<std::int64_t>>("shape"),
                step.attr<gs::DType>("dtype"));
        }},
        {"random_fold_in", [](gs::Graph& graph, const Step& step) {
            return graph.random_fold_in(step.operand(0), step.operand(1));
        }},
        {"random_gumbel", [](gs::Graph& graph, const Step& step) {
            return graph.random_gumbel(
                step.operand(0),
                step.attr<std::vector<std::int64_t>>("shape"),
                step.attr<gs::DType>("dtype"));
        }},
        {"random_key", [](gs::Graph& graph, const Step& step) {
            return graph.random_key(step.operand(0));
        }},
        {"random_normal", [](gs::Graph& graph, const Step& step) {
            return graph.random_normal(
                step.operand(0),
                step.attr<std::vector<std::int64_t>>("shape"),
                step.attr<gs::DType>("dtype"));
        }},
        {"random_permutation", [](gs::Graph& graph, const Step& step) {
            return graph.random_permutation(step.operand(0), step.attr<std::int64_t>("k"));
        }},
        {"random_split", [](gs::Graph& graph, const Step& step) {
            return graph.random_split(step.operand(0), step.attr<std::int64_t>("k"));
        }},
        {"random_uniform", [](gs::Graph& graph, const Step& step) {
            return graph.random_uniform(
                step.operand(0),
                step.attr<std::vector<std::int64_t>>("shape"),
                step.attr<gs::DType>("dtype"));
        }},
        {"real", [](gs::Graph& graph, const Step& step) {
            return graph.real(step.operand(0));
        }},
        {"reciprocal", [](gs::Graph& graph, const Step& step) {
            return graph.reciprocal(step.operand(0));
        }},
        {"relu", [](gs::Graph& graph, const Step& step) {
            gs::ReluOptions options;
            step.read("at_zero", options.at_zero);
            return graph.relu(step.operand(0), options);
        }},
        {"rem", [](gs::Graph& graph, const Step& step) {
            return graph.rem(step.operand(0), step.operand(1));
        }},
        {"reshape", [](gs::Graph& graph, const Step& step) {
            gs::ReshapeOptions options;
            step.read("shape", options.shape);
            step.read("original_shape", options.original_shape);
            return graph.reshape(step.operand(0), options);
        }},
        {"resize", [](gs::Graph& graph, const Step& step) {
            gs::ResizeOptions options;
            step.read("axes", options.axes);
            step.read("method", options.method);
            step.read("antialias", options.antialias);
            step.read("corners", options.corners);
            return graph.resize(step.operand(0), step.attr<std::vector<std::int64_t>>("sizes"), options);
        }},
        {"rfft", [](gs::Graph& graph, const Step& step) {
            gs::RfftOptions options;
            step.read("axes", options.axes);
            step.read("sizes", options.sizes);
            step.read("norm", options.norm);
            return graph.rfft(step.operand(0), options);
        }},
        {"rms_norm", [](gs::Graph& graph, const Step& step) {
            gs::RmsNormOptions options;
            options.weight = step.operand_if_any(1);
            step.read("axes", options.axes);
            step.read("eps", options.eps);
            return graph.rms_norm(step.operand(0), options);
        }},
        {"roll", [](gs::Graph& graph, const Step& step) {
            gs::RollOptions options;
            step.read("axes", options.axes);
            return graph.roll(step.operand(0), step.attr<std::vector<std::int64_t>>("shifts"), options);
        }},
        {"round", [](gs::Graph& graph, const Step& step) {
            return graph.round(step.operand(0));
        }},
        {"rsqrt", [](gs::Graph& graph, const Step& step) {
            return graph.rsqrt(step.operand(0));
        }},
        {"scan", [](gs::Graph& graph, const Step& step) {
            gs::ScanOptions options;
            step.read("carries", options.carries);
            step.read("sequences", options.sequences);
            step.read("length", options.length);
            step.read("reverse", options.reverse);
            return graph.scan(step.attr<gs::GraphFunction>("body"), step.operands_from(0), options);
        }},
        {"scatter_add", [](gs::Graph& graph, const Step& step) {
            gs::ScatterAddOptions options;
            step.read("axis", options.axis);
            step.read("from_end", options.from_end);
            return graph.scatter_add(step.operand(0), step.operand(1), step.operand(2), options);
        }},
        {"segment_max", [](gs::Graph& graph, const Step& step) {
            return graph.segment_max(step.operand(0), step.operand(1), step.attr<std::int64_t>("segments"));
        }},
        {"segment_mean", [](gs::Graph& graph, const Step& step) {
            return graph.segment_mean(step.operand(0), step.operand(1), step.attr<std::int64_t>("segments"));
        }},
        {"segment_min", [](gs::Graph& graph, const Step& step) {
            return graph.segment_min(step.operand(0), step.operand(1), step.attr<std::int64_t>("segments"));
        }},
        {"segment_prod", [](gs::Graph& graph, const Step& step) {
            return graph.segment_prod(step.operand(0), step.operand(1), step.attr<std::int64_t>("segments"));
        }},
        {"segment_sum", [](gs::Graph& graph, const Step& step) {
            return graph.segment_sum(step.operand(0), step.operand(1), step.attr<std::int64_t>("segments"));
        }},
        {"select", [](gs::Graph& graph, const Step& step) {
            gs::SelectOptions options;
            step.read("axis", options.axis);
            return graph.select(step.operand(0), step.attr<std::int64_t>("index"), options);
        }},
        {"selu", [](gs::Graph& graph, const Step& step) {
            return graph.selu(step.operand(0));
        }},
        {"sigmoid", [](gs::Graph& graph, const Step& step) {
            return graph.sigmoid(step.operand(0));
        }},
        {"sign", [](gs::Graph& graph, const Step& step) {
            return graph.sign(step.operand(0));
        }},
        {"silu", [](gs::Graph& graph, const Step& step) {
            return graph.silu(step.operand(0));
        }},
        {"sin", [](gs::Graph& graph, const Step& step) {
            return graph.sin(step.operand(0));
        }},
        {"sinc", [](gs::Graph& graph, const Step& step) {
            return graph.sinc(step.operand(0));
        }},
        {"sinh", [](gs::Graph& graph, const Step& step) {
            return graph.sinh(step.operand(0));
        }},
        {"slice", [](gs::Graph& graph, const Step& step) {
            gs::SliceOptions options;
            step.read("starts", options.starts);
            step.read("stops", options.stops);
            step.read("steps", options.steps);
            return graph.slice(step.operand(0), options);
        }},
        {"slice_at", [](gs::Graph& graph, const Step& step) {
            return graph.slice_at(step.operand(0), step.operand(1), step.attr<std::vector<std::int64_t>>("sizes"));
        }},
        {"slogdet", [](gs::Graph& graph, const Step& step) {
            return graph.slogdet(step.operand(0));
        }},
        {"softmax", [](gs::Graph& graph, const Step& step) {
            gs::SoftmaxOptions options;
            step.read("axis", options.axis);
            return graph.softmax(step.operand(0), options);
        }},
        {"softplus", [](gs::Graph& graph, const Step& step) {
            return graph.softplus(step.operand(0));
        }},
        {"solve", [](gs::Graph& graph, const Step& step) {
            return graph.solve(step.operand(0), step.operand(1));
        }},
        {"sort", [](gs::Graph& graph, const Step& step) {
            return graph.sort(step.operand(0), step.attr<std::int64_t>("axis"));
        }},
        {"split", [](gs::Graph& graph, const Step& step) {
            gs::SplitOptions options;
            step.read("axis", options.axis);
            return graph.split(step.operand(0), step.attr<std::vector<std::int64_t>>("sizes"), options);
        }},
        {"sqrt", [](gs::Graph& graph, const Step& step) {
            return graph.sqrt(step.operand(0));
        }},
        {"square", [](gs::Graph& graph, const Step& step) {
            return graph.square(step.operand(0));
        }},
        {"squeeze", [](gs::Graph& graph, const Step& step) {
            gs::SqueezeOptions options;
            step.read("axes", options.axes);
            return graph.squeeze(step.operand(0), options);
        }},
        {"stack", [](gs::Graph& graph, const Step& step) {
            gs::StackOptions options;
            step.read("axis", options.axis);
            return graph.stack(step.operands_from(0), options);
        }},
        {"stft", [](gs::Graph& graph, const Step& step) {
            gs::StftOptions options;
            step.read("sizes", options.sizes);
            return graph.stft(
                step.operand(0),
                step.operand(1),
                step.attr<std::vector<std::int64_t>>("stride"),
                options);
        }},
        {"stop_gradient", [](gs::Graph& graph, const Step& step) {
            return graph.stop_gradient(step.operand(0));
        }},
        {"struct_field", [](gs::Graph& graph, const Step& step) {
            return graph.struct_field(
                step.operand(0),
                step.attr<std::int64_t>("field_index"),
                step.attr<std::int64_t>("total_fields"));
        }},
        {"sub", [](gs::Graph& graph, const Step& step) {
            return graph.sub(step.operand(0), step.operand(1));
        }},
        {"sub_scalar", [](gs::Graph& graph, const Step& step) {
            return graph.sub_scalar(step.operand(0), step.attr<double>("scalar"));
        }},
        {"sum", [](gs::Graph& graph, const Step& step) {
            gs::SumOptions options;
            step.read("axes", options.axes);
            step.read("keepdims", options.keepdims);
            return graph.sum(step.operand(0), options);
        }},
        {"svd", [](gs::Graph& graph, const Step& step) {
            gs::SvdOptions options;
            step.read("degenerate", options.degenerate);
            return graph.svd(step.operand(0), options);
        }},
        {"symmetric_function", [](gs::Graph& graph, const Step& step) {
            return graph.symmetric_function(step.operand(0), step.attr<std::string>("function"));
        }},
        {"take_along", [](gs::Graph& graph, const Step& step) {
            gs::TakeAlongOptions options;
            step.read("axis", options.axis);
            step.read("from_end", options.from_end);
            return graph.take_along(step.operand(0), step.operand(1), options);
        }},
        {"tan", [](gs::Graph& graph, const Step& step) {
            return graph.tan(step.operand(0));
        }},
        {"tanh", [](gs::Graph& graph, const Step& step) {
            return graph.tanh(step.operand(0));
        }},
        {"tile", [](gs::Graph& graph, const Step& step) {
            return graph.tile(step.operand(0), step.attr<std::vector<std::int64_t>>("repeats"));
        }},
        {"topk", [](gs::Graph& graph, const Step& step) {
            gs::TopkOptions options;
            step.read("axis", options.axis);
            return graph.topk(step.operand(0), step.attr<std::int64_t>("k"), options);
        }},
        {"transpose", [](gs::Graph& graph, const Step& step) {
            gs::TransposeOptions options;
            step.read("axes", options.axes);
            return graph.transpose(step.operand(0), options);
        }},
        {"triangular_solve", [](gs::Graph& graph, const Step& step) {
            gs::TriangularSolveOptions options;
            step.read("lower", options.lower);
            step.read("transpose", options.transpose);
            return graph.triangular_solve(step.operand(0), step.operand(1), options);
        }},
        {"tril", [](gs::Graph& graph, const Step& step) {
            gs::TrilOptions options;
            step.read("offset", options.offset);
            return graph.tril(step.operand(0), options);
        }},
        {"triu", [](gs::Graph& graph, const Step& step) {
            gs::TriuOptions options;
            step.read("offset", options.offset);
            return graph.triu(step.operand(0), options);
        }},
        {"trunc_div", [](gs::Graph& graph, const Step& step) {
            return graph.trunc_div(step.operand(0), step.operand(1));
        }},
        {"unsqueeze", [](gs::Graph& graph, const Step& step) {
            gs::UnsqueezeOptions options;
            step.read("axes", options.axes);
            return graph.unsqueeze(step.operand(0), options);
        }},
        {"update_slice", [](gs::Graph& graph, const Step& step) {
            return graph.update_slice(
                step.operand(0),
                step.operand(1),
                step.attr<std::vector<std::int64_t>>("starts"));
        }},
        {"update_slice_at", [](gs::Graph& graph, const Step& step) {
            return graph.update_slice_at(step.operand(0), step.operand(1), step.operand(2));
        }},
        {"var", [](gs::Graph& graph, const Step& step) {
            gs::VarOptions options;
            step.read("axes", options.axes);
            step.read("keepdims", options.keepdims);
            step.read("ddof", options.ddof);
            return graph.var(step.operand(0), options);
        }},
        {"where", [](gs::Graph& graph, const Step& step) {
            return graph.where(step.operand(0), step.operand(1), step.operand(2));
        }},
        {"while", [](gs::Graph& graph, const Step& step) {
            gs::WhileOptions options;
            step.read("carries", options.carries);
            return graph.while_(
                step.attr<gs::GraphFunction>("condition"),
                step.attr<gs::GraphFunction>("body"),
                step.attr<std::int64_t>("max_steps"),
                step.operands_from(0),
                options);
        }},
        {"xlog1py", [](gs::Graph& graph, const Step& step) {
            return graph.xlog1py(step.operand(0), step.operand(1));
        }},
        {"xlogy", [](gs::Graph& graph, const Step& step) {
            return graph.xlogy(step.operand(0), step.operand(1));
        }},
        {"zeta", [](gs::Graph& graph, const Step& step) {
            return graph.zeta(step.operand(0), step.operand(1));
        }},
    };
    return all;
}

gs::Node appended(gs::Graph& graph, const Step& step) {
    const auto found = methods().find(step.op());
    return found == methods().end() ? step.any(graph) : found->second(graph, step);
}

}  // namespace conformance
