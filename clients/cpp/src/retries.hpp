#pragma once

#include <gradserve/errors.hpp>
#include <gradserve/surroundings.hpp>

#include <chrono>
#include <optional>

namespace gradserve {

/// The time by which a call, with all its attempts, must finish.
class Deadline {
public:
    /// Creates a deadline at this time from now; none for without_end.
    Deadline(const Surroundings& surroundings, std::chrono::milliseconds limit);

    /// Returns the remaining time, if there is a deadline. Throws DeadlineError if it has passed.
    [[nodiscard]] std::optional<std::chrono::milliseconds> left() const;

    /// Returns whether time remains after a wait.
    [[nodiscard]] bool admits(std::chrono::milliseconds wait) const;

    [[noreturn]] void pass() const;

private:
    const Surroundings& surroundings_;
    std::chrono::milliseconds limit_;
    std::optional<Clock::time_point> end_;
};

/// The attempts of one call.
class Tries {
public:
    Tries(const Surroundings& surroundings, const Deadline& deadline, int repetitions)
        : surroundings_(surroundings), deadline_(deadline), repetitions_(repetitions) {}

    /// Returns the time to wait before the next attempt after this error, or nothing if there is no further attempt.
    [[nodiscard]] std::optional<std::chrono::milliseconds> wait_after(const Error& error);

private:
    const Surroundings& surroundings_;
    const Deadline& deadline_;
    int repetitions_;
    int failed_ = 0;
    int deaths_ = 0;
};

/// Returns the problem report in an exception, or null.
const Problem* problem_in(const Error& error);

}  // namespace gradserve
