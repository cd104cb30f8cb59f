#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gatefold/swap_ffn.hpp"
#include "support/element.hpp"
#include "support/memory.hpp"
#include "support/random.hpp"

namespace gatefold::test {

// Bytes between canaries, poisoned at first: every 16-bit or 32-bit element is a NaN. Where the tested memory is not
// the host's, this is an image of them.
class Guarded {
 public:
  Guarded() : Guarded(0) {}
  explicit Guarded(std::size_t bytes);

  std::byte* data() { return memory_.data() + first_; }
  const std::byte* data() const { return memory_.data() + first_; }
  std::size_t size() const { return size_; }
  std::vector<std::byte> bytes() const { return {data(), data() + size_}; }
  void assign(const std::vector<std::byte>& bytes);
  void poison();
  bool surroundings_intact() const;

  // The bytes in the tested memory; and the image with its canaries to there, and back when all work is done.
  std::byte* there();
  void upload();
  void download();

 private:
  std::size_t size_;
  std::vector<std::byte> memory_;
  std::size_t first_;  // of the 256-byte aligned data
  std::shared_ptr<Allocation> there_;
};

// A configuration on fresh data: weights, a state, an input, and everything that a step writes.
class SwapFfnExperiment {
 public:
  SwapFfnExperiment(const SwapFfnDesc& desc, std::int64_t batch, Random& random);

  const SwapFfnDesc& desc() const { return desc_; }
  std::int64_t rows() const { return batch_ * desc_.cores; }
  std::int64_t slices() const { return 1 + desc_.events * desc_.k_ffn; }

  gatefold_swap_ffn_weights weights() const;  // on the host
  // By its name: element i of a weight. set() wants a value of the type; reload() brings changes into the prepared
  // buffer.
  double get(const std::string& name, std::int64_t i) const;
  void set(const std::string& name, std::int64_t i, double value);
  void reload();

  // One step from the state as it is. Expects success, whole canaries, and inputs as they were.
  void step(bool keep = true);
  SwapFfnArgs args(bool keep);

  // A step with these arguments, of the state's image and back to it; nothing is expected.
  void run(const SwapFfnArgs& args);

  // The check of the last step; and the expectation that it finds nothing.
  gatefold_swap_ffn_report check(gatefold_data data = GATEFOLD_DATA_ANY) const;
  gatefold_swap_ffn_report expect_right() const;
  double relative_l2_limit() const;

  void redraw_x(Random& random);
  double element(const Guarded& tensor, std::int64_t i) const;
  void set_element(Guarded& tensor, std::int64_t i, double value);
  std::uint8_t map(std::int64_t row) const { return static_cast<std::uint8_t>(stream_map.data()[row]); }
  std::uint8_t decision(std::int64_t i) const { return static_cast<std::uint8_t>(decisions.data()[i]); }

  Guarded x, ram, stream_map, delta, states, decisions, prepared, workspace;
  Guarded ram_before, stream_map_before;
  SwapFfn plan;

 private:
  struct Named {
    gatefold_swap_ffn_tensor tensor;
    Guarded values;
  };
  gatefold_swap_ffn_weights weights_at(const std::vector<const void*>& pointers) const;
  Guarded tensor(std::int64_t elements) const;
  void draw(Guarded& tensor, std::int64_t count, double mean, double deviation, Random& random);
  Named& named(const std::string& name);

  SwapFfnDesc desc_;
  std::int64_t batch_;
  std::vector<Named> weights_;
};

// A small one of this type in the tested memory; the sizes are no multiples of any tile.
SwapFfnDesc small_desc(gatefold_dtype dtype);

}  // namespace gatefold::test
