#include <gradserve/tensor.hpp>

#include "element_type.hpp"

#include <gradserve/errors.hpp>

#include <algorithm>
#include <bit>

namespace gradserve {

static_assert(std::endian::native == std::endian::little, "elements are read in place, in wire byte order");

/// The maximum number of axes of a NumPy array.
static constexpr std::size_t most_axes = 64;
/// Exclusive limit on the bytes of a tensor, with extents of 0 counted as 1.
static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 53;

static std::string described(const Shape& shape) {
    std::string text = "[";
    for (const std::int64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
    return text + "]";
}

/// Returns the number of bytes of a shape.
static std::uint64_t bytes_of(const Shape& shape, std::size_t size) {
    if (shape.size() > most_axes)
        throw InputError("the shape has " + std::to_string(shape.size()) + " axes; the limit is " +
                         std::to_string(most_axes));
    if (std::ranges::any_of(shape, [](std::int64_t extent) { return extent < 0; }))
        throw InputError("the extents of a shape must not be negative, got " + described(shape));
    std::uint64_t total = size;
    for (const std::int64_t extent : shape) {
        const auto factor = static_cast<std::uint64_t>(std::max<std::int64_t>(1, extent));
        if (total > (most_bytes - 1) / factor)
            throw InputError("the shape " + described(shape) +
                             " is too large: its nonzero extents give 2^53 bytes or more");
        total *= factor;
    }
    return std::ranges::find(shape, 0) == shape.end() ? total : 0;
}

static bool is_aligned(const Bytes& bytes, std::size_t size) {
    return reinterpret_cast<std::uintptr_t>(bytes.data()) % size == 0;
}

Tensor::Tensor(DType dtype, Shape shape, Bytes bytes)
    : dtype_(std::move(dtype)), shape_(std::move(shape)), bytes_(std::move(bytes)) {
    const ElementType& element = element_type_of(dtype_);
    if (const auto expected = bytes_of(shape_, element.size); expected != bytes_.size())
        throw InputError(describe() + " needs " + std::to_string(expected) + " bytes, got " +
                         std::to_string(bytes_.size()));
    const auto is_no_bool = [](std::byte byte) { return byte > std::byte{1}; };
    if (element.kind == ElementKind::boolean && std::ranges::any_of(bytes_.view(), is_no_bool))
        throw InputError("the bytes of a bool tensor must be 0 or 1");
    if (!is_aligned(bytes_, element.alignment())) bytes_ = Bytes::copied(bytes_.view());
}

std::size_t Tensor::size() const { return bytes_.size() / element_type_of(dtype_).size; }

Tensor Tensor::owned() const {
    Tensor made = *this;
    made.bytes_ = bytes_.owned();
    return made;
}

std::string Tensor::describe() const { return dtype_.word() + described(shape_); }

bool operator==(const Tensor& one, const Tensor& other) {
    return one.dtype_ == other.dtype_ && one.shape_ == other.shape_ &&
           std::ranges::equal(one.bytes_.view(), other.bytes_.view());
}

void Tensor::expect(const DType& wanted) const {
    if (dtype_ != wanted)
        throw InputError("the tensor holds " + dtype_.word() + " elements, not " + wanted.word());
}

void Tensor::expect_one() const {
    if (size() != 1)
        throw InputError("the tensor of shape " + described(shape_) + " has " + std::to_string(size()) +
                         " elements, not one");
}

}  // namespace gradserve
