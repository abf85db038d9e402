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

/// The version of the client, and of the server that it was released with.
inline constexpr const char* version = "0.1.0";

/// The settings of a client.
struct ClientOptions {
    /// The API key. The default is the environment variable GRADSERVE_API_KEY. Errors never contain the key.
    std::optional<std::string> api_key{};
    /// The time limit for all attempts of a call together.
    std::chrono::milliseconds timeout = std::chrono::minutes(1);
    /// The maximum number of retries of a call.
    int retries = 2;
    /// Whether calls that store something send an Idempotency-Key. Without one they are not retried.
    bool idempotency = true;
    /// The maximum size of a response.
    std::uint64_t max_response_bytes = std::uint64_t{256} << 20;
    /// Clock, randomness and key generation.
    Surroundings surroundings = Surroundings::usual();
};

/// An op of a server.
struct CatalogueOp {
    std::string name;
    /// The description of the op by API names.
    Json::Object fields;
};

/// The ops of a server.
struct Catalogue {
    std::int64_t opset = 0;
    std::vector<CatalogueOp> ops;
};

struct ClientCore;

/// A client of one server. Threads can share it and its copies. Calls block until there is a response, and throw the
/// exceptions of errors.hpp.
class Client {
public:
    /// Creates a client of the server at a URL. Throws InputError if the URL or the API key is invalid.
    explicit Client(const std::string& url, ClientOptions options = {});

    /// Computes the values of nodes, by default of the last one.
    ForwardAnswer forward(const Computable& on, const Feeds& feeds, const ForwardOptions& options = {}) const;
    /// Computes values, and the gradients of one node.
    GradientsAnswer gradients(const Computable& on, const Feeds& feeds, const GradientsOptions& options = {}) const;
    /// Computes vector-Jacobian products with the cotangents of outputs.
    GradientsAnswer vjp(const Computable& on, const Feeds& feeds, const VjpOptions& options = {}) const;
    /// Computes Jacobian-vector products with the tangents of leaves.
    JvpAnswer jvp(const Computable& on, const Feeds& feeds, const JvpOptions& options = {}) const;
    /// Computes full Jacobians, one block for each output and node of `wrt`.
    JacobianAnswer jacobian(const Computable& on, const Feeds& feeds, const JacobianOptions& options = {}) const;
    /// Computes exact Hessian-vector products.
    HvpAnswer hvp(const Computable& on, const Feeds& feeds, const HvpOptions& options = {}) const;
    /// Computes full Hessians, one block for each pair of nodes of `wrt`, or one matrix with HessianLayout::matrix.
    HessianAnswer hessian(const Computable& on, const Feeds& feeds, const HessianOptions& options = {}) const;
    /// Runs one graph on many examples, and computes the values and gradients of each.
    GradientsAnswer batch(const Computable& on, const Feeds& feeds, const BatchOptions& options = {}) const;
    /// Compares gradients with central differences.
    CheckAnswer check(const Computable& on, const Feeds& feeds, const CheckOptions& options = {}) const;
    /// Estimates the cost of a call (a dry run), without running it.
    PlanAnswer plan(const Computable& on, const Types& types, const PlanOptions& options = {}) const;
    /// Returns the gradient as a graph, without running anything.
    DifferentiateAnswer differentiate(const Computable& on, const Types& types,
                                      const DifferentiateOptions& options = {}) const;

    /// Registers a graph on the server as it is now.
    RegisteredGraph register_graph(const Graph& graph, const RegisterOptions& options = {}) const;
    /// Returns a graph that the first call which uses it registers, within that call's timeout.
    RegisteredGraph register_later(const Graph& graph, const RegisterOptions& options = {}) const;
    /// Fetches a registered graph. Look up its nodes by name or id.
    RegisteredGraph registered(const std::string& id, const std::stop_token& stop = {}) const;
    /// Deletes a registered graph from the server.
    GraphSummary unregister(const std::string& id, const std::stop_token& stop = {}) const;

    /// Stores a tensor on the server and returns a handle that calls accept in place of a tensor.
    Resident put(const std::string& name, const Tensor& tensor, const PutOptions& options = {}) const;
    /// Downloads the current version of a tensor.
    ResidentTensor get(const std::string& name, const GetOptions& options = {}) const;
    /// Downloads a tensor if its version differs from this handle's.
    std::optional<ResidentTensor> get_if_changed(const Resident& than, const GetOptions& options = {}) const;
    /// Deletes a tensor from the server and returns the metadata of the deleted version.
    Resident remove(const std::string& name, const RemoveOptions& options = {}) const;

    /// Iterates over all resident tensors by name.
    Listing<Resident> tensors(const ListOptions& options = {}) const;
    /// Iterates over all registered graphs in order of registration.
    Listing<GraphSummary> graphs(const ListOptions& options = {}) const;

    /// Stores a model, and replaces the one with this name if there is one.
    Model put_model(const std::string& name, const ModelDefinition& definition,
                    const PutModelOptions& options = {}) const;
    /// Fetches the current version of a model.
    Model model(const std::string& name, const std::stop_token& stop = {}) const;
    /// Deletes a model and returns the metadata of the deleted version. Its graph and tensors stay.
    Model remove_model(const std::string& name, const RemoveOptions& options = {}) const;
    /// Iterates over all models by name.
    Listing<Model> models(const ListOptions& options = {}) const;

    /// Returns the server's op catalogue.
    Catalogue ops(const std::stop_token& stop = {}) const;

private:
    std::shared_ptr<const ClientCore> core_;
};

}  // namespace gradserve
