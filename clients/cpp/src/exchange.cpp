#include "exchange.hpp"

#include "json_reading.hpp"
#include "within.hpp"

namespace gradserve {

static constexpr const char* key_header = "Idempotency-Key";

Running::Running(const ClientCore& core, std::optional<std::chrono::milliseconds> timeout, std::stop_token stop)
    : core_(core), deadline_(core.surroundings, timeout.value_or(core.timeout)), stop_(std::move(stop)) {}

Reply Running::tried(const Request& request) const {
    try {
        Reply reply = core_.transport.send(request, deadline_.left(), stop_);
        reply.check();
        return reply;
    } catch (const Transport::Timeout&) {
        deadline_.pass();
    }
}

void Running::wait(std::chrono::milliseconds time) const {
    core_.surroundings.wait(time, stop_);
    if (stop_.stop_requested()) throw Cancelled("the call was cancelled");
}

void Running::wait_for_turn(RegisteredState& graph, std::unique_lock<std::mutex>& lock) const {
    const auto is_free = [&] { return !graph.is_busy; };
    const auto left = deadline_.left();
    const bool is_mine =
        left ? graph.changed.wait_for(lock, stop_, *left, is_free) : graph.changed.wait(lock, stop_, is_free);
    if (is_mine) return;
    if (stop_.stop_requested()) throw Cancelled("the call was cancelled");
    deadline_.pass();
}

std::shared_ptr<const Registration> Running::registered(RegisteredState& graph,
                                                        const std::shared_ptr<const Registration>& stale) {
    std::unique_lock lock(graph.mutex);
    wait_for_turn(graph, lock);
    if (graph.known != stale) return graph.known;
    graph.is_busy = true;
    lock.unlock();
    std::shared_ptr<const Registration> known = stale;
    const auto end_turn = [&] {
        lock.lock();
        graph.known = known;
        graph.is_busy = false;
        graph.changed.notify_all();
    };
    try {
        const Reply reply = Exchange(*this, graph.request, core_.idempotency).run();
        known = promised([&] { return registration_in(reply.object()); });
    } catch (...) {
        end_turn();
        throw;
    }
    end_turn();
    return known;
}

/// Returns the maximum number of retries: 0 if the server could then store something twice.
static int repetitions(const ClientCore& core, bool keeps, bool has_key) { return keeps && !has_key ? 0 : core.retries; }

Exchange::Exchange(const Running& running, Request request, bool idempotency)
    : running_(running),
      request_(std::move(request)),
      has_key_(request_.keeps && idempotency),
      tries_(running.core().surroundings, running.deadline(), repetitions(running.core(), request_.keeps, has_key_)) {
    if (has_key_) request_.headers[key_header] = running.core().surroundings.new_key();
}

Reply Exchange::run() {
    for (;;) {
        std::chrono::milliseconds wait{};
        try {
            return running_.tried(request_);
        } catch (const Error& error) {
            const auto next = tries_.wait_after(error);
            if (!next) throw;
            wait = *next;
        }
        running_.wait(wait);
    }
}

Reply Exchange::run_at(const std::string& path) {
    request_.path = path;
    return run();
}

/// Returns whether the graph itself is missing. A missing tensor is reported with its node.
static bool is_of_the_graph(const Problem& problem) {
    return problem.code == "not_found" && !problem.node && problem.pointer.empty();
}

Reply run_on(RegisteredState& graph, const std::string& call, Running& running, Exchange& exchange) {
    std::shared_ptr<const Registration> known = graph.registration();
    if (!known) known = running.registered(graph, nullptr);
    try {
        return exchange.run_at(path_on_graph(call, known->id));
    } catch (const NotFoundError& error) {
        if (!is_of_the_graph(error.problem())) throw;
    }
    known = running.registered(graph, known);
    return exchange.run_at(path_on_graph(call, known->id));
}

}  // namespace gradserve
