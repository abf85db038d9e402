#pragma once

#include <gradserve/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gradserve {

enum class ElementKind { boolean, integer, floating, complex };

/// What there is to know of a dtype; `safetensors` is how that format spells it, empty where it lacks it, and graphs have
/// it `since` an opset. `parts` is the dtype of a complex number's real and imaginary parts, as which files have it.
struct ElementType {
    std::string_view word;
    ElementKind kind;
    std::size_t size;
    std::string_view safetensors;
    std::int64_t since;
    std::string_view parts = {};

    /// As many bytes as elements are aligned to.
    [[nodiscard]] std::size_t alignment() const { return parts.empty() ? size : size / 2; }
};

/// Throws InputError for a dtype that tensors of this client cannot have.
const ElementType& element_type_of(const DType& dtype);

/// That of complex numbers with such parts; null where there are none.
const ElementType* element_type_of_parts(std::string_view parts);

/// Null for a dtype that this client cannot read.
const ElementType* element_type_in_safetensors(std::string_view spelled);

}  // namespace gradserve
