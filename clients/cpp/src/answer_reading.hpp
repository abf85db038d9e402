#pragma once

#include "reply.hpp"

#include <gradserve/answers.hpp>

namespace gradserve {

/// Of Client::batch, where gradients are none if there is nothing to differentiate by.
struct BatchAnswer : GradientsAnswer {};

/// What an answer to a call on a graph says. Throws InputError; that it came with an answer is for the caller to say.
template <class T>
T read_answer(const Graph& graph, Reply::Parts parts);

/// The handle of a tensor that the server keeps.
Resident resident_in(const Json::Object& stated);

}  // namespace gradserve
