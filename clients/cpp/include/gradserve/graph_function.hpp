#pragma once

#include <gradserve/node.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gradserve {

/// A function of a graph, which is told to the ops that run it, such as scan. Graph::function makes it.
class GraphFunction {
public:
    /// The place of the function in the list of functions.
    [[nodiscard]] std::size_t index() const { return index_; }

    /// A label for messages, if there is one.
    [[nodiscard]] const std::string& name() const;

    /// What it was written as. Nothing can be appended any more.
    [[nodiscard]] Graph body() const;

    /// What it takes, in the order of operands: the inputs of its body.
    [[nodiscard]] std::vector<Node> parameters() const;

    /// What it gives, in the order of results: nodes of its body, which may repeat.
    [[nodiscard]] std::vector<Node> outputs() const;

    /// As messages name it, such as “function 0 ("euler")”.
    [[nodiscard]] std::string describe() const;

    /// Whether it is the same function of the same graph.
    friend bool operator==(const GraphFunction&, const GraphFunction&) = default;

private:
    friend class Graph;
    friend struct GraphState;

    GraphFunction(std::shared_ptr<GraphState> body, std::size_t index) : body_(std::move(body)), index_(index) {}

    std::shared_ptr<GraphState> body_;
    std::size_t index_;
};

}  // namespace gradserve
