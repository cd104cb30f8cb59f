#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "cuda_support.hpp"
#include "graph.hpp"
#include "support/names.hpp"
#include "swap_ffn/experiment.hpp"
#include "swap_ffn_lane.hpp"

// What a Swap-FFN step on a GPU promises beside what tests/swap_ffn asks of every device, which this program runs too.
namespace gatefold::test {
namespace {

// Sizes that sm90 takes, not all of them whole tiles.
SwapFfnDesc middle_desc(gatefold_dtype dtype) {
  SwapFfnDesc desc = small_desc(dtype);
  desc.hidden_size = 264;
  desc.intermediate_size = 520;
  desc.cores = 64;
  return desc;
}

struct State {
  explicit State(const SwapFfnExperiment& e) : ram(e.ram.bytes()), map(e.stream_map.bytes()) {}
  void restore(SwapFfnExperiment& e) const {
    e.ram.assign(ram);
    e.stream_map.assign(map);
  }
  std::vector<std::byte> ram, map;
};

std::vector<std::vector<std::byte>> results(const SwapFfnExperiment& e) {
  return {e.delta.bytes(), e.ram.bytes(), e.stream_map.bytes()};
}

class SwapFfnOnCuda : public testing::TestWithParam<gatefold_dtype> {
 protected:
  static void expect_right(const SwapFfnDesc& desc, std::int64_t batch) {
    SCOPED_TRACE(testing::Message() << "B " << batch << ", C " << desc.cores << ", D " << desc.hidden_size << ", F "
                                    << desc.intermediate_size << ", R " << desc.router_width);
    Random random = test_random();
    SwapFfnExperiment experiment(desc, batch, random);
    experiment.step();
    experiment.expect_right();
  }
};
INSTANTIATE_TEST_SUITE_P(All, SwapFfnOnCuda, testing::ValuesIn(all_dtypes),
                         [](const auto& test) { return name(test.param); });

// Two MLPs at the default sizes: the products in tiles of their own choice, down with divided sums.
TEST(SwapFfnRealSizes, OneEvent) {
  for (const gatefold_dtype dtype : {GATEFOLD_DTYPE_BF16, GATEFOLD_DTYPE_FP16}) {
    Random random = test_random();
    SwapFfnExperiment experiment(real_desc(dtype), 1, random);
    experiment.step();
    const gatefold_swap_ffn_report report = experiment.expect_right();
    std::printf("%s: largest error/bound %.3f, relative L2 %.2e, %ld of %ld decisions undecided\n", name(dtype).c_str(),
                report.max_bound_ratio, report.relative_l2, static_cast<long>(report.undecided),
                static_cast<long>(report.decisions));
  }
}

// Rows at the edges of the products' tiles and of the routing kernels' blocks: 8,
// 16 from 1057 rows on, 32 from 2113 on; in fp32 4, or 8 from 529 rows on.
TEST_P(SwapFfnOnCuda, RowsAtTheEdgesOfTiles) {
  SwapFfnDesc desc = middle_desc(GetParam());
  desc.events = 1;
  for (const std::int64_t rows : {1,   3,   4,   5,   63,  65,  127,  128,  129,  255,  256,  257,  511,
                                  513, 528, 529, 535, 536, 537, 1055, 1056, 1057, 1073, 2112, 2113, 2145}) {
    desc.cores = rows;
    expect_right(desc, 1);
  }
  desc.cores = 37;
  desc.intermediate_size = 1000;
  expect_right(desc, 3);
  desc.cores = 939;  // 2817 rows: too many for down's sums to be divided
  expect_right(desc, 3);
}

// Columns in several slabs of the routing kernel, the last of them not whole; more of the router's rows than it takes
// at a time; and sizes that no 16-byte access can take.
TEST_P(SwapFfnOnCuda, SlabsAndTails) {
  SwapFfnDesc desc = small_desc(GetParam());
  for (const std::int64_t hidden_size : {1016, 1024, 1032, 2056}) {
    desc.hidden_size = hidden_size;
    for (const std::int64_t router_width : {9, 63, 64, 65, 130}) {
      desc.router_width = router_width;
      expect_right(desc, 1);
    }
  }
  for (const std::int64_t hidden_size : {1, 2, 31, 37, 1025}) {
    desc.hidden_size = hidden_size;
    desc.router_width = 67;
    desc.collapse_heads = 9;
    desc.collapse_width = 35;
    expect_right(desc, 3);
  }
}

// Memory that begins at any element goes to other kernels, not to an error.
TEST_P(SwapFfnOnCuda, TensorsMayBeginAnywhere) {
  Random random = test_random();
  SwapFfnExperiment e(middle_desc(GetParam()), 2, random);
  const std::size_t element = element_size(GetParam());
  struct Shifted {
    explicit Shifted(Guarded& of, std::size_t by)
        : tensor(of), memory(device_memory(), of.size() + 64), data(memory.get() + by) {}
    Guarded& tensor;
    Allocation memory;
    std::byte* data;
  };
  for (std::size_t place = 0; place < 3; ++place) {
    SCOPED_TRACE(place);
    std::vector<Guarded*> tensors{&e.x, &e.ram, &e.delta};
    Shifted shifted(*tensors[place], element);
    e.ram_before = e.ram;
    e.stream_map_before = e.stream_map;
    for (Guarded* buffer : {&e.delta, &e.states, &e.decisions, &e.workspace}) {
      buffer->poison();
      buffer->upload();
    }
    SwapFfnArgs args = e.args(true);
    if (place == 0) args.x = shifted.data;
    if (place == 1) args.ram = shifted.data;
    if (place == 2) args.delta = shifted.data;
    device_memory().upload(shifted.data, shifted.tensor.data(), shifted.tensor.size());
    e.run(args);
    device_memory().download(shifted.tensor.data(), shifted.data, shifted.tensor.size());
    for (Guarded* buffer : {&e.states, &e.decisions}) buffer->download();
    e.expect_right();
  }
}

// A graph's replays are the direct run, bit for bit; the first launch of each kernel may be within the capture. 192
// rows, and 2112: too many for an event's MLPs to be one launch.
class SwapFfnOfBatch : public testing::TestWithParam<std::tuple<gatefold_dtype, int>> {};
INSTANTIATE_TEST_SUITE_P(All, SwapFfnOfBatch, testing::Combine(testing::ValuesIn(all_dtypes), testing::Values(3, 33)),
                         [](const auto& test) {
                           return name(std::get<0>(test.param)) + "_" + std::to_string(std::get<1>(test.param));
                         });

TEST_P(SwapFfnOfBatch, IsCapturedIntoAGraph) {
  const auto [dtype, batch] = GetParam();
  Random random = test_random();
  SwapFfnExperiment e(middle_desc(dtype), batch, random);
  const State state(e);
  for (Guarded* buffer : {&e.x, &e.ram, &e.stream_map, &e.delta}) buffer->upload();
  const Stream stream;
  SwapFfnArgs args = e.args(false);
  args.stream = stream.get();
  const Graph graph(stream.get(), [&] { e.plan.run(args); });
  std::vector<std::vector<std::vector<std::byte>>> replays;
  for (int replay = 0; replay < 2; ++replay) {
    state.restore(e);
    e.delta.poison();
    for (Guarded* buffer : {&e.ram, &e.stream_map, &e.delta, &e.workspace}) buffer->upload();
    for (int step = 0; step < 3; ++step) graph.launch(stream.get());
    stream.wait();
    for (Guarded* buffer : {&e.ram, &e.stream_map, &e.delta}) buffer->download();
    replays.push_back(results(e));
    EXPECT_TRUE(e.ram.surroundings_intact() && e.delta.surroundings_intact() && e.stream_map.surroundings_intact());
  }
  EXPECT_EQ(replays[0], replays[1]);
  state.restore(e);
  for (int step = 0; step < 3; ++step) e.run(e.args(false));
  EXPECT_EQ(results(e), replays[0]);
}

// From one state, again and again, beside other work on the device; and steps on two streams at once.
TEST_P(SwapFfnOfBatch, RepeatsAreBitIdentical) {
  const auto [dtype, batch] = GetParam();
  Random random = test_random();
  SwapFfnExperiment e(middle_desc(dtype), batch, random);
  SwapFfnExperiment other(middle_desc(dtype), 2, random);
  const State state(e);
  e.step();
  const std::vector<std::vector<std::byte>> first = results(e);
  for (Guarded* buffer : {&other.x, &other.ram, &other.stream_map}) buffer->upload();
  const Stream stream;
  SwapFfnArgs beside = other.args(false);
  beside.stream = stream.get();
  const int repeats = thorough() ? 30000 / batch : 200;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    other.plan.run(beside);
    state.restore(e);
    e.run(e.args(false));
    ASSERT_EQ(results(e), first) << "repeat " << repeat;
  }
}

void expect_refused(const std::function<void()>& call, const std::vector<std::string>& parts) {
  try {
    call();
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what() << " lacks " << part;
    }
  }
}

