#pragma once

#include <compare>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace gradserve {

class Graph;
struct GraphState;

/// A node of a graph: a handle to use as an operand, as a key of feeds, and to look up results. It keeps its graph
/// alive.
class Node {
public:
    /// Returns the position of the node in the graph.
    [[nodiscard]] std::size_t id() const { return id_; }

    /// Returns the name of the op.
    [[nodiscard]] const std::string& op() const;

    /// Returns the label for messages and lookups, if there is one.
    [[nodiscard]] const std::string& name() const;

    [[nodiscard]] Graph graph() const;

    /// Gives the node a name, for messages and lookups. Throws InputError for a name that is not UTF-8.
    const Node& named(std::string name) const;

    /// Returns the node as messages name it, such as “node 1 (mul, "product")”.
    [[nodiscard]] std::string describe() const;

    /// Compares identity: the same node of the same graph. To compare values, use graph.equal.
    friend bool operator==(const Node&, const Node&) = default;
    /// A total order: an arbitrary order of graphs, and the order of nodes within each.
    friend std::strong_ordering operator<=>(const Node&, const Node&) = default;

private:
    friend class Graph;
    friend class Appender;
    friend struct GraphState;

    Node(std::shared_ptr<GraphState> graph, std::size_t id) : graph_(std::move(graph)), id_(id) {}

    std::shared_ptr<GraphState> graph_;
    std::size_t id_;
};

// Operators append ops: add, sub, mul, div and neg; with plain numbers add_scalar, mul_scalar and div_scalar.

[[nodiscard]] Node operator-(const Node& x);
[[nodiscard]] Node operator+(const Node& a, const Node& b);
[[nodiscard]] Node operator-(const Node& a, const Node& b);
[[nodiscard]] Node operator*(const Node& a, const Node& b);
[[nodiscard]] Node operator/(const Node& a, const Node& b);
[[nodiscard]] Node operator+(const Node& x, double scalar);
[[nodiscard]] Node operator-(const Node& x, double scalar);
[[nodiscard]] Node operator*(const Node& x, double scalar);
[[nodiscard]] Node operator/(const Node& x, double scalar);
[[nodiscard]] Node operator+(double scalar, const Node& x);
[[nodiscard]] Node operator-(double scalar, const Node& x);
[[nodiscard]] Node operator*(double scalar, const Node& x);
[[nodiscard]] Node operator/(double scalar, const Node& x);

}  // namespace gradserve
