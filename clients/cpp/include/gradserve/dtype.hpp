#pragma once

#include <string>
#include <utility>

namespace gradserve {

/// The type of a tensor's elements, by its API name. Servers may support more dtypes than this client: a DType can hold
/// any name.
class DType {
public:
    DType(std::string word) : word_(std::move(word)) {}
    DType(const char* word) : word_(word) {}

    /// Returns the API name.
    [[nodiscard]] const std::string& word() const { return word_; }

    friend bool operator==(const DType&, const DType&) = default;

    // The dtypes that this client supports in tensors.
    static const DType boolean;
    static const DType int8;
    static const DType uint8;
    static const DType int16;
    static const DType int32;
    static const DType uint32;
    static const DType int64;
    static const DType float16;
    static const DType float32;
    static const DType float64;
    static const DType complex64;
    static const DType complex128;

private:
    std::string word_;
};

inline const DType DType::boolean{"bool"};
inline const DType DType::int8{"int8"};
inline const DType DType::uint8{"uint8"};
inline const DType DType::int16{"int16"};
inline const DType DType::int32{"int32"};
inline const DType DType::uint32{"uint32"};
inline const DType DType::int64{"int64"};
inline const DType DType::float16{"float16"};
inline const DType DType::float32{"float32"};
inline const DType DType::float64{"float64"};
inline const DType DType::complex64{"complex64"};
inline const DType DType::complex128{"complex128"};

}  // namespace gradserve
