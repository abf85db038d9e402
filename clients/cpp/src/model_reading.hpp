#pragma once

#include <gradserve/json.hpp>
#include <gradserve/model.hpp>

namespace gradserve {

/// Reads the metadata of a model from a response. Throws InputError, which the caller converts.
Model model_in(const Json::Object& stated);

/// Returns a model definition in its JSON form.
Json::Object stated_model(const ModelDefinition& definition);

}  // namespace gradserve
