#pragma once

#include <gradserve/problem.hpp>

#include <string_view>

namespace gradserve {

/// Reads the problem report in a body; an empty one if there is none. A report has a code.
Problem problem_of(std::string_view text);

/// Throws a problem report as an exception. The status decides the class, not the code, because new codes are added.
[[noreturn]] void throw_refusal(const Problem& problem);

}  // namespace gradserve
