#pragma once

#include <gradserve/generated/ops.hpp>
