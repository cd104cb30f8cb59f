#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/safetensors.hpp"
#include "cli/aligned_bytes.hpp"
#include "cli/app.hpp"
#include "cli/options.hpp"
#include "cli/report.hpp"
#include "gatefold/swap_ffn.hpp"

// The tensors of a Swap-FFN step, from files or drawn, in memory of their own.
namespace gatefold::cli {

// The files, and what they don't say.
struct SwapFfnFiles {
  std::string weights, state, input;
  std::string dtype;  // "": the files'; another one converts the tensors
  std::string device = "cpu";
  std::string impl;  // "": whichever the device's plan chooses
  std::int64_t events = 8;
  std::int64_t k_ffn = 2;
  double eps = 1e-6;

  void add_to(const App& app, bool required);

  // What is read; "" is none.
  std::array<std::pair<const char*, std::string>, 3> by_option() const {
    return {{{"--weights", weights}, {"--state", state}, {"--input", input}}};
  }
};

// The sizes of what is drawn.
struct SwapFfnSizes {
  SwapFfnDesc desc;
  std::int64_t batch = 1;
  std::string dtype = "bf16";
  std::string device = "cpu";
  std::string impl;  // "": whichever the device's plan chooses
  std::uint64_t seed = 1;

  // The options that files answer in their place.
  static constexpr std::array<const char*, 9> of_random_data{
      "--batch",        "--hidden-size",    "--intermediate-size", "--cores", "--core-embed-size",
      "--router-width", "--collapse-heads", "--collapse-width",    "--seed"};
  void add_to(const App& app);
  SwapFfnDesc resolved() const;  // throws checkpoint::InputError, or Error for sizes that no plan takes
};

// Throws for a device that isn't there.
gatefold_device parse_swap_ffn_device(const std::string& device);

class SwapFfnData {
 public:
  explicit SwapFfnData(const SwapFfnFiles& files);  // throws checkpoint::InputError
  explicit SwapFfnData(const SwapFfnSizes& sizes);

  // Three files with the tensors' names.
  void write(const std::string& weights, const std::string& state, const std::string& input) const;

  const SwapFfnDesc& desc() const { return desc_; }
  std::int64_t batch() const { return batch_; }
  std::int64_t rows() const { return batch_ * desc_.cores; }
  gatefold_swap_ffn_weights weights() const;
  std::vector<std::span<const std::byte>> weight_bytes() const;  // of each, in their order
  const Bytes& weight(const std::string& name) const;

  Bytes x, ram;
  std::vector<std::uint8_t> stream_map;

 private:
  struct Named {
    gatefold_swap_ffn_tensor tensor;
    Bytes values;
  };
  SwapFfnDesc desc_;
  std::int64_t batch_ = 0;
  std::vector<Named> weights_;
};

// By pointers in the struct's order.
gatefold_swap_ffn_weights weights_struct(const std::vector<const void*>& pointers);

// What a table's title and each of its rows say of the configuration.
std::string title_of(const SwapFfnDesc& desc);
Json sizes_of(const SwapFfnData& data);

checkpoint::Tensor stream_map_tensor(const SwapFfnData& data);  // a view

}  // namespace gatefold::cli
