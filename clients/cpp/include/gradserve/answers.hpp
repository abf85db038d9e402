#pragma once

#include <gradserve/graph.hpp>
#include <gradserve/json.hpp>
#include <gradserve/resident.hpp>
#include <gradserve/results.hpp>

#include <string>
#include <vector>

namespace gradserve {

/// What all answers have.
struct Answer {
    /// What came, by its names on the wire, but for tensors and graphs.
    Json::Object fields;

    /// The receipt: what running it took, and on what. Null where there is none.
    [[nodiscard]] const Json* stats() const;
};

/// Values of nodes.
struct ForwardAnswer : Answer {
    /// Of the outputs.
    Results<Tensor> values;
    /// The handles of what the call had the server keep.
    Results<Resident> stored;

    /// That of the only output. Throws InputError where there are several.
    [[nodiscard]] const Tensor& value() const;
};

/// Values and gradients. Of Client::batch, all have a leading axis, and gradients and disconnected may be none;
/// where `of` has several elements, in a graph of opset 2, gradients are Jacobians: its shape, then the node's.
struct GradientsAnswer : ForwardAnswer {
    /// By nodes of `wrt`, each of its node's shape.
    Results<Tensor> gradients;
    /// The nodes of `wrt` without a path to what was differentiated; their gradients are zeros.
    std::vector<Node> disconnected;
};

/// Values, and their derivatives along tangents.
struct JvpAnswer : ForwardAnswer {
    /// By outputs.
    Results<Tensor> tangents;
};

/// Values and Jacobians.
struct JacobianAnswer : ForwardAnswer {
    /// By output and node of `wrt`: of the shape of the one, then that of the other.
    Blocks jacobian;
};

/// Values, gradients, and the Hessian times vectors.
struct HvpAnswer : GradientsAnswer {
    /// By nodes of `wrt`.
    Results<Tensor> hvp;
};

/// Values, gradients and Hessians.
struct HessianAnswer : GradientsAnswer {
    /// By pairs of nodes of `wrt`: of the shape of the one, then that of the other.
    Blocks hessian;
};

/// How far gradients are from central differences.
struct CheckAnswer : Answer {
    /// Whether every node was compared, and is within the tolerance.
    bool passed = false;
    /// Relative, by the nodes that were compared.
    Results<double> errors;
    /// Why the others were not.
    Results<std::string> uncertified;
};

/// What a call would take, in `fields`.
struct PlanAnswer : Answer {
    /// Whether the call would be within the server's limits.
    bool admitted = false;
};

/// The gradient as a graph.
struct DifferentiateAnswer : Answer {
    /// Its first nodes are those that were sent.
    Graph graph;
    /// By nodes of `wrt`, as they were sent: the nodes of `graph` where they are computed.
    Results<Node> gradients;
    /// The nodes of `wrt`, as they were sent, without a path to what was differentiated.
    std::vector<Node> disconnected;
    /// The graph that was sent.
    Graph sent;

    /// What a node of the graph that was sent is in the new one. Throws InputError for a node of another graph.
    [[nodiscard]] Node find(const Node& node) const;
};

}  // namespace gradserve
