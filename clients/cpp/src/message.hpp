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

/// What is sent, and of which media type.
struct Body {
    std::string media;
    std::vector<Bytes> pieces;
};

/// A request in JSON, and its tensors: in it, or with Form::safetensors beside it.
class Message {
public:
    explicit Message(Form form) : form_(form) {}

    Json::Object fields;

    /// The first nodes of a graph as the wire has it, and its functions.
    Json::Object graph(const Graph& graph, std::size_t count);

    /// Writes what a call is asked of these nodes. Throws InputError for nodes of another graph.
    void fill(const Graph& graph, std::size_t count, const Asked& asked);

    /// Throws InputError where JSON lacks what it would say.
    [[nodiscard]] Body body() const;

private:
    /// Nodes, whose tensors are called so beside the JSON, and by their ids.
    Json::List nodes(const GraphState& graph, std::size_t count, const std::string& constants);
    void place(const Tensor& tensor, const std::string& where, Json::Object& holder, const std::string& key);
    void fill_nodes(const Graph& graph, const Asked& asked);
    void fill_tensors(const std::string& role, const Feeds& feeds, const Graph& graph);

    Form form_;
    SafetensorsFile beside_;
};

/// The form that is asked for, or else the one that the size of all tensors suggests.
Form form_of(std::optional<Form> asked, std::size_t size);

/// The size of the constants of the first nodes of a graph and of its functions, and of the tensors that a call is asked
/// with.
std::size_t size_of(const Graph& graph, std::size_t count);
std::size_t size_of(const Asked& asked);

/// A tensor that is all of a body.
Body body_of(const Tensor& tensor, std::optional<Form> form);

}  // namespace gradserve
