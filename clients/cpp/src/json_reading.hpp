#pragma once

#include <gradserve/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace gradserve {

enum class Names { may_repeat, are_distinct };

/// The object that a JSON text is. Throws InputError where it is none, and where a name is in an object twice, if
/// they are to be distinct; otherwise the last one counts.
Json::Object parsed_object(std::string_view text, Names names = Names::may_repeat);

// What a value is, where it is to be that. They throw InputError where it is something else, or absent (null).

const Json::Object& object_in(const Json* value);
const Json::List& list_in(const Json* value);
const std::string& text_in(const Json* value);
std::int64_t whole_in(const Json* value);
double number_in(const Json* value);
bool truth_in(const Json* value);
Shape shape_in(const Json* value);

/// The member of an object; null where it has none, or the JSON null.
const Json* member(const Json::Object& object, std::string_view name);

/// The member of an object, which is taken out of it; null where it has none.
Json taken(Json::Object& object, std::string_view name);

}  // namespace gradserve
