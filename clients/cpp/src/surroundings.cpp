#include <gradserve/surroundings.hpp>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <random>
#include <string_view>

namespace gradserve {

static void wait_for(std::chrono::milliseconds time, const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any stopped;
    stopped.wait_for(lock, stop, time, [] { return false; });
}

static double drawn() {
    thread_local std::mt19937_64 generator{std::random_device{}()};
    return std::uniform_real_distribution<double>(0, 1)(generator);
}

/// Returns 128 random bits from the operating system, in hex.
static std::string drawn_key() {
    static constexpr std::string_view digits = "0123456789abcdef";
    std::random_device device;
    std::string key;
    for (int word = 0; word < 4; ++word) {
        std::uint32_t bits = device();
        for (int digit = 0; digit < 8; ++digit, bits >>= 4) key += digits[bits & 15];
    }
    return key;
}

Surroundings Surroundings::usual() { return {Clock::now, wait_for, drawn, drawn_key}; }

}  // namespace gradserve
