// Written by `python -m clients.ops` from the registry of ops: do not edit.
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

/// What all takes beside what is required.
struct AllOptions {
    /// Axes to reduce over; absent: all.
    Ints axes{};
    /// Keep the reduced axes, with extent 1; false unless stated.
    std::optional<bool> keepdims{};
};

/// What any takes beside what is required.
struct AnyOptions {
    /// Axes to reduce over; absent: all.
    Ints axes{};
    /// Keep the reduced axes, with extent 1; false unless stated.
    std::optional<bool> keepdims{};
};

/// What arange takes beside what is required.
struct ArangeOptions {
    /// The first number; 0.0 unless stated.
    std::optional<Number> start{};
    /// The distance; negative to count down, not 0; 1.0 unless stated.
    std::optional<Number> step{};
    /// The result's dtype; int64 unless stated.
    std::optional<DType> dtype{};
};

/// What argmax takes beside what is required.
struct ArgmaxOptions {
    /// Keep the reduced axes, with extent 1; false unless stated.
    std::optional<bool> keepdims{};
};

/// What argmin takes beside what is required.
struct ArgminOptions {
    /// Keep the reduced axes, with extent 1; false unless stated.
    std::optional<bool> keepdims{};
};

/// What attention takes beside what is required.
struct AttentionOptions {
    std::optional<Node> mask{};
    /// What q kᵀ is multiplied by; absent: 1/√d.
    std::optional<double> scale{};
    /// Hide key j from query i where j > i; false unless stated.
    std::optional<bool> causal{};
    /// Whether each head of k and v serves several of q, on the axis -3; since opset 2; false unless stated.
    std::optional<bool> grouped{};
};

/// What avg_pool1d takes beside what is required.
struct AvgPool1dOptions {
    /// Distance of the windows along each spatial axis; absent: the kernel size.
    Ints stride{};
    /// Added on both sides of each axis, at most half the kernel size; [0] unless stated.
    Ints padding{};
    /// Whether a window that reaches beyond the padding counts, if it begins before that; false unless stated.
    std::optional<bool> ceiling{};
};

/// What avg_pool2d takes beside what is required.
struct AvgPool2dOptions {
    /// Distance of the windows along each spatial axis; absent: the kernel size.
    Ints stride{};
    /// Added on both sides of each spatial axis, at most half the kernel size; [0, 0] unless stated.
    Ints padding{};
};

/// What avg_pool3d takes beside what is required.
struct AvgPool3dOptions {
    /// Distance of the windows along each spatial axis; absent: the kernel size.
    Ints stride{};
    /// Added on both sides of each axis, at most half the kernel size; [0, 0, 0] unless stated.
    Ints padding{};
    /// Whether a window that reaches beyond the padding counts, if it begins before that; false unless stated.
    std::optional<bool> ceiling{};
};

/// What batch_norm takes beside what is required.
struct BatchNormOptions {
    std::optional<Node> weight{};
    std::optional<Node> bias{};
    /// The axis of the features; 1 unless stated.
    std::optional<std::int64_t> axis{};
    /// Added to the variance or mean square; positive; 1e-05 unless stated.
    std::optional<double> eps{};
};

/// What batch_norm_given takes beside what is required.
struct BatchNormGivenOptions {
    std::optional<Node> weight{};
    std::optional<Node> bias{};
    /// The axis of the features; 1 unless stated.
    std::optional<std::int64_t> axis{};
    /// Added to the variance or mean square; positive; 1e-05 unless stated.
    std::optional<double> eps{};
};

/// What batch_norm_running takes beside what is required.
struct BatchNormRunningOptions {
    std::optional<Node> weight{};
    std::optional<Node> bias{};
    /// The axis of the features; 1 unless stated.
    std::optional<std::int64_t> axis{};
    /// Added to the variance or mean square; positive; 1e-05 unless stated.
    std::optional<double> eps{};
    /// How much of the new statistics the running ones take; 0.1 unless stated.
    std::optional<double> momentum{};
};

/// What bce_with_logits takes beside what is required.
struct BceWithLogitsOptions {
    /// What is made of the single losses; none: they are the result; one of mean, sum, none; mean unless stated.
    std::optional<std::string> reduction{};
};

/// What broadcast_to takes beside what is required.
struct BroadcastToOptions {
    /// The result's shape; [] unless stated.
    Ints shape{};
};

/// What call takes beside what is required.
struct CallOptions {
    /// Of operands, results and cotangents: a cotangent for each float operand; absent: the body's.
    std::optional<GraphFunction> derivative{};
    /// Keep nothing inside for the way back, but compute it again; false unless stated.
    std::optional<bool> recompute{};
};

/// What cat takes beside what is required.
struct CatOptions {
    /// The axis to join along; 0 unless stated.
    std::optional<std::int64_t> axis{};
    /// The operands' extents on the axis, checked where given.
    Ints sizes{};
};

/// What cdist takes beside what is required.
struct CdistOptions {
    /// The exponent; positive; 2.0 unless stated.
    std::optional<double> p{};
};

/// What chunk takes beside what is required.
struct ChunkOptions {
    /// The axis that is cut; 0 unless stated.
    std::optional<std::int64_t> axis{};
};

/// What clamp takes beside what is required.
struct ClampOptions {
    /// The lower bound; absent: none.
    std::optional<Number> min{};
    /// The upper bound; absent: none.
    std::optional<Number> max{};
};

/// What compress takes beside what is required.
struct CompressOptions {
    /// The axis that the mask is of; 0 unless stated.
    std::optional<std::int64_t> axis{};
    /// What lies behind the count; 0.0 unless stated.
    std::optional<Number> fill{};
    /// An infinity or NaN, in place of `fill`; of a float dtype; one of inf, -inf, nan.
    std::optional<std::string> fill_as{};
};

/// What conv1d takes beside what is required.
struct Conv1dOptions {
    std::optional<Node> bias{};
    /// Distance of the windows along each spatial axis; [1] unless stated.
    Ints stride{};
    /// Zeros put on both sides of each spatial axis; [0] unless stated.
    Ints padding{};
    /// Distance of the kernel's taps along each spatial axis; [1] unless stated.
    Ints dilation{};
    /// How many equal parts the channels are cut into, each with its own kernels; 1 unless stated.
    std::optional<std::int64_t> groups{};
};

/// What conv2d takes beside what is required.
struct Conv2dOptions {
    std::optional<Node> bias{};
    /// Distance of the windows along each spatial axis; [1, 1] unless stated.
    Ints stride{};
    /// Zeros put on both sides of each spatial axis; [0, 0] unless stated.
    Ints padding{};
    /// Distance of the kernel's taps along each spatial axis; [1, 1] unless stated.
    Ints dilation{};
    /// How many equal parts the channels are cut into, each with its own kernels; 1 unless stated.
    std::optional<std::int64_t> groups{};
};

/// What conv3d takes beside what is required.
struct Conv3dOptions {
    std::optional<Node> bias{};
    /// Distance of the windows along each spatial axis; [1, 1, 1] unless stated.
    Ints stride{};
    /// Zeros put on both sides of each spatial axis; [0, 0, 0] unless stated.
    Ints padding{};
    /// Distance of the kernel's taps along each spatial axis; [1, 1, 1] unless stated.
    Ints dilation{};
    /// How many equal parts the channels are cut into, each with its own kernels; 1 unless stated.
    std::optional<std::int64_t> groups{};
};

/// What conv_transpose1d takes beside what is required.
struct ConvTranspose1dOptions {
    std::optional<Node> bias{};
    /// Distance of the windows along each spatial axis; [1] unless stated.
    Ints stride{};
    /// Zeros put on both sides of each spatial axis; [0] unless stated.
    Ints padding{};
    /// Distance of the kernel's taps along each spatial axis; [1] unless stated.
    Ints dilation{};
    /// How many equal parts the channels are cut into, each with its own kernels; 1 unless stated.
    std::optional<std::int64_t> groups{};
    /// Extent added at the end of each spatial axis of the result; [0] unless stated.
    Ints output_padding{};
};

/// What conv_transpose2d takes beside what is required.
struct ConvTranspose2dOptions {
    std::optional<Node> bias{};
    /// Distance of the windows along each spatial axis; [1, 1] unless stated.
    Ints stride{};
    /// Zeros put on both sides of each spatial axis; [0, 0] unless stated.
    Ints padding{};
    /// Distance of the kernel's taps along each spatial axis; [1, 1] unless stated.
    Ints dilation{};
    /// How many equal parts the channels are cut into, each with its own kernels; 1 unless stated.
    std::optional<std::int64_t> groups{};
    /// Extent added at the end of each spatial axis of the result; [0, 0] unless stated.
    Ints output_padding{};
};

/// What conv_transpose3d takes beside what is required.
struct ConvTranspose3dOptions {
    std::optional<Node> bias{};
    /// Distance of the windows along each spatial axis; [1, 1, 1] unless stated.
    Ints stride{};
    /// Zeros put on both sides of each spatial axis; [0, 0, 0] unless stated.
    Ints padding{};
    /// Distance of the kernel's taps along each spatial axis; [1, 1, 1] unless stated.
    Ints dilation{};
    /// How many equal parts the channels are cut into, each with its own kernels; 1 unless stated.
    std::optional<std::int64_t> groups{};
    /// Extent added at the end of each spatial axis of the result; [0, 0, 0] unless stated.
    Ints output_padding{};
};

/// What cross_entropy takes beside what is required.
struct CrossEntropyOptions {
    /// What is made of the single losses; none: they are the result; one of mean, sum, none; mean unless stated.
    std::optional<std::string> reduction{};
};

/// What cumlogsumexp takes beside what is required.
struct CumlogsumexpOptions {
    /// Whether to run from the end to the front; false unless stated.
    std::optional<bool> reverse{};
};

/// What cummax takes beside what is required.
struct CummaxOptions {
    /// Whether to run from the end to the front; false unless stated.
    std::optional<bool> reverse{};
};

/// What cummin takes beside what is required.
struct CumminOptions {
    /// Whether to run from the end to the front; false unless stated.
    std::optional<bool> reverse{};
};

/// What cumprod takes beside what is required.
struct CumprodOptions {
    /// Whether to run from the end to the front; false unless stated.
    std::optional<bool> reverse{};
};

/// What cumsum takes beside what is required.
struct CumsumOptions {
    /// Whether to run from the end to the front; since opset 2; false unless stated.
    std::optional<bool> reverse{};
};

/// What diag takes beside what is required.
struct DiagOptions {
    /// Which diagonal: 0 the main one, above it positive, below it negative; 0 unless stated.
    std::optional<std::int64_t> offset{};
};

/// What eigh takes beside what is required.
struct EighOptions {
    /// Where values are equal and vectors are read: nan, or whole: only whole spaces are depended on; one of nan,
    /// whole; nan unless stated.
    std::optional<std::string> degenerate{};
};

/// What elu takes beside what is required.
struct EluOptions {
    /// −y for x → −∞; 1.0 unless stated.
    std::optional<double> alpha{};
};

/// What embedding takes beside what is required.
struct EmbeddingOptions {
    /// Whether a negative index counts from the end: −1 is the last; since opset 2; false unless stated.
    std::optional<bool> from_end{};
    /// A row that gets no gradient, read as others are; absent: none; since opset 2.
    std::optional<std::int64_t> padding_idx{};
};

/// What fft takes beside what is required.
struct FftOptions {
    /// The axes to transform; absent: the last.
    Ints axes{};
    /// Points on each of axes: x is cut, or padded with zeros; absent: as many as x has.
    Ints sizes{};
    /// Which way is divided by the number of points: that back, that forth, or both by its root; one of backward,
    /// ortho, forward; backward unless stated.
    std::optional<std::string> norm{};
};

/// What fixed_point takes beside what is required.
struct FixedPointOptions {
    /// How many operands, the last ones, are x at first; at least one; 0 unless stated.
    std::optional<std::int64_t> carries{};
};

/// What flatten takes beside what is required.
struct FlattenOptions {
    /// Neighbouring axes to merge; absent: all.
    Ints axes{};
};

/// What flip takes beside what is required.
struct FlipOptions {
    /// Axes to reverse; absent: all.
    Ints axes{};
};

/// What full takes beside what is required.
struct FullOptions {
    /// The result's shape; [] unless stated.
    Ints shape{};
    /// The number; 0.0 unless stated.
    std::optional<Number> fill{};
    /// The result's dtype; float64 unless stated.
    std::optional<DType> dtype{};
    /// An infinity or NaN, in place of `fill`; of a float dtype; since opset 2; one of inf, -inf, nan.
    std::optional<std::string> fill_as{};
};

/// What gather takes beside what is required.
struct GatherOptions {
    std::optional<Node> index{};
    /// The axis that is indexed; 0 unless stated.
    std::optional<std::int64_t> axis{};
    /// Positions on the axis, in place of `index`.
    Ints indices{};
    /// Whether a negative index counts from the end: −1 is the last; since opset 2; false unless stated.
    std::optional<bool> from_end{};
};

/// What gelu takes beside what is required.
struct GeluOptions {
    /// None: by the error function; tanh: its approximation; one of none, tanh; none unless stated.
    std::optional<std::string> approximate{};
};

/// What grad takes beside what is required.
struct GradOptions {
    std::optional<Node> cotangent{};
};

/// What group_norm takes beside what is required.
struct GroupNormOptions {
    std::optional<Node> weight{};
    std::optional<Node> bias{};
    /// Added to the variance or mean square; positive; 1e-05 unless stated.
    std::optional<double> eps{};
};

/// What ifft takes beside what is required.
struct IfftOptions {
    /// The axes to transform; absent: the last.
    Ints axes{};
    /// Points on each of axes: x is cut, or padded with zeros; absent: as many as x has.
    Ints sizes{};
    /// Which way is divided by the number of points: that back, that forth, or both by its root; one of backward,
    /// ortho, forward; backward unless stated.
    std::optional<std::string> norm{};
};

/// What index takes beside what is required.
struct IndexOptions {
    /// The axis that each index is of; absent: the first ones, in their order.
    Ints axes{};
    /// Whether a negative index counts from the end: −1 is the last; false unless stated.
    std::optional<bool> from_end{};
};

/// What index_add takes beside what is required.
struct IndexAddOptions {
    /// The axis that each index is of; absent: the first ones, in their order.
    Ints axes{};
    /// Whether a negative index counts from the end: −1 is the last; false unless stated.
    std::optional<bool> from_end{};
};

/// What index_set takes beside what is required.
struct IndexSetOptions {
    /// The axis that each index is of; absent: the first ones, in their order.
    Ints axes{};
    /// Whether a negative index counts from the end: −1 is the last; false unless stated.
    std::optional<bool> from_end{};
};

/// What input takes beside what is required.
struct InputOptions {
    /// Declares the feed's dtype; absent: any.
    std::optional<DType> dtype{};
    /// Declares the feed's shape, -1 for a free extent; absent: any.
    Ints shape{};
    /// Declares a 0-d feed; false unless stated.
    std::optional<bool> zero_d{};
};

