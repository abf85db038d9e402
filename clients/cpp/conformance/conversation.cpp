#include "conversation.hpp"

#include "step.hpp"
#include "telling.hpp"

namespace conformance {

Conversation::Conversation(const std::string& url, const json& stated, bool is_scripted)
    : client_(url, options_of(stated, is_scripted)) {}

gs::ClientOptions Conversation::options_of(const json& stated, bool is_scripted) {
    gs::ClientOptions options;
    if (stated.contains("api_key")) options.api_key = stated["api_key"].get<std::string>();
    options.timeout = stated.contains("timeout_ms") ? std::chrono::milliseconds(stated["timeout_ms"]) : gs::without_end;
    options.retries = stated.value("retries", options.retries);
    options.idempotency = stated.value("idempotency", options.idempotency);
    options.max_response_bytes = stated.value("max_response_bytes", options.max_response_bytes);
    if (!is_scripted) return options;
    options.surroundings.now = [this] { return now_; };
    options.surroundings.wait = [this](std::chrono::milliseconds time, const std::stop_token&) {
        now_ += time;
        waits_.push_back(time.count());
    };
    options.surroundings.chance = [] { return 0.5; };
    options.surroundings.new_key = [this] { return "case-" + std::to_string(++keys_); };
    return options;
}

static std::optional<gs::Form> form_of(const json& call) {
    if (!call.contains("form")) return std::nullopt;
    return call["form"] == "binary" ? gs::Form::safetensors : gs::Form::json;
}

template <class T, class Value>
static std::map<gs::Node, T> by_node(const gs::Graph& graph, const json& call, const char* name, Value&& value) {
    std::map<gs::Node, T> made;
    for (const json& each : call.value(name, json::array())) made.emplace(node_of(graph, each.at("node")), value(each));
    return made;
}

static gs::Feeds feeds_of(const gs::Graph& graph, const json& call, const char* name) {
    return by_node<gs::Feed>(graph, call, name, [](const json& each) -> gs::Feed {
        if (!each.contains("tensor_id")) return tensor_of(each.at("tensor"));
        const gs::Resident kept{each["tensor_id"].get<std::string>()};
        if (!each.contains("rows")) return kept;
        return kept.rows(each["rows"][0].get<std::int64_t>(), each["rows"][1].get<std::int64_t>());
    });
}

static gs::Types types_of(const gs::Graph& graph, const json& call) {
    return by_node<gs::Type>(graph, call, "types", [](const json& each) {
        return gs::Type{each.at("dtype").get<std::string>(), each.at("shape").get<gs::Shape>()};
    });
}

static gs::Stores stores_of(const gs::Graph& graph, const json& call) {
    return by_node<gs::Store>(graph, call, "store", [](const json& each) {
        gs::Store store(each.at("tensor_id").get<std::string>());
        if (each.contains("if_match")) store.if_match = each["if_match"].get<std::string>();
        if (each.contains("durable")) store.durable = each["durable"].get<bool>();
        store.gradient = each.value("gradient", false);
        return store;
    });
}

static gs::Nodes nodes_of(const gs::Graph& graph, const json& call, const char* name) {
    if (!call.contains(name)) return {};
    std::vector<gs::Node> nodes;
    for (const json& place : call[name]) nodes.push_back(node_of(graph, place));
    return nodes;
}

static const std::map<std::string, gs::Precision> precisions{
    {"float32", gs::Precision::float32},
    {"tf32x3", gs::Precision::tf32x3},
    {"tf32", gs::Precision::tf32},
    {"bfloat16", gs::Precision::bfloat16},
};

static const std::map<std::string, gs::HessianLayout> layouts{
    {"blocks", gs::HessianLayout::blocks},
    {"matrix", gs::HessianLayout::matrix},
};

static const std::map<std::string, gs::Reduction> reductions{
    {"none", gs::Reduction::none},
    {"sum", gs::Reduction::sum},
    {"mean", gs::Reduction::mean},
};

/// Converts a call of a case to the options of the client's call.
template <class Options>
static Options asked_of(const gs::Graph& graph, const json& call) {
    Options options;
    options.form = form_of(call);
    if constexpr (requires { options.of; })
        if (call.contains("of")) options.of = node_of(graph, call["of"]);
    if constexpr (requires { options.wrt; }) options.wrt = nodes_of(graph, call, "wrt");
    if constexpr (requires { options.outputs; }) options.outputs = nodes_of(graph, call, "outputs");
    if constexpr (requires { options.mapped; }) options.mapped = nodes_of(graph, call, "mapped");
    if constexpr (requires { options.store; }) options.store = stores_of(graph, call);
    if constexpr (requires { options.diagnose; }) options.diagnose = call.value("diagnose", false);
    if constexpr (requires { options.memory_budget; })
        if (call.contains("memory_budget")) options.memory_budget = call["memory_budget"].get<std::int64_t>();
    if constexpr (requires { options.precision; })
        if (call.contains("precision")) options.precision = precisions.at(call["precision"]);
    if constexpr (requires { options.reduce; })
        if (call.contains("reduce")) options.reduce = reductions.at(call["reduce"]);
    if constexpr (requires { options.block; })
        if (call.contains("block")) options.block = call["block"].get<std::int64_t>();
    if constexpr (requires { options.layout; })
        if (call.contains("layout")) options.layout = layouts.at(call["layout"]);
    if constexpr (requires { options.batched; }) options.batched = call.value("batched", false);
    if constexpr (requires { options.cotangent; })
        if (call.contains("cotangent")) options.cotangent = tensor_of(call["cotangent"]);
    if constexpr (requires { options.cotangents; }) options.cotangents = feeds_of(graph, call, "cotangents");
    if constexpr (requires { options.tangents; }) options.tangents = feeds_of(graph, call, "tangents");
    if constexpr (requires { options.vectors; }) options.vectors = feeds_of(graph, call, "vectors");
    if constexpr (requires { options.directions; })
        if (call.contains("directions")) options.directions = call["directions"].get<std::int64_t>();
    if constexpr (requires { options.tolerance; })
        if (call.contains("tolerance")) options.tolerance = call["tolerance"].get<double>();
    if constexpr (requires { options.call; })
        if (call.contains("call")) options.call = call["call"].get<std::string>();
    return options;
}

/// Returns a key that equal graphs of a case share.
static json key_of(const json& graph) {
    return json::array({graph.at("steps"), graph.value("functions", json()), graph.value("opset", 0)});
}

gs::Graph& Conversation::graph(const json& of) {
    const json key = key_of(of);
    const auto found = graphs_.find(key);
    return found != graphs_.end() ? found->second : graphs_.emplace(key, graph_of(of)).first->second;
}

gs::Computable Conversation::target(const json& stated) {
    if (!stated.value("registered", false)) return graph(stated);
    const json key = key_of(stated);
    const auto found = registered_.find(key);
    if (found != registered_.end()) return found->second;
    return registered_.emplace(key, client_.register_later(graph(stated))).first->second;
}

json Conversation::registered(const json& call) {
    const auto made = client_.register_graph(graph(call), {.description = call.value("description", "")});
    registered_.insert_or_assign(key_of(call), made);
    return told(made.fields());
}

json Conversation::computed(const json& call) {
    const gs::Computable on = target(call.at("graph"));
    const gs::Graph& nodes = graph(call["graph"]);
    const std::string& name = call.at("do").get_ref<const std::string&>();
    const gs::Feeds feeds = feeds_of(nodes, call, "feeds");
    const gs::Types types = types_of(nodes, call);
    if (name == "forward") return told(client_.forward(on, feeds, asked_of<gs::ForwardOptions>(nodes, call)));
    if (name == "gradients") return told(client_.gradients(on, feeds, asked_of<gs::GradientsOptions>(nodes, call)));
    if (name == "vjp") return told(client_.vjp(on, feeds, asked_of<gs::VjpOptions>(nodes, call)));
    if (name == "jvp") return told(client_.jvp(on, feeds, asked_of<gs::JvpOptions>(nodes, call)));
    if (name == "jacobian") return told(client_.jacobian(on, feeds, asked_of<gs::JacobianOptions>(nodes, call)));
    if (name == "hvp") return told(client_.hvp(on, feeds, asked_of<gs::HvpOptions>(nodes, call)));
    if (name == "hessian") return told(client_.hessian(on, feeds, asked_of<gs::HessianOptions>(nodes, call)));
    if (name == "batch") return told(client_.batch(on, feeds, asked_of<gs::BatchOptions>(nodes, call)));
    if (name == "check") return told(client_.check(on, feeds, asked_of<gs::CheckOptions>(nodes, call)));
    if (name == "plan") return told(client_.plan(on, types, asked_of<gs::PlanOptions>(nodes, call)));
    return told(client_.differentiate(on, types, asked_of<gs::DifferentiateOptions>(nodes, call)));
}

std::string Conversation::graph_id(const json& call) {
    if (call.contains("graph_id")) return call["graph_id"];
    const json key = key_of(call.at("graph"));
    if (!registered_.contains(key)) registered(call["graph"]);
    return registered_.at(key).id();
}

json Conversation::put_model(const json& call) {
    gs::ModelDefinition definition{.graph_id = graph_id(call), .description = call.value("description", "")};
    for (const json& each : call.at("inputs"))
        definition.inputs.push_back({each["name"], each["node"], each["dtype"].get<std::string>(), each["shape"]});
    for (const json& each : call.at("outputs"))
        definition.outputs.push_back({.name = each["name"], .node = each["node"]});
    for (const json& each : call.at("bound"))
        definition.bound.push_back({.node = each["node"], .tensor_name = each["tensor_id"]});
    return told(client_.put_model(
        call.at("name"), definition,
        {.if_match = call.value("if_match", ""), .if_none_match = call.value("if_none_match", "")}));
}

template <class T>
static json all_of(gs::Listing<T> listing) {
    json made = json::array();
    for (const T& each : listing) made.push_back(told(each));
    return made;
}

static gs::ListOptions list_options_of(const json& call) {
    gs::ListOptions options;
    if (call.contains("limit")) options.limit = call["limit"].get<std::int64_t>();
    return options;
}

static json told_ops(const gs::Catalogue& catalogue) {
    json ops = json::array();
    for (const gs::CatalogueOp& op : catalogue.ops) ops.push_back(told(op.fields));
    return {{"opset", catalogue.opset}, {"ops", ops}};
}

json Conversation::done(const json& call) {
    const std::string& name = call.at("do").get_ref<const std::string&>();
    const std::string tensor = call.value("name", "");
    if (name == "register") return registered(call);
    if (name == "put")
        return told(client_.put(tensor, tensor_of(call.at("tensor")),
                                {.if_match = call.value("if_match", ""),
                                 .if_none_match = call.value("if_none_match", ""),
                                 .form = form_of(call)}));
    if (name == "get") {
        const auto found = client_.get(tensor, {.form = form_of(call)});
        return {{"tensor_id", found.resident.name}, {"etag", found.resident.etag}, {"tensor", bits_of(found.tensor)}};
    }
    if (name == "delete") return told(client_.remove(tensor, {.if_match = call.value("if_match", "")}));
    if (name == "list_tensors") return {{"tensors", all_of(client_.tensors(list_options_of(call)))}};
    if (name == "list_graphs") return {{"graphs", all_of(client_.graphs(list_options_of(call)))}};
    if (name == "put_model") return put_model(call);
    if (name == "get_model") return told(client_.model(tensor));
    if (name == "delete_model") return told(client_.remove_model(tensor, {.if_match = call.value("if_match", "")}));
    if (name == "list_models") return {{"models", all_of(client_.models(list_options_of(call)))}};
    if (name == "delete_graph") return told(client_.unregister(graph_id(call)));
    if (name == "ops") return told_ops(client_.ops());
    return computed(call);
}

}  // namespace conformance
