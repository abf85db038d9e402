#include <gradserve/graph.hpp>

#include "graph_state.hpp"
#include "json_reading.hpp"
#include "json_writing.hpp"
#include "message.hpp"
#include "tensor_json.hpp"
#include "within.hpp"

namespace gradserve {

std::string GraphState::describe() const {
    if (around == nullptr) return "the graph";
    return function_name.empty() ? "a function" : "the function \"" + function_name + "\"";
}

std::string GraphState::describe(const NodeEntry& node, std::size_t id) const {
    const std::string named = node.name.empty() ? "" : ", \"" + node.name + "\"";
    const std::string told = "node " + std::to_string(id) + " (" + node.op + named + ")";
    return around == nullptr ? told : told + " of " + describe();
}

void GraphState::check(const Node& node) const {
    if (node.graph_.get() == this) return;
    const char* const elsewhere = &node.graph_->whole() != &whole() ? " belongs to another graph"
                                  : around == nullptr
                                      ? " is inside a function, and only the function's results can be used outside it"
                                      : " is outside this function, which can use only the operands passed to it";
    throw InputError(node.describe() + elsewhere);
}

void GraphState::check(const GraphFunction& function) const {
    if (&function.body_->whole() != &whole())
        throw InputError(function.describe() + " belongs to another graph");
}

const std::string& Node::op() const { return graph_->nodes[id_].op; }

const std::string& Node::name() const { return graph_->nodes[id_].name; }

Graph Node::graph() const { return Graph(graph_); }

const Node& Node::named(std::string name) const {
    within(describe() + ": name", [&] { check_that_json_has(name); });
    graph_->nodes[id_].name = std::move(name);
    return *this;
}

std::string Node::describe() const { return graph_->describe(graph_->nodes[id_], id_); }

const std::string& GraphFunction::name() const { return body_->function_name; }

Graph GraphFunction::body() const { return Graph(body_); }

std::vector<Node> GraphFunction::parameters() const {
    std::vector<Node> inputs = body().nodes();
    std::erase_if(inputs, [](const Node& node) { return node.op() != "input"; });
    return inputs;
}

std::vector<Node> GraphFunction::outputs() const {
    std::vector<Node> made;
    for (const std::size_t id : *body_->outputs) made.push_back(body().node(id));
    return made;
}

std::string GraphFunction::describe() const {
    const std::string known = "function " + std::to_string(index_);
    return name().empty() ? known : known + " (\"" + name() + "\")";
}

/// Converts a value to one that a graph can store.
static void settle(Json& value, const GraphState& graph) {
    if (auto* const list = std::get_if<Json::List>(&value.value())) {
        for (Json& each : *list) settle(each, graph);
    } else if (const auto* const tensor = value.get_if<Tensor>()) {
        // A copy: later changes of borrowed memory do not change the graph.
        value = tensor->owned();
    } else if (const auto* const function = value.get_if<GraphFunction>()) {
        graph.check(*function);
        // A handle would make the graph keep itself alive.
        value = function->index();
    }
}

Node Appender::op(std::string name, const std::vector<Node>& operands, Attrs attrs) {
    NodeEntry made{std::move(name), {}, {}, {}};
    const std::size_t id = state_->nodes.size();
    return within(state_->describe(made, id), [&] {
        if (state_->outputs) throw InputError("nothing can be appended to a complete function");
        check_that_json_has(made.op);
        for (const Node& operand : operands) {
            within("operand " + std::to_string(made.operands.size()), [&] { state_->check(operand); });
            made.operands.push_back(static_cast<std::int64_t>(operand.id_));
        }
        for (auto& [attribute, value] : attrs) {
            within("attribute " + attribute, [&] {
                check_that_json_has(value);
                settle(value, *state_);
            });
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
                             " is absent, but a later one is present");
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

GraphFunction Graph::function(std::string name, const Body& write) {
    within("the name of a function", [&] { check_that_json_has(name); });
    GraphState& around = state_->around == nullptr ? *state_ : *state_->around;
    Graph body(std::shared_ptr<GraphState>(state_, &around.bodies.emplace_back()));
    body.state_->around = &around;
    body.state_->function_name = std::move(name);
    const std::vector<Node> outputs = write(body);
    within(body.state_->describe(), [&] {
        for (std::size_t place = 0; place < outputs.size(); ++place)
            within("output " + std::to_string(place), [&] { body.state_->check(outputs[place]); });
    });
    auto& ids = body.state_->outputs.emplace();
    for (const Node& output : outputs) ids.push_back(output.id());
    around.functions.push_back(body.state_.get());
    return functions().back();
}

std::vector<GraphFunction> Graph::functions() const {
    std::vector<GraphFunction> all;
    for (GraphState* const body : state_->whole().functions)
        all.push_back(GraphFunction(std::shared_ptr<GraphState>(state_, body), all.size()));
    return all;
}

std::size_t Graph::size() const { return state_->nodes.size(); }

std::vector<Node> Graph::nodes() const {
    std::vector<Node> all;
    for (std::size_t id = 0; id < size(); ++id) all.push_back(Node(state_, id));
    return all;
}

Node Graph::node(std::size_t id) const {
    if (id >= size())
        throw InputError("the graph has no node " + std::to_string(id) +
                         " (number of nodes: " + std::to_string(size()) + ")");
    return {state_, id};
}

Node Graph::find(std::string_view name) const {
    std::optional<Node> found;
    for (const Node& node : nodes()) {
        if (node.name() != name || name.empty()) continue;
        if (found) throw InputError(found->describe() + " and " + node.describe() + " have the same name");
        found = node;
    }
    if (!found) throw InputError("the graph has no node named “" + std::string(name) + "”");
    return *found;
}

void check_owner(const Graph& graph, const Node& node) { GraphState::of(graph).check(node); }

std::string Graph::text() const { return Json(Message(Form::base64).graph(*this, size())).text(); }

/// Appends a node in the JSON form of the API.
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

static void read_nodes(Graph& graph, const Json::Object& members) {
    for (const Json& stated : list_in(member(members, "nodes")))
        within("node " + std::to_string(graph.size()), [&] { read_node(graph, stated); });
}

/// Appends a function in the JSON form of the API.
static void read_function(Graph& graph, const Json& stated) {
    const Json::Object& members = object_in(&stated);
    const Json* const name = member(members, "name");
    graph.function(name == nullptr ? "" : text_in(name), [&](Graph& body) {
        read_nodes(body, members);
        std::vector<Node> outputs;
        if (const Json* const ids = member(members, "outputs"))
            for (const std::int64_t id : shape_in(ids)) outputs.push_back(body.node(static_cast<std::size_t>(id)));
        return outputs;
    });
}

Graph graph_in(const Json* value) {
    const Json::Object& members = object_in(value);
    Graph graph;
    if (const Json* const opset = member(members, "opset")) graph.set_opset(whole_in(opset));
    if (const Json* const functions = member(members, "functions"))
        for (const Json& stated : list_in(functions))
            within("function " + std::to_string(graph.functions().size()), [&] { read_function(graph, stated); });
    read_nodes(graph, members);
    return graph;
}

Graph Graph::parse(std::string_view text) {
    return promised([&] {
        const Json read = Json::parse(text);
        return graph_in(&read);
    });
}

}  // namespace gradserve
