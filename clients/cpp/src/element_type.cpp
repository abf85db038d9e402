#include "element_type.hpp"

#include "opset.hpp"

#include <gradserve/errors.hpp>

#include <algorithm>
#include <array>

namespace gradserve {

static constexpr std::array<ElementType, 12> element_types{{
    {"bool", ElementKind::boolean, 1, "BOOL", first_opset},
    {"int8", ElementKind::integer, 1, "I8", first_opset},
    {"uint8", ElementKind::integer, 1, "U8", first_opset},
    {"int16", ElementKind::integer, 2, "I16", 2},
    {"int32", ElementKind::integer, 4, "I32", first_opset},
    {"uint32", ElementKind::integer, 4, "U32", 2},
    {"int64", ElementKind::integer, 8, "I64", first_opset},
    {"float16", ElementKind::floating, 2, "F16", first_opset},
    {"float32", ElementKind::floating, 4, "F32", first_opset},
    {"float64", ElementKind::floating, 8, "F64", first_opset},
    {"complex64", ElementKind::complex, 8, "C64", 2, "float32"},
    {"complex128", ElementKind::complex, 16, "", 2, "float64"},
}};

static const ElementType* found_by(std::string_view word) {
    const auto* const found = std::ranges::find(element_types, word, &ElementType::word);
    return found == element_types.end() ? nullptr : found;
}

const ElementType& element_type_of(const DType& dtype) {
    const ElementType* const found = found_by(dtype.word());
    if (found == nullptr)
        throw InputError("unsupported dtype “" + dtype.word() +
                         "”; supported: bool, int8, uint8, int16, int32, uint32, int64, float16, float32, float64, "
                         "complex64, complex128");
    return *found;
}

std::int64_t opset_of_dtype(std::string_view word) {
    const ElementType* const found = found_by(word);
    return found == nullptr ? first_opset : found->since;
}

const ElementType* element_type_in_safetensors(std::string_view spelled) {
    const auto* const found = std::ranges::find(element_types, spelled, &ElementType::safetensors);
    return found == element_types.end() || spelled.empty() ? nullptr : found;
}

const ElementType* element_type_of_parts(std::string_view parts) {
    const auto* const found = std::ranges::find(element_types, parts, &ElementType::parts);
    return found == element_types.end() || parts.empty() ? nullptr : found;
}

}  // namespace gradserve
