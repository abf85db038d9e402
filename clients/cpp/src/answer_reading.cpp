#include "answer_reading.hpp"

#include "graph_state.hpp"
#include "json_reading.hpp"
#include "tensor_json.hpp"
#include "within.hpp"

namespace gradserve {

const Json* Answer::stats() const { return member(fields, "stats"); }

const Tensor& ForwardAnswer::value() const {
    if (values.size() != 1)
        throw InputError("the answer has " + std::to_string(values.size()) + " values, not one");
    return values.at(0);
}

Node DifferentiateAnswer::find(const Node& node) const {
    check_owner(sent, node);
    return graph.node(node.id());
}

Resident resident_in(const Json::Object& stated) {
    Resident made{within("tensor_id", [&] { return text_in(member(stated, "tensor_id")); })};
    const auto read = [&](const char* name, auto& into, auto how) {
        if (const Json* const value = member(stated, name)) into = within(name, [&] { return how(value); });
    };
    made.etag = within("etag", [&] { return text_in(member(stated, "etag")); });
    read("dtype", made.dtype, text_in);
    read("shape", made.shape, shape_in);
    read("bytes", made.bytes, whole_in);
    read("durable", made.durable, truth_in);
    read("written_within_ms", made.written_within_ms, whole_in);
    return made;
}

using Beside = std::map<std::string, Tensor, std::less<>>;

/// Puts tensors that were sent beside the JSON into the nodes of a graph or function. Ignores other tensors.
static void place_constants(GraphState& graph, const Beside& beside, const std::string& role) {
    for (std::size_t id = 0; id < graph.nodes.size(); ++id)
        if (const auto found = beside.find(role + std::to_string(id)); found != beside.end())
            graph.nodes[id].attrs.insert_or_assign("value", found->second);
}

static void place_constants(GraphState& graph, const Beside& beside) {
    place_constants(graph, beside, "constants.");
    for (std::size_t index = 0; index < graph.functions.size(); ++index)
        place_constants(*graph.functions[index], beside, "functions." + std::to_string(index) + ".constants.");
}

namespace {

/// Reads the parts of a response by their API names.
class Reader {
public:
    Reader(const Graph& graph, Reply::Parts& parts) : graph_(graph), parts_(parts) {}

    /// Returns the entries of a member with their nodes.
    template <class T, class Read>
    Results<T> results(const char* name, Read&& read) {
        return results_in<T>(parts_.fields, name, std::forward<Read>(read));
    }

    template <class T, class Read>
    Results<T> results_in(const Json::Object& fields, const char* name, Read&& read) {
        return within(name, [&] {
            std::vector<std::pair<Node, T>> made;
            for (const Json& stated : list_in(member(fields, name))) {
                const Json::Object& entry = object_in(&stated);
                made.emplace_back(node_in(entry, "node"), read(entry));
            }
            return Results<T>(std::move(made));
        });
    }

    /// Returns the tensors of a member, which are in its entries or beside the JSON.
    Results<Tensor> tensors(const char* name) {
        auto made = results<Tensor>(name, [&](const Json::Object& entry) { return tensor_of(entry, name, {"node"}); });
        parts_.fields.erase(name);
        return made;
    }

    Blocks blocks(const char* name, const char* first, const char* second) {
        return within(name, [&] {
            std::vector<Blocks::Entry> made;
            const Json stated = taken(parts_.fields, name);
            for (const Json& each : list_in(&stated)) {
                const Json::Object& entry = object_in(&each);
                Tensor tensor = tensor_of(entry, name, {first, second});
                made.push_back({node_in(entry, first), node_in(entry, second), std::move(tensor)});
            }
            return Blocks(std::move(made));
        });
    }

    /// Returns the matrix of a Hessian, if there is one.
    std::optional<HessianMatrix> matrix(const char* name) {
        const Json stated = taken(parts_.fields, name);
        if (stated.is_null()) return std::nullopt;
        return within(name, [&] {
            const Json::Object& entry = object_in(&stated);
            auto offsets = results_in<NodeOffset>(entry, "offsets", [](const Json::Object& place) {
                return NodeOffset{whole_in(member(place, "offset")), whole_in(member(place, "size"))};
            });
            return std::optional(HessianMatrix{tensor_of(entry, name, {}), std::move(offsets)});
        });
    }

    std::vector<Node> nodes(const char* name) {
        std::vector<Node> made;
        const Json* const ids = member(parts_.fields, name);
        if (ids == nullptr) return made;
        within(name, [&] {
            for (const std::int64_t id : shape_in(ids)) made.push_back(graph_.node(static_cast<std::size_t>(id)));
        });
        return made;
    }

