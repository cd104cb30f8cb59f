#include "cli/swap_ffn_kernels.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace gatefold::cli::unfused {
namespace {

constexpr int threads = 256;
constexpr int banks = 4;

__device__ std::int64_t thread_of_grid() { return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }

// function(i) for each i below count.
template <class Function>
__global__ void __launch_bounds__(threads) each_kernel(std::int64_t count, Function function) {
  const std::int64_t i = thread_of_grid();
  if (i < count) function(i);
}

template <class Function>
cudaError_t for_each(const Launch& launch, std::int64_t count, const Function& function) {
  const auto blocks = static_cast<unsigned>((count + threads - 1) / threads);
  each_kernel<<<blocks, threads, 0, launch.stream>>>(count, function);
  return cudaGetLastError();
}

// Of a block's 256 threads, in all of them.
__device__ float block_sum(float value) {
  __shared__ float sums[threads / 32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffU, value, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  float total = 0.0F;
  for (const float sum : sums) total += sum;
  __syncthreads();
  return total;
}

template <class Element>
__global__ void __launch_bounds__(threads)
    rms_norm_kernel(const Element* in, const Element* norm, Element* out, std::int64_t columns, float eps) {
  const std::int64_t row = blockIdx.x * columns;
  float squares = 0.0F;
  for (std::int64_t d = threadIdx.x; d < columns; d += threads) {
    const auto value = static_cast<float>(in[row + d]);
    squares += value * value;
  }
  const float scale = rsqrtf(block_sum(squares) / static_cast<float>(columns) + eps);
  for (std::int64_t d = threadIdx.x; d < columns; d += threads) {
    out[row + d] = Element(static_cast<float>(in[row + d]) * scale * static_cast<float>(norm[d]));
  }
}

// A block for one element of q.
template <class Element>
__global__ void __launch_bounds__(threads)
    collapse_kernel(const Element* basis, const Element* pooled, Element* q, std::int64_t heads, std::int64_t width,
                    std::int64_t columns) {
  const std::int64_t sequence = blockIdx.x / width;
  const std::int64_t r = blockIdx.x % width;
  float sum = 0.0F;
  for (std::int64_t k = 0; k < heads; ++k) {
    for (std::int64_t d = threadIdx.x; d < columns; d += threads) {
      sum += static_cast<float>(basis[(k * width + r) * columns + d]) *
             static_cast<float>(pooled[(sequence * heads + k) * columns + d]);
    }
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) q[blockIdx.x] = Element(sum);
}

template <class Function>
cudaError_t with_type(gatefold_dtype dtype, Function function) {
  switch (dtype) {
    case GATEFOLD_DTYPE_FP16: return function(__half{});
    case GATEFOLD_DTYPE_BF16: return function(__nv_bfloat16{});
    case GATEFOLD_DTYPE_FP32: break;
  }
  return function(float{});
}

// A chunk of a row that is moved as it is: the widest that divides every row.
template <class Function>
cudaError_t with_chunk(std::int64_t row_bytes, Function function) {
  if (row_bytes % 16 == 0) return function(uint4{});
  if (row_bytes % 4 == 0) return function(std::uint32_t{});
  return function(std::uint16_t{});
}

std::int64_t row_bytes(const Launch& launch, std::int64_t columns) {
  return columns * (launch.dtype == GATEFOLD_DTYPE_FP32 ? 4 : 2);
}

// What each element of a pass is.
template <class Element>
struct Start {
  const Element* x;
  const float *scale, *shift;
  Element* s;
  std::int64_t cores, columns;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t row = i / columns;
    const std::int64_t table = row % cores * columns + i % columns;
    s[i] = Element(static_cast<float>(x[row / cores * columns + i % columns]) * scale[table] + shift[table]);
  }
};

template <class Element>
struct NarrowProduct {
  const Element *z, *w, *b;
  float* out;
  std::int64_t width, columns;
  __device__ void operator()(std::int64_t i) const {
    auto sum = static_cast<float>(b[i % columns]);
    for (std::int64_t r = 0; r < width; ++r) {
      sum += static_cast<float>(z[i / columns * width + r]) * static_cast<float>(w[r * columns + i % columns]);
    }
    out[i] = sum;
  }
};

struct Sigmoid {
  float* values;
  __device__ void operator()(std::int64_t i) const { values[i] = 1.0F / (1.0F + __expf(-values[i])); }
};

struct Threshold {
  const float* values;
  std::uint8_t* above_half;
  __device__ void operator()(std::int64_t i) const { above_half[i] = values[i] > 0.5F ? 1 : 0; }
};

struct ArgMax {
  const float* logits;
  std::uint8_t* choice;
  __device__ void operator()(std::int64_t row) const {
    int best = 0;
    for (int b = 1; b < banks; ++b) {
      if (logits[row * banks + b] > logits[row * banks + best]) best = b;
    }
    choice[row] = static_cast<std::uint8_t>(best);
  }
};

struct LaneOfMap {
  const std::uint8_t *map, *choice;
  std::uint8_t* bank;
  __device__ void operator()(std::int64_t row) const {
    bank[row] = static_cast<std::uint8_t>(map[row] >> (2 * choice[row]) & 3);
  }
};

struct ExchangeLanes {
  const std::uint8_t *swap, *choice, *bank;
  std::uint8_t* map;
  __device__ void operator()(std::int64_t row) const {
    if (swap[row] == 0) return;
    const unsigned difference = (map[row] & 3U) ^ bank[row];
    map[row] = static_cast<std::uint8_t>(map[row] ^ difference ^ (difference << (2U * choice[row])));
  }
};

template <class Chunk>
struct Gather {
  const Chunk* ram;
  const std::uint8_t* bank;
  Chunk* taken;
  std::int64_t chunks;  // of a row
  __device__ void operator()(std::int64_t i) const {
    taken[i] = ram[(i / chunks * banks + bank[i / chunks]) * chunks + i % chunks];
  }
};

template <class Chunk>
struct Scatter {
  const Chunk* s;
  const std::uint8_t *swap, *bank;
  Chunk* ram;
  std::int64_t chunks;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t row = i / chunks;
    if (swap[row] != 0) ram[(row * banks + bank[row]) * chunks + i % chunks] = s[i];
  }
};

