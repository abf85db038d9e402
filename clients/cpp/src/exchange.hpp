#pragma once

#include "registered_state.hpp"
#include "retries.hpp"
#include "transport.hpp"

#include <gradserve/surroundings.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>

namespace gradserve {

/// The state that all calls of a client share.
struct ClientCore {
    Transport transport;
    std::chrono::milliseconds timeout;
    int retries;
    bool idempotency;
    Surroundings surroundings;
};

/// A call in progress, with all of its requests.
class Running {
public:
    Running(const ClientCore& core, std::optional<std::chrono::milliseconds> timeout, std::stop_token stop);

    /// Makes one attempt of a request.
    Reply tried(const Request& request) const;

    /// Waits. Throws Cancelled if a stop is requested.
    void wait(std::chrono::milliseconds time) const;

    /// Registers the graph, unless another thread has done so since the registration was found to be stale.
    std::shared_ptr<const Registration> registered(RegisteredState& graph,
                                                   const std::shared_ptr<const Registration>& stale);

    [[nodiscard]] const ClientCore& core() const { return core_; }
    [[nodiscard]] const Deadline& deadline() const { return deadline_; }

private:
    /// Waits until no other thread registers the graph. Throws if this call ends first.
    void wait_for_turn(RegisteredState& graph, std::unique_lock<std::mutex>& lock) const;

    const ClientCore& core_;
    Deadline deadline_;
    std::stop_token stop_;
};

/// A request with all of its attempts, under one idempotency key.
class Exchange {
public:
    Exchange(const Running& running, Request request, bool idempotency);

    /// Sends the request, and retries until there is a response. Throws the error of the last attempt.
    Reply run();

    /// Sends the request to another path, with the remaining attempts.
    Reply run_at(const std::string& path);

    [[nodiscard]] bool has_key() const { return has_key_; }

private:
    const Running& running_;
    Request request_;
    bool has_key_;
    Tries tries_;
};

/// Makes a call on a registered graph. If the server does not have the graph, registers it and repeats the call.
Reply run_on(RegisteredState& graph, const std::string& call, Running& running, Exchange& exchange);

}  // namespace gradserve