TEST(SwapFfnOnCudaApi, IsTakenWithoutItsName) {
  SwapFfnDesc desc = small_desc(GATEFOLD_DTYPE_BF16);
  desc.implementation = nullptr;
  EXPECT_GT(SwapFfn{desc}.prepared_size(), 0U);
  desc.implementation = "other";
  expect_refused([&] { SwapFfn{desc}; }, {"implementation: \"other\"", "on cuda: fused"});
}

TEST(SwapFfnOnCudaApi, HostMemoryIsNamed) {
  Random random = test_random();
  SwapFfnExperiment e(small_desc(GATEFOLD_DTYPE_BF16), 1, random);
  SwapFfnArgs args = e.args(true);
  args.ram = e.ram.data();
  expect_refused([&] { e.plan.run(args); }, {"ram:", "host memory"});
  args = e.args(true);
  args.decisions = reinterpret_cast<std::uint8_t*>(e.decisions.data());
  expect_refused([&] { e.plan.run(args); }, {"decisions:", "host memory"});
  expect_refused([&] { e.plan.prepare(e.weights(), {e.prepared.there(), e.prepared.size()}); },
                 {"core_embed:", "host memory"});
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

// So many kernels that a graph of them is worth less the more there are; the passes say how many.
TEST(SwapFfnOnCudaApi, AStepIsFewLaunches) {
  SwapFfnDesc desc = real_desc(GATEFOLD_DTYPE_BF16);
  desc.events = 8;
  const SwapFfn plan(desc);
  const auto launches_of = [&](std::int64_t batch) {
    std::int64_t launches = 0;
    for (const gatefold_swap_ffn_pass_info& pass : plan.passes(batch)) launches += pass.launches;
    return launches;
  };
  cudaDeviceProp device{};
  require(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  // 512 rows are 128 tiles, one round, so that Hopper takes an event's two MLPs in one launch.
  const std::int64_t launches = device.major == 9 && device.multiProcessorCount >= 128 ? 20 : 52;
  EXPECT_EQ(launches_of(1), launches);
  EXPECT_EQ(launches_of(16), 52);

  Random random = test_random();
  SwapFfnExperiment e(desc, 1, random);
  const Stream stream;
  cudaGraph_t graph = nullptr;
  SwapFfnArgs args = e.args(false);
  args.stream = stream.get();
  require(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  e.plan.run(args);
  require(cudaStreamEndCapture(stream.get(), &graph), "cudaStreamEndCapture");
  std::size_t nodes = 0;
  require(cudaGraphGetNodes(graph, nullptr, &nodes), "cudaGraphGetNodes");
  require(cudaGraphDestroy(graph), "cudaGraphDestroy");
  EXPECT_EQ(nodes, static_cast<std::size_t>(launches));
}

}  // namespace
}  // namespace gatefold::test
