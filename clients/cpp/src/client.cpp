#include <gradserve/client.hpp>

#include "answer_reading.hpp"
#include "asked.hpp"
#include "exchange.hpp"
#include "graph_state.hpp"
#include "json_reading.hpp"
#include "model_reading.hpp"
#include "refusing.hpp"
#include "within.hpp"

#include <cstdlib>
#include <utility>

namespace gradserve {

static constexpr const char* key_variable = "GRADSERVE_API_KEY";

static std::string key_of_the_environment() {
    const char* const key = std::getenv(key_variable);
    return key == nullptr ? "" : key;
}

Client::Client(const std::string& url, ClientOptions options)
    : core_(new ClientCore{
          Transport(url, options.api_key.value_or(key_of_the_environment()), options.max_response_bytes),
          options.timeout, options.retries, options.idempotency, std::move(options.surroundings)}) {}

/// Returns the node with an id, if there is one.
static std::optional<Node> node_if_any(const Graph& graph, std::optional<std::int64_t> id) {
    if (!id || *id < 0 || std::cmp_greater_equal(*id, graph.size())) return std::nullopt;
    return graph.node(static_cast<std::size_t>(*id));
}

/// Describes the node of a problem report, and its place in a function.
static std::string places_in(const Problem& problem, const Graph& graph) {
    const auto used = node_if_any(graph, problem.node);
    std::string places = used ? used->describe() : "";
    for (const GraphFunction& function : graph.functions()) {
        if (!std::cmp_equal(problem.function.value_or(-1), function.index())) continue;
        const auto node = node_if_any(function.body(), problem.function_node);
        places += (places.empty() ? "" : ": ") + (node ? node->describe() : function.describe());
    }
    return places;
}

/// Adds to a report what only the client knows: the node, and that it sent an Idempotency-Key.
static Problem explained(Problem problem, const Graph& graph, bool has_key) {
    const auto add = [&](const std::string& sentence) {
        problem.remark += (problem.remark.empty() ? "" : "; ") + sentence;
    };
    if (const std::string places = places_in(problem, graph); !places.empty()) add("at " + places);
    if (has_key && problem.status == 413 && problem.code == "over_budget")
        add("the client sent an Idempotency-Key, so that a retry does nothing twice; if the response is too long to be "
            "stored for the key, send none: .idempotency = false");
    return problem;
}

/// Makes a call on a graph or a registered graph, which it registers first if the server does not have it.
template <class T>
static T computed(const ClientCore& core, const std::string& call, const Computable& on, const Asked& asked) {
    const auto* const registered = std::get_if<RegisteredGraph>(&on);
    RegisteredState* const state = registered == nullptr ? nullptr : &RegisteredState::of(*registered);
    const Graph& graph = state == nullptr ? std::get<Graph>(on) : state->graph;
    const std::size_t count = state == nullptr ? graph.size() : state->count;
    Request request = computing(call, graph, count, asked, state != nullptr);
    Running running(core, asked.timeout, asked.stop);
    Exchange exchange(running, std::move(request), asked.idempotency.value_or(core.idempotency));
    try {
        const Reply reply = state == nullptr ? exchange.run() : run_on(*state, call, running, exchange);
        return promised([&] { return read_answer<T>(graph, reply.parts()); });
    } catch (const Refusal& refusal) {
        throw_refusal(explained(refusal.problem(), graph, exchange.has_key()));
    }
}

/// Sends a request that is a call by itself, and returns the response.
static Reply answered(const ClientCore& core, Request request, const std::stop_token& stop) {
    const Running running(core, std::nullopt, stop);
    return Exchange(running, std::move(request), core.idempotency).run();
}

/// Sends a request and reads the JSON object of its response.
template <class Read>
static auto read_of(const ClientCore& core, Request request, const std::stop_token& stop, Read&& read) {
    const Reply reply = answered(core, std::move(request), stop);
    return promised([&] { return read(reply.object()); });
}

ForwardAnswer Client::forward(const Computable& on, const Feeds& feeds, const ForwardOptions& options) const {
    return computed<ForwardAnswer>(*core_, "forward", on, asked(feeds, options));
}

GradientsAnswer Client::gradients(const Computable& on, const Feeds& feeds, const GradientsOptions& options) const {
    return computed<GradientsAnswer>(*core_, "gradients", on, asked(feeds, options));
}

GradientsAnswer Client::vjp(const Computable& on, const Feeds& feeds, const VjpOptions& options) const {
    return computed<GradientsAnswer>(*core_, "vjp", on, asked(feeds, options));
}

JvpAnswer Client::jvp(const Computable& on, const Feeds& feeds, const JvpOptions& options) const {
    return computed<JvpAnswer>(*core_, "jvp", on, asked(feeds, options));
}

JacobianAnswer Client::jacobian(const Computable& on, const Feeds& feeds, const JacobianOptions& options) const {
    return computed<JacobianAnswer>(*core_, "jacobian", on, asked(feeds, options));
}

HvpAnswer Client::hvp(const Computable& on, const Feeds& feeds, const HvpOptions& options) const {
    return computed<HvpAnswer>(*core_, "hvp", on, asked(feeds, options));
}

HessianAnswer Client::hessian(const Computable& on, const Feeds& feeds, const HessianOptions& options) const {
    return computed<HessianAnswer>(*core_, "hessian", on, asked(feeds, options));
}

GradientsAnswer Client::batch(const Computable& on, const Feeds& feeds, const BatchOptions& options) const {
    return computed<BatchAnswer>(*core_, "batch", on, asked(feeds, options));
}

CheckAnswer Client::check(const Computable& on, const Feeds& feeds, const CheckOptions& options) const {
    return computed<CheckAnswer>(*core_, "check", on, asked(feeds, options));
}

PlanAnswer Client::plan(const Computable& on, const Types& types, const PlanOptions& options) const {
    return computed<PlanAnswer>(*core_, "plan", on, asked(types, options));
}

DifferentiateAnswer Client::differentiate(const Computable& on, const Types& types,
                                          const DifferentiateOptions& options) const {
    return computed<DifferentiateAnswer>(*core_, "differentiate", on, asked(types, options));
}

RegisteredGraph Client::register_later(const Graph& graph, const RegisterOptions& options) const {
    return RegisteredGraph(std::make_shared<RegisteredState>(graph, registering(graph, options)));
}

RegisteredGraph Client::register_graph(const Graph& graph, const RegisterOptions& options) const {
    RegisteredGraph made = register_later(graph, options);
    try {
        Running(*core_, std::nullopt, options.stop).registered(RegisteredState::of(made), nullptr);
    } catch (const Refusal& refusal) {
        throw_refusal(explained(refusal.problem(), graph, false));
    }
    return made;
}

RegisteredGraph Client::registered(const std::string& id, const std::stop_token& stop) const {
    return read_of(*core_, {"GET", graph_path(id)}, stop, [&](const Json::Object& answer) {
        const Graph graph = within("graph", [&] { return graph_in(member(answer, "graph")); });
        RegisterOptions options;
        if (const Json* const description = member(answer, "description")) options.description = text_in(description);
        RegisteredGraph made = register_later(graph, options);
        RegisteredState::of(made).known = registration_in(answer);
        return made;
    });
}

static GraphSummary summary_in(const Json::Object& stated) {
    GraphSummary made;
    made.id = within("graph_id", [&] { return text_in(member(stated, "graph_id")); });
    if (const Json* const description = member(stated, "description"))
        made.description = within("description", [&] { return text_in(description); });
    made.node_count = within("node_count", [&] { return whole_in(member(stated, "node_count")); });
    return made;
}

GraphSummary Client::unregister(const std::string& id, const std::stop_token& stop) const {
    return read_of(*core_, deleting(graph_path(id), ""), stop, summary_in);
}

Resident Client::put(const std::string& name, const Tensor& tensor, const PutOptions& options) const {
    return read_of(*core_, putting(name, tensor, options), options.stop, resident_in);
}

static ResidentTensor resident_tensor_in(const std::string& name, const Reply& reply) {
    auto [etag, tensor] = promised([&] { return reply.kept(); });
    const auto size = static_cast<std::int64_t>(tensor.bytes().size());
    return {{name, std::move(etag), tensor.dtype(), tensor.shape(), size}, tensor};
}

ResidentTensor Client::get(const std::string& name, const GetOptions& options) const {
    return resident_tensor_in(name, answered(*core_, getting(name, "", options), options.stop));
}

std::optional<ResidentTensor> Client::get_if_changed(const Resident& than, const GetOptions& options) const {
    const Reply reply = answered(*core_, getting(than.name, than.etag, options), options.stop);
    if (reply.status == 304) return std::nullopt;
    return resident_tensor_in(than.name, reply);
}

Resident Client::remove(const std::string& name, const RemoveOptions& options) const {
    return read_of(*core_, deleting(tensor_path(name), options.if_match), options.stop, resident_in);
}

template <class T>
static Listing<T> listed(std::shared_ptr<const ClientCore> core, const std::string& kind, const ListOptions& options,
                         T (*read)(const Json::Object&)) {
    return Listing<T>([core = std::move(core), kind, options, read](const std::string& after) {
        return read_of(*core, listing(kind, options.limit, after), options.stop, [&](const Json::Object& answer) {
            typename Listing<T>::Page page;
            within(kind, [&] {
                for (const Json& each : list_in(member(answer, kind))) page.entries.push_back(read(object_in(&each)));
            });
            const Json* const next = member(answer, "next");
            if (next != nullptr) page.next = within("next", [&] { return text_in(next); });
            return page;
        });
    });
}

Listing<Resident> Client::tensors(const ListOptions& options) const {
    return listed(core_, "tensors", options, resident_in);
}

Listing<GraphSummary> Client::graphs(const ListOptions& options) const {
    return listed(core_, "graphs", options, summary_in);
}

Model Client::put_model(const std::string& name, const ModelDefinition& definition,
                        const PutModelOptions& options) const {
    return read_of(*core_, putting_model(name, stated_model(definition), options), options.stop, model_in);
}

Model Client::model(const std::string& name, const std::stop_token& stop) const {
    return read_of(*core_, {"GET", model_path(name)}, stop, model_in);
}

Model Client::remove_model(const std::string& name, const RemoveOptions& options) const {
    return read_of(*core_, deleting(model_path(name), options.if_match), options.stop, model_in);
}

Listing<Model> Client::models(const ListOptions& options) const {
    return listed(core_, "models", options, model_in);
}

Catalogue Client::ops(const std::stop_token& stop) const {
    return read_of(*core_, {"GET", "/v1/ops"}, stop, [](const Json::Object& answer) {
        Catalogue made;
        made.opset = within("opset", [&] { return whole_in(member(answer, "opset")); });
        within("ops", [&] {
            for (const Json& row : list_in(member(answer, "ops"))) {
                const Json::Object& fields = object_in(&row);
                made.ops.push_back({text_in(member(fields, "name")), fields});
            }
        });
        return made;
    });
}

}  // namespace gradserve
