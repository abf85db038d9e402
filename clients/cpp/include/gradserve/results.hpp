#pragma once

#include <gradserve/node.hpp>
#include <gradserve/tensor.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gradserve {

/// Throws the InputError for a missing result.
[[noreturn]] void throw_no_result(const std::string& sought, std::size_t count);

/// Results by node, in the order of the request: pairs of a node and its result.
template <class T>
class Results {
public:
    using Entry = std::pair<Node, T>;

    Results() = default;
    explicit Results(std::vector<Entry> entries) : entries_(std::move(entries)) {}

    /// Returns the result of a node. Throws InputError if the node has no result.
    [[nodiscard]] const T& operator[](const Node& node) const {
        for (const Entry& entry : entries_)
            if (entry.first == node) return entry.second;
        throw_no_result(node.describe(), size());
    }

    /// Returns the result of the node with this name. Throws InputError if there is none.
    [[nodiscard]] const T& operator[](std::string_view name) const {
        for (const Entry& entry : entries_)
            if (entry.first.name() == name && !name.empty()) return entry.second;
        throw_no_result("“" + std::string(name) + "”", size());
    }
    [[nodiscard]] const T& operator[](const char* name) const { return (*this)[std::string_view(name)]; }

    /// Returns the result at a position in the order of the request. Throws InputError if there is none.
    [[nodiscard]] const T& at(std::size_t place) const {
        if (place >= size()) throw_no_result("position " + std::to_string(place), size());
        return entries_[place].second;
    }

    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    [[nodiscard]] bool empty() const { return entries_.empty(); }
    [[nodiscard]] auto begin() const { return entries_.begin(); }
    [[nodiscard]] auto end() const { return entries_.end(); }

private:
    std::vector<Entry> entries_;
};

/// Results by pairs of nodes: an output and a node of `wrt`, or a row and a column.
class Blocks {
public:
    struct Entry {
        Node first;
        Node second;
        Tensor tensor;
    };

    Blocks() = default;
    explicit Blocks(std::vector<Entry> entries) : entries_(std::move(entries)) {}

    /// Returns the block of two nodes. Throws InputError if they have no block.
    [[nodiscard]] const Tensor& operator()(const Node& first, const Node& second) const;

    /// Returns the block of the nodes with these names. Throws InputError if there is none.
    [[nodiscard]] const Tensor& operator()(std::string_view first, std::string_view second) const;

    /// Returns the block at a position in the order of the response. Throws InputError if there is none.
    [[nodiscard]] const Tensor& at(std::size_t place) const;

    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    [[nodiscard]] auto begin() const { return entries_.begin(); }
    [[nodiscard]] auto end() const { return entries_.end(); }

private:
    std::vector<Entry> entries_;
};

}  // namespace gradserve
