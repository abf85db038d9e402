#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

namespace gradserve {

/// A list among options, which may be absent: `.axes = {0, 1}` states one, and `{}` none. A list without entries is
/// stated by an empty vector.
template <class T>
class Listed {
public:
    Listed() = default;
    Listed(std::initializer_list<T> entries) : entries_(entries) {}
    Listed(std::vector<T> entries) : entries_(std::move(entries)) {}

    [[nodiscard]] bool is_stated() const { return entries_.has_value(); }

    /// The entries, if the list is stated.
    [[nodiscard]] const std::optional<std::vector<T>>& entries() const { return entries_; }

private:
    std::optional<std::vector<T>> entries_;
};

/// Whole numbers among options.
using Ints = Listed<std::int64_t>;

}  // namespace gradserve
