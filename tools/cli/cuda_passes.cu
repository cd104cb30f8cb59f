#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "cli/cuda_passes.hpp"

namespace gatefold::cli {
namespace {

constexpr int threads = 256;
constexpr std::int64_t most_grid_rows = 65535;

__device__ float to_float(float x) { return x; }
__device__ float to_float(__half x) { return __half2float(x); }
__device__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class Element>
__device__ Element from_float(float x) {
  return Element(x);  // CUDA's types round to nearest even
}

__device__ float sigmoid(float x) { return 1.0F / (1.0F + __expf(-x)); }

template <gatefold_activation kind>
struct Activate {
  float limit, alpha;
  __device__ float operator()(float /*activated*/, float g) const {
    if constexpr (kind == GATEFOLD_ACTIVATION_SILU) return g / (1.0F + __expf(-g));
    if constexpr (kind == GATEFOLD_ACTIVATION_GELU_TANH) {
      return 0.5F * g * (1.0F + tanhf(0.797884561F * (g + 0.044715F * g * g * g)));
    }
    if constexpr (kind == GATEFOLD_ACTIVATION_GELU_ERF) return 0.5F * g * (1.0F + erff(g * 0.707106781F));
    if constexpr (kind == GATEFOLD_ACTIVATION_RELU) return g < 0.0F ? 0.0F : g;
    if constexpr (kind == GATEFOLD_ACTIVATION_SIGMOID) return sigmoid(g);
    if constexpr (kind == GATEFOLD_ACTIVATION_SWIGLU_CLAMPED) {
      const float low = fminf(g, limit);
      return low * sigmoid(alpha * low);
    }
    return g;
  }
};

struct Multiply {
  __device__ float operator()(float activated, float u) const { return activated * u; }
};
struct MultiplyClamped {
  float limit, beta;
  __device__ float operator()(float activated, float u) const {
    return activated * (fminf(fmaxf(u, -limit), limit) + beta);
  }
};

template <class Element, int count>
struct alignas(sizeof(Element) * count) Unit {
  Element values[count];
};

// `activated` is null for a pass that reads one tensor only. Rows beyond the grid's are taken in turns.
template <class Element, int count, bool two_inputs, class Function>
__global__ void __launch_bounds__(threads)
    pass_kernel(PassShape shape, const Element* activated, OperandHalf operand, Element* out, Function function) {
  using ThisUnit = Unit<Element, count>;
  const std::int64_t column = (blockIdx.x * std::int64_t{threads} + threadIdx.x) * count;
  if (column >= shape.columns) return;
  const std::int64_t stored =
      operand.run == shape.columns ? column : column / operand.run * 2 * operand.run + column % operand.run;
  for (std::int64_t row = blockIdx.y; row < shape.rows; row += gridDim.y) {
    const std::int64_t index = row * shape.columns + column;
    const auto second = *reinterpret_cast<const ThisUnit*>(static_cast<const Element*>(operand.data) +
                                                           row * operand.row_stride + stored);
    ThisUnit first{};
    if constexpr (two_inputs) first = *reinterpret_cast<const ThisUnit*>(activated + index);
    ThisUnit result;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      result.values[i] = from_float<Element>(function(to_float(first.values[i]), to_float(second.values[i])));
    }
    *reinterpret_cast<ThisUnit*>(out + index) = result;
  }
}

template <class Element, int count, bool two_inputs, class Function>
cudaError_t launch(const PassShape& shape, const void* activated, const OperandHalf& operand, void* out,
                   const Function& function, cudaStream_t stream) {
  const std::int64_t units = (shape.columns + count - 1) / count;
  const dim3 grid(static_cast<unsigned>((units + threads - 1) / threads),
                  static_cast<unsigned>(std::min(shape.rows, most_grid_rows)));
  pass_kernel<Element, count, two_inputs><<<grid, threads, 0, stream>>>(shape, static_cast<const Element*>(activated),
                                                                        operand, static_cast<Element*>(out), function);
  return cudaGetLastError();
}

template <class Element, bool two_inputs, class Function>
cudaError_t launch_widest(PassShape shape, const void* activated, OperandHalf operand, void* out,
                          const Function& function, cudaStream_t stream) {
  if (shape.rows == 0 || shape.columns == 0) return cudaSuccess;
  if (operand.run == shape.columns && operand.row_stride == shape.columns) {  // one long row
    shape.columns *= shape.rows;
    shape.rows = 1;
    operand.run = shape.columns;
  }
  constexpr int wide = 16 / sizeof(Element);
  const bool fits = shape.columns % wide == 0 && operand.run % wide == 0 && operand.row_stride % wide == 0;
  return fits ? launch<Element, wide, two_inputs>(shape, activated, operand, out, function, stream)
              : launch<Element, 1, two_inputs>(shape, activated, operand, out, function, stream);
}

template <bool two_inputs, class Function>
cudaError_t launch_pass(const PassShape& shape, const void* activated, const OperandHalf& operand, void* out,
                        const Function& function, cudaStream_t stream) {
  switch (shape.dtype) {
    case GATEFOLD_DTYPE_FP16:
      return launch_widest<__half, two_inputs>(shape, activated, operand, out, function, stream);
    case GATEFOLD_DTYPE_BF16:
      return launch_widest<__nv_bfloat16, two_inputs>(shape, activated, operand, out, function, stream);
    case GATEFOLD_DTYPE_FP32: break;
  }
  return launch_widest<float, two_inputs>(shape, activated, operand, out, function, stream);
}

}  // namespace

cudaError_t enqueue_activation(const PassShape& shape, const PassActivation& activation, const OperandHalf& gate,
                               void* out, cudaStream_t stream) {
  const auto launch_as = [&]<gatefold_activation kind>() {
    return launch_pass<false>(shape, nullptr, gate, out, Activate<kind>{activation.limit, activation.alpha}, stream);
  };
  switch (activation.kind) {
    case GATEFOLD_ACTIVATION_SILU: return launch_as.template operator()<GATEFOLD_ACTIVATION_SILU>();
    case GATEFOLD_ACTIVATION_GELU_TANH: return launch_as.template operator()<GATEFOLD_ACTIVATION_GELU_TANH>();
    case GATEFOLD_ACTIVATION_GELU_ERF: return launch_as.template operator()<GATEFOLD_ACTIVATION_GELU_ERF>();
    case GATEFOLD_ACTIVATION_RELU: return launch_as.template operator()<GATEFOLD_ACTIVATION_RELU>();
    case GATEFOLD_ACTIVATION_SIGMOID: return launch_as.template operator()<GATEFOLD_ACTIVATION_SIGMOID>();
    case GATEFOLD_ACTIVATION_SWIGLU_CLAMPED: return launch_as.template operator()<GATEFOLD_ACTIVATION_SWIGLU_CLAMPED>();
    case GATEFOLD_ACTIVATION_IDENTITY: break;
  }
  return launch_as.template operator()<GATEFOLD_ACTIVATION_IDENTITY>();
}

cudaError_t enqueue_multiplication(const PassShape& shape, const PassActivation& activation, const void* activated,
                                   const OperandHalf& up, void* out, cudaStream_t stream) {
  if (activation.kind == GATEFOLD_ACTIVATION_SWIGLU_CLAMPED) {
    return launch_pass<true>(shape, activated, up, out, MultiplyClamped{activation.limit, activation.beta}, stream);
  }
  return launch_pass<true>(shape, activated, up, out, Multiply{}, stream);
}

}  // namespace gatefold::cli
