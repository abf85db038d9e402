#pragma once

#include <gradserve/encoding.hpp>

namespace gradserve {

/// What a safetensors file holds, in its memory. Throws InputError; that it came with an answer is for the caller to
/// say.
SafetensorsFile read_safetensors(const Bytes& file);

}  // namespace gradserve
