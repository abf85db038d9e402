#pragma once

#include <gradserve/dtype.hpp>
#include <gradserve/tensor.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace gradserve {

/// What goes in or comes out of a model under a name: the id of its node, its dtype and its shape, of which an extent of
/// -1 is free: each call states it anew.
struct ModelValue {
    std::string name;
    std::int64_t node = 0;
    DType dtype{""};
    Shape shape{};
};

/// A leaf whose value is a resident tensor, which each call reads as it is then.
struct BoundLeaf {
    std::int64_t node = 0;
    std::string tensor_name;
    // What it has to be.
    DType dtype{""};
    Shape shape{};
};

/// A version of a model that the server keeps: a registered graph with names for what goes in and comes out, and with
/// its weights at the server.
struct Model {
    std::string name;
    /// Which version it is, for conditions.
    std::string etag;
    std::string graph_id;
    std::string description;
    std::vector<ModelValue> inputs;
    std::vector<ModelValue> outputs;
    /// All other leaves that the outputs need.
    std::vector<BoundLeaf> bound;
};

/// What a model is to be. Of outputs and of bound leaves, dtype and shape are found by the server.
struct ModelDefinition {
    std::string graph_id;
    std::vector<ModelValue> inputs{};
    std::vector<ModelValue> outputs{};
    std::vector<BoundLeaf> bound{};
    std::string description{};
};

}  // namespace gradserve
