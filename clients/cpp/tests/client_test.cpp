#include "check.hpp"
#include "server.hpp"

#include <gradserve/gradserve.hpp>

#include <atomic>
#include <cstdlib>

namespace gs = gradserve;
using namespace std::chrono_literals;

static const std::string square = R"({"values": [{"node": 1, "tensor": {"dtype": "float64", "shape": [], "data": [9]}}],
    "gradients": [{"node": 0, "tensor": {"dtype": "float64", "shape": [], "data": [6]}}], "disconnected": []})";

/// A graph of w², and what it is fed.
struct Square {
    gs::Graph graph;
    gs::Node w = graph.parameter("w");
    gs::Node loss = graph.square(w).named("loss");
    gs::Feeds three{{w, 3.0}};
};

/// Waits that are over at once.
static gs::Surroundings still() {
    gs::Surroundings made = gs::Surroundings::usual();
    made.wait = [](std::chrono::milliseconds, const std::stop_token&) {};
    return made;
}

static void results_are_looked_up() {
    Server server([](Seen& seen) { seen.answer(200, square); });
    const Square on;
    const auto answer = gs::Client(server.url()).gradients(on.graph, on.three);
    CHECK(answer.value().item<double>() == 9 && answer.values["loss"] == gs::Tensor(9.0));
    CHECK(answer.gradients[on.w].item<double>() == 6 && &answer.gradients["w"] == &answer.gradients.at(0));
    CHECK(throws<gs::InputError>([&] { static_cast<void>(answer.gradients[on.loss]); }));
    CHECK(throws<gs::InputError>([&] { static_cast<void>(answer.gradients[""]); }));
    CHECK(throws<gs::InputError>([&] { static_cast<void>(answer.gradients.at(1)); }));
}

static void cancelled_before_it_begins() {
    Server server([](Seen&) { CHECK(!"it was sent"); });
    const Square on;
    std::stop_source source;
    source.request_stop();
    const gs::Client client(server.url());
    CHECK(throws<gs::Cancelled>([&] { client.forward(on.graph, on.three, {.stop = source.get_token()}); }));
}

static void cancelled_within_an_answer() {
    std::stop_source source;
    Server server([&](Seen& seen) {
        seen.write("HTTP/1.1 200 -\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n");
        source.request_stop();
    });
    const Square on;
    const gs::Client client(server.url(), {.timeout = gs::without_end});
    CHECK(throws<gs::Cancelled>([&] { client.forward(on.graph, on.three, {.stop = source.get_token()}); }));
}

static void cancelled_within_a_wait() {
    std::stop_source source;
    Server server([&](Seen& seen) {
        seen.answer(503, "", "Retry-After: 3600\r\n");
        source.request_stop();
    });
    const Square on;
    const gs::Client client(server.url(), {.timeout = gs::without_end});
    CHECK(throws<gs::Cancelled>([&] { client.forward(on.graph, on.three, {.stop = source.get_token()}); }));
}

static void an_answer_that_never_ends_is_over_at_the_deadline() {
    Server server([](Seen& seen) {
        seen.write("HTTP/1.1 200 -\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n");
    });
    const Square on;
    const gs::Client client(server.url());
    CHECK(throws<gs::DeadlineError>([&] { client.forward(on.graph, on.three, {.timeout = 60ms}); }));
}

static void no_more_is_read_than_may_be() {
    Server server([](Seen& seen) {
        seen.write("HTTP/1.1 200 -\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n");
        while (seen.write(std::string(1 << 12, ' '))) continue;
    });
    const Square on;
    const gs::Client client(server.url(), {.timeout = gs::without_end, .max_response_bytes = 1 << 16});
    CHECK(throws<gs::AnswerTooLarge>([&] { client.forward(on.graph, on.three); }));
}

