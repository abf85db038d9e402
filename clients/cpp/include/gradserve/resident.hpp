#pragma once

#include <gradserve/tensor.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace gradserve {

/// Rows `start` to `stop` (exclusive) of a resident tensor, along its leading axis.
struct Rows {
    std::string name;
    std::int64_t start;
    std::int64_t stop;
};

/// A handle of one version of a resident tensor. Pass it to calls in place of a tensor.
///
/// A call reads the version that is stored when it runs. `etag` identifies the version of this handle, for conditions.
/// Fields that the server did not report are absent: dtype, shape and size are known for tensors that were put or
/// listed, not for tensors that a call stored.
struct Resident {
    std::string name;
    std::string etag{};
    std::optional<DType> dtype{};
    std::optional<Shape> shape{};
    std::optional<std::int64_t> bytes{};
    std::optional<bool> durable{};
    std::optional<std::int64_t> written_within_ms{};

    /// Returns rows `start` to `stop` (exclusive) of the leading axis. Calls accept them in place of a tensor.
    [[nodiscard]] Rows rows(std::int64_t start, std::int64_t stop) const { return {name, start, stop}; }
};

/// A resident tensor with its elements.
struct ResidentTensor {
    Resident resident;
    Tensor tensor;
};

/// The tensor in which a call stores the value of a node, or the gradient with respect to it.
struct Store {
    std::string name;
    /// The etag that the tensor must have now, "*" for any, or "" if it must not exist. Absent: no condition.
    std::optional<std::string> if_match{};
    /// If false, the server may respond before the value is on disk.
    std::optional<bool> durable{};
    /// If true, the call stores the gradient with respect to the node instead of its value.
    bool gradient = false;

    Store(const char* kept_as) : name(kept_as) {}
    Store(std::string kept_as) : name(std::move(kept_as)) {}
    Store(std::string kept_as, std::optional<std::string> on_etag, std::optional<bool> on_disk = {})
        : name(std::move(kept_as)), if_match(std::move(on_etag)), durable(on_disk) {}
};

}  // namespace gradserve
