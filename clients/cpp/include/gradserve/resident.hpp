#pragma once

#include <gradserve/tensor.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace gradserve {

/// Part of a tensor that the server keeps: what lies from `start` to before `stop` on its leading axis.
struct Rows {
    std::string name;
    std::int64_t start;
    std::int64_t stop;
};

/// A version of a tensor that the server keeps, and may stand wherever a call takes a tensor.
///
/// A call reads the version that is there when it comes: `etag` says which one this was, for conditions. What the
/// server did not say is absent: dtype, shape and bytes are known of what is put and listed, not of what is stored.
struct Resident {
    std::string name;
    std::string etag{};
    std::optional<DType> dtype{};
    std::optional<Shape> shape{};
    std::optional<std::int64_t> bytes{};
    std::optional<bool> durable{};
    std::optional<std::int64_t> written_within_ms{};

    /// The part of it from start to before stop on its leading axis, which may stand where it may.
    [[nodiscard]] Rows rows(std::int64_t start, std::int64_t stop) const { return {name, start, stop}; }
};

/// A resident tensor with its elements.
struct ResidentTensor {
    Resident resident;
    Tensor tensor;
};

/// Under which name a call is to keep the value of a node, or the gradient by it, and on what condition.
struct Store {
    std::string name;
    /// The etag that the tensor must have now: "*" where any will do, "" where there must be none. Absent is no
    /// condition.
    std::optional<std::string> if_match{};
    /// False has the value be on disk some time after the answer.
    std::optional<bool> durable{};
    /// True has the gradient by the node be kept, and not its value.
    bool gradient = false;

    Store(const char* kept_as) : name(kept_as) {}
    Store(std::string kept_as) : name(std::move(kept_as)) {}
    Store(std::string kept_as, std::optional<std::string> on_etag, std::optional<bool> on_disk = {})
        : name(std::move(kept_as)), if_match(std::move(on_etag)), durable(on_disk) {}
};

}  // namespace gradserve
