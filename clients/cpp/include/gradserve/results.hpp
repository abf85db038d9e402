#pragma once

#include <gradserve/node.hpp>
#include <gradserve/tensor.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gradserve {

/// Throws the InputError of an answer that has no result for something.
[[noreturn]] void throw_no_result(const std::string& sought, std::size_t count);

/// What an answer has for each of some nodes, in the order of the request: pairs of a node and its result.
template <class T>
class Results {
public:
    using Entry = std::pair<Node, T>;

    Results() = default;
    explicit Results(std::vector<Entry> entries) : entries_(std::move(entries)) {}

    /// The result of a node. Throws InputError where the answer has none.
    [[nodiscard]] const T& operator[](const Node& node) const {
        for (const Entry& entry : entries_)
            if (entry.first == node) return entry.second;
        throw_no_result(node.describe(), size());
    }

    /// The result of the node that has this name. Throws InputError where the answer has none.
    [[nodiscard]] const T& operator[](std::string_view name) const {
        for (const Entry& entry : entries_)
            if (entry.first.name() == name && !name.empty()) return entry.second;
        throw_no_result("“" + std::string(name) + "”", size());
    }
    [[nodiscard]] const T& operator[](const char* name) const { return (*this)[std::string_view(name)]; }

    /// The result of a place in the order of the request. Throws InputError where the answer has none.
    [[nodiscard]] const T& at(std::size_t place) const {
        if (place >= size()) throw_no_result("place " + std::to_string(place), size());
        return entries_[place].second;
    }

    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    [[nodiscard]] bool empty() const { return entries_.empty(); }
    [[nodiscard]] auto begin() const { return entries_.begin(); }
    [[nodiscard]] auto end() const { return entries_.end(); }

private:
    std::vector<Entry> entries_;
};

/// What an answer has for pairs of nodes, of an output and a node of `wrt`, or of a row and a column.
class Blocks {
public:
    struct Entry {
        Node first;
        Node second;
        Tensor tensor;
    };

    Blocks() = default;
    explicit Blocks(std::vector<Entry> entries) : entries_(std::move(entries)) {}

    /// The block of two nodes. Throws InputError where the answer has none.
    [[nodiscard]] const Tensor& operator()(const Node& first, const Node& second) const;

    /// The block of the nodes that have these names. Throws InputError where the answer has none.
    [[nodiscard]] const Tensor& operator()(std::string_view first, std::string_view second) const;

    /// The block of a place in the order of the answer. Throws InputError where the answer has none.
    [[nodiscard]] const Tensor& at(std::size_t place) const;

    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    [[nodiscard]] auto begin() const { return entries_.begin(); }
    [[nodiscard]] auto end() const { return entries_.end(); }

private:
    std::vector<Entry> entries_;
};

}  // namespace gradserve
