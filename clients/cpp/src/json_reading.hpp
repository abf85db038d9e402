#pragma once

#include <gradserve/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace gradserve {

enum class Names { may_repeat, are_distinct };

/// Parses a JSON object. Throws InputError if the text is not one. If an object repeats a name, the last one counts or,
/// with `Names::are_distinct`, it throws InputError.
Json::Object parsed_object(std::string_view text, Names names = Names::may_repeat);

// Conversions of a value to a type. They throw InputError if the value has another type, or is absent (null).

const Json::Object& object_in(const Json* value);
const Json::List& list_in(const Json* value);
const std::string& text_in(const Json* value);
std::int64_t whole_in(const Json* value);
double number_in(const Json* value);
bool truth_in(const Json* value);
Shape shape_in(const Json* value);

/// Returns a member of an object; null if it is absent or the JSON null.
const Json* member(const Json::Object& object, std::string_view name);

/// Removes a member from an object and returns it; null if it is absent.
Json taken(Json::Object& object, std::string_view name);

}  // namespace gradserve
