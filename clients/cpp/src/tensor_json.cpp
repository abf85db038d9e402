#include "tensor_json.hpp"

#include "base64.hpp"
#include "element_type.hpp"
#include "json_reading.hpp"
#include "json_writing.hpp"
#include "within.hpp"

#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace gradserve {

/// The size from which tensors are sent as files by default.
static constexpr std::size_t large = 4096;
/// The largest integer that every JSON parser reads exactly.
static constexpr std::int64_t exact = std::int64_t{1} << 53;

Form default_form(std::size_t size) { return size >= large ? Form::safetensors : Form::base64; }

Form default_form(const Tensor& tensor) { return default_form(tensor.bytes().size()); }

/// Whether elements are complex.
template <class T>
static constexpr bool is_complex = std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;

/// Calls a function with a value of the element type. Only the type matters.
template <class Do>
static auto for_elements_of(const DType& dtype, Do&& done) {
    const std::string& word = dtype.word();
    if (word == "bool") return done(bool{});
    if (word == "int8") return done(std::int8_t{});
    if (word == "uint8") return done(std::uint8_t{});
    if (word == "int16") return done(std::int16_t{});
    if (word == "int32") return done(std::int32_t{});
    if (word == "uint32") return done(std::uint32_t{});
    if (word == "int64") return done(std::int64_t{});
    if (word == "float16") return done(Float16{});
    if (word == "float32") return done(float{});
    if (word == "complex64") return done(std::complex<float>{});
    if (word == "complex128") return done(std::complex<double>{});
    return done(double{});
}

/// Appends an element. A complex number is its real part followed by its imaginary part. Returns false if JSON cannot
/// represent the element: NaN, infinities, integers beyond 2⁵³.
template <Element T>
static bool append_element(std::string& text, T element) {
    if constexpr (std::integral<T>) {
        const auto whole = static_cast<std::int64_t>(element);
        append_number(text, whole);
        return -exact <= whole && whole <= exact;
    } else if constexpr (is_complex<T>) {
        if (!append_element(text, element.real())) return false;
        text += ',';
        return append_element(text, element.imag());
    } else {
        double number = 0;
        if constexpr (std::same_as<T, Float16>) number = element.value();
        else number = element;
        if (!std::isfinite(number)) return false;
        append_number(text, number);
        return true;
    }
}

/// Appends the list of elements. Returns false if JSON cannot represent one of them.
static bool append_numbers(std::string& text, const Tensor& tensor) {
    return for_elements_of(tensor.dtype(), [&]<Element T>(T) {
        text += '[';
        for (const char* separator = ""; const T element : tensor.elements<T>()) {
            text += std::exchange(separator, ",");
            if (!append_element(text, element)) return false;
        }
        text += ']';
        return true;
    });
}

void append_tensor(std::string& text, const Tensor& tensor, Form form) {
    text += R"({"dtype":")" + tensor.dtype().word() + R"(","shape":)" + Json(tensor.shape()).text();
    const std::size_t before = text.size();
    text += R"(,"data":)";
    if (form != Form::json || !append_numbers(text, tensor)) {
        text.resize(before);
        text += R"(,"data_b64":")";
        append_base64(text, tensor.bytes().view());
        text += '"';
    }
    text += '}';
}

std::string encode_json(const Tensor& tensor, Form form) {
    std::string text;
    append_tensor(text, tensor, form);
    return text;
}

static double number_of(const Json& value) {
    if (const auto* const number = value.get_if<double>()) return *number;
    if (const auto* const number = value.get_if<std::int64_t>()) return static_cast<double>(*number);
    if (const auto* const number = value.get_if<std::uint64_t>()) return static_cast<double>(*number);
    if (const auto* const number = value.get_if<Json::Digits>()) return std::strtod(number->text.c_str(), nullptr);
    throw InputError("expected a list of numbers");
}

/// Reads a number and rounds it to the nearest of a float dtype. Rejects a finite number that would become infinite.
template <Element T>
static T rounded(const Json& value) {
    const double number = number_of(value);
    bool is_finite = true;
    T made;
    if constexpr (std::same_as<T, Float16>) {
        made = Float16::rounded(number);
        is_finite = std::isfinite(made.value());
    } else {
        made = static_cast<T>(number);
        is_finite = std::isfinite(made);
    }
    if (!is_finite) throw InputError(value.text() + " is out of range for " + dtype_of<T>().word());
    return made;
}

/// Reads an integer, which may be written with a decimal point. It must be in the range of the dtype.
template <std::integral T>
static T whole(const Json& value) {
    const auto refuse = [&] { throw InputError(value.text() + " is not a valid " + dtype_of<T>().word()); };
    std::int64_t number = 0;
    if (const auto* const stated = value.get_if<std::int64_t>()) {
        number = *stated;
    } else if (const auto* const with_point = value.get_if<double>()) {
        const bool fits = *with_point >= -0x1p63 && *with_point < 0x1p63 && *with_point == std::trunc(*with_point);
        if (!fits) refuse();
        number = static_cast<std::int64_t>(*with_point);
    } else {
        refuse();
    }
    if constexpr (std::same_as<T, bool>) {
        if (number != 0 && number != 1) refuse();
    } else {
        if (!std::in_range<T>(number)) refuse();
    }
    return static_cast<T>(number);
}

/// Returns the bytes of a list of numbers, as elements of this dtype.
static Bytes bytes_of_numbers(const DType& dtype, const Json::List& numbers) {
    return for_elements_of(dtype, [&]<Element T>(T) {
        std::vector<std::byte> bytes(numbers.size() * sizeof(T));
        for (std::size_t place = 0; place < numbers.size(); ++place) {
            T element;
            if constexpr (std::integral<T>) element = whole<T>(numbers[place]);
            else if constexpr (is_complex<T>) throw InputError("complex elements are encoded as their parts");
            else element = rounded<T>(numbers[place]);
            std::memcpy(bytes.data() + place * sizeof(T), &element, sizeof(T));
        }
        return Bytes(std::move(bytes));
    });
}

/// Returns the bytes of the elements, from numbers or base64. The dtype is that of the numbers.
static Bytes payload_of(const Json::Object& members, const DType& dtype) {
    const Json* const data = member(members, "data");
    const Json* const encoded = member(members, "data_b64");
    if (encoded == nullptr && data == nullptr) return {};
    if (encoded == nullptr) return within("data of a tensor", [&] { return bytes_of_numbers(dtype, list_in(data)); });
    Bytes bytes = within("data_b64 of a tensor", [&] { return Bytes(decoded_base64(text_in(encoded))); });
    if (data != nullptr && (bytes.size() > 0 || !list_in(data).empty()))
        throw InputError("the tensor has both data and data_b64");
    return bytes;
}

Tensor tensor_in(const Json* value) {
    const Json::Object& members = object_in(value);
    DType dtype = within("dtype of a tensor", [&] { return DType(text_in(member(members, "dtype"))); });
    const std::string_view parts = element_type_of(dtype).parts;
    Shape shape = within("shape of a tensor", [&] { return shape_in(member(members, "shape")); });
    Bytes payload = payload_of(members, parts.empty() ? dtype : DType(std::string(parts)));
    return {std::move(dtype), std::move(shape), std::move(payload)};
}

Tensor decode_json(std::string_view text) {
    return promised([&] {
        const Json read = Json::parse(text);
        return tensor_in(&read);
    });
}

}  // namespace gradserve