/// What irfft takes beside what is required.
struct IrfftOptions {
    /// The axes to transform; absent: the last.
    Ints axes{};
    /// Points on each of axes: x is cut, or padded with zeros; absent: as many as x has.
    Ints sizes{};
    /// Which way is divided by the number of points: that back, that forth, or both by its root; one of backward,
    /// ortho, forward; backward unless stated.
    std::optional<std::string> norm{};
};

/// What layer_norm takes beside what is required.
struct LayerNormOptions {
    std::optional<Node> weight{};
    std::optional<Node> bias{};
    /// Axes to normalise over; [-1] unless stated.
    Ints axes{};
    /// Added to the variance or mean square; positive; 1e-05 unless stated.
    std::optional<double> eps{};
};

/// What leaky_relu takes beside what is required.
struct LeakyReluOptions {
    /// The slope for x ≤ 0; 0.01 unless stated.
    std::optional<double> alpha{};
};

/// What linear takes beside what is required.
struct LinearOptions {
    std::optional<Node> b{};
    /// The op that is applied to the sum; one of none, relu, tanh, sigmoid, gelu, silu, elu, selu, sin; none unless
    /// stated.
    std::optional<std::string> activation{};
};

/// What log_eps takes beside what is required.
struct LogEpsOptions {
    /// What is added to x; 1e-05 unless stated.
    std::optional<double> eps{};
};

/// What log_softmax takes beside what is required.
struct LogSoftmaxOptions {
    /// The axis that adds up to 1; -1 unless stated.
    std::optional<std::int64_t> axis{};
};

/// What logsumexp takes beside what is required.
struct LogsumexpOptions {
    /// Axes to reduce over; absent: all.
    Ints axes{};
    /// Keep the reduced axes, with extent 1; false unless stated.
    std::optional<bool> keepdims{};
};

/// What lstsq takes beside what is required.
struct LstsqOptions {
    /// Of the largest singular value, the part up to which others are taken for 0; absent: none is, and columns are
    /// independent.
    std::optional<double> rcond{};
};

/// What map takes beside what is required.
struct MapOptions {
    /// How many operands, the last ones, are gone through; at least one; 0 unless stated.
    std::optional<std::int64_t> sequences{};
    /// How many entries are computed in one batch; absent: as many as fit.
    std::optional<std::int64_t> at_once{};
};

/// What max takes beside what is required.
struct MaxOptions {
    /// Axes to reduce over; absent: all.
    Ints axes{};
    /// Keep the reduced axes, with extent 1; false unless stated.
    std::optional<bool> keepdims{};
};

/// What max_pool1d takes beside what is required.
struct MaxPool1dOptions {
    /// Distance of the windows along each spatial axis; absent: the kernel size.
    Ints stride{};
    /// Added on both sides of each axis, at most half the kernel size; [0] unless stated.
    Ints padding{};
    /// Distance of a window's taps along each axis; [1] unless stated.
    Ints dilation{};
    /// Whether a window that reaches beyond the padding counts, if it begins before that; false unless stated.
    std::optional<bool> ceiling{};
};

/// What max_pool2d takes beside what is required.
struct MaxPool2dOptions {
    /// Distance of the windows along each spatial axis; absent: the kernel size.
    Ints stride{};
    /// Added on both sides of each spatial axis, at most half the kernel size; [0, 0] unless stated.
    Ints padding{};
};

/// What max_pool2d_back takes beside what is required.
struct MaxPool2dBackOptions {
    /// Distance of the windows along each spatial axis; absent: the kernel size.
    Ints stride{};
    /// Added on both sides of each spatial axis, at most half the kernel size; [0, 0] unless stated.
    Ints padding{};
};

/// What max_pool2d_indices takes beside what is required.
struct MaxPool2dIndicesOptions {
    /// Distance of the windows along each spatial axis; absent: the kernel size.
    Ints stride{};
    /// Added on both sides of each spatial axis, at most half the kernel size; [0, 0] unless stated.
    Ints padding{};
};

/// What max_pool3d takes beside what is required.
struct MaxPool3dOptions {
    /// Distance of the windows along each spatial axis; absent: the kernel size.
    Ints stride{};
    /// Added on both sides of each axis, at most half the kernel size; [0, 0, 0] unless stated.
    Ints padding{};
    /// Distance of a window's taps along each axis; [1, 1, 1] unless stated.
    Ints dilation{};
    /// Whether a window that reaches beyond the padding counts, if it begins before that; false unless stated.
    std::optional<bool> ceiling{};
};

/// What mean takes beside what is required.
struct MeanOptions {
    /// Axes to reduce over; absent: all.
    Ints axes{};
    /// Keep the reduced axes, with extent 1; false unless stated.
    std::optional<bool> keepdims{};
};

/// What min takes beside what is required.
struct MinOptions {
    /// Axes to reduce over; absent: all.
    Ints axes{};
    /// Keep the reduced axes, with extent 1; false unless stated.
    std::optional<bool> keepdims{};
};

/// What mlp_layer takes beside what is required.
struct MlpLayerOptions {
    /// The op that is applied to the sum; one of none, relu, tanh, sigmoid, gelu, silu, elu, selu, sin; none unless
    /// stated.
    std::optional<std::string> activation{};
};

/// What mse_loss takes beside what is required.
struct MseLossOptions {
    /// What is made of the single losses; none: they are the result; one of mean, sum, none; mean unless stated.
    std::optional<std::string> reduction{};
};

/// What norm takes beside what is required.
struct NormOptions {
    /// Axes to reduce over; absent: all.
    Ints axes{};
    /// Keep the reduced axes, with extent 1; false unless stated.
    std::optional<bool> keepdims{};
};

/// What one_hot takes beside what is required.
struct OneHotOptions {
    /// The result's dtype; float64 unless stated.
    std::optional<DType> dtype{};
};

/// What pad takes beside what is required.
struct PadOptions {
    /// The number around x; 0.0 unless stated.
    std::optional<Number> fill{};
    /// An infinity or NaN, in place of `fill`; of a float dtype; since opset 2; one of inf, -inf, nan.
    std::optional<std::string> fill_as{};
};

/// What parameter takes beside what is required.
struct ParameterOptions {
    /// Declares the feed's dtype; absent: any.
    std::optional<DType> dtype{};
    /// Declares the feed's shape, -1 for a free extent; absent: any.
    Ints shape{};
    /// Declares a 0-d feed; false unless stated.
    std::optional<bool> zero_d{};
};

/// What pinv takes beside what is required.
struct PinvOptions {
    /// Of the largest singular value, the part up to which others are taken for 0; absent: max(m, n) ε.
    std::optional<double> rcond{};
};

/// What pow takes beside what is required.
struct PowOptions {
    std::optional<Node> b{};
    /// The exponent, where there is no operand b.
    std::optional<double> exponent{};
};

/// What prod takes beside what is required.
struct ProdOptions {
    /// Axes to reduce over; absent: all.
    Ints axes{};
    /// Keep the reduced axes, with extent 1; false unless stated.
    std::optional<bool> keepdims{};
};

/// What random_bits takes beside what is required.
struct RandomBitsOptions {
    /// The result's dtype; one of uint32; uint32 unless stated.
    std::optional<DType> dtype{};
};

/// What random_categorical takes beside what is required.
struct RandomCategoricalOptions {
    /// The axis of the categories; -1 unless stated.
    std::optional<std::int64_t> axis{};
};

/// What relu takes beside what is required.
struct ReluOptions {
    /// The derivative at 0; 0.0 unless stated.
    std::optional<double> at_zero{};
};

/// What reshape takes beside what is required.
struct ReshapeOptions {
    /// The result's shape; one -1 is inferred; [] unless stated.
    Ints shape{};
    /// X's shape, checked where given.
    Ints original_shape{};
};

/// What resize takes beside what is required.
struct ResizeOptions {
    /// The axes that have them; absent: the last ones.
    Ints axes{};
    /// How entries are found; one of nearest, linear, cubic; linear unless stated.
    std::optional<std::string> method{};
    /// Whether all of what shrinks counts; of linear and cubic; false unless stated.
    std::optional<bool> antialias{};
    /// Whether the middles of the first and last entries stay; without antialias; false unless stated.
    std::optional<bool> corners{};
};

/// What rfft takes beside what is required.
struct RfftOptions {
    /// The axes to transform; absent: the last.
    Ints axes{};
    /// Points on each of axes: x is cut, or padded with zeros; absent: as many as x has.
    Ints sizes{};
    /// Which way is divided by the number of points: that back, that forth, or both by its root; one of backward,
    /// ortho, forward; backward unless stated.
    std::optional<std::string> norm{};
};

/// What rms_norm takes beside what is required.
struct RmsNormOptions {
    std::optional<Node> weight{};
    /// Axes to normalise over; [-1] unless stated.
    Ints axes{};
    /// Added to the variance or mean square; positive; 1e-05 unless stated.
    std::optional<double> eps{};
};

/// What roll takes beside what is required.
struct RollOptions {
    /// The axes to move along; absent: the flattened tensor.
    Ints axes{};
};

/// What scan takes beside what is required.
struct ScanOptions {
    /// How many operands are initial values of carries; 0 unless stated.
    std::optional<std::int64_t> carries{};
    /// How many operands, the last ones, are gone through; 0 unless stated.
    std::optional<std::int64_t> sequences{};
    /// How many steps; absent: as many as the sequences have entries.
    std::optional<std::int64_t> length{};
    /// From the last entry to the first; false unless stated.
    std::optional<bool> reverse{};
};

/// What scatter_add takes beside what is required.
struct ScatterAddOptions {
    /// The axis that is indexed; 0 unless stated.
    std::optional<std::int64_t> axis{};
    /// Whether a negative index counts from the end: −1 is the last; since opset 2; false unless stated.
    std::optional<bool> from_end{};
};

/// What select takes beside what is required.
struct SelectOptions {
    /// The axis that is read at one position; 0 unless stated.
    std::optional<std::int64_t> axis{};
};

/// What slice takes beside what is required.
struct SliceOptions {
    /// First position on each axis; absent: 0.
    Ints starts{};
    /// The position to stop before, on each axis; absent: the extent.
    Ints stops{};
    /// Distance between positions on each axis; absent: 1.
    Ints steps{};
};

/// What softmax takes beside what is required.
struct SoftmaxOptions {
    /// The axis that adds up to 1; -1 unless stated.
    std::optional<std::int64_t> axis{};
};

/// What split takes beside what is required.
struct SplitOptions {
    /// The axis that is cut; 0 unless stated.
    std::optional<std::int64_t> axis{};
};

/// What squeeze takes beside what is required.
struct SqueezeOptions {
    /// Axes of extent 1; absent: all there are.
    Ints axes{};
};

/// What stack takes beside what is required.
struct StackOptions {
    /// The new axis, counted in the result; 0 unless stated.
    std::optional<std::int64_t> axis{};
};

/// What stft takes beside what is required.
struct StftOptions {
    /// One: the points of each transform; absent: as many as the window has.
    Ints sizes{};
};

/// What sum takes beside what is required.
struct SumOptions {
    /// Axes to reduce over; absent: all.
    Ints axes{};
    /// Keep the reduced axes, with extent 1; false unless stated.
    std::optional<bool> keepdims{};
};

/// What svd takes beside what is required.
struct SvdOptions {
    /// Where values are equal and vectors are read: nan, or whole: only whole spaces are depended on; one of nan,
    /// whole; nan unless stated.
    std::optional<std::string> degenerate{};
};

/// What take_along takes beside what is required.
struct TakeAlongOptions {
    /// The axis that is indexed; 0 unless stated.
    std::optional<std::int64_t> axis{};
    /// Whether a negative index counts from the end: −1 is the last; since opset 2; false unless stated.
    std::optional<bool> from_end{};
};

/// What topk takes beside what is required.
struct TopkOptions {
    /// The axis to search; 0 unless stated.
    std::optional<std::int64_t> axis{};
};

/// What transpose takes beside what is required.
struct TransposeOptions {
    /// A permutation, or two axes to swap; absent: the last two.
    Ints axes{};
};

/// What triangular_solve takes beside what is required.
struct TriangularSolveOptions {
    /// Read the lower triangle of a; false: the upper one; true unless stated.
    std::optional<bool> lower{};
    /// Solve with the triangle's transpose; false unless stated.
    std::optional<bool> transpose{};
};

/// What tril takes beside what is required.
struct TrilOptions {
    /// Which diagonal: 0 the main one, above it positive, below it negative; 0 unless stated.
    std::optional<std::int64_t> offset{};
};

/// What triu takes beside what is required.
struct TriuOptions {
    /// Which diagonal: 0 the main one, above it positive, below it negative; 0 unless stated.
    std::optional<std::int64_t> offset{};
};

/// What unsqueeze takes beside what is required.
struct UnsqueezeOptions {
    /// Positions of the new axes in the result; must be given.
    Ints axes{};
};

/// What var takes beside what is required.
struct VarOptions {
    /// Axes to reduce over; absent: all.
    Ints axes{};
    /// Keep the reduced axes, with extent 1; false unless stated.
    std::optional<bool> keepdims{};
    /// What is taken off n: 1 for the unbiased estimate; 0 unless stated.
    std::optional<std::int64_t> ddof{};
};

/// What while takes beside what is required.
struct WhileOptions {
    /// How many operands, the last ones, are initial values of carries; 0 unless stated.
    std::optional<std::int64_t> carries{};
};

/// The ops, each a method that appends a node and returns its handle.
class Ops : public Appender {
public:
    /// y = |x|, real where x is complex. At 0 the gradient is 0, in every order.
    ///
    /// Gradient: g · sign x; of a complex x, g · x / |x|.
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
    /// As many windows as `sizes` say, on as many of the last axes. PyTorch's `adaptive_avg_pool1d`, 2d and 3d; JAX has
    /// none.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g / (elements of the window) to each of these.
    ///
    /// sizes: how many windows there are on each of the last axes.
    Node adaptive_avg_pool(const Node& x, const std::vector<std::int64_t>& sizes);

    /// y[…, i] = the largest element of window i, from ⌊i · n / size⌋ to ⌈(i + 1) · n / size⌉; NaN where it holds one.
    ///
    /// As many windows as `sizes` say, on as many of the last axes. PyTorch's `adaptive_max_pool1d`, 2d and 3d; JAX has
    /// none.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g, added at the first maximum (in row-major order) of each window.
    ///
    /// sizes: how many windows there are on each of the last axes.
    Node adaptive_max_pool(const Node& x, const std::vector<std::int64_t>& sizes);

    /// y = a + b, elementwise, broadcasting as NumPy.
    ///
    /// Gradient: da = g, db = g.
    Node add(const Node& a, const Node& b);

