#include "check.hpp"

#include <gradserve/errors.hpp>
#include <gradserve/graph.hpp>

#include <cmath>
#include <limits>

namespace gs = gradserve;

static void operators_are_ops() {
    gs::Graph graph;
    const gs::Node x = graph.input(), y = graph.input();
    const gs::Node made[] = {-x, x + y, x - y, x * y, x / y, x + 2, x - 2, 3 * x, x / 2, 1 / x};
    const char* const ops[] = {"neg",        "add",        "sub",        "mul",        "div",
                               "add_scalar", "add_scalar", "mul_scalar", "div_scalar", "reciprocal"};
    for (std::size_t place = 0; place < std::size(made); ++place) CHECK(made[place].op() == ops[place]);
    const std::size_t before = graph.size();
    CHECK((1 - x).op() == "add_scalar" && (2 / x).op() == "mul_scalar" && graph.size() == before + 4);
    CHECK(contains(graph.text(), R"({"attrs":{"scalar":-2},"op":"add_scalar")"));
}

static void what_is_not_set_is_not_sent() {
    gs::Graph graph;
    const gs::Node x = graph.input();
    graph.sum(x);
    graph.sum(x, {.axes = std::vector<std::int64_t>{}, .keepdims = false});
    graph.layer_norm(x, {.weight = x});
    graph.softmax(x, {.axis = 0});
    CHECK(graph.text() ==
          R"({"nodes":[{"op":"input"},{"op":"sum","operands":[0]},)"
          R"({"attrs":{"axes":[],"keepdims":false},"op":"sum","operands":[0]},{"op":"layer_norm","operands":[0,0]},)"
          R"({"attrs":{"axis":0},"op":"softmax","operands":[0]}]})");
}

static void numbers_keep_all_of_their_digits() {
    gs::Graph graph;
    graph.full({.fill = std::numeric_limits<std::int64_t>::max()});
    graph.full({.fill = std::numeric_limits<std::uint64_t>::max()});
    graph.full({.fill = -0.0});
    graph.arange(3);
    for (const char* const number : {":9223372036854775807}", ":18446744073709551615}", ":-0.0}", ":3}"})
        CHECK(contains(graph.text(), number));
}

static void what_is_wrong_names_the_op() {
    gs::Graph graph;
    gs::Graph other;
    const gs::Node x = graph.input("x");
    const gs::Node y = other.input("y");
    CHECK(thrown<gs::InputError>([&] { graph.mul(x, y); }) ==
          R"(node 1 (mul): operand 1: node 0 (input, "y") belongs to another graph)");
    CHECK(contains(thrown<gs::InputError>([&] { graph.cat({x, y}); }), "node 1 (cat): operand 1"));
    CHECK(contains(thrown<gs::InputError>([&] { graph.add_scalar(x, std::nan("")); }), "(add_scalar): attribute scalar"));
    CHECK(contains(thrown<gs::InputError>([&] { graph.layer_norm(x, {.bias = x}); }), "layer_norm: operand 1"));
    const gs::Attrs no_text{{"a", gs::Json::List{"\xff"}}};
    CHECK(contains(thrown<gs::InputError>([&] { graph.op("new", {}, no_text); }), "attribute a"));
    CHECK(throws<gs::InputError>([&] { x.named("\xff"); }));
    CHECK(graph.size() == 1);
}

static void constants_are_what_they_were() {
    gs::Graph graph;
    std::vector<std::uint8_t> elements{0};
    graph.constant(gs::Tensor::borrowed(std::span(elements), {1}));
    elements.front() = 0xef;
    CHECK(contains(graph.text(), R"("AA==")"));
}

static void nodes_are_found() {
    gs::Graph graph;
    const gs::Node x = graph.input("x");
    const gs::Node y = graph.tanh(x).named("y");
    graph.tanh(y).named("y");
    CHECK(graph.find("x") == x && graph.node(1) == y && y.graph() == graph);
    for (const char* const name : {"y", "z", ""})
        CHECK(throws<gs::InputError>([&] { static_cast<void>(graph.find(name)); }));
    CHECK(throws<gs::InputError>([&] { static_cast<void>(graph.node(3)); }));
}

