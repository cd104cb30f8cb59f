#include <gtest/gtest.h>

#include "support/float_modes.hpp"
#include "support/names.hpp"
#include "swap_ffn/experiment.hpp"

// On the CPU: weights are prepared, and steps computed, in no thread's floating-point environment but the usual one.
namespace gatefold::test {
namespace {

TEST(SwapFfnFloatEnvironment, IsNeitherUsedNorChanged) {
  Random random = test_random();
  for (const gatefold_dtype dtype : all_dtypes) {
    SwapFfnExperiment experiment(small_desc(dtype), 13, random);
    const std::vector<std::byte> ram = experiment.ram.bytes();
    const std::vector<std::byte> map = experiment.stream_map.bytes();
    std::vector<std::vector<std::byte>> first;
    for (const FloatMode& mode : float_modes) {
      for (const int threads : {1, 2}) {
        experiment.ram.assign(ram);
        experiment.stream_map.assign(map);
        const bool unchanged = in_float_mode(mode, threads, [&] {
          experiment.plan = SwapFfn(experiment.desc());  // for so many threads
          experiment.reload();
          experiment.step();
        });
        const std::vector<std::vector<std::byte>> results{experiment.prepared.bytes(), experiment.delta.bytes(),
                                                          experiment.ram.bytes(),      experiment.stream_map.bytes(),
                                                          experiment.states.bytes(),   experiment.decisions.bytes()};
        if (first.empty()) first = results;
        EXPECT_EQ(results, first) << threads << " threads, " << mode.name;
        EXPECT_TRUE(unchanged) << threads << " threads, " << mode.name;
      }
    }
  }
}

}  // namespace
}  // namespace gatefold::test
