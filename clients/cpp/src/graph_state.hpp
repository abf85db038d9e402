#pragma once

#include <gradserve/graph.hpp>

#include <cstddef>
#include <deque>
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

    /// As messages name it.
    [[nodiscard]] std::string describe(std::size_t id) const;
};

/// What the handles of a graph share. Its nodes do not move.
struct GraphState {
    std::optional<std::int64_t> opset;
    std::deque<NodeEntry> nodes;

    static GraphState& of(const Graph& graph) { return *graph.state_; }
};

/// A graph as the wire has it. Throws InputError; that it came with an answer is for the caller to say.
Graph graph_in(const Json* value);

/// Throws InputError for a node of another graph.
void check_owner(const Graph& graph, const Node& node);

}  // namespace gradserve
