#pragma once

#include "asked.hpp"
#include "message.hpp"

#include <gradserve/graph.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gradserve {

/// A request to send. A request that `keeps` (stores) something is retried only under an Idempotency-Key.
struct Request {
    std::string method;
    std::string path;
    std::map<std::string, std::string> query{};
    std::map<std::string, std::string> headers{};
    std::vector<Bytes> body{};
    bool keeps = false;

    /// Returns the path and the query with the remaining time.
    [[nodiscard]] std::string target(std::optional<std::chrono::milliseconds> left) const;
};

/// Builds a call on the first nodes of a graph. The nodes of a registered graph are not sent.
Request computing(const std::string& call, const Graph& graph, std::size_t count, const Asked& asked,
                  bool is_registered);

/// Returns the path of a call on a registered graph.
std::string path_on_graph(const std::string& call, const std::string& id);

/// Builds the request that registers a graph. Repeating it changes nothing.
Request registering(const Graph& graph, const RegisterOptions& options);

/// Builds the request that stores a tensor. Without a condition, repeating it changes nothing.
Request putting(const std::string& name, const Tensor& tensor, const PutOptions& options);

/// Builds the request that downloads a tensor, as safetensors unless another form is given.
Request getting(const std::string& name, const std::string& if_none_match, const GetOptions& options);

/// Builds the request that stores a model. Without a condition, repeating it changes nothing.
Request putting_model(const std::string& name, const Json::Object& stated, const PutModelOptions& options);

Request deleting(const std::string& path, const std::string& if_match);

/// Builds the request for a page, which starts after an entry.
Request listing(const std::string& kind, std::optional<std::int64_t> limit, const std::string& after);

// Paths. They throw InputError for an empty name, whose path would be that of the listing.

std::string tensor_path(const std::string& name);
std::string graph_path(const std::string& id);
std::string model_path(const std::string& name);

}  // namespace gradserve
