#pragma once

#include <memory>

#include "cli/backend.hpp"

namespace gatefold::cli {

std::unique_ptr<Backend> make_cpu_backend();

}  // namespace gatefold::cli
