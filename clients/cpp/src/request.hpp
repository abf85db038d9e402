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

/// One that is to be sent. What keeps something is repeated under an Idempotency-Key alone; `takes_time` says whether
/// its query may have a timeout.
struct Request {
    std::string method;
    std::string path;
    std::map<std::string, std::string> query{};
    std::map<std::string, std::string> headers{};
    std::vector<Bytes> body{};
    bool takes_time = false;
    bool keeps = false;

    /// The path and the query, saying how much time is left.
    [[nodiscard]] std::string target(std::optional<std::chrono::milliseconds> left) const;
};

/// A call on the first nodes of a graph, which are not sent where they are registered.
Request computing(const std::string& call, const Graph& graph, std::size_t count, const Asked& asked,
                  bool is_registered);

/// The path of a call on a registered graph.
std::string path_on_graph(const std::string& call, const std::string& id);

/// Has the server keep a graph. To repeat it changes nothing.
Request registering(const Graph& graph, const RegisterOptions& options);

/// Has the server keep a tensor. Without a condition, to repeat it changes nothing.
Request putting(const std::string& name, const Tensor& tensor, const PutOptions& options);

/// Asks for a tensor: for its bytes, unless another form is asked for.
Request getting(const std::string& name, const std::string& if_none_match, const GetOptions& options);

/// Has the server keep a model. Without a condition, to repeat it changes nothing.
Request putting_model(const std::string& name, const Json::Object& stated, const PutModelOptions& options);

Request deleting(const std::string& path, const std::string& if_match);

/// Asks for a page, from behind an entry on.
Request listing(const std::string& kind, std::optional<std::int64_t> limit, const std::string& after);

// Paths; they throw InputError for an empty name, whose path would be that of the listing.

std::string tensor_path(const std::string& name);
std::string graph_path(const std::string& id);
std::string model_path(const std::string& name);

}  // namespace gradserve
