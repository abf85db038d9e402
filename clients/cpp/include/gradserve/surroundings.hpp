#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>

namespace gradserve {

/// The clock for deadlines.
using Clock = std::chrono::steady_clock;

/// A client's environment except the network; tests replace it. Threads that share the client share it.
struct Surroundings {
    std::function<Clock::time_point()> now;
    /// Waits, unless a stop is requested.
    std::function<void(std::chrono::milliseconds, const std::stop_token&)> wait;
    /// Returns a random number between 0 and 1.
    std::function<double()> chance;
    /// Returns a new unique idempotency key.
    std::function<std::string()> new_key;

    /// Returns the real environment.
    [[nodiscard]] static Surroundings usual();
};

}  // namespace gradserve
