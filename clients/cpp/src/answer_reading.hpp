#pragma once

#include "reply.hpp"

#include <gradserve/answers.hpp>

namespace gradserve {

/// The result of Client::batch, which has no gradients if there is nothing to differentiate with respect to.
struct BatchAnswer : GradientsAnswer {};

/// Reads the response to a call on a graph. Throws InputError, which the caller converts.
template <class T>
T read_answer(const Graph& graph, Reply::Parts parts);

/// Reads the handle of a resident tensor.
Resident resident_in(const Json::Object& stated);

}  // namespace gradserve