    /// y = x + scalar.
    ///
    /// Gradient: g.
    ///
    /// scalar: the constant.
    Node add_scalar(const Node& x, double scalar);

    /// y = whether all elements over axes are true; a number is true unless it is 0. True over nothing.
    Node all(const Node& x, const AllOptions& options = {});

    /// y = the angle of x in [−π, π]: atan2(Im x, Re x); 0 or π for a real x. NaN where a part is NaN.
    ///
    /// The cut is the negative real axis, and the sign of the imaginary zero says from which side it is seen (C99's
    /// carg). At 0 the gradient is 0, as in PyTorch; JAX's is NaN.
    ///
    /// Since opset 2.
    ///
    /// Gradient: i · g · x / |x|², 0 at 0; none for a real x.
    Node angle(const Node& x);

    /// y = whether any element over axes is true; a number is true unless it is 0. False over nothing.
    Node any(const Node& x, const AnyOptions& options = {});

    /// Evenly spaced numbers: y[i] = start + i · step, for as long as they lie before stop.
    ///
    /// Result [⌈(stop − start) / step⌉], at least 0. As NumPy's arange, but exact: integer dtypes need a whole start
    /// and step, and a range that they hold.
    ///
    /// stop: the end, not included.
    Node arange(const Number& stop, const ArangeOptions& options = {});

    /// y = position along `axis` of the largest element, int64: the first of equal ones, the first NaN before all.
    ///
    /// axis: the axis to search.
    Node argmax(const Node& x, std::int64_t axis, const ArgmaxOptions& options = {});

    /// y = position along `axis` of the smallest element, int64: the first of equal ones, the first NaN before all.
    ///
    /// axis: the axis to search.
    Node argmin(const Node& x, std::int64_t axis, const ArgminOptions& options = {});

    /// y = the int64 positions that put x in ascending order along an axis; equal entries keep theirs, NaN last.
    ///
    /// axis: the axis to sort along.
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

    /// y = the angle in [−π, π] of the point with abscissa b and ordinate a, broadcasting.
    ///
    /// At a = b = 0 the value is NumPy's (0 or ±π) and the derivatives are NaN: there are none. At infinity they are 0.
    ///
    /// Gradient: da = g · b / (a² + b²), db = −g · a / (a² + b²).
    Node atan2(const Node& a, const Node& b);

    /// y = artanh x: ±∞ at ±1, NaN beyond.
    ///
    /// Gradient: g / (1 − x²).
    Node atanh(const Node& x);

    /// y = softmax(q kᵀ · scale + mask) v, for each query the mean of the values weighted by how its key fits.
    ///
    /// q [..., queries, d], k [..., keys, d], v [..., keys, width], y [..., queries, width]; leading axes broadcast.
    /// The mask broadcasts to [..., queries, keys]: bool (true = keep) or float (added). `causal` also hides key j from
    /// query i where j > i. A query that is left no key has NaN. Scores of 16 MiB and more that outweigh q, k and v are
    /// not held in memory, but for tangents and second derivatives. With `grouped`, the heads of q, on its axis -3, are
    /// a multiple of those of k and v, each of which serves as many, side by side: PyTorch's enable_gqa, and what JAX's
    /// dot_product_attention does where there are fewer. A. Vaswani et al., "Attention is all you need" (2017); J.
    /// Ainslie et al., "GQA" (2023).
    ///
    /// Gradient: with p = softmax(…), dp = g vᵀ, ds = p · (dp − Σ dp·p): dq = scale · ds k, dk = scale · dsᵀ q, dv = pᵀ
    /// g.
    Node attention(const Node& q, const Node& k, const Node& v, const AttentionOptions& options = {});

    /// y[…, i] = the mean of the window at i. x [..., w]; padding counts as zeros. Integers give float64.
    ///
    /// Extents as those of max_pool1d. What a window of a `ceiling` has beyond the padding does not count. PyTorch's
    /// `avg_pool1d`, whose `ceil_mode` is `ceiling`; Flax's `avg_pool`, without a ceiling.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g / (taps of the window) to each of its elements.
    ///
    /// kernel_size: extents of the windows along each spatial axis.
    Node avg_pool1d(const Node& x, const std::vector<std::int64_t>& kernel_size, const AvgPool1dOptions& options = {});

    /// y[…, i, j] = the sum of the window at (i, j), divided by the kernel size; padding counts as zeros.
    ///
    /// x [..., h, w]. Integers give float64. As PyTorch's avg_pool2d.
    ///
    /// Gradient: conv_transpose2d of g / kernel size with ones.
    ///
    /// kernel_size: extents of the windows along each spatial axis.
    Node avg_pool2d(const Node& x, const std::vector<std::int64_t>& kernel_size, const AvgPool2dOptions& options = {});

    /// y[…, i, j, k] = the mean of the window at (i, j, k). x [..., d, h, w]; padding counts as zeros.
    ///
    /// Integers give float64. Extents as those of max_pool1d. What a window of a `ceiling` has beyond the padding does
    /// not count. PyTorch's `avg_pool3d`, whose `ceil_mode` is `ceiling`; Flax's `avg_pool`, without a ceiling.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g / (taps of the window) to each of its elements.
    ///
    /// kernel_size: extents of the windows along each spatial axis.
    Node avg_pool3d(const Node& x, const std::vector<std::int64_t>& kernel_size, const AvgPool3dOptions& options = {});

    /// y = (x − mean) / √(variance + eps) · weight + bias, mean and variance of each feature over all other axes.
    ///
    /// `axis` is that of the features; weight and bias have its extent. These are the statistics of the operand (as in
    /// training), with n in the denominator. S. Ioffe, C. Szegedy, "Batch normalization" (2015). CJC normalises the
    /// whole tensor: reshape it to [n, 1].
    ///
    /// Gradient: as of layer_norm, over all axes but the features'.
    Node batch_norm(const Node& x, const BatchNormOptions& options = {});

    /// y = (x − mean) / √(variance + eps) · weight + bias, by statistics that are given, as when a network is used.
    ///
    /// `axis` is that of the features; all other operands have its extent. PyTorch's `batch_norm` with training false;
    /// Flax's `BatchNorm` with use_running_average, whose features are last.
    ///
    /// Since opset 2.
    ///
    /// Gradient: with r = 1 / √(variance + eps): dx = g · weight · r, and those of all others as the formula says.
    Node batch_norm_given(
        const Node& x,
        const Node& mean,
        const Node& variance,
        const BatchNormGivenOptions& options = {});

    /// y of `batch_norm`, and the running mean and variance, moved on: (1 − momentum) · old + momentum · this batch's.
    ///
    /// `axis` is that of the features; all other operands have its extent. The variance that is moved to has n − 1 in
    /// the denominator, that of y has n. Three results, read through get_output. PyTorch's `batch_norm` with training
    /// true, whose running statistics are written in place, and carry no gradient; Flax's `BatchNorm`, whose momentum
    /// is 1 − this one, and whose running variance has n.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through get_output.
    ///
    /// Gradient: as of batch_norm; of the running statistics as their formula.
    Node batch_norm_running(
        const Node& x,
        const Node& mean,
        const Node& variance,
        const BatchNormRunningOptions& options = {});

    /// loss = −y · log σ(x) − (1 − y) · log σ(−x), binary cross-entropy, elementwise on equal shapes; then the mean.
    ///
    /// x are logits, y probabilities. Exact in both tails: the logarithm of σ is taken in one step.
    ///
    /// Gradient: dx = g · (σ(x) − y) / n, dy = −g · x / n.
    Node bce_with_logits(const Node& x, const Node& y, const BceWithLogitsOptions& options = {});

    /// y = I(x; a, b) = ∫₀ˣ tᵃ⁻¹ (1 − t)ᵇ⁻¹ dt / B(a, b), broadcasting, for 0 ≤ x ≤ 1, and a, b > 0: SciPy's, JAX's.
    ///
    /// To 256 units, SciPy's own on NumPy. Derivatives by all operands, of any order: by x to 1e-12 of their value, by
    /// a and b, of which JAX has none, to 1e-11. PyTorch has no such function.
    ///
    /// Since opset 2.
    ///
    /// Gradient: da, db = g · ∂I/∂a, g · ∂I/∂b by an integral; dx = g · xᵃ⁻¹ (1 − x)ᵇ⁻¹ / B(a, b).
    Node betainc(const Node& a, const Node& b, const Node& x);

    /// y = log |B(a, b)| = log |Γ(a) Γ(b) / Γ(a + b)|, broadcasting. To 10 units of y, or of 1 where |y| is less.
    ///
    /// Units are those in the last place of a float64, on NumPy. Where an operand is large, `lgamma` would leave few
    /// digits of y, and SciPy's own loses up to 9 of 16. Where an operand is not positive, y is SciPy's; at infinity it
    /// is −∞.
    ///
    /// The derivative by a is as accurate, or, where b < a < 100, to 1e-15 · a / b of its value; and likewise by b.
    ///
    /// Gradient: da = g · (digamma(a) − digamma(a + b)), db = g · (digamma(b) − digamma(a + b)).
    Node betaln(const Node& a, const Node& b);

    /// y = x repeated along new leading axes and along axes of extent 1, to `shape`, by NumPy's rule.
    ///
    /// Gradient: g, summed over the axes that were repeated.
    Node broadcast_to(const Node& x, const BroadcastToOptions& options = {});

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
    /// It has several results, each read through get_output.
    ///
    /// Gradient: that of the body, or its own `derivative`.
    ///
    /// body: of the operands.
    Node call(const GraphFunction& body, const std::vector<Node>& operands, const CallOptions& options = {});

    /// y = x in another dtype, as NumPy's astype: fractions are cut off towards zero, nonzero is true.
    ///
    /// float → float is differentiable; through integers and bool there is no path. A real x becomes complex; a complex
    /// one never real, of which `real` says what is meant.
    ///
    /// Gradient: g, cast back.
    ///
    /// dtype: the result's dtype.
    Node cast(const Node& x, const DType& dtype);

    /// y = the operands one after the other along `axis`; elsewhere their extents are the same.
    ///
    /// The result has their common dtype. `sizes`, where given, must be their extents on the axis.
    ///
    /// Gradient: g, cut apart.
    Node cat(const std::vector<Node>& x, const CatOptions& options = {});

    /// y[…, i, j] = (Σ |a[…, i, k] − b[…, j, k]|ᵖ)^(1/p) over k: the distance of each row of a from each of b.
    ///
    /// a [..., m, d], b [..., n, d], y [..., m, n]; leading axes broadcast. Where two rows coincide, the gradient is 0,
    /// and so is that of the gradient. Differences are taken before they are squared, so that no digits are lost:
    /// PyTorch's `cdist` with compute_mode donot_use_mm_for_euclid_dist; JAX has none.
    ///
    /// Since opset 2.
    ///
    /// Gradient: da = Σ g · sign(a − b) · (|a − b| / y)^(p − 1), db likewise, and 0 where y = 0.
    Node cdist(const Node& a, const Node& b, const CdistOptions& options = {});

    /// y = ⌈x⌉: up to the next whole number.
    Node ceil(const Node& x);

    /// y lower triangular, its diagonal positive, with y yᴴ = (x + xᴴ) / 2, for matrices on the last two axes.
    ///
    /// x is made symmetric (Hermitian) first, as in JAX: so the gradient is symmetric, and holds along every direction.
    /// A matrix that is not positive definite gives a matrix of NaN; the others of its batch are as if it were not
    /// there. Integers give float64; float16 is computed in a wider float, and rounded once. I. Murray, Differentiation
    /// of the Cholesky decomposition, arXiv:1602.07527 (2016), eq. 9.
    ///
    /// Gradient: (s + sᴴ) / 2, where s = y⁻ᴴ Φ(yᴴ g) y⁻¹ and Φ takes the lower triangle, half the diagonal.
    Node cholesky(const Node& x);

    /// y0, y1, … = x cut along `axis` into at most `chunks` parts of extent ⌈n / chunks⌉, the last of what is left.
    ///
    /// As PyTorch: there may be fewer parts than asked for (6 entries in 4 chunks: 2, 2, 2); an empty axis gives
    /// `chunks` empty parts. Several results, read through get_output.
    ///
    /// It has several results, each read through get_output.
    ///
    /// Gradient: the parts' cotangents, joined; zeros for parts that are not read.
    ///
    /// chunks: the most parts to cut into.
    Node chunk(const Node& x, std::int64_t chunks, const ChunkOptions& options = {});

    /// y = x, but at least min and at most max; either bound may be absent. Where min > max, y is max.
    ///
    /// NaN stays NaN, and takes the gradient. Integers keep their dtype where it holds the bounds that there are: whole
    /// numbers within its range; else they give float64.
    ///
    /// Gradient: g where min ≤ x ≤ max or x is NaN, else 0.
    Node clamp(const Node& x, const ClampOptions& options = {});

    /// The entries of x along `axis` where `mask` [extent] is true, k of them; and how many there are: int64 [].
    ///
    /// k is stated, and may be more than there are, or fewer: what is beyond k is cut, and the count tells; behind it
    /// lies `fill`. Two results, read through get_output. JAX's and NumPy's `compress`, of which JAX's takes a size and
    /// a fill_value, too; PyTorch's x[mask], which has as many entries as there are.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through get_output.
    ///
    /// Gradient: g to the entries taken; none for mask.
    ///
    /// k: how many entries there are to be.
    Node compress(const Node& x, const Node& mask, std::int64_t k, const CompressOptions& options = {});

    /// then(operands), where the predicate, a bool [], holds; else otherwise(operands). Only one of them runs.
    ///
    /// Both give results of the same types. JAX's `lax.cond`, PyTorch's `cond`.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through get_output.
    ///
    /// Gradient: that of the function that ran; the other adds exact zeros.
    ///
    /// then: of the operands behind the predicate, where that holds.
    ///
    /// otherwise: of the same, where it does not.
    Node cond(
        const GraphFunction& then,
        const GraphFunction& otherwise,
        const Node& predicate,
        const std::vector<Node>& operands);

    /// y = s₀ / sₖ₋₁, the condition in the 2-norm: the largest over the smallest singular value.
    ///
    /// x [batch…, m, n], y [batch…]. Infinite for a matrix of lower rank, as far as rounding leaves a 0; NaN for one of
    /// zeros, or that holds an infinity or NaN. Integers give float64; float16 is computed in float32, and rounded
    /// once. PyTorch's, JAX's and NumPy's `linalg.cond` with p absent.
    ///
    /// Since opset 2.
    ///
    /// Gradient: that of svd, whose vectors are those of s₀ and sₖ₋₁: g y (u₀ v₀ᴴ / s₀ − uₖ₋₁ vₖ₋₁ᴴ / sₖ₋₁).
    Node cond_number(const Node& x);

    /// y = conj x, the imaginary part negated; a real x itself. PyTorch's, JAX's and NumPy's `conj`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: conj g.
    Node conj(const Node& x);

