#pragma once

#include <gradserve/bytes.hpp>
#include <gradserve/tensor.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gradserve {

/// How tensors travel: as numbers of JSON, as base64 in JSON, or in a safetensors file. Where none is stated, tensors
/// of 4 KiB and more travel as safetensors, and smaller ones as base64.
enum class Form { json, base64, safetensors };

/// How a tensor travels, where nobody says.
[[nodiscard]] Form default_form(const Tensor& tensor);

/// A tensor as the wire has it in JSON: with Form::json as numbers, if JSON keeps them all, else with its bytes in
/// base64.
[[nodiscard]] std::string encode_json(const Tensor& tensor, Form form = Form::base64);

/// A tensor as the wire has it in JSON, whatever its payload. Throws MalformedAnswer.
[[nodiscard]] Tensor decode_json(std::string_view text);

/// What a safetensors file holds. Which tensors are complex is said by these, and not in the metadata.
struct SafetensorsFile {
    std::map<std::string, Tensor, std::less<>> tensors;
    std::map<std::string, std::string, std::less<>> metadata;
};

/// A safetensors file in pieces: its header, and the bytes of tensors, which are not copied. Throws InputError where
/// a name is not in UTF-8.
[[nodiscard]] std::vector<Bytes> encode_safetensors(const SafetensorsFile& file);

/// What a safetensors file holds, in its memory. Throws MalformedAnswer.
[[nodiscard]] SafetensorsFile decode_safetensors(const Bytes& file);

/// The tensor of a name in a safetensors file, in its memory. Throws MalformedAnswer.
[[nodiscard]] Tensor decode_safetensor(const Bytes& file, std::string_view name);

}  // namespace gradserve
