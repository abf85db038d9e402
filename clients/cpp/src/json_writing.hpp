#pragma once

#include <gradserve/encoding.hpp>
#include <gradserve/json.hpp>

#include <string>

namespace gradserve {

/// A value as JSON text, the tensors in it in this form. Throws InputError for numbers and strings that JSON lacks.
std::string written(const Json& value, Form form);

/// Throws InputError where a value, apart from its tensors, cannot be written.
void check_that_json_has(const Json& value);

/// As `written`, behind what there is.
void append_json(std::string& text, const Json& value, Form form);

/// A number that is finite: −0 is written with a point, since -0 is a whole number.
void append_number(std::string& text, double number);
void append_number(std::string& text, std::int64_t number);

}  // namespace gradserve