    /// A tensor that is part of the graph: y = value.
    ///
    /// value: the tensor.
    Node constant(const Tensor& value);

    /// y[n, o, i] = Σ x[n, c, i·s + a·d − p] · kernel[o, c, a] + bias[o], a cross-correlation.
    ///
    /// x [n, channels, w], zero outside; kernel [features, channels / groups, kw]; y [n, features, w'] with w' = ⌊(w +
    /// 2p − d·(kw − 1) − 1) / s⌋ + 1. Feature o sees the channels of its own group. As PyTorch's conv1d.
    ///
    /// Gradient: dx = the transposed convolution of g, d kernel = x convolved with g, d bias = g summed.
    Node conv1d(const Node& x, const Node& kernel, const Conv1dOptions& options = {});

    /// y[n, o, i, j] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p] · kernel[o, c, a, b] + bias[o], a cross-correlation.
    ///
    /// x [n, channels, h, w], zero outside; kernel [features, channels / groups, kh, kw]; y [n, features, h', w'] with
    /// h' = ⌊(h + 2p − d·(kh − 1) − 1) / s⌋ + 1. Feature o sees the channels of its own group. As PyTorch's conv2d.
    ///
    /// Gradient: dx = conv_transpose2d(g, kernel), d kernel = conv2d(x, g) over images, d bias = g summed.
    Node conv2d(const Node& x, const Node& kernel, const Conv2dOptions& options = {});

    /// y[n, o, i, j, k] = Σ x[n, c, i·s + a·d − p, j·s + b·d − p, k·s + e·d − p] · kernel[o, c, a, b, e] + bias[o].
    ///
    /// x [n, channels, d, h, w], zero outside; kernel [features, channels / groups, kd, kh, kw]; y [n, features, d',
    /// h', w'] with extents as conv2d's, a cross-correlation. As PyTorch's conv3d.
    ///
    /// Gradient: dx = conv_transpose3d(g, kernel), d kernel = conv3d(x, g) over images, d bias = g summed.
    Node conv3d(const Node& x, const Node& kernel, const Conv3dOptions& options = {});

    /// y[n, o, i·s + a·d − p] = Σ x[n, c, i] · kernel[c, o, a] + bias[o]: the adjoint of conv1d.
    ///
    /// x [n, channels, w]; kernel [channels, features / groups, kw]; y [n, features, w'], and w' = (w − 1)·s + d·(kw −
    /// 1) + 1 + output_padding − 2p. PyTorch's `conv_transpose1d`; JAX's `lax.conv_transpose` with transpose_kernel,
    /// which has the kernel's axes in another order, and paddings of the convolution that it widens.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = conv1d(g, kernel), d kernel = conv1d(g, x) over images, d bias = g summed.
    Node conv_transpose1d(const Node& x, const Node& kernel, const ConvTranspose1dOptions& options = {});

    /// y[n, o, i·s + a·d − p, j·s + b·d − p] = Σ x[n, c, i, j] · kernel[c, o, a, b] + bias[o]: the adjoint of conv2d.
    ///
    /// x [n, channels, h, w]; kernel [channels, features / groups, kh, kw]; y [n, features, h', w'] with h' = (h − 1)·s
    /// − 2p + d·(kh − 1) + 1 + output_padding. As PyTorch's conv_transpose2d.
    ///
    /// Gradient: dx = conv2d(g, kernel), d kernel = conv2d(g, x) over images, d bias = g summed.
    Node conv_transpose2d(const Node& x, const Node& kernel, const ConvTranspose2dOptions& options = {});

    /// y[n, o, i·s + a·d − p, …] = Σ x[n, c, i, j, k] · kernel[c, o, a, b, e] + bias[o]: the adjoint of conv3d.
    ///
    /// x [n, channels, d, h, w]; kernel [channels, features / groups, kd, kh, kw]; y [n, features, d', h', w'] with
    /// extents as conv_transpose2d's. As PyTorch's conv_transpose3d.
    ///
    /// Gradient: dx = conv3d(g, kernel), d kernel = conv3d(g, x) over images, d bias = g summed.
    Node conv_transpose3d(const Node& x, const Node& kernel, const ConvTranspose3dOptions& options = {});

    /// y = x.
    ///
    /// Where a graph runs is the server's choice, so there is nothing to move; the gradient passes through.
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

    /// loss = −Σ p · log softmax(logits) over the last axis, which holds the classes; then the mean over all rows.
    ///
    /// logits [..., classes]; targets are class indices [...] of an integer dtype (p is 1 at the index), or the
    /// distribution p itself, float, of the logits' shape. Indices lie in [0, classes).
    ///
    /// Gradient: d logits = g · (softmax(logits) · Σ p − p) / rows, d targets = −g · log softmax(logits) / rows if
    /// float.
    Node cross_entropy(const Node& logits, const Node& targets, const CrossEntropyOptions& options = {});

    /// y[i] = log(exp x[0] + … + exp x[i]) along `axis`, stable; with `reverse`, of x[i] to x[n − 1].
    ///
    /// As of logsumexp: where all so far is −inf, y is −inf and the gradient 0; those that are inf share it. Where one
    /// so far is NaN, so are y and the gradient. Integers give float64. PyTorch's `logcumsumexp`; JAX's
    /// `lax.cumlogsumexp`, which has `reverse`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: Σ g[k] · exp(x[i] − y[k]) over k from i on.
    ///
    /// axis: the axis to run along.
    Node cumlogsumexp(const Node& x, std::int64_t axis, const CumlogsumexpOptions& options = {});

    /// y[i] = the largest of x[0], …, x[i] along `axis`; with `reverse`, of x[i], …, x[n − 1].
    ///
    /// NaN from the first NaN on. Of ties, the first in the direction of the run takes the gradient. The values of
    /// PyTorch's `cummax`, whose gradient takes the last of ties; JAX's `lax.cummax`, which has `reverse`, and shares.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g to the entry that is y: of ties the first in the direction of the run, the first NaN.
    ///
    /// axis: the axis to run along.
    Node cummax(const Node& x, std::int64_t axis, const CummaxOptions& options = {});

    /// y[i] = the smallest of x[0], …, x[i] along `axis`; with `reverse`, of x[i], …, x[n − 1].
    ///
    /// NaN from the first NaN on. Of ties, the first in the direction of the run takes the gradient. The values of
    /// PyTorch's `cummin`, whose gradient takes the last of ties; JAX's `lax.cummin`, which has `reverse`, and shares.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g to the entry that is y: of ties the first in the direction of the run, the first NaN.
    ///
    /// axis: the axis to run along.
    Node cummin(const Node& x, std::int64_t axis, const CumminOptions& options = {});

    /// y[i] = x[0] · … · x[i] along `axis`; with `reverse`, x[i] · … · x[n − 1].
    ///
    /// Integers and bool multiply in int64, float16 in float32. The gradient is exact whatever the number of zeros, and
    /// so are those of higher order. PyTorch's and NumPy's `cumprod`; `reverse` is that of JAX's `lax.cumprod`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: (product of those before i) · Σ g[k] · (product of those behind i, to k), over k from i on.
    ///
    /// axis: the axis to run along.
    Node cumprod(const Node& x, std::int64_t axis, const CumprodOptions& options = {});

    /// y[i] = x[0] + … + x[i] along `axis`; with `reverse`, x[i] + … + x[n − 1].
    ///
    /// Integers and bool add up in int64, float16 in float32. PyTorch's and NumPy's `cumsum`; `reverse` is that of
    /// JAX's `lax.cumsum`.
    ///
    /// Gradient: g, added up from the end.
    ///
    /// axis: the axis to add up along.
    Node cumsum(const Node& x, std::int64_t axis, const CumsumOptions& options = {});

    /// y = det x of the square matrices on the last two axes: [batch…, n, n] → [batch…]; 1 of a matrix without entries.
    ///
    /// `slogdet` neither overflows nor underflows. The gradient is the matrix of cofactors, exact for singular
    /// matrices, too; second derivatives of these are NaN, or infinite. A matrix that holds NaN gives NaN for itself
    /// alone. Integers give float64; float16 is computed in a wider float, and rounded once. PyTorch's, JAX's and
    /// NumPy's `linalg.det`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · the conjugate cofactors of x: of det(x) x⁻ᵀ where x is regular.
    Node det(const Node& x);

    /// The diagonal of the last two axes: y[…, i] = x[…, i, i + offset]; of a vector, the matrix with that diagonal.
    ///
    /// x [n] → [n + |offset|, n + |offset|], zero off the diagonal. x [batch…, rows, columns] → [batch…, m]. A negative
    /// offset counts downwards: y[…, i] = x[…, i − offset, i].
    ///
    /// Gradient: diag(g) for a vector; for matrices, g on the diagonal and 0 elsewhere.
    Node diag(const Node& x, const DiagOptions& options = {});

    /// y = ψ(x) = Γ'(x) / Γ(x): −∞ at 0, NaN at −1, −2, …. To 10 units; near its zeros below −1 to 1e-15.
    ///
    /// SciPy's loses one digit with each digit by which x < 0 is closer to a pole; this one keeps all.
    ///
    /// Gradient: g · polygamma(x, order=1).
    Node digamma(const Node& x);

    /// y = a / b, elementwise, broadcasting as NumPy; integers give floats, x / 0 gives ±inf or NaN.
    ///
    /// Gradient: da = g / b, db = −y · g / b.
    Node div(const Node& a, const Node& b);

    /// y = x / scalar. A scalar of 0 gives ±inf or NaN, as `div`.
    ///
    /// Gradient: g / scalar.
    ///
    /// scalar: the constant.
    Node div_scalar(const Node& x, double scalar);

    /// w, v = the eigenvalues, ascending, and eigenvectors of (x + xᴴ) / 2: that is v diag(w) vᴴ, and vᴴ v = 1.
    ///
    /// x [batch…, n, n], w [batch…, n], real, v [batch…, n, n], a vector in each column. Two results, read through
    /// get_output. Where only eigenvalues are read, vectors are not computed, and the gradient of eigenvalues alone
    /// holds at equal ones, too, as long as the function treats these alike.
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
    /// It has several results, each read through get_output.
    ///
    /// Gradient: the symmetric part of v (diag(ḡw) + F ∘ vᴴ ḡv) vᴴ, Fᵢⱼ = 1 / (wⱼ − wᵢ), Fᵢᵢ = 0; no F where v is
    /// unread.
    Node eigh(const Node& x, const EighOptions& options = {});

    /// y[output letters] = Σ a[letters] · b[letters] · … over all letters that the output does not have.
    ///
    /// `equation` is, for two operands, "ab,bc->ac": a letter (a–z, A–Z) for each axis, a comma between operands, and
    /// after the arrow the axes of the result. A letter stands for one extent, at most once in each operand. No
    /// ellipsis and no implicit output; spaces do not count. One operand is allowed as well, 32 at most. The result has
    /// the common dtype of the operands, as NumPy's.
    ///
    /// Operands are multiplied in pairs, each time the pair with the fewest multiplications, so that no step costs more
    /// than the equation written as one loop (greedy order, as in numpy.einsum_path).
    ///
    /// Gradient: for each operand the einsum of g with the other operands.
    ///
    /// equation: letters of each operand, and after -> those of the result.
    Node einsum(const std::string& equation, const Node& a, const std::vector<Node>& b);

    /// y = x for x > 0, else alpha · (eˣ − 1). Derivatives at 0 are those from below: alpha.
    ///
    /// D.-A. Clevert, T. Unterthiner, S. Hochreiter, arXiv:1511.07289.
    ///
    /// Gradient: g where x > 0 or NaN, else g · alpha · eˣ.
    Node elu(const Node& x, const EluOptions& options = {});

    /// y[i, j, …, :] = weight[indices[i, j, …], :]: rows of a table.
    ///
    /// weight [rows, features…], indices of any shape with entries in [0, rows); y [shape of indices…, features…]. With
    /// `from_end`, entries lie in [−rows, rows), and negative ones count from the end. PyTorch's
    /// `functional.embedding`, which takes no negative index, and has `padding_idx`; JAX's weight[indices], which takes
    /// negative ones, and moves those outside to the nearest row.
    ///
    /// Gradient: d weight = g added to the rows that were read, repeated ones accumulating; none for indices.
    Node embedding(const Node& weight, const Node& indices, const EmbeddingOptions& options = {});

    /// y = (a = b), elementwise; NaN equals nothing.
    Node equal(const Node& a, const Node& b);

    /// y = erf x = 2/√π ∫₀ˣ exp(−t²) dt, to 2 units in the last place.
    ///
    /// Gradient: g · 2/√π · exp(−x²).
    Node erf(const Node& x);

    /// y = erfc x = 1 − erf x, to 2 units in the last place, also where it is small.
    ///
    /// Gradient: −g · 2/√π · exp(−x²).
    Node erfc(const Node& x);

    /// y with erf y = x: ±∞ at ±1, NaN beyond. To 2 units.
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
    /// `norm` is NumPy's: `forward` divides by n, `ortho` by √n. Real operands are taken as complex. float16 gives
    /// complex64, integers complex128. PyTorch's, JAX's and NumPy's `fft`, and `fft2` and `fftn` by several axes.
    ///
    /// Since opset 2.
    ///
    /// Gradient: ifft(g) without its division: of a real operand, the real part.
    Node fft(const Node& x, const FftOptions& options = {});

    /// x = body(consts, x), again and again until max |Δx| ≤ tolerance · (1 + max |x|), at most `max_steps` times.
    ///
    /// x are the `carries`, floats, all of them together; max |x| is that of the new x. What is not finite ends the
    /// iteration, unfinished. Results: x; `steps`, int64 [], those that ran; `finished`, bool []. The gradient is
    /// implicit, as that of JAX's `lax.custom_root`, which is given a solver; of PyTorch, a loop of Python and a rule.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through get_output.
    ///
    /// Gradient: implicit: u = g + (∂body/∂x)ᵀu by the same iteration, then (∂body/∂consts)ᵀu; none by the first x.
    ///
    /// body: of consts and x: the next x.
    ///
    /// tolerance: how much may change, relative to 1 + max |x|; 0: nothing.
    ///
    /// max_steps: how many steps there may be at most.
    Node fixed_point(
        const GraphFunction& body,
        double tolerance,
        std::int64_t max_steps,
        const std::vector<Node>& operands,
        const FixedPointOptions& options = {});

    /// y = x with a run of neighbouring axes merged into one; absent: all of them. A 0-d tensor becomes [1].
    ///
    /// Gradient: g, reshaped back.
    Node flatten(const Node& x, const FlattenOptions& options = {});

    /// y = x with the order of the entries reversed on `axes`; absent: on all.
    ///
    /// Gradient: g, flipped.
    Node flip(const Node& x, const FlipOptions& options = {});

    /// y = ⌊x⌋: down to the next whole number.
    Node floor(const Node& x);

