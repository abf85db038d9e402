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

/// A graph that the server keeps, and that stands wherever a call takes a graph: it is not sent again.
///
/// It is registered by the first call that needs it, unless it is already, and once more by one that finds it
/// forgotten. It is the graph as it was: nodes that are appended later are not part of it. Copies are the same one;
/// threads may share it.
class RegisteredGraph {
public:
    explicit RegisteredGraph(std::shared_ptr<RegisteredState> state) : state_(std::move(state)) {}

    /// The hash of the graph; empty as long as the server was not asked.
    [[nodiscard]] std::string id() const;

    /// The graph itself.
    [[nodiscard]] const Graph& graph() const;

    /// What the server answered, by names on the wire, but for the graph; empty as long as it was not asked.
    [[nodiscard]] Json::Object fields() const;

private:
    friend struct RegisteredState;

    std::shared_ptr<RegisteredState> state_;
};

/// What calls are made on.
using Computable = std::variant<Graph, RegisteredGraph>;

/// A graph that the server keeps, without itself.
struct GraphSummary {
    std::string id;
    std::string description;
    std::int64_t node_count = 0;
};

}  // namespace gradserve
