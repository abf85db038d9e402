#include "registered_state.hpp"

#include "json_reading.hpp"
#include "within.hpp"

namespace gradserve {

std::shared_ptr<const Registration> registration_in(Json::Object answer) {
    std::string id = within("graph_id", [&] { return text_in(member(answer, "graph_id")); });
    answer.erase("graph");
    return std::make_shared<const Registration>(Registration{std::move(id), std::move(answer)});
}

std::string RegisteredGraph::id() const {
    const auto known = state_->registration();
    return known ? known->id : "";
}

const Graph& RegisteredGraph::graph() const { return state_->graph; }

Json::Object RegisteredGraph::fields() const {
    const auto known = state_->registration();
    return known ? known->fields : Json::Object();
}

}  // namespace gradserve