static void handles_keep_their_graph() {
    const auto made = [] {
        gs::Graph graph;
        return graph.tanh(graph.input("x"));
    };
    const gs::Node y = made();
    const std::string& op = y.op();
    for (int count = 0; count < 1000; ++count) y.graph().tanh(y);
    CHECK(op == "tanh" && y.graph().find("x").id() == 0);
}

static void graphs_are_read_as_they_are_written() {
    const std::string text =
        R"({"nodes":[{"attrs":{"new":[1.5,{"a":null}],"whole":9007199254740993},"name":"x","op":"of_tomorrow"},)"
        R"({"attrs":{"value":{"dtype":"bool","shape":[1],"data_b64":"AQ=="}},"op":"constant"},)"
        R"({"op":"add","operands":[0,1]}],"opset":2})";
    CHECK(gs::Graph::parse(text).text() == text);
}

static void a_graph_says_which_opset_it_needs() {
    using Write = void (*)(gs::Graph&);
    const std::pair<const char*, Write> written[] = {
        {R"(,"opset":2})", [](gs::Graph& graph) { graph.random_key(graph.input("seed")); }},
        {R"(,"opset":2})", [](gs::Graph& graph) { graph.op("random_key", {graph.input("seed")}); }},
        {R"(,"opset":2})", [](gs::Graph& graph) { graph.parameter("key", {.dtype = gs::DType::uint32}); }},
        {R"(,"opset":2})", [](gs::Graph& graph) { graph.cast(graph.input("x"), gs::DType::uint32); }},
        {R"(,"opset":2})", [](gs::Graph& graph) { graph.constant(std::vector<std::uint32_t>{0, 4294967295}); }},
        {R"(,"opset":2})", [](gs::Graph& graph) { graph.constant(std::complex(1.0, -2.0)); }},
        {R"(,"opset":2})", [](gs::Graph& graph) { graph.cast(graph.input("x"), gs::DType::int16); }},
        {"}]}", [](gs::Graph& graph) { graph.cast(graph.input("x"), gs::DType::int32); }},
        {"}]}", [](gs::Graph& graph) { graph.op("new", {}, {{"dtype", "float8"}, {"word", "uint32"}}); }}};
    for (const auto& [end, write] : written) {
        gs::Graph usual;
        gs::Graph stated;
        stated.set_opset(1);
        write(usual);
        write(stated);
        CHECK(usual.text().ends_with(end));
        CHECK(stated.text().ends_with(R"(,"opset":1})"));
    }
}

static void graphs_that_are_none_are_refused() {
    for (const char* const text :
         {"[]", "{}", R"({"nodes": [1]})", R"({"nodes": [{"op": 1}]})",
          R"({"nodes": [{"op": "add", "operands": [0]}]})", R"({"nodes": [{"op": "add", "operands": [-1]}]})", R"({"nodes": [{"op": "x", "name": 1}]})",
          R"({"nodes": [{"op": "x", "attrs": []}]})", R"({"nodes": [], "opset": "1"})",
          R"({"nodes": [{"op": "x", "attrs": {"value": {"dtype": "new", "shape": []}}}]})"})
        CHECK(throws<gs::MalformedAnswer>([&] { static_cast<void>(gs::Graph::parse(text)); }));
}

int main() {
    return run({{"operators are ops", operators_are_ops},
                {"what is not set is not sent", what_is_not_set_is_not_sent},
                {"numbers keep all of their digits", numbers_keep_all_of_their_digits},
                {"what is wrong names the op", what_is_wrong_names_the_op},
                {"constants are what they were", constants_are_what_they_were},
                {"nodes are found", nodes_are_found},
                {"handles keep their graph", handles_keep_their_graph},
                {"graphs are read as they are written", graphs_are_read_as_they_are_written},
                {"a graph says which opset it needs", a_graph_says_which_opset_it_needs},
                {"graphs that are none are refused", graphs_that_are_none_are_refused}});
}
