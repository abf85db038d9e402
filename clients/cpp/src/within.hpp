#pragma once

#include <gradserve/errors.hpp>

#include <string>
#include <utility>

namespace gradserve {

/// What is done; an InputError of it says of which part of something it is.
template <class Do>
auto within(const std::string& part, Do&& done) {
    try {
        return std::forward<Do>(done)();
    } catch (const InputError& error) {
        throw InputError(part + ": " + error.what());
    }
}

/// What is read of an answer; that it cannot be is no InputError then, but a MalformedAnswer.
template <class Read>
auto promised(Read&& read) {
    try {
        return std::forward<Read>(read)();
    } catch (const InputError& error) {
        throw MalformedAnswer(std::string("the answer is not as promised: ") + error.what());
    }
}

}  // namespace gradserve
