#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gatefold::bench {

// The sizes of a gated MLP's weights in 16 bits: gate and up [F, D] each, down [D, F].
struct Model {
  std::string name;
  std::int64_t hidden_size;        // D
  std::int64_t intermediate_size;  // F

  std::int64_t weight_bytes() const { return 3 * hidden_size * intermediate_size * 2; }
  // As many as make 640 MB, a dozen times what an H100's L2 holds, and two at least.
  int layers() const;
};

// Four Llamas, or the one of them that is named, or the one whose sizes are given, "DxF". Throws std::invalid_argument
// where both are given, or what is given is none.
std::vector<Model> chosen_models(const std::string& name, const std::string& sizes);

}  // namespace gatefold::bench
