#pragma once

#include <gradserve/problem.hpp>

#include <string_view>

namespace gradserve {

/// The report that a body is; an empty one where it is none, since a report has a code.
Problem problem_of(std::string_view text);

/// Throws the error that says what to do about a report; the status decides, since codes are added.
[[noreturn]] void throw_refusal(const Problem& problem);

}  // namespace gradserve
