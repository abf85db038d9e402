#include "check.hpp"

#include <gradserve/encoding.hpp>
#include <gradserve/errors.hpp>

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>

namespace gs = gradserve;

static void float16_has_all_of_its_bits() {
    for (std::uint32_t bits = 0; bits < 1U << 16; ++bits) {
        const gs::Float16 number{static_cast<std::uint16_t>(bits)};
        const bool is_signalling = std::isnan(number.value()) && (bits & 0x200) == 0;
        if (!is_signalling) CHECK(gs::Float16::rounded(number.value()) == number);
    }
}

static void float16_is_rounded_to_the_nearest_and_then_to_the_even_one() {
    const std::pair<double, std::uint16_t> expected[] = {
        {1.0, 0x3c00},      {-2.0, 0xc000},    {0x1p-24, 0x0001},     {0x1p-25, 0x0000},  {0x1.000002p-25, 0x0001},
        {0x3p-25, 0x0002},  {1 + 0x1p-11, 0x3c00}, {1 + 0x3p-11, 0x3c02}, {65504, 0x7bff}, {65519.99, 0x7bff},
        {65520, 0x7c00},    {1e300, 0x7c00},   {-1e-300, 0x8000},     {5e-324, 0x0000},   {0x1.ffcp-15, 0x0400},
        {0x1.ff8p-15, 0x03ff}};
    for (const auto& [number, bits] : expected) CHECK(gs::Float16::rounded(number).bits == bits);
}

static void tensors_have_the_memory_of_vectors() {
    std::vector<double> elements{1, 2, 3, 4, 5, 6};
    const double* const where = elements.data();
    const gs::Tensor lent = gs::Tensor::borrowed(std::span(elements), {3, 2});
    CHECK(lent.elements<double>().data() == where);
    const gs::Tensor moved(std::move(elements), {2, 3});
    CHECK(moved.elements<double>().data() == where);
    const gs::Tensor copy = moved;
    CHECK(copy.elements<double>().data() == where);
    CHECK(gs::encode_safetensors({{{"t", moved}}, {}}).at(1).data() == moved.bytes().data());
}

static void what_is_owned_outlives_what_was_borrowed() {
    std::vector<std::int32_t> elements{1, 2};
    const gs::Tensor owned = gs::Tensor::borrowed(std::span(elements), {2}).owned();
    elements.front() = 7;
    CHECK(owned.elements<std::int32_t>().front() == 1);
}

static void elements_that_are_not_aligned_are_copied() {
    std::vector<std::byte> memory(1 + 2 * sizeof(double));
    const double numbers[] = {1.5, -2};
    std::memcpy(memory.data() + 1, numbers, sizeof numbers);
    const gs::Tensor tensor(gs::DType::float64, {2}, gs::Bytes(std::move(memory)).part(1, sizeof numbers));
    CHECK(reinterpret_cast<std::uintptr_t>(tensor.elements<double>().data()) % alignof(double) == 0);
    CHECK(tensor.elements<double>()[1] == -2);
}

static void elements_are_of_the_type_that_is_asked_for() {
    CHECK(throws<gs::InputError>([] { static_cast<void>(gs::Tensor(1.0).elements<float>()); }));
    CHECK(throws<gs::InputError>([] { static_cast<void>(gs::Tensor{1.0, 2.0}.item<double>()); }));
    CHECK(gs::Tensor(true).item<bool>());
    CHECK(gs::Tensor(std::uint32_t{4294967295}).item<std::uint32_t>() == 4294967295);
    CHECK(throws<gs::InputError>([] { static_cast<void>(gs::Tensor(std::int32_t{1}).item<std::uint32_t>()); }));
    CHECK(gs::Tensor(std::vector<bool>{true, false}).describe() == "bool[2]");
    CHECK(gs::Tensor(std::int16_t{-32768}).item<std::int16_t>() == -32768);
    CHECK(gs::Tensor(std::complex(1.0F, -2.0F)).describe() == "complex64[]");
    CHECK(gs::Tensor(std::vector<std::complex<double>>{{1, 2}, {0, -1}}).elements<std::complex<double>>()[1].imag() == -1);
    CHECK(throws<gs::InputError>([] { static_cast<void>(gs::Tensor(1.0).item<std::complex<double>>()); }));
    CHECK(gs::Tensor(std::vector<float>{}).size() == 0);
}

