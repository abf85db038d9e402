#pragma once

#include <gradserve/generated/ops.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gradserve {

/// A computation graph. Every method that is an op appends a node and returns its handle.
///
/// The body of a function is written as a graph is, and is sent with the one around it.
///
/// Copies are the same graph. It is built by one thread at a time; when it is built, any number may call with it.
class Graph : public Ops {
public:
    /// A graph without nodes.
    Graph();

    /// The version of the set of ops. A graph that is told none says by itself which it needs, where that is not the
    /// first.
    void set_opset(std::int64_t version);
    [[nodiscard]] std::optional<std::int64_t> opset() const;

    /// Writes the body of a function on a graph of its own, and returns its outputs, which may repeat.
    using Body = std::function<std::vector<Node>(Graph& body)>;

    /// Appends a function, which ops such as scan run. It is written as a graph is: its inputs are its parameters, in
    /// their order, and it sees no other nodes but its own. It may use the functions that are there, and have functions
    /// in it. Throws InputError for outputs that are no nodes of it.
    GraphFunction function(const Body& write) { return function({}, write); }
    GraphFunction function(std::string name, const Body& write);

    /// The functions, by index.
    [[nodiscard]] std::vector<GraphFunction> functions() const;

    /// The number of nodes.
    [[nodiscard]] std::size_t size() const;

    /// All nodes, by id.
    [[nodiscard]] std::vector<Node> nodes() const;

    /// The node of an id, which is its place in the list of nodes. Throws InputError where there is none.
    [[nodiscard]] Node node(std::size_t id) const;

    /// The node of a name. Throws InputError where there is none, or there are several.
    [[nodiscard]] Node find(std::string_view name) const;

    /// Whether a node is of this graph.
    [[nodiscard]] bool owns(const Node& node) const { return node.graph_ == state_; }

    /// The graph as it would be sent, its tensors in it as base64.
    [[nodiscard]] std::string text() const;

    /// Reads a graph as the wire has it, whatever its ops are. Throws MalformedAnswer.
    [[nodiscard]] static Graph parse(std::string_view text);

    friend bool operator==(const Graph& one, const Graph& other) { return one.state_ == other.state_; }

private:
    friend class Node;
    friend class GraphFunction;
    friend struct GraphState;

    explicit Graph(std::shared_ptr<GraphState> state) : Ops(std::move(state)) {}
};

}  // namespace gradserve
