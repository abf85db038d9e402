// Written by `python -m clients.ops` from the op registry: do not edit.
#pragma once

#include <gradserve/appender.hpp>
#include <gradserve/graph_function.hpp>
#include <gradserve/json.hpp>
#include <gradserve/listed.hpp>
#include <gradserve/node.hpp>
#include <gradserve/tensor.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gradserve {

/// Options of all.
struct AllOptions {
    /// Axes to reduce; default: all.
    Ints axes{};
    /// Whether to keep the reduced axes, with extent 1; default false.
    std::optional<bool> keepdims{};
};

/// Options of any.
struct AnyOptions {
    /// Axes to reduce; default: all.
    Ints axes{};
    /// Whether to keep the reduced axes, with extent 1; default false.
    std::optional<bool> keepdims{};
};

/// Options of arange.
struct ArangeOptions {
    /// First number; default 0.0.
    std::optional<Number> start{};
    /// Distance between numbers; negative to count down, not 0; default 1.0.
    std::optional<Number> step{};
    /// Dtype of the result; default int64.
    std::optional<DType> dtype{};
};

/// Options of argmax.
struct ArgmaxOptions {
    /// Whether to keep the reduced axes, with extent 1; default false.
    std::optional<bool> keepdims{};
};

/// Options of argmin.
struct ArgminOptions {
    /// Whether to keep the reduced axes, with extent 1; default false.
    std::optional<bool> keepdims{};
};

/// Options of attention.
struct AttentionOptions {
    std::optional<Node> mask{};
    /// Factor of q kᵀ; default: 1/√d.
    std::optional<double> scale{};
    /// Whether to hide key j from query i if j > i; default false.
    std::optional<bool> causal{};
    /// Whether each head of k and v serves several heads of q; axis -3; since opset 2; default false.
    std::optional<bool> grouped{};
};

/// Options of avg_pool1d.
struct AvgPool1dOptions {
    /// Distance between windows along each spatial axis; default: the kernel size.
    Ints stride{};
    /// Padding on both sides of each axis; at most half the kernel size; default [0].
    Ints padding{};
    /// Whether to count a last window that extends past the end padding but starts before it; default false.
    std::optional<bool> ceiling{};
};

/// Options of avg_pool2d.
struct AvgPool2dOptions {
    /// Distance between windows along each spatial axis; default: the kernel size.
    Ints stride{};
    /// Padding on both sides of each spatial axis; at most half the kernel size; default [0, 0].
    Ints padding{};
};

/// Options of avg_pool3d.
struct AvgPool3dOptions {
    /// Distance between windows along each spatial axis; default: the kernel size.
    Ints stride{};
    /// Padding on both sides of each axis; at most half the kernel size; default [0, 0, 0].
    Ints padding{};
    /// Whether to count a last window that extends past the end padding but starts before it; default false.
    std::optional<bool> ceiling{};
};

/// Options of batch_norm.
struct BatchNormOptions {
    std::optional<Node> weight{};
    std::optional<Node> bias{};
    /// Axis of the features; default 1.
    std::optional<std::int64_t> axis{};
    /// Positive number added to the variance or mean square; default 1e-05.
    std::optional<double> eps{};
};

/// Options of batch_norm_given.
struct BatchNormGivenOptions {
    std::optional<Node> weight{};
    std::optional<Node> bias{};
    /// Axis of the features; default 1.
    std::optional<std::int64_t> axis{};
    /// Positive number added to the variance or mean square; default 1e-05.
    std::optional<double> eps{};
};

/// Options of batch_norm_running.
struct BatchNormRunningOptions {
    std::optional<Node> weight{};
    std::optional<Node> bias{};
    /// Axis of the features; default 1.
    std::optional<std::int64_t> axis{};
    /// Positive number added to the variance or mean square; default 1e-05.
    std::optional<double> eps{};
    /// Weight of the batch's statistics in the running ones; default 0.1.
    std::optional<double> momentum{};
};

/// Options of bce_with_logits.
struct BceWithLogitsOptions {
    /// How to combine the losses; none: return each one; one of mean, sum, none; default mean.
    std::optional<std::string> reduction{};
};

/// Options of broadcast_to.
struct BroadcastToOptions {
    /// Shape of the result; default [].
    Ints shape{};
};

/// Options of call.
struct CallOptions {
    /// Function of operands, results and cotangents; returns a cotangent for each float operand; default: the body's
    /// derivative.
    std::optional<GraphFunction> derivative{};
    /// Whether the backward pass recomputes the body instead of storing its values; default false.
    std::optional<bool> recompute{};
};

/// Options of cat.
struct CatOptions {
    /// Axis to join along; default 0.
    std::optional<std::int64_t> axis{};
    /// The operands' extents on the axis, checked if given.
    Ints sizes{};
};

/// Options of cdist.
struct CdistOptions {
    /// Exponent; positive; default 2.0.
    std::optional<double> p{};
};

/// Options of chunk.
struct ChunkOptions {
    /// Axis to split; default 0.
    std::optional<std::int64_t> axis{};
};

/// Options of clamp.
struct ClampOptions {
    /// Lower bound; default: none.
    std::optional<Number> min{};
    /// Upper bound; default: none.
    std::optional<Number> max{};
};

/// Options of compress.
struct CompressOptions {
    /// Axis that the mask applies to; default 0.
    std::optional<std::int64_t> axis{};
    /// Value of the remaining entries; default 0.0.
    std::optional<Number> fill{};
    /// Infinity or NaN to use instead of `fill`; float dtypes only; one of inf, -inf, nan.
    std::optional<std::string> fill_as{};
};

/// Options of conv1d.
struct Conv1dOptions {
    std::optional<Node> bias{};
    /// Distance between windows along each spatial axis; default [1].
    Ints stride{};
    /// Zeros added on both sides of each spatial axis; default [0].
    Ints padding{};
    /// Distance between the kernel's taps along each spatial axis; default [1].
    Ints dilation{};
    /// Number of equal groups of channels, each with its own kernels; default 1.
    std::optional<std::int64_t> groups{};
};

/// Options of conv2d.
struct Conv2dOptions {
    std::optional<Node> bias{};
    /// Distance between windows along each spatial axis; default [1, 1].
    Ints stride{};
    /// Zeros added on both sides of each spatial axis; default [0, 0].
    Ints padding{};
    /// Distance between the kernel's taps along each spatial axis; default [1, 1].
    Ints dilation{};
    /// Number of equal groups of channels, each with its own kernels; default 1.
    std::optional<std::int64_t> groups{};
};

/// Options of conv3d.
struct Conv3dOptions {
    std::optional<Node> bias{};
    /// Distance between windows along each spatial axis; default [1, 1, 1].
    Ints stride{};
    /// Zeros added on both sides of each spatial axis; default [0, 0, 0].
    Ints padding{};
    /// Distance between the kernel's taps along each spatial axis; default [1, 1, 1].
    Ints dilation{};
    /// Number of equal groups of channels, each with its own kernels; default 1.
    std::optional<std::int64_t> groups{};
};

/// Options of conv_transpose1d.
struct ConvTranspose1dOptions {
    std::optional<Node> bias{};
    /// Distance between windows along each spatial axis; default [1].
    Ints stride{};
    /// Zeros added on both sides of each spatial axis; default [0].
    Ints padding{};
    /// Distance between the kernel's taps along each spatial axis; default [1].
    Ints dilation{};
    /// Number of equal groups of channels, each with its own kernels; default 1.
    std::optional<std::int64_t> groups{};
    /// Extent added at the end of each spatial axis of the result; default [0].
    Ints output_padding{};
};

/// Options of conv_transpose2d.
struct ConvTranspose2dOptions {
    std::optional<Node> bias{};
    /// Distance between windows along each spatial axis; default [1, 1].
    Ints stride{};
    /// Zeros added on both sides of each spatial axis; default [0, 0].
    Ints padding{};
    /// Distance between the kernel's taps along each spatial axis; default [1, 1].
    Ints dilation{};
    /// Number of equal groups of channels, each with its own kernels; default 1.
    std::optional<std::int64_t> groups{};
    /// Extent added at the end of each spatial axis of the result; default [0, 0].
    Ints output_padding{};
};

/// Options of conv_transpose3d.
struct ConvTranspose3dOptions {
    std::optional<Node> bias{};
    /// Distance between windows along each spatial axis; default [1, 1, 1].
    Ints stride{};
    /// Zeros added on both sides of each spatial axis; default [0, 0, 0].
    Ints padding{};
    /// Distance between the kernel's taps along each spatial axis; default [1, 1, 1].
    Ints dilation{};
    /// Number of equal groups of channels, each with its own kernels; default 1.
    std::optional<std::int64_t> groups{};
    /// Extent added at the end of each spatial axis of the result; default [0, 0, 0].
    Ints output_padding{};
};

/// Options of cross_entropy.
struct CrossEntropyOptions {
    /// How to combine the losses; none: return each one; one of mean, sum, none; default mean.
    std::optional<std::string> reduction{};
};

/// Options of cumlogsumexp.
struct CumlogsumexpOptions {
    /// Whether to accumulate from the end to the front; default false.
    std::optional<bool> reverse{};
};

/// Options of cummax.
struct CummaxOptions {
    /// Whether to accumulate from the end to the front; default false.
    std::optional<bool> reverse{};
};

/// Options of cummin.
struct CumminOptions {
    /// Whether to accumulate from the end to the front; default false.
    std::optional<bool> reverse{};
};

/// Options of cumprod.
struct CumprodOptions {
    /// Whether to accumulate from the end to the front; default false.
    std::optional<bool> reverse{};
};

/// Options of cumsum.
struct CumsumOptions {
    /// Whether to accumulate from the end to the front; since opset 2; default false.
    std::optional<bool> reverse{};
};

/// Options of diag.
struct DiagOptions {
    /// Diagonal: 0 is the main one, positive above it, negative below it; default 0.
    std::optional<std::int64_t> offset{};
};

/// Options of eigh.
struct EighOptions {
    /// Gradient through vectors of equal values; nan: NaN; whole: assume that only whole spaces matter; one of nan,
    /// whole; default nan.
    std::optional<std::string> degenerate{};
};

/// Options of elu.
struct EluOptions {
    /// Limit of −y for x → −∞; default 1.0.
    std::optional<double> alpha{};
};

/// Options of embedding.
struct EmbeddingOptions {
    /// Whether negative indices count from the end; −1 is the last; since opset 2; default false.
    std::optional<bool> from_end{};
    /// Row that gets no gradient but is read as usual; default: none; since opset 2.
    std::optional<std::int64_t> padding_idx{};
};

/// Options of fft.
struct FftOptions {
    /// Axes to transform; default: the last axis, or as many last axes as there are sizes.
    Ints axes{};
    /// Points on each axis, to which x is cut or zero-padded; default: x's extents.
    Ints sizes{};
    /// Direction that divides by the number of points; ortho: both, by its square root; one of backward, ortho,
    /// forward; default backward.
    std::optional<std::string> norm{};
};

/// Options of fixed_point.
struct FixedPointOptions {
    /// Number of operands, the last ones, that are the initial x; at least one; default 0.
    std::optional<std::int64_t> carries{};
};

/// Options of flatten.
struct FlattenOptions {
    /// Adjacent axes to merge; default: all.
    Ints axes{};
};

/// Options of flip.
struct FlipOptions {
    /// Axes to reverse; default: all.
    Ints axes{};
};

/// Options of full.
struct FullOptions {
    /// Shape of the result; default [].
    Ints shape{};
    /// Value of every element; default 0.0.
    std::optional<Number> fill{};
    /// Dtype of the result; default float64.
    std::optional<DType> dtype{};
    /// Infinity or NaN to use instead of `fill`; float dtypes only; since opset 2; one of inf, -inf, nan.
    std::optional<std::string> fill_as{};
};

/// Options of gather.
struct GatherOptions {
    std::optional<Node> index{};
    /// Axis to index; default 0.
    std::optional<std::int64_t> axis{};
    /// Positions on the axis, instead of `index`.
    Ints indices{};
    /// Whether negative indices count from the end; −1 is the last; since opset 2; default false.
    std::optional<bool> from_end{};
};

/// Options of gelu.
struct GeluOptions {
    /// None: use the error function; tanh: approximate it; one of none, tanh; default none.
    std::optional<std::string> approximate{};
};

/// Options of grad.
struct GradOptions {
    std::optional<Node> cotangent{};
};

/// Options of group_norm.
struct GroupNormOptions {
    std::optional<Node> weight{};
    std::optional<Node> bias{};
    /// Positive number added to the variance or mean square; default 1e-05.
    std::optional<double> eps{};
};

/// Options of ifft.
struct IfftOptions {
    /// Axes to transform; default: the last axis, or as many last axes as there are sizes.
    Ints axes{};
    /// Points on each axis, to which x is cut or zero-padded; default: x's extents.
    Ints sizes{};
    /// Direction that divides by the number of points; ortho: both, by its square root; one of backward, ortho,
    /// forward; default backward.
    std::optional<std::string> norm{};
};

/// Options of index.
struct IndexOptions {
    /// Axis of each index; default: the first axes, in order.
    Ints axes{};
    /// Whether negative indices count from the end; −1 is the last; default false.
    std::optional<bool> from_end{};
};

/// Options of index_add.
struct IndexAddOptions {
    /// Axis of each index; default: the first axes, in order.
    Ints axes{};
    /// Whether negative indices count from the end; −1 is the last; default false.
    std::optional<bool> from_end{};
};

/// Options of index_set.
struct IndexSetOptions {
    /// Axis of each index; default: the first axes, in order.
    Ints axes{};
    /// Whether negative indices count from the end; −1 is the last; default false.
    std::optional<bool> from_end{};
};

/// Options of input.
struct InputOptions {
    /// Required dtype of the feed; default: any.
    std::optional<DType> dtype{};
    /// Required shape of the feed, -1 for any extent; default: any.
    Ints shape{};
    /// Whether the feed must be 0-d; default false.
    std::optional<bool> zero_d{};
};

/// Options of irfft.
struct IrfftOptions {
    /// Axes to transform; default: the last axis, or as many last axes as there are sizes.
    Ints axes{};
    /// Points on each axis, to which x is cut or zero-padded; default: x's extents.
    Ints sizes{};
    /// Direction that divides by the number of points; ortho: both, by its square root; one of backward, ortho,
    /// forward; default backward.
    std::optional<std::string> norm{};
};

/// Options of layer_norm.
struct LayerNormOptions {
    std::optional<Node> weight{};
    std::optional<Node> bias{};
    /// Axes to normalise over; default [-1].
    Ints axes{};
    /// Positive number added to the variance or mean square; default 1e-05.
    std::optional<double> eps{};
};

/// Options of leaky_relu.
struct LeakyReluOptions {
    /// Slope for x ≤ 0; default 0.01.
    std::optional<double> alpha{};
};

