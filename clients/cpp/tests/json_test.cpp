#include "check.hpp"

#include <gradserve/errors.hpp>
#include <gradserve/json.hpp>

#include <cmath>
#include <limits>

namespace gs = gradserve;

static void values_are_written_as_they_were_read() {
    for (const std::string text :
         {"null", "true", "-0.0", "1.5", "9223372036854775807", "18446744073709551615",
          "-123456789012345678901234567890", R"({"a":[1,{"b":"\"\\\n"}],"c":{}})", "\"ä\"", "[]"})
        CHECK(gs::Json::parse(text).text() == text);
}

static void whole_numbers_are_of_the_type_that_has_them() {
    CHECK(gs::Json(std::uint64_t{3}) == gs::Json(3));
    CHECK(gs::Json(std::numeric_limits<std::uint64_t>::max()).text() == "18446744073709551615");
    CHECK(gs::Json(true) != gs::Json(1));
    CHECK(gs::Json(std::vector<int>{1, 2}).text() == "[1,2]");
}

static void what_is_no_json_is_refused() {
    for (const char* const text :
         {"", "NaN", "Infinity", "[1,]", "{\"a\":1} 2", "'a'", "01", "\"\xff\"", "1e999", "{\"a\"}", "nul"})
        CHECK(throws<gs::InputError>([&] { static_cast<void>(gs::Json::parse(text)); }));
    CHECK(throws<gs::InputError>([] { static_cast<void>(gs::Json(std::nan("")).text()); }));
    CHECK(throws<gs::InputError>([] { static_cast<void>(gs::Json("\xff").text()); }));
}

static void depth_is_limited() {
    const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
    CHECK(gs::Json::parse(nested(100)).text() == nested(100));
    CHECK(throws<gs::InputError>([&] { static_cast<void>(gs::Json::parse(nested(101))); }));
    CHECK(throws<gs::InputError>([&] { static_cast<void>(gs::Json::parse(std::string(1'000'000, '['))); }));
}

int main() {
    return run({{"values are written as they were read", values_are_written_as_they_were_read},
                {"whole numbers are of the type that has them", whole_numbers_are_of_the_type_that_has_them},
                {"what is no JSON is refused", what_is_no_json_is_refused},
                {"depth is limited", depth_is_limited}});
}
