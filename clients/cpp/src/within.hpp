#pragma once

#include <gradserve/errors.hpp>

#include <string>
#include <utility>

namespace gradserve {

/// Runs a function, and prefixes its InputErrors with a part of the input.
template <class Do>
auto within(const std::string& part, Do&& done) {
    try {
        return std::forward<Do>(done)();
    } catch (const InputError& error) {
        throw InputError(part + ": " + error.what());
    }
}

/// Reads a part of a response, and converts InputErrors to MalformedAnswer.
template <class Read>
auto promised(Read&& read) {
    try {
        return std::forward<Read>(read)();
    } catch (const InputError& error) {
        throw MalformedAnswer(std::string("invalid response: ") + error.what());
    }
}

}  // namespace gradserve