static void shapes_that_do_not_fit_are_refused() {
    constexpr std::int64_t large = std::numeric_limits<std::int64_t>::max();
    const gs::Shape shapes[] = {{}, {2}, {4}, {-1}, {-3, -1}, {large, large}, {large, 2, 4}, {1L << 61, 3, 8, 1L << 62},
                                {3, large / 3 + 1}};
    for (const gs::Shape& shape : shapes)
        CHECK(throws<gs::InputError>([&] { gs::Tensor(std::vector<double>{1, 2, 3}, shape); }));
    CHECK(throws<gs::InputError>([] { gs::Tensor(std::vector<float>{1}, gs::Shape(65, 1)); }));
    CHECK(gs::Tensor(std::vector<double>{}, {std::int64_t{1} << 48, 0}).size() == 0);
    const gs::Shape empty[] = {{large, 0}, {large, large, 0}, {0, large}, {std::int64_t{1} << 50, 0}};
    for (const gs::Shape& shape : empty)
        CHECK(throws<gs::InputError>([&] { gs::Tensor(std::vector<double>{}, shape); }));
    CHECK(throws<gs::MalformedAnswer>(
        [] { return gs::decode_json(R"({"dtype": "float64", "shape": [4611686018427387904, 0], "data": []})"); }));
    CHECK(throws<gs::InputError>([] { gs::Tensor("complex256", {0}, {}); }));
    CHECK(throws<gs::InputError>([] { gs::Tensor(gs::DType::boolean, {1}, gs::Bytes(std::string("\2"))); }));
}

static void numbers_of_json_are_exact() {
    CHECK(gs::encode_json(gs::Tensor{-0.0, 0.1}, gs::Form::json) ==
          R"({"dtype":"float64","shape":[2],"data":[-0.0,0.1]})");
    CHECK(contains(gs::encode_json(gs::Tensor((std::int64_t{1} << 53) + 1), gs::Form::json), "data_b64"));
    CHECK(contains(gs::encode_json(gs::Tensor(std::nan("")), gs::Form::json), "data_b64"));
    const auto decoded = [](const std::string& dtype, const std::string& number) {
        return gs::decode_json(R"({"dtype": ")" + dtype + R"(", "shape": [], "data": [)" + number + "]}");
    };
    CHECK(decoded("int64", "-9223372036854775808").item<std::int64_t>() == std::numeric_limits<std::int64_t>::min());
    for (const char* const number :
         {"-9223372036854775809", "9223372036854775808", "18446744073709551616", "1e19", "NaN"})
        CHECK(throws<gs::MalformedAnswer>([&] { static_cast<void>(decoded("int64", number)); }));
    CHECK(std::signbit(decoded("float64", "-0.0").item<double>()));
    CHECK(decoded("float64", "18446744073709551616").item<double>() == 0x1p64);
}

static std::string joined(const std::vector<gs::Bytes>& pieces) {
    std::string made;
    for (const gs::Bytes& piece : pieces) made += piece.text();
    return made;
}

