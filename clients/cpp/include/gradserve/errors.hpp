#pragma once

#include <gradserve/problem.hpp>

#include <stdexcept>
#include <string>

namespace gradserve {

// Error                       base class of all exceptions that this library throws
// ├── InputError              rejected before it was sent: fix the program
// ├── Cancelled               the caller cancelled the call
// ├── TransportError          no readable response
// │   ├── ConnectionFailed    no response, or an incomplete one: check the network, or retry
// │   ├── MalformedAnswer     not a gradserve response: look for a proxy in between
// │   └── AnswerTooLarge      longer than `max_response_bytes`: request less, or raise the limit
// ├── DeadlineError           the timeout expired: request less, or raise the timeout
// │   └── DeadlineRefusal     … on the server
// └── Refusal                 a problem report of the server, with all of its fields
//     ├── GraphError          an invalid request, or one beyond a limit: fix the graph or its feeds
//     ├── AuthenticationError the API key is missing, unknown or lacks the permission: use another key
//     ├── RateError           the key has exceeded its rate limit: send fewer requests
//     ├── OverloadError       the server is busy or shutting down: retry later
//     ├── DeadlineRefusal
//     ├── NotFoundError       nothing is stored under this name or id: put or register it
//     ├── ConditionError      another client has written it, or it is in use: read again, then write
//     ├── StoreFullError      the server's store is full: delete something
//     └── ServerError         an internal error of the server: report it with its `request_id`

/// The base class of all exceptions that this library throws.
class Error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// An invalid argument, detected by the client before it sent anything.
class InputError final : public Error {
public:
    using Error::Error;
};

/// The caller cancelled the call. The server may still have stored what the request stores.
class Cancelled final : public Error {
public:
    using Error::Error;
};

/// The response is missing or cannot be read.
class TransportError : public Error {
public:
    using Error::Error;
};

/// There is no response, or an incomplete one. The server may still have stored what the request stores.
class ConnectionFailed final : public TransportError {
public:
    using TransportError::TransportError;
};

/// The response is invalid: wrong media type, invalid JSON, or a tensor that does not fit its bytes.
class MalformedAnswer final : public TransportError {
public:
    using TransportError::TransportError;
};

/// The response is longer than `max_response_bytes`. It was not read.
class AnswerTooLarge final : public TransportError {
public:
    using TransportError::TransportError;
};

/// A problem report of the server. The derived class tells how to handle it. For a timeout on the server, this is
/// DeadlineRefusal.
class Refusal : public virtual Error {
public:
    /// Returns the problem report.
    [[nodiscard]] const Problem& problem() const { return problem_; }

protected:
    explicit Refusal(Problem problem) : Error(problem.message()), problem_(std::move(problem)) {}

private:
    Problem problem_;
};

/// The timeout expired before all attempts were done.
class DeadlineError : public virtual Error {
public:
    explicit DeadlineError(const std::string& message) : Error(message) {}
};

/// The timeout expired on the server.
class DeadlineRefusal final : public Refusal, public DeadlineError {
public:
    explicit DeadlineRefusal(const Problem& problem)
        : Error(problem.message()), Refusal(problem), DeadlineError(problem.message()) {}
};

/// The request is invalid, or exceeds a limit of the server.
class GraphError final : public Refusal {
public:
    explicit GraphError(const Problem& problem) : Error(problem.message()), Refusal(problem) {}
};

/// The API key is missing, unknown, or lacks the permission.
class AuthenticationError final : public Refusal {
public:
    explicit AuthenticationError(const Problem& problem) : Error(problem.message()), Refusal(problem) {}
};

/// The API key has exceeded its rate limit.
class RateError final : public Refusal {
public:
    explicit RateError(const Problem& problem) : Error(problem.message()), Refusal(problem) {}
};

/// The server is busy or shutting down.
class OverloadError final : public Refusal {
public:
    explicit OverloadError(const Problem& problem) : Error(problem.message()), Refusal(problem) {}
};

/// Nothing is stored under this name or id.
class NotFoundError final : public Refusal {
public:
    explicit NotFoundError(const Problem& problem) : Error(problem.message()), Refusal(problem) {}
};

/// A condition of the request does not hold, or the stored state has changed.
class ConditionError final : public Refusal {
public:
    explicit ConditionError(const Problem& problem) : Error(problem.message()), Refusal(problem) {}
};

/// The server has no room for what the request stores.
class StoreFullError final : public Refusal {
public:
    explicit StoreFullError(const Problem& problem) : Error(problem.message()), Refusal(problem) {}
};

/// An internal error of the server.
class ServerError final : public Refusal {
public:
    explicit ServerError(const Problem& problem) : Error(problem.message()), Refusal(problem) {}
};

}  // namespace gradserve
