#include "cuda/copy_engine/tensor_map.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <string>

#include "cuda/common/driver.hpp"
#include "cuda/common/error.hpp"

namespace gatefold::cuda {
namespace {

using Encode = decltype(&::cuTensorMapEncodeTiled);

Encode encode_function() {
  static const Encode function = [] {
    Encode found = nullptr;
    find_driver_function("cuTensorMapEncodeTiled", found);
    return found;
  }();
  return function;
}

// Of the current device. The runtime's errors have the driver's numbers. A value that doesn't fit is the tensor's; what
// else there is need not be: the fault of an earlier kernel is reported here as well.
Status status_of_encoding(CUresult result, cuuint64_t rows, cuuint64_t columns, const void* base) {
  int device = 0;
  static_cast<void>(cudaGetDevice(&device));
  std::string doing = "cuTensorMapEncodeTiled";
  if (result == CUDA_ERROR_INVALID_VALUE) doing += concat(" of ", rows, " x ", columns, " elements at ", base);
  return status_of(static_cast<cudaError_t>(result), doing.c_str(), device);
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

CUtensorMapDataType tensor_type(DType type) {
  switch (type) {
    case DType::bf16: return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::fp16: return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::fp32: break;
  }
  return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
}

template <std::size_t rank>
Status encode(CUtensorMap& map, DType type, const void* base, const Box<rank>& box, Swizzle swizzle,
              Promotion promotion) {
  const Encode function = encode_function();
  if (function == nullptr) return {GATEFOLD_ERROR_DEVICE, "the driver has no cuTensorMapEncodeTiled"};
  std::array<cuuint32_t, rank> element_strides;
  element_strides.fill(1);
  const CUtensorMapL2promotion l2 =
      promotion == Promotion::bytes_128 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B : CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  const CUresult result =
      function(&map, tensor_type(type), rank, const_cast<void*>(base), box.sizes.data(), box.strides.data(),
               box.box.data(), element_strides.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_mode(swizzle), l2,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? Status{} : status_of_encoding(result, box.sizes[1], box.sizes[0], base);
}

cuuint64_t bytes(const MatrixView& view, std::int64_t elements) {
  return static_cast<cuuint64_t>(elements * size_of(view.type));
}

// The rows that `lines` numbers as two dimensions of a tensor: in a block, and blocks.
struct Rows {
  cuuint64_t block, blocks;
  cuuint64_t stride, block_stride;  // bytes; of a single block the former: its own may exceed a descriptor
  cuuint32_t box_rows, box_blocks;
  cuuint32_t line;  // elements of swizzle_row_bytes
  const std::byte* first;

  Rows(const MatrixView& view, const LineMap& lines, int box)
      : block(static_cast<cuuint64_t>(lines.block)),
        blocks(static_cast<cuuint64_t>(view.rows / lines.block)),
        stride(bytes(view, view.ld)),
        block_stride(blocks == 1 ? stride : bytes(view, view.ld * lines.period)),
        box_rows(static_cast<cuuint32_t>(lines.period != lines.block ? std::min<std::int64_t>(lines.block, box) : box)),
        box_blocks(static_cast<cuuint32_t>(box) / box_rows),
        line(static_cast<cuuint32_t>(swizzle_row_bytes / size_of(view.type))),
        first(static_cast<const std::byte*>(view.base) + bytes(view, view.ld * lines.first)) {}
};

}  // namespace

Status encode_matrix(CUtensorMap& map, const MatrixView& view, int box_rows, int box_columns, Swizzle swizzle) {
  const Box<2> box{{static_cast<cuuint64_t>(view.columns), static_cast<cuuint64_t>(view.rows)},
                   {bytes(view, view.ld)},
                   {static_cast<cuuint32_t>(box_columns), static_cast<cuuint32_t>(box_rows)}};
  return encode(map, view.type, view.base, box, swizzle, Promotion::bytes_256);
}

Status encode_lines(CUtensorMap& map, const MatrixView& view, const LineMap& lines, int box_rows, Promotion promotion) {
  const Rows rows(view, lines, box_rows);
  const Box<3> box{{static_cast<cuuint64_t>(view.columns), rows.block, rows.blocks},
                   {rows.stride, rows.block_stride},
                   {rows.line, rows.box_rows, rows.box_blocks}};
  return encode(map, view.type, rows.first, box, Swizzle::bytes_128, promotion);
}

Status encode_runs(CUtensorMap& map, const MatrixView& view, const LineMap& lines, int box_rows, int box_lines,
                   Promotion promotion) {
  const Rows rows(view, lines, box_rows);
  const Box<4> box{{rows.line, rows.block, rows.blocks, static_cast<cuuint64_t>(view.columns) / rows.line},
                   {rows.stride, rows.block_stride, swizzle_row_bytes},
                   {rows.line, rows.box_rows, rows.box_blocks, static_cast<cuuint32_t>(box_lines)}};
  return encode(map, view.type, rows.first, box, Swizzle::bytes_128, promotion);
}

Status encode_pair(CUtensorMap& map, const PairOfMatrices& pair, int box_eights, Promotion promotion) {
  const MatrixView& view = pair.view;
  const auto box_columns = static_cast<cuuint32_t>(swizzle_row_bytes / size_of(view.type));
  const Box<4> box{{static_cast<cuuint64_t>(view.columns), 8, 2, static_cast<cuuint64_t>(view.rows / 8)},
                   {bytes(view, view.ld), static_cast<cuuint64_t>(pair.to_second), bytes(view, view.ld * pair.eights)},
                   {box_columns, 8, 2, static_cast<cuuint32_t>(box_eights)}};
  return encode(map, view.type, view.base, box, Swizzle::bytes_128, promotion);
}

}  // namespace gatefold::cuda
