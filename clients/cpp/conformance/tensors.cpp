#include "tensors.hpp"

namespace conformance {

std::string hex_of(std::span<const std::byte> bytes) {
    static constexpr std::string_view digits = "0123456789abcdef";
    std::string hex;
    for (const std::byte byte : bytes) {
        hex += digits[std::to_integer<unsigned>(byte >> 4)];
        hex += digits[std::to_integer<unsigned>(byte & std::byte{15})];
    }
    return hex;
}

gs::Bytes bytes_of(const std::string& hex) {
    std::vector<std::byte> bytes;
    for (std::size_t place = 0; place + 1 < hex.size(); place += 2)
        bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(place, 2), nullptr, 16)));
    return gs::Bytes(std::move(bytes));
}

gs::Tensor tensor_of(const json& bits) {
    return {bits.at("dtype").get<std::string>(), bits.at("shape").get<gs::Shape>(), bytes_of(bits.at("hex"))};
}

json bits_of(const gs::Tensor& tensor) {
    return {{"dtype", tensor.dtype().word()}, {"shape", tensor.shape()}, {"hex", hex_of(tensor.bytes().view())}};
}

json json_of(const gs::Json& value) { return json::parse(value.text()); }

}  // namespace conformance
