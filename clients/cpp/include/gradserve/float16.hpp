#pragma once

#include <cstdint>

namespace gradserve {

/// A number of float16 as its bits (IEEE 754 binary16), since C++20 has no such type.
struct Float16 {
    std::uint16_t bits = 0;

    /// The nearest number of float16, and the even one of two that are as near. What is beyond its range is an
    /// infinity.
    [[nodiscard]] static Float16 rounded(double number);

    /// The number, exactly. The payload of a NaN is kept.
    [[nodiscard]] double value() const;

    /// Whether the bits are the same, not the numbers.
    friend bool operator==(const Float16&, const Float16&) = default;
};

}  // namespace gradserve
