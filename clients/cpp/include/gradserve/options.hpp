#pragma once

#include <gradserve/encoding.hpp>
#include <gradserve/feeds.hpp>
#include <gradserve/json.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

namespace gradserve {

/// A timeout without limit.
inline constexpr std::chrono::milliseconds without_end = std::chrono::milliseconds::max();

/// The precision of float32 matrix products and convolutions on a GPU, most exact first. CPUs always compute in
/// float32.
enum class Precision { float32, tf32x3, tf32, bfloat16 };

/// The layout of a Hessian: a block for each pair of nodes, or one matrix over all nodes of `wrt`.
enum class HessianLayout { blocks, matrix };

/// How the results of many examples are combined: not at all, summed, or averaged.
enum class Reduction { none, sum, mean };

// Options that you do not set are not sent. Designated initializers cannot name members of base classes, so each struct
// repeats the common options:
//
// form           encoding of tensors
// timeout        time limit for all attempts together; absent: the client's
// idempotency    whether a call that stores something sends an Idempotency-Key; absent: the client's setting
// stop           cancels the call, which then throws Cancelled
// extra          fields of the request that are newer than this client
// outputs        nodes whose values are returned; absent: the last one, or the differentiated one
// store          values to store as resident tensors
// diagnose       reports the first NaN or infinity
// memory_budget  limit on the memory of the call in bytes; absent: the server's limit
// precision      precision of float32 computations; absent: the server's setting
// reduce         how the results of the examples are combined; absent: not at all
// block          how many examples are combined at a time; absent: the server chooses
// of             node to differentiate; absent: the last node
// wrt            nodes to differentiate with respect to; absent: all parameters

/// Options of Client::forward.
struct ForwardOptions {
    Nodes outputs{};
    Stores store{};
    bool diagnose = false;
    std::optional<std::int64_t> memory_budget{};
    std::optional<Precision> precision{};
    std::optional<Form> form{};
    std::optional<std::chrono::milliseconds> timeout{};
    std::optional<bool> idempotency{};
    std::stop_token stop{};
    Json::Object extra{};
};

/// Options of Client::gradients.
struct GradientsOptions {
    std::optional<Node> of{};
    Nodes wrt{};
    /// The weights of the elements of `of`.
    std::optional<Tensor> cotangent{};
    Nodes outputs{};
    Stores store{};
    bool diagnose = false;
    std::optional<std::int64_t> memory_budget{};
    std::optional<Precision> precision{};
    std::optional<Form> form{};
    std::optional<std::chrono::milliseconds> timeout{};
    std::optional<bool> idempotency{};
    std::stop_token stop{};
    Json::Object extra{};
};

/// Options of Client::vjp.
struct VjpOptions {
    /// A cotangent for each output.
    Feeds cotangents{};
    Nodes wrt{};
    /// Whether every cotangent has a leading axis.
    bool batched = false;
    Nodes outputs{};
    Stores store{};
    bool diagnose = false;
    std::optional<std::int64_t> memory_budget{};
    std::optional<Precision> precision{};
    std::optional<Form> form{};
    std::optional<std::chrono::milliseconds> timeout{};
    std::optional<bool> idempotency{};
    std::stop_token stop{};
    Json::Object extra{};
};

/// Options of Client::jvp.
struct JvpOptions {
    /// Tangents of leaves. Leaves without a tangent are held constant.
    Feeds tangents{};
    Nodes outputs{};
    Stores store{};
    bool diagnose = false;
    std::optional<std::int64_t> memory_budget{};
    std::optional<Precision> precision{};
    std::optional<Form> form{};
    std::optional<std::chrono::milliseconds> timeout{};
    std::optional<bool> idempotency{};
    std::stop_token stop{};
    Json::Object extra{};
};

/// Options of Client::jacobian.
struct JacobianOptions {
    Nodes wrt{};
    Nodes outputs{};
    Stores store{};
    bool diagnose = false;
    std::optional<std::int64_t> memory_budget{};
    std::optional<Precision> precision{};
    std::optional<Form> form{};
    std::optional<std::chrono::milliseconds> timeout{};
    std::optional<bool> idempotency{};
    std::stop_token stop{};
    Json::Object extra{};
};

/// Options of Client::hvp.
struct HvpOptions {
    std::optional<Node> of{};
    Nodes wrt{};
    /// A vector for each node of `wrt`.
    Feeds vectors{};
    Nodes outputs{};
    Stores store{};
    bool diagnose = false;
    std::optional<std::int64_t> memory_budget{};
    std::optional<Precision> precision{};
    std::optional<Form> form{};
    std::optional<std::chrono::milliseconds> timeout{};
    std::optional<bool> idempotency{};
    std::stop_token stop{};
    Json::Object extra{};
};

/// Options of Client::hessian.
struct HessianOptions {
    std::optional<Node> of{};
    Nodes wrt{};
    /// Absent: blocks. For a matrix, the nodes of `wrt` must have the same dtype.
    std::optional<HessianLayout> layout{};
    Nodes outputs{};
    Stores store{};
    bool diagnose = false;
    std::optional<std::int64_t> memory_budget{};
    std::optional<Precision> precision{};
    std::optional<Form> form{};
    std::optional<std::chrono::milliseconds> timeout{};
    std::optional<bool> idempotency{};
    std::stop_token stop{};
    Json::Object extra{};
};

/// Options of Client::batch.
struct BatchOptions {
    std::optional<Node> of{};
    Nodes wrt{};
    /// The leaves whose feeds have a leading axis.
    Nodes mapped{};
    std::optional<Reduction> reduce{};
    std::optional<std::int64_t> block{};
    Nodes outputs{};
    Stores store{};
    bool diagnose = false;
    std::optional<std::int64_t> memory_budget{};
    std::optional<Precision> precision{};
    std::optional<Form> form{};
    std::optional<std::chrono::milliseconds> timeout{};
    std::optional<bool> idempotency{};
    std::stop_token stop{};
    Json::Object extra{};
};

/// Options of Client::check.
struct CheckOptions {
    std::optional<Node> of{};
    Nodes wrt{};
    /// The number of directions to compare, and the largest error that passes; absent: the server's defaults.
    std::optional<std::int64_t> directions{};
    std::optional<double> tolerance{};
    std::optional<std::int64_t> memory_budget{};
    std::optional<Precision> precision{};
    std::optional<Form> form{};
    std::optional<std::chrono::milliseconds> timeout{};
    std::optional<bool> idempotency{};
    std::stop_token stop{};
    Json::Object extra{};
};

/// Options of Client::plan.
struct PlanOptions {
    /// The API name of the call to plan.
    std::optional<std::string> call{};
    std::optional<Node> of{};
    Nodes wrt{};
    Nodes mapped{};
    std::optional<Reduction> reduce{};
    std::optional<std::int64_t> block{};
    Nodes outputs{};
    std::optional<std::int64_t> memory_budget{};
    std::optional<Precision> precision{};
    std::optional<Form> form{};
    std::optional<std::chrono::milliseconds> timeout{};
    std::optional<bool> idempotency{};
    std::stop_token stop{};
    Json::Object extra{};
};

/// Options of Client::differentiate.
struct DifferentiateOptions {
    std::optional<Node> of{};
    Nodes wrt{};
    std::optional<Form> form{};
    std::optional<std::chrono::milliseconds> timeout{};
    std::optional<bool> idempotency{};
    std::stop_token stop{};
    Json::Object extra{};
};

/// Options of Client::register_graph.
struct RegisterOptions {
    /// A text for people.
    std::string description{};
    std::optional<Form> form{};
    std::stop_token stop{};
};

/// Options of Client::put.
struct PutOptions {
    /// The etag that the stored version must have, or "*" for any.
    std::string if_match{};
    /// The etag that the stored version must not have. "*" requires that the tensor does not exist.
    std::string if_none_match{};
    /// If false, the server may respond before the tensor is on disk.
    std::optional<bool> durable{};
    std::optional<Form> form{};
    std::stop_token stop{};
};

/// Options of Client::get.
struct GetOptions {
    /// The etag that the stored version must have.
    std::string if_match{};
    std::optional<Form> form{};
    std::stop_token stop{};
};

/// Options of Client::put_model.
struct PutModelOptions {
    /// The etag that the stored version must have, or "*" for any.
    std::string if_match{};
    /// The etag that the stored version must not have. "*" requires that the model does not exist.
    std::string if_none_match{};
    std::stop_token stop{};
};

/// Options of Client::remove and Client::remove_model.
struct RemoveOptions {
    /// The etag that the stored version must have, or "*" for any.
    std::string if_match{};
    std::stop_token stop{};
};

/// Options of listings.
struct ListOptions {
    /// The number of entries per page; absent: the server's default.
    std::optional<std::int64_t> limit{};
    std::stop_token stop{};
};

}  // namespace gradserve
