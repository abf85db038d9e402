#pragma once

#include <gradserve/graph.hpp>

#include <cstddef>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gradserve {

/// A node as a graph stores it.
struct NodeEntry {
    std::string op;
    std::vector<std::int64_t> operands;
    Attrs attrs;
    std::string name;
};

/// The state that all handles of a graph share, or of the body of a function, which the enclosing graph owns. Nodes and
/// bodies have stable addresses.
struct GraphState {
    std::optional<std::int64_t> opset;
    std::deque<NodeEntry> nodes;
    std::list<GraphState> bodies;
    /// The complete functions, by index.
    std::vector<GraphState*> functions;

    /// The graph that encloses a body; null for a graph itself.
    GraphState* around = nullptr;
    std::string function_name;
    /// The outputs of a complete function.
    std::optional<std::vector<std::size_t>> outputs;

    static GraphState& of(const Graph& graph) { return *graph.state_; }

    /// Returns the graph itself, or the one that encloses a body.
    [[nodiscard]] const GraphState& whole() const { return around == nullptr ? *this : *around; }

    /// Return the graph and one of its nodes as messages name them.
    [[nodiscard]] std::string describe() const;
    [[nodiscard]] std::string describe(const NodeEntry& node, std::size_t id) const;

    /// Throws InputError for a node or a function of another graph.
    void check(const Node& node) const;
    void check(const GraphFunction& function) const;
};

/// Reads a graph in the JSON form of the API. Throws InputError, which the caller converts.
Graph graph_in(const Json* value);

/// Throws InputError for a node of another graph.
void check_owner(const Graph& graph, const Node& node);

}  // namespace gradserve
