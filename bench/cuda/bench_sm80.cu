// Holds the candidate configurations of the sm_80 kernels against each other: first every one against double precision
// on awkward shapes and all layouts, then their speed, in rounds, on the shapes of Llama 8B and 70B.
//     bench_sm80 [check | speed | groups]...        default: check speed groups
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bench_sm80_candidates.hpp"
#include "core/problem.hpp"

namespace gatefold::bench {
namespace {

void require(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "bench_sm80: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

// --- data ---

__device__ float uniform(std::uint64_t i) {  // (0, 1), from a mix of the index's bits
  i = (i ^ (i >> 30U)) * 0xbf58476d1ce4e5b9U;
  i = (i ^ (i >> 27U)) * 0x94d049bb133111ebU;
  return (static_cast<float>((i ^ (i >> 31U)) >> 40U) + 0.5F) * 0x1p-24F;
}

__device__ void put(__nv_bfloat16* p, float value) { *p = __float2bfloat16_rn(value); }
__device__ void put(float* p, float value) { *p = value; }
__device__ double get(const __nv_bfloat16* p) { return __bfloat162float(*p); }
__device__ double get(const float* p) { return *p; }

template <class Element>
__global__ void fill_normal(Element* data, std::int64_t count, float scale, std::uint64_t seed) {
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    const float u = uniform((seed << 40U) + 2 * i);
    const float v = uniform((seed << 40U) + 2 * i + 1);
    put(data + i, scale * sqrtf(-2.0F * logf(u)) * cospif(2.0F * v));
  }
}

struct Buffer {
  std::byte* data = nullptr;
  std::size_t bytes;

  explicit Buffer(std::size_t size) : bytes(size + 16) { require(cudaMalloc(&data, bytes), "cudaMalloc"); }
  Buffer(const Buffer&) = delete;
  ~Buffer() { cudaFree(data); }

  void fill(DType dtype, float scale, std::uint64_t seed) {
    if (dtype == DType::fp32) {
      fill_normal<<<1024, 256>>>(reinterpret_cast<float*>(data), bytes / 4, scale, seed);
    } else {
      fill_normal<<<1024, 256>>>(reinterpret_cast<__nv_bfloat16*>(data), bytes / 2, scale, seed);
    }
    require(cudaGetLastError(), "fill_normal");
  }
  void poison() { require(cudaMemset(data, 0xff, bytes), "cudaMemset"); }
};

// One problem with its tensors. Weights are scaled so that gate and up are near 1.
struct Case {
  Problem problem;
  Operands operands;
  Buffer x, gate, up, out;

  Case(const Config& config, std::int64_t T, std::int64_t D, std::int64_t F, Layout layout, std::int64_t pad)
      : x((D + pad) * T * config.element_size()),
        gate(std::max(2 * F * (D + pad), T * (F + pad)) * config.element_size()),
        up(F * (D + pad) * config.element_size()),
        out(T * (F + pad) * config.element_size()) {
    problem.op = config.op;
    problem.dtype = config.dtype;
    problem.device = Device::cuda;
    problem.layout = config.op == Op::gate_up ? layout : Layout{};
    problem.activation.kind = config.op == Op::gemm ? ActivationKind::none : ActivationKind::silu;
    problem.hidden_size = D;
    problem.intermediate_size = F;
    problem.ld_x = D + pad;
    problem.ld_gate = config.op == Op::gate_up ? D + pad : F + pad;
    problem.ld_up = D + pad;
    problem.ld_out = F + pad;
    const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(D)));
    x.fill(config.dtype, 1.0F, 1);
    gate.fill(config.dtype, config.op == Op::gemm_gated ? 1.0F : scale, 2);
    up.fill(config.dtype, scale, 3);
    out.poison();
    operands.tokens = T;
    operands.x = x.data;
    operands.gate = gate.data;
    operands.up = up.data;
    operands.out = out.data;
  }

  double flop() const {
    const double products = problem.op == Op::gate_up ? 2.0 : 1.0;
    return 2.0 * products * static_cast<double>(operands.tokens) * static_cast<double>(problem.hidden_size) *
           static_cast<double>(problem.intermediate_size);
  }
};

// --- the check ---

struct CheckParams {
  Problem problem;
  Operands operands;
  HalfView gate, up;
  std::int64_t samples;  // of T * F; all of them if there are no more
};

