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

/// A node as a graph keeps it.
struct NodeEntry {
    std::string op;
    std::vector<std::int64_t> operands;
    Attrs attrs;
    std::string name;
};

/// What the handles of a graph share, or of the body of a function, which is kept by the graph around it. Nodes and
/// bodies do not move.
struct GraphState {
    std::optional<std::int64_t> opset;
    std::deque<NodeEntry> nodes;
    std::list<GraphState> bodies;
    /// Those that are complete, by index.
    std::vector<GraphState*> functions;

    /// The graph around a body; null for a graph itself.
    GraphState* around = nullptr;
    std::string function_name;
    /// Those of a complete function.
    std::optional<std::vector<std::size_t>> outputs;

    static GraphState& of(const Graph& graph) { return *graph.state_; }

    /// The graph itself, or that around a body.
    [[nodiscard]] const GraphState& whole() const { return around == nullptr ? *this : *around; }

    /// As messages name it, and one of its nodes.
    [[nodiscard]] std::string describe() const;
    [[nodiscard]] std::string describe(const NodeEntry& node, std::size_t id) const;

    /// Throws InputError for a node that is not of it, and for a function that is of another graph.
    void check(const Node& node) const;
    void check(const GraphFunction& function) const;
};

/// A graph as the wire has it. Throws InputError; that it came with an answer is for the caller to say.
Graph graph_in(const Json* value);

/// Throws InputError for a node of another graph.
void check_owner(const Graph& graph, const Node& node);

}  // namespace gradserve