static void complex_numbers_travel_as_their_parts() {
    const std::vector<std::complex<float>> elements{{1, -2}, {-0.0F, 0.5F}};
    const gs::Tensor tensor(elements, {1, 2});
    const std::string text = gs::encode_json(tensor, gs::Form::json);
    CHECK(text == R"({"dtype":"complex64","shape":[1,2],"data":[1,-2,-0.0,0.5]})");
    CHECK(gs::decode_json(text) == tensor);
    CHECK(gs::decode_json(gs::encode_json(tensor)) == tensor);
    CHECK(contains(gs::encode_json(gs::Tensor(std::complex(0.0, std::nan(""))), gs::Form::json), "data_b64"));
    const auto pieces = gs::encode_safetensors({{{"é", tensor}, {"x", gs::Tensor(1.0)}}, {{"for", "all"}}});
    const std::string header(pieces.front().text());
    CHECK(contains(header, R"("complex":"[\"é\"]")") && contains(header, "[1,2,2]"));
    const gs::SafetensorsFile read = gs::decode_safetensors(gs::Bytes(joined(pieces)));
    CHECK(read.tensors.at("é") == tensor && read.tensors.at("x").item<double>() == 1);
    CHECK(read.metadata.size() == 1);
}

static void what_is_said_to_be_complex_has_a_last_axis_of_two() {
    const auto read = [](const std::string& names, const std::string& type) {
        const std::string header = R"({"__metadata__":{"complex":)" + names + R"(},"t":{)" + type +
                                   R"(,"data_offsets":[0,16]}})";
        const std::uint64_t length = header.size();
        std::string file(sizeof length, '\0');
        std::memcpy(file.data(), &length, sizeof length);
        return gs::decode_safetensor(gs::Bytes(file + header + std::string(16, '\0')), "t").describe();
    };
    const std::string named = R"("[\"t\"]")";
    CHECK(read(named, R"("dtype":"F64","shape":[2])") == "complex128[]");
    CHECK(read(R"("[]")", R"("dtype":"C64","shape":[2])") == "complex64[2]");
    const std::pair<std::string, const char*> broken[] = {
        {named, R"("dtype":"F64","shape":[2,1])"},      {named, R"("dtype":"I64","shape":[1,2])"},
        {named, R"("dtype":"F16","shape":[4,2])"},      {named, R"("dtype":"C64","shape":[2])"},
        {R"("[\"u\"]")", R"("dtype":"F64","shape":[2])"}, {R"("\"t\"")", R"("dtype":"F64","shape":[2])"},
        {R"("t")", R"("dtype":"F64","shape":[2])"},     {R"("[null]")", R"("dtype":"F64","shape":[2])"},
        {R"(["t"])", R"("dtype":"F64","shape":[2])"}};
    for (const auto& [names, type] : broken)
        CHECK(throws<gs::MalformedAnswer>([&] { static_cast<void>(read(names, type)); }));
}

static std::string some_file() {
    return joined(gs::encode_safetensors(
        {{{"a", gs::Tensor{1.0, 2.0}}, {"b", gs::Tensor(true)}, {"c", gs::Tensor(std::vector<float>{}, {0, 3})}},
         {{"response", "{}"}}}));
}

static void files_are_read_where_they_lie() {
    const gs::Bytes file(some_file());
    const gs::SafetensorsFile read = gs::decode_safetensors(file);
    CHECK(read.tensors.size() == 3 && read.metadata.at("response") == "{}");
    const auto* const where = read.tensors.at("a").bytes().data();
    CHECK(file.data() < where && where < file.data() + file.size());
    CHECK(throws<gs::MalformedAnswer>([&] { static_cast<void>(gs::decode_safetensor(file, "d")); }));
}

/// Whatever is done to a file, it is read or refused, and no byte beside it is touched: the sanitizers look.
static void broken_files_are_refused() {
    const std::string whole = some_file();
    const auto attempt = [](std::string text) {
        try {
            // Memory of exactly this size, so that what is read behind it is noticed.
            static_cast<void>(gs::decode_safetensors(gs::Bytes::copied(std::as_bytes(std::span(text)))));
            return true;
        } catch (const gs::MalformedAnswer&) {
            return false;
        }
    };
    CHECK(attempt(whole));
    for (std::size_t length = 0; length < whole.size(); ++length) CHECK(!attempt(whole.substr(0, length)));
    std::mt19937 random(1);
    for (int round = 0; round < 3000; ++round) {
        std::string changed = whole;
        for (int change = 0; change < 3; ++change)
            changed[random() % changed.size()] = "09[]{}\",:-\xff\x00 e."[random() % 16];
        attempt(changed);
    }
}

int main() {
    return run({{"float16 has all of its bits", float16_has_all_of_its_bits},
                {"float16 is rounded", float16_is_rounded_to_the_nearest_and_then_to_the_even_one},
                {"tensors have the memory of vectors", tensors_have_the_memory_of_vectors},
                {"what is owned outlives what was borrowed", what_is_owned_outlives_what_was_borrowed},
                {"elements that are not aligned", elements_that_are_not_aligned_are_copied},
                {"elements of the type that is asked for", elements_are_of_the_type_that_is_asked_for},
                {"shapes that do not fit", shapes_that_do_not_fit_are_refused},
                {"numbers of JSON are exact", numbers_of_json_are_exact},
                {"complex numbers travel as their parts", complex_numbers_travel_as_their_parts},
                {"what is said to be complex", what_is_said_to_be_complex_has_a_last_axis_of_two},
                {"files are read where they lie", files_are_read_where_they_lie},
                {"broken files are refused", broken_files_are_refused}});
}
