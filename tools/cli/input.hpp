#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"

namespace gatefold::cli {

// The activations x [T, D] that `run` starts from: the tensor "x" of a file, or random normal numbers.
class Input {
 public:
  struct Wanted {
    gatefold_dtype dtype{};
    std::int64_t hidden_size = 0;
    std::optional<std::int64_t> tokens;
  };

  // Throws checkpoint::InputError where the file does not hold what is wanted.
  Input(const std::string& file, const Wanted& wanted);
  Input(std::uint64_t seed, std::int64_t tokens, const Wanted& wanted);

  std::int64_t tokens() const { return tokens_; }
  std::span<const std::byte> x() const;

 private:
  std::optional<checkpoint::SafetensorsFile> file_;
  std::optional<checkpoint::AlignedData> aligned_;
  std::vector<std::byte> drawn_;
  std::int64_t tokens_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace gatefold::cli