// The worst |out - truth| / bound (DESIGN.md section 6) over the samples, as the bits of a float; NaN counts as huge.
template <class Element>
__global__ void check_kernel(const CheckParams p, unsigned* worst) {
  const std::int64_t F = p.problem.intermediate_size;
  const std::int64_t D = p.problem.hidden_size;
  const std::int64_t all = p.operands.tokens * F;
  const std::int64_t s = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (s >= p.samples) return;
  const std::int64_t index = p.samples == all ? s
                             : s < 64         ? all - 1 - s
                                              : static_cast<std::int64_t>(uniform(s * 77) * 0.999 * all);
  const std::int64_t row = index / F;
  const std::int64_t column = index % F;
  const auto* x = reinterpret_cast<const Element*>(p.operands.x) + row * p.problem.ld_x;
  const auto* w_up = reinterpret_cast<const Element*>(p.up.base) + p.up.map(column) * p.up.ld;
  const auto* w_gate = reinterpret_cast<const Element*>(p.gate.base) + p.gate.map(column) * p.gate.ld;
  const bool pair = p.problem.op == Op::gate_up;
  double gate = 0, up = 0, gate_magnitude = 0, up_magnitude = 0;
  for (std::int64_t k = 0; k < D; ++k) {
    const double value = get(x + k);
    up += value * get(w_up + k);
    up_magnitude += fabs(value * get(w_up + k));
    if (pair) gate += value * get(w_gate + k);
    if (pair) gate_magnitude += fabs(value * get(w_gate + k));
  }
  if (p.problem.op == Op::gemm_gated) {
    gate = get(reinterpret_cast<const Element*>(p.operands.gate) + row * p.problem.ld_gate + column);
  }
  const double activated = p.problem.op == Op::gemm ? 1.0 : gate / (1.0 + exp(-gate));
  const double truth = activated * up;
  const bool fp32 = sizeof(Element) == 4;
  const double gamma = sqrt(static_cast<double>(D)) * (fp32 ? 0x1p-24 : 0x1p-26) + (fp32 ? 0x1p-21 : 0.0);
  const double bound = fabs(truth) * ((fp32 ? 0x1p-24 : 0x1p-8) + 0x1p-20) + 0x1p-126 +
                       gamma * (1.1 * gate_magnitude * fabs(up) + up_magnitude * fabs(activated));
  const double out = get(reinterpret_cast<const Element*>(p.operands.out) + row * p.problem.ld_out + column);
  const double ratio = fabs(out - truth) / bound;
  const float reported = ratio < 1e30 ? static_cast<float>(ratio) : 1e30F;
  atomicMax(worst, __float_as_uint(reported));
}

// How many elements outside the output's columns have lost their poison.
__global__ void canary_kernel(const std::byte* out, std::int64_t T, std::int64_t F, std::int64_t ld, std::int64_t size,
                              unsigned* broken) {
  for (std::int64_t row = 0; row < T; ++row) {
    for (std::int64_t byte = F * size; byte < ld * size + (row + 1 == T ? 16 : 0); ++byte) {
      if (out[row * ld * size + byte] != std::byte{0xff}) ++*broken;
    }
  }
}

float worst_ratio(const Case& c) {
  CheckParams params{c.problem, c.operands, {}, {}, 0};
  const std::int64_t F = c.problem.intermediate_size;
  if (c.problem.op == Op::gate_up) {
    params.gate = half_view(c.problem, c.operands, Half::gate);
    params.up = half_view(c.problem, c.operands, Half::up);
  } else {
    params.up = {c.operands.up, {0, F, F}, c.problem.ld_up};
    params.gate = params.up;
  }
  params.samples = std::min<std::int64_t>(c.operands.tokens * F, 65536);
  Buffer found(8);
  require(cudaMemset(found.data, 0, 8), "cudaMemset");
  auto* flags = reinterpret_cast<unsigned*>(found.data);
  const auto blocks = static_cast<unsigned>((params.samples + 127) / 128);
  if (c.problem.dtype == DType::fp32) {
    check_kernel<float><<<blocks, 128>>>(params, flags);
  } else {
    check_kernel<__nv_bfloat16><<<blocks, 128>>>(params, flags);
  }
  if (F < 4096) {
    canary_kernel<<<1, 1>>>(c.out.data, c.operands.tokens, F, c.problem.ld_out, size_of(c.problem.dtype), flags + 1);
  }
  unsigned result[2];
  require(cudaMemcpy(result, flags, 8, cudaMemcpyDeviceToHost), "check");
  float ratio;
  std::memcpy(&ratio, result, 4);
  return result[1] == 0 ? ratio : 2e30F;
}

// --- running ---

cuda::DeviceProperties device_properties() {
  cudaDeviceProp raw{};
  require(cudaGetDeviceProperties(&raw, 0), "cudaGetDeviceProperties");
  std::fprintf(stderr, "%s, %d SMs\n", raw.name, raw.multiProcessorCount);
  return {0, raw.name,          raw.major * 10 + raw.minor, raw.multiProcessorCount, raw.sharedMemPerBlockOptin,
          0, raw.totalGlobalMem};
}

