#pragma once

#include <gradserve/graph.hpp>
#include <gradserve/json.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace gradserve {

struct RegisteredState;

/// A registered graph. Pass it to calls in place of a graph: it is not sent again.
///
/// The first call that uses it registers it, unless it is registered already. If the server no longer has the graph,
/// the call registers it again. It is the graph as it was: nodes appended later are not part of it. Copies are handles
/// of the same graph, which threads can share.
class RegisteredGraph {
public:
    explicit RegisteredGraph(std::shared_ptr<RegisteredState> state) : state_(std::move(state)) {}

    /// Returns the hash of the graph; empty until the graph is registered.
    [[nodiscard]] std::string id() const;

    /// Returns the graph itself.
    [[nodiscard]] const Graph& graph() const;

    /// Returns the server's response by API names, without the graph; empty until the graph is registered.
    [[nodiscard]] Json::Object fields() const;

private:
    friend struct RegisteredState;

    std::shared_ptr<RegisteredState> state_;
};

/// A graph or a registered graph, which calls run on.
using Computable = std::variant<Graph, RegisteredGraph>;

/// The metadata of a registered graph.
struct GraphSummary {
    std::string id;
    std::string description;
    std::int64_t node_count = 0;
};

}  // namespace gradserve