    /// y = ⌊a / b⌋, elementwise, broadcasting: Python's //, with the remainder `mod`. An integer by 0 is 0.
    ///
    /// PyTorch's and NumPy's `floor_divide`, JAX's `jnp.floor_divide`. JAX's gives −1 for an integer by 0.
    ///
    /// Since opset 2.
    Node floor_div(const Node& a, const Node& b);

    /// A tensor of one number, made on the server: y[…] = fill.
    ///
    /// An absent or empty `shape` makes a 0-d tensor. An infinity or NaN is stated by `fill_as`. PyTorch's and JAX's
    /// `full`.
    Node full(const FullOptions& options = {});

    /// y[i, j, …] = x[index[i, j, …], j, …] for axis 0, and alike for the others.
    ///
    /// `index` has x's rank and may be smaller than x off the axis, as in PyTorch; y has its shape. With one operand,
    /// the list `indices` picks slices: y = x at those positions of the axis. Indices lie in [0, extent); with
    /// `from_end`, in [−extent, extent), and negative ones count from the end, as those of x[i] in PyTorch, JAX and
    /// NumPy do. PyTorch's `gather` and JAX's `take_along_axis`, of which the former takes no negative index.
    ///
    /// Gradient: dx = scatter_add(0, index, g): repeated indices accumulate; none for index.
    Node gather(const Node& x, const GatherOptions& options = {});

    /// y = x · Φ(x), Φ the standard normal distribution function; 0 at −∞. D. Hendrycks, K. Gimpel, arXiv:1606.08415.
    ///
    /// `approximate` tanh: y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), the curve that many models were trained
    /// with.
    ///
    /// Gradient: g · (Φ(x) + x · Φ′(x)).
    Node gelu(const Node& x, const GeluOptions& options = {});

    /// One result of an op that has several: y = x[index].
    ///
    /// Gradient: g lands on that result; the others of the same op have 0.
    ///
    /// index: which result, from 0.
    Node get_output(const Node& x, std::int64_t index);

    /// The gradient of sum(y · cotangent) with respect to x, of x's type; without a cotangent, of sum(y).
    ///
    /// A node like any other: usable downstream, and differentiable again, to any order. x may be any float node; zeros
    /// where y does not depend on it. A complex y needs a cotangent; by a complex x, the gradient is ∂/∂Re x + i ∂/∂Im
    /// x.
    ///
    /// Gradient: the gradient is written out as nodes first, and those are differentiated.
    Node grad(const Node& y, const Node& x, const GradOptions& options = {});

    /// y = (a > b), elementwise; false beside NaN.
    Node greater(const Node& a, const Node& b);

    /// y = (a ≥ b), elementwise; false beside NaN.
    Node greater_equal(const Node& a, const Node& b);

    /// y = (x − mean) / √(variance + eps) · weight + bias, mean and variance of each example's groups of channels.
    ///
    /// x [n, channels, …]; weight and bias [channels], which are cut into `groups` equal parts. n in the denominator.
    /// Y. Wu, K. He, "Group normalization" (2018). PyTorch's `group_norm`, Flax's `GroupNorm`, whose channels are last.
    ///
    /// Since opset 2.
    ///
    /// Gradient: as of layer_norm, over each group.
    ///
    /// groups: how many equal parts the channels are cut into.
    Node group_norm(const Node& x, std::int64_t groups, const GroupNormOptions& options = {});

    /// y = I₀(x): NumPy's, `torch.special.i0`, JAX's `scipy.special.i0`. To 5 units; infinite beyond |x| = 713.98.
    ///
    /// There SciPy's is infinite from 709.78 on.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · i1(x).
    Node i0(const Node& x);

    /// y = exp(−|x|) I₀(x): SciPy's, `torch.special.i0e`, JAX's `bessel_i0e`. To 4 units.
    ///
    /// The derivative keeps its digits for large x, where I₀ and I₁ have most in common. At 0, where |x| has a kink, it
    /// is 0, as PyTorch's and JAX's.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · (i1e(x) − sign(x) · y).
    Node i0e(const Node& x);

    /// y = I₁(x): SciPy's, `torch.special.i1`, JAX's `scipy.special.i1`. To 5 units. At 0, the derivative is 1/2.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · (i0(x) − y / x), and g / 2 at 0.
    Node i1(const Node& x);

    /// y = exp(−|x|) I₁(x): SciPy's, `torch.special.i1e`, JAX's `bessel_i1e`. To 4 units.
    ///
    /// At 0, the derivative is 1/2.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g · (i0e(x) − y · (sign(x) + 1 / x)), and g / 2 at 0.
    Node i1e(const Node& x);

    /// y = x, as a node of its own.
    ///
    /// Gradient: g.
    Node identity(const Node& x);

    /// y[j] = Σ x[k] exp(2πi j k / n) / n over `axes`, each of n points: the inverse of `fft`.
    ///
    /// `norm` is NumPy's: `forward` does not divide, `ortho` does by √n. Real operands are taken as complex. float16
    /// gives complex64, integers complex128. PyTorch's, JAX's and NumPy's `ifft`, and `ifft2` and `ifftn` by several
    /// axes.
    ///
    /// Since opset 2.
    ///
    /// Gradient: fft(g) / n: of a real operand, the real part.
    Node ifft(const Node& x, const IfftOptions& options = {});

    /// y = P(a, x) = ∫₀ˣ tᵃ⁻¹ exp(−t) dt / Γ(a), broadcasting: `torch.special.gammainc`, JAX's `igamma`, SciPy's.
    ///
    /// To 512 units, SciPy's own on NumPy; below 1e-290 to a part of 1e-12. Derivatives by x are to 1e-12 of their
    /// value, by a (of which PyTorch has none, and JAX's are to 1e-7 of 1) to 1e-12; there is no second derivative by
    /// a.
    ///
    /// Since opset 2.
    ///
    /// Gradient: da = g · ∂P/∂a by an integral; dx = g · xᵃ⁻¹ exp(−x) / Γ(a).
    Node igamma(const Node& a, const Node& x);

    /// y = Q(a, x) = 1 − P(a, x), accurate where it is small: `torch.special.gammaincc`, JAX's `igammac`, SciPy's.
    ///
    /// To 512 units, SciPy's own on NumPy; below 1e-290 to a part of 1e-12. Derivatives as those of `igamma`, with the
    /// other sign.
    ///
    /// Since opset 2.
    ///
    /// Gradient: da = −g · ∂P/∂a by an integral; dx = −g · xᵃ⁻¹ exp(−x) / Γ(a).
    Node igammac(const Node& a, const Node& x);

    /// y = Im x; 0 for a real x. JAX's and NumPy's `imag`; PyTorch's refuses a real x.
    ///
    /// Since opset 2.
    ///
    /// Gradient: i · g.
    Node imag(const Node& x);

    /// y = x[i, j, …]: the entries, or slices, at index tensors, one for each of `axes`, which broadcast together.
    ///
    /// As NumPy's x[i, j]: of axes that are side by side, the indices' axes take the place; of others, they come first.
    /// Indices lie in [0, extent); with `from_end`, in [−extent, extent), and negative ones count from the end.
    /// PyTorch's and JAX's x[i, j], which count negative ones always; PyTorch refuses those outside, as here, and JAX
    /// moves them.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = index_add(0, indices, g): repeated indices accumulate; none for indices.
    Node index(const Node& x, const std::vector<Node>& indices, const IndexOptions& options = {});

    /// y = x, and then y[i, j, …] += updates, entry by entry: repeated indices accumulate.
    ///
    /// Operands: x, an index for each of `axes`, updates, which broadcast to what `index` reads. Indices as those of
    /// `index`. PyTorch's `index_put` with accumulate; JAX's x.at[i, j].add, which drops updates outside.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = g, d updates = index(g, indices); none for indices.
    Node index_add(const Node& x, const std::vector<Node>& indices_and_updates, const IndexAddOptions& options = {});

    /// y = x, and then y[i, j, …] = updates: where one place is written twice, the last in row-major order stands.
    ///
    /// It takes the gradient. Operands: x, an index for each of `axes`, updates, which broadcast to what `index` reads.
    /// Indices as those of `index`. PyTorch's `index_put`, JAX's x.at[i, j].set: neither says which of several stands,
    /// and the gradient of PyTorch's goes to all of them; JAX drops updates outside.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = g, 0 where something was written; d updates = g where they stand, else 0; none for indices.
    Node index_set(const Node& x, const std::vector<Node>& indices_and_updates, const IndexSetOptions& options = {});

    /// Data, fed with the request.
    ///
    /// Differentiated with respect to only when `wrt` names it. A declared `dtype` or `shape` must match the feed.
    Node input(const std::string& name = {}, const InputOptions& options = {});

    /// y = x⁻¹, for matrices on the last two axes.
    ///
    /// Where x is singular y is NaN, or, where rounding hides that, very large; the others of the batch are as if it
    /// were not there. To solve a system, `solve` is quicker and more accurate. Integers give float64; float16 is
    /// computed in a wider float, and rounded once.
    ///
    /// Gradient: −yᴴ g yᴴ.
    Node inv(const Node& x);

    /// The real tensor whose `rfft` x is: of n = `sizes` points on the last of `axes`, 2 (m − 1) for m entries of x.
    ///
    /// The imaginary parts of entry 0, and of entry n / 2 where n is even, count for nothing. Real operands are taken
    /// as complex. float16 gives float16, integers float64. `norm` is that of `ifft`. PyTorch's, JAX's and NumPy's
    /// `irfft`, and `irfft2` and `irfftn` by several axes.
    ///
    /// Since opset 2.
    ///
    /// Gradient: rfft(g) / n, the inner entries twice.
    Node irfft(const Node& x, const IrfftOptions& options = {});

    /// y = whether x is neither infinite nor NaN.
    Node is_finite(const Node& x);

    /// y = (x − mean) / √(variance + eps) · weight + bias, mean and variance (n in the denominator) over `axes`.
    ///
    /// weight and bias have x's extents on `axes`, in ascending order. J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer
    /// normalization" (2016). CJC normalises the whole tensor: give all axes.
    ///
    /// Gradient: with z normalised and h = g · weight: dx = (h − mean h − z · mean(h·z)) / √(variance + eps).
    Node layer_norm(const Node& x, const LayerNormOptions& options = {});

    /// y = x for x > 0, else alpha · x. The derivative at 0 is alpha.
    ///
    /// Gradient: g where x > 0 or NaN, else g · alpha.
    Node leaky_relu(const Node& x, const LeakyReluOptions& options = {});

    /// y = (a < b), elementwise; false beside NaN.
    Node less(const Node& a, const Node& b);

    /// y = (a ≤ b), elementwise; false beside NaN.
    Node less_equal(const Node& a, const Node& b);

    /// y = log |Γ(x)|: ∞ at 0, −1, −2, …. To 4 units; near its zeros below 0 (−2.457, −2.748, −3.144, …) to 1e-15.
    ///
    /// SciPy's has no correct digit left where x is within 1e-16 of 1 or 2, the zeros above 0; this one keeps all.
    ///
    /// Gradient: g · digamma(x).
    Node lgamma(const Node& x);

    /// y = activation(x @ w + b) for x[…, in], w[in, out] and b[out]: y[…, out]. Without b nothing is added.
    ///
    /// b may have any shape that broadcasts to y's. The activation is the op of that name with its defaults.
    ///
    /// Gradient: with h = g · activation′: dx = h @ wᵀ, dw = xᵀ @ h, db = Σ h over the rows.
    Node linear(const Node& x, const Node& w, const LinearOptions& options = {});

    /// y = ln x: −∞ at 0, NaN for x < 0.
    ///
    /// Of a complex x ln |x| + i · angle x. The cut is the negative real axis: the sign of the imaginary zero says from
    /// which side it is seen (C99).
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

    /// y = log Φ(x), of the standard normal distribution function Φ, in both tails. To 4 units.
    ///
    /// Its derivative φ(x) / Φ(x) keeps its relative accuracy where Φ(x) is too small for a number, and so do the
    /// derivatives of that. Where x > 0, it is as accurate as exp(−x²/2): to x²/2 units.
    ///
    /// Gradient: g · φ(x) / Φ(x), φ the density.
    Node log_ndtr(const Node& x);

    /// y = ln sigmoid x = −softplus(−x).
    ///
    /// Gradient: g · sigmoid(−x).
    Node log_sigmoid(const Node& x);

    /// y = x − log Σ exp(x) along `axis`, of x's shape; stable: computed from x − max x. Integers give float64.
    ///
    /// A row that is −inf throughout gives NaN.
    ///
    /// Gradient: g − exp(y) · Σ g, the sum along the axis.
    Node log_softmax(const Node& x, const LogSoftmaxOptions& options = {});

    /// y = ln(eᵃ + eᵇ), stable. Where both are −∞, y is −∞ and the gradients are 0; where both are ∞, a half each.
    ///
    /// Gradient: da = g · sigmoid(a − b), db = g · sigmoid(b − a).
    Node logaddexp(const Node& a, const Node& b);

    /// y = a and b, elementwise, broadcasting. Numbers are true where they are not 0; NaN is true.
    Node logical_and(const Node& a, const Node& b);

    /// y = not x, elementwise. Numbers are true where they are not 0; NaN is true.
    Node logical_not(const Node& x);

    /// y = a or b (or both), elementwise, broadcasting. Numbers are true where they are not 0; NaN is true.
    Node logical_or(const Node& a, const Node& b);

    /// y = log Σ exp x over axes, stable: m + log Σ exp(x − m) with m = max x. −inf over nothing.
    ///
    /// Where all of x is −inf, y is −inf and the gradient 0. Where some of it is inf, these share the gradient. Where
    /// one is NaN, so are y and the gradient. Integers give float64.
    ///
    /// Gradient: g · exp(x − y).
    Node logsumexp(const Node& x, const LogsumexpOptions& options = {});

    /// y that makes |a y − b| least: a [batch…, m, n] with m ≥ n, b [m], [batch…, m] or [batch…, m, k].
    ///
    /// y [n], [batch…, n] or [batch…, n, k]. b is a vector if it is 1-d, or one for each matrix if it has a's shape
    /// without the last axis and its last two axes cannot be matrices of m rows; else they are. Without `rcond`, by
    /// `qr`: the columns of a have to be independent. With it, by `pinv`: singular values up to that part of the
    /// largest are taken for 0, and of all y the shortest is given. Integers give float64; float16 is computed in
    /// float32, and rounded once. PyTorch's, JAX's and NumPy's `linalg.lstsq`, of which the first result alone.
    ///
    /// Since opset 2.
    ///
    /// Gradient: that of qr or pinv: db = a (aᴴ a)⁻¹ g, da = (b − a y) ((aᴴ a)⁻¹ g)ᴴ − db yᴴ.
    Node lstsq(const Node& a, const Node& b, const LstsqOptions& options = {});

