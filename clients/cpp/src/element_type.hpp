#pragma once

#include <gradserve/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gradserve {

enum class ElementKind { boolean, integer, floating, complex };

/// The properties of a dtype. `safetensors` is its name in the safetensors format, empty if the format lacks it.
/// `since` is the first opset with it. `parts` is the dtype of the real and imaginary parts of a complex dtype, as
/// which files store it.
struct ElementType {
    std::string_view word;
    ElementKind kind;
    std::size_t size;
    std::string_view safetensors;
    std::int64_t since;
    std::string_view parts = {};

    /// Returns the alignment of elements in bytes.
    [[nodiscard]] std::size_t alignment() const { return parts.empty() ? size : size / 2; }
};

/// Throws InputError for a dtype that this client does not support in tensors.
const ElementType& element_type_of(const DType& dtype);

/// Returns the complex dtype with these parts, or null.
const ElementType* element_type_of_parts(std::string_view parts);

/// Returns null for a dtype that this client cannot read.
const ElementType* element_type_in_safetensors(std::string_view spelled);

}  // namespace gradserve
