#include "check.hpp"

#include <gradserve/errors.hpp>
#include <gradserve/graph.hpp>

#include <optional>

namespace gs = gradserve;

/// A step of a decay.
static gs::GraphFunction euler_of(gs::Graph& graph) {
    return graph.function("euler", [](gs::Graph& body) {
        const auto k = body.input("k"), y = body.input("y");
        const auto next = y + k * y * -0.5;
        return std::vector{next, next};
    });
}

static void a_function_is_sent_with_its_graph() {
    gs::Graph graph;
    const auto euler = euler_of(graph);
    const auto scanned = graph.scan(euler, {graph.parameter("k"), graph.input("y0")}, {.carries = 1, .length = 4});
    graph.sum(graph.get_output(scanned, 1));
    CHECK(graph.text() ==
          R"({"functions":[{"name":"euler","nodes":[{"name":"k","op":"input"},{"name":"y","op":"input"},)"
          R"({"op":"mul","operands":[0,1]},{"attrs":{"scalar":-0.5},"op":"mul_scalar","operands":[2]},)"
          R"({"op":"add","operands":[1,3]}],"outputs":[4,4]}],)"
          R"("nodes":[{"name":"k","op":"parameter"},{"name":"y0","op":"input"},)"
          R"({"attrs":{"body":0,"carries":1,"length":4},"op":"scan","operands":[0,1]},)"
          R"({"attrs":{"index":1},"op":"get_output","operands":[2]},{"op":"sum","operands":[3]}],"opset":2})");
    CHECK(gs::Graph::parse(graph.text()).text() == graph.text());
}

static void a_handle_says_what_the_function_takes_and_gives() {
    gs::Graph graph;
    const auto twice = graph.function(
        [](gs::Graph& body) { return std::vector{body.input("x", {.dtype = gs::DType::float32}) * 2}; });
    const auto euler = euler_of(graph);
    CHECK(twice.index() == 0 && twice.name().empty() && twice.describe() == "function 0");
    CHECK(twice.parameters().size() == 1 && twice.outputs().size() == 1);
    CHECK(euler.index() == 1 && euler.describe() == R"(function 1 ("euler"))");
    CHECK(euler.parameters().at(1).name() == "y" && euler.outputs().at(1).id() == 4);
    CHECK(euler.body().size() == 5 && euler.body().owns(euler.outputs().front()));
    CHECK(graph.functions() == (std::vector{twice, euler}) && euler.body().functions() == graph.functions());
    CHECK(graph.size() == 0);
}

static void a_function_uses_those_before_it_and_those_within_it() {
    gs::Graph graph;
    const auto twice = graph.function("twice", [](gs::Graph& body) { return std::vector{body.input() * 2}; });
    const auto outer = graph.function([&](gs::Graph& body) {
        const auto inner = body.function("inner", [](gs::Graph& each) { return std::vector{-each.input()}; });
        const auto doubled = body.get_output(body.call(twice, {body.input()}), 0);
        return std::vector{body.get_output(body.op("call", {doubled}, {{"body", inner}}), 0)};
    });
    CHECK(outer.index() == 2);
    CHECK(contains(graph.text(), R"({"attrs":{"body":0},"op":"call","operands":[0]})"));
    CHECK(contains(graph.text(), R"({"attrs":{"body":1},"op":"call","operands":[2]})"));
}

static void a_function_sees_only_what_is_passed_to_it() {
    gs::Graph graph;
    const auto k = graph.parameter("k");
    CHECK(thrown<gs::InputError>([&] {
              graph.function("f", [&](gs::Graph& body) { return std::vector{body.input("y") * k}; });
          }) == R"(node 1 (mul) of the function "f": operand 1: node 0 (parameter, "k") is outside this function, )"
                "which can use only the operands passed to it");
    CHECK(thrown<gs::InputError>([&] {
              graph.function("f", [&](gs::Graph& body) { return std::vector{k * body.input("y")}; });
          }) == R"(node 1 (mul): operand 1: node 0 (input, "y") of the function "f" is inside a function, )"
                "and only the function's results can be used outside it");
    CHECK(thrown<gs::InputError>([&] { graph.function([&](gs::Graph&) { return std::vector{k}; }); }) ==
          R"(a function: output 0: node 0 (parameter, "k") is outside this function, which can use only the )"
          "operands passed to it");
    CHECK(graph.functions().empty() && graph.size() == 1);
}

static void a_function_belongs_to_one_graph() {
    gs::Graph graph;
    gs::Graph other;
    const auto euler = euler_of(other);
    const char* const wrong = R"((call): attribute body: function 0 ("euler") belongs to another graph)";
    CHECK(contains(thrown<gs::InputError>([&] { graph.call(euler, {}); }), wrong));
    CHECK(contains(thrown<gs::InputError>([&] { graph.op("call", {}, {{"body", gs::Json::List{euler}}}); }), wrong));
}

static void a_function_is_complete_and_keeps_its_graph() {
    std::optional<gs::Node> kept;
    {
        gs::Graph graph;
        graph.function([&](gs::Graph& body) { return std::vector{kept.emplace(body.input("y"))}; });
    }
    CHECK(thrown<gs::InputError>([&] { static_cast<void>(-*kept); }) ==
          "node 1 (neg) of a function: nothing can be appended to a complete function");
    CHECK(thrown<gs::InputError>([&] { static_cast<void>(kept->graph().text()); }) ==
          "a function cannot be sent by itself; send the graph that contains it");
    CHECK(kept->graph().functions().front().parameters().front() == *kept);
}

static void a_graph_says_the_opset_that_its_functions_need() {
    gs::Graph graph;
    graph.function([](gs::Graph& body) { return std::vector{body.input()}; });
    CHECK(graph.text().ends_with(R"(,"nodes":[],"opset":2})"));
    graph.set_opset(3);
    CHECK(graph.text().ends_with(R"(,"nodes":[],"opset":3})"));
}

static void what_is_no_function_is_refused() {
    for (const char* const functions :
         {"1", "[1]", "[{}]", R"([{"nodes":[],"outputs":[0]}])", R"([{"nodes":[],"outputs":1}])"})
        CHECK(throws<gs::MalformedAnswer>([&] {
            static_cast<void>(gs::Graph::parse(std::string(R"({"nodes":[],"functions":)") + functions + "}"));
        }));
}

int main() {
    return run({{"a function is sent with its graph", a_function_is_sent_with_its_graph},
                {"a handle says what the function takes and gives", a_handle_says_what_the_function_takes_and_gives},
                {"a function uses those before it and those within it",
                 a_function_uses_those_before_it_and_those_within_it},
                {"a function sees only what is passed to it", a_function_sees_only_what_is_passed_to_it},
                {"a function belongs to one graph", a_function_belongs_to_one_graph},
                {"a function is complete and keeps its graph", a_function_is_complete_and_keeps_its_graph},
                {"a graph says the opset that its functions need", a_graph_says_the_opset_that_its_functions_need},
                {"what is no function is refused", what_is_no_function_is_refused}});
}
