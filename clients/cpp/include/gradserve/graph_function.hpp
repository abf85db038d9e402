#pragma once

#include <gradserve/node.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gradserve {

/// A function of a graph. Pass it to the ops that run it, such as scan. Created by Graph::function.
class GraphFunction {
public:
    /// Returns the index of the function in the graph.
    [[nodiscard]] std::size_t index() const { return index_; }

    /// Returns the label for messages, if there is one.
    [[nodiscard]] const std::string& name() const;

    /// Returns the function's own graph. Nothing can be appended to it.
    [[nodiscard]] Graph body() const;

    /// Returns the parameters, in the order of the operands: the inputs of the body.
    [[nodiscard]] std::vector<Node> parameters() const;

    /// Returns the outputs, in the order of the results: nodes of the body, which may repeat.
    [[nodiscard]] std::vector<Node> outputs() const;

    /// Returns the function as messages name it, such as “function 0 ("euler")”.
    [[nodiscard]] std::string describe() const;

    /// Compares identity: the same function of the same graph.
    friend bool operator==(const GraphFunction&, const GraphFunction&) = default;

private:
    friend class Graph;
    friend struct GraphState;

    GraphFunction(std::shared_ptr<GraphState> body, std::size_t index) : body_(std::move(body)), index_(index) {}

    std::shared_ptr<GraphState> body_;
    std::size_t index_;
};

}  // namespace gradserve