template <class Chunk>
struct Take {
  const Chunk* taken;
  const std::uint8_t* swap;
  Chunk* s;
  std::int64_t chunks;
  __device__ void operator()(std::int64_t i) const {
    if (swap[i / chunks] != 0) s[i] = taken[i];
  }
};

template <class Element>
struct Pool {
  const Element* s;
  const float* alpha;
  Element* pooled;
  std::int64_t cores, heads, columns;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t sequence = i / (heads * columns);
    const std::int64_t head = i / columns % heads;
    float sum = 0.0F;
    for (std::int64_t core = 0; core < cores; ++core) {
      sum += alpha[core * heads + head] * static_cast<float>(s[(sequence * cores + core) * columns + i % columns]);
    }
    pooled[i] = Element(sum);
  }
};

template <class Element>
struct Silu {
  Element* values;
  __device__ void operator()(std::int64_t i) const {
    const auto value = static_cast<float>(values[i]);
    values[i] = Element(value / (1.0F + __expf(-value)));
  }
};

}  // namespace

cudaError_t start(const Launch& launch, const void* x, const float* scale, const float* shift, void* s,
                  std::int64_t rows, std::int64_t cores, std::int64_t columns) {
  return with_type(launch.dtype, [&](auto type) {
    using Element = decltype(type);
    return for_each(
        launch, rows * columns,
        Start<Element>{static_cast<const Element*>(x), scale, shift, static_cast<Element*>(s), cores, columns});
  });
}

cudaError_t rms_norm(const Launch& launch, const void* in, const void* norm, void* out, std::int64_t rows,
                     std::int64_t columns, float eps) {
  return with_type(launch.dtype, [&](auto type) {
    using Element = decltype(type);
    rms_norm_kernel<<<static_cast<unsigned>(rows), threads, 0, launch.stream>>>(
        static_cast<const Element*>(in), static_cast<const Element*>(norm), static_cast<Element*>(out), columns, eps);
    return cudaGetLastError();
  });
}

cudaError_t narrow_product(const Launch& launch, const void* in, const void* w, const void* b, float* out,
                           std::int64_t rows, std::int64_t width, std::int64_t columns) {
  return with_type(launch.dtype, [&](auto type) {
    using Element = decltype(type);
    return for_each(launch, rows * columns,
                    NarrowProduct<Element>{static_cast<const Element*>(in), static_cast<const Element*>(w),
                                           static_cast<const Element*>(b), out, width, columns});
  });
}

