#pragma once

/// The C++ client of gradserve: build a computation graph, send it with its tensors, get gradients back.

#include <gradserve/client.hpp>
#include <gradserve/errors.hpp>
