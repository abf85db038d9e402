#pragma once

#include <compare>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace gradserve {

class Graph;
struct GraphState;

/// A node of a graph: the handle under which it is an operand, is fed, and has its results looked up. It keeps its
/// graph.
class Node {
public:
    /// The place of the node in the list of nodes.
    [[nodiscard]] std::size_t id() const { return id_; }

    /// The name of its op.
    [[nodiscard]] const std::string& op() const;

    /// A label for messages and look-ups, if there is one.
    [[nodiscard]] const std::string& name() const;

    [[nodiscard]] Graph graph() const;

    /// Gives it a name, which refers to nothing. Throws InputError for one that is not in UTF-8.
    const Node& named(std::string name) const;

    /// As messages name it, such as “node 1 (mul, "product")”.
    [[nodiscard]] std::string describe() const;

    /// Whether it is the same node of the same graph: comparing values is graph.equal.
    friend bool operator==(const Node&, const Node&) = default;
    /// Some order of graphs, and within each the order of nodes.
    friend std::strong_ordering operator<=>(const Node&, const Node&) = default;

private:
    friend class Graph;
    friend class Appender;
    friend struct GraphState;

    Node(std::shared_ptr<GraphState> graph, std::size_t id) : graph_(std::move(graph)), id_(id) {}

    std::shared_ptr<GraphState> graph_;
    std::size_t id_;
};

// The ops that operators stand for: add, sub, mul, div and neg; with plain numbers add_scalar, mul_scalar and
// div_scalar.

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