int default_group(const Config& config, std::int64_t tokens) {
  return cuda::sm80::raster_group((tokens + config.tile_m - 1) / config.tile_m);
}

void run(const cuda::sm80::Kernel& kernel, const Case& c, int group, const cuda::DeviceProperties& device) {
  const Status status = kernel.launch(c.problem, c.operands, group, device, nullptr);
  if (status.ok()) return;
  std::fprintf(stderr, "bench_sm80: %s: %s\n", to_string(kernel.config).c_str(), status.message().c_str());
  std::exit(1);
}

bool check(const std::vector<cuda::sm80::Kernel>& kernels, const cuda::DeviceProperties& device) {
  const std::vector<std::pair<const char*, Layout>> layouts{
      {"separate", {LayoutKind::separate, 0}},
      {"gate_up", {LayoutKind::gate_up, 0}},
      {"up_gate", {LayoutKind::up_gate, 0}},
      {"interleaved 1", {LayoutKind::interleaved_gate_up, 1}},
      {"interleaved 8", {LayoutKind::interleaved_up_gate, 8}},
      {"interleaved 24", {LayoutKind::interleaved_gate_up, 24}},
  };
  struct Size {
    std::int64_t T, D, F, pad;
  };
  const std::vector<Size> sizes{{1, 64, 24, 0},   {127, 72, 240, 8},   {129, 4096, 264, 0}, {300, 1000, 1008, 16},
                                {257, 8, 120, 8}, {640, 520, 2304, 0}, {64, 200, 2328, 8},  {2048, 4096, 4800, 0}};
  bool good = true;
  for (const cuda::sm80::Kernel& kernel : kernels) {
    float worst = 0.0F;
    for (const auto& [name, layout] : layouts) {
      if (kernel.config.op != Op::gate_up && layout.kind != LayoutKind::separate) continue;
      for (const Size& size : sizes) {
        for (const std::int64_t odd : {0, 1}) {  // odd: rows of the output that no 16-byte store may touch
          Case c(kernel.config, size.T, size.D, size.F - 3 * odd * (layout.packed() ? 0 : 1), layout, size.pad);
          c.problem.ld_out += odd;
          if (odd != 0 && size.pad == 0) continue;
          if (odd != 0) c.problem.ld_out -= 2;
          run(kernel, c, 1 + static_cast<int>(size.T % 5), device);
          const float ratio = worst_ratio(c);
          worst = std::max(worst, ratio);
          if (!(ratio <= 1.0F)) {
            good = false;
            std::printf("WRONG  %s: T=%ld D=%ld F=%ld ld_out=%ld %s: ratio %g\n", to_string(kernel.config).c_str(),
                        static_cast<long>(size.T), static_cast<long>(size.D),
                        static_cast<long>(c.problem.intermediate_size), static_cast<long>(c.problem.ld_out), name,
                        ratio);
          }
        }
      }
    }
    std::printf("worst error / bound %.3f  %s\n", worst, to_string(kernel.config).c_str());
  }
  return good;
}

struct Timer {
  cudaEvent_t begin{}, end{};
  Timer() {
    require(cudaEventCreate(&begin), "cudaEventCreate");
    require(cudaEventCreate(&end), "cudaEventCreate");
  }
  // Microseconds a call, over at least `milliseconds`.
  template <class Call>
  double operator()(Call call, double milliseconds) {
    call();
    require(cudaEventRecord(begin), "cudaEventRecord");
    call();
    require(cudaEventRecord(end), "cudaEventRecord");
    const int calls = std::max(1, static_cast<int>(milliseconds * 1e3 / elapsed()));
    require(cudaEventRecord(begin), "cudaEventRecord");
    for (int i = 0; i < calls; ++i) call();
    require(cudaEventRecord(end), "cudaEventRecord");
    return elapsed() / calls;
  }
  double elapsed() {
    require(cudaEventSynchronize(end), "timed region");
    float ms = 0;
    require(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    return ms * 1e3;
  }
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

constexpr int rounds = 3;
constexpr double round_ms = 60.0;

void speed(const std::vector<cuda::sm80::Kernel>& kernels, const cuda::DeviceProperties& device) {
  struct Size {
    const char* name;
    std::int64_t T, D, F;
  };
  const std::vector<Size> sizes{{"8B T=512", 512, 4096, 14336},     {"8B T=1024", 1024, 4096, 14336},
                                {"8B T=2048", 2048, 4096, 14336},   {"8B T=8192", 8192, 4096, 14336},
                                {"70B T=512", 512, 8192, 28672},    {"70B T=4096", 4096, 8192, 28672},
                                {"70B T=16384", 16384, 8192, 28672}};
  Timer timer;
  for (const Size& size : sizes) {
    std::vector<std::vector<double>> tflops(kernels.size());
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < kernels.size(); ++i) {
        const Config& config = kernels[i].config;
        if (config.dtype == DType::fp32 && size.T != 2048) continue;
        // The same product for every op: gate_up's two weights, or one of twice the rows.
        Case c(config, size.T, size.D, config.op == Op::gate_up ? size.F : 2 * size.F, {LayoutKind::separate, 0}, 0);
        const double us = timer([&] { run(kernels[i], c, default_group(config, size.T), device); }, round_ms);
        tflops[i].push_back(c.flop() / us * 1e-6);
      }
    }
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      if (tflops[i].empty()) continue;
      std::printf("%-12s %7.1f TFLOP/s (%.1f to %.1f)  %s\n", size.name, median(tflops[i]),
                  *std::min_element(tflops[i].begin(), tflops[i].end()),
                  *std::max_element(tflops[i].begin(), tflops[i].end()), to_string(kernels[i].config).c_str());
    }
    std::fflush(stdout);
  }
}

