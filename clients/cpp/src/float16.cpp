#include <gradserve/float16.hpp>

#include <algorithm>
#include <bit>
#include <cmath>

namespace gradserve {

static constexpr int fraction_bits = 10;
static constexpr int bias = 15;
static constexpr std::uint16_t infinity = 0x7c00;
static constexpr std::uint16_t fraction_mask = (1 << fraction_bits) - 1;
static constexpr int double_fraction_bits = 52;
static constexpr std::uint64_t double_bias = 1023;

double Float16::value() const {
    const std::uint64_t sign = std::uint64_t{bits} >> 15 << 63;
    const std::uint64_t fraction = bits & fraction_mask;
    std::uint64_t exponent = (bits & infinity) >> fraction_bits;
    if (exponent == 0) {
        const double small = std::ldexp(static_cast<double>(fraction), 1 - bias - fraction_bits);
        return std::bit_cast<double>(std::bit_cast<std::uint64_t>(small) | sign);
    }
    exponent = exponent == 0x1f ? 0x7ff : exponent + double_bias - bias;
    const std::uint64_t shifted = fraction << (double_fraction_bits - fraction_bits);
    return std::bit_cast<double>(sign | exponent << double_fraction_bits | shifted);
}

Float16 Float16::rounded(double number) {
    const auto made = [sign = std::signbit(number)](std::uint64_t magnitude) {
        return Float16{static_cast<std::uint16_t>(magnitude | (sign ? 0x8000U : 0U))};
    };
    if (std::isnan(number)) {
        const std::uint64_t payload = std::bit_cast<std::uint64_t>(number) >> (double_fraction_bits - fraction_bits);
        return made(infinity | (payload & fraction_mask) | 1U << (fraction_bits - 1));
    }
    if (number == 0) return made(0);
    if (std::isinf(number)) return made(infinity);
    // The spacing of float16 numbers at this magnitude is a power of two; all subnormal numbers have the same spacing.
    const int step = std::max(std::ilogb(number), 1 - bias) - fraction_bits;
    if (step > bias - fraction_bits) return made(infinity);
    const double steps = std::nearbyint(std::ldexp(std::abs(number), -step));
    // Adjacent numbers have adjacent bits, across exponents too, and infinity follows the largest number.
    const auto before = static_cast<std::uint64_t>(step + bias + fraction_bits - 1) << fraction_bits;
    return made(before + static_cast<std::uint64_t>(steps));
}

}  // namespace gradserve
