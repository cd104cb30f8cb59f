#pragma once

#include "cli/stage.hpp"

namespace gatefold::cli {

// What gatefold_check does not take at once: y of mlp, on the host, against double precision from x and the weights as
// they are stored. Each element is held against docs/numerics.md's bound of mlp, which carries h's through w_down.
gatefold_error_report check_mlp(const Block& block, const Tensors& host, const RowSample& rows, gatefold_data data);

}  // namespace gatefold::cli
