#pragma once

#include "curl_handles.hpp"
#include "reply.hpp"
#include "request.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

namespace gradserve {

/// The way to a server, which threads may share.
class Transport {
public:
    /// Throws InputError for a URL or a key that cannot be one.
    Transport(const std::string& url, std::string key, std::uint64_t most_of_answer);

    /// Has one request answered, within what is left. Throws ConnectionFailed, MalformedAnswer, AnswerTooLarge or
    /// Cancelled, and Timeout where the time is up before the answer is there.
    Reply send(const Request& request, std::optional<std::chrono::milliseconds> left,
               const std::stop_token& stop) const;

    /// The time of a try was up.
    struct Timeout {};

private:
    std::string base_;
    std::string key_;
    std::uint64_t most_of_answer_;
    mutable CurlHandles handles_;
};

}  // namespace gradserve
