#pragma once

#include <gradserve/bytes.hpp>
#include <gradserve/dtype.hpp>
#include <gradserve/float16.hpp>

#include <complex>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <span>
#include <string>
#include <vector>

namespace gradserve {

/// The extents of all axes.
using Shape = std::vector<std::int64_t>;

/// The types of a tensor's elements.
template <class T>
concept Element = std::same_as<T, bool> || std::same_as<T, std::int8_t> || std::same_as<T, std::uint8_t> ||
                  std::same_as<T, std::int16_t> || std::same_as<T, std::int32_t> || std::same_as<T, std::uint32_t> ||
                  std::same_as<T, std::int64_t> || std::same_as<T, Float16> || std::same_as<T, float> ||
                  std::same_as<T, double> || std::same_as<T, std::complex<float>> ||
                  std::same_as<T, std::complex<double>>;

/// Returns the dtype of an element type.
template <Element T>
[[nodiscard]] const DType& dtype_of() {
    if constexpr (std::same_as<T, bool>) return DType::boolean;
    else if constexpr (std::same_as<T, std::int8_t>) return DType::int8;
    else if constexpr (std::same_as<T, std::uint8_t>) return DType::uint8;
    else if constexpr (std::same_as<T, std::int16_t>) return DType::int16;
    else if constexpr (std::same_as<T, std::int32_t>) return DType::int32;
    else if constexpr (std::same_as<T, std::uint32_t>) return DType::uint32;
    else if constexpr (std::same_as<T, std::int64_t>) return DType::int64;
    else if constexpr (std::same_as<T, Float16>) return DType::float16;
    else if constexpr (std::same_as<T, float>) return DType::float32;
    else if constexpr (std::same_as<T, std::complex<float>>) return DType::complex64;
    else if constexpr (std::same_as<T, std::complex<double>>) return DType::complex128;
    else return DType::float64;
}

/// An array with a dtype and a shape, in row-major order. It is read-only. Copies share its memory, which is that of
/// the vector that it was created from, or of the response.
class Tensor {
public:
    /// Creates a tensor without axes.
    template <Element T>
    Tensor(T element) : Tensor(std::initializer_list<T>{element}, Shape{}) {}

    /// Creates a tensor with one axis.
    template <Element T>
    Tensor(std::initializer_list<T> elements) : Tensor(elements, along(elements.size())) {}

    /// Creates a tensor with this shape. Throws InputError if the number of elements does not match the shape.
    template <Element T>
    Tensor(std::initializer_list<T> elements, Shape shape)
        : Tensor(dtype_of<T>(), std::move(shape), Bytes::copied(std::as_bytes(std::span(elements)))) {}

    /// Creates a tensor with one axis. Takes the memory of the vector.
    template <Element T>
    Tensor(std::vector<T> elements) : Tensor(adopted(std::move(elements))) {}

    /// Creates a tensor with this shape. Takes the memory of the vector. Throws InputError if the number of elements
    /// does not match the shape.
    template <Element T>
    Tensor(std::vector<T> elements, Shape shape)
        : Tensor(dtype_of<T>(), std::move(shape), memory_of(std::move(elements))) {}

    /// Creates a tensor that refers to memory that it does not own, which must stay alive and unchanged as long as this
    /// tensor and its copies. Throws InputError if the number of elements does not match the shape.
    template <std::ranges::contiguous_range Range>
        requires Element<std::ranges::range_value_t<Range>> && std::ranges::borrowed_range<Range>
    [[nodiscard]] static Tensor borrowed(Range&& elements, Shape shape) {
        const std::span view(std::ranges::data(elements), std::ranges::size(elements));
        return {dtype_of<std::ranges::range_value_t<Range>>(), std::move(shape), Bytes::borrowed(std::as_bytes(view))};
    }

    /// Creates a tensor from row-major, little-endian bytes, which are copied only if they are not aligned. Throws
    /// InputError for an unsupported dtype, if the number of bytes does not match the shape, and for bytes that are not
    /// valid bools.
    Tensor(DType dtype, Shape shape, Bytes bytes);

    [[nodiscard]] const DType& dtype() const { return dtype_; }
    [[nodiscard]] const Shape& shape() const { return shape_; }

    /// Returns the number of elements.
    [[nodiscard]] std::size_t size() const;

    /// Returns the bytes of the elements, row-major and little-endian.
    [[nodiscard]] const Bytes& bytes() const { return bytes_; }

    /// Returns a view of the elements, valid as long as the tensor or a copy of it lives. Throws InputError if they
    /// have another type.
    template <Element T>
    [[nodiscard]] std::span<const T> elements() const {
        expect(dtype_of<T>());
        return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
    }

    /// Returns the only element. Throws InputError if there is not exactly one element, or if it has another type.
    template <Element T>
    [[nodiscard]] T item() const {
        expect(dtype_of<T>());
        expect_one();
        return elements<T>().front();
    }

    /// Returns a tensor that owns its memory: this one, or a copy if its memory is borrowed.
    [[nodiscard]] Tensor owned() const;

    /// Returns dtype and shape, such as “float64[2, 3]”.
    [[nodiscard]] std::string describe() const;

    /// Compares dtype, shape and all bits.
    friend bool operator==(const Tensor& one, const Tensor& other);

private:
    static Shape along(std::size_t count) { return {static_cast<std::int64_t>(count)}; }

    template <Element T>
    static Bytes memory_of(std::vector<T> elements) {
        if constexpr (std::same_as<T, bool>) {
            return Bytes(std::vector<std::uint8_t>(elements.begin(), elements.end()));
        } else {
            return Bytes(std::move(elements));
        }
    }

    template <Element T>
    static Tensor adopted(std::vector<T> elements) {
        Shape shape = along(elements.size());
        return Tensor(std::move(elements), std::move(shape));
    }

    void expect(const DType& wanted) const;
    void expect_one() const;

    DType dtype_;
    Shape shape_;
    Bytes bytes_;
};

}  // namespace gradserve