/// Options of linear.
struct LinearOptions {
    std::optional<Node> b{};
    /// Op applied to the sum; one of none, relu, tanh, sigmoid, gelu, silu, elu, selu, sin; default none.
    std::optional<std::string> activation{};
};

/// Options of log_eps.
struct LogEpsOptions {
    /// Number added to x; default 1e-05.
    std::optional<double> eps{};
};

/// Options of log_softmax.
struct LogSoftmaxOptions {
    /// Axis to normalise along; default -1.
    std::optional<std::int64_t> axis{};
};

/// Options of logsumexp.
struct LogsumexpOptions {
    /// Axes to reduce; default: all.
    Ints axes{};
    /// Whether to keep the reduced axes, with extent 1; default false.
    std::optional<bool> keepdims{};
};

/// Options of lstsq.
struct LstsqOptions {
    /// Singular values up to this fraction of the largest count as 0; default: none, and the columns must be
    /// independent.
    std::optional<double> rcond{};
};

/// Options of map.
struct MapOptions {
    /// Number of operands, the last ones, that are sequences; at least one; default 0.
    std::optional<std::int64_t> sequences{};
    /// Number of entries computed in one batch; default: as many as fit.
    std::optional<std::int64_t> at_once{};
};

/// Options of max.
struct MaxOptions {
    /// Axes to reduce; default: all.
    Ints axes{};
    /// Whether to keep the reduced axes, with extent 1; default false.
    std::optional<bool> keepdims{};
};

/// Options of max_pool1d.
struct MaxPool1dOptions {
    /// Distance between windows along each spatial axis; default: the kernel size.
    Ints stride{};
    /// Padding on both sides of each axis; at most half the kernel size; default [0].
    Ints padding{};
    /// Distance between a window's taps along each axis; default [1].
    Ints dilation{};
    /// Whether to count a last window that extends past the end padding but starts before it; default false.
    std::optional<bool> ceiling{};
};

/// Options of max_pool2d.
struct MaxPool2dOptions {
    /// Distance between windows along each spatial axis; default: the kernel size.
    Ints stride{};
    /// Padding on both sides of each spatial axis; at most half the kernel size; default [0, 0].
    Ints padding{};
};

/// Options of max_pool2d_back.
struct MaxPool2dBackOptions {
    /// Distance between windows along each spatial axis; default: the kernel size.
    Ints stride{};
    /// Padding on both sides of each spatial axis; at most half the kernel size; default [0, 0].
    Ints padding{};
};

/// Options of max_pool2d_indices.
struct MaxPool2dIndicesOptions {
    /// Distance between windows along each spatial axis; default: the kernel size.
    Ints stride{};
    /// Padding on both sides of each spatial axis; at most half the kernel size; default [0, 0].
    Ints padding{};
};

/// Options of max_pool3d.
struct MaxPool3dOptions {
    /// Distance between windows along each spatial axis; default: the kernel size.
    Ints stride{};
    /// Padding on both sides of each axis; at most half the kernel size; default [0, 0, 0].
    Ints padding{};
    /// Distance between a window's taps along each axis; default [1, 1, 1].
    Ints dilation{};
    /// Whether to count a last window that extends past the end padding but starts before it; default false.
    std::optional<bool> ceiling{};
};

/// Options of mean.
struct MeanOptions {
    /// Axes to reduce; default: all.
    Ints axes{};
    /// Whether to keep the reduced axes, with extent 1; default false.
    std::optional<bool> keepdims{};
};

/// Options of min.
struct MinOptions {
    /// Axes to reduce; default: all.
    Ints axes{};
    /// Whether to keep the reduced axes, with extent 1; default false.
    std::optional<bool> keepdims{};
};

/// Options of mlp_layer.
struct MlpLayerOptions {
    /// Op applied to the sum; one of none, relu, tanh, sigmoid, gelu, silu, elu, selu, sin; default none.
    std::optional<std::string> activation{};
};

/// Options of mse_loss.
struct MseLossOptions {
    /// How to combine the losses; none: return each one; one of mean, sum, none; default mean.
    std::optional<std::string> reduction{};
};

/// Options of norm.
struct NormOptions {
    /// Axes to reduce; default: all.
    Ints axes{};
    /// Whether to keep the reduced axes, with extent 1; default false.
    std::optional<bool> keepdims{};
};

/// Options of one_hot.
struct OneHotOptions {
    /// Dtype of the result; default float64.
    std::optional<DType> dtype{};
};

/// Options of pad.
struct PadOptions {
    /// Value of the padding; default 0.0.
    std::optional<Number> fill{};
    /// Infinity or NaN to use instead of `fill`; float dtypes only; since opset 2; one of inf, -inf, nan.
    std::optional<std::string> fill_as{};
};

/// Options of parameter.
struct ParameterOptions {
    /// Required dtype of the feed; default: any.
    std::optional<DType> dtype{};
    /// Required shape of the feed, -1 for any extent; default: any.
    Ints shape{};
    /// Whether the feed must be 0-d; default false.
    std::optional<bool> zero_d{};
};

/// Options of pinv.
struct PinvOptions {
    /// Singular values up to this fraction of the largest count as 0; default: max(m, n) ε.
    std::optional<double> rcond{};
};

/// Options of pow.
struct PowOptions {
    std::optional<Node> b{};
    /// Exponent, if there is no operand b.
    std::optional<double> exponent{};
};

/// Options of prod.
struct ProdOptions {
    /// Axes to reduce; default: all.
    Ints axes{};
    /// Whether to keep the reduced axes, with extent 1; default false.
    std::optional<bool> keepdims{};
};

/// Options of random_bits.
struct RandomBitsOptions {
    /// Dtype of the result; one of uint32; default uint32.
    std::optional<DType> dtype{};
};

/// Options of random_categorical.
struct RandomCategoricalOptions {
    /// Axis of the categories; default -1.
    std::optional<std::int64_t> axis{};
};

/// Options of relu.
struct ReluOptions {
    /// Derivative at 0; default 0.0.
    std::optional<double> at_zero{};
};

/// Options of reshape.
struct ReshapeOptions {
    /// Shape of the result; one extent may be -1 and is inferred; default [].
    Ints shape{};
    /// X's shape, checked if given.
    Ints original_shape{};
};

/// Options of resize.
struct ResizeOptions {
    /// Axes to resize; default: the last ones.
    Ints axes{};
    /// Interpolation method; one of nearest, linear, cubic; default linear.
    std::optional<std::string> method{};
    /// Whether to antialias where x shrinks; linear and cubic only; default false.
    std::optional<bool> antialias{};
    /// Whether to align the end entries; linear and cubic only, without antialias; default false.
    std::optional<bool> corners{};
};

/// Options of rfft.
struct RfftOptions {
    /// Axes to transform; default: the last axis, or as many last axes as there are sizes.
    Ints axes{};
    /// Points on each axis, to which x is cut or zero-padded; default: x's extents.
    Ints sizes{};
    /// Direction that divides by the number of points; ortho: both, by its square root; one of backward, ortho,
    /// forward; default backward.
    std::optional<std::string> norm{};
};

/// Options of rms_norm.
struct RmsNormOptions {
    std::optional<Node> weight{};
    /// Axes to normalise over; default [-1].
    Ints axes{};
    /// Positive number added to the variance or mean square; default 1e-05.
    std::optional<double> eps{};
};

/// Options of roll.
struct RollOptions {
    /// Axes to move along; default: the flattened tensor.
    Ints axes{};
};

/// Options of scan.
struct ScanOptions {
    /// Number of operands that are initial values of carries; default 0.
    std::optional<std::int64_t> carries{};
    /// Number of operands, the last ones, that are sequences; default 0.
    std::optional<std::int64_t> sequences{};
    /// Number of steps; default: the sequences' number of entries.
    std::optional<std::int64_t> length{};
    /// Whether to run from the last entry to the first; default false.
    std::optional<bool> reverse{};
};

/// Options of scatter_add.
struct ScatterAddOptions {
    /// Axis to index; default 0.
    std::optional<std::int64_t> axis{};
    /// Whether negative indices count from the end; −1 is the last; since opset 2; default false.
    std::optional<bool> from_end{};
};

/// Options of select.
struct SelectOptions {
    /// Axis to read at one position; default 0.
    std::optional<std::int64_t> axis{};
};

/// Options of slice.
struct SliceOptions {
    /// First position on each axis; default: 0.
    Ints starts{};
    /// End position on each axis, not included; default: the extent.
    Ints stops{};
    /// Distance between positions on each axis; default: 1.
    Ints steps{};
};

/// Options of softmax.
struct SoftmaxOptions {
    /// Axis to normalise along; default -1.
    std::optional<std::int64_t> axis{};
};

/// Options of split.
struct SplitOptions {
    /// Axis to split; default 0.
    std::optional<std::int64_t> axis{};
};

/// Options of squeeze.
struct SqueezeOptions {
    /// Axes of extent 1 to remove; default: all of them.
    Ints axes{};
};

/// Options of stack.
struct StackOptions {
    /// Position of the new axis in the result; default 0.
    std::optional<std::int64_t> axis{};
};

/// Options of stft.
struct StftOptions {
    /// One number: points of each transform; default: the window's length.
    Ints sizes{};
};

/// Options of sum.
struct SumOptions {
    /// Axes to reduce; default: all.
    Ints axes{};
    /// Whether to keep the reduced axes, with extent 1; default false.
    std::optional<bool> keepdims{};
};

/// Options of svd.
struct SvdOptions {
    /// Gradient through vectors of equal values; nan: NaN; whole: assume that only whole spaces matter; one of nan,
    /// whole; default nan.
    std::optional<std::string> degenerate{};
};

/// Options of take_along.
struct TakeAlongOptions {
    /// Axis to index; default 0.
    std::optional<std::int64_t> axis{};
    /// Whether negative indices count from the end; −1 is the last; since opset 2; default false.
    std::optional<bool> from_end{};
};

/// Options of topk.
struct TopkOptions {
    /// Axis to search; default 0.
    std::optional<std::int64_t> axis{};
};

/// Options of transpose.
struct TransposeOptions {
    /// Permutation, or two axes to swap; default: the last two.
    Ints axes{};
};

/// Options of triangular_solve.
struct TriangularSolveOptions {
    /// Whether to read the lower triangle of a; false: the upper one; default true.
    std::optional<bool> lower{};
    /// Whether to solve with the triangle's transpose; default false.
    std::optional<bool> transpose{};
};

/// Options of tril.
struct TrilOptions {
    /// Diagonal: 0 is the main one, positive above it, negative below it; default 0.
    std::optional<std::int64_t> offset{};
};

/// Options of triu.
struct TriuOptions {
    /// Diagonal: 0 is the main one, positive above it, negative below it; default 0.
    std::optional<std::int64_t> offset{};
};

/// Options of unsqueeze.
struct UnsqueezeOptions {
    /// Positions of the new axes in the result; must be given.
    Ints axes{};
};

/// Options of var.
struct VarOptions {
    /// Axes to reduce; default: all.
    Ints axes{};
    /// Whether to keep the reduced axes, with extent 1; default false.
    std::optional<bool> keepdims{};
    /// Number subtracted from n; 1 for the unbiased estimate; default 0.
    std::optional<std::int64_t> ddof{};
};

/// Options of while.
struct WhileOptions {
    /// Number of operands, the last ones, that are initial values of carries; default 0.
    std::optional<std::int64_t> carries{};
};

/// The ops. Each method appends a node and returns its handle.
class Ops : public Appender {
public:
    /// y = |x|; real for a complex x. At 0 the gradient is 0, in every order.
    ///
    /// Gradient: g · sign x; for a complex x, g · x / |x|.
    Node abs(const Node& x);

    /// y = arccos x in [0, π], NaN for |x| > 1. At ±1 the derivative is infinite.
    ///
    /// Gradient: −g / √(1 − x²).
    Node acos(const Node& x);

    /// y = arcosh x, NaN for x < 1. At 1 the derivative is infinite.
    ///
    /// Gradient: g / sinh y = g / √(x² − 1).
    Node acosh(const Node& x);

    /// y[…, i] = the mean of window i, from ⌊i · n / size⌋ to ⌈(i + 1) · n / size⌉. Integers give float64.
    ///
    /// Pools as many of the last axes as `sizes` has entries. PyTorch: `adaptive_avg_pool1d`, 2d and 3d. JAX has no
    /// equivalent.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g / (number of elements in the window), added to each of them.
    ///
    /// sizes: number of windows on each of the last axes.
    Node adaptive_avg_pool(const Node& x, const std::vector<std::int64_t>& sizes);

    /// y[…, i] = the maximum of window i, from ⌊i · n / size⌋ to ⌈(i + 1) · n / size⌉; NaN if the window contains NaN.
    ///
    /// Pools as many of the last axes as `sizes` has entries. PyTorch: `adaptive_max_pool1d`, 2d and 3d. JAX has no
    /// equivalent.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g, added at the first maximum (in row-major order) of each window.
    ///
    /// sizes: number of windows on each of the last axes.
    Node adaptive_max_pool(const Node& x, const std::vector<std::int64_t>& sizes);

    /// y = a + b, elementwise, with NumPy broadcasting.
    ///
    /// Gradient: da = g, db = g.
    Node add(const Node& a, const Node& b);

    /// y = x + scalar.
    ///
    /// Gradient: g.
    ///
    /// scalar: constant operand.
    Node add_scalar(const Node& x, double scalar);

    /// y = whether all elements over axes are true; nonzero numbers are true. True if no elements are reduced.
    Node all(const Node& x, const AllOptions& options = {});

    /// y = the angle of x in [−π, π]: atan2(Im x, Re x); 0 or π for a real x. NaN if a part is NaN.
    ///
    /// The branch cut is the negative real axis; on it, the sign of the imaginary zero selects the side (as in C99's
    /// carg). At 0 the gradient is 0, as in PyTorch; in JAX it is NaN.
    ///
    /// Since opset 2.
    ///
    /// Gradient: i · g · x / |x|², 0 at 0; none for a real x.
    Node angle(const Node& x);

    /// y = whether any element over axes is true; nonzero numbers are true. False if no elements are reduced.
    Node any(const Node& x, const AnyOptions& options = {});

    /// Evenly spaced numbers: y[i] = start + i · step, up to but not including stop.
    ///
    /// The result has ⌈(stop − start) / step⌉ elements, at least 0. Same as NumPy's arange, but exact: for an integer
    /// dtype, start and step must be whole numbers, and all numbers must be in its range.
    ///
    /// stop: end of the range, not included.
    Node arange(const Number& stop, const ArangeOptions& options = {});

    /// y = the int64 position of the largest element along `axis`: the first in a tie; the first NaN if any.
    ///
    /// axis: axis to search.
    Node argmax(const Node& x, std::int64_t axis, const ArgmaxOptions& options = {});

    /// y = the int64 position of the smallest element along `axis`: the first in a tie; the first NaN if any.
    ///
    /// axis: axis to search.
    Node argmin(const Node& x, std::int64_t axis, const ArgminOptions& options = {});

