#pragma once

#include <gradserve/answers.hpp>
#include <gradserve/encoding.hpp>
#include <gradserve/feeds.hpp>
#include <gradserve/listing.hpp>
#include <gradserve/model.hpp>
#include <gradserve/options.hpp>
#include <gradserve/registered.hpp>
#include <gradserve/surroundings.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace gradserve {

/// That of the client, and of the server that it came with.
inline constexpr const char* version = "0.1.0";

/// What a client is made with.
struct ClientOptions {
    /// Absent: that of the environment, GRADSERVE_API_KEY. It is in no error.
    std::optional<std::string> api_key{};
    /// How long a call may take, over all of its tries.
    std::chrono::milliseconds timeout = std::chrono::minutes(1);
    /// How often a call is repeated at most.
    int retries = 2;
    /// Whether calls that keep something get an Idempotency-Key, without which they are not repeated.
    bool idempotency = true;
    /// How long an answer may be to be read.
    std::uint64_t max_response_bytes = std::uint64_t{256} << 20;
    /// Clock, chance and keys.
    Surroundings surroundings = Surroundings::usual();
};

/// One of the ops that a server has.
struct CatalogueOp {
    std::string name;
    /// All that the server says of it, by names on the wire.
    Json::Object fields;
};

/// The ops that a server has.
struct Catalogue {
    std::int64_t opset = 0;
    std::vector<CatalogueOp> ops;
};

struct ClientCore;

/// A connection to a server, which threads may share, as may copies. Calls wait for their answers, and throw what
/// errors.hpp draws.
class Client {
public:
    /// A client of the server at a URL. Throws InputError for a URL or a key that cannot be one.
    explicit Client(const std::string& url, ClientOptions options = {});

    /// Values of nodes, by default of the last one.
    ForwardAnswer forward(const Computable& on, const Feeds& feeds, const ForwardOptions& options = {}) const;
    /// Values, and the gradients of one node.
    GradientsAnswer gradients(const Computable& on, const Feeds& feeds, const GradientsOptions& options = {}) const;
    /// Cotangents of outputs times the Jacobian.
    GradientsAnswer vjp(const Computable& on, const Feeds& feeds, const VjpOptions& options = {}) const;
    /// The Jacobian times tangents of leaves.
    JvpAnswer jvp(const Computable& on, const Feeds& feeds, const JvpOptions& options = {}) const;
    /// Whole Jacobians, a block for each output and node of `wrt`.
    JacobianAnswer jacobian(const Computable& on, const Feeds& feeds, const JacobianOptions& options = {}) const;
    /// The Hessian times vectors, exactly.
    HvpAnswer hvp(const Computable& on, const Feeds& feeds, const HvpOptions& options = {}) const;
    /// Whole Hessians, a block for each pair of nodes of `wrt`.
    HessianAnswer hessian(const Computable& on, const Feeds& feeds, const HessianOptions& options = {}) const;
    /// One graph on many examples: values and gradients of each.
    GradientsAnswer batch(const Computable& on, const Feeds& feeds, const BatchOptions& options = {}) const;
    /// Gradients, compared with central differences.
    CheckAnswer check(const Computable& on, const Feeds& feeds, const CheckOptions& options = {}) const;
    /// What a call would take. Nothing is run.
    PlanAnswer plan(const Computable& on, const Types& types, const PlanOptions& options = {}) const;
    /// The gradient as a graph. Nothing is run.
    DifferentiateAnswer differentiate(const Computable& on, const Types& types,
                                      const DifferentiateOptions& options = {}) const;

    /// Has the server keep a graph as it is now.
    RegisteredGraph register_graph(const Graph& graph, const RegisterOptions& options = {}) const;
    /// A graph that the first call which needs it registers, within its own time.
    RegisteredGraph register_later(const Graph& graph, const RegisterOptions& options = {}) const;
    /// A graph that the server keeps already. Its nodes are found by their names and ids.
    RegisteredGraph registered(const std::string& id, const std::stop_token& stop = {}) const;
    /// Has the server forget a graph.
    GraphSummary unregister(const std::string& id, const std::stop_token& stop = {}) const;

    /// Has the server keep a tensor, which calls may name from then on.
    Resident put(const std::string& name, const Tensor& tensor, const PutOptions& options = {}) const;
    /// A tensor that the server keeps, as it is now.
    ResidentTensor get(const std::string& name, const GetOptions& options = {}) const;
    /// The tensor, where it is another version by now than this one.
    std::optional<ResidentTensor> get_if_changed(const Resident& than, const GetOptions& options = {}) const;
    /// Has the server keep a tensor no more. The answer is what there was.
    Resident remove(const std::string& name, const RemoveOptions& options = {}) const;

    /// All tensors that the server keeps, by name.
    Listing<Resident> tensors(const ListOptions& options = {}) const;
    /// All graphs that the server keeps, in the order in which they came.
    Listing<GraphSummary> graphs(const ListOptions& options = {}) const;

    /// Has the server keep a model, in place of the one of this name, if there is one.
    Model put_model(const std::string& name, const ModelDefinition& definition,
                    const PutModelOptions& options = {}) const;
    /// A model that the server keeps, as it is now.
    Model model(const std::string& name, const std::stop_token& stop = {}) const;
    /// Has the server keep a model no more; its graph and its tensors stay. The answer is what there was.
    Model remove_model(const std::string& name, const RemoveOptions& options = {}) const;
    /// All models that the server keeps, by name.
    Listing<Model> models(const ListOptions& options = {}) const;

    /// The server's catalogue.
    Catalogue ops(const std::stop_token& stop = {}) const;

private:
    std::shared_ptr<const ClientCore> core_;
};

}  // namespace gradserve
