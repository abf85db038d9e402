#pragma once

#include <gradserve/errors.hpp>
#include <gradserve/surroundings.hpp>

#include <chrono>
#include <optional>

namespace gradserve {

/// When a call has to be over, all of its tries together.
class Deadline {
public:
    /// By a clock, and so long from now; without_end is none.
    Deadline(const Surroundings& surroundings, std::chrono::milliseconds limit);

    /// How much time there is, where there is an end. Throws DeadlineError where that has come.
    [[nodiscard]] std::optional<std::chrono::milliseconds> left() const;

    /// Whether there is time left after a wait.
    [[nodiscard]] bool admits(std::chrono::milliseconds wait) const;

    [[noreturn]] void pass() const;

private:
    const Surroundings& surroundings_;
    std::chrono::milliseconds limit_;
    std::optional<Clock::time_point> end_;
};

/// The tries of one call.
class Tries {
public:
    Tries(const Surroundings& surroundings, const Deadline& deadline, int repetitions)
        : surroundings_(surroundings), deadline_(deadline), repetitions_(repetitions) {}

    /// How long to wait before the next try, after one that failed so; none where there is no next one.
    [[nodiscard]] std::optional<std::chrono::milliseconds> wait_after(const Error& error);

private:
    const Surroundings& surroundings_;
    const Deadline& deadline_;
    int repetitions_;
    int failed_ = 0;
    int deaths_ = 0;
};

/// The report that an error holds; null where it holds none.
const Problem* problem_in(const Error& error);

}  // namespace gradserve
