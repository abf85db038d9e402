#pragma once

#include <gradserve/options.hpp>

#include <chrono>
#include <map>
#include <optional>
#include <stop_token>
#include <string>

namespace gradserve {

/// The arguments of a call except the graph, from any options.
struct Asked {
    std::optional<Form> form;
    std::optional<std::chrono::milliseconds> timeout;
    std::optional<bool> idempotency;
    std::stop_token stop;

    /// Feeds and other tensors by node, by API names.
    std::map<std::string, Feeds> tensors;
    std::optional<Tensor> cotangent;
    Types types;
    Stores store;
    std::optional<Node> of;
    /// Lists of nodes, by API names.
    std::map<std::string, Nodes> lists;
    /// Arguments that are sent unchanged.
    Json::Object values;
};

/// Returns the API name of a precision.
inline std::string word_of(Precision precision) {
    switch (precision) {
        case Precision::tf32x3: return "tf32x3";
        case Precision::tf32: return "tf32";
        case Precision::bfloat16: return "bfloat16";
        default: return "float32";
    }
}

/// Returns the API name of a layout.
inline std::string word_of(HessianLayout layout) { return layout == HessianLayout::matrix ? "matrix" : "blocks"; }

/// Returns the API name of a reduction.
inline std::string word_of(Reduction reduction) {
    switch (reduction) {
        case Reduction::sum: return "sum";
        case Reduction::mean: return "mean";
        default: return "none";
    }
}

/// Reads the arguments of a call from its options. Each option is read if the struct has it.
template <class Options>
Asked asked(const Options& options) {
    Asked made;
    made.form = options.form;
    made.timeout = options.timeout;
    made.idempotency = options.idempotency;
    made.stop = options.stop;
    if constexpr (requires { options.of; }) made.of = options.of;
    if constexpr (requires { options.wrt; }) made.lists["wrt"] = options.wrt;
    if constexpr (requires { options.outputs; }) made.lists["outputs"] = options.outputs;
    if constexpr (requires { options.mapped; }) made.lists["mapped"] = options.mapped;
    if constexpr (requires { options.store; }) made.store = options.store;
    if constexpr (requires { options.cotangent; }) made.cotangent = options.cotangent;
    if constexpr (requires { options.cotangents; }) made.tensors["cotangents"] = options.cotangents;
    if constexpr (requires { options.tangents; }) made.tensors["tangents"] = options.tangents;
    if constexpr (requires { options.vectors; }) made.tensors["vectors"] = options.vectors;
    if constexpr (requires { options.diagnose; })
        if (options.diagnose) made.values["diagnose"] = true;
    if constexpr (requires { options.memory_budget; })
        if (options.memory_budget) made.values["memory_budget"] = *options.memory_budget;
    if constexpr (requires { options.precision; })
        if (options.precision) made.values["precision"] = word_of(*options.precision);
    if constexpr (requires { options.reduce; })
        if (options.reduce) made.values["reduce"] = word_of(*options.reduce);
    if constexpr (requires { options.block; })
        if (options.block) made.values["block"] = *options.block;
    if constexpr (requires { options.layout; })
        if (options.layout) made.values["layout"] = word_of(*options.layout);
    if constexpr (requires { options.batched; })
        if (options.batched) made.values["batched"] = true;
    if constexpr (requires { options.directions; })
        if (options.directions) made.values["directions"] = *options.directions;
    if constexpr (requires { options.tolerance; })
        if (options.tolerance) made.values["tolerance"] = *options.tolerance;
    if constexpr (requires { options.call; })
        if (options.call) made.values["call"] = *options.call;
    for (const auto& [name, value] : options.extra) made.values[name] = value;
    return made;
}

template <class Options>
Asked asked(const Feeds& feeds, const Options& options) {
    Asked made = asked(options);
    made.tensors["feeds"] = feeds;
    return made;
}

template <class Options>
Asked asked(const Types& types, const Options& options) {
    Asked made = asked(options);
    made.types = types;
    return made;
}

}  // namespace gradserve
