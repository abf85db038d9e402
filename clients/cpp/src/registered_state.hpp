#pragma once

#include "request.hpp"

#include <gradserve/registered.hpp>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

namespace gradserve {

/// What the server answered when it was asked to keep a graph.
struct Registration {
    std::string id;
    Json::Object fields;
};

/// Throws InputError; that it came with an answer is for the caller to say.
std::shared_ptr<const Registration> registration_in(Json::Object answer);

/// What the handles of a registered graph share.
struct RegisteredState {
    RegisteredState(Graph the_graph, Request the_request)
        : graph(std::move(the_graph)), count(graph.size()), request(std::move(the_request)) {}

    /// What is known of it now; null as long as the server was not asked.
    [[nodiscard]] std::shared_ptr<const Registration> registration() const {
        const std::scoped_lock lock(mutex);
        return known;
    }

    static RegisteredState& of(const RegisteredGraph& graph) { return *graph.state_; }

    const Graph graph;
    /// So many of its nodes are registered.
    const std::size_t count;
    const Request request;

    mutable std::mutex mutex;
    std::condition_variable_any changed;
    /// Whether somebody registers it now.
    bool is_busy = false;
    std::shared_ptr<const Registration> known;
};

}  // namespace gradserve
