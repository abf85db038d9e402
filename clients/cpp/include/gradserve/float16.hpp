#pragma once

#include <cstdint>

namespace gradserve {

/// A float16 number as its bits (IEEE 754 binary16), because C++20 has no such type.
struct Float16 {
    std::uint16_t bits = 0;

    /// Rounds to the nearest float16, with ties to even. Numbers beyond its range become infinities.
    [[nodiscard]] static Float16 rounded(double number);

    /// Returns the number exactly. Preserves the payload of a NaN.
    [[nodiscard]] double value() const;

    /// Compares bits, not values.
    friend bool operator==(const Float16&, const Float16&) = default;
};

}  // namespace gradserve