    /// y = the int64 positions that sort x in ascending order along an axis; equal entries keep their order.
    ///
    /// NaN comes last.
    ///
    /// axis: axis to sort along.
    Node argsort(const Node& x, std::int64_t axis);

    /// y = arcsin x in [−π/2, π/2], NaN for |x| > 1. At ±1 the derivative is infinite.
    ///
    /// Gradient: g / √(1 − x²).
    Node asin(const Node& x);

    /// y = arsinh x.
    ///
    /// Gradient: g / cosh y = g / √(x² + 1).
    Node asinh(const Node& x);

    /// y = arctan x in [−π/2, π/2].
    ///
    /// Gradient: g / (1 + x²).
    Node atan(const Node& x);

    /// y = the angle in [−π, π] of the point with abscissa b and ordinate a, with broadcasting.
    ///
    /// At a = b = 0 the value is NumPy's (0 or ±π), and the derivatives, which do not exist there, are NaN. At infinity
    /// the derivatives are 0.
    ///
    /// Gradient: da = g · b / (a² + b²), db = −g · a / (a² + b²).
    Node atan2(const Node& a, const Node& b);

    /// y = artanh x: ±∞ at ±1, NaN beyond.
    ///
    /// Gradient: g / (1 − x²).
    Node atanh(const Node& x);

    /// y = softmax(q kᵀ · scale + mask) v: for each query, the mean of the values, weighted by how well its key
    /// matches.
    ///
    /// q [..., queries, d], k [..., keys, d], v [..., keys, width], y [..., queries, width]; leading axes broadcast.
    /// The mask broadcasts to [..., queries, keys]; it is bool (true = keep) or float (added). `causal` also hides key
    /// j from query i if j > i. A query with no visible keys gives NaN. With `grouped`, the number of heads of q (axis
    /// -3) is a multiple of that of k and v, and adjacent heads of q share a head of k and v: PyTorch's enable_gqa, and
    /// what JAX's dot_product_attention does if k and v have fewer heads. Scores of at least 16 MiB that are larger
    /// than q, k and v together are not stored, except for tangents and second derivatives.
    ///
    /// A. Vaswani et al., "Attention is all you need" (2017); J. Ainslie et al., "GQA" (2023).
    ///
    /// Gradient: with p = softmax(…), dp = g vᵀ, ds = p · (dp − Σ dp·p): dq = scale · ds k, dk = scale · dsᵀ q, dv = pᵀ
    /// g.
    Node attention(const Node& q, const Node& k, const Node& v, const AttentionOptions& options = {});

    /// y[…, i] = the mean of the window at i. x [..., w]; padding counts as zeros. Integers give float64.
    ///
    /// Extents are as in max_pool1d. With `ceiling`, the part of a window beyond the padding is not counted. PyTorch:
    /// `avg_pool1d`, whose `ceil_mode` is `ceiling`. Flax: `avg_pool`, which has no ceiling mode.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g / (number of taps in the window), added to each of its elements.
    ///
    /// kernel_size: extents of the windows along each spatial axis.
    Node avg_pool1d(const Node& x, const std::vector<std::int64_t>& kernel_size, const AvgPool1dOptions& options = {});

    /// y[…, i, j] = the sum of the window at (i, j), divided by the kernel size; padding counts as zeros.
    ///
    /// x [..., h, w]. Integers give float64. Same as PyTorch's avg_pool2d.
    ///
    /// Gradient: conv_transpose2d of g / kernel size with ones.
    ///
    /// kernel_size: extents of the windows along each spatial axis.
    Node avg_pool2d(const Node& x, const std::vector<std::int64_t>& kernel_size, const AvgPool2dOptions& options = {});

    /// y[…, i, j, k] = the mean of the window at (i, j, k). x [..., d, h, w]; padding counts as zeros.
    ///
    /// Integers give float64. Extents are as in max_pool1d. With `ceiling`, the part of a window beyond the padding is
    /// not counted. PyTorch: `avg_pool3d`, whose `ceil_mode` is `ceiling`. Flax: `avg_pool`, which has no ceiling mode.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g / (number of taps in the window), added to each of its elements.
    ///
    /// kernel_size: extents of the windows along each spatial axis.
    Node avg_pool3d(const Node& x, const std::vector<std::int64_t>& kernel_size, const AvgPool3dOptions& options = {});

    /// y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance of each feature over all other axes.
    ///
    /// `axis` is the axis of the features; weight and bias have its extent. The statistics are those of the operand, as
    /// in training, with n in the denominator. CJC normalises the whole tensor: for that, reshape it to [n, 1]. S.
    /// Ioffe, C. Szegedy, "Batch normalization" (2015).
    ///
    /// Gradient: as in layer_norm, over all axes but that of the features.
    Node batch_norm(const Node& x, const BatchNormOptions& options = {});

    /// y = (x − mean) / √(variance + eps) · weight + bias, with given statistics, as in inference.
    ///
    /// `axis` is the axis of the features; all other operands have its extent. PyTorch: `batch_norm` with training
    /// false. Flax: `BatchNorm` with use_running_average, with features last.
    ///
    /// Since opset 2.
    ///
    /// Gradient: with r = 1 / √(variance + eps): dx = g · weight · r; for the other operands, that of the formula.
    Node batch_norm_given(
        const Node& x,
        const Node& mean,
        const Node& variance,
        const BatchNormGivenOptions& options = {});

    /// y of `batch_norm`, and the updated running mean and variance: (1 − momentum) · old + momentum · this batch's.
    ///
    /// `axis` is the axis of the features; all other operands have its extent. The variance of the batch has n − 1 in
    /// the denominator in the running variance, and n in y. PyTorch: `batch_norm` with training true, which updates the
    /// running statistics in place and gives them no gradient. Flax: `BatchNorm`, whose momentum is 1 minus this one,
    /// and whose running variance has n in the denominator.
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with get_output.
    ///
    /// Gradient: as in batch_norm; for the running statistics, that of their formula.
    Node batch_norm_running(
        const Node& x,
        const Node& mean,
        const Node& variance,
        const BatchNormRunningOptions& options = {});

    /// loss = −y · log σ(x) − (1 − y) · log σ(−x), binary cross-entropy, elementwise for equal shapes; then the mean.
    ///
    /// x contains logits, y probabilities. Accurate in both tails, because the logarithm of σ is computed in one step.
    ///
    /// Gradient: dx = g · (σ(x) − y) / n, dy = −g · x / n.
    Node bce_with_logits(const Node& x, const Node& y, const BceWithLogitsOptions& options = {});

    /// y = I(x; a, b) = ∫₀ˣ tᵃ⁻¹ (1 − t)ᵇ⁻¹ dt / B(a, b), with broadcasting, for 0 ≤ x ≤ 1 and a, b > 0.
    ///
    /// On NumPy, this is SciPy's function. Accurate to 256 ulp. Derivatives with respect to all operands exist to any
    /// order. They are accurate to 1e-12 of their value with respect to x, and to 1e-11 with respect to a and b, for
    /// which JAX has none. SciPy and JAX: `betainc`. PyTorch has no equivalent.
    ///
    /// Since opset 2.
    ///
    /// Gradient: da, db = g · ∂I/∂a, g · ∂I/∂b, integrals; dx = g · xᵃ⁻¹ (1 − x)ᵇ⁻¹ / B(a, b).
    Node betainc(const Node& a, const Node& b, const Node& x);

    /// y = log |B(a, b)| = log |Γ(a) Γ(b) / Γ(a + b)|, with broadcasting. Accurate to 10 ulp of y, or of 1 if |y| < 1.
    ///
    /// One ulp is that of float64, on NumPy. If an operand is large, a sum of `lgamma` would have few correct digits,
    /// and SciPy's loses up to 9 of 16. For operands that are not positive, y equals SciPy's; at infinity it is −∞.
    ///
    /// The derivative with respect to a is as accurate, or, if b < a < 100, accurate to 1e-15 · a / b of its value. The
    /// same holds for b.
    ///
    /// Gradient: da = g · (digamma(a) − digamma(a + b)), db = g · (digamma(b) − digamma(a + b)).
    Node betaln(const Node& a, const Node& b);

    /// y = x repeated along new leading axes and along axes of extent 1, to `shape`, by NumPy's rules.
    ///
    /// Gradient: g, summed over the repeated axes.
    Node broadcast_to(const Node& x, const BroadcastToOptions& options = {});

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
    /// The op has several results. Read each with get_output.
    ///
    /// Gradient: that of the body, or `derivative`.
    ///
    /// body: function of the operands.
    Node call(const GraphFunction& body, const std::vector<Node>& operands, const CallOptions& options = {});

    /// y = x converted to another dtype, as in NumPy's astype: fractions are truncated towards zero, nonzero is true.
    ///
    /// Float to float is differentiable; no gradient passes through integers or bool. A real x can become complex. To
    /// convert a complex x to real, use `real`.
    ///
    /// Gradient: g, cast back.
    ///
    /// dtype: dtype of the result.
    Node cast(const Node& x, const DType& dtype);

    /// y = the operands, joined along `axis`; their other extents must be equal.
    ///
    /// The result has their common dtype. `sizes`, if given, must be their extents on the axis.
    ///
    /// Gradient: g, split into the operands' parts.
    Node cat(const std::vector<Node>& x, const CatOptions& options = {});

    /// y[…, i, j] = (Σ |a[…, i, k] − b[…, j, k]|ᵖ)^(1/p) over k: the distance between row i of a and row j of b.
    ///
    /// a [..., m, d], b [..., n, d], y [..., m, n]; leading axes broadcast. Where two rows coincide, the gradient and
    /// its own gradient are 0. Differences are taken before they are squared, so that no digits are lost. PyTorch:
    /// `cdist` with compute_mode donot_use_mm_for_euclid_dist. JAX has no equivalent.
    ///
    /// Since opset 2.
    ///
    /// Gradient: da = Σ g · sign(a − b) · (|a − b| / y)^(p − 1), 0 where y = 0; db likewise.
    Node cdist(const Node& a, const Node& b, const CdistOptions& options = {});

    /// y = ⌈x⌉: x rounded up to a whole number.
    Node ceil(const Node& x);

    /// y lower triangular with a positive diagonal and y yᴴ = (x + xᴴ) / 2, for matrices on the last two axes.
    ///
    /// x is made symmetric (Hermitian) first, as in JAX, so that the gradient is symmetric and valid in every
    /// direction. A matrix that is not positive definite gives NaN; the other matrices of the batch are unaffected.
    /// Integers give float64; float16 is computed in a wider float and rounded once.
    ///
    /// I. Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527 (2016), eq. 9.
    ///
    /// Gradient: (s + sᴴ) / 2, where s = y⁻ᴴ Φ(yᴴ g) y⁻¹ and Φ takes the lower triangle with half the diagonal.
    Node cholesky(const Node& x);

    /// y0, y1, … = x split along `axis` into at most `chunks` parts of extent ⌈n / chunks⌉; the last may be smaller.
    ///
    /// As in PyTorch, there may be fewer parts than requested (6 entries in 4 chunks: 2, 2, 2). An empty axis gives
    /// `chunks` empty parts.
    ///
    /// The op has several results. Read each with get_output.
    ///
    /// Gradient: the parts' cotangents, joined; zeros for parts that are not read.
    ///
    /// chunks: maximum number of parts.
    Node chunk(const Node& x, std::int64_t chunks, const ChunkOptions& options = {});

    /// y = x limited to [min, max]; either bound may be absent. If min > max, y is max.
    ///
    /// NaN stays NaN and gets the gradient. Integers keep their dtype if all bounds given are whole numbers within its
    /// range; otherwise they give float64.
    ///
    /// Gradient: g where min ≤ x ≤ max or x is NaN, else 0.
    Node clamp(const Node& x, const ClampOptions& options = {});

    /// The first k entries of x along `axis` where `mask` [extent] is true; and their total count: int64 [].
    ///
    /// You set k, so that shapes do not depend on the mask. If there are more than k entries, the rest are dropped; if
    /// there are fewer, the remaining entries are `fill`. The count, which is not limited to k, tells you which. NumPy:
    /// `compress`. JAX: `compress`, which also takes a size and a fill_value. PyTorch: x[mask], which has as many
    /// entries as the mask selects.
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with get_output.
    ///
    /// Gradient: g to the entries that were read; none for mask.
    ///
    /// k: number of entries in the result.
    Node compress(const Node& x, const Node& mask, std::int64_t k, const CompressOptions& options = {});

    /// then(operands) if the predicate, a bool [], is true, else otherwise(operands). Only one of them runs.
    ///
    /// Both functions must return results of the same types. JAX: `lax.cond`. PyTorch: `cond`.
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with get_output.
    ///
    /// Gradient: that of the function that ran; the other one contributes exact zeros.
    ///
    /// then: function of the operands after the predicate; runs if the predicate is true.
    ///
    /// otherwise: function of the same operands; runs if the predicate is false.
    Node cond(
        const GraphFunction& then,
        const GraphFunction& otherwise,
        const Node& predicate,
        const std::vector<Node>& operands);

    /// y = s₀ / sₖ₋₁, the condition number in the 2-norm: the largest singular value over the smallest.
    ///
    /// x [batch…, m, n], y [batch…]. A rank-deficient matrix gives infinity if rounding leaves an exact 0. A zero
    /// matrix, or one with an infinity or NaN, gives NaN. Integers give float64; float16 is computed in float32 and
    /// rounded once. PyTorch, JAX and NumPy: `linalg.cond` without p.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g y (u₀ v₀ᴴ / s₀ − uₖ₋₁ vₖ₋₁ᴴ / sₖ₋₁), with the singular vectors of s₀ and sₖ₋₁.
    Node cond_number(const Node& x);

    /// y = conj x: the imaginary part is negated; a real x is returned unchanged. PyTorch, JAX and NumPy: `conj`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: conj g.
    Node conj(const Node& x);

    /// A tensor that is part of the graph: y = value.
    ///
    /// value: value of the tensor.
    Node constant(const Tensor& value);

    /// y[n, o, i] = Σ x[n, c, i·s + a·d − p] · kernel[o, c, a] + bias[o], a cross-correlation.
    ///
    /// s, d and p are stride, dilation and padding. x [n, channels, w], zero outside; kernel [features, channels /
    /// groups, kw]; y [n, features, w'] with w' = ⌊(w + 2p − d·(kw − 1) − 1) / s⌋ + 1. Each feature reads only the
    /// channels of its own group. Same as PyTorch's conv1d.
    ///
    /// Gradient: dx = the transposed convolution of g, d kernel = x convolved with g, d bias = g summed.
    Node conv1d(const Node& x, const Node& kernel, const Conv1dOptions& options = {});

