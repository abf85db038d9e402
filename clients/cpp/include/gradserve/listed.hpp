#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

namespace gradserve {

/// An optional list: `.axes = {0, 1}` sets it, and `{}` leaves it absent. To set an empty list, pass an empty vector.
template <class T>
class Listed {
public:
    Listed() = default;
    Listed(std::initializer_list<T> entries) : entries_(entries) {}
    Listed(std::vector<T> entries) : entries_(std::move(entries)) {}

    [[nodiscard]] bool is_stated() const { return entries_.has_value(); }

    /// Returns the entries, if the list is set.
    [[nodiscard]] const std::optional<std::vector<T>>& entries() const { return entries_; }

private:
    std::optional<std::vector<T>> entries_;
};

/// An optional list of integers.
using Ints = Listed<std::int64_t>;

}  // namespace gradserve
