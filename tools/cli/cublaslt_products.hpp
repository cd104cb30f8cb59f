#pragma once

#include "cli/stage.hpp"

namespace gatefold::cli {

// Plain products by cuBLASLt, the baseline on a GPU. It is loaded when the first one is made; throws where it isn't
// there.
const ProductStages& cublaslt_products();

}  // namespace gatefold::cli
