#pragma once

#include "graph_state.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gradserve {

/// The opset of a graph that states none: the server rejects newer ops and dtypes in it.
inline constexpr std::int64_t first_opset = 1;

/// The first opset with functions.
inline constexpr std::int64_t opset_of_functions = 2;

/// Returns the first opset with an op.
std::int64_t opset_of_name(std::string_view name);

/// Returns the first opset with a dtype; opset 1 for a name that this client does not know.
std::int64_t opset_of_dtype(std::string_view word);

/// Returns the opset of the first nodes of a graph and its functions: the stated one, or else the lowest with all of
/// their ops and dtypes. Absent if the graph need not state it.
std::optional<std::int64_t> opset_of(const GraphState& graph, std::size_t count);

}  // namespace gradserve
