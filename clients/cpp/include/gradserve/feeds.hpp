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

/// What stands for a node in a call: a tensor, what makes one, or the handle of one that the server keeps, or its rows.
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

/// What stands for each node: in feeds for leaves, and likewise in cotangents, tangents and vectors.
using Feeds = std::map<Node, Feed>;

/// What a leaf would be fed.
struct Type {
    DType dtype;
    Shape shape;
};

/// What each leaf would be fed.
using Types = std::map<Node, Type>;

/// What a call is to keep, by node.
using Stores = std::map<Node, Store>;

/// Nodes among options.
using Nodes = Listed<Node>;

}  // namespace gradserve
