#pragma once

#include <gradserve/dtype.hpp>
#include <gradserve/tensor.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace gradserve {

/// A named input or output of a model: the id of its node, its dtype and its shape. An extent of -1 is free: each call
/// can use another size.
struct ModelValue {
    std::string name;
    std::int64_t node = 0;
    DType dtype{""};
    Shape shape{};
};

/// A leaf that is bound to a resident tensor. Each call reads the current version of the tensor.
struct BoundLeaf {
    std::int64_t node = 0;
    std::string tensor_name;
    // The type that the tensor must have.
    DType dtype{""};
    Shape shape{};
};

/// One version of a model on the server: a registered graph with named inputs and outputs, and with its weights on the
/// server.
struct Model {
    std::string name;
    /// The identifier of this version, for conditions.
    std::string etag;
    std::string graph_id;
    std::string description;
    std::vector<ModelValue> inputs;
    std::vector<ModelValue> outputs;
    /// All other leaves that the outputs need.
    std::vector<BoundLeaf> bound;
};

/// The definition of a model. The server determines the dtypes and shapes of outputs and bound leaves.
struct ModelDefinition {
    std::string graph_id;
    std::vector<ModelValue> inputs{};
    std::vector<ModelValue> outputs{};
    std::vector<BoundLeaf> bound{};
    std::string description{};
};

}  // namespace gradserve
