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

/// The connections to a server, which threads can share.
class Transport {
public:
    /// Throws InputError if the URL or the API key is invalid.
    Transport(const std::string& url, std::string key, std::uint64_t most_of_answer);

    /// Sends one request and returns the response, within the remaining time. Throws ConnectionFailed, MalformedAnswer,
    /// AnswerTooLarge or Cancelled, and Timeout if the time expires first.
    Reply send(const Request& request, std::optional<std::chrono::milliseconds> left,
               const std::stop_token& stop) const;

    /// The time of an attempt expired.
    struct Timeout {};

private:
    std::string base_;
    std::string key_;
    std::uint64_t most_of_answer_;
    mutable CurlHandles handles_;
};

}  // namespace gradserve