    /// y[n, o, i, j] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p] · kernel[o, c, a, b] + bias[o], a cross-correlation.
    ///
    /// s, d and p are stride, dilation and padding. x [n, channels, h, w], zero outside; kernel [features, channels /
    /// groups, kh, kw]; y [n, features, h', w'] with h' = ⌊(h + 2p − d·(kh − 1) − 1) / s⌋ + 1. Each feature reads only
    /// the channels of its own group. Same as PyTorch's conv2d.
    ///
    /// Gradient: dx = conv_transpose2d(g, kernel), d kernel = conv2d(x, g) over images, d bias = g summed.
    Node conv2d(const Node& x, const Node& kernel, const Conv2dOptions& options = {});

    /// y[n, o, i, j, k] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p, k·s + e·d − p] · kernel[o, c, a, b, e] + bias[o].
    ///
    /// A cross-correlation. x [n, channels, d, h, w], zero outside; kernel [features, channels / groups, kd, kh, kw]; y
    /// [n, features, d', h', w'] with extents as in conv2d. Same as PyTorch's conv3d.
    ///
    /// Gradient: dx = conv_transpose3d(g, kernel), d kernel = conv3d(x, g) over images, d bias = g summed.
    Node conv3d(const Node& x, const Node& kernel, const Conv3dOptions& options = {});

    /// y[n, o, i·s + a·d − p] = Σ x[n, c, i] · kernel[c, o, a] + bias[o]: the adjoint of conv1d.
    ///
    /// x [n, channels, w]; kernel [channels, features / groups, kw]; y [n, features, w'] with w' = (w − 1)·s + d·(kw −
    /// 1) + 1 + output_padding − 2p. PyTorch: `conv_transpose1d`. JAX: `lax.conv_transpose` with transpose_kernel,
    /// which has the kernel's axes in another order and takes the padding of the underlying dilated convolution.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = conv1d(g, kernel), d kernel = conv1d(g, x) over images, d bias = g summed.
    Node conv_transpose1d(const Node& x, const Node& kernel, const ConvTranspose1dOptions& options = {});

    /// y[n, o, i·s + a·d − p, j·s + b·d − p] = Σ x[n, c, i, j] · kernel[c, o, a, b] + bias[o]: the adjoint of conv2d.
    ///
    /// x [n, channels, h, w]; kernel [channels, features / groups, kh, kw]; y [n, features, h', w'] with h' = (h − 1)·s
    /// − 2p + d·(kh − 1) + 1 + output_padding. Same as PyTorch's conv_transpose2d.
    ///
    /// Gradient: dx = conv2d(g, kernel), d kernel = conv2d(g, x) over images, d bias = g summed.
    Node conv_transpose2d(const Node& x, const Node& kernel, const ConvTranspose2dOptions& options = {});

    /// y[n, o, i·s + a·d − p, …] = Σ x[n, c, i, j, k] · kernel[c, o, a, b, e] + bias[o]: the adjoint of conv3d.
    ///
    /// x [n, channels, d, h, w]; kernel [channels, features / groups, kd, kh, kw]; y [n, features, d', h', w'] with
    /// extents as in conv_transpose2d. Same as PyTorch's conv_transpose3d.
    ///
    /// Gradient: dx = conv3d(g, kernel), d kernel = conv3d(g, x) over images, d bias = g summed.
    Node conv_transpose3d(const Node& x, const Node& kernel, const ConvTranspose3dOptions& options = {});

    /// y = x.
    ///
    /// The server chooses where a graph runs, so nothing is moved. The gradient passes through.
    ///
    /// Gradient: g.
    Node copy_to_device(const Node& x);

    /// y = cos x.
    ///
    /// Gradient: −g · sin x.
    Node cos(const Node& x);

    /// y = cosh x.
    ///
    /// Gradient: g · sinh x.
    Node cosh(const Node& x);

    /// loss = −Σ p · log softmax(logits) over the last axis, the axis of the classes; then the mean over all rows.
    ///
    /// logits [..., classes]; targets are either class indices [...] of an integer dtype (p is 1 at the index), or the
    /// distribution p itself, a float tensor of the logits' shape. Indices lie in [0, classes).
    ///
    /// Gradient: d logits = g · (softmax(logits) · Σ p − p) / rows, d targets = −g · log softmax(logits) / rows if
    /// float.
    Node cross_entropy(const Node& logits, const Node& targets, const CrossEntropyOptions& options = {});

    /// y[i] = log(exp x[0] + … + exp x[i]) along `axis`, stable; with `reverse`, of x[i], …, x[n − 1].
    ///
    /// As in logsumexp: if all elements so far are −inf, y is −inf and the gradient is 0; elements that are inf share
    /// the gradient. If an element so far is NaN, y and the gradient are NaN. Integers give float64. PyTorch:
    /// `logcumsumexp`. JAX: `lax.cumlogsumexp`, which also has `reverse`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: Σ g[k] · exp(x[i] − y[k]) over k ≥ i.
    ///
    /// axis: axis to accumulate along.
    Node cumlogsumexp(const Node& x, std::int64_t axis, const CumlogsumexpOptions& options = {});

    /// y[i] = the largest of x[0], …, x[i] along `axis`; with `reverse`, of x[i], …, x[n − 1].
    ///
    /// NaN from the first NaN on. In a tie, the first entry in the direction of accumulation gets the gradient.
    /// PyTorch: the values of `cummax`, whose gradient goes to the last entry in a tie. JAX: `lax.cummax`, which also
    /// has `reverse`, and in which ties share the gradient.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g to the entry that is y: the first in a tie, in the direction of accumulation; the first NaN.
    ///
    /// axis: axis to accumulate along.
    Node cummax(const Node& x, std::int64_t axis, const CummaxOptions& options = {});

    /// y[i] = the smallest of x[0], …, x[i] along `axis`; with `reverse`, of x[i], …, x[n − 1].
    ///
    /// NaN from the first NaN on. In a tie, the first entry in the direction of accumulation gets the gradient.
    /// PyTorch: the values of `cummin`, whose gradient goes to the last entry in a tie. JAX: `lax.cummin`, which also
    /// has `reverse`, and in which ties share the gradient.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g to the entry that is y: the first in a tie, in the direction of accumulation; the first NaN.
    ///
    /// axis: axis to accumulate along.
    Node cummin(const Node& x, std::int64_t axis, const CumminOptions& options = {});

    /// y[i] = x[0] · … · x[i] along `axis`; with `reverse`, x[i] · … · x[n − 1].
    ///
    /// Integers and bool are multiplied in int64, float16 in float32. The gradient is exact for any number of zeros,
    /// and so are higher derivatives. PyTorch and NumPy: `cumprod`. JAX: `lax.cumprod`, which also has `reverse`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: (product of the entries before i) · Σ g[k] · (product of the entries after i, up to k), over k ≥ i.
    ///
    /// axis: axis to accumulate along.
    Node cumprod(const Node& x, std::int64_t axis, const CumprodOptions& options = {});

    /// y[i] = x[0] + … + x[i] along `axis`; with `reverse`, x[i] + … + x[n − 1].
    ///
    /// Integers and bool are summed in int64, float16 in float32. PyTorch and NumPy: `cumsum`. JAX: `lax.cumsum`, which
    /// also has `reverse`.
    ///
    /// Gradient: g, summed from the end.
    ///
    /// axis: axis to sum along.
    Node cumsum(const Node& x, std::int64_t axis, const CumsumOptions& options = {});

    /// y = det x of square matrices on the last two axes: [batch…, n, n] → [batch…]; 1 for an empty matrix.
    ///
    /// If the determinant may overflow or underflow, use `slogdet`. The first two derivatives are exact for singular
    /// matrices, too; their third ones are NaN or infinite. A matrix with NaN gives NaN; the other matrices of the
    /// batch are unaffected. Integers give float64; float16 is computed in a wider float and rounded once. PyTorch, JAX
    /// and NumPy: `linalg.det`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · the conjugate cofactors of x; if x is invertible, those are the conjugate of det(x) x⁻ᵀ.
    Node det(const Node& x);

    /// The diagonal of the last two axes: y[…, i] = x[…, i, i + offset]; for a vector, the matrix with that diagonal.
    ///
    /// x [n] → [n + |offset|, n + |offset|], zero off the diagonal. x [batch…, rows, columns] → [batch…, m]. A negative
    /// offset counts downwards: y[…, i] = x[…, i − offset, i].
    ///
    /// Gradient: diag(g) for a vector; for matrices, g on the diagonal and 0 elsewhere.
    Node diag(const Node& x, const DiagOptions& options = {});

    /// y = ψ(x) = Γ'(x) / Γ(x); −∞ at 0, NaN at −1, −2, …. Accurate to 10 ulp; near its zeros below −1 to 1e-15.
    ///
    /// Near its negative poles all digits are correct; SciPy loses one digit for each digit by which x is closer to a
    /// pole.
    ///
    /// Gradient: g · polygamma(x, order=1).
    Node digamma(const Node& x);

    /// y = a / b, elementwise, with NumPy broadcasting; integers give floats, x / 0 gives ±inf or NaN.
    ///
    /// Gradient: da = g / b, db = −y · g / b.
    Node div(const Node& a, const Node& b);

    /// y = x / scalar. A scalar of 0 gives ±inf or NaN, as in `div`.
    ///
    /// Gradient: g / scalar.
    ///
    /// scalar: constant operand.
    Node div_scalar(const Node& x, double scalar);

    /// w, v = the eigenvalues, ascending, and eigenvectors of (x + xᴴ) / 2 = v diag(w) vᴴ, with vᴴ v = 1.
    ///
    /// x [batch…, n, n], w [batch…, n], real, v [batch…, n, n], one vector per column. If you read only eigenvalues,
    /// vectors are not computed. The gradient of eigenvalues alone is valid at equal ones, too, if your function treats
    /// these alike.
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
    /// The op has several results. Read each with get_output.
    ///
    /// Gradient: the symmetric part of v (diag(ḡw) + F ∘ vᴴ ḡv) vᴴ, Fᵢⱼ = 1 / (wⱼ − wᵢ), Fᵢᵢ = 0; no F if v is unread.
    Node eigh(const Node& x, const EighOptions& options = {});

    /// y[output letters] = Σ a[letters] · b[letters] · … over all letters that are not in the output.
    ///
    /// For two operands, `equation` looks like "ab,bc->ac": a letter (a–z, A–Z) for each axis, a comma between
    /// operands, and after the arrow the axes of the result. Each letter has one extent and appears at most once in
    /// each operand. An ellipsis or an implicit output is not allowed; spaces are ignored. The number of operands is 1
    /// to 32. The result has the common dtype of the operands, as in NumPy.
    ///
    /// Operands are multiplied in pairs, each time the pair with the fewest multiplications, so that no step costs more
    /// than the equation evaluated as one loop (greedy order, as in numpy.einsum_path).
    ///
    /// Gradient: for each operand, the einsum of g with the other operands.
    ///
    /// equation: letters of each operand, then -> and the letters of the result.
    Node einsum(const std::string& equation, const Node& a, const std::vector<Node>& b);

    /// y = x for x > 0, else alpha · (eˣ − 1). Derivatives at 0 are the left ones: alpha.
    ///
    /// D.-A. Clevert, T. Unterthiner, S. Hochreiter, arXiv:1511.07289.
    ///
    /// Gradient: g where x > 0 or NaN, else g · alpha · eˣ.
    Node elu(const Node& x, const EluOptions& options = {});

    /// y[i, j, …, :] = weight[indices[i, j, …], :]: rows of a table.
    ///
    /// weight [rows, features…], indices of any shape with entries in [0, rows), y [shape of indices…, features…]. With
    /// `from_end`, entries lie in [−rows, rows), and negative ones count from the end. PyTorch: `functional.embedding`,
    /// which rejects negative indices and has `padding_idx`. JAX: weight[indices], which accepts negative indices and
    /// moves those out of range to the nearest row.
    ///
    /// Gradient: d weight = g, added to the rows that were read: repeated indices accumulate; none for indices.
    Node embedding(const Node& weight, const Node& indices, const EmbeddingOptions& options = {});

    /// y = (a = b), elementwise; false if either is NaN.
    Node equal(const Node& a, const Node& b);

    /// y = erf x = 2/√π ∫₀ˣ exp(−t²) dt. Accurate to 2 units in the last place (ulp).
    ///
    /// Gradient: g · 2/√π · exp(−x²).
    Node erf(const Node& x);

    /// y = erfc x = 1 − erf x. Accurate to 2 units in the last place (ulp), even where y is small.
    ///
    /// Gradient: −g · 2/√π · exp(−x²).
    Node erfc(const Node& x);

    /// y such that erf y = x: ±∞ at ±1, NaN beyond. Accurate to 2 ulp.
    ///
    /// Gradient: g · √π/2 · exp(y²).
    Node erfinv(const Node& x);

    /// y = eˣ.
    ///
    /// Gradient: g · y.
    Node exp(const Node& x);

    /// y = eˣ − 1, accurate near 0.
    ///
    /// Gradient: g · eˣ.
    Node expm1(const Node& x);

    /// y[k] = Σ x[j] exp(−2πi j k / n) over `axes`, each of n points: the discrete Fourier transform.
    ///
    /// `norm` is as in NumPy: `forward` divides by n, `ortho` by √n. Real operands are converted to complex. float16
    /// gives complex64, integers give complex128. PyTorch, JAX and NumPy: `fft`; over several axes, `fft2` and `fftn`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: ifft(g) without the division by n; for a real operand, its real part.
    Node fft(const Node& x, const FftOptions& options = {});

    /// Repeats x = body(consts, x) until max |Δx| ≤ tolerance · (1 + max |x|), at most `max_steps` times.
    ///
    /// x stands for the `carries`, which must be floats; each maximum is over all of them, and max |x| is that of the
    /// new x. An infinity or NaN in x ends the iteration, unfinished. Results: x; `steps`, int64 [], the number of
    /// steps that ran; `finished`, bool []. The gradient is implicit, as in JAX's `lax.custom_root`, which takes a
    /// solver. In PyTorch, write a Python loop and a custom rule.
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with get_output.
    ///
    /// Gradient: implicit: u = g + (∂body/∂x)ᵀu by the same iteration, then (∂body/∂consts)ᵀu; none for the initial x.
    ///
    /// body: function of consts and x; returns the next x.
    ///
    /// tolerance: largest change at which to stop, relative to 1 + max |x|; 0: no change.
    ///
    /// max_steps: maximum number of steps.
    Node fixed_point(
        const GraphFunction& body,
        double tolerance,
        std::int64_t max_steps,
        const std::vector<Node>& operands,
        const FixedPointOptions& options = {});

    /// y = x with adjacent axes merged into one; by default, all axes. A 0-d tensor becomes [1].
    ///
    /// Gradient: g, reshaped back.
    Node flatten(const Node& x, const FlattenOptions& options = {});

    /// y = x with the order of the entries reversed on `axes`; by default, on all axes.
    ///
    /// Gradient: g, flipped.
    Node flip(const Node& x, const FlipOptions& options = {});

    /// y = ⌊x⌋: x rounded down to a whole number.
    Node floor(const Node& x);

