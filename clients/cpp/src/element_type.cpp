#include "element_type.hpp"

#include <gradserve/errors.hpp>

#include <algorithm>
#include <array>

namespace gradserve {

static constexpr std::array<ElementType, 8> element_types{{
    {"bool", ElementKind::boolean, 1, "BOOL"},
    {"int8", ElementKind::integer, 1, "I8"},
    {"uint8", ElementKind::integer, 1, "U8"},
    {"int32", ElementKind::integer, 4, "I32"},
    {"int64", ElementKind::integer, 8, "I64"},
    {"float16", ElementKind::floating, 2, "F16"},
    {"float32", ElementKind::floating, 4, "F32"},
    {"float64", ElementKind::floating, 8, "F64"},
}};

const ElementType& element_type_of(const DType& dtype) {
    const auto* const found = std::ranges::find(element_types, dtype.word(), &ElementType::word);
    if (found == element_types.end())
        throw InputError("“" + dtype.word() +
                         "” is no dtype of this client, which has bool, int8, uint8, int32, int64, float16, float32 "
                         "and float64");
    return *found;
}

const ElementType* element_type_in_safetensors(std::string_view spelled) {
    const auto* const found = std::ranges::find(element_types, spelled, &ElementType::safetensors);
    return found == element_types.end() ? nullptr : found;
}

}  // namespace gradserve
