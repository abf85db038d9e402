#pragma once

#include <gradserve/generated/ops.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gradserve {

/// A computation graph. Every method for an op appends a node and returns its handle.
///
/// The body of a function is also a graph, which is sent with the enclosing one.
///
/// Copies are handles of the same graph. One thread at a time can build it. Any number can then make calls with it.
class Graph : public Ops {
public:
    /// Creates a graph without nodes.
    Graph();

    /// Sets the opset. By default, the client sends the lowest opset that has everything the graph uses.
    void set_opset(std::int64_t version);
    [[nodiscard]] std::optional<std::int64_t> opset() const;

    /// A callback that appends the nodes of a function to its own graph, and returns the outputs, which may repeat.
    using Body = std::function<std::vector<Node>(Graph& body)>;

    /// Adds a function that ops such as scan run. `body` receives a graph of its own, whose inputs are the parameters,
    /// in order. It cannot use nodes of other graphs. It can use functions that were added before it, and define
    /// functions itself. Throws InputError if an output is not a node of the function.
    GraphFunction function(const Body& write) { return function({}, write); }
    GraphFunction function(std::string name, const Body& write);

    /// Returns the functions by index.
    [[nodiscard]] std::vector<GraphFunction> functions() const;

    /// Returns the number of nodes.
    [[nodiscard]] std::size_t size() const;

    /// Returns all nodes by id.
    [[nodiscard]] std::vector<Node> nodes() const;

    /// Returns the node with an id, which is its position in the graph. Throws InputError if there is none.
    [[nodiscard]] Node node(std::size_t id) const;

    /// Returns the node with a name. Throws InputError if there is none, or several.
    [[nodiscard]] Node find(std::string_view name) const;

    /// Returns whether a node belongs to this graph.
    [[nodiscard]] bool owns(const Node& node) const { return node.graph_ == state_; }

    /// Returns the graph in the JSON form of the API, with tensors as base64.
    [[nodiscard]] std::string text() const;

    /// Reads a graph in the JSON form of the API. Ops can be unknown to this client. Throws MalformedAnswer.
    [[nodiscard]] static Graph parse(std::string_view text);

    friend bool operator==(const Graph& one, const Graph& other) { return one.state_ == other.state_; }

private:
    friend class Node;
    friend class GraphFunction;
    friend struct GraphState;

    explicit Graph(std::shared_ptr<GraphState> state) : Ops(std::move(state)) {}
};

}  // namespace gradserve
