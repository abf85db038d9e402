#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradserve {

/// Appends bytes as base64 (RFC 4648) with padding.
void append_base64(std::string& text, std::span<const std::byte> bytes);

/// Decodes base64 with padding. Throws InputError for any other text.
std::vector<std::byte> decoded_base64(std::string_view text);

}  // namespace gradserve
