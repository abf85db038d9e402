#pragma once

#include "graph_state.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gradserve {

/// Of a graph that does not say: a server has no later op or dtype in it.
inline constexpr std::int64_t first_opset = 1;

/// The first that has functions.
inline constexpr std::int64_t opset_of_functions = 2;

/// The opset that graphs have an op since.
std::int64_t opset_of_name(std::string_view name);

/// The opset that graphs have a dtype since; the first for a word that this client does not know.
std::int64_t opset_of_dtype(std::string_view word);

/// What the first nodes of a graph say, and its functions: what is stated, or else the first that has all of their ops
/// and dtypes. Absent where nothing is to be said.
std::optional<std::int64_t> opset_of(const GraphState& graph, std::size_t count);

}  // namespace gradserve
