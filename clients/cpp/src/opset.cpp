#include "opset.hpp"

#include <algorithm>
#include <string>

namespace gradserve {

/// Returns the first opset with the node's op, attributes and dtypes.
static std::int64_t opset_of_node(const NodeEntry& node) {
    std::int64_t needed = opset_of_name(node.op);
    for (const auto& [name, value] : node.attrs) {
        needed = std::max(needed, opset_of_name(node.op + "." + name));
        if (const auto* const tensor = value.get_if<Tensor>())
            needed = std::max(needed, opset_of_dtype(tensor->dtype().word()));
        else if (const auto* const word = value.get_if<std::string>(); word != nullptr && name == "dtype")
            needed = std::max(needed, opset_of_dtype(*word));
    }
    return needed;
}

std::optional<std::int64_t> opset_of(const GraphState& graph, std::size_t count) {
    if (graph.opset) return graph.opset;
    std::int64_t needed = first_opset;
    for (std::size_t id = 0; id < count; ++id) needed = std::max(needed, opset_of_node(graph.nodes[id]));
    for (const GraphState* const body : graph.functions) {
        needed = std::max(needed, opset_of_functions);
        for (const NodeEntry& node : body->nodes) needed = std::max(needed, opset_of_node(node));
    }
    return needed > first_opset ? std::optional(needed) : std::nullopt;
}

}  // namespace gradserve
