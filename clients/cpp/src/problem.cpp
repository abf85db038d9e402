#include "refusing.hpp"

#include <gradserve/problem.hpp>

#include "json_reading.hpp"

#include <gradserve/errors.hpp>

namespace gradserve {

std::string Problem::message() const {
    const std::string said =
        code.empty() ? "status " + std::to_string(status) + " without a problem report" : code + ": " + detail;
    return remark.empty() ? said : said + " (" + remark + ")";
}

static Problem read(const Json::Object& report);

static std::optional<std::int64_t> whole_or_none(const Json& value) {
    return value.is_null() ? std::nullopt : std::optional(whole_in(&value));
}

static std::vector<Problem> reports_in(const Json& value) {
    std::vector<Problem> reports;
    for (const Json& report : list_in(&value)) reports.push_back(read(object_in(&report)));
    return reports;
}

/// Returns whether the client knows this member, with this type.
static bool read_member(Problem& problem, const std::string& name, const Json& value) {
    const std::pair<const char*, std::string*> texts[] = {
        {"code", &problem.code},         {"detail", &problem.detail}, {"type", &problem.type},
        {"title", &problem.title},       {"expected", &problem.expected}, {"got", &problem.got},
        {"request_id", &problem.request_id}, {"pointer", &problem.pointer}};
    try {
        for (const auto& [known, text] : texts) {
            if (name != known) continue;
            if (!value.is_null()) *text = text_in(&value);
            return true;
        }
        if (name == "status") problem.status = static_cast<int>(whole_in(&value));
        else if (name == "node") problem.node = whole_or_none(value);
        else if (name == "function") problem.function = whole_or_none(value);
        else if (name == "function_node") problem.function_node = whole_or_none(value);
        else if (name == "operand") problem.operand = whole_or_none(value);
        else if (name == "errors") problem.errors = reports_in(value);
        else return false;
        return true;
    } catch (const InputError&) {
        return false;
    }
}

static Problem read(const Json::Object& report) {
    Problem problem;
    for (const auto& [name, value] : report)
        if (!read_member(problem, name, value)) problem.extra[name] = value;
    return problem;
}

Problem problem_of(std::string_view text) {
    try {
        const Json::Object report = parsed_object(text);
        text_in(member(report, "code"));
        return read(report);
    } catch (const InputError&) {
        return {};
    }
}

void throw_refusal(const Problem& problem) {
    switch (problem.status) {
        case 401:
        case 403: throw AuthenticationError(problem);
        case 404: throw NotFoundError(problem);
        case 408:
        case 504: throw DeadlineRefusal(problem);
        case 409:
        case 412: throw ConditionError(problem);
        case 429: throw RateError(problem);
        case 503: throw OverloadError(problem);
        case 507: throw StoreFullError(problem);
        default: break;
    }
    if (problem.status >= 500) throw ServerError(problem);
    throw GraphError(problem);
}

}  // namespace gradserve
