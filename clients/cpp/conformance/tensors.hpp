#pragma once

#include <gradserve/gradserve.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace gs = gradserve;

namespace conformance {

using nlohmann::json;

std::string hex_of(std::span<const std::byte> bytes);
gs::Bytes bytes_of(const std::string& hex);

/// A tensor from its bits, and its bits.
gs::Tensor tensor_of(const json& bits);
json bits_of(const gs::Tensor& tensor);

/// Conversions of the client's results to the program's output.
json json_of(const gs::Json& value);

}  // namespace conformance