    /// permutation, l, u with x[permutation] = l u: rows exchanged so that no entry of l is larger than 1.
    ///
    /// x [batch…, m, n], permutation int64 [batch…, m], l [batch…, m, k] lower triangular with 1 on its diagonal, u
    /// [batch…, k, n] upper triangular, k = min(m, n). Three results, read through get_output. To solve a system,
    /// `solve` is quicker. Complex numbers are compared by |Re| + |Im|. The gradient holds where the first k columns of
    /// x[permutation] are independent in their first k rows; where they are not, it is infinite or NaN. The permutation
    /// has none. A matrix that holds an infinity or NaN gives NaN for itself alone, and its rows as they are. Integers
    /// give float64; float16 is computed in a wider float, and rounded once. F. de Hoog, R. Anderssen, M. Lukas,
    /// Differentiation of matrix functionals using triangular factorization (2011). PyTorch's `linalg.lu`, which has a
    /// matrix in place of the permutation; JAX's `lax.linalg.lu`, in another order.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through get_output.
    ///
    /// Gradient: of x[permutation]: l⁻ᴴ (tril(lᴴ ḡl, −1) + triu(ḡu uᴴ)) u⁻ᴴ for square matrices; rows put back.
    Node lu(const Node& x);

    /// y = re + i · im, elementwise, broadcasting: complex64 of float32 and narrower floats, else complex128.
    ///
    /// The parts stay as they are, infinities, NaN and signs of zeros too, which re + im · i would not leave so.
    /// PyTorch's `complex`, JAX's `lax.complex`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: d re = Re g, d im = Im g.
    Node make_complex(const Node& re, const Node& im);

    /// stacks = body(consts, entry t of each sequence), for every t, in no order.
    ///
    /// Operands are consts, then `sequences` tensors of equal leading extent. `at_once` entries are computed in one
    /// batch. Results: for each of the body's a stack [entries, …]. JAX's `lax.map`, whose batch_size is `at_once`;
    /// JAX's and PyTorch's `vmap`, which computes all entries in one batch.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through get_output.
    ///
    /// Gradient: a map of the body's, summed over the entries for consts.
    ///
    /// body: of consts and one entry of each sequence: what is stacked.
    Node map(const GraphFunction& body, const std::vector<Node>& operands, const MapOptions& options = {});

    /// The value under one key of a map that is kept as one tensor, keys in insertion order.
    ///
    /// The leading axis is cut into `total_keys` equal parts, and y is the part `key_index`; the axis stays.
    ///
    /// Gradient: g on that part, 0 on the others.
    ///
    /// key_index: which key, from 0, in insertion order.
    ///
    /// total_keys: how many keys the map has.
    Node map_lookup(const Node& x, std::int64_t key_index, std::int64_t total_keys);

    /// y = a @ b, as NumPy: y[…, i, j] = Σₖ a[…, i, k] · b[…, k, j], and the axes before broadcast.
    ///
    /// A 1-d operand counts as a row on the left and as a column on the right, and that axis is dropped from the
    /// result. float16 adds up in float32; integers and bool are multiplied in their own dtype, as NumPy does.
    ///
    /// Gradient: da = g @ bᴴ, db = aᴴ @ g, summed over batch axes that were broadcast.
    Node matmul(const Node& a, const Node& b);

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
    /// Gradient: the upper right block of exp [[xᴴ, g], [0, xᴴ]].
    Node matrix_exp(const Node& x);

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
    /// k: the exponent; may be 0 or negative.
    Node matrix_power(const Node& x, std::int64_t k);

    /// y = how many singular values are larger than max(m, n) ε times the largest: int64, [batch…, m, n] → [batch…].
    ///
    /// ε is that of x's dtype. A matrix that holds an infinity or NaN has rank 0. PyTorch's, JAX's and NumPy's
    /// `linalg.matrix_rank` without a tolerance.
    ///
    /// Since opset 2.
    Node matrix_rank(const Node& x);

    /// y = max x over axes; NaN if one of the elements is. Ties, also of NaN, share the gradient equally.
    ///
    /// Gradient: g / k to each of the k elements equal to y, or NaN where y is; zero to the others.
    Node max(const Node& x, const MaxOptions& options = {});

    /// y[…, i] = the largest element of the window at i; NaN where it holds one. x [..., w]; padding counts as −∞.
    ///
    /// w' = ⌊(w + 2 · padding − dilation · (kernel_size − 1) − 1) / stride⌋ + 1; with `ceiling`, ⌈…⌉ + 1. PyTorch's
    /// `max_pool1d`, whose `ceil_mode` is `ceiling`; JAX's `lax.reduce_window` with window_dilation, without a ceiling.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g, added at the first maximum (in row-major order) of each window.
    ///
    /// kernel_size: extents of the windows along each spatial axis.
    Node max_pool1d(const Node& x, const std::vector<std::int64_t>& kernel_size, const MaxPool1dOptions& options = {});

    /// y[…, i, j] = the largest element of the window at (i, j); NaN where it holds one.
    ///
    /// x [..., h, w]; padding counts as −∞. As PyTorch's max_pool2d.
    ///
    /// Gradient: g, added at the first maximum (in row-major order) of each window.
    ///
    /// kernel_size: extents of the windows along each spatial axis.
    Node max_pool2d(const Node& x, const std::vector<std::int64_t>& kernel_size, const MaxPool2dOptions& options = {});

    /// y[…, h, w] = Σ g[…, i, j] over the windows (i, j) of which x[…, h, w] is the first maximum, in row-major order.
    ///
    /// g [..., h', w'], x [..., h, w]: what is 0 elsewhere, and what max_pool2d gives back of g. A NaN counts as a
    /// maximum.
    ///
    /// Gradient: dg = the cotangent at max_pool2d_indices; none for x, of which the result is constant in pieces.
    ///
    /// kernel_size: extents of the windows along each spatial axis.
    Node max_pool2d_back(
        const Node& g,
        const Node& x,
        const std::vector<std::int64_t>& kernel_size,
        const MaxPool2dBackOptions& options = {});

    /// y[…, i, j] = where the first maximum (in row-major order) of the window at (i, j) lies: h · width + w.
    ///
    /// int64, flat within its plane, as PyTorch's return_indices; a NaN counts as a maximum.
    ///
    /// kernel_size: extents of the windows along each spatial axis.
    Node max_pool2d_indices(
        const Node& x,
        const std::vector<std::int64_t>& kernel_size,
        const MaxPool2dIndicesOptions& options = {});

    /// y[…, i, j, k] = the largest element of the window at (i, j, k); NaN where it holds one. x [..., d, h, w].
    ///
    /// Padding counts as −∞; extents as those of max_pool1d. A pool of planes that is dilated, or has a ceiling, is one
    /// whose first kernel size is 1. PyTorch's `max_pool3d`, whose `ceil_mode` is `ceiling`; JAX's `lax.reduce_window`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g, added at the first maximum (in row-major order) of each window.
    ///
    /// kernel_size: extents of the windows along each spatial axis.
    Node max_pool3d(const Node& x, const std::vector<std::int64_t>& kernel_size, const MaxPool3dOptions& options = {});

    /// y = the larger of a and b, elementwise, broadcasting; NaN where either is NaN.
    ///
    /// Gradient: da = g where a > b, or a alone is NaN; g / 2 where a = b, or both are NaN; else 0; db likewise.
    Node maximum(const Node& a, const Node& b);

    /// y = Σ x / n over axes, n the number of elements reduced; NaN where n = 0. Integers give float64.
    ///
    /// Gradient: g / n, broadcast back over the axes.
    Node mean(const Node& x, const MeanOptions& options = {});

    /// y = min x over axes; NaN if one of the elements is. Ties, also of NaN, share the gradient equally.
    ///
    /// Gradient: g / k to each of the k elements equal to y, or NaN where y is; zero to the others.
    Node min(const Node& x, const MinOptions& options = {});

    /// y = the smaller of a and b, elementwise, broadcasting; NaN where either is NaN.
    ///
    /// Gradient: da = g where a < b, or a alone is NaN; g / 2 where a = b, or both are NaN; else 0; db likewise.
    Node minimum(const Node& a, const Node& b);

    /// y = activation(x @ wᵀ + b) for x[…, in], w[out, in] and b[out]: y[…, out].
    ///
    /// b may have any shape that broadcasts to y's. The activation is the op of that name with its defaults; CJC's
    /// `gelu` here is the tanh form: write that one as parts.
    ///
    /// Gradient: with h = g · activation′: dx = h @ w, dw = hᵀ @ x, db = Σ h over the rows.
    Node mlp_layer(const Node& x, const Node& w, const Node& b, const MlpLayerOptions& options = {});

    /// y = a − b · ⌊a / b⌋: the remainder, with the divisor's sign, as Python's % and NumPy's mod.
    ///
    /// A float modulo 0 is NaN, an integer modulo 0 is 0.
    ///
    /// Gradient: da = g, db = −g · ⌊a / b⌋.
    Node mod(const Node& a, const Node& b);

    /// loss = (x − y)², elementwise on equal shapes; then the mean.
    ///
    /// Gradient: dx = g · 2 (x − y) / n, dy = −dx.
    Node mse_loss(const Node& x, const Node& y, const MseLossOptions& options = {});

    /// y = a · b, elementwise, broadcasting as NumPy.
    ///
    /// Gradient: da = g · b, db = g · a.
    Node mul(const Node& a, const Node& b);

    /// y = x · scalar.
    ///
    /// Gradient: g · scalar.
    ///
    /// scalar: the constant.
    Node mul_scalar(const Node& x, double scalar);

    /// y = −x.
    ///
    /// Gradient: −g.
    Node neg(const Node& x);

    /// The places where `mask` is true, in row-major order: int64 [k, rank], and how many there are: int64 [].
    ///
    /// k is stated, and may be more than there are, or fewer: what is beyond k is cut, and the count tells; behind it
    /// there are zeros. Two results, read through get_output. JAX's `nonzero` with a size, whose rows are its tuple
    /// side by side; PyTorch's `nonzero`, which has as many rows as there are.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through get_output.
    ///
    /// k: how many entries there are to be.
    Node nonzero(const Node& mask, std::int64_t k);

    /// y = √Σ x² over axes, the Euclidean norm, without overflow or underflow on the way. Integers give float64.
    ///
    /// At 0 the gradient is 0, the subgradient of least norm, and so is that of the gradient. An infinite element gets
    /// g, with its sign. Where one is NaN, so are y and the gradient.
    ///
    /// Gradient: g · x / y, and 0 where y = 0.
    Node norm(const Node& x, const NormOptions& options = {});

    /// y = (a ≠ b), elementwise; NaN differs from everything.
    Node not_equal(const Node& a, const Node& b);

    /// y[…, c] = 1 where indices[…] = c, else 0; a new last axis of extent `classes`. Indices lie in [0, classes).
    ///
    /// classes: the number of classes.
    Node one_hot(const Node& indices, std::int64_t classes, const OneHotOptions& options = {});

    /// y = x with `fill` around it: pad_width[2i] entries before and pad_width[2i + 1] after, on each axis i.
    ///
    /// An infinity or NaN is stated by `fill_as`. PyTorch's `functional.pad` lists the last axis first; JAX's and
    /// NumPy's `pad` have pairs, in the order here.
    ///
    /// Gradient: g where x is.
    ///
    /// pad_width: entries before and after, for one axis after the other.
    Node pad(const Node& x, const std::vector<std::int64_t>& pad_width, const PadOptions& options = {});

    /// A trainable tensor, fed with the request.
    ///
    /// As `input`, but part of `wrt` by default.
    Node parameter(const std::string& name = {}, const ParameterOptions& options = {});

    /// y = x⁺, the pseudoinverse of Moore and Penrose: v diag(1 / s) uᴴ of x = u diag(s) vᴴ, without those s that are
    /// 0.
    ///
    /// x [batch…, m, n], y [batch…, n, m]. Singular values up to `rcond` times the largest are taken for 0: by default
    /// max(m, n) ε. The gradient is that at constant rank, which is exact where nothing but zeros is cut, equal
    /// singular values or not; of larger ones that are cut, it is off by their part of those that are kept. Where the
    /// rank changes, the pseudoinverse jumps. A matrix that holds an infinity or NaN, or for which LAPACK finds no
    /// answer, gives NaN for itself alone. Integers give float64; float16 is computed in a wider float, and rounded
    /// once. G. H. Golub, V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose
    /// variables separate (1973), eq. 4.12. PyTorch's `linalg.pinv` (rtol); JAX's and NumPy's have other defaults.
    ///
    /// Since opset 2.
    ///
    /// Gradient: −yᴴ g yᴴ + (1 − x y) gᴴ y yᴴ + yᴴ y gᴴ (1 − y x).
    Node pinv(const Node& x, const PinvOptions& options = {});

    /// y = ψ⁽ⁿ⁾(x) for n = `order`, the n-th derivative of `digamma`; order 0 is `digamma` itself.
    ///
    /// ±∞ at 0, −1, −2, …, with the sign that it has to the right of 0. To 10 units; for even orders, near the zeros
    /// below 0, to 10 units of what the nearest poles add up to. Values of less than 1e-307 · n! are inaccurate or 0.
    ///
    /// Orders go to 170, whose factorial is the largest in a float64; `polygamma` of order 170 has no derivative.
    ///
    /// Gradient: g · polygamma(x, order + 1).
    ///
    /// order: which derivative of digamma: 0 to 170.
    Node polygamma(const Node& x, std::int64_t order);

    /// y = aᵇ, broadcasting; with one operand y = a^exponent, which is `pow_scalar`. 0⁰ = 1.
    ///
    /// A negative a to a fractional power is NaN, and so is its derivative by b. By b, the derivative is 0 where a = 0
    /// and b ≥ 0, or where a = ∞ and b < 0. Powers of integers are integers: they wrap around as NumPy's, and to a
    /// negative exponent they are cut off towards zero (2⁻¹ → 0, as CuPy and PyTorch have it, where NumPy refuses) with
    /// 0⁻¹ → 0.
    ///
    /// Gradient: da = g · b · aᵇ⁻¹, db = g · y · log a.
    Node pow(const Node& a, const PowOptions& options = {});

    /// y = x^exponent for a real exponent. 0⁰ = 1; a negative x to a fractional power is NaN.
    ///
    /// Of a complex x, exp(exponent · log x), with the cut of `log`.
    ///
    /// Gradient: g · exponent · x^(exponent − 1), and 0 for an exponent of 0.
    ///
    /// exponent: the exponent.
    Node pow_scalar(const Node& x, double exponent);

    /// y = Π x over axes; 1 over nothing. Integers and bool multiply in int64, float16 in float32.
    ///
    /// The gradient is that of a tree of products, exact whatever the number of zeros, and so are those of higher
    /// order.
    ///
    /// Gradient: g · (product of all other elements).
    Node prod(const Node& x, const ProdOptions& options = {});

