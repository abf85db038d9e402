#include "json_reading.hpp"

#include <gradserve/errors.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace gradserve {

/// The maximum nesting depth of lists and objects, because they are read recursively.
static constexpr std::size_t most_nested = 100;

namespace {

/// Builds a value from the events of the parser, and keeps all digits of integers.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
public:
    explicit Builder(Names names) : names_(names) {}

    Json made;

    bool null() override { return add(nullptr); }
    bool boolean(bool truth) override { return add(truth); }
    bool number_integer(std::int64_t whole) override { return add(whole); }
    bool number_unsigned(std::uint64_t whole) override { return add(whole); }
    bool number_float(double number, const std::string& text) override {
        if (text.find_first_of(".eE") == std::string::npos) return add(Json::Digits{text});
        return add(number);
    }
    bool string(std::string& text) override { return add(std::move(text)); }
    bool binary(nlohmann::json::binary_t&) override { return false; }
    bool start_object(std::size_t) override { return open(Json::Object{}); }
    bool end_object() override { return close(); }
    bool start_array(std::size_t) override { return open(Json::List{}); }
    bool end_array() override { return close(); }
    bool key(std::string& name) override {
        auto& object = std::get<Json::Object>(open_.back()->value());
        const auto [at, is_new] = object.insert_or_assign(std::move(name), Json());
        member_ = &at->second;
        return is_new || names_ == Names::may_repeat;
    }
    bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

private:
    Json* place(Json value) {
        if (open_.empty()) return &(made = std::move(value));
        if (auto* const list = std::get_if<Json::List>(&open_.back()->value()))
            return &list->emplace_back(std::move(value));
        return &(*member_ = std::move(value));
    }
    bool add(Json value) { return place(std::move(value)) != nullptr; }
    bool open(Json value) {
        if (open_.size() == most_nested) return false;
        open_.push_back(place(std::move(value)));
        return true;
    }
    bool close() {
        open_.pop_back();
        return true;
    }

    Names names_;
    /// The unfinished lists and objects. Each is the last element of the enclosing one, so it does not move.
    std::vector<Json*> open_;
    Json* member_ = nullptr;
};

}  // namespace

static Json parsed(std::string_view text, Names names) {
    Builder builder(names);
    if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder))
        throw InputError("expected valid JSON, nested at most " + std::to_string(most_nested) + " levels deep");
    return std::move(builder.made);
}

Json Json::parse(std::string_view text) { return parsed(text, Names::may_repeat); }

Json::Object parsed_object(std::string_view text, Names names) {
    Json made = parsed(text, names);
    auto* const object = std::get_if<Json::Object>(&made.value());
    if (object == nullptr) throw InputError("expected a JSON object");
    return std::move(*object);
}

/// The types of a JSON value, in the order of Json::Value, as messages name them.
static constexpr std::array kinds{"nothing",         "a boolean", "an integer", "a large integer", "a number",
                                  "a large integer", "a string",  "a list",     "an object",       "a tensor",
                                  "a function"};

template <class T>
static const T& expected(const Json* value, const char* what) {
    const T* const found = value == nullptr ? nullptr : value->get_if<T>();
    if (found == nullptr)
        throw InputError(std::string("expected ") + what + ", got " + kinds[value ? value->value().index() : 0]);
    return *found;
}

const Json::Object& object_in(const Json* value) { return expected<Json::Object>(value, "an object"); }

const Json::List& list_in(const Json* value) { return expected<Json::List>(value, "a list"); }

const std::string& text_in(const Json* value) { return expected<std::string>(value, "a string"); }

std::int64_t whole_in(const Json* value) { return expected<std::int64_t>(value, "an integer"); }

double number_in(const Json* value) {
    if (value != nullptr && value->get_if<std::int64_t>() != nullptr) return static_cast<double>(whole_in(value));
    return expected<double>(value, "a number");
}

bool truth_in(const Json* value) { return expected<bool>(value, "true or false"); }

Shape shape_in(const Json* value) {
    Shape shape;
    std::ranges::transform(list_in(value), std::back_inserter(shape), [](const Json& each) { return whole_in(&each); });
    return shape;
}

const Json* member(const Json::Object& object, std::string_view name) {
    const auto found = object.find(name);
    return found == object.end() || found->second.is_null() ? nullptr : &found->second;
}

Json taken(Json::Object& object, std::string_view name) {
    const auto found = object.find(name);
    if (found == object.end()) return {};
    Json value = std::move(found->second);
    object.erase(found);
    return value;
}

}  // namespace gradserve
