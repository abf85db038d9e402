#pragma once

#include <gradserve/encoding.hpp>
#include <gradserve/json.hpp>

#include <cstddef>
#include <string>

namespace gradserve {

/// Returns the default encoding for tensors of this size in bytes.
Form default_form(std::size_t size);

/// Appends a tensor in JSON: base64 of its bytes or, with Form::json, its numbers if JSON can represent all of them.
void append_tensor(std::string& text, const Tensor& tensor, Form form);

/// Throws InputError, which the caller converts.
Tensor tensor_in(const Json* value);

}  // namespace gradserve
