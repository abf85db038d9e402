#pragma once

#include <gradserve/encoding.hpp>
#include <gradserve/json.hpp>

#include <map>
#include <string>

namespace gradserve {

/// An HTTP response as received.
struct Reply {
    int status = 0;
    /// The headers by lower-case name.
    std::map<std::string, std::string, std::less<>> headers;
    Bytes body;

    /// Returns a header, or an empty string.
    [[nodiscard]] std::string header(std::string_view name) const;

    /// Throws the exception for a problem report, and MalformedAnswer for a redirect.
    void check() const;

    /// Returns the JSON object in the body. Throws MalformedAnswer for another media type, and InputError for invalid
    /// JSON.
    [[nodiscard]] Json::Object object() const;

    /// The JSON object of the response, and the tensors beside it.
    struct Parts {
        Json::Object fields;
        std::map<std::string, Tensor, std::less<>> beside;
    };
    [[nodiscard]] Parts parts() const;

    /// The etag and the elements of a resident tensor.
    struct Kept {
        std::string etag;
        Tensor tensor;
    };
    [[nodiscard]] Kept kept() const;

private:
    [[nodiscard]] std::string media() const;
    [[nodiscard]] bool is_file() const;
};

}  // namespace gradserve
