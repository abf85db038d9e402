#include "model_reading.hpp"

#include "json_reading.hpp"
#include "within.hpp"

namespace gradserve {

static std::string text_of(const Json::Object& stated, const char* name) {
    return within(name, [&] { return text_in(member(stated, name)); });
}

/// Reads the common members of inputs, outputs and bound leaves.
template <class T>
static T typed(T made, const Json::Object& stated) {
    made.node = within("node", [&] { return whole_in(member(stated, "node")); });
    made.dtype = text_of(stated, "dtype");
    made.shape = within("shape", [&] { return shape_in(member(stated, "shape")); });
    return made;
}

static ModelValue value_in(const Json::Object& stated) {
    return typed(ModelValue{.name = text_of(stated, "name")}, stated);
}

static BoundLeaf leaf_in(const Json::Object& stated) {
    return typed(BoundLeaf{.tensor_name = text_of(stated, "tensor_id")}, stated);
}

template <class T>
static std::vector<T> entries_in(const Json::Object& stated, const char* name, T (*read)(const Json::Object&)) {
    return within(name, [&] {
        std::vector<T> entries;
        for (const Json& each : list_in(member(stated, name))) entries.push_back(read(object_in(&each)));
        return entries;
    });
}

Model model_in(const Json::Object& stated) {
    Model made;
    made.name = text_of(stated, "name");
    made.etag = text_of(stated, "etag");
    made.graph_id = text_of(stated, "graph_id");
    if (member(stated, "description") != nullptr) made.description = text_of(stated, "description");
    made.inputs = entries_in(stated, "inputs", value_in);
    made.outputs = entries_in(stated, "outputs", value_in);
    made.bound = entries_in(stated, "bound", leaf_in);
    return made;
}

Json::Object stated_model(const ModelDefinition& definition) {
    Json::List inputs, outputs, bound;
    for (const auto& [name, node, dtype, shape] : definition.inputs)
        inputs.push_back(Json::Object{{"name", name}, {"node", node}, {"dtype", dtype}, {"shape", shape}});
    for (const ModelValue& each : definition.outputs)
        outputs.push_back(Json::Object{{"name", each.name}, {"node", each.node}});
    for (const BoundLeaf& each : definition.bound)
        bound.push_back(Json::Object{{"node", each.node}, {"tensor_id", each.tensor_name}});
    Json::Object made{
        {"graph_id", definition.graph_id}, {"inputs", inputs}, {"outputs", outputs}, {"bound", bound}};
    if (!definition.description.empty()) made["description"] = definition.description;
    return made;
}

}  // namespace gradserve
