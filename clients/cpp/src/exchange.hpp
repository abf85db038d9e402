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

/// What the calls of a client share.
struct ClientCore {
    Transport transport;
    std::chrono::milliseconds timeout;
    int retries;
    bool idempotency;
    Surroundings surroundings;
};

/// A call under way, with all that it asks for.
class Running {
public:
    Running(const ClientCore& core, std::optional<std::chrono::milliseconds> timeout, std::stop_token stop);

    /// One try of a request.
    Reply tried(const Request& request) const;

    /// Has time pass. Throws Cancelled where a stop is requested.
    void wait(std::chrono::milliseconds time) const;

    /// Has the server keep a graph, unless somebody else did since it was found to be stale.
    std::shared_ptr<const Registration> registered(RegisteredState& graph,
                                                   const std::shared_ptr<const Registration>& stale);

    [[nodiscard]] const ClientCore& core() const { return core_; }
    [[nodiscard]] const Deadline& deadline() const { return deadline_; }

private:
    /// Waits until nobody else registers the graph. Throws where this call is over before.
    void wait_for_turn(RegisteredState& graph, std::unique_lock<std::mutex>& lock) const;

    const ClientCore& core_;
    Deadline deadline_;
    std::stop_token stop_;
};

/// A request with all of its tries, under one key.
class Exchange {
public:
    Exchange(const Running& running, Request request, bool idempotency);

    /// Tries until there is an answer. Throws the last error where there is none.
    Reply run();

    /// Asks for the same under another path, with the tries that are left.
    Reply run_at(const std::string& path);

    [[nodiscard]] bool has_key() const { return has_key_; }

private:
    const Running& running_;
    Request request_;
    bool has_key_;
    Tries tries_;
};

/// Does a call on a registered graph, which is registered once more where it is not found.
Reply run_on(RegisteredState& graph, const std::string& call, Running& running, Exchange& exchange);

}  // namespace gradserve
