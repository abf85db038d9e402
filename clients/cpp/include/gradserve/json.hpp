#pragma once

#include <gradserve/dtype.hpp>
#include <gradserve/graph_function.hpp>
#include <gradserve/tensor.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace gradserve {

/// A JSON value: an attribute of an op, or a part of a response. Integers keep all of their digits. It can contain
/// tensors, which are written in the JSON form of the API, and functions, which are written as their indices.
class Json {
public:
    using List = std::vector<Json>;
    using Object = std::map<std::string, Json, std::less<>>;

    /// An integer beyond 64 bits.
    struct Digits {
        std::string text;
        friend bool operator==(const Digits&, const Digits&) = default;
    };

    /// The possible types. An integer is std::uint64_t only if it exceeds std::int64_t.
    using Value = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, Digits, std::string, List,
                               Object, Tensor, GraphFunction>;

    Json() : value_(nullptr) {}
    Json(std::nullptr_t) : value_(nullptr) {}
    template <std::same_as<bool> T>
    Json(T truth) : value_(truth) {}
    template <std::integral T>
        requires(!std::same_as<T, bool>)
    Json(T whole) {
        if (std::in_range<std::int64_t>(whole)) value_ = static_cast<std::int64_t>(whole);
        else value_ = static_cast<std::uint64_t>(whole);
    }
    template <std::floating_point T>
    Json(T number) : value_(static_cast<double>(number)) {}
    Json(Digits digits) : value_(std::move(digits)) {}
    Json(const char* text) : value_(std::string(text)) {}
    Json(std::string_view text) : value_(std::string(text)) {}
    Json(std::string text) : value_(std::move(text)) {}
    Json(const DType& dtype) : value_(dtype.word()) {}
    Json(Tensor tensor) : value_(std::move(tensor)) {}
    Json(GraphFunction function) : value_(std::move(function)) {}
    Json(List list) : value_(std::move(list)) {}
    Json(Object object) : value_(std::move(object)) {}
    template <class T>
        requires(!std::same_as<T, Json>)
    Json(const std::vector<T>& entries) : value_(List(entries.begin(), entries.end())) {}

    [[nodiscard]] const Value& value() const { return value_; }
    [[nodiscard]] Value& value() { return value_; }
    [[nodiscard]] bool is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }

    /// Returns the value if it has this type, otherwise null.
    template <class T>
    [[nodiscard]] const T* get_if() const {
        return std::get_if<T>(&value_);
    }

    /// Returns a member of an object; null if the object has no such member, or if this is not an object.
    [[nodiscard]] const Json* find(std::string_view name) const;

    /// Returns the JSON text. Throws InputError for numbers and strings that JSON cannot represent.
    [[nodiscard]] std::string text() const;

    /// Parses JSON text. Throws InputError if the text is invalid, or nested more than a hundred times.
    [[nodiscard]] static Json parse(std::string_view text);

    friend bool operator==(const Json&, const Json&) = default;

private:
    Value value_;
};

/// A number in the dtype of its op. Integers keep all of their digits.
class Number {
public:
    template <class T>
        requires(std::integral<T> || std::floating_point<T>) && (!std::same_as<T, bool>)
    Number(T number) : number_(number) {}

    operator Json() const { return number_; }

private:
    Json number_;
};

/// Attributes of an op by name.
using Attrs = Json::Object;

}  // namespace gradserve
