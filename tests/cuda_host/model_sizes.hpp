#pragma once

#include <cstdint>
#include <string>
#include <vector>

// The models that the tool knows, for tests that see the library's own types: the public ones share their names.
namespace gatefold::test {

struct ModelSize {
  std::string name;
  std::int64_t hidden_size;
  std::int64_t intermediate_size;
};

std::vector<ModelSize> model_sizes();

}  // namespace gatefold::test
