#pragma once

#include <memory>

#include "cli/backend.hpp"

namespace gatefold::cli {

// The first CUDA device. Throws where there is none.
std::unique_ptr<Backend> make_cuda_backend();

}  // namespace gatefold::cli
