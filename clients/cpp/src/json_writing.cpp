#include "json_writing.hpp"

#include "tensor_json.hpp"

#include <gradserve/errors.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace gradserve {

template <class T>
static void append_digits(std::string& text, T number) {
    std::array<char, 32> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    text.append(digits.data(), end);
}

void append_number(std::string& text, std::int64_t number) { append_digits(text, number); }

void append_number(std::string& text, double number) {
    if (number == 0 && std::signbit(number)) text += "-0.0";
    else append_digits(text, number);
}

static void append_string(std::string& text, const std::string& value) {
    try {
        text += nlohmann::json(value).dump();
    } catch (const nlohmann::json::type_error&) {
        throw InputError("a string is not valid UTF-8");
    }
}

namespace {

/// A writer with an overload for each type of value.
struct Writer {
    std::string& text;
    Form form;

    void operator()(std::nullptr_t) const { text += "null"; }
    void operator()(bool truth) const { text += truth ? "true" : "false"; }
    void operator()(std::int64_t whole) const { append_digits(text, whole); }
    void operator()(std::uint64_t whole) const { append_digits(text, whole); }
    void operator()(double number) const {
        if (!std::isfinite(number)) throw InputError("JSON cannot represent " + std::to_string(number));
        append_number(text, number);
    }
    void operator()(const Json::Digits& digits) const { text += digits.text; }
    void operator()(const std::string& value) const { append_string(text, value); }
    void operator()(const Json::List& list) const {
        text += '[';
        for (const char* separator = ""; const Json& each : list) {
            text += std::exchange(separator, ",");
            append_json(text, each, form);
        }
        text += ']';
    }
    void operator()(const Json::Object& object) const {
        text += '{';
        for (const char* separator = ""; const auto& [name, value] : object) {
            text += std::exchange(separator, ",");
            append_string(text, name);
            text += ':';
            append_json(text, value, form);
        }
        text += '}';
    }
    void operator()(const Tensor& tensor) const { append_tensor(text, tensor, form); }
    void operator()(const GraphFunction& function) const { append_digits(text, function.index()); }
};

}  // namespace

void append_json(std::string& text, const Json& value, Form form) { std::visit(Writer{text, form}, value.value()); }

std::string written(const Json& value, Form form) {
    std::string text;
    append_json(text, value, form);
    return text;
}

std::string Json::text() const { return written(*this, Form::base64); }

const Json* Json::find(std::string_view name) const {
    const auto* const object = get_if<Object>();
    if (object == nullptr) return nullptr;
    const auto found = object->find(name);
    return found == object->end() ? nullptr : &found->second;
}

void check_that_json_has(const Json& value) {
    if (const auto* const list = value.get_if<Json::List>()) {
        for (const Json& each : *list) check_that_json_has(each);
    } else if (const auto* const object = value.get_if<Json::Object>()) {
        for (const auto& [name, each] : *object) {
            check_that_json_has(name);
            check_that_json_has(each);
        }
    } else if (value.get_if<Tensor>() == nullptr) {
        static_cast<void>(value.text());
    }
}

}  // namespace gradserve