    /// y = ⌊a / b⌋, elementwise with broadcasting: Python's //; `mod` is the remainder. Integer division by 0 gives 0.
    ///
    /// PyTorch and NumPy: `floor_divide`. JAX: `jnp.floor_divide`, which gives −1 for integer division by 0.
    ///
    /// Since opset 2.
    Node floor_div(const Node& a, const Node& b);

    /// A tensor filled with one number, created on the server: y[…] = fill.
    ///
    /// An absent or empty `shape` makes a 0-d tensor. To fill with an infinity or NaN, use `fill_as`. PyTorch and JAX:
    /// `full`.
    Node full(const FullOptions& options = {});

    /// y[i, j, …] = x[index[i, j, …], j, …] for axis 0; likewise for the other axes.
    ///
    /// `index` has x's rank and may be smaller than x on the other axes, as in PyTorch; y has its shape. With one
    /// operand, the list `indices` selects slices: y is x at those positions of the axis. Indices lie in [0, extent).
    /// With `from_end`, they lie in [−extent, extent), and negative ones count from the end, as in x[i] of PyTorch, JAX
    /// and NumPy. PyTorch: `gather`, which rejects negative indices. JAX: `take_along_axis`.
    ///
    /// Gradient: dx = scatter_add(0, index, g): repeated indices accumulate; none for index.
    Node gather(const Node& x, const GatherOptions& options = {});

    /// y = x · Φ(x), with Φ the standard normal distribution function; 0 at −∞.
    ///
    /// With `approximate` set to tanh, y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), which many models were trained
    /// with. D. Hendrycks, K. Gimpel, arXiv:1606.08415.
    ///
    /// Gradient: g · (Φ(x) + x · Φ′(x)).
    Node gelu(const Node& x, const GeluOptions& options = {});

    /// One result of an op with several results: y = x[index].
    ///
    /// Gradient: g for that result, 0 for the other results of the op.
    ///
    /// index: position of the result, from 0.
    Node get_output(const Node& x, std::int64_t index);

    /// The gradient of sum(y · cotangent) with respect to x, of x's type; without a cotangent, of sum(y).
    ///
    /// Other nodes can use the result, and you can differentiate it again, to any order. x may be any float node. If y
    /// does not depend on x, the result is zeros. A complex y needs a cotangent. With respect to a complex x, the
    /// gradient is ∂/∂Re x + i ∂/∂Im x.
    ///
    /// Gradient: that of the nodes that compute the gradient.
    Node grad(const Node& y, const Node& x, const GradOptions& options = {});

    /// y = (a > b), elementwise; false if either is NaN.
    Node greater(const Node& a, const Node& b);

    /// y = (a ≥ b), elementwise; false if either is NaN.
    Node greater_equal(const Node& a, const Node& b);

    /// y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance of each group of channels per
    /// example.
    ///
    /// x [n, channels, …]; weight and bias [channels]. The channels are divided into `groups` equal groups. The
    /// variance has n in the denominator. PyTorch: `group_norm`. Flax: `GroupNorm`, with channels last. Y. Wu, K. He,
    /// "Group normalization" (2018).
    ///
    /// Since opset 2.
    ///
    /// Gradient: as in layer_norm, over each group.
    ///
    /// groups: number of equal groups of channels.
    Node group_norm(const Node& x, std::int64_t groups, const GroupNormOptions& options = {});

    /// y = I₀(x). Accurate to 5 ulp; infinite for |x| > 713.98.
    ///
    /// SciPy's is infinite from 709.78 on. NumPy: `i0`. PyTorch: `special.i0`. JAX: `scipy.special.i0`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · i1(x).
    Node i0(const Node& x);

    /// y = exp(−|x|) I₀(x). Accurate to 4 ulp.
    ///
    /// The derivative is accurate even for large x, where I₀ and I₁ agree in most digits. At 0, where |x| has a kink,
    /// it is 0, as in PyTorch and JAX. SciPy and PyTorch: `special.i0e`. JAX: `bessel_i0e`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · (i1e(x) − sign(x) · y).
    Node i0e(const Node& x);

    /// y = I₁(x). Accurate to 5 ulp. At 0, the derivative is 1/2.
    ///
    /// SciPy and PyTorch: `special.i1`. JAX: `scipy.special.i1`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · (i0(x) − y / x), and g / 2 at 0.
    Node i1(const Node& x);

    /// y = exp(−|x|) I₁(x). Accurate to 4 ulp. At 0, the derivative is 1/2.
    ///
    /// SciPy and PyTorch: `special.i1e`. JAX: `bessel_i1e`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · (i0e(x) − y · (sign(x) + 1 / x)), and g / 2 at 0.
    Node i1e(const Node& x);

    /// y = x, as a separate node.
    ///
    /// Gradient: g.
    Node identity(const Node& x);

    /// y[j] = Σ x[k] exp(2πi j k / n) / n over `axes`, each of n points: the inverse of `fft`.
    ///
    /// `norm` is as in NumPy: `forward` does not divide, `ortho` divides by √n. Real operands are converted to complex.
    /// float16 gives complex64, integers give complex128. PyTorch, JAX and NumPy: `ifft`; over several axes, `ifft2`
    /// and `ifftn`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: fft(g) / n; for a real operand, its real part.
    Node ifft(const Node& x, const IfftOptions& options = {});

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
    Node igamma(const Node& a, const Node& x);

    /// y = Q(a, x) = 1 − P(a, x), with broadcasting; accurate even where y is small.
    ///
    /// On NumPy, this is SciPy's function. Accurate to 512 ulp; below 1e-290, to a relative error of 1e-12. Derivatives
    /// are those of `igamma` with the opposite sign. SciPy and PyTorch: `special.gammaincc`. JAX: `igammac`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: da = −g · ∂P/∂a, an integral; dx = −g · xᵃ⁻¹ exp(−x) / Γ(a).
    Node igammac(const Node& a, const Node& x);

    /// y = Im x; 0 for a real x. JAX and NumPy: `imag`. PyTorch's `imag` rejects a real x.
    ///
    /// Since opset 2.
    ///
    /// Gradient: i · g.
    Node imag(const Node& x);

    /// y = x[i, j, …]: entries or slices of x at index tensors, one for each of `axes`, which broadcast together.
    ///
    /// As in NumPy's x[i, j], the axes of the indices replace the indexed axes if these are adjacent, and come first
    /// otherwise. Indices lie in [0, extent); with `from_end`, in [−extent, extent), and negative ones count from the
    /// end. PyTorch and JAX: x[i, j], in which negative indices always count from the end. An index out of range is an
    /// error here and in PyTorch; JAX moves it into the range.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = index_add(0, indices, g): repeated indices accumulate; none for indices.
    Node index(const Node& x, const std::vector<Node>& indices, const IndexOptions& options = {});

    /// y = x, then y[i, j, …] += updates, entry by entry: repeated indices accumulate.
    ///
    /// The operands are x, an index for each of `axes`, and updates, which broadcast to what `index` reads. Indices are
    /// as in `index`. PyTorch: `index_put` with accumulate. JAX: x.at[i, j].add, which drops updates that are out of
    /// range.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = g, d updates = index(g, indices); none for indices.
    Node index_add(const Node& x, const std::vector<Node>& indices_and_updates, const IndexAddOptions& options = {});

    /// y = x, then y[i, j, …] = updates. If a position is written twice, the last update in row-major order wins.
    ///
    /// Only the winning update gets a gradient. The operands are x, an index for each of `axes`, and updates, which
    /// broadcast to what `index` reads. Indices are as in `index`. PyTorch: `index_put`. JAX: x.at[i, j].set. Neither
    /// defines which of several updates wins; PyTorch sends the gradient to all of them, and JAX drops updates that are
    /// out of range.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = g, 0 where an update was written; d updates = g where the update won, else 0; none for indices.
    Node index_set(const Node& x, const std::vector<Node>& indices_and_updates, const IndexSetOptions& options = {});

    /// Data, fed with the request.
    ///
    /// Its gradient is computed only if `wrt` names it. A declared `dtype` or `shape` must match the feed.
    Node input(const std::string& name = {}, const InputOptions& options = {});

    /// y = x⁻¹, for matrices on the last two axes.
    ///
    /// If x is singular, y is NaN, or very large if rounding hides the singularity; the other matrices of the batch are
    /// unaffected. To solve a system, use `solve`, which is faster and more accurate. Integers give float64; float16 is
    /// computed in a wider float and rounded once.
    ///
    /// Gradient: −yᴴ g yᴴ.
    Node inv(const Node& x);

    /// The real y whose `rfft` is x, with n = `sizes` points on the last of `axes`; default: 2 (m − 1) for m entries.
    ///
    /// The imaginary parts of entry 0, and of entry n / 2 if n is even, are ignored. Real operands are converted to
    /// complex. float16 gives float16, integers give float64. `norm` is as in `ifft`. PyTorch, JAX and NumPy: `irfft`;
    /// over several axes, `irfft2` and `irfftn`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: rfft(g) / n, with the inner entries doubled.
    Node irfft(const Node& x, const IrfftOptions& options = {});

    /// y = true if x is neither infinite nor NaN.
    Node is_finite(const Node& x);

    /// y = (x − mean) / √(variance + eps) · weight + bias, with mean and variance (n in the denominator) over `axes`.
    ///
    /// weight and bias have x's extents on `axes`, in ascending order. CJC normalises the whole tensor: for that, pass
    /// all axes. J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization" (2016).
    ///
    /// Gradient: with z normalised and h = g · weight: dx = (h − mean h − z · mean(h·z)) / √(variance + eps).
    Node layer_norm(const Node& x, const LayerNormOptions& options = {});

    /// y = x for x > 0, else alpha · x. The derivative at 0 is alpha.
    ///
    /// Gradient: g where x > 0 or NaN, else g · alpha.
    Node leaky_relu(const Node& x, const LeakyReluOptions& options = {});

    /// y = (a < b), elementwise; false if either is NaN.
    Node less(const Node& a, const Node& b);

    /// y = (a ≤ b), elementwise; false if either is NaN.
    Node less_equal(const Node& a, const Node& b);

    /// y = log |Γ(x)|; ∞ at 0, −1, −2, …. Accurate to 4 ulp; near zeros below 0 (−2.457, −2.748, −3.144, …) to 1e-15.
    ///
    /// Near its positive zeros, 1 and 2, all digits are correct; SciPy has no correct digit within 1e-16 of them.
    ///
    /// Gradient: g · digamma(x).
    Node lgamma(const Node& x);

    /// y = activation(x @ w + b) for x[…, in], w[in, out] and b[out]: y[…, out]. Without b, nothing is added.
    ///
    /// b may have any shape that broadcasts to y's shape. The activation is the op of that name with its defaults.
    ///
    /// Gradient: with h = g · activation′: dx = h @ wᵀ, dw = xᵀ @ h, db = Σ h over the rows.
    Node linear(const Node& x, const Node& w, const LinearOptions& options = {});

    /// y = ln x: −∞ at 0, NaN for x < 0.
    ///
    /// For a complex x, y = ln |x| + i · angle x. The branch cut is the negative real axis; on it, the sign of the
    /// imaginary zero selects the side (C99).
    ///
    /// Gradient: g / x.
    Node log(const Node& x);

    /// y = ln(1 + x), accurate near 0.
    ///
    /// Gradient: g / (1 + x).
    Node log1p(const Node& x);

    /// y = log₂ x: −∞ at 0, NaN for x < 0.
    ///
    /// Gradient: g / (x · ln 2).
    Node log2(const Node& x);

    /// y = ln(x + eps): finite at 0.
    ///
    /// Gradient: g / (x + eps).
    Node log_eps(const Node& x, const LogEpsOptions& options = {});

    /// y = log Φ(x), with Φ the standard normal distribution function. Accurate to 4 ulp in both tails.
    ///
    /// The derivative φ(x) / Φ(x) and its own derivatives keep their relative accuracy where Φ(x) underflows. For x >
    /// 0, the derivative is as accurate as exp(−x²/2): to x²/2 ulp.
    ///
    /// Gradient: g · φ(x) / Φ(x), with φ the density.
    Node log_ndtr(const Node& x);

    /// y = ln sigmoid x = −softplus(−x).
    ///
    /// Gradient: g · sigmoid(−x).
    Node log_sigmoid(const Node& x);

    /// y = x − log Σ exp(x) along `axis`, of x's shape; stable: computed from x − max x. Integers give float64.
    ///
    /// The largest x has y = −log(1 + Σ of the others), all of whose digits are kept. A row that contains only −inf
    /// gives NaN.
    ///
    /// Gradient: g − exp(y) · Σ g, with the sum along the axis, computed as −g · expm1(y) − (Σ g − g) · exp(y).
    Node log_softmax(const Node& x, const LogSoftmaxOptions& options = {});

    /// y = ln(eᵃ + eᵇ), stable. If both are −∞, y is −∞ and the gradients are 0; if both are ∞, each gets half of g.
    ///
    /// Gradient: da = g · sigmoid(a − b), db = g · sigmoid(b − a).
    Node logaddexp(const Node& a, const Node& b);

    /// y = a and b, elementwise with broadcasting. Nonzero numbers, including NaN, are true.
    Node logical_and(const Node& a, const Node& b);

    /// y = not x, elementwise. Nonzero numbers, including NaN, are true.
    Node logical_not(const Node& x);

    /// y = a or b (or both), elementwise with broadcasting. Nonzero numbers, including NaN, are true.
    Node logical_or(const Node& a, const Node& b);

    /// y = log Σ exp x over axes, stable: m + log Σ exp(x − m) with m = max x. −inf if no elements are reduced.
    ///
    /// If all elements are −inf, y is −inf and the gradient is 0. Elements that are inf share the gradient. If an
    /// element is NaN, y and the gradient are NaN. Integers give float64.
    ///
    /// Gradient: g · exp(x − y).
    Node logsumexp(const Node& x, const LogsumexpOptions& options = {});

    /// y that minimises |a y − b|: a [batch…, m, n] with m ≥ n, b [m], [batch…, m] or [batch…, m, k].
    ///
    /// y [n], [batch…, n] or [batch…, n, k]. b holds vectors if it is 1-d, or if it has a's shape without the last axis
    /// and its last two axes cannot be matrices of m rows; otherwise it holds matrices. Without `rcond`, y is computed
    /// by `qr`, and the columns of a must be independent. With `rcond`, y is computed by `pinv`: singular values up to
    /// that fraction of the largest count as 0, and y is the solution of least norm. Integers give float64; float16 is
    /// computed in float32 and rounded once. PyTorch, JAX and NumPy: the first result of `linalg.lstsq`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: that of qr or pinv: db = a (aᴴ a)⁻¹ g, da = (b − a y) ((aᴴ a)⁻¹ g)ᴴ − db yᴴ.
    Node lstsq(const Node& a, const Node& b, const LstsqOptions& options = {});

