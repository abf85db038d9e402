#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace gradserve {

/// Returns the text without surrounding spaces.
inline std::string_view trimmed(std::string_view text) {
    static constexpr std::string_view spaces = " \t\r\n";
    const std::size_t start = std::min(text.find_first_not_of(spaces), text.size());
    return text.substr(start, text.find_last_not_of(spaces) + 1 - start);
}

/// Returns the text with ASCII letters in lower case.
inline std::string lower(std::string_view text) {
    std::string made(text);
    for (char& letter : made)
        if ('A' <= letter && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    return made;
}

}  // namespace gradserve
