#pragma once

#include <gradserve/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gradserve {

enum class ElementKind { boolean, integer, floating };

/// What there is to know of a dtype; `safetensors` is how that format spells it, and graphs have it `since` an opset.
struct ElementType {
    std::string_view word;
    ElementKind kind;
    std::size_t size;
    std::string_view safetensors;
    std::int64_t since;
};

/// Throws InputError for a dtype that tensors of this client cannot have.
const ElementType& element_type_of(const DType& dtype);

/// Null for a dtype that this client cannot read.
const ElementType* element_type_in_safetensors(std::string_view spelled);

}  // namespace gradserve