    /// permutation, l, u with x[permutation] = l u: rows are exchanged so that no entry of l is larger than 1.
    ///
    /// x [batch…, m, n], permutation int64 [batch…, m], l [batch…, m, k] lower triangular with 1 on its diagonal, u
    /// [batch…, k, n] upper triangular, k = min(m, n). To solve a system, use `solve`, which is faster. Complex numbers
    /// are compared by |Re| + |Im|. The gradient is valid if the first k columns of x[permutation] are independent in
    /// their first k rows; otherwise it is infinite or NaN. The permutation has no gradient. A matrix with an infinity
    /// or NaN gives NaN in l and u, and its rows are not exchanged; the other matrices of the batch are unaffected.
    /// Integers give float64; float16 is computed in a wider float and rounded once.
    ///
    /// PyTorch: `linalg.lu`, which returns a matrix instead of the permutation. JAX: `lax.linalg.lu`, which returns the
    /// results in another order. F. de Hoog, R. Anderssen, M. Lukas, Differentiation of matrix functionals using
    /// triangular factorization (2011).
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with get_output.
    ///
    /// Gradient: for square matrices, l⁻ᴴ (tril(lᴴ ḡl, −1) + triu(ḡu uᴴ)) u⁻ᴴ with rows moved back to their places.
    Node lu(const Node& x);

    /// y = re + i · im, elementwise with broadcasting; complex64 for float32 and narrower floats, else complex128.
    ///
    /// Infinities, NaN and the signs of zeros in both parts are preserved, unlike in the expression re + im · i.
    /// PyTorch: `complex`. JAX: `lax.complex`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: d re = Re g, d im = Im g.
    Node make_complex(const Node& re, const Node& im);

    /// stacks = body(consts, entry t of each sequence) for every t, in no particular order.
    ///
    /// The operands are consts, then `sequences` tensors of equal leading extent. `at_once` entries are computed in one
    /// batch. Each result of the body gives a stack [entries, …]. JAX: `lax.map`, whose batch_size is `at_once`. JAX
    /// and PyTorch: `vmap`, which computes all entries in one batch.
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with get_output.
    ///
    /// Gradient: a map of the body's gradient, summed over the entries for consts.
    ///
    /// body: function of consts and one entry of each sequence; returns the values to stack.
    Node map(const GraphFunction& body, const std::vector<Node>& operands, const MapOptions& options = {});

    /// The value under one key of a map that is stored as one tensor, with keys in insertion order.
    ///
    /// The leading axis is split into `total_keys` equal parts, and y is the part `key_index`; the axis remains.
    ///
    /// Gradient: g in that part, 0 in the others.
    ///
    /// key_index: position of the key in insertion order, from 0.
    ///
    /// total_keys: number of keys in the map.
    Node map_lookup(const Node& x, std::int64_t key_index, std::int64_t total_keys);

    /// y = a @ b, as in NumPy: y[…, i, j] = Σₖ a[…, i, k] · b[…, k, j]; the leading axes broadcast.
    ///
    /// A 1-d operand is a row on the left and a column on the right; that axis is dropped from the result. float16
    /// accumulates in float32. Integers and bool are multiplied in their own dtype, as in NumPy.
    ///
    /// Gradient: da = g @ bᴴ, db = aᴴ @ g, summed over batch axes that were broadcast.
    Node matmul(const Node& a, const Node& b);

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
    /// Gradient: the upper right block of exp [[xᴴ, g], [0, xᴴ]].
    Node matrix_exp(const Node& x);

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
    /// k: exponent; may be 0 or negative.
    Node matrix_power(const Node& x, std::int64_t k);

    /// y = the number of singular values larger than max(m, n) ε times the largest: int64, [batch…, m, n] → [batch…].
    ///
    /// ε is that of x's dtype. A matrix with an infinity or NaN has rank 0. PyTorch, JAX and NumPy:
    /// `linalg.matrix_rank` without a tolerance.
    ///
    /// Since opset 2.
    Node matrix_rank(const Node& x);

    /// y = max x over axes; NaN if an element is NaN. Ties, including NaN, share the gradient equally.
    ///
    /// Gradient: g / k to each of the k elements equal to y (if y is NaN, to each NaN); 0 to the others.
    Node max(const Node& x, const MaxOptions& options = {});

    /// y[…, i] = the largest element of the window at i; NaN if it contains NaN. x [..., w]; padding counts as −∞.
    ///
    /// w' = ⌊(w + 2 · padding − dilation · (kernel_size − 1) − 1) / stride⌋ + 1; with `ceiling`, ⌈…⌉ + 1. PyTorch:
    /// `max_pool1d`, whose `ceil_mode` is `ceiling`. JAX: `lax.reduce_window` with window_dilation; it has no ceiling
    /// mode.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g, added at the first maximum (in row-major order) of each window.
    ///
    /// kernel_size: extents of the windows along each spatial axis.
    Node max_pool1d(const Node& x, const std::vector<std::int64_t>& kernel_size, const MaxPool1dOptions& options = {});

    /// y[…, i, j] = the largest element of the window at (i, j); NaN if the window contains NaN.
    ///
    /// x [..., h, w]; padding counts as −∞. Same as PyTorch's max_pool2d.
    ///
    /// Gradient: g, added at the first maximum (in row-major order) of each window.
    ///
    /// kernel_size: extents of the windows along each spatial axis.
    Node max_pool2d(const Node& x, const std::vector<std::int64_t>& kernel_size, const MaxPool2dOptions& options = {});

    /// y[…, h, w] = Σ g[…, i, j] over the windows (i, j) whose first maximum, in row-major order, is x[…, h, w].
    ///
    /// The gradient of max_pool2d with respect to x for the cotangent g [..., h', w'], with x [..., h, w]; 0 at all
    /// other elements. NaN counts as a maximum.
    ///
    /// Gradient: dg = the cotangent at max_pool2d_indices; none for x: the result is piecewise constant in x.
    ///
    /// kernel_size: extents of the windows along each spatial axis.
    Node max_pool2d_back(
        const Node& g,
        const Node& x,
        const std::vector<std::int64_t>& kernel_size,
        const MaxPool2dBackOptions& options = {});

    /// y[…, i, j] = the position h · width + w of the first maximum (in row-major order) of the window at (i, j).
    ///
    /// Positions are int64 and flat within each plane, as in PyTorch's return_indices. NaN counts as a maximum.
    ///
    /// kernel_size: extents of the windows along each spatial axis.
    Node max_pool2d_indices(
        const Node& x,
        const std::vector<std::int64_t>& kernel_size,
        const MaxPool2dIndicesOptions& options = {});

    /// y[…, i, j, k] = the largest element of the window at (i, j, k); NaN if it contains NaN. x [..., d, h, w].
    ///
    /// Padding counts as −∞. Extents are as in max_pool1d. To pool planes with dilation or `ceiling`, use a first
    /// kernel size of 1. PyTorch: `max_pool3d`, whose `ceil_mode` is `ceiling`. JAX: `lax.reduce_window`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g, added at the first maximum (in row-major order) of each window.
    ///
    /// kernel_size: extents of the windows along each spatial axis.
    Node max_pool3d(const Node& x, const std::vector<std::int64_t>& kernel_size, const MaxPool3dOptions& options = {});

    /// y = the larger of a and b, elementwise with broadcasting; NaN if either is NaN.
    ///
    /// Gradient: da = g where a > b or only a is NaN, g / 2 where a = b or both are NaN, else 0; db likewise.
    Node maximum(const Node& a, const Node& b);

    /// y = Σ x / n over axes, n the number of elements reduced; NaN if n = 0. Integers give float64.
    ///
    /// Gradient: g / n, broadcast back over the axes.
    Node mean(const Node& x, const MeanOptions& options = {});

    /// y = min x over axes; NaN if an element is NaN. Ties, including NaN, share the gradient equally.
    ///
    /// Gradient: g / k to each of the k elements equal to y (if y is NaN, to each NaN); 0 to the others.
    Node min(const Node& x, const MinOptions& options = {});

    /// y = the smaller of a and b, elementwise with broadcasting; NaN if either is NaN.
    ///
    /// Gradient: da = g where a < b or only a is NaN, g / 2 where a = b or both are NaN, else 0; db likewise.
    Node minimum(const Node& a, const Node& b);

    /// y = activation(x @ wᵀ + b) for x[…, in], w[out, in] and b[out]: y[…, out].
    ///
    /// b may have any shape that broadcasts to y's shape. The activation is the op of that name with its defaults.
    /// CJC's layer uses the tanh form of `gelu`: for that, build the layer from its parts.
    ///
    /// Gradient: with h = g · activation′: dx = h @ w, dw = hᵀ @ x, db = Σ h over the rows.
    Node mlp_layer(const Node& x, const Node& w, const Node& b, const MlpLayerOptions& options = {});

    /// y = a − b · ⌊a / b⌋: the remainder with the divisor's sign, as in Python's % and NumPy's mod.
    ///
    /// A float modulo 0 is NaN, an integer modulo 0 is 0.
    ///
    /// Gradient: da = g, db = −g · ⌊a / b⌋.
    Node mod(const Node& a, const Node& b);

    /// loss = (x − y)², elementwise for equal shapes; then the mean.
    ///
    /// Gradient: dx = g · 2 (x − y) / n, dy = −dx.
    Node mse_loss(const Node& x, const Node& y, const MseLossOptions& options = {});

    /// y = a · b, elementwise, with NumPy broadcasting.
    ///
    /// Gradient: da = g · b, db = g · a.
    Node mul(const Node& a, const Node& b);

    /// y = x · scalar.
    ///
    /// Gradient: g · scalar.
    ///
    /// scalar: constant operand.
    Node mul_scalar(const Node& x, double scalar);

    /// y = −x.
    ///
    /// Gradient: −g.
    Node neg(const Node& x);

    /// The first k positions where `mask` is true, in row-major order: int64 [k, rank]; and their total count: int64
    /// [].
    ///
    /// You set k, so that shapes do not depend on the mask. If there are more than k positions, the rest are dropped;
    /// if there are fewer, the remaining rows are zeros. The count, which is not limited to k, tells you which. JAX:
    /// `nonzero` with a size, which returns the columns as a tuple. PyTorch: `nonzero`, which has as many rows as there
    /// are positions.
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with get_output.
    ///
    /// k: number of entries in the result.
    Node nonzero(const Node& mask, std::int64_t k);

    /// y = √Σ x² over axes, the Euclidean norm, without intermediate overflow or underflow. Integers give float64.
    ///
    /// At 0 the gradient is 0, the subgradient of least norm, and so is its own gradient. An infinite element gets g,
    /// with its sign. If an element is NaN, y and the gradient are NaN.
    ///
    /// Gradient: g · x / y, and 0 where y = 0.
    Node norm(const Node& x, const NormOptions& options = {});

    /// y = (a ≠ b), elementwise; true if either is NaN.
    Node not_equal(const Node& a, const Node& b);

    /// y[…, c] = 1 where indices[…] = c, else 0, on a new last axis of extent `classes`. Indices lie in [0, classes).
    ///
    /// classes: number of classes.
    Node one_hot(const Node& indices, std::int64_t classes, const OneHotOptions& options = {});

    /// y = x with `fill` around it: pad_width[2i] entries before and pad_width[2i + 1] after, on each axis i.
    ///
    /// To pad with an infinity or NaN, use `fill_as`. PyTorch's `functional.pad` lists the last axis first. JAX's and
    /// NumPy's `pad` take pairs, in the same order as here.
    ///
    /// Gradient: g without the padding.
    ///
    /// pad_width: entries before and after, one axis after the other.
    Node pad(const Node& x, const std::vector<std::int64_t>& pad_width, const PadOptions& options = {});

    /// A trainable tensor, fed with the request.
    ///
    /// Same as `input`, but part of `wrt` by default.
    Node parameter(const std::string& name = {}, const ParameterOptions& options = {});

    /// y = x⁺, the Moore–Penrose pseudoinverse: v diag(1 / s) uᴴ of x = u diag(s) vᴴ, without the s that are 0.
    ///
    /// x [batch…, m, n], y [batch…, n, m]. Singular values up to `rcond` times the largest count as 0; the default is
    /// max(m, n) ε. The gradient assumes constant rank. It is exact if only zeros are cut off, even with equal singular
    /// values. If larger values are cut off, its relative error is their ratio to the values that remain. Where the
    /// rank changes, the pseudoinverse is discontinuous. A matrix with an infinity or NaN, or for which LAPACK does not
    /// converge, gives NaN; the other matrices of the batch are unaffected. Integers give float64; float16 is computed
    /// in a wider float and rounded once.
    ///
    /// PyTorch: `linalg.pinv` (with rtol). JAX and NumPy: `linalg.pinv`, with other defaults. G. H. Golub, V. Pereyra,
    /// The differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate (1973), eq.
    /// 4.12.
    ///
    /// Since opset 2.
    ///
    /// Gradient: −yᴴ g yᴴ + (1 − x y) gᴴ y yᴴ + yᴴ y gᴴ (1 − y x).
    Node pinv(const Node& x, const PinvOptions& options = {});

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
    /// order: order of the derivative of digamma, 0 to 170.
    Node polygamma(const Node& x, std::int64_t order);

    /// y = aᵇ with broadcasting; with one operand, y = a^exponent, as in `pow_scalar`. 0⁰ = 1.
    ///
    /// A negative a to a fractional power is NaN, and so is its derivative with respect to b. The derivative with
    /// respect to b is 0 where a = 0 and b ≥ 0, and where a = ∞ and b < 0. Powers of integers are integers and wrap
    /// around as in NumPy. With a negative exponent they are truncated towards zero (2⁻¹ → 0, as in CuPy and PyTorch;
    /// NumPy raises an error), and 0⁻¹ → 0.
    ///
    /// Gradient: da = g · b · aᵇ⁻¹, db = g · y · log a.
    Node pow(const Node& a, const PowOptions& options = {});

    /// y = x^exponent for a real exponent. 0⁰ = 1; a negative x to a fractional power is NaN.
    ///
    /// For a complex x, y = exp(exponent · log x), with the branch cut of `log`.
    ///
    /// Gradient: g · exponent · x^(exponent − 1), and 0 for an exponent of 0.
    ///
    /// exponent: exponent.
    Node pow_scalar(const Node& x, double exponent);

    /// y = Π x over axes; 1 if no elements are reduced. Integers and bool are multiplied in int64, float16 in float32.
    ///
    /// The gradient is that of a tree of products. It is exact for any number of zeros, and so are higher derivatives.
    ///
    /// Gradient: g · (product of all other elements).
    Node prod(const Node& x, const ProdOptions& options = {});

