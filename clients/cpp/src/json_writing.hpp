#pragma once

#include <gradserve/encoding.hpp>
#include <gradserve/json.hpp>

#include <string>

namespace gradserve {

/// Returns a value as JSON text, with its tensors in this form. Throws InputError for numbers and strings that JSON
/// cannot represent.
std::string written(const Json& value, Form form);

/// Throws InputError if a value, apart from its tensors, cannot be written.
void check_that_json_has(const Json& value);

/// Appends what `written` returns.
void append_json(std::string& text, const Json& value, Form form);

/// Writes a finite number. −0 gets a decimal point, because -0 is an integer.
void append_number(std::string& text, double number);
void append_number(std::string& text, std::int64_t number);

}  // namespace gradserve
