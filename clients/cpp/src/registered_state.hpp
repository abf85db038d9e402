#pragma once

#include "request.hpp"

#include <gradserve/registered.hpp>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

namespace gradserve {

/// The server's response to the registration of a graph.
struct Registration {
    std::string id;
    Json::Object fields;
};

/// Throws InputError, which the caller converts.
std::shared_ptr<const Registration> registration_in(Json::Object answer);

/// The state that all handles of a registered graph share.
struct RegisteredState {
    RegisteredState(Graph the_graph, Request the_request)
        : graph(std::move(the_graph)), count(graph.size()), request(std::move(the_request)) {}

    /// Returns the current registration; null until the graph is registered.
    [[nodiscard]] std::shared_ptr<const Registration> registration() const {
        const std::scoped_lock lock(mutex);
        return known;
    }

    static RegisteredState& of(const RegisteredGraph& graph) { return *graph.state_; }

    const Graph graph;
    /// The number of nodes that are registered.
    const std::size_t count;
    const Request request;

    mutable std::mutex mutex;
    std::condition_variable_any changed;
    /// Whether a thread is registering it now.
    bool is_busy = false;
    std::shared_ptr<const Registration> known;
};

}  // namespace gradserve
