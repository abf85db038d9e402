#pragma once

#include "tensors.hpp"

#include <gradserve/gradserve.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace conformance {

/// The calls of a case, made by one client whose clock advances only when it waits.
class Conversation {
public:
    /// If the server is scripted, injects clock, randomness and keys.
    Conversation(const std::string& url, const json& stated, bool is_scripted);

    /// Makes one call.
    json done(const json& call);

    [[nodiscard]] const std::vector<std::int64_t>& waits() const { return waits_; }

private:
    gs::ClientOptions options_of(const json& stated, bool is_scripted);

    /// Returns the graph of these steps, functions and opset. Equal ones are the same graph.
    gs::Graph& graph(const json& of);
    gs::Computable target(const json& stated);
    json registered(const json& call);
    json computed(const json& call);
    /// Returns the id of a model's graph, which the first call that needs it registers.
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
