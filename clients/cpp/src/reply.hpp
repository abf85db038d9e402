#pragma once

#include <gradserve/encoding.hpp>
#include <gradserve/json.hpp>

#include <map>
#include <string>

namespace gradserve {

/// An answer as it came.
struct Reply {
    int status = 0;
    /// By their names in lower case.
    std::map<std::string, std::string, std::less<>> headers;
    Bytes body;

    /// A header; empty where there is none.
    [[nodiscard]] std::string header(std::string_view name) const;

    /// Throws what the answer refuses, and MalformedAnswer for a redirect.
    void check() const;

    /// The JSON object that the body is. Throws MalformedAnswer where it is of another media type, else InputError.
    [[nodiscard]] Json::Object object() const;

    /// The object that the answer is, and the tensors beside it.
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