cudaError_t sigmoid(const Launch& launch, float* values, std::int64_t count) {
  return for_each(launch, count, Sigmoid{values});
}
cudaError_t threshold(const Launch& launch, const float* values, std::uint8_t* above_half, std::int64_t count) {
  return for_each(launch, count, Threshold{values, above_half});
}
cudaError_t argmax(const Launch& launch, const float* logits, std::uint8_t* choice, std::int64_t rows) {
  return for_each(launch, rows, ArgMax{logits, choice});
}
cudaError_t lane_of_map(const Launch& launch, const std::uint8_t* map, const std::uint8_t* choice, std::uint8_t* bank,
                        std::int64_t rows) {
  return for_each(launch, rows, LaneOfMap{map, choice, bank});
}
cudaError_t exchange_lanes(const Launch& launch, const std::uint8_t* swap, const std::uint8_t* choice,
                           const std::uint8_t* bank, std::uint8_t* map, std::int64_t rows) {
  return for_each(launch, rows, ExchangeLanes{swap, choice, bank, map});
}

cudaError_t gather(const Launch& launch, const void* ram, const std::uint8_t* bank, void* taken, std::int64_t rows,
                   std::int64_t columns) {
  return with_chunk(row_bytes(launch, columns), [&](auto chunk) {
    using Chunk = decltype(chunk);
    const std::int64_t chunks = row_bytes(launch, columns) / static_cast<std::int64_t>(sizeof(Chunk));
    return for_each(launch, rows * chunks,
                    Gather<Chunk>{static_cast<const Chunk*>(ram), bank, static_cast<Chunk*>(taken), chunks});
  });
}

cudaError_t scatter(const Launch& launch, const void* s, const std::uint8_t* swap, const std::uint8_t* bank, void* ram,
                    std::int64_t rows, std::int64_t columns) {
  return with_chunk(row_bytes(launch, columns), [&](auto chunk) {
    using Chunk = decltype(chunk);
    const std::int64_t chunks = row_bytes(launch, columns) / static_cast<std::int64_t>(sizeof(Chunk));
    return for_each(launch, rows * chunks,
                    Scatter<Chunk>{static_cast<const Chunk*>(s), swap, bank, static_cast<Chunk*>(ram), chunks});
  });
}

cudaError_t take(const Launch& launch, const void* taken, const std::uint8_t* swap, void* s, std::int64_t rows,
                 std::int64_t columns) {
  return with_chunk(row_bytes(launch, columns), [&](auto chunk) {
    using Chunk = decltype(chunk);
    const std::int64_t chunks = row_bytes(launch, columns) / static_cast<std::int64_t>(sizeof(Chunk));
    return for_each(launch, rows * chunks,
                    Take<Chunk>{static_cast<const Chunk*>(taken), swap, static_cast<Chunk*>(s), chunks});
  });
}

cudaError_t pool(const Launch& launch, const void* s, const float* alpha, void* pooled, std::int64_t batch,
                 std::int64_t cores, std::int64_t heads, std::int64_t columns) {
  return with_type(launch.dtype, [&](auto type) {
    using Element = decltype(type);
    return for_each(
        launch, batch * heads * columns,
        Pool<Element>{static_cast<const Element*>(s), alpha, static_cast<Element*>(pooled), cores, heads, columns});
  });
}

cudaError_t collapse(const Launch& launch, const void* basis, const void* pooled, void* q, std::int64_t batch,
                     std::int64_t heads, std::int64_t width, std::int64_t columns) {
  return with_type(launch.dtype, [&](auto type) {
    using Element = decltype(type);
    collapse_kernel<<<static_cast<unsigned>(batch * width), threads, 0, launch.stream>>>(
        static_cast<const Element*>(basis), static_cast<const Element*>(pooled), static_cast<Element*>(q), heads, width,
        columns);
    return cudaGetLastError();
  });
}

cudaError_t silu(const Launch& launch, void* values, std::int64_t count) {
  return with_type(launch.dtype, [&](auto type) {
    using Element = decltype(type);
    return for_each(launch, count, Silu<Element>{static_cast<Element*>(values)});
  });
}

}  // namespace gatefold::cli::unfused
