#pragma once

#include <gradserve/json.hpp>
#include <gradserve/model.hpp>

namespace gradserve {

/// What an answer says of a model. Throws InputError; that it came with an answer is for the caller to say.
Model model_in(const Json::Object& stated);

/// A model as it is put.
Json::Object stated_model(const ModelDefinition& definition);

}  // namespace gradserve
