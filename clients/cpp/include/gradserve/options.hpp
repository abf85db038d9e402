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

/// The timeout of what may take as long as it takes.
inline constexpr std::chrono::milliseconds without_end = std::chrono::milliseconds::max();

/// How products and convolutions may read float32 on a GPU, the most exact first; a processor computes float32.
enum class Precision { float32, tf32x3, tf32, bfloat16 };

/// What is made of many examples: nothing, their sum or their mean.
enum class Reduction { none, sum, mean };

// What is not stated is not sent. Designated initializers name no members of base classes, so each struct has all of
// its own. What they have in common:
//
// form           how tensors travel
// timeout        for all tries together; absent: the client's
// idempotency    whether a call that keeps something gets an Idempotency-Key; absent: as the client has it
// stop           has the call given up, with Cancelled
// extra          fields of the request that are newer than this client
// outputs        the nodes whose values come back; absent: the last one, or the one that is differentiated
// store          values that the server is to keep as resident tensors
// diagnose       has the server look for the first NaN or infinity
// memory_budget  how many bytes the call may take at most; absent: as the server has it
// precision      how float32 may be read; absent: as the server has it
// reduce         has the examples be added up; absent: each is by itself
// block          how many of them at a time; absent: as many as the server finds right
// of             is differentiated; absent: the last node
// wrt            the nodes to differentiate by; absent: all parameters

/// What Client::forward takes.
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

/// What Client::gradients takes.
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

/// What Client::vjp takes.
struct VjpOptions {
    /// One for each output.
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

/// What Client::jvp takes.
struct JvpOptions {
    /// Of leaves; others stay.
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

/// What Client::jacobian takes.
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

/// What Client::hvp takes.
struct HvpOptions {
    std::optional<Node> of{};
    Nodes wrt{};
    /// One for each node of `wrt`.
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

/// What Client::hessian takes.
struct HessianOptions {
    std::optional<Node> of{};
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

/// What Client::batch takes.
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

/// What Client::check takes.
struct CheckOptions {
    std::optional<Node> of{};
    Nodes wrt{};
    /// How many are compared, and how far apart they may be; absent: as the server has it.
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

/// What Client::plan takes.
struct PlanOptions {
    /// The one to plan, by its name on the wire.
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

/// What Client::differentiate takes.
struct DifferentiateOptions {
    std::optional<Node> of{};
    Nodes wrt{};
    std::optional<Form> form{};
    std::optional<std::chrono::milliseconds> timeout{};
    std::optional<bool> idempotency{};
    std::stop_token stop{};
    Json::Object extra{};
};

/// What Client::register_graph takes.
struct RegisterOptions {
    /// For people.
    std::string description{};
    std::optional<Form> form{};
    std::stop_token stop{};
};

/// What Client::put takes.
struct PutOptions {
    /// The etag that there has to be, "*" for any.
    std::string if_match{};
    /// The etag that there may not be: "*" demands that there is no tensor.
    std::string if_none_match{};
    /// False has the tensor be on disk some time after the answer.
    std::optional<bool> durable{};
    std::optional<Form> form{};
    std::stop_token stop{};
};

/// What Client::get takes.
struct GetOptions {
    /// The etag that there has to be.
    std::string if_match{};
    std::optional<Form> form{};
    std::stop_token stop{};
};

/// What Client::put_model takes.
struct PutModelOptions {
    /// The etag that there has to be, "*" for any.
    std::string if_match{};
    /// The etag that there may not be: "*" demands that there is no model.
    std::string if_none_match{};
    std::stop_token stop{};
};

/// What Client::remove and Client::remove_model take.
struct RemoveOptions {
    /// The etag that there has to be, "*" for any.
    std::string if_match{};
    std::stop_token stop{};
};

/// What listings take.
struct ListOptions {
    /// How many entries are asked for at a time; absent: as the server has it.
    std::optional<std::int64_t> limit{};
    std::stop_token stop{};
};

}  // namespace gradserve
