#pragma once

#include "tensors.hpp"

#include <gradserve/gradserve.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace conformance {

/// The calls of a case, done by one client on a clock that only its waits move.
class Conversation {
public:
    /// Clock, chance and keys are handed in where the server is a script.
    Conversation(const std::string& url, const json& stated, bool is_scripted);

    /// One call.
    json done(const json& call);

    [[nodiscard]] const std::vector<std::int64_t>& waits() const { return waits_; }

private:
    gs::ClientOptions options_of(const json& stated, bool is_scripted);

    /// The graph of some steps, functions and an opset; equal ones are the same.
    gs::Graph& graph(const json& of);
    gs::Computable target(const json& stated);
    json registered(const json& call);
    json computed(const json& call);
    /// The id of the graph of a model, which is registered by the first call that needs it.
    std::string graph_id(const json& call);
    json put_model(const json& call);

    gs::Clock::time_point now_{};
    std::vector<std::int64_t> waits_;
    int keys_ = 0;
    gs::Client client_;
    std::map<json, gs::Graph> graphs_;
    std::map<json, gs::RegisteredGraph> registered_;
};

}  // namespace conformance
