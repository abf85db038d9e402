#pragma once

#include <gradserve/bytes.hpp>
#include <gradserve/tensor.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gradserve {

/// Encodings of tensors: JSON numbers, base64 in JSON, or a safetensors file. By default, tensors of 4 KiB or more are
/// sent as safetensors, smaller ones as base64.
enum class Form { json, base64, safetensors };

/// Returns the default encoding of a tensor.
[[nodiscard]] Form default_form(const Tensor& tensor);

/// Returns a tensor in the JSON form of the API: numbers with Form::json if JSON can represent all of them, otherwise
/// base64.
[[nodiscard]] std::string encode_json(const Tensor& tensor, Form form = Form::base64);

/// Reads a tensor in the JSON form of the API, as numbers or base64. Throws MalformedAnswer.
[[nodiscard]] Tensor decode_json(std::string_view text);

/// The content of a safetensors file. The dtypes of the tensors, not the metadata, tell which are complex.
struct SafetensorsFile {
    std::map<std::string, Tensor, std::less<>> tensors;
    std::map<std::string, std::string, std::less<>> metadata;
};

/// Returns a safetensors file in pieces: its header, and the bytes of the tensors, which are not copied. Throws
/// InputError if a name is not UTF-8.
[[nodiscard]] std::vector<Bytes> encode_safetensors(const SafetensorsFile& file);

/// Decodes a safetensors file. The tensors share its memory. Throws MalformedAnswer.
[[nodiscard]] SafetensorsFile decode_safetensors(const Bytes& file);

/// Returns the tensor with a name in a safetensors file. It shares the file's memory. Throws MalformedAnswer.
[[nodiscard]] Tensor decode_safetensor(const Bytes& file, std::string_view name);

}  // namespace gradserve
