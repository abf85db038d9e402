#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>

namespace gradserve {

/// The clock that deadlines are told by.
using Clock = std::chrono::steady_clock;

/// What a client has of the world beside the network, to be handed in by tests. Threads that share the client share it.
struct Surroundings {
    std::function<Clock::time_point()> now;
    /// Has time pass, unless a stop is requested before.
    std::function<void(std::chrono::milliseconds, const std::stop_token&)> wait;
    /// Between 0 and 1.
    std::function<double()> chance;
    /// A key of idempotency, which nobody else has.
    std::function<std::string()> new_key;

    /// Those of the machine.
    [[nodiscard]] static Surroundings usual();
};

}  // namespace gradserve
