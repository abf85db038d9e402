#pragma once

#include <gradserve/problem.hpp>

#include <stdexcept>
#include <string>

namespace gradserve {

// Error                       whatever this library throws on purpose
// ├── InputError              refused before anything was sent: mend the program
// ├── Cancelled               the caller asked for it to be given up
// ├── TransportError          there is no answer that could be read
// │   ├── ConnectionFailed    none came, or half of one: look at the network, or try again
// │   ├── MalformedAnswer     something else came than was promised: look at what stands in between
// │   └── AnswerTooLarge      it is longer than `max_response_bytes`: ask for less, or raise that
// ├── DeadlineError           the time was up: ask for less, or give more
// │   └── DeadlineRefusal     … and it was the server that said so
// └── Refusal                 the server's report, with all of its fields
//     ├── GraphError          the request is wrong, or more than one may ask: mend the graph, or what it is fed
//     ├── AuthenticationError the key is missing, unknown, or not allowed this: get another
//     ├── RateError           the key has used up its rate: ask less often
//     ├── OverloadError       the server is busy, or about to stop: ask later
//     ├── DeadlineRefusal
//     ├── NotFoundError       nothing is kept under this name or id: put or register it
//     ├── ConditionError      somebody else has written meanwhile, or needs it: read again, then write
//     ├── StoreFullError      there is no room: delete something
//     └── ServerError         a fault of the server's own: report it with its `request_id`

/// Whatever this library throws on purpose.
class Error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// What the client knows to be wrong, and has not sent.
class InputError final : public Error {
public:
    using Error::Error;
};

/// The caller asked for the call to be given up. What keeps something may have been kept.
class Cancelled final : public Error {
public:
    using Error::Error;
};

/// There is no answer that could be read.
class TransportError : public Error {
public:
    using Error::Error;
};

/// No answer came, or half of one. What keeps something may have been kept.
class ConnectionFailed final : public TransportError {
public:
    using TransportError::TransportError;
};

/// What came is not what was promised: another media type, broken JSON, a tensor that does not fit its bytes.
class MalformedAnswer final : public TransportError {
public:
    using TransportError::TransportError;
};

/// The answer is longer than `max_response_bytes`. It was not read.
class AnswerTooLarge final : public TransportError {
public:
    using TransportError::TransportError;
};

/// A report of the server's: what to do about it says the type. The time that is up is a DeadlineRefusal.
class Refusal : public virtual Error {
public:
    /// All that the server said.
    [[nodiscard]] const Problem& problem() const { return problem_; }

protected:
    explicit Refusal(Problem problem) : Error(problem.message()), problem_(std::move(problem)) {}

private:
    Problem problem_;
};

/// The time for all tries was up.
class DeadlineError : public virtual Error {
public:
    explicit DeadlineError(const std::string& message) : Error(message) {}
};

/// The time was up by the server's clock.
class DeadlineRefusal final : public Refusal, public DeadlineError {
public:
    explicit DeadlineRefusal(const Problem& problem)
        : Error(problem.message()), Refusal(problem), DeadlineError(problem.message()) {}
};

/// The request is wrong, or more than one may ask.
class GraphError final : public Refusal {
public:
    explicit GraphError(const Problem& problem) : Error(problem.message()), Refusal(problem) {}
};

/// The key is missing, unknown, or not allowed this.
class AuthenticationError final : public Refusal {
public:
    explicit AuthenticationError(const Problem& problem) : Error(problem.message()), Refusal(problem) {}
};

/// The key has used up its rate.
class RateError final : public Refusal {
public:
    explicit RateError(const Problem& problem) : Error(problem.message()), Refusal(problem) {}
};

/// The server is busy, or about to stop.
class OverloadError final : public Refusal {
public:
    explicit OverloadError(const Problem& problem) : Error(problem.message()), Refusal(problem) {}
};

/// Nothing is kept under this name or id.
class NotFoundError final : public Refusal {
public:
    explicit NotFoundError(const Problem& problem) : Error(problem.message()), Refusal(problem) {}
};

/// Somebody else has written meanwhile.
class ConditionError final : public Refusal {
public:
    explicit ConditionError(const Problem& problem) : Error(problem.message()), Refusal(problem) {}
};

/// There is no room for what was to be kept.
class StoreFullError final : public Refusal {
public:
    explicit StoreFullError(const Problem& problem) : Error(problem.message()), Refusal(problem) {}
};

/// A fault of the server's own.
class ServerError final : public Refusal {
public:
    explicit ServerError(const Problem& problem) : Error(problem.message()), Refusal(problem) {}
};

}  // namespace gradserve
