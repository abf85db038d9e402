#pragma once

#include <gradserve/encoding.hpp>

namespace gradserve {

/// Decodes a safetensors file. The tensors share its memory. Throws InputError, which the caller converts.
SafetensorsFile read_safetensors(const Bytes& file);

}  // namespace gradserve
