#include <gtest/gtest.h>
#include <omp.h>

#include "support/names.hpp"
#include "swap_ffn/experiment.hpp"

// Planned for one number of threads and run by another: the results are the same bits.
namespace gatefold::test {
namespace {

TEST(SwapFfnThreads, DontChangeResults) {
  const int before = omp_get_max_threads();
  Random random = test_random();
  for (const gatefold_dtype dtype : all_dtypes) {
    SwapFfnDesc desc = small_desc(dtype);
    desc.cores = 45;
    SwapFfnExperiment experiment(desc, 13, random);  // 585 rows: two blocks
    const std::vector<std::byte> ram = experiment.ram.bytes();
    const std::vector<std::byte> map = experiment.stream_map.bytes();
    std::vector<std::vector<std::byte>> first;
    for (const int planned : {1, 2, 7}) {
      for (const int run : {1, 2, 7}) {
        omp_set_num_threads(planned);
        const SwapFfn plan(desc);
        Guarded workspace(plan.workspace_size(13));
        omp_set_num_threads(run);
        experiment.ram.assign(ram);
        experiment.stream_map.assign(map);
        SwapFfnArgs args = experiment.args(true);
        args.workspace = {workspace.data(), workspace.size()};
        plan.run(args);
        EXPECT_TRUE(workspace.surroundings_intact());
        const std::vector<std::vector<std::byte>> results{experiment.delta.bytes(), experiment.ram.bytes(),
                                                          experiment.stream_map.bytes(), experiment.states.bytes(),
                                                          experiment.decisions.bytes()};
        if (first.empty()) first = results;
        EXPECT_EQ(results, first) << "planned for " << planned << ", run by " << run;
      }
    }
  }
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace gatefold::test
