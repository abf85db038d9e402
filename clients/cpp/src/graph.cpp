#include <gradserve/graph.hpp>

#include "graph_state.hpp"
#include "json_reading.hpp"
#include "json_writing.hpp"
#include "message.hpp"
#include "tensor_json.hpp"
#include "within.hpp"

namespace gradserve {

std::string NodeEntry::describe(std::size_t id) const {
    const std::string known = "node " + std::to_string(id) + " (" + op;
    return name.empty() ? known + ")" : known + ", \"" + name + "\")";
}

const std::string& Node::op() const { return graph_->nodes[id_].op; }

const std::string& Node::name() const { return graph_->nodes[id_].name; }

Graph Node::graph() const { return Graph(graph_); }

const Node& Node::named(std::string name) const {
    within(describe() + ": its name", [&] { check_that_json_has(name); });
    graph_->nodes[id_].name = std::move(name);
    return *this;
}

std::string Node::describe() const { return graph_->nodes[id_].describe(id_); }

Node Appender::op(std::string name, const std::vector<Node>& operands, Attrs attrs) {
    NodeEntry made{std::move(name), {}, {}, {}};
    const std::size_t id = state_->nodes.size();
    return within(made.describe(id), [&] {
        check_that_json_has(made.op);
        for (const Node& operand : operands) {
            if (operand.graph_ != state_)
                throw InputError("operand " + std::to_string(made.operands.size()) + ": " + operand.describe() +
                                 " is a node of another graph");
            made.operands.push_back(static_cast<std::int64_t>(operand.id_));
        }
        for (auto& [attribute, value] : attrs) {
            within("attribute " + attribute, [&] { check_that_json_has(value); });
            // What happens later to memory that is borrowed is none of the graph's.
            if (const auto* const tensor = value.get_if<Tensor>()) value = tensor->owned();
        }
        made.attrs = std::move(attrs);
        state_->nodes.push_back(std::move(made));
        return Node(state_, id);
    });
}

Node Appender::typed(const char* name, std::initializer_list<std::optional<Node>> operands,
                     std::initializer_list<Stated> attrs) {
    std::vector<Node> there;
    bool is_behind_the_last = false;
    for (const std::optional<Node>& operand : operands) {
        if (operand && is_behind_the_last)
            throw InputError(std::string(name) + ": operand " + std::to_string(there.size()) +
                             " is absent, and a later one is not");
        if (operand) there.push_back(*operand);
        else is_behind_the_last = true;
    }
    return typed(name, there, attrs);
}

Node Appender::typed(const char* name, const std::vector<Node>& operands, std::initializer_list<Stated> attrs) {
    Attrs there;
    for (const Stated& attribute : attrs)
        if (attribute.value) there.emplace(attribute.name, *attribute.value);
    return op(name, operands, std::move(there));
}

Graph::Graph() : Ops(std::make_shared<GraphState>()) {}

void Graph::set_opset(std::int64_t version) { state_->opset = version; }

std::optional<std::int64_t> Graph::opset() const { return state_->opset; }

std::size_t Graph::size() const { return state_->nodes.size(); }

std::vector<Node> Graph::nodes() const {
    std::vector<Node> all;
    for (std::size_t id = 0; id < size(); ++id) all.push_back(Node(state_, id));
    return all;
}

Node Graph::node(std::size_t id) const {
    if (id >= size())
        throw InputError("there is no node " + std::to_string(id) + " in a graph of " + std::to_string(size()));
    return {state_, id};
}

Node Graph::find(std::string_view name) const {
    std::optional<Node> found;
    for (const Node& node : nodes()) {
        if (node.name() != name || name.empty()) continue;
        if (found) throw InputError(found->describe() + " and " + node.describe() + " have the same name");
        found = node;
    }
    if (!found) throw InputError("no node of the graph is called “" + std::string(name) + "”");
    return *found;
}

void check_owner(const Graph& graph, const Node& node) {
    if (!graph.owns(node)) throw InputError(node.describe() + " is a node of another graph");
}

std::string Graph::text() const { return Json(Message(Form::base64).graph(*this, size())).text(); }

/// Appends a node as the wire has it.
static void read_node(Graph& graph, const Json& stated) {
    const Json::Object& members = object_in(&stated);
    std::vector<Node> operands;
    if (const Json* const ids = member(members, "operands"))
        for (const std::int64_t id : shape_in(ids)) operands.push_back(graph.node(static_cast<std::size_t>(id)));
    Attrs attrs;
    if (const Json* const stated_attrs = member(members, "attrs"))
        for (const auto& [name, value] : object_in(stated_attrs))
            attrs[name] = value.find("dtype") != nullptr && value.find("shape") != nullptr ? tensor_in(&value) : value;
    const Node made = graph.op(text_in(member(members, "op")), operands, std::move(attrs));
    if (const Json* const name = member(members, "name")) made.named(text_in(name));
}

Graph graph_in(const Json* value) {
    const Json::Object& members = object_in(value);
    Graph graph;
    if (const Json* const opset = member(members, "opset")) graph.set_opset(whole_in(opset));
    for (const Json& stated : list_in(member(members, "nodes"))) within("a node", [&] { read_node(graph, stated); });
    return graph;
}

Graph Graph::parse(std::string_view text) {
    return promised([&] {
        const Json read = Json::parse(text);
        return graph_in(&read);
    });
}

}  // namespace gradserve
