// The program that runs conformance cases with this client. It reads one case per line and writes one result per line,
// as described in clients/conformance/README.md.

#include "conversation.hpp"
#include "step.hpp"
#include "telling.hpp"

#include <iostream>

namespace conformance {

static gs::Form form_of(const std::string& word, const gs::Tensor& tensor) {
    if (word == "default") return gs::default_form(tensor);
    return word == "json" ? gs::Form::json : word == "base64" ? gs::Form::base64 : gs::Form::safetensors;
}

/// Returns a tensor as the client encodes it.
static json encoded(const json& stated) {
    const gs::Tensor tensor = tensor_of(stated.at("tensor"));
    const gs::Form form = form_of(stated.at("form"), tensor);
    if (form != gs::Form::safetensors) return {{"wire", gs::encode_json(tensor, form)}};
    std::string hex;
    for (const gs::Bytes& piece : gs::encode_safetensors({{{"t", tensor}}, {}})) hex += hex_of(piece.view());
    return {{"file", hex}};
}

/// Returns a tensor as the client decodes it.
static json decoded(const json& stated) {
    if (stated.contains("wire")) return {{"tensor", bits_of(gs::decode_json(stated["wire"].get<std::string>()))}};
    return {{"tensor", bits_of(gs::decode_safetensor(bytes_of(stated.at("file")), "t"))}};
}

/// Returns the nodes of a graph, and its functions if there are any.
static json built(const json& stated) {
    const gs::Json graph = gs::Json::parse(graph_of(stated).text());
    json made{{"nodes", graph.find("nodes")->text()}};
    if (const gs::Json* const functions = graph.find("functions")) made["functions"] = functions->text();
    return made;
}

/// Returns the results of calls. If the client cannot be created, each has the error.
static json exchanged(const json& stated) {
    const json client = stated.value("client", json::object());
    std::optional<Conversation> conversation;
    json results = json::array();
    for (const json& call : stated.at("calls")) {
        try {
            if (!conversation) conversation.emplace(stated.at("url"), client, stated["kind"] == "exchange");
            results.push_back({{"returned", conversation->done(call)}});
        } catch (const gs::Error& error) {
            results.push_back({{"raised", told(error)}});
        }
    }
    return {{"results", results}, {"waits", conversation ? conversation->waits() : std::vector<std::int64_t>()}};
}

static json answered(const json& stated) {
    const std::string& kind = stated.at("kind").get_ref<const std::string&>();
    if (kind == "exchange" || kind == "live") return exchanged(stated);
    try {
        return kind == "encode" ? encoded(stated) : kind == "decode" ? decoded(stated) : built(stated);
    } catch (const gs::Error& error) {
        return {{"error", told(error)}};
    }
}

}  // namespace conformance

int main() {
    for (std::string line; std::getline(std::cin, line);) {
        const auto stated = conformance::json::parse(line);
        auto result = conformance::answered(stated);
        result["id"] = stated.at("id");
        std::cout << result.dump() << std::endl;
    }
}