    /// q, r with x = q r: the columns of q orthonormal, r upper triangular; reduced.
    ///
    /// x [batch…, m, n], q [batch…, m, k], r [batch…, k, n], k = min(m, n). Two results, read through get_output. The
    /// signs of r's diagonal are as LAPACK leaves them, of a row of r together with the column of q: a function has a
    /// meaning only if it does not depend on them. The gradient holds where the columns of x are independent; where
    /// they are not, it is infinite or NaN. Of fewer rows than columns there are values, and no gradient:
    /// `not_differentiable`. A matrix that holds an infinity or NaN gives NaN for itself alone. Integers give float64;
    /// float16 is computed in a wider float, and rounded once. S. F. Walter, L. Lehmann, Algorithmic differentiation of
    /// linear algebra functions with application in optimum experimental design, arXiv:1001.1654 (2010). PyTorch's and
    /// JAX's `linalg.qr`, reduced.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through get_output.
    ///
    /// Gradient: (ḡq + q (L + Lᴴ − Re diag L)) r⁻ᴴ, L the lower triangle of r ḡrᴴ − ḡqᴴ q; none where rows < columns.
    Node qr(const Node& x);

    /// y = uniform < p, of p's shape: true with probability p. The uniform numbers are of p's dtype.
    ///
    /// As `jax.random.bernoulli`. PyTorch's `bernoulli` has floats of another generator.
    ///
    /// Since opset 2.
    Node random_bernoulli(const Node& key, const Node& p);

    /// y = 32 random bits an element: the exclusive or of both words of counter i, row-major. As `jax.random.bits`.
    ///
    /// PyTorch's `randint` has bits of another generator.
    ///
    /// Since opset 2.
    ///
    /// shape: the result's shape.
    Node random_bits(const Node& key, const std::vector<std::int64_t>& shape, const RandomBitsOptions& options = {});

    /// y = argmax(logits + gumbel) along `axis`, int64: i with a probability that goes as exp(logits[i]).
    ///
    /// As `jax.random.categorical`. PyTorch's `multinomial` takes weights, and has another generator.
    ///
    /// Since opset 2.
    Node random_categorical(const Node& key, const Node& logits, const RandomCategoricalOptions& options = {});

    /// y = −log1p(−u), u uniform in [0, 1): exponential numbers of mean 1. As `jax.random.exponential`.
    ///
    /// PyTorch's `exponential_` has numbers of another generator.
    ///
    /// Since opset 2.
    ///
    /// shape: the result's shape.
    ///
    /// dtype: the result's dtype; one of float32, float64.
    Node random_exponential(const Node& key, const std::vector<std::int64_t>& shape, const DType& dtype);

    /// key = a new key [2] for each number: the words of counter (0, number mod 2³²). As `jax.random.fold_in`.
    ///
    /// PyTorch has no keys: a `Generator` each.
    ///
    /// Since opset 2.
    Node random_fold_in(const Node& key, const Node& number);

    /// y = −log(−log u), u uniform in [0, 1), its 0 replaced by the least normal number. As `jax.random.gumbel`.
    ///
    /// PyTorch's `distributions.Gumbel` has numbers of another generator.
    ///
    /// Since opset 2.
    ///
    /// shape: the result's shape.
    ///
    /// dtype: the result's dtype; one of float32, float64.
    Node random_gumbel(const Node& key, const std::vector<std::int64_t>& shape, const DType& dtype);

    /// key = (seed ≫ 32, seed mod 2³²): uint32 [2] from an int64 []. As `jax.random.key_data(jax.random.key(seed))`.
    ///
    /// PyTorch's `manual_seed` begins another sequence, which goes on by itself.
    ///
    /// Since opset 2.
    Node random_key(const Node& seed);

    /// y = √2 · erfinv(u), u uniform in (−1, 1): standard normal numbers. As `jax.random.normal`, to 32 ulp.
    ///
    /// PyTorch's `randn` has numbers of another generator.
    ///
    /// Since opset 2.
    ///
    /// shape: the result's shape.
    ///
    /// dtype: the result's dtype; one of float32, float64.
    Node random_normal(const Node& key, const std::vector<std::int64_t>& shape, const DType& dtype);

    /// y = 0 … k−1 in random order, int64 [k]: a stable argsort of k numbers of 64 random bits, unsigned.
    ///
    /// `jax.random.permutation` has another rule, and PyTorch's `randperm` another generator.
    ///
    /// Since opset 2.
    ///
    /// k: how many numbers.
    Node random_permutation(const Node& key, std::int64_t k);

    /// keys = k new keys [k, 2], each of its own sequence: the words of the counters 0 … k−1. As `jax.random.split`.
    ///
    /// PyTorch has no keys: a `Generator` each.
    ///
    /// Since opset 2.
    ///
    /// k: how many keys.
    Node random_split(const Node& key, std::int64_t k);

    /// y = uniform numbers in [0, 1): 23 random bits (of float64, 52), over 2²³ (2⁵²). As `jax.random.uniform`.
    ///
    /// PyTorch's `rand` has numbers of another generator.
    ///
    /// Since opset 2.
    ///
    /// shape: the result's shape.
    ///
    /// dtype: the result's dtype; one of float32, float64.
    Node random_uniform(const Node& key, const std::vector<std::int64_t>& shape, const DType& dtype);

    /// y = Re x; a real x itself. PyTorch's, JAX's and NumPy's `real`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g, with the imaginary part 0.
    Node real(const Node& x);

    /// y = 1 / x; integers give floats, as `div`.
    ///
    /// Gradient: −g · y².
    Node reciprocal(const Node& x);

    /// y = max(x, 0). The derivative at 0 is `at_zero`; some systems let the gradient pass there.
    ///
    /// Gradient: g where x > 0 or NaN, g · at_zero where x = 0, else 0.
    Node relu(const Node& x, const ReluOptions& options = {});

    /// y = a − b · (a / b without its fraction): C's % and fmod, with a's sign. `mod` has b's.
    ///
    /// A float by 0 gives NaN, an integer 0. PyTorch's `fmod`, JAX's `lax.rem`, which gives a for an integer by 0.
    ///
    /// Since opset 2.
    ///
    /// Gradient: da = g, db = −g · (a / b without its fraction).
    Node rem(const Node& a, const Node& b);

    /// y holds x's elements, in row-major order, in another shape; one extent may be −1 and follows from the others.
    ///
    /// An absent or empty `shape` makes a 0-d tensor. `original_shape`, where given, must be x's shape.
    ///
    /// Gradient: g, reshaped back.
    Node reshape(const Node& x, const ReshapeOptions& options = {});

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
    /// sizes: the new extents.
    Node resize(const Node& x, const std::vector<std::int64_t>& sizes, const ResizeOptions& options = {});

    /// The first ⌊n / 2⌋ + 1 entries of `fft` on the last of `axes`, of a real x: the others are their conjugates.
    ///
    /// float16 gives complex64, integers complex128. `norm` is that of `fft`. PyTorch's, JAX's and NumPy's `rfft`, and
    /// `rfft2` and `rfftn` by several axes.
    ///
    /// Since opset 2.
    ///
    /// Gradient: the real part of ifft(g) without its division, g filled up with zeros.
    Node rfft(const Node& x, const RfftOptions& options = {});

    /// y = x / √(mean x² + eps) · weight, the mean over `axes`; weight has x's extents there, in ascending order.
    ///
    /// B. Zhang, R. Sennrich, "Root mean square layer normalization" (2019).
    ///
    /// Gradient: with z normalised and h = g · weight: dx = (h − z · mean(h·z)) / √(mean x² + eps).
    Node rms_norm(const Node& x, const RmsNormOptions& options = {});

    /// y[(i + shift) mod n] = x[i] on each of `axes`; without axes, on the flattened tensor.
    ///
    /// As many shifts as axes, and one without axes. Negative shifts go towards the front.
    ///
    /// Gradient: g, rolled back.
    ///
    /// shifts: how far to move, for each axis.
    Node roll(const Node& x, const std::vector<std::int64_t>& shifts, const RollOptions& options = {});

    /// y = x rounded to the nearest whole number, halves to the even one: 0.5 → 0, 1.5 → 2.
    Node round(const Node& x);

    /// y = 1 / √x, NaN for x < 0.
    ///
    /// Gradient: −g · y³ / 2.
    Node rsqrt(const Node& x);

    /// carries, stacks = body, step by step: for t = 0 … length − 1, body(consts, carries, entry t of each sequence).
    ///
    /// The body gives the carries for the next step, of the same types, and then values that are stacked. Operands are
    /// consts, then `carries` initial values, then `sequences` tensors whose entries along the leading axis it goes
    /// through, with `reverse` from the last; entry t of a stack is what step t gave. Results: the last carries, then
    /// the stacks [length, …]. JAX's `lax.scan`, whose body may read what is around it; of PyTorch, a loop of Python.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through get_output.
    ///
    /// Gradient: a scan the other way round, which computes each step again.
    ///
    /// body: of consts, carries and one entry of each sequence: carries, and what is stacked.
    Node scan(const GraphFunction& body, const std::vector<Node>& operands, const ScanOptions& options = {});

    /// y = x, and then y[index[i, j, …], j, …] += updates[i, j, …] for axis 0, and alike for the others.
    ///
    /// `index` and `updates` have the same shape, of x's rank, and may be smaller than x off the axis. Repeated indices
    /// accumulate. The adjoint of `gather`. Indices lie in [0, extent); with `from_end`, negative ones count from the
    /// end. PyTorch's `scatter_add`, which takes no negative index; JAX's `x.at[…].add`, which does, and drops those
    /// outside.
    ///
    /// Gradient: dx = g, d updates = gather(g, index); none for index.
    Node scatter_add(const Node& x, const Node& index, const Node& updates, const ScatterAddOptions& options = {});

    /// y[s, …] = the largest x[i, …] of the rows i with segment_ids[i] = s; NaN if one is.
    ///
    /// x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Ties share the gradient
    /// equally. A segment without rows is −∞, or the least number of an integer dtype. JAX's `ops.segment_max`;
    /// PyTorch's `scatter_reduce` with amax, whose ties share, too, which gives segments without rows what was there.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g / k to each of the k rows equal to y, or NaN where y is; zero to the others.
    ///
    /// segments: how many segments there are.
    Node segment_max(const Node& x, const Node& segment_ids, std::int64_t segments);

    /// y[s, …] = the mean of x[i, …] over the rows i with segment_ids[i] = s; NaN where there is none.
    ///
    /// x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers give float64; float16
    /// adds up in float32. PyTorch's `scatter_reduce` with mean; JAX has none.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx[i, …] = g[segment_ids[i], …] / (rows of the segment); none for segment_ids.
    ///
    /// segments: how many segments there are.
    Node segment_mean(const Node& x, const Node& segment_ids, std::int64_t segments);

    /// y[s, …] = the smallest x[i, …] of the rows i with segment_ids[i] = s; NaN if one is.
    ///
    /// x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Ties share the gradient
    /// equally. A segment without rows is ∞, or the greatest number of an integer dtype. JAX's `ops.segment_min`;
    /// PyTorch's `scatter_reduce` with amin, whose ties share, too, which gives segments without rows what was there.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g / k to each of the k rows equal to y, or NaN where y is; zero to the others.
    ///
    /// segments: how many segments there are.
    Node segment_min(const Node& x, const Node& segment_ids, std::int64_t segments);

    /// y[s, …] = Π x[i, …] over the rows i with segment_ids[i] = s; 1 where there is none.
    ///
    /// x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers and bool multiply in
    /// int64, float16 in float32. The gradient is exact whatever the number of zeros, and so are those of higher order.
    /// JAX's `ops.segment_prod`, which has no gradient; PyTorch's `scatter_reduce` with prod.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g[segment_ids[i], …] · (product of the other rows of the segment); none for segment_ids.
    ///
    /// segments: how many segments there are.
    Node segment_prod(const Node& x, const Node& segment_ids, std::int64_t segments);

    /// y[s, …] = Σ x[i, …] over the rows i with segment_ids[i] = s; 0 where there is none.
    ///
    /// x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers and bool add up in
    /// int64, float16 in float32.
    ///
    /// Gradient: dx[i, …] = g[segment_ids[i], …]; none for segment_ids.
    ///
    /// segments: how many segments there are.
    Node segment_sum(const Node& x, const Node& segment_ids, std::int64_t segments);

    /// y = x at one `index` along `axis`, without that axis: x[index], x[:, index], …
    ///
    /// A negative index counts from the end. As PyTorch's select; `gather` reads at many indices.
    ///
    /// Gradient: g at the index, 0 elsewhere.
    ///
    /// index: the position to read at.
    Node select(const Node& x, std::int64_t index, const SelectOptions& options = {});

    /// y = 1.0507… · elu(x, alpha = 1.6732…): keeps mean 0 and variance 1 of what it is applied to.
    ///
    /// G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter, arXiv:1706.02515.
    ///
    /// Gradient: 1.0507… · that of elu.
    Node selu(const Node& x);

    /// y = 1 / (1 + e⁻ˣ), accurate in both tails, down to the smallest number. Of a complex x, by the same formula.
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

    /// y = sin(πx) / πx, and 1 at 0: NumPy's, PyTorch's and JAX's. 0 at whole numbers, exactly, and at infinity.
    ///
    /// To 4 units, next to whole numbers as well, where the libraries' lose all digits; there the derivative is (−1)ˣ /
    /// x.
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
    /// A list may be shorter: the axes that it does not reach are whole, or every position of theirs is read. Bounds as
    /// NumPy's: negative ones count from the end, and beyond an end means at that end. Steps are at least 1.
    ///
    /// Gradient: g at the positions that were read, 0 elsewhere.
    Node slice(const Node& x, const SliceOptions& options = {});

    /// y = x[s₀ : s₀ + sizes[0], s₁ : s₁ + sizes[1], …], s being `starts`: int64 [rank], which are computed.
    ///
    /// Each is moved into [0, extent − size], negative ones too, so that there are always as many entries. JAX's
    /// `lax.dynamic_slice`, which first counts negative starts from the end; PyTorch's x.narrow takes a start on one
    /// axis.
    ///
    /// Since opset 2.
    ///
    /// Gradient: g where the box was, 0 elsewhere; none for starts.
    ///
    /// sizes: extents of the box, one for each axis.
    Node slice_at(const Node& x, const Node& starts, const std::vector<std::int64_t>& sizes);

    /// sign, log|det x| of the matrices on the last two axes: [batch…, n, n] → [batch…] twice; det x = sign · exp(log).
    ///
    /// The logarithm neither overflows nor underflows where the determinant does. A singular matrix has sign 0 and the
    /// logarithm −∞, and its gradient is NaN, as that of the inverse; the others of its batch are as if it were not
    /// there. The sign carries no gradient. Of a complex matrix it is complex, det x / |det x|, and the logarithm real.
    /// Several results, read through get_output. Integers give float64; float16 is computed in a wider float, and
    /// rounded once.
    ///
    /// It has several results, each read through get_output.
    ///
    /// Gradient: g · x⁻ᴴ, g the cotangent of log|det x|.
    Node slogdet(const Node& x);

