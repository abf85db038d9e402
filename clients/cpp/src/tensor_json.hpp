#pragma once

#include <gradserve/encoding.hpp>
#include <gradserve/json.hpp>

#include <cstddef>
#include <string>

namespace gradserve {

/// How tensors of so many bytes travel, where nobody says.
Form default_form(std::size_t size);

/// Appends a tensor as JSON has it: its bytes as base64, or with Form::json its numbers, if JSON keeps them all.
void append_tensor(std::string& text, const Tensor& tensor, Form form);

/// Throws InputError; that it came with an answer is for the caller to say.
Tensor tensor_in(const Json* value);

}  // namespace gradserve
