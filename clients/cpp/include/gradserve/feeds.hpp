#pragma once

#include <gradserve/listed.hpp>
#include <gradserve/node.hpp>
#include <gradserve/resident.hpp>
#include <gradserve/tensor.hpp>

#include <initializer_list>
#include <map>
#include <utility>
#include <variant>
#include <vector>

namespace gradserve {

/// A value for a node: a tensor or a value that converts to one, the handle of a resident tensor, or its rows.
class Feed {
public:
    Feed(Tensor tensor) : value_(std::move(tensor)) {}
    Feed(Resident resident) : value_(std::move(resident)) {}
    Feed(Rows rows) : value_(std::move(rows)) {}
    template <Element T>
    Feed(T element) : value_(Tensor(element)) {}
    template <Element T>
    Feed(std::initializer_list<T> elements) : value_(Tensor(elements)) {}
    template <Element T>
    Feed(std::vector<T> elements) : value_(Tensor(std::move(elements))) {}

    [[nodiscard]] const std::variant<Tensor, Resident, Rows>& value() const { return value_; }

private:
    std::variant<Tensor, Resident, Rows> value_;
};

/// Values by node: feeds of leaves, and likewise cotangents, tangents and vectors.
using Feeds = std::map<Node, Feed>;

/// The dtype and shape of a leaf.
struct Type {
    DType dtype;
    Shape shape;
};

/// The types of leaves.
using Types = std::map<Node, Type>;

/// The tensors that a call stores, by node.
using Stores = std::map<Node, Store>;

/// An optional list of nodes.
using Nodes = Listed<Node>;

}  // namespace gradserve
