#pragma once

#include "tensors.hpp"

#include <gradserve/gradserve.hpp>

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace conformance {

/// Converts a value of a case, including values that JSON cannot represent.
gs::Json value_of(const json& stated);

/// Returns the nodes at some positions. "outer" stands for a node of the enclosing graph.
std::vector<gs::Node> operands_of(const gs::Graph& graph, gs::Graph& around, const json& places);

/// Returns the node at a position, or a node of another graph.
gs::Node node_of(const gs::Graph& graph, const json& place);

/// A call of the builder in a case.
class Step {
public:
    /// A step on a graph, or in a function of the enclosing graph.
    Step(const gs::Graph& graph, gs::Graph& around, const json& stated);

    [[nodiscard]] const std::string& op() const { return op_; }
    [[nodiscard]] std::string name() const { return stated_.value("name", ""); }

    [[nodiscard]] const gs::Node& operand(std::size_t place) const { return operands_.at(place); }
    [[nodiscard]] std::optional<gs::Node> operand_if_any(std::size_t place) const;
    [[nodiscard]] std::vector<gs::Node> operands_from(std::size_t place) const;

    /// Returns a required attribute.
    template <class T>
    [[nodiscard]] T attr(const char* name) const;

    /// Sets an option to an attribute, if the step has it.
    template <class T>
    void read(const char* name, std::optional<T>& option) const {
        if (has(name)) option = attr<T>(name);
    }
    void read(const char* name, gs::Ints& option) const;

    /// Appends an op by name.
    gs::Node any(gs::Graph& graph) const;

private:
    [[nodiscard]] bool has(const char* name) const { return attrs_.contains(name); }

    [[nodiscard]] gs::GraphFunction function(const json& stated) const;

    const json& stated_;
    std::string op_;
    json attrs_;
    std::vector<gs::Node> operands_;
    std::vector<gs::GraphFunction> functions_;
};

template <>
bool Step::attr(const char* name) const;
template <>
std::int64_t Step::attr(const char* name) const;
template <>
double Step::attr(const char* name) const;
template <>
gs::Number Step::attr(const char* name) const;
template <>
std::string Step::attr(const char* name) const;
template <>
gs::DType Step::attr(const char* name) const;
template <>
gs::Tensor Step::attr(const char* name) const;
template <>
gs::GraphFunction Step::attr(const char* name) const;
template <>
std::vector<std::int64_t> Step::attr(const char* name) const;

/// Calls the method of a step's op, or the generic method if there is none.
gs::Node appended(gs::Graph& graph, const Step& step);

/// Builds the graph of some steps.
gs::Graph graph_of(const json& of);

}  // namespace conformance
