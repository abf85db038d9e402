#include "telling.hpp"

namespace conformance {

json told(const gs::Json::Object& fields) { return json_of(fields); }

json told(const gs::Resident& resident) {
    json made{{"tensor_id", resident.name}, {"etag", resident.etag}};
    if (resident.dtype) made["dtype"] = resident.dtype->word();
    if (resident.shape) made["shape"] = *resident.shape;
    if (resident.bytes) made["bytes"] = *resident.bytes;
    if (resident.durable) made["durable"] = *resident.durable;
    if (resident.written_within_ms) made["written_within_ms"] = *resident.written_within_ms;
    return made;
}

json told(const gs::GraphSummary& summary) {
    json made{{"graph_id", summary.id}, {"node_count", summary.node_count}};
    if (!summary.description.empty()) made["description"] = summary.description;
    return made;
}

/// Looks results up by node, as users do.
static json results(const gs::Results<gs::Tensor>& all) {
    json made = json::array();
    for (const auto& [node, tensor] : all) made.push_back({{"node", node.id()}, {"tensor", bits_of(all[node])}});
    return made;
}

static json blocks(const gs::Blocks& all, const char* first, const char* second) {
    json made = json::array();
    for (const auto& each : all) {
        const gs::Tensor& tensor = all(each.first, each.second);
        made.push_back({{first, each.first.id()}, {second, each.second.id()}, {"tensor", bits_of(tensor)}});
    }
    return made;
}

static json matrix(const gs::HessianMatrix& hessian) {
    json offsets = json::array();
    for (const auto& each : hessian.offsets) {
        const gs::NodeOffset& place = hessian.offsets[each.first];
        offsets.push_back({{"node", each.first.id()}, {"offset", place.offset}, {"size", place.size}});
    }
    return {{"offsets", offsets}, {"tensor", bits_of(hessian.tensor)}};
}

static json ids(const std::vector<gs::Node>& nodes) {
    json made = json::array();
    for (const gs::Node& node : nodes) made.push_back(node.id());
    return made;
}

static json told(const gs::ModelValue& value) {
    return {{"name", value.name}, {"node", value.node}, {"dtype", value.dtype.word()}, {"shape", value.shape}};
}

static json told(const gs::BoundLeaf& leaf) {
    return {
        {"node", leaf.node}, {"tensor_id", leaf.tensor_name}, {"dtype", leaf.dtype.word()}, {"shape", leaf.shape}};
}

template <class T>
static json told_all(const std::vector<T>& entries) {
    json made = json::array();
    for (const T& each : entries) made.push_back(told(each));
    return made;
}

json told(const gs::Model& model) {
    json made{{"name", model.name}, {"etag", model.etag}, {"graph_id", model.graph_id}};
    if (!model.description.empty()) made["description"] = model.description;
    made["inputs"] = told_all(model.inputs);
    made["outputs"] = told_all(model.outputs);
    made["bound"] = told_all(model.bound);
    return made;
}

json told(const gs::ForwardAnswer& answer) {
    json made = told(answer.fields);
    made["values"] = results(answer.values);
    if (answer.stored.empty()) return made;
    made["stored"] = json::array();
    for (const auto& [node, resident] : answer.stored) {
        json entry = told(resident);
        entry["node"] = node.id();
        made["stored"].push_back(std::move(entry));
    }
    return made;
}

json told(const gs::GradientsAnswer& answer) {
    json made = told(static_cast<const gs::ForwardAnswer&>(answer));
    made["gradients"] = results(answer.gradients);
    made["disconnected"] = ids(answer.disconnected);
    return made;
}

json told(const gs::JvpAnswer& answer) {
    json made = told(static_cast<const gs::ForwardAnswer&>(answer));
    made["tangents"] = results(answer.tangents);
    return made;
}

json told(const gs::JacobianAnswer& answer) {
    json made = told(static_cast<const gs::ForwardAnswer&>(answer));
    made["jacobian"] = blocks(answer.jacobian, "of", "wrt");
    return made;
}

json told(const gs::HvpAnswer& answer) {
    json made = told(static_cast<const gs::GradientsAnswer&>(answer));
    made["hvp"] = results(answer.hvp);
    return made;
}

json told(const gs::HessianAnswer& answer) {
    json made = told(static_cast<const gs::GradientsAnswer&>(answer));
    made["hessian"] = blocks(answer.hessian, "row", "column");
    made["matrix"] = answer.matrix ? matrix(*answer.matrix) : json();
    return made;
}

json told(const gs::CheckAnswer& answer) {
    json made = told(answer.fields);
    made["passed"] = answer.passed;
    return made;
}

json told(const gs::PlanAnswer& answer) {
    json made = told(answer.fields);
    made["admitted"] = answer.admitted;
    return made;
}

json told(const gs::DifferentiateAnswer& answer) {
    json made = told(answer.fields);
    made["gradients"] = json::array();
    for (const auto& [node, gradient] : answer.gradients)
        made["gradients"].push_back({{"node", node.id()}, {"gradient_node", gradient.id()}});
    made["disconnected"] = ids(answer.disconnected);
    made["graph"] = answer.graph.text();
    return made;
}

template <class T>
static bool is(const gs::Error& error) {
    return dynamic_cast<const T*>(&error) != nullptr;
}

/// Returns the type of an error.
static const char* type_of(const gs::Error& error) {
    if (is<gs::InputError>(error)) return "input";
    if (is<gs::AnswerTooLarge>(error)) return "too_large";
    if (is<gs::TransportError>(error)) return "transport";
    if (is<gs::DeadlineError>(error)) return "deadline";
    if (is<gs::AuthenticationError>(error)) return "authentication";
    if (is<gs::RateError>(error)) return "rate";
    if (is<gs::OverloadError>(error)) return "overload";
    if (is<gs::NotFoundError>(error)) return "not_found";
    if (is<gs::ConditionError>(error)) return "condition";
    if (is<gs::StoreFullError>(error)) return "store_full";
    if (is<gs::ServerError>(error)) return "server";
    if (is<gs::GraphError>(error)) return "graph";
    return "unknown";
}

static json report(const gs::Problem& problem) {
    json made{{"status", problem.status}};
    const auto tell = [&](const char* name, const std::string& text) {
        if (!text.empty()) made[name] = text;
    };
    tell("code", problem.code);
    tell("detail", problem.detail);
    tell("request_id", problem.request_id);
    tell("expected", problem.expected);
    tell("got", problem.got);
    tell("pointer", problem.pointer);
    if (problem.node) made["node"] = *problem.node;
    if (problem.function) made["function"] = *problem.function;
    if (problem.function_node) made["function_node"] = *problem.function_node;
    if (problem.operand) made["operand"] = *problem.operand;
    for (const gs::Problem& each : problem.errors) made["errors"].push_back(report(each));
    if (!problem.extra.empty()) made["extra"] = gs::Json(problem.extra).text();
    return made;
}

json told(const gs::Error& error) {
    const auto* const refusal = dynamic_cast<const gs::Refusal*>(&error);
    json made = refusal == nullptr ? json::object() : report(refusal->problem());
    made["type"] = type_of(error);
    made["message"] = error.what();
    return made;
}

}  // namespace conformance