    /// y = exp(x) / Σ exp(x) along `axis`, of x's shape; stable: computed from x − max x. Integers give float64.
    ///
    /// A row that is −inf throughout gives NaN, as 0 / 0.
    ///
    /// Gradient: y · (g − Σ g·y), the sum along the axis.
    Node softmax(const Node& x, const SoftmaxOptions& options = {});

    /// y = ln(1 + eˣ).
    ///
    /// Gradient: g · sigmoid x.
    Node softplus(const Node& x);

    /// y with a y = b: a [batch…, n, n], b [n], [batch…, n] or [batch…, n, m]; batch axes of matrices broadcast.
    ///
    /// b is a vector if it is 1-d, as in NumPy 2, or one for each matrix if it has a's shape without the last axis and
    /// its last two axes cannot be matrices of n rows; else they are. Where a is singular y is NaN, or, where rounding
    /// hides that, very large; the other systems of the batch are as if it were not there. Integers give float64;
    /// float16 is computed in a wider float, and rounded once. M. B. Giles, Collected matrix derivative results for
    /// forward and reverse mode algorithmic differentiation (2008).
    ///
    /// Gradient: db = a⁻ᴴ g, da = −(db yᴴ), summed over batch axes that were broadcast.
    Node solve(const Node& a, const Node& b);

    /// y = x in ascending order along an axis; equal entries keep their order, NaN comes last.
    ///
    /// Gradient: g, put back where the entries came from.
    ///
    /// axis: the axis to sort along.
    Node sort(const Node& x, std::int64_t axis);

    /// y0, y1, … = x cut along `axis` into parts of `sizes`, which add up to the extent; a part may be empty.
    ///
    /// Several results, read through get_output.
    ///
    /// It has several results, each read through get_output.
    ///
    /// Gradient: the parts' cotangents, joined; zeros for parts that are not read.
    ///
    /// sizes: the parts' extents on the axis.
    Node split(const Node& x, const std::vector<std::int64_t>& sizes, const SplitOptions& options = {});

    /// y = √x, NaN for x < 0. At 0 the derivative is infinite.
    ///
    /// Of a complex x the root with Re y ≥ 0. The cut is the negative real axis: the sign of the imaginary zero says
    /// from which side value and gradient are taken, as in PyTorch. JAX takes the derivative of one side for both.
    ///
    /// Gradient: g / 2y.
    Node sqrt(const Node& x);

    /// y = x².
    ///
    /// Gradient: g · 2x.
    Node square(const Node& x);

    /// y = x without `axes`, each of which must have extent 1; absent: without all axes of extent 1.
    ///
    /// Gradient: g, reshaped back.
    Node squeeze(const Node& x, const SqueezeOptions& options = {});

    /// y = the operands, all of one shape, one after the other along a new axis; `axis` is its place in the result.
    ///
    /// The result has their common dtype.
    ///
    /// Gradient: to each operand its part of g.
    Node stack(const std::vector<Node>& x, const StackOptions& options = {});

    /// y[…, t, k] = Σ window[j] x[…, t · stride + j] exp(−2πi j k / n) over j: [… time] → [… frames, ⌊n / 2⌋ + 1].
    ///
    /// `rfft` of each part of x that the window [w] covers, of n = w points unless `sizes` states more or fewer.
    /// Nothing is padded: `pad` x first to have frames around its ends. TensorFlow's `signal.stft`; PyTorch's and
    /// SciPy's `stft` have the last two axes the other way round, and pad by default. By NumPy and JAX, frames and
    /// `rfft`.
    ///
    /// Since opset 2.
    ///
    /// Gradient: that of rfft, times the window, added where frames overlap.
    ///
    /// stride: one: from the beginning of a frame to that of the next.
    Node stft(
        const Node& x,
        const Node& window,
        const std::vector<std::int64_t>& stride,
        const StftOptions& options = {});

    /// y = x, and no derivative passes: for differentiation y is a constant.
    Node stop_gradient(const Node& x);

    /// One field of a record that is kept as one tensor.
    ///
    /// The leading axis is cut into `total_fields` equal parts, and y is the part `field_index`; the axis stays.
    ///
    /// Gradient: g on that part, 0 on the others.
    ///
    /// field_index: which field, from 0.
    ///
    /// total_fields: how many fields the record has.
    Node struct_field(const Node& x, std::int64_t field_index, std::int64_t total_fields);

    /// y = a − b, elementwise, broadcasting as NumPy.
    ///
    /// Gradient: da = g, db = −g.
    Node sub(const Node& a, const Node& b);

    /// y = x − scalar.
    ///
    /// Gradient: g.
    ///
    /// scalar: the constant.
    Node sub_scalar(const Node& x, double scalar);

    /// y = Σ x over axes. Integers and bool add up in int64, float16 in float32.
    ///
    /// Gradient: g, broadcast back over the axes.
    Node sum(const Node& x, const SumOptions& options = {});

    /// u, s, vh with x = u diag(s) vh: s ≥ 0 descending, the columns of u and rows of vh orthonormal; thin.
    ///
    /// x [batch…, m, n], u [batch…, m, k], s [batch…, k], real, vh [batch…, k, n], k = min(m, n). Three results, read
    /// through get_output. Where only s is read, vectors are not computed, and the gradient of s alone holds at equal
    /// values, too, as long as the function treats these alike.
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
    /// It has several results, each read through get_output.
    ///
    /// Gradient: u (diag(ḡs) + (F ∘ (P + Q) + G ∘ (P − Q)) / 2) vh, and (1 − u uᴴ) ḡu s⁻¹ vh, u s⁻¹ ḡvh (1 − v vᴴ); P,
    /// Q = uᴴ ḡu, vh ḡvhᴴ less their adjoints, Fᵢⱼ = 1 / (sⱼ − sᵢ), Gᵢⱼ = 1 / (sⱼ + sᵢ).
    Node svd(const Node& x, const SvdOptions& options = {});

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
    /// function: the function of eigenvalues; rsqrt is 1 / sqrt; one of sqrt, rsqrt, log, exp.
    Node symmetric_function(const Node& x, const std::string& function);

    /// y[i, j, …] = x[index[i, j, …], j, …] for axis 0, and alike for the others: NumPy's take_along_axis.
    ///
    /// `index` has x's rank; off the axis the two broadcast, and on it y has the index's extent. Indices lie in [0,
    /// extent); with `from_end`, in [−extent, extent), and negative ones count from the end. PyTorch's
    /// `take_along_dim`, which takes no negative index, and JAX's `take_along_axis`, which does.
    ///
    /// Gradient: g added where it was read: repeated indices accumulate; none for index.
    Node take_along(const Node& x, const Node& index, const TakeAlongOptions& options = {});

    /// y = tan x.
    ///
    /// Gradient: g · (1 + y²).
    Node tan(const Node& x);

    /// y = tanh x.
    ///
    /// Gradient: g · (1 − y²).
    Node tanh(const Node& x);

    /// y = x repeated `repeats` times along each axis. As NumPy: the shorter of shape and repeats is led by ones.
    ///
    /// Gradient: g, summed over the repetitions.
    ///
    /// repeats: how many times, for each axis.
    Node tile(const Node& x, const std::vector<std::int64_t>& repeats);

    /// values, indices = the k largest entries of x along `axis`, largest first, and their int64 positions there.
    ///
    /// Of equal entries the one with the lowest index comes first; NaN counts as largest. Two results, read through
    /// get_output.
    ///
    /// It has several results, each read through get_output.
    ///
    /// Gradient: that of the values, put back where they came from; none for indices.
    ///
    /// k: how many, at most the axis's extent.
    Node topk(const Node& x, std::int64_t k, const TopkOptions& options = {});

    /// y = x with its axes permuted.
    ///
    /// Without `axes` the last two are swapped (born reverses all: give `axes`). As many entries as axes: y's axis i is
    /// x's axis axes[i]. Two entries on another rank: those two are swapped (minima).
    ///
    /// Gradient: g, permuted back.
    Node transpose(const Node& x, const TransposeOptions& options = {});

    /// y with t y = b, or tᵀ y = b where `transpose`; t is the lower (else the upper) triangle of a, with the diagonal.
    ///
    /// a [batch…, n, n]: the other triangle is ignored, whatever it holds. b [n], [batch…, n] or [batch…, n, m], read
    /// as in `solve`. Batch axes broadcast. Where the diagonal holds a 0, y is infinite or NaN. Integers compute in
    /// float64, float16 in float32. M. B. Giles, Collected matrix derivative results for forward and reverse mode
    /// algorithmic differentiation (2008).
    ///
    /// Gradient: db = t⁻ᴴ g, da = −(db yᴴ), its triangle; with transpose db = (conj t)⁻¹ g, da = −(conj y dbᵀ).
    Node triangular_solve(const Node& a, const Node& b, const TriangularSolveOptions& options = {});

    /// y = x on and below a diagonal of the last two axes, 0 above: y[…, i, j] = x[…, i, j] where j − i ≤ offset.
    ///
    /// Gradient: tril(g).
    Node tril(const Node& x, const TrilOptions& options = {});

    /// y = x on and above a diagonal of the last two axes, 0 below: y[…, i, j] = x[…, i, j] where j − i ≥ offset.
    ///
    /// Gradient: triu(g).
    Node triu(const Node& x, const TriuOptions& options = {});

    /// y = a / b without its fraction, elementwise, broadcasting: C's /, with the remainder `rem`. An integer by 0 is
    /// 0.
    ///
    /// PyTorch's `div` with rounding_mode trunc; JAX's `lax.div` of integers, which gives −1 for one by 0.
    ///
    /// Since opset 2.
    Node trunc_div(const Node& a, const Node& b);

    /// y = x with axes of extent 1 put in; `axes` are their positions in the result.
    ///
    /// Gradient: g, reshaped back.
    Node unsqueeze(const Node& x, const UnsqueezeOptions& options = {});

    /// y = x, with `update` in place of the box of its shape that begins at `starts`, one entry for each axis.
    ///
    /// A negative start counts from the end, as in slice; a box that reaches beyond x is refused, not moved. The result
    /// has the common dtype of x and update.
    ///
    /// Gradient: dx = g, zero where the update lies; d update = g there.
    ///
    /// starts: first position of the update on each axis.
    Node update_slice(const Node& x, const Node& update, const std::vector<std::int64_t>& starts);

    /// y = x, with `updates` in place of the box of its shape that begins at `starts`: int64 [rank], which are
    /// computed.
    ///
    /// Each start is moved into [0, extent − size], negative ones too, so that all of updates lies within. The result
    /// has the common dtype of x and updates. JAX's `lax.dynamic_update_slice`, which first counts negative starts from
    /// the end; PyTorch's `slice_scatter` takes a start on one axis, as a number.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = g, zero where the updates lie; d updates = g there; none for starts.
    Node update_slice_at(const Node& x, const Node& updates, const Node& starts);

    /// y = Σ (x − mean x)² / (n − ddof) over axes, n the number of elements reduced. Integers give float64.
    ///
    /// Computed in two passes, the mean first, so that a large mean costs no digits. Where n ≤ ddof it divides by zero,
    /// as NumPy does: NaN, or infinity.
    ///
    /// Gradient: g · 2 (x − mean x) / (n − ddof).
    Node var(const Node& x, const VarOptions& options = {});

    /// y = on_true where cond, else on_false; the three broadcast. A number as cond is true where it is not zero.
    ///
    /// Each branch gets the cotangent where it was chosen and exactly zero elsewhere, whatever the other branch holds.
    ///
    /// Gradient: d on_true = where(cond, g, 0), d on_false = where(cond, 0, g); none for cond.
    Node where(const Node& cond, const Node& on_true, const Node& on_false);

    /// carries = body(consts, carries), again and again while condition(consts, carries) holds.
    ///
    /// At most `max_steps` times. The condition gives a bool []; it is looked at before each step, and once more after
    /// the last one that is allowed. Results: the carries; `steps`, int64 [], those that ran; `finished`, bool [],
    /// false where the bound ended it. JAX's `lax.while_loop`, which has no bound, and is differentiated forwards
    /// alone; of PyTorch, a loop of Python.
    ///
    /// Since opset 2.
    ///
    /// It has several results, each read through get_output.
    ///
    /// Gradient: back over the steps that ran, each computed again; none by the condition, and none of `steps`.
    ///
    /// condition: of consts and carries: whether to go on, a bool [].
    ///
    /// body: of consts and carries: the carries after a step.
    ///
    /// max_steps: how many steps there may be at most.
    Node while_(
        const GraphFunction& condition,
        const GraphFunction& body,
        std::int64_t max_steps,
        const std::vector<Node>& operands,
        const WhileOptions& options = {});

    /// y = x · log(1 + y), broadcasting, accurate for small y; 0 where x = 0, whatever y is but NaN.
    ///
    /// As SciPy and PyTorch (`special.xlog1py`) have it; JAX has 0 for NaN, too. By x, the derivative is 0 where x = 0
    /// and y = −1, and where x = 0 and y < −1 it is NaN, as JAX's; by y, it is x / (1 + y) everywhere: NaN where x = 0
    /// and y = −1.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = g · log(1 + y), and 0 where x = 0 and y = −1; dy = g · x / (1 + y).
    Node xlog1py(const Node& x, const Node& y);

    /// y = x · log y, broadcasting; 0 where x = 0, whatever y is but NaN.
    ///
    /// As SciPy and PyTorch have it; JAX has 0 for NaN, too. By x, the derivative is 0 where x and y are, and where x =
    /// 0 and y < 0 it is NaN, as JAX's (PyTorch's is 0); by y, it is x / y everywhere: NaN where both are 0.
    ///
    /// Since opset 2.
    ///
    /// Gradient: dx = g · log y, and 0 where x = y = 0; dy = g · x / y.
    Node xlogy(const Node& x, const Node& y);

    /// y = ζ(s, q) = Σ (q + k)⁻ˢ over k ≥ 0, broadcasting, for s > 1: SciPy's, `torch.special.zeta`, JAX's `zeta`.
    ///
    /// ∞ at s = 1 and at q = 0, −1, −2, …; NaN for s < 1, and where q < 0 and s is no whole number. To 8 units where q
    /// > 0, SciPy's own on NumPy; below, as `polygamma`. Derivatives are of any order: those by q as accurate, those by
    /// s, of which PyTorch and JAX have none, to 1e-12 of the terms that they add up; by s and then by q, to a unit
    /// over s − 1.
    ///
    /// Since opset 2.
    ///
    /// Gradient: ds = −g · Σ log(q + k) (q + k)⁻ˢ, dq = −g · s · zeta(s + 1, q).
    Node zeta(const Node& s, const Node& q);

protected:
    explicit Ops(std::shared_ptr<GraphState> state) : Appender(std::move(state)) {}
};

}  // namespace gradserve
