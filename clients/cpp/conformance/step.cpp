#include "step.hpp"

namespace conformance {

gs::Json value_of(const json& stated) {
    if (stated.is_array()) {
        gs::Json::List list;
        for (const json& each : stated) list.push_back(value_of(each));
        return list;
    }
    if (!stated.is_object()) return gs::Json::parse(stated.dump());
    if (stated.contains("int")) return gs::Json::parse(stated["int"].get<std::string>());
    if (stated.contains("float")) return std::stod(stated["float"].get<std::string>());
    if (stated.contains("hex")) return tensor_of(stated);
    gs::Json::Object object;
    for (const auto& [name, value] : stated.items()) object[name] = value_of(value);
    return object;
}

gs::Node node_of(const gs::Graph& graph, const json& place) {
    return place == "other" ? gs::Graph().input() : graph.node(place.get<std::size_t>());
}

std::vector<gs::Node> operands_of(const gs::Graph& graph, gs::Graph& around, const json& places) {
    std::vector<gs::Node> nodes;
    for (const json& place : places) nodes.push_back(place == "outer" ? around.input() : node_of(graph, place));
    return nodes;
}

Step::Step(const gs::Graph& graph, gs::Graph& around, const json& stated)
    : stated_(stated), op_(stated.at("op")), attrs_(stated.value("attrs", json::object())),
      operands_(operands_of(graph, around, stated.value("operands", json::array()))), functions_(graph.functions()) {}

std::optional<gs::Node> Step::operand_if_any(std::size_t place) const {
    return place < operands_.size() ? std::optional(operands_[place]) : std::nullopt;
}

std::vector<gs::Node> Step::operands_from(std::size_t place) const {
    return {operands_.begin() + static_cast<std::ptrdiff_t>(place), operands_.end()};
}

template <>
bool Step::attr(const char* name) const {
    return attrs_.at(name).get<bool>();
}

template <>
std::int64_t Step::attr(const char* name) const {
    return std::get<std::int64_t>(value_of(attrs_.at(name)).value());
}

template <>
double Step::attr(const char* name) const {
    const gs::Json value = value_of(attrs_.at(name));
    if (const auto* const whole = value.get_if<std::int64_t>()) return static_cast<double>(*whole);
    return std::get<double>(value.value());
}

template <>
gs::Number Step::attr(const char* name) const {
    const gs::Json value = value_of(attrs_.at(name));
    if (const auto* const whole = value.get_if<std::int64_t>()) return *whole;
    if (const auto* const large = value.get_if<std::uint64_t>()) return *large;
    return std::get<double>(value.value());
}

template <>
std::string Step::attr(const char* name) const {
    return attrs_.at(name).get<std::string>();
}

template <>
gs::DType Step::attr(const char* name) const {
    return attr<std::string>(name);
}

template <>
gs::Tensor Step::attr(const char* name) const {
    return tensor_of(attrs_.at(name));
}

/// Returns a function by index, or a function of another graph.
gs::GraphFunction Step::function(const json& stated) const {
    const json& index = stated.at("function");
    if (index.is_number()) return functions_.at(index.get<std::size_t>());
    return gs::Graph().function([](gs::Graph& body) { return std::vector{body.input()}; });
}

template <>
gs::GraphFunction Step::attr(const char* name) const {
    return function(attrs_.at(name));
}

template <>
std::vector<std::int64_t> Step::attr(const char* name) const {
    std::vector<std::int64_t> made;
    for (const json& each : attrs_.at(name)) made.push_back(std::get<std::int64_t>(value_of(each).value()));
    return made;
}

void Step::read(const char* name, gs::Ints& option) const {
    if (has(name)) option = attr<std::vector<std::int64_t>>(name);
}

gs::Node Step::any(gs::Graph& graph) const {
    gs::Attrs attrs;
    for (const auto& [name, value] : attrs_.items())
        attrs[name] = value.contains("function") ? gs::Json(function(value)) : value_of(value);
    return graph.op(op_, operands_, std::move(attrs));
}

/// Appends steps to a graph, or to a function of the enclosing graph.
static void append(gs::Graph& graph, gs::Graph& around, const json& steps) {
    for (const json& stated : steps) {
        const Step step(graph, around, stated);
        const gs::Node made = appended(graph, step);
        if (!step.name().empty()) made.named(step.name());
    }
}

gs::Graph graph_of(const json& of) {
    gs::Graph graph;
    if (of.contains("opset")) graph.set_opset(of["opset"].get<std::int64_t>());
    for (const json& stated : of.value("functions", json::array()))
        graph.function(stated.value("name", ""), [&](gs::Graph& body) {
            append(body, graph, stated.at("steps"));
            return operands_of(body, graph, stated.at("outputs"));
        });
    append(graph, graph, of.at("steps"));
    return graph;
}

}  // namespace conformance
