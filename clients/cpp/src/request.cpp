#include "request.hpp"

#include "within.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace gradserve {

/// Encodes a text for a path or query.
static std::string escaped(const std::string& text) {
    static constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    static constexpr std::string_view digits = "0123456789ABCDEF";
    std::string made;
    for (const char letter : text) {
        const auto code = static_cast<unsigned char>(letter);
        if (plain.find(letter) != std::string_view::npos) made += letter;
        else made += {'%', digits[code >> 4], digits[code & 15]};
    }
    return made;
}

static std::string path_of(const std::string& kind, const std::string& name) {
    if (name.empty()) throw InputError("the name must not be empty");
    return "/v1/" + kind + "/" + escaped(name);
}

std::string tensor_path(const std::string& name) { return path_of("tensors", name); }

std::string graph_path(const std::string& id) { return path_of("graphs", id); }

std::string model_path(const std::string& name) { return path_of("models", name); }

std::string path_on_graph(const std::string& call, const std::string& id) { return graph_path(id) + "/" + call; }

std::string Request::target(std::optional<std::chrono::milliseconds> left) const {
    std::map<std::string, std::string> all = query;
    if (left) all["timeout_ms"] = std::to_string(std::max<std::int64_t>(1, left->count()));
    std::string made = path;
    for (char separator = '?'; const auto& [name, value] : all) {
        made += std::exchange(separator, '&');
        made += escaped(name) + "=" + escaped(value);
    }
    return made;
}

static const char* word_of(Form form) { return form == Form::json ? "json" : "base64"; }

/// The response uses the encoding of the request. If a feed is a resident tensor, results may be large, so the client
/// asks for safetensors.
static const char* accepted(const Body& body, const Asked& asked) {
    const auto feeds = asked.tensors.find("feeds");
    const bool is_resident = feeds != asked.tensors.end() && std::ranges::any_of(feeds->second, [](const auto& each) {
                                 return !std::holds_alternative<Tensor>(each.second.value());
                             });
    return body.media == media_safetensors || (is_resident && !asked.form) ? media_safetensors : media_json;
}

Request computing(const std::string& call, const Graph& graph, std::size_t count, const Asked& asked,
                  bool is_registered) {
    return within(call, [&] {
        const Form form = form_of(asked.form, size_of(asked) + (is_registered ? 0 : size_of(graph, count)));
        Message message(form);
        if (!is_registered) message.fields["graph"] = message.graph(graph, count);
        message.fill(graph, count, asked);
        if (form != Form::safetensors) message.fields["encoding"] = word_of(form);
        Body body = message.body();
        Request made{"POST", "/v1/" + call};
        made.headers = {{"Content-Type", body.media}, {"Accept", accepted(body, asked)}};
        made.body = std::move(body.pieces);
        made.keeps = !asked.store.empty();
        return made;
    });
}

Request registering(const Graph& graph, const RegisterOptions& options) {
    Message message(form_of(options.form, size_of(graph, graph.size())));
    if (!options.description.empty()) message.fields["description"] = options.description;
    message.fields["graph"] = message.graph(graph, graph.size());
    Body body = within("register", [&] { return message.body(); });
    Request made{"POST", "/v1/graphs"};
    made.headers = {{"Content-Type", body.media}, {"Accept", media_json}};
    made.body = std::move(body.pieces);
    return made;
}

static std::map<std::string, std::string> conditions(const std::string& if_match, const std::string& if_none_match) {
    std::map<std::string, std::string> stated;
    const auto state = [&](const char* name, const std::string& etag) {
        if (!etag.empty()) stated[name] = etag == "*" ? etag : '"' + etag + '"';
    };
    state("If-Match", if_match);
    state("If-None-Match", if_none_match);
    return stated;
}

Request putting(const std::string& name, const Tensor& tensor, const PutOptions& options) {
    Body body = body_of(tensor, options.form);
    Request made{"PUT", tensor_path(name)};
    if (options.durable) made.query["durable"] = *options.durable ? "true" : "false";
    made.headers = conditions(options.if_match, options.if_none_match);
    made.keeps = !made.headers.empty();
    made.headers["Content-Type"] = body.media;
    made.headers["Accept"] = media_json;
    made.body = std::move(body.pieces);
    return made;
}

Request getting(const std::string& name, const std::string& if_none_match, const GetOptions& options) {
    Request made{"GET", tensor_path(name)};
    made.headers = conditions(options.if_match, if_none_match);
    made.headers["Accept"] = media_safetensors;
    if (options.form && *options.form != Form::safetensors) {
        made.query["encoding"] = word_of(*options.form);
        made.headers["Accept"] = media_json;
    }
    return made;
}

Request putting_model(const std::string& name, const Json::Object& stated, const PutModelOptions& options) {
    Message message(Form::json);
    message.fields = stated;
    Body body = within("put_model", [&] { return message.body(); });
    Request made{"PUT", model_path(name)};
    made.headers = conditions(options.if_match, options.if_none_match);
    made.keeps = !made.headers.empty();
    made.headers["Content-Type"] = body.media;
    made.headers["Accept"] = media_json;
    made.body = std::move(body.pieces);
    return made;
}

Request deleting(const std::string& path, const std::string& if_match) {
    Request made{"DELETE", path};
    made.headers = conditions(if_match, "");
    made.keeps = true;
    return made;
}

Request listing(const std::string& kind, std::optional<std::int64_t> limit, const std::string& after) {
    Request made{"GET", "/v1/" + kind};
    if (limit) made.query["limit"] = std::to_string(*limit);
    if (!after.empty()) made.query["after"] = after;
    return made;
}

}  // namespace gradserve
