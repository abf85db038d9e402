#include "message.hpp"

#include "graph_state.hpp"
#include "json_writing.hpp"
#include "opset.hpp"
#include "tensor_json.hpp"
#include "within.hpp"

namespace gradserve {

void Message::place(const Tensor& tensor, const std::string& where, Json::Object& holder, const std::string& key) {
    if (form_ == Form::safetensors) beside_.tensors.insert_or_assign(where, tensor);
    else holder[key] = tensor;
}

Json::List Message::nodes(const GraphState& graph, std::size_t count, const std::string& constants) {
    Json::List nodes;
    for (std::size_t id = 0; id < count; ++id) {
        const NodeEntry& node = graph.nodes[id];
        Json::Object stated{{"op", node.op}};
        if (!node.operands.empty()) stated["operands"] = node.operands;
        if (!node.name.empty()) stated["name"] = node.name;
        Json::Object attrs;
        for (const auto& [name, value] : node.attrs) {
            if (const auto* const tensor = value.get_if<Tensor>())
                place(*tensor, constants + std::to_string(id), attrs, name);
            else attrs[name] = value;
        }
        if (!node.attrs.empty()) stated["attrs"] = std::move(attrs);
        nodes.emplace_back(std::move(stated));
    }
    return nodes;
}

Json::Object Message::graph(const Graph& graph, std::size_t count) {
    const GraphState& state = GraphState::of(graph);
    if (state.around != nullptr)
        throw InputError(state.describe() + " cannot be sent by itself; send the graph that contains it");
    Json::Object stated{{"nodes", nodes(state, count, "constants.")}};
    if (const auto opset = opset_of(state, count)) stated["opset"] = *opset;
    Json::List functions;
    for (const GraphState* const body : state.functions) {
        const std::string constants = "functions." + std::to_string(functions.size()) + ".constants.";
        Json::Object function{{"nodes", nodes(*body, body->nodes.size(), constants)}, {"outputs", *body->outputs}};
        if (!body->function_name.empty()) function["name"] = body->function_name;
        functions.emplace_back(std::move(function));
    }
    if (!functions.empty()) stated["functions"] = std::move(functions);
    return stated;
}

/// Writes a list with an entry for each node, in order of ids.
template <class T, class Entry>
static Json::List entries(const Graph& graph, const std::map<Node, T>& of, Entry&& entry) {
    Json::List list;
    for (const auto& [node, value] : of) {
        check_owner(graph, node);
        Json::Object made{{"node", node.id()}};
        entry(node, value, made);
        list.emplace_back(std::move(made));
    }
    return list;
}

void Message::fill_tensors(const std::string& role, const Feeds& feeds, const Graph& graph) {
    if (feeds.empty()) return;
    fields[role] = within(role, [&] {
        return entries(graph, feeds, [&](const Node& node, const Feed& feed, Json::Object& entry) {
            if (const auto* const resident = std::get_if<Resident>(&feed.value())) {
                entry["tensor_id"] = resident->name;
            } else if (const auto* const rows = std::get_if<Rows>(&feed.value())) {
                entry["tensor_id"] = rows->name;
                entry["rows"] = Json::List{rows->start, rows->stop};
            } else {
                place(std::get<Tensor>(feed.value()), role + "." + std::to_string(node.id()), entry, "tensor");
            }
        });
    });
}

void Message::fill_nodes(const Graph& graph, const Asked& asked) {
    if (asked.of) {
        within("of", [&] { check_owner(graph, *asked.of); });
        fields["of"] = asked.of->id();
    }
    for (const auto& [name, nodes] : asked.lists) {
        if (!nodes.is_stated()) continue;
        Json::List ids;
        for (const Node& node : *nodes.entries()) {
            within(name, [&] { check_owner(graph, node); });
            ids.emplace_back(node.id());
        }
        fields[name] = std::move(ids);
    }
}

static Json::List stores_in(const Graph& graph, const Stores& stores) {
    return entries(graph, stores, [](const Node&, const Store& store, Json::Object& entry) {
        entry["tensor_id"] = store.name;
        if (store.if_match) entry["if_match"] = *store.if_match;
        if (store.durable) entry["durable"] = *store.durable;
        if (store.gradient) entry["gradient"] = true;
    });
}

static Json::List types_in(const Graph& graph, const Types& types) {
    return entries(graph, types, [](const Node&, const Type& type, Json::Object& entry) {
        entry["dtype"] = type.dtype;
        entry["shape"] = type.shape;
    });
}

void Message::fill(const Graph& graph, std::size_t count, const Asked& asked) {
    fill_nodes(graph, asked);
    for (const auto& [role, feeds] : asked.tensors) fill_tensors(role, feeds, graph);
    if (asked.cotangent) {
        const std::size_t of = asked.of ? asked.of->id() : count - 1;
        place(*asked.cotangent, "cotangents." + std::to_string(of), fields, "cotangent");
    }
    if (!asked.store.empty()) fields["store"] = within("store", [&] { return stores_in(graph, asked.store); });
    if (!asked.types.empty()) fields["types"] = within("types", [&] { return types_in(graph, asked.types); });
    for (const auto& [name, value] : asked.values) fields[name] = value;
}

Body Message::body() const {
    const std::string text = written(fields, form_);
    if (form_ != Form::safetensors) return {media_json, {Bytes(text)}};
    SafetensorsFile file = beside_;
    file.metadata["request"] = text;
    return {media_safetensors, encode_safetensors(file)};
}

Form form_of(std::optional<Form> asked, std::size_t size) { return asked.value_or(default_form(size)); }

static std::size_t size_of_node(const NodeEntry& node) {
    std::size_t size = 0;
    for (const auto& [name, value] : node.attrs)
        if (const auto* const tensor = value.get_if<Tensor>()) size += tensor->bytes().size();
    return size;
}

std::size_t size_of(const Graph& graph, std::size_t count) {
    const GraphState& state = GraphState::of(graph);
    std::size_t size = 0;
    for (std::size_t id = 0; id < count; ++id) size += size_of_node(state.nodes[id]);
    for (const GraphState* const body : state.functions)
        for (const NodeEntry& node : body->nodes) size += size_of_node(node);
    return size;
}

std::size_t size_of(const Asked& asked) {
    std::size_t size = asked.cotangent ? asked.cotangent->bytes().size() : 0;
    for (const auto& [role, feeds] : asked.tensors)
        for (const auto& [node, feed] : feeds)
            if (const auto* const tensor = std::get_if<Tensor>(&feed.value())) size += tensor->bytes().size();
    return size;
}

Body body_of(const Tensor& tensor, std::optional<Form> form) {
    const Form chosen = form_of(form, tensor.bytes().size());
    if (chosen == Form::safetensors) return {media_safetensors, encode_safetensors({{{"tensor", tensor}}, {}})};
    return {media_json, {Bytes(encode_json(tensor, chosen))}};
}

}  // namespace gradserve