    /// q, r with x = q r: the columns of q are orthonormal, r is upper triangular; reduced form.
    ///
    /// x [batch…, m, n], q [batch…, m, k], r [batch…, k, n], k = min(m, n). LAPACK chooses the signs of r's diagonal;
    /// each sign flips a row of r together with the column of q. Use q and r only in functions that do not depend on
    /// these signs. The gradient is valid if the columns of x are independent; otherwise it is infinite or NaN. With
    /// fewer rows than columns, there are values but no gradient: `not_differentiable`. A matrix with an infinity or
    /// NaN gives NaN; the other matrices of the batch are unaffected. Integers give float64; float16 is computed in a
    /// wider float and rounded once.
    ///
    /// PyTorch and JAX: `linalg.qr`, reduced. S. F. Walter, L. Lehmann, Algorithmic differentiation of linear algebra
    /// functions with application in optimum experimental design, arXiv:1001.1654 (2010).
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with get_output.
    ///
    /// Gradient: (ḡq + q (L + Lᴴ − Re diag L)) r⁻ᴴ, L the lower triangle of r ḡrᴴ − ḡqᴴ q; none if rows < columns.
    Node qr(const Node& x);

    /// y = uniform < p, of p's shape: true with probability p. The uniform numbers have p's dtype.
    ///
    /// Equals `jax.random.bernoulli`. PyTorch's `bernoulli` returns floats and uses a different generator.
    ///
    /// Since opset 2.
    Node random_bernoulli(const Node& key, const Node& p);

    /// y = 32 random bits per element: the exclusive or of both words of counter i, row-major. Equals
    /// `jax.random.bits`.
    ///
    /// PyTorch's `randint` uses a different generator.
    ///
    /// Since opset 2.
    ///
    /// shape: shape of the result.
    Node random_bits(const Node& key, const std::vector<std::int64_t>& shape, const RandomBitsOptions& options = {});

    /// y = argmax(logits + gumbel) along `axis`, int64: i with probability proportional to exp(logits[i]).
    ///
    /// Equals `jax.random.categorical`. PyTorch's `multinomial` takes weights and uses a different generator.
    ///
    /// Since opset 2.
    Node random_categorical(const Node& key, const Node& logits, const RandomCategoricalOptions& options = {});

    /// y = −log1p(−u), u uniform in [0, 1): exponential numbers with mean 1. Equals `jax.random.exponential`.
    ///
    /// PyTorch's `exponential_` uses a different generator.
    ///
    /// Since opset 2.
    ///
    /// shape: shape of the result.
    ///
    /// dtype: dtype of the result; one of float32, float64.
    Node random_exponential(const Node& key, const std::vector<std::int64_t>& shape, const DType& dtype);

    /// key = a new key [2] for each number: the words of counter (0, number mod 2³²). Equals `jax.random.fold_in`.
    ///
    /// PyTorch has no keys; use one `Generator` for each.
    ///
    /// Since opset 2.
    Node random_fold_in(const Node& key, const Node& number);

    /// y = −log(−log u), u uniform in [0, 1), with 0 replaced by the smallest normal number. Equals
    /// `jax.random.gumbel`.
    ///
    /// PyTorch's `distributions.Gumbel` uses a different generator.
    ///
    /// Since opset 2.
    ///
    /// shape: shape of the result.
    ///
    /// dtype: dtype of the result; one of float32, float64.
    Node random_gumbel(const Node& key, const std::vector<std::int64_t>& shape, const DType& dtype);

    /// key = (seed ≫ 32, seed mod 2³²): uint32 [2] from an int64 []. Equals
    /// `jax.random.key_data(jax.random.key(seed))`.
    ///
    /// PyTorch's `manual_seed` starts a different sequence, and has state.
    ///
    /// Since opset 2.
    Node random_key(const Node& seed);

    /// y = √2 · erfinv(u), u uniform in (−1, 1): standard normal numbers. Equals `jax.random.normal` to 32 ulp.
    ///
    /// PyTorch's `randn` uses a different generator.
    ///
    /// Since opset 2.
    ///
    /// shape: shape of the result.
    ///
    /// dtype: dtype of the result; one of float32, float64.
    Node random_normal(const Node& key, const std::vector<std::int64_t>& shape, const DType& dtype);

    /// y = 0 … k−1 in random order, int64 [k]: a stable argsort of k random unsigned 64-bit numbers.
    ///
    /// `jax.random.permutation` uses a different algorithm, and PyTorch's `randperm` a different generator.
    ///
    /// Since opset 2.
    ///
    /// k: number of elements.
    Node random_permutation(const Node& key, std::int64_t k);

    /// keys = k new keys [k, 2], each with its own sequence: the words of counters 0 … k−1. Equals `jax.random.split`.
    ///
    /// PyTorch has no keys; use one `Generator` for each.
    ///
    /// Since opset 2.
    ///
    /// k: number of keys.
    Node random_split(const Node& key, std::int64_t k);

    /// y = uniform numbers in [0, 1): 23 random bits (for float64, 52) over 2²³ (2⁵²). Equals `jax.random.uniform`.
    ///
    /// PyTorch's `rand` uses a different generator.
    ///
    /// Since opset 2.
    ///
    /// shape: shape of the result.
    ///
    /// dtype: dtype of the result; one of float32, float64.
    Node random_uniform(const Node& key, const std::vector<std::int64_t>& shape, const DType& dtype);

    /// y = Re x; a real x is returned unchanged. PyTorch, JAX and NumPy: `real`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g, with the imaginary part 0.
    Node real(const Node& x);

    /// y = 1 / x; integers give floats, as in `div`.
    ///
    /// Gradient: −g · y².
    Node reciprocal(const Node& x);

    /// y = max(x, 0). The derivative at 0 is `at_zero`; some systems use 1.
    ///
    /// Gradient: g where x > 0 or NaN, g · at_zero where x = 0, else 0.
    Node relu(const Node& x, const ReluOptions& options = {});

    /// y = a − b · (a / b rounded towards 0): C's % and fmod, with the sign of a. `mod` has the sign of b.
    ///
    /// If b is 0, y is NaN for floats and 0 for integers. PyTorch: `fmod`. JAX: `lax.rem`, which gives a for integers.
    ///
    /// Since opset 2.
    ///
    /// Gradient: da = g, db = −g · (a / b rounded towards 0).
    Node rem(const Node& a, const Node& b);

    /// y holds x's elements, in row-major order, in another shape; one extent may be −1 and is inferred.
    ///
    /// An absent or empty `shape` makes a 0-d tensor. `original_shape`, if given, must be x's shape.
    ///
    /// Gradient: g, reshaped back.
    Node reshape(const Node& x, const ReshapeOptions& options = {});

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
    /// sizes: new extents.
    Node resize(const Node& x, const std::vector<std::int64_t>& sizes, const ResizeOptions& options = {});

    /// The first ⌊n / 2⌋ + 1 entries of `fft` of a real x on the last of `axes`; the other entries are their
    /// conjugates.
    ///
    /// float16 gives complex64, integers give complex128. `norm` is as in `fft`. PyTorch, JAX and NumPy: `rfft`; over
    /// several axes, `rfft2` and `rfftn`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: the real part of ifft(g) without the division by n, with g padded with zeros.
    Node rfft(const Node& x, const RfftOptions& options = {});

    /// y = x / √(mean x² + eps) · weight, with the mean over `axes`; weight has x's extents there, in ascending order.
    ///
    /// B. Zhang, R. Sennrich, "Root mean square layer normalization" (2019).
    ///
    /// Gradient: with z normalised and h = g · weight: dx = (h − z · mean(h·z)) / √(mean x² + eps).
    Node rms_norm(const Node& x, const RmsNormOptions& options = {});

    /// y[(i + shift) mod n] = x[i] on each of `axes`; without `axes`, on the flattened tensor.
    ///
    /// Give one shift for each axis, or one shift without `axes`. Negative shifts move entries towards the front.
    ///
    /// Gradient: g, rolled back.
    ///
    /// shifts: distance to move, for each axis.
    Node roll(const Node& x, const std::vector<std::int64_t>& shifts, const RollOptions& options = {});

    /// y = x rounded to the nearest whole number, ties to even: 0.5 → 0, 1.5 → 2.
    Node round(const Node& x);

    /// y = 1 / √x; NaN for x < 0.
    ///
    /// Gradient: −g · y³ / 2.
    Node rsqrt(const Node& x);

    /// carries, stacks = body(consts, carries, entry t of each sequence), step by step for t = 0 … length − 1.
    ///
    /// The operands are consts, then `carries` initial values, then `sequences` tensors that are read along the leading
    /// axis; with `reverse`, from the last entry to the first. The body returns the carries for the next step, of the
    /// same types, and then values to stack. Entry t of a stack is the value from step t. Results: the last carries,
    /// then the stacks [length, …]. JAX: `lax.scan`, whose body can read variables around it. PyTorch: a Python loop.
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with get_output.
    ///
    /// Gradient: a scan in the opposite direction that recomputes each step.
    ///
    /// body: function of consts, carries and one entry of each sequence; returns carries, then values to stack.
    Node scan(const GraphFunction& body, const std::vector<Node>& operands, const ScanOptions& options = {});

    /// y = x, then y[index[i, j, …], j, …] += updates[i, j, …] for axis 0; likewise for the other axes.
    ///
    /// `index` and `updates` have the same shape, of x's rank, and may be smaller than x on the other axes. Repeated
    /// indices accumulate. This is the adjoint of `gather`. Indices lie in [0, extent); with `from_end`, negative ones
    /// count from the end. PyTorch: `scatter_add`, which rejects negative indices. JAX: `x.at[…].add`, which accepts
    /// them and drops updates that are out of range.
    ///
    /// Gradient: dx = g, d updates = gather(g, index); none for index.
    Node scatter_add(const Node& x, const Node& index, const Node& updates, const ScatterAddOptions& options = {});

    /// y[s, …] = the largest x[i, …] of the rows i with segment_ids[i] = s; NaN if one of them is NaN.
    ///
    /// x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Ties share the gradient
    /// equally. An empty segment gives −∞, or the smallest number of an integer dtype. JAX: `ops.segment_max`. PyTorch:
    /// `scatter_reduce` with amax, whose ties also share the gradient, and in which empty segments keep their old
    /// values.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g / k to each of the k rows equal to y (if y is NaN, to each NaN); 0 to the others.
    ///
    /// segments: number of segments.
    Node segment_max(const Node& x, const Node& segment_ids, std::int64_t segments);

    /// y[s, …] = the mean of x[i, …] over the rows i with segment_ids[i] = s; NaN for an empty segment.
    ///
    /// x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers give float64; float16
    /// is summed in float32. PyTorch: `scatter_reduce` with mean. JAX has no equivalent.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx[i, …] = g[segment_ids[i], …] / (number of rows in the segment); none for segment_ids.
    ///
    /// segments: number of segments.
    Node segment_mean(const Node& x, const Node& segment_ids, std::int64_t segments);

    /// y[s, …] = the smallest x[i, …] of the rows i with segment_ids[i] = s; NaN if one of them is NaN.
    ///
    /// x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Ties share the gradient
    /// equally. An empty segment gives ∞, or the largest number of an integer dtype. JAX: `ops.segment_min`. PyTorch:
    /// `scatter_reduce` with amin, whose ties also share the gradient, and in which empty segments keep their old
    /// values.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g / k to each of the k rows equal to y (if y is NaN, to each NaN); 0 to the others.
    ///
    /// segments: number of segments.
    Node segment_min(const Node& x, const Node& segment_ids, std::int64_t segments);

    /// y[s, …] = Π x[i, …] over the rows i with segment_ids[i] = s; 1 for an empty segment.
    ///
    /// x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers and bool are
    /// multiplied in int64, float16 in float32. The gradient is exact for any number of zeros, and so are higher
    /// derivatives. JAX: `ops.segment_prod`, which has no gradient. PyTorch: `scatter_reduce` with prod.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g[segment_ids[i], …] · (product of the other rows of the segment); none for segment_ids.
    ///
    /// segments: number of segments.
    Node segment_prod(const Node& x, const Node& segment_ids, std::int64_t segments);

    /// y[s, …] = Σ x[i, …] over the rows i with segment_ids[i] = s; 0 for an empty segment.
    ///
    /// x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers and bool are summed in
    /// int64, float16 in float32.
    ///
    /// Gradient: dx[i, …] = g[segment_ids[i], …]; none for segment_ids.
    ///
    /// segments: number of segments.
    Node segment_sum(const Node& x, const Node& segment_ids, std::int64_t segments);

    /// y = x at one `index` along `axis`, without that axis: x[index], x[:, index], …
    ///
    /// A negative index counts from the end. Same as PyTorch's select. To read at many indices, use `gather`.
    ///
    /// Gradient: g at the index, 0 elsewhere.
    ///
    /// index: position to read.
    Node select(const Node& x, std::int64_t index, const SelectOptions& options = {});

    /// y = 1.0507… · elu(x, alpha = 1.6732…), which preserves mean 0 and variance 1.
    ///
    /// G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter, arXiv:1706.02515.
    ///
    /// Gradient: 1.0507… · that of elu.
    Node selu(const Node& x);

    /// y = 1 / (1 + e⁻ˣ), accurate in both tails, down to the smallest number. The same formula holds for complex x.
    ///
    /// Gradient: g · y · (1 − y).
    Node sigmoid(const Node& x);

    /// y = −1, 0 or 1: the sign of x. NaN stays NaN.
    Node sign(const Node& x);

    /// y = x · sigmoid x; 0 at −∞.
    ///
    /// Gradient: g · (s + x · s · (1 − s)), s = sigmoid x.
    Node silu(const Node& x);

    /// y = sin x.
    ///
    /// Gradient: g · cos x.
    Node sin(const Node& x);

    /// y = sin(πx) / πx, and 1 at 0. Exactly 0 at all other whole numbers and at infinity.
    ///
    /// Accurate to 4 ulp even next to whole numbers, where other libraries lose all digits. At whole numbers other than
    /// 0, the derivative is (−1)ˣ / x. NumPy, PyTorch and JAX: `sinc`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · (cos πx − y) / x, and 0 at 0.
    Node sinc(const Node& x);

    /// y = sinh x.
    ///
    /// Gradient: g · cosh x.
    Node sinh(const Node& x);

    /// y = x[starts[0]:stops[0]:steps[0], starts[1]:stops[1]:steps[1], …]: one entry for each axis.
    ///
    /// A list may have fewer entries than x has axes; the remaining axes use the defaults. Bounds are as in NumPy:
    /// negative ones count from the end, and bounds beyond an end are moved to that end. Steps are at least 1.
    ///
    /// Gradient: g at the positions that were read, 0 elsewhere.
    Node slice(const Node& x, const SliceOptions& options = {});

    /// y = x[s₀ : s₀ + sizes[0], s₁ : s₁ + sizes[1], …], where s is the operand `starts`: int64 [rank].
    ///
    /// Each start, negative ones included, is moved into [0, extent − size], so that the result always has the same
    /// shape. JAX: `lax.dynamic_slice`, which first counts negative starts from the end. PyTorch: x.narrow, which takes
    /// a start on one axis.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g in the box, 0 elsewhere; none for starts.
    ///
    /// sizes: extents of the box, one for each axis.
    Node slice_at(const Node& x, const Node& starts, const std::vector<std::int64_t>& sizes);

