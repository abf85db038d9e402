#include "base64.hpp"

#include <gradserve/errors.hpp>

#include <algorithm>
#include <array>
#include <cstdint>

namespace gradserve {

static constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The six bits of each base64 character by its code; 64 for other characters.
static constexpr auto bits_of = [] {
    std::array<std::uint8_t, 256> bits{};
    bits.fill(64);
    for (std::size_t place = 0; place < letters.size(); ++place)
        bits[static_cast<unsigned char>(letters[place])] = static_cast<std::uint8_t>(place);
    return bits;
}();

void append_base64(std::string& text, std::span<const std::byte> bytes) {
    text.reserve(text.size() + (bytes.size() + 2) / 3 * 4);
    for (std::size_t start = 0; start < bytes.size(); start += 3) {
        const std::size_t count = std::min<std::size_t>(3, bytes.size() - start);
        std::uint32_t group = 0;
        for (std::size_t place = 0; place < 3; ++place)
            group = group << 8 | (place < count ? std::to_integer<std::uint32_t>(bytes[start + place]) : 0);
        for (std::size_t place = 0; place < 4; ++place)
            text += place <= count ? letters[group >> (18 - 6 * place) & 63] : '=';
    }
}

std::vector<std::byte> decoded_base64(std::string_view text) {
    if (text.size() % 4 != 0) throw InputError("invalid base64");
    const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
    std::vector<std::byte> bytes;
    bytes.reserve(text.size() / 4 * 3);
    std::uint32_t group = 0;
    for (std::size_t place = 0; place < text.size() - padding; ++place) {
        const std::uint8_t bits = bits_of[static_cast<unsigned char>(text[place])];
        if (bits == 64) throw InputError("invalid base64");
        group = group << 6 | bits;
        // The second, third and fourth character of each four complete a byte.
        if (place % 4 != 0) bytes.push_back(static_cast<std::byte>(group >> (6 - place % 4 * 2) & 0xff));
    }
    return bytes;
}

}  // namespace gradserve
