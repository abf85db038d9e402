#pragma once

#include <gradserve/json.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gradserve {

/// A report of the server's, as docs/wire.md has it. Codes are an open list. What did not come, as with a proxy's
/// page, is empty.
struct Problem {
    int status = 0;
    /// A word for programs, and a sentence for people.
    std::string code, detail;
    /// Where the page of the code is, and its heading.
    std::string type, title;
    std::string request_id;
    /// The node that it is about, also where that runs a function in which something is wrong; the function, and the node
    /// in it; and the place of the operand.
    std::optional<std::int64_t> node, function, function_node, operand;
    std::string expected, got;
    /// A JSON pointer into the request.
    std::string pointer;
    /// All that was found wrong, where that was more than one thing.
    std::vector<Problem> errors;
    /// For how long the server wants to be left alone.
    std::optional<std::chrono::seconds> retry_after;
    /// The members that this client does not know.
    Json::Object extra;
    /// What the client knows beside the report.
    std::string remark;

    /// All of it in a sentence.
    [[nodiscard]] std::string message() const;
};

}  // namespace gradserve