    /// sign, log|det x| of matrices on the last two axes: [batch…, n, n] → [batch…] for both; det x = sign · exp(log).
    ///
    /// The logarithm does not overflow or underflow where the determinant does. A singular matrix has sign 0 and
    /// logarithm −∞, and its gradient is NaN, as is that of the inverse; the other matrices of the batch are
    /// unaffected. The sign has no gradient. For a complex matrix, the sign is complex, det x / |det x|, and the
    /// logarithm is real. Integers give float64; float16 is computed in a wider float and rounded once.
    ///
    /// The op has several results. Read each with get_output.
    ///
    /// Gradient: g · x⁻ᴴ, g the cotangent of log|det x|.
    Node slogdet(const Node& x);

    /// y = exp(x) / Σ exp(x) along `axis`, of x's shape; stable: computed from x − max x. Integers give float64.
    ///
    /// A row that contains only −inf gives NaN, as 0 / 0.
    ///
    /// Gradient: y · (g − Σ g·y), with the sum along the axis.
    Node softmax(const Node& x, const SoftmaxOptions& options = {});

    /// y = ln(1 + eˣ).
    ///
    /// Gradient: g · sigmoid x.
    Node softplus(const Node& x);

    /// y such that a y = b: a [batch…, n, n], b [n], [batch…, n] or [batch…, n, m]; batch axes of matrices broadcast.
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
    Node solve(const Node& a, const Node& b);

    /// y = x sorted in ascending order along an axis; equal entries keep their order, NaN comes last.
    ///
    /// Gradient: g, moved back to the original positions.
    ///
    /// axis: axis to sort along.
    Node sort(const Node& x, std::int64_t axis);

    /// y0, y1, … = x split along `axis` into parts of `sizes`, which add up to the extent; a part may be empty.
    ///
    /// The op has several results. Read each with get_output.
    ///
    /// Gradient: the parts' cotangents, joined; zeros for parts that are not read.
    ///
    /// sizes: extents of the parts on the axis.
    Node split(const Node& x, const std::vector<std::int64_t>& sizes, const SplitOptions& options = {});

    /// y = √x; NaN for x < 0. At 0 the derivative is infinite.
    ///
    /// For a complex x, y is the root with Re y ≥ 0. The branch cut is the negative real axis; on it, the sign of the
    /// imaginary zero selects the side for value and gradient, as in PyTorch. JAX uses the derivative of one side for
    /// both.
    ///
    /// Gradient: g / 2y.
    Node sqrt(const Node& x);

    /// y = x².
    ///
    /// Gradient: g · 2x.
    Node square(const Node& x);

    /// y = x without `axes`, each of which must have extent 1; by default, without all axes of extent 1.
    ///
    /// Gradient: g, reshaped back.
    Node squeeze(const Node& x, const SqueezeOptions& options = {});

    /// y = the operands, all of one shape, joined along a new axis at position `axis` of the result.
    ///
    /// The result has their common dtype.
    ///
    /// Gradient: for each operand, its part of g.
    Node stack(const std::vector<Node>& x, const StackOptions& options = {});

    /// y[…, t, k] = Σ window[j] x[…, t · stride + j] exp(−2πi j k / n) over j: [… time] → [… frames, ⌊n / 2⌋ + 1].
    ///
    /// Applies `rfft` to each part of x that the window [w] covers, with n = w points unless `sizes` states another
    /// number. x is not padded: to get frames around its ends, `pad` it first. TensorFlow: `signal.stft`. PyTorch and
    /// SciPy: `stft`, with the last two axes swapped, and with padding by default. NumPy and JAX: frames and `rfft`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: that of rfft, times the window, summed where frames overlap.
    ///
    /// stride: one number: distance between the starts of adjacent frames.
    Node stft(
        const Node& x,
        const Node& window,
        const std::vector<std::int64_t>& stride,
        const StftOptions& options = {});

    /// y = x, treated as a constant in differentiation.
    Node stop_gradient(const Node& x);

    /// One field of a record that is stored as one tensor.
    ///
    /// The leading axis is split into `total_fields` equal parts, and y is the part `field_index`; the axis remains.
    ///
    /// Gradient: g in that part, 0 in the others.
    ///
    /// field_index: position of the field, from 0.
    ///
    /// total_fields: number of fields in the record.
    Node struct_field(const Node& x, std::int64_t field_index, std::int64_t total_fields);

    /// y = a − b, elementwise, with NumPy broadcasting.
    ///
    /// Gradient: da = g, db = −g.
    Node sub(const Node& a, const Node& b);

    /// y = x − scalar.
    ///
    /// Gradient: g.
    ///
    /// scalar: constant operand.
    Node sub_scalar(const Node& x, double scalar);

    /// y = Σ x over axes. Integers and bool are summed in int64, float16 in float32.
    ///
    /// Gradient: g, broadcast back over the axes.
    Node sum(const Node& x, const SumOptions& options = {});

    /// u, s, vh with x = u diag(s) vh: s ≥ 0 descending, the columns of u and rows of vh orthonormal; reduced form.
    ///
    /// x [batch…, m, n], u [batch…, m, k], s [batch…, k], real, vh [batch…, k, n], k = min(m, n). If you read only s,
    /// vectors are not computed. The gradient of s alone is valid at equal values, too, if your function treats these
    /// alike.
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
    /// The op has several results. Read each with get_output.
    ///
    /// Gradient: u (diag(ḡs) + (F ∘ (P + Q) + G ∘ (P − Q)) / 2) vh, plus (1 − u uᴴ) ḡu s⁻¹ vh and u s⁻¹ ḡvh (1 − v vᴴ);
    /// P, Q = uᴴ ḡu, vh ḡvhᴴ minus their adjoints, Fᵢⱼ = 1 / (sⱼ − sᵢ), Gᵢⱼ = 1 / (sⱼ + sᵢ).
    Node svd(const Node& x, const SvdOptions& options = {});

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
    /// function: function of the eigenvalues; rsqrt is 1 / sqrt; one of sqrt, rsqrt, log, exp.
    Node symmetric_function(const Node& x, const std::string& function);

    /// y[i, j, …] = x[index[i, j, …], j, …] for axis 0; likewise for the other axes. Same as NumPy's take_along_axis.
    ///
    /// `index` has x's rank. On the axis, y has the extent of the index; on the other axes, x and the index broadcast.
    /// Indices lie in [0, extent); with `from_end`, in [−extent, extent), and negative ones count from the end.
    /// PyTorch: `take_along_dim`, which rejects negative indices. JAX: `take_along_axis`, which accepts them.
    ///
    /// Gradient: g, added where x was read: repeated indices accumulate; none for index.
    Node take_along(const Node& x, const Node& index, const TakeAlongOptions& options = {});

    /// y = tan x.
    ///
    /// Gradient: g · (1 + y²).
    Node tan(const Node& x);

    /// y = tanh x.
    ///
    /// Gradient: g · (1 − y²).
    Node tanh(const Node& x);

    /// y = x repeated `repeats` times along each axis.
    ///
    /// As in NumPy, the shorter of shape and repeats is padded with leading ones.
    ///
    /// Gradient: g, summed over the repetitions.
    ///
    /// repeats: number of repetitions along each axis.
    Node tile(const Node& x, const std::vector<std::int64_t>& repeats);

    /// values, indices = the k largest entries of x along `axis`, largest first, and their int64 positions.
    ///
    /// Among equal entries, the one with the lowest index comes first; NaN counts as largest.
    ///
    /// The op has several results. Read each with get_output.
    ///
    /// Gradient: the cotangent of the values, moved back to the original positions; none for indices.
    ///
    /// k: number of entries; at most the axis's extent.
    Node topk(const Node& x, std::int64_t k, const TopkOptions& options = {});

    /// y = x with its axes permuted.
    ///
    /// y's axis i is x's axis axes[i]. Without `axes`, the last two axes are swapped (born reverses all axes: for that,
    /// pass `axes`). If x does not have rank 2, two entries swap those two axes (minima).
    ///
    /// Gradient: g, permuted back.
    Node transpose(const Node& x, const TransposeOptions& options = {});

    /// y such that t y = b, or tᵀ y = b with `transpose`; t is the lower (or upper) triangle of a, with the diagonal.
    ///
    /// a [batch…, n, n]: the other triangle is ignored, whatever it contains. b [n], [batch…, n] or [batch…, n, m],
    /// read as in `solve`. Batch axes broadcast. If the diagonal contains a 0, y is infinite or NaN. Integers are
    /// computed in float64, float16 in float32.
    ///
    /// M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic differentiation
    /// (2008).
    ///
    /// Gradient: db = t⁻ᴴ g, da = the triangle of −(db yᴴ); with transpose, db = (conj t)⁻¹ g, da that of −(conj y
    /// dbᵀ).
    Node triangular_solve(const Node& a, const Node& b, const TriangularSolveOptions& options = {});

    /// y = x on and below a diagonal of the last two axes, 0 above: y[…, i, j] = x[…, i, j] where j − i ≤ offset.
    ///
    /// Gradient: tril(g).
    Node tril(const Node& x, const TrilOptions& options = {});

    /// y = x on and above a diagonal of the last two axes, 0 below: y[…, i, j] = x[…, i, j] where j − i ≥ offset.
    ///
    /// Gradient: triu(g).
    Node triu(const Node& x, const TriuOptions& options = {});

    /// y = a / b rounded towards 0, elementwise with broadcasting: C's /. Integer division by 0 gives 0.
    ///
    /// `rem` is the remainder. PyTorch: `div` with rounding_mode trunc. JAX: `lax.div` of integers, which gives −1 for
    /// division by 0.
    ///
    /// Since opset 2.
    Node trunc_div(const Node& a, const Node& b);

    /// y = x with axes of extent 1 inserted; `axes` are their positions in the result.
    ///
    /// Gradient: g, reshaped back.
    Node unsqueeze(const Node& x, const UnsqueezeOptions& options = {});

    /// y = x with the box that begins at `starts`, one entry for each axis, replaced by `update`.
    ///
    /// The box has the shape of `update`. A negative start counts from the end, as in slice. A box that extends beyond
    /// x is an error; it is not moved. The result has the common dtype of x and update.
    ///
    /// Gradient: dx = g, 0 in the box; d update = g in the box.
    ///
    /// starts: first position of the update on each axis.
    Node update_slice(const Node& x, const Node& update, const std::vector<std::int64_t>& starts);

    /// y = x with the box that begins at `starts` replaced by `updates`; `starts` is an operand, int64 [rank].
    ///
    /// The box has the shape of `updates`. Each start, negative ones included, is moved into [0, extent − size], so
    /// that the box fits into x. The result has the common dtype of x and updates. JAX: `lax.dynamic_update_slice`,
    /// which first counts negative starts from the end. PyTorch: `slice_scatter`, which takes a start on one axis, as a
    /// number.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = g, 0 in the box; d updates = g in the box; none for starts.
    Node update_slice_at(const Node& x, const Node& updates, const Node& starts);

    /// y = Σ (x − mean x)² / (n − ddof) over axes, n the number of elements reduced. Integers give float64.
    ///
    /// Computed in two passes, the mean first, so that a large mean costs no digits. If n ≤ ddof, the division is by
    /// zero as in NumPy: the result is NaN or infinity.
    ///
    /// Gradient: g · 2 (x − mean x) / (n − ddof).
    Node var(const Node& x, const VarOptions& options = {});

    /// y = on_true where cond is true, else on_false; all three broadcast. Nonzero numbers in cond are true.
    ///
    /// Each branch gets the cotangent where it was chosen and exactly zero elsewhere, whatever the other branch
    /// contains.
    ///
    /// Gradient: d on_true = where(cond, g, 0), d on_false = where(cond, 0, g); none for cond.
    Node where(const Node& cond, const Node& on_true, const Node& on_false);

    /// Repeats carries = body(consts, carries) while condition(consts, carries) is true, at most `max_steps` times.
    ///
    /// The condition returns a bool []. It is evaluated before each step, and after the last step that is allowed.
    /// Results: the carries; `steps`, int64 [], the number of steps that ran; `finished`, bool [], false if the loop
    /// stopped at the bound. JAX: `lax.while_loop`, which has no bound and supports forward-mode derivatives only.
    /// PyTorch: a Python loop.
    ///
    /// Since opset 2.
    ///
    /// The op has several results. Read each with get_output.
    ///
    /// Gradient: backward over the steps that ran, recomputing each; the condition and `steps` have none.
    ///
    /// condition: function of consts and carries; returns whether to continue, a bool [].
    ///
    /// body: function of consts and carries; returns the next carries.
    ///
    /// max_steps: maximum number of steps.
    Node while_(
        const GraphFunction& condition,
        const GraphFunction& body,
        std::int64_t max_steps,
        const std::vector<Node>& operands,
        const WhileOptions& options = {});

    /// y = x · log(1 + y), with broadcasting, accurate for small y; 0 where x = 0, unless y is NaN.
    ///
    /// Same as in SciPy and PyTorch (`special.xlog1py`); JAX gives 0 for NaN, too. The derivative with respect to x is
    /// log(1 + y): −∞ where y = −1, and NaN where y < −1. The derivative with respect to y is x / (1 + y), and 0 where
    /// x = 0 and y = −1.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = g · log(1 + y); dy = g · x / (1 + y), and 0 where x = 0 and y = −1.
    Node xlog1py(const Node& x, const Node& y);

    /// y = x · log y, with broadcasting; 0 where x = 0, unless y is NaN.
    ///
    /// Same as in SciPy and PyTorch; JAX gives 0 for NaN, too. The derivative with respect to x is log y: −∞ where y =
    /// 0, so that of xlogy(x, x) at 0 is, too. Where x = 0 and y < 0 it is NaN, as in JAX (in PyTorch it is 0). The
    /// derivative with respect to y is x / y, and 0 where both are 0.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = g · log y; dy = g · x / y, and 0 where x = y = 0.
    Node xlogy(const Node& x, const Node& y);

    /// y = ζ(s, q) = Σ (q + k)⁻ˢ over k ≥ 0, with broadcasting, for s > 1: the Hurwitz zeta function.
    ///
    /// ∞ at s = 1 and at q = 0, −1, −2, …; NaN for s < 1, and for q < 0 if s is not a whole number. For q > 0 accurate
    /// to 8 ulp (on NumPy, it is SciPy's function); for q < 0 as accurate as `polygamma`. Derivatives exist to any
    /// order. With respect to q, they are as accurate as y. With respect to s, for which PyTorch and JAX have none,
    /// they are accurate to 1e-12 of the terms that they sum. With respect to s and then q, they are accurate to 1 ulp
    /// / (s − 1). SciPy and PyTorch: `special.zeta`. JAX: `zeta`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: ds = −g · Σ log(q + k) (q + k)⁻ˢ, dq = −g · s · zeta(s + 1, q).
    Node zeta(const Node& s, const Node& q);

protected:
    explicit Ops(std::shared_ptr<GraphState> state) : Appender(std::move(state)) {}
};

}  // namespace gradserve
