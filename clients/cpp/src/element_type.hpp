#pragma once

#include <gradserve/dtype.hpp>

#include <cstddef>
#include <string_view>

namespace gradserve {

enum class ElementKind { boolean, integer, floating };

/// What there is to know of a dtype; `safetensors` is how that format spells it.
struct ElementType {
    std::string_view word;
    ElementKind kind;
    std::size_t size;
    std::string_view safetensors;
};

/// Throws InputError for a dtype that tensors of this client cannot have.
const ElementType& element_type_of(const DType& dtype);

/// Null for a dtype that this client cannot read.
const ElementType* element_type_in_safetensors(std::string_view spelled);

}  // namespace gradserve
