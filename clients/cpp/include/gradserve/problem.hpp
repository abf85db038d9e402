#pragma once

#include <gradserve/json.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gradserve {

/// A problem report of the server, as docs/wire.md describes it. New codes may be added at any time. Members that the
/// report lacks, for example in an error page of a proxy, are empty.
struct Problem {
    int status = 0;
    /// The code for programs, and the message for people.
    std::string code, detail;
    /// The address of the code's documentation page, and its heading.
    std::string type, title;
    std::string request_id;
    /// The node with the error, or the node that runs the function with the error; the function, and the node in it;
    /// and the position of the operand.
    std::optional<std::int64_t> node, function, function_node, operand;
    std::string expected, got;
    /// A JSON pointer into the request.
    std::string pointer;
    /// All errors, if the server found several.
    std::vector<Problem> errors;
    /// The time after which the server accepts a retry.
    std::optional<std::chrono::seconds> retry_after;
    /// The members that this client does not know.
    Json::Object extra;
    /// A fact that only the client knows.
    std::string remark;

    /// Returns the code, the detail and the remark as one sentence.
    [[nodiscard]] std::string message() const;
};

}  // namespace gradserve