void groups(const cuda::sm80::Kernel& kernel, const cuda::DeviceProperties& device) {
  Timer timer;
  for (const std::int64_t T : {2048, 8192}) {
    Case c(kernel.config, T, 8192, 28672, {LayoutKind::gate_up, 0}, 0);
    for (int round = 0; round < 2; ++round) {
      for (const int group : {2, 4, 8, 12, 16, 24, 32, 64}) {
        const double us = timer([&] { run(kernel, c, group, device); }, round_ms);
        std::printf("70B T=%ld group %2d: %.1f TFLOP/s\n", static_cast<long>(T), group, c.flop() / us * 1e-6);
      }
    }
  }
}

// What mma.sync gives when nothing else limits it: independent products of registers, eight warps a multiprocessor.
__global__ void __launch_bounds__(256, 1) mma_peak_kernel(float* sink, int repeats) {
  float acc[32][4] = {};
  unsigned a[4][4], b[8][2];
  for (int i = 0; i < 16; ++i) a[i / 4][i % 4] = __float_as_uint(uniform(threadIdx.x * 64 + i)) | 0x3f003f00U;
  for (int i = 0; i < 16; ++i) b[i / 2][i % 2] = __float_as_uint(uniform(threadIdx.x * 64 + 32 + i)) ^ 0x3f00bf00U;
#pragma unroll 1
  for (int r = 0; r < repeats; ++r) {
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+f"(acc[i][0]), "+f"(acc[i][1]), "+f"(acc[i][2]), "+f"(acc[i][3])
          : "r"(a[i / 8][0]), "r"(a[i / 8][1]), "r"(a[i / 8][2]), "r"(a[i / 8][3]), "r"(b[i % 8][0]), "r"(b[i % 8][1]));
    }
  }
  float sum = 0;
  for (const auto& row : acc) sum += row[0] + row[1] + row[2] + row[3];
  if (sum == 12345.0F) *sink = sum;
}

void mma_peak(const cuda::DeviceProperties& device) {
  Buffer sink(4);
  Timer timer;
  constexpr int repeats = 4096;
  const double us = timer(
      [&] { mma_peak_kernel<<<device.multiprocessors, 256>>>(reinterpret_cast<float*>(sink.data), repeats); }, 200.0);
  require(cudaGetLastError(), "mma_peak");
  std::printf("mma.sync alone: %.1f TFLOP/s\n",
              2.0 * 16 * 8 * 16 * 32 * repeats * 8 * device.multiprocessors / us * 1e-6);
}

template <int... Index>
std::vector<cuda::sm80::Kernel> all(std::integer_sequence<int, Index...>) {
  return {candidate<Index>()...};
}

}  // namespace
}  // namespace gatefold::bench

int main(int argc, char** argv) {
  using namespace gatefold::bench;
  const auto wanted = [&](const char* part) {
    return argc == 1 || std::any_of(argv + 1, argv + argc, [&](const char* a) { return std::strcmp(a, part) == 0; });
  };
  const auto device = device_properties();
  const auto kernels = all(std::make_integer_sequence<int, static_cast<int>(candidates.size())>{});
  bool good = true;
  if (wanted("check")) good = check(kernels, device);
  std::fflush(stdout);
  if (wanted("speed")) mma_peak(device);
  if (wanted("speed")) speed(kernels, device);
  if (wanted("groups")) groups(kernels.front(), device);
  return good ? 0 : 1;
}
