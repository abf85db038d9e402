#pragma once

#include <gradserve/graph.hpp>
#include <gradserve/json.hpp>
#include <gradserve/resident.hpp>
#include <gradserve/results.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gradserve {

/// Common members of all results.
struct Answer {
    /// The members of the response by their API names, except tensors and graphs.
    Json::Object fields;

    /// Returns the run statistics: time, memory and hardware. Null if the response has none.
    [[nodiscard]] const Json* stats() const;
};

/// Values of nodes.
struct ForwardAnswer : Answer {
    /// The values by output.
    Results<Tensor> values;
    /// The handles of the tensors that the call stored.
    Results<Resident> stored;

    /// Returns the value of the only output. Throws InputError if there are several outputs.
    [[nodiscard]] const Tensor& value() const;
};

/// Values and gradients. Results of Client::batch have a leading axis, and gradients and disconnected may be empty. If
/// `of` has several elements, in a graph of opset 2, gradients of batch are Jacobians: the shape of `of` followed by
/// the shape of the node.
struct GradientsAnswer : ForwardAnswer {
    /// The gradients by node of `wrt`, each with the shape of its node.
    Results<Tensor> gradients;
    /// The nodes of `wrt` that have no path to the differentiated node. Their gradients are zero.
    std::vector<Node> disconnected;
};

/// Values, and their derivatives along tangents.
struct JvpAnswer : ForwardAnswer {
    /// The tangents by output.
    Results<Tensor> tangents;
};

/// Values and Jacobians.
struct JacobianAnswer : ForwardAnswer {
    /// The blocks by output and node of `wrt`: the shape of the output followed by the shape of the node.
    Blocks jacobian;
};

/// Values, gradients and Hessian-vector products.
struct HvpAnswer : GradientsAnswer {
    /// The products by node of `wrt`.
    Results<Tensor> hvp;
};

/// The place of a node in a matrix: it has `size` rows and columns (the number of its elements), starting at `offset`.
struct NodeOffset {
    std::int64_t offset = 0;
    std::int64_t size = 0;
};

/// A Hessian as one square matrix over the elements of all nodes of `wrt`. Nodes are in the order of `wrt`, the
/// elements of a node in row-major order.
struct HessianMatrix {
    Tensor tensor;
    /// The place of each node.
    Results<NodeOffset> offsets;
};

/// Values, gradients and Hessians.
struct HessianAnswer : GradientsAnswer {
    /// The blocks by pairs of nodes of `wrt`: the shape of the row's node followed by the shape of the column's. There
    /// are none with HessianLayout::matrix.
    Blocks hessian;
    /// All blocks as one matrix. Absent unless the call had HessianLayout::matrix.
    std::optional<HessianMatrix> matrix;
};

/// The result of a gradient check: how far gradients are from central differences.
struct CheckAnswer : Answer {
    /// Whether every node was compared and is within the tolerance.
    bool passed = false;
    /// Relative errors, by node, of the nodes that were compared.
    Results<double> errors;
    /// Reasons, by node, why the other nodes were not compared.
    Results<std::string> uncertified;
};

/// The dry run of a call: its estimates are in `fields`.
struct PlanAnswer : Answer {
    /// Whether the call is within the server's limits.
    bool admitted = false;
};

/// The gradient as a graph.
struct DifferentiateAnswer : Answer {
    /// The graph. Its first nodes are those of the graph that was sent.
    Graph graph;
    /// The nodes of `graph` that compute the gradients, by node of `wrt` in the graph that was sent.
    Results<Node> gradients;
    /// The nodes of `wrt`, in the graph that was sent, that have no path to the differentiated node.
    std::vector<Node> disconnected;
    /// The graph that was sent.
    Graph sent;

    /// Returns the node of the new graph that corresponds to a node of the graph that was sent. Throws InputError for a
    /// node of another graph.
    [[nodiscard]] Node find(const Node& node) const;
};

}  // namespace gradserve
