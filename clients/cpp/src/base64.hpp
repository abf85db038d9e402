#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradserve {

/// Appends bytes as RFC 4648 has them, with padding.
void append_base64(std::string& text, std::span<const std::byte> bytes);

/// Throws InputError for what is not base64 with padding and nothing else.
std::vector<std::byte> decoded_base64(std::string_view text);

}  // namespace gradserve
