#include "safetensors.hpp"

#include "element_type.hpp"
#include "json_reading.hpp"
#include "within.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>

// The safetensors format: a JSON header, followed by the bytes of the tensors, which are read without a copy. A complex
// tensor is stored as its real and imaginary parts along a last axis of 2. __metadata__.complex lists these tensors.
// https://github.com/huggingface/safetensors#format

namespace gradserve {

static constexpr const char* metadata_name = "__metadata__";
static constexpr const char* complex_name = "complex";
static constexpr std::size_t length_size = 8;
/// The maximum size of a header: the limit of the reference implementation.
static constexpr std::uint64_t most_of_header = 100'000'000;

/// Returns the header preceded by its length, padded so that the data is aligned.
static Bytes header_of(const Json::Object& entries) {
    std::string text = Json(entries).text();
    text.append((length_size - text.size() % length_size) % length_size, ' ');
    const std::uint64_t length = text.size();
    std::string made(length_size, '\0');
    std::memcpy(made.data(), &length, length_size);
    return Bytes(made + text);
}

/// Returns the tensors in the order of their data: those with wide elements come first, so that all are aligned.
static std::vector<std::pair<std::string, Tensor>> in_order(const SafetensorsFile& file) {
    std::vector<std::pair<std::string, Tensor>> all(file.tensors.begin(), file.tensors.end());
    std::ranges::stable_sort(all, std::ranges::greater(),
                             [](const auto& each) { return element_type_of(each.second.dtype()).size; });
    return all;
}

std::vector<Bytes> encode_safetensors(const SafetensorsFile& file) {
    Json::Object entries;
    Json::Object metadata(file.metadata.begin(), file.metadata.end());
    Json::List complex;
    std::vector<Bytes> pieces{Bytes()};
    std::uint64_t end = 0;
    for (const auto& [name, tensor] : in_order(file)) {
        const std::uint64_t start = end;
        end += tensor.bytes().size();
        const ElementType* written = &element_type_of(tensor.dtype());
        Shape shape = tensor.shape();
        if (!written->parts.empty()) {
            written = &element_type_of(DType(std::string(written->parts)));
            shape.push_back(2);
            complex.emplace_back(name);
        }
        entries[name] = Json::Object{
            {"dtype", written->safetensors}, {"shape", std::move(shape)}, {"data_offsets", Json::List{start, end}}};
        pieces.push_back(tensor.bytes());
    }
    if (!complex.empty()) metadata[complex_name] = Json(std::move(complex)).text();
    if (!metadata.empty()) entries[metadata_name] = std::move(metadata);
    pieces.front() = header_of(entries);
    return pieces;
}

namespace {

/// The location of a tensor in the file.
struct Entry {
    std::string name;
    std::size_t start;
    std::size_t end;
    DType dtype;
    Shape shape;
};

}  // namespace

static Entry entry_of(const std::string& name, const Json& stated) {
    const Json::Object& members = object_in(&stated);
    const std::string spelled = within("dtype", [&] { return text_in(member(members, "dtype")); });
    const ElementType* const element = element_type_in_safetensors(spelled);
    if (element == nullptr) throw InputError("unsupported dtype “" + spelled + "”");
    Shape shape = within("shape", [&] { return shape_in(member(members, "shape")); });
    const Shape offsets = within("data_offsets", [&] { return shape_in(member(members, "data_offsets")); });
    if (offsets.size() != 2 || offsets[0] < 0 || offsets[0] > offsets[1])
        throw InputError("data_offsets must be [start, end] with 0 <= start <= end, got " + Json(offsets).text());
    return {name, static_cast<std::size_t>(offsets[0]), static_cast<std::size_t>(offsets[1]),
            DType(std::string(element->word)), std::move(shape)};
}

/// Removes the names of the complex tensors from the metadata and returns them.
static std::set<std::string> complex_names(SafetensorsFile& file, const Json::Object& header) {
    const auto stated = file.metadata.find(complex_name);
    if (stated == file.metadata.end()) return {};
    const auto names = within("__metadata__.complex", [&] {
        const Json list = Json::parse(stated->second);
        std::set<std::string> found;
        for (const Json& name : list_in(&list)) found.insert(text_in(&name));
        return found;
    });
    for (const std::string& name : names)
        if (!header.contains(name))
            throw InputError("__metadata__.complex lists “" + name + "”, which is not the name of a tensor");
    file.metadata.erase(stated);
    return names;
}

/// Returns the same location, with the last axis of parts as complex numbers.
static Entry joined(Entry entry) {
    const ElementType* const whole = element_type_of_parts(entry.dtype.word());
    if (whole == nullptr || entry.shape.empty() || entry.shape.back() != 2)
        throw InputError("listed as complex, but not F32 or F64 with a last axis of 2");
    entry.dtype = DType(std::string(whole->word));
    entry.shape.pop_back();
    return entry;
}

/// Checks that the tensors cover the data without gaps or overlaps.
static void check_that_they_fill(std::vector<Entry>& entries, std::size_t length) {
    std::ranges::sort(entries, {}, [](const Entry& entry) { return std::tuple(entry.start, entry.end); });
    std::size_t end = 0;
    for (const Entry& entry : entries) {
        if (entry.start != end) throw InputError("the tensors of the safetensors file overlap or leave gaps");
        end = entry.end;
    }
    if (end != length)
        throw InputError("the data of the safetensors file has " + std::to_string(length) +
                         " bytes, but its tensors have " + std::to_string(end));
}

/// Returns the text of the header.
static std::string_view header_in(const Bytes& file) {
    std::uint64_t length = 0;
    if (file.size() < length_size) throw InputError("the safetensors file ends before the end of its header");
    std::memcpy(&length, file.data(), length_size);
    if (length > most_of_header)
        throw InputError("the header of the safetensors file has " + std::to_string(length) + " bytes; the limit is " +
                         std::to_string(most_of_header));
    if (length > file.size() - length_size) throw InputError("the safetensors file ends before the end of its header");
    return file.text().substr(length_size, length);
}

static std::map<std::string, std::string, std::less<>> metadata_in(const Json& stated) {
    std::map<std::string, std::string, std::less<>> metadata;
    if (stated.is_null()) return metadata;
    for (const auto& [name, value] : object_in(&stated)) metadata[name] = text_in(&value);
    return metadata;
}

SafetensorsFile read_safetensors(const Bytes& file) {
    const std::string_view text = header_in(file);
    const Bytes data = file.part(length_size + text.size(), file.size() - length_size - text.size());
    return within("the safetensors file", [&] {
        Json::Object header = parsed_object(text, Names::are_distinct);
        SafetensorsFile made;
        made.metadata = metadata_in(taken(header, metadata_name));
        const std::set<std::string> complex = complex_names(made, header);
        std::vector<Entry> entries;
        for (const auto& [name, stated] : header)
            entries.push_back(within("“" + name + "”", [&] {
                Entry entry = entry_of(name, stated);
                return complex.contains(name) ? joined(std::move(entry)) : entry;
            }));
        check_that_they_fill(entries, data.size());
        for (Entry& entry : entries) {
            const Bytes bytes = data.part(entry.start, entry.end - entry.start);
            made.tensors.emplace(entry.name, within("“" + entry.name + "”", [&] {
                                     return Tensor(entry.dtype, entry.shape, bytes);
                                 }));
        }
        return made;
    });
}

SafetensorsFile decode_safetensors(const Bytes& file) {
    return promised([&] { return read_safetensors(file); });
}

Tensor decode_safetensor(const Bytes& file, std::string_view name) {
    const SafetensorsFile read = decode_safetensors(file);
    const auto found = read.tensors.find(name);
    if (found == read.tensors.end())
        throw MalformedAnswer("the safetensors file has no tensor “" + std::string(name) + "”");
    return found->second;
}

}  // namespace gradserve
