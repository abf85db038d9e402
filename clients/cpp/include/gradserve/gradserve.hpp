#pragma once

/// All of the client of gradserve: write a computation graph, send it with its tensors, get gradients back.

#include <gradserve/client.hpp>
#include <gradserve/errors.hpp>