static void threads_share() {
    std::atomic<int> registrations = 0, calls = 0;
    Server server([&](Seen& seen) {
        if (contains(seen.line(), "/v1/graphs?")) {
            ++registrations;
            seen.answer(201, R"({"graph_id": "g", "node_count": 2})");
        } else if (++calls == 1) {
            seen.answer(503, "", "Retry-After: 0\r\n");
        } else {
            seen.answer(200, square);
        }
    });
    const Square on;
    const gs::Client client(server.url(), {.surroundings = still()});
    const gs::RegisteredGraph registered = client.register_later(on.graph);
    {
        std::vector<std::jthread> threads;
        for (int count = 0; count < 16; ++count)
            threads.emplace_back([&] {
                for (const gs::Computable& each : {gs::Computable(on.graph), gs::Computable(registered)})
                    CHECK(client.gradients(each, on.three).value().item<double>() == 9);
            });
    }
    CHECK(registrations == 1 && calls == 33 && registered.id() == "g");
}

static void a_registered_graph_is_what_it_was() {
    std::string line, body;
    Server server([&](Seen& seen) {
        line = seen.line(), body = seen.body();
        if (contains(line, "gradients")) seen.answer(200, square);
        else seen.answer(201, R"({"graph_id": "g/h", "node_count": 2, "graph": {"nodes": []}})");
    });
    Square on;
    const gs::Client client(server.url(), {.timeout = gs::without_end});
    const auto registered = client.register_graph(on.graph, {.description = "a square"});
    CHECK(contains(body, "a square") && registered.fields().at("node_count") == gs::Json(2));
    on.graph.tanh(on.loss);
    client.gradients(registered, on.three, {.cotangent = gs::Tensor(1.0), .form = gs::Form::safetensors});
    CHECK(line == "POST /v1/graphs/g%2Fh/gradients" && contains(body, "cotangents.1") && !contains(body, "nodes"));
}

static void listings_ask_for_no_more_than_is_looked_at() {
    int pages = 0;
    Server server([&](Seen& seen) {
        const std::string name = "t" + std::to_string(++pages);
        seen.answer(200, R"({"tensors": [{"tensor_id": ")" + name + R"(", "etag": "e"}], "next": ")" + name + "\"}");
    });
    const gs::Client client(server.url());
    auto listing = client.tensors();
    for (const gs::Resident& resident : listing)
        if (resident.name == "t2") break;
    CHECK(pages == 2);
}

static void a_tensor_that_did_not_change_is_not_sent() {
    Server server([](Seen& seen) {
        const std::string kept = R"({"etag": "1", "tensor": {"dtype": "int8", "shape": [], "data": [3]}})";
        if (contains(seen.text(), "If-None-Match: \"1\"")) seen.write("HTTP/1.1 304 -\r\nContent-Length: 0\r\n\r\n");
        else seen.answer(200, kept);
    });
    const gs::Client client(server.url());
    const auto found = client.get("w");
    CHECK(found.resident.etag == "1" && found.tensor.item<std::int8_t>() == 3);
    CHECK(!client.get_if_changed(found.resident) && client.get_if_changed({.name = "w", .etag = "0"}));
    CHECK(throws<gs::InputError>([&] { static_cast<void>(client.get("")); }));
}

static void fields_that_are_newer_travel() {
    std::string body;
    Server server([&](Seen& seen) { body = seen.body(), seen.answer(200, square); });
    const Square on;
    const gs::Json::Object extra{{"new", gs::Json::List{0}}};
    gs::Client(server.url()).forward(on.graph, on.three, {.form = gs::Form::json, .extra = extra});
    CHECK(contains(body, R"("new":[0])") && contains(body, R"("encoding":"json")") && !contains(body, "diagnose"));
}

static void a_precision_travels() {
    std::string body;
    Server server([&](Seen& seen) { body = seen.body(), seen.answer(200, square); });
    const Square on;
    const gs::Client client(server.url());
    const auto sent = [&](std::optional<gs::Precision> precision) {
        client.forward(on.graph, on.three, {.precision = precision, .form = gs::Form::json});
        return body;
    };
    CHECK(!contains(sent({}), "precision"));
    CHECK(contains(sent(gs::Precision::float32), R"("precision":"float32")"));
    CHECK(contains(sent(gs::Precision::tf32x3), R"("precision":"tf32x3")"));
    CHECK(contains(sent(gs::Precision::tf32), R"("precision":"tf32")"));
    CHECK(contains(sent(gs::Precision::bfloat16), R"("precision":"bfloat16")"));
}

