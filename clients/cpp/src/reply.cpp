#include "reply.hpp"

#include "json_reading.hpp"
#include "message.hpp"
#include "refusing.hpp"
#include "safetensors.hpp"
#include "tensor_json.hpp"
#include "text.hpp"
#include "within.hpp"

#include <gradserve/surroundings.hpp>

#include <algorithm>
#include <charconv>

namespace gradserve {

std::string Reply::header(std::string_view name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
}

std::string Reply::media() const {
    const std::string stated = header("content-type");
    return lower(trimmed(std::string_view(stated).substr(0, stated.find(';'))));
}

bool Reply::is_file() const { return media() == media_safetensors || media() == media_bytes; }

/// Reads a whole number of seconds and ignores any other value. A number beyond the range of clocks becomes a very long
/// time.
static std::optional<std::chrono::seconds> retry_after_in(const std::string& stated) {
    if (stated.empty() || !std::ranges::all_of(stated, [](char digit) { return '0' <= digit && digit <= '9'; }))
        return std::nullopt;
    constexpr std::int64_t most = std::chrono::duration_cast<std::chrono::seconds>(Clock::duration::max()).count();
    std::int64_t seconds = 0;
    const auto [end, failed] = std::from_chars(stated.data(), stated.data() + stated.size(), seconds);
    return std::chrono::seconds(failed == std::errc() ? std::min(seconds, most) : most);
}

void Reply::check() const {
    if (status >= 400) {
        Problem problem = media() == media_problem || media() == media_json ? problem_of(body.text()) : Problem();
        problem.status = status;
        problem.retry_after = retry_after_in(header("retry-after"));
        throw_refusal(problem);
    }
    if (status != 200 && status != 201 && status != 304)
        throw MalformedAnswer("unexpected status " + std::to_string(status) + ": not a gradserve response");
}

Json::Object Reply::object() const {
    if (media() != media_json)
        throw MalformedAnswer(std::string("expected a response of media type ") + media_json + ", got “" +
                              media() + "”");
    return within("the body", [&] { return parsed_object(body.text()); });
}

Reply::Parts Reply::parts() const {
    if (!is_file()) return {object(), {}};
    SafetensorsFile file = read_safetensors(body);
    return within("the response in the safetensors file", [&]() -> Parts {
        return {parsed_object(file.metadata["response"]), std::move(file.tensors)};
    });
}

/// Returns an etag without quotation marks and prefix.
static std::string bare(std::string_view etag) {
    if (etag.starts_with("W/")) etag.remove_prefix(2);
    while (etag.starts_with('"')) etag.remove_prefix(1);
    while (etag.ends_with('"')) etag.remove_suffix(1);
    return std::string(etag);
}

Reply::Kept Reply::kept() const {
    if (!is_file()) {
        const Json::Object members = object();
        std::string etag = within("etag", [&] { return text_in(member(members, "etag")); });
        return {std::move(etag), within("tensor", [&] { return tensor_in(member(members, "tensor")); })};
    }
    SafetensorsFile file = read_safetensors(body);
    if (file.tensors.size() != 1)
        throw InputError("expected one tensor in the response, got " + std::to_string(file.tensors.size()));
    return {bare(header("etag")), file.tensors.begin()->second};
}

}  // namespace gradserve
