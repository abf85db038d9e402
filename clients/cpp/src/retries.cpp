#include "retries.hpp"

#include <gradserve/options.hpp>

#include <algorithm>

namespace gradserve {

using std::chrono::milliseconds;

static constexpr milliseconds first_wait{500};
static constexpr milliseconds longest_wait{8000};
/// Longer than any real wait, and far below the range of clocks.
static constexpr milliseconds longest_limit = std::chrono::hours(24) * 36500;

Deadline::Deadline(const Surroundings& surroundings, milliseconds limit) : surroundings_(surroundings), limit_(limit) {
    if (limit == without_end) return;
    end_ = surroundings.now() + std::min(limit, longest_limit);
}

std::optional<milliseconds> Deadline::left() const {
    if (!end_) return std::nullopt;
    const Clock::duration left = *end_ - surroundings_.now();
    if (left <= Clock::duration::zero()) pass();
    return std::chrono::floor<milliseconds>(left);
}

bool Deadline::admits(milliseconds wait) const {
    return !end_ || wait < std::chrono::ceil<milliseconds>(*end_ - surroundings_.now());
}

void Deadline::pass() const { throw DeadlineError("no response within " + std::to_string(limit_.count()) + " ms"); }

const Problem* problem_in(const Error& error) {
    const auto* const refusal = dynamic_cast<const Refusal*>(&error);
    return refusal == nullptr ? nullptr : &refusal->problem();
}

/// Returns whether the same request may succeed later.
static bool is_passing(const Error& error, const Problem* problem) {
    if (problem == nullptr) return dynamic_cast<const ConnectionFailed*>(&error) != nullptr;
    switch (problem->status) {
        case 408:
        case 429:
        case 503: return true;
        default: return problem->code == "conflict" && problem->retry_after;
    }
}

std::optional<milliseconds> Tries::wait_after(const Error& error) {
    const Problem* const problem = problem_in(error);
    if (problem != nullptr && problem->code == "worker_died") ++deaths_;
    if (failed_ >= repetitions_ || deaths_ > 1 || !is_passing(error, problem)) return std::nullopt;
    // The longest wait is 2⁴ times the first.
    const milliseconds step = std::min(longest_wait, first_wait * (1 << std::min(failed_, 4)));
    milliseconds wait = std::chrono::round<milliseconds>(step * (0.5 + surroundings_.chance() / 2));
    if (problem != nullptr && problem->retry_after) wait = std::max<milliseconds>(wait, *problem->retry_after);
    if (!deadline_.admits(wait)) return std::nullopt;
    ++failed_;
    return wait;
}

}  // namespace gradserve
