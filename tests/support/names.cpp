#include "support/names.hpp"

#include "gatefold/names.h"

namespace gatefold::test {

std::string name(gatefold_op op) { return gatefold_name_of_op(op); }
std::string name(gatefold_dtype dtype) { return gatefold_name_of_dtype(dtype); }
std::string name(gatefold_activation activation) { return gatefold_name_of_activation(activation); }

std::string name(const Layout& layout) {
  const std::string kind = gatefold_name_of_layout(layout.kind());
  return layout.block() == 0 ? kind : kind + "_" + std::to_string(layout.block());
}

}  // namespace gatefold::test