    bool truth(const char* name) {
        return within(name, [&] { return truth_in(member(parts_.fields, name)); });
    }

    bool has(const char* name) { return member(parts_.fields, name) != nullptr; }

    /// Returns the graph that was sent.
    const Graph& graph() { return graph_; }

    /// Returns a graph of the response, with its constants, which may be beside the JSON.
    Graph new_graph(const char* name) {
        return within(name, [&] {
            const Json stated = taken(parts_.fields, name);
            Graph made = graph_in(&stated);
            place_constants(GraphState::of(made), parts_.beside);
            return made;
        });
    }

private:
    Node node_in(const Json::Object& entry, const char* name) {
        return graph_.node(static_cast<std::size_t>(whole_in(member(entry, name))));
    }

    Tensor tensor_of(const Json::Object& entry, const char* name, std::initializer_list<const char*> nodes) {
        if (const Json* const stated = member(entry, "tensor")) return tensor_in(stated);
        std::string place = name;
        for (const char* const node : nodes) place += "." + std::to_string(whole_in(member(entry, node)));
        const auto found = parts_.beside.find(place);
        if (found == parts_.beside.end()) throw InputError("the tensor " + place + " is missing");
        return found->second;
    }

    const Graph& graph_;
    Reply::Parts& parts_;
};

}  // namespace

// Results that extend other results read the members of those first.

static void read(ForwardAnswer& answer, Reader& reader) {
    answer.values = reader.tensors("values");
    if (reader.has("stored")) answer.stored = reader.results<Resident>("stored", resident_in);
}

static void read(GradientsAnswer& answer, Reader& reader) {
    read(static_cast<ForwardAnswer&>(answer), reader);
    answer.gradients = reader.tensors("gradients");
    answer.disconnected = reader.nodes("disconnected");
}

static void read(BatchAnswer& answer, Reader& reader) {
    if (reader.has("gradients")) read(static_cast<GradientsAnswer&>(answer), reader);
    else read(static_cast<ForwardAnswer&>(answer), reader);
}

static void read(JvpAnswer& answer, Reader& reader) {
    read(static_cast<ForwardAnswer&>(answer), reader);
    answer.tangents = reader.tensors("tangents");
}

static void read(JacobianAnswer& answer, Reader& reader) {
    read(static_cast<ForwardAnswer&>(answer), reader);
    answer.jacobian = reader.blocks("jacobian", "of", "wrt");
}

static void read(HvpAnswer& answer, Reader& reader) {
    read(static_cast<GradientsAnswer&>(answer), reader);
    answer.hvp = reader.tensors("hvp");
}

static void read(HessianAnswer& answer, Reader& reader) {
    read(static_cast<GradientsAnswer&>(answer), reader);
    answer.hessian = reader.blocks("hessian", "row", "column");
    answer.matrix = reader.matrix("matrix");
}

static void read(CheckAnswer& answer, Reader& reader) {
    answer.passed = reader.truth("passed");
    answer.errors = reader.results<double>(
        "errors", [](const Json::Object& entry) { return number_in(member(entry, "relative_error")); });
    answer.uncertified = reader.results<std::string>(
        "uncertified", [](const Json::Object& entry) { return text_in(member(entry, "reason")); });
}

static void read(PlanAnswer& answer, Reader& reader) { answer.admitted = reader.truth("admitted"); }

static void read(DifferentiateAnswer& answer, Reader& reader) {
    answer.sent = reader.graph();
    answer.graph = reader.new_graph("graph");
    answer.gradients = reader.results<Node>("gradients", [&](const Json::Object& entry) {
        return answer.graph.node(static_cast<std::size_t>(whole_in(member(entry, "gradient_node"))));
    });
    answer.disconnected = reader.nodes("disconnected");
}

template <class T>
T read_answer(const Graph& graph, Reply::Parts parts) {
    T answer;
    Reader reader(graph, parts);
    read(answer, reader);
    answer.fields = std::move(parts.fields);
    return answer;
}

template ForwardAnswer read_answer(const Graph&, Reply::Parts);
template GradientsAnswer read_answer(const Graph&, Reply::Parts);
template BatchAnswer read_answer(const Graph&, Reply::Parts);
template JvpAnswer read_answer(const Graph&, Reply::Parts);
template JacobianAnswer read_answer(const Graph&, Reply::Parts);
template HvpAnswer read_answer(const Graph&, Reply::Parts);
template HessianAnswer read_answer(const Graph&, Reply::Parts);
template CheckAnswer read_answer(const Graph&, Reply::Parts);
template PlanAnswer read_answer(const Graph&, Reply::Parts);
template DifferentiateAnswer read_answer(const Graph&, Reply::Parts);

}  // namespace gradserve
