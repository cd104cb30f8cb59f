#include "swap_ffn/cuda_prepare.hpp"

#include <array>
#include <utility>

#include "cuda/common/executor.hpp"
#include "cuda/swap_ffn/passes.hpp"

namespace gatefold::swap_ffn {
namespace {

namespace gpu = cuda::swap_ffn;

class Preparation {
 public:
  Preparation(const Config& config, const CudaPreparedLayout& layout) : c_(config), prepared_(layout) {}

  Status all(const Weights& weights, std::byte* prepared, const gpu::Queue& queue) const {
    if (Status status = prepare_products(weights, prepared, queue); !status.ok()) return status;
    if (Status status = prepare_tables(weights, prepared, queue); !status.ok()) return status;
    return prepare_router(weights, prepared, queue);
  }

 private:
  std::int64_t elements_of(Weight weight) const { return elements(tensor_of(c_, weight)); }

  Status prepare_products(const Weights& weights, std::byte* prepared, const gpu::Queue& queue) const {
    for (const auto& [weight, offset] : {std::pair{gate_w, prepared_.gate}, std::pair{up_w, prepared_.up}}) {
      Status status = gpu::fold_columns(c_.dtype, weights[weight], weights[ffn_norm], c_.intermediate_size,
                                        c_.hidden_size, prepared + offset, queue);
      if (!status.ok()) return status;
    }
    for (const auto& [weight, offset] : {std::pair{down_w, prepared_.down}, std::pair{router_w, prepared_.router},
                                         std::pair{basis, prepared_.basis}, std::pair{decoder, prepared_.decoder}}) {
      Status status = gpu::copy(prepared + offset, weights[weight], elements_of(weight) * size_of(c_.dtype), queue);
      if (!status.ok()) return status;
    }
    return {};
  }

  Status prepare_tables(const Weights& weights, std::byte* prepared, const gpu::Queue& queue) const {
    const auto affine = [&](Weight w, Weight b, std::int64_t columns, double offset) {
      return gpu::Affine{weights[core_embed], weights[w], weights[b], c_.cores, columns, c_.core_embed_size, offset};
    };
    const auto out = [&](std::size_t offset) { return reinterpret_cast<float*>(prepared + offset); };
    Status status =
        gpu::core_table(c_.dtype, affine(scale_w, scale_b, c_.hidden_size, 1.0), out(prepared_.core_scale), queue);
    if (!status.ok()) return status;
    status = gpu::core_table(c_.dtype, affine(shift_w, shift_b, c_.hidden_size, 0.0), out(prepared_.core_shift), queue);
    if (!status.ok()) return status;
    return gpu::core_softmax(c_.dtype, affine(alpha_w, alpha_b, c_.collapse_heads, 0.0), out(prepared_.alpha), queue);
  }

  Status prepare_router(const Weights& weights, std::byte* prepared, const gpu::Queue& queue) const {
    for (const auto& [weight, offset] :
         {std::pair{router_norm, prepared_.router_norm}, std::pair{router_swap_w, prepared_.swap_w},
          std::pair{router_swap_b, prepared_.swap_b}, std::pair{bank_w, prepared_.bank_w},
          std::pair{bank_b, prepared_.bank_b}}) {
      Status status = gpu::widen(c_.dtype, weights[weight], elements_of(weight),
                                 reinterpret_cast<float*>(prepared + offset), queue);
      if (!status.ok()) return status;
    }
    return {};
  }

  const Config& c_;
  const CudaPreparedLayout& prepared_;
};

}  // namespace

Status prepare_on_cuda(const Config& config, const CudaPreparedLayout& layout, const Weights& weights,
                       std::byte* prepared, void* stream) {
  std::array<cuda::NamedPointer, 1 + weight_count> tensors{{{"prepared", prepared}}};
  for (std::size_t i = 0; i < weight_count; ++i) {
    tensors[1 + i] = {tensor_of(config, static_cast<Weight>(i)).name, weights[i]};
  }
  const cuda::OwnerScope owner(tensors);
  if (!owner.status().ok()) return owner.status();
  return Preparation(config, layout).all(weights, prepared, {static_cast<cudaStream_t>(stream), owner.device()});
}

}  // namespace gatefold::swap_ffn
