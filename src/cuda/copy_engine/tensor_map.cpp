#include "cuda/copy_engine/tensor_map.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>

namespace gatefold::cuda {
namespace {

using Encode = decltype(&::cuTensorMapEncodeTiled);

// The driver's function, found through the runtime: nothing links against the driver.
Encode encode_function() {
  static const Encode function = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult result{};
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &result);
    return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(entry) : nullptr;
  }();
  return function;
}

template <std::size_t rank>
struct Box {
  std::array<cuuint64_t, rank> sizes;
  std::array<cuuint64_t, rank - 1> strides;  // bytes
  std::array<cuuint32_t, rank> box;
};

CUtensorMapSwizzle swizzle_mode(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::none: return CU_TENSOR_MAP_SWIZZLE_NONE;
    case Swizzle::bytes_64: return CU_TENSOR_MAP_SWIZZLE_64B;
    case Swizzle::bytes_128: break;
  }
  return CU_TENSOR_MAP_SWIZZLE_128B;
}

template <std::size_t rank>
Status encode(CUtensorMap& map, CUtensorMapDataType type, const void* base, const Box<rank>& box, Swizzle swizzle,
              Promotion promotion) {
  const Encode function = encode_function();
  if (function == nullptr) return {GATEFOLD_ERROR_DEVICE, "the driver has no cuTensorMapEncodeTiled"};
  std::array<cuuint32_t, rank> element_strides;
  element_strides.fill(1);
  const CUtensorMapL2promotion l2 =
      promotion == Promotion::bytes_128 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B : CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  const CUresult result = function(&map, type, rank, const_cast<void*>(base), box.sizes.data(), box.strides.data(),
                                   box.box.data(), element_strides.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
                                   swizzle_mode(swizzle), l2, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return {};
  return {GATEFOLD_ERROR_DEVICE, concat("cuTensorMapEncodeTiled: error ", static_cast<int>(result), " for ",
                                        box.sizes[1], " x ", box.sizes[0], " elements at ", base)};
}

cuuint64_t bytes(std::int64_t elements) { return static_cast<cuuint64_t>(elements) * 2; }

}  // namespace

Status encode_matrix(CUtensorMap& map, CUtensorMapDataType type, const MatrixView& view, int box_rows, int box_columns,
                     Swizzle swizzle) {
  const Box<2> box{{static_cast<cuuint64_t>(view.columns), static_cast<cuuint64_t>(view.rows)},
                   {bytes(view.ld)},
                   {static_cast<cuuint32_t>(box_columns), static_cast<cuuint32_t>(box_rows)}};
  return encode(map, type, view.base, box, swizzle, Promotion::bytes_256);
}

Status encode_half(CUtensorMap& map, CUtensorMapDataType type, const MatrixView& half, const LineMap& lines,
                   int box_rows, Promotion promotion) {
  const std::int64_t block = lines.block;
  const bool interleaved = lines.period != block;
  const auto in_block = static_cast<cuuint32_t>(interleaved ? std::min<std::int64_t>(block, box_rows) : box_rows);
  const Box<3> box{{static_cast<cuuint64_t>(half.columns), static_cast<cuuint64_t>(block),
                    static_cast<cuuint64_t>(half.rows / block)},
                   {bytes(half.ld), bytes(half.ld * lines.period)},
                   {64, in_block, static_cast<cuuint32_t>(box_rows) / in_block}};
  const auto* first = static_cast<const std::byte*>(half.base) + half.ld * lines.first * 2;
  return encode(map, type, first, box, Swizzle::bytes_128, promotion);
}

}  // namespace gatefold::cuda