static void a_layout_travels_and_a_matrix_is_looked_up() {
    static const std::string start = R"({"values": [], "gradients": [], "hessian": [])";
    static const std::string matrix = R"(, "matrix": {
        "offsets": [{"node": 1, "offset": 0, "size": 1}, {"node": 0, "offset": 1, "size": 2}],
        "tensor": {"dtype": "float64", "shape": [3, 3], "data": [0, 1, 2, 3, 4, 5, 6, 7, 8]}})";
    std::string body;
    Server server([&](Seen& seen) {
        body = seen.body();
        seen.answer(200, start + (contains(body, R"("layout":"matrix")") ? matrix : "") + "}");
    });
    const Square on;
    const gs::Client client(server.url());
    CHECK(!client.hessian(on.graph, on.three, {.form = gs::Form::json}).matrix && !contains(body, "layout"));
    const auto answer = client.hessian(
        on.graph, on.three, {.wrt = {on.loss, on.w}, .layout = gs::HessianLayout::matrix, .form = gs::Form::json});
    CHECK(answer.matrix && answer.hessian.size() == 0 && !answer.fields.contains("matrix"));
    CHECK(answer.matrix->tensor.shape() == gs::Shape({3, 3}));
    CHECK(answer.matrix->offsets[on.w].offset == 1 && answer.matrix->offsets[on.w].size == 2);
    CHECK(answer.matrix->offsets["loss"].offset == 0 && answer.matrix->offsets["loss"].size == 1);
}

static void a_memory_budget_travels() {
    std::string body;
    Server server([&](Seen& seen) { body = seen.body(), seen.answer(200, square); });
    const Square on;
    const gs::Client client(server.url());
    const auto sent = [&](std::optional<std::int64_t> bytes) {
        client.forward(on.graph, on.three, {.memory_budget = bytes, .form = gs::Form::json});
        return body;
    };
    CHECK(!contains(sent({}), "memory_budget"));
    CHECK(contains(sent((std::int64_t{1} << 40) + 1), R"("memory_budget":1099511627777)"));
}

template <class E>
static void check_status(const gs::Client& client, int& status, int stated) {
    const Square on;
    status = stated;
    try {
        client.forward(on.graph, on.three);
        CHECK(!"it is an error");
    } catch (const gs::Refusal& refusal) {
        CHECK(dynamic_cast<const E*>(&refusal) != nullptr && refusal.problem().status == stated);
    }
}

static void errors_are_told_apart() {
    int status = 0;
    Server server([&](Seen& seen) { seen.answer(status, ""); });
    const gs::Client client(server.url(), {.surroundings = still()});
    check_status<gs::GraphError>(client, status, 400);
    check_status<gs::AuthenticationError>(client, status, 401);
    check_status<gs::NotFoundError>(client, status, 404);
    check_status<gs::DeadlineError>(client, status, 408);
    check_status<gs::ConditionError>(client, status, 412);
    check_status<gs::RateError>(client, status, 429);
    check_status<gs::ServerError>(client, status, 500);
    check_status<gs::OverloadError>(client, status, 503);
    check_status<gs::DeadlineRefusal>(client, status, 504);
    check_status<gs::StoreFullError>(client, status, 507);
    const Square on;
    status = 302;
    CHECK(throws<gs::MalformedAnswer>([&] { client.forward(on.graph, on.three); }));
}

static void nodes_of_a_refusal_are_named() {
    Server server([](Seen& seen) { seen.answer(422, R"({"code": "c", "detail": "d", "node": 1})"); });
    const Square on;
    CHECK(thrown<gs::GraphError>([&] { gs::Client(server.url()).forward(on.graph, on.three); }) ==
          R"(c: d (at node 1 (square, "loss")))");
}

