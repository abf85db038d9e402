#include <gradserve/results.hpp>

#include <gradserve/errors.hpp>

#include <algorithm>

namespace gradserve {

void throw_no_result(const std::string& sought, std::size_t count) {
    throw InputError("the answer has no result for " + sought + " (number of results: " + std::to_string(count) + ")");
}

const Tensor& Blocks::operator()(const Node& first, const Node& second) const {
    for (const Entry& entry : entries_)
        if (entry.first == first && entry.second == second) return entry.tensor;
    throw_no_result(first.describe() + " and " + second.describe(), size());
}

const Tensor& Blocks::operator()(std::string_view first, std::string_view second) const {
    for (const Entry& entry : entries_)
        if (!first.empty() && !second.empty() && entry.first.name() == first && entry.second.name() == second)
            return entry.tensor;
    throw_no_result("“" + std::string(first) + "” and “" + std::string(second) + "”", size());
}

const Tensor& Blocks::at(std::size_t place) const {
    if (place >= size()) throw_no_result("position " + std::to_string(place), size());
    return entries_[place].tensor;
}

}  // namespace gradserve
