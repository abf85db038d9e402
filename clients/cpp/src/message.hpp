#pragma once

#include "asked.hpp"

#include <gradserve/encoding.hpp>
#include <gradserve/graph.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace gradserve {

inline constexpr const char* media_json = "application/json";
inline constexpr const char* media_problem = "application/problem+json";
inline constexpr const char* media_safetensors = "application/vnd.safetensors";
inline constexpr const char* media_bytes = "application/octet-stream";

/// A body with its media type.
struct Body {
    std::string media;
    std::vector<Bytes> pieces;
};

/// A request in JSON, with its tensors in it or, with Form::safetensors, beside it.
class Message {
public:
    explicit Message(Form form) : form_(form) {}

    Json::Object fields;

    /// Writes the first nodes of a graph, and its functions, in the JSON form of the API.
    Json::Object graph(const Graph& graph, std::size_t count);

    /// Writes the arguments of a call on these nodes. Throws InputError for nodes of another graph.
    void fill(const Graph& graph, std::size_t count, const Asked& asked);

    /// Throws InputError for values that JSON cannot represent.
    [[nodiscard]] Body body() const;

private:
    /// Writes nodes. Beside the JSON, the name of a tensor is `constants` and the node's id.
    Json::List nodes(const GraphState& graph, std::size_t count, const std::string& constants);
    void place(const Tensor& tensor, const std::string& where, Json::Object& holder, const std::string& key);
    void fill_nodes(const Graph& graph, const Asked& asked);
    void fill_tensors(const std::string& role, const Feeds& feeds, const Graph& graph);

    Form form_;
    SafetensorsFile beside_;
};

/// Returns the requested form, or the default for the size of all tensors.
Form form_of(std::optional<Form> asked, std::size_t size);

/// Returns the size of the constants of the first nodes of a graph and of its functions, and of the tensors in the
/// arguments of a call.
std::size_t size_of(const Graph& graph, std::size_t count);
std::size_t size_of(const Asked& asked);

/// Encodes a tensor that is the whole body.
Body body_of(const Tensor& tensor, std::optional<Form> form);

}  // namespace gradserve