static void places_in_functions_are_named() {
    std::string place = R"("function_node": 1)";
    Server server([&](Seen& seen) {
        seen.answer(422, R"({"code": "c", "detail": "d", "node": 0, "function": 0, )" + place + "}");
    });
    gs::Graph graph;
    graph.call(graph.function("f", [](gs::Graph& body) { return std::vector{-body.input()}; }), {});
    const gs::Client client(server.url());
    CHECK(thrown<gs::GraphError>([&] { client.forward(graph, {}); }) ==
          R"(c: d (at node 0 (call): node 1 (neg) of the function "f"))");
    place = R"("function_node": null)";
    CHECK(thrown<gs::GraphError>([&] { client.forward(graph, {}); }) ==
          R"(c: d (at node 0 (call): function 0 ("f")))");
}

static void keys_and_passwords_are_in_no_error() {
    const Square on;
    // Where nobody listens any more.
    std::string url = Server([](Seen&) {}).url();
    url.insert(7, "user:secret@");
    const gs::Client client(url, {.api_key = "gs_secret", .retries = 0});
    const std::string said = thrown<gs::ConnectionFailed>([&] { client.forward(on.graph, on.three); });
    CHECK(contains(said, "POST /v1/forward") && !contains(said, "secret"));
    for (const std::string wrong : {"http://secret@", "ftp://secret", "http://h/?secret", "http://h/#secret", "secret"})
        CHECK(!contains(thrown<gs::InputError>([&] { gs::Client{wrong}; }), "secret"));
    for (const std::string wrong : {"", "http://", "ftp://h", "http://h/?q", "h"})
        CHECK(throws<gs::InputError>([&] { gs::Client{wrong}; }));
    const std::string key = thrown<gs::InputError>([&] { gs::Client(url, {.api_key = "secret\n"}); });
    CHECK(contains(key, "header") && !contains(key, "secret"));
}

/// On a connection that was idle and is closed meanwhile, curl would send a request again by itself.
static void what_has_no_key_is_sent_once() {
    std::atomic<int> stores = 0;
    Server server([&](Seen& seen) {
        if (!contains(seen.body(), "store")) return seen.answer(200, square);
        ++stores;
        seen.close();
    });
    const Square on;
    const gs::Client client(server.url(), {.idempotency = false});
    client.forward(on.graph, on.three);
    CHECK(throws<gs::ConnectionFailed>([&] { client.forward(on.graph, on.three, {.store = {{on.loss, "w"}}}); }));
    CHECK(stores == 1);
}

int main() {
    unsetenv("GRADSERVE_API_KEY");
    return run({{"results are looked up", results_are_looked_up},
                {"cancelled before it begins", cancelled_before_it_begins},
                {"cancelled within an answer", cancelled_within_an_answer},
                {"cancelled within a wait", cancelled_within_a_wait},
                {"an answer that never ends", an_answer_that_never_ends_is_over_at_the_deadline},
                {"no more is read than may be", no_more_is_read_than_may_be},
                {"threads share", threads_share},
                {"a registered graph is what it was", a_registered_graph_is_what_it_was},
                {"listings ask for no more than is looked at", listings_ask_for_no_more_than_is_looked_at},
                {"a tensor that did not change is not sent", a_tensor_that_did_not_change_is_not_sent},
                {"fields that are newer travel", fields_that_are_newer_travel},
                {"a precision travels", a_precision_travels},
                {"a layout travels and a matrix is looked up", a_layout_travels_and_a_matrix_is_looked_up},
                {"a memory budget travels", a_memory_budget_travels},
                {"errors are told apart", errors_are_told_apart},
                {"nodes of a refusal are named", nodes_of_a_refusal_are_named},
                {"places in functions are named", places_in_functions_are_named},
                {"keys and passwords are in no error", keys_and_passwords_are_in_no_error},
                {"what has no key is sent once", what_has_no_key_is_sent_once}});
}
