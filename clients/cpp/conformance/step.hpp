#pragma once

#include "tensors.hpp"

#include <gradserve/gradserve.hpp>

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace conformance {

/// A value of a case as the client takes it, also where JSON may not keep it.
gs::Json value_of(const json& stated);

/// The nodes of places, where "outer" is one of the graph around.
std::vector<gs::Node> operands_of(const gs::Graph& graph, gs::Graph& around, const json& places);

/// A node by its place, or one of another graph.
gs::Node node_of(const gs::Graph& graph, const json& place);

/// One call of the builder, as a case states it.
class Step {
public:
    /// A step on a graph, or in a function of the one around.
    Step(const gs::Graph& graph, gs::Graph& around, const json& stated);

    [[nodiscard]] const std::string& op() const { return op_; }
    [[nodiscard]] std::string name() const { return stated_.value("name", ""); }

    [[nodiscard]] const gs::Node& operand(std::size_t place) const { return operands_.at(place); }
    [[nodiscard]] std::optional<gs::Node> operand_if_any(std::size_t place) const;
    [[nodiscard]] std::vector<gs::Node> operands_from(std::size_t place) const;

    /// An attribute that is required.
    template <class T>
    [[nodiscard]] T attr(const char* name) const;

    /// An attribute into an option, if it is stated.
    template <class T>
    void read(const char* name, std::optional<T>& option) const {
        if (has(name)) option = attr<T>(name);
    }
    void read(const char* name, gs::Ints& option) const;

    /// Appends the op by its name.
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

/// Calls the method of a step's op, or for one that has none the method of any.
gs::Node appended(gs::Graph& graph, const Step& step);

/// The graph that steps give.
gs::Graph graph_of(const json& of);

}  // namespace conformance
