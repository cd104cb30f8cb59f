#include "api/swap_ffn_validate.hpp"

#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <span>

#include "api/enum_number.hpp"
#include "api/struct_size.hpp"

namespace gatefold {
namespace {

using swap_ffn::Config;
using swap_ffn::Weight;

// In bytes as doubles it still fits 64 bits, with room for the sum of all tensors.
constexpr std::int64_t max_elements = std::numeric_limits<std::int64_t>::max() / 1024;

bool multiplies(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product) || product > max_elements) return false;
  }
  return true;
}

Status check_sizes(const gatefold_swap_ffn_desc& desc) {
  const std::array<std::pair<const char*, std::int64_t>, 9> sizes{{{"hidden_size", desc.hidden_size},
                                                                   {"intermediate_size", desc.intermediate_size},
                                                                   {"cores", desc.cores},
                                                                   {"core_embed_size", desc.core_embed_size},
                                                                   {"router_width", desc.router_width},
                                                                   {"collapse_heads", desc.collapse_heads},
                                                                   {"collapse_width", desc.collapse_width},
                                                                   {"events", desc.events},
                                                                   {"k_ffn", desc.k_ffn}}};
  for (const auto& [name, size] : sizes) {
    if (size < 1) return invalid(name, ": ", size, " is less than 1");
  }
  if (!multiplies({desc.events, desc.k_ffn})) {
    return invalid("events: ", desc.events, " times k_ffn ", desc.k_ffn, " overflow 64-bit indexing");
  }
  if (!(desc.eps > 0.0) || std::isinf(desc.eps)) return invalid("eps: ", desc.eps, " is not positive and finite");
  return {};
}

Status check_elements(const Config& config) {
  for (std::size_t i = 0; i < swap_ffn::weight_count; ++i) {
    const gatefold_swap_ffn_tensor t = swap_ffn::tensor_of(config, static_cast<Weight>(i));
    if (!multiplies({t.shape[0], t.rank > 1 ? t.shape[1] : 1, t.rank > 2 ? t.shape[2] : 1})) {
      return invalid(t.name, ": ", t.shape[0], " x ", t.rank > 1 ? t.shape[1] : 1,
                     " elements overflow 64-bit indexing");
    }
  }
  if (!multiplies({config.cores, config.hidden_size})) {
    return invalid("cores: ", config.cores, " x hidden_size ", config.hidden_size, " overflow 64-bit indexing");
  }
  return {};
}

// A contiguous tensor in memory.
struct Extent {
  const char* name;
  const void* data;
  std::int64_t bytes;
  std::int64_t element;
  bool written = false;
  bool optional = false;
};

std::uintptr_t address(const Extent& e) { return reinterpret_cast<std::uintptr_t>(e.data); }

Status check_extent(const Extent& e) {
  if (e.data == nullptr) {
    if (e.optional) return {};
    return invalid(e.name, ": null pointer, expected ", e.bytes / e.element, " elements");
  }
  if (address(e) % static_cast<std::uintptr_t>(e.element) != 0) {
    return invalid(e.name, ": address ", e.data, " is not aligned to the element size ", e.element);
  }
  if (static_cast<std::uintptr_t>(e.bytes) > std::numeric_limits<std::uintptr_t>::max() - address(e)) {
    return invalid(e.name, ": ", e.bytes, " bytes at ", e.data, " overflow the address space");
  }
  return {};
}

bool overlaps(const Extent& a, const Extent& b) {
  return a.data != nullptr && b.data != nullptr && address(a) < address(b) + static_cast<std::uintptr_t>(b.bytes) &&
         address(b) < address(a) + static_cast<std::uintptr_t>(a.bytes);
}

Status check_extents(std::span<const Extent> extents) {
  for (const Extent& e : extents) {
    if (Status status = check_extent(e); !status.ok()) return status;
  }
  for (const Extent& out : extents) {
    for (const Extent& other : extents) {
      if (!out.written || &other == &out || !overlaps(out, other)) continue;
      return invalid(out.name, ": ", out.bytes, " bytes at ", out.data, " overlap ", other.name, ", ", other.bytes,
                     " bytes at ", other.data);
    }
  }
  return {};
}

template <class Byte>
const std::byte* bytes(const Byte* pointer) {
  return reinterpret_cast<const std::byte*>(pointer);
}

}  // namespace

Status validate(const gatefold_swap_ffn_desc& given, Config& config) {
  gatefold_swap_ffn_desc desc;
  if (Status status = read_struct("desc", given, {}, desc); !status.ok()) return status;
  if (const int dtype = enum_number(desc.dtype); dtype < GATEFOLD_DTYPE_FP32 || dtype > GATEFOLD_DTYPE_BF16) {
    return invalid("dtype: ", dtype, " is not a gatefold_dtype (1 to 3)");
  }
  if (const int device = enum_number(desc.device); device < GATEFOLD_DEVICE_CPU || device > GATEFOLD_DEVICE_CUDA) {
    return invalid("device: ", device, " is not a gatefold_device (1 or 2)");
  }
  if (Status status = check_sizes(desc); !status.ok()) return status;
  config = {.dtype = static_cast<DType>(desc.dtype),
            .device = static_cast<Device>(desc.device),
            .hidden_size = desc.hidden_size,
            .intermediate_size = desc.intermediate_size,
            .cores = desc.cores,
            .core_embed_size = desc.core_embed_size,
            .router_width = desc.router_width,
            .collapse_heads = desc.collapse_heads,
            .collapse_width = desc.collapse_width,
            .events = desc.events,
            .k_ffn = desc.k_ffn,
            .eps = desc.eps};
  return check_elements(config);
}

Status validate(const Config& config, const gatefold_swap_ffn_weights& given, swap_ffn::Weights& pointers) {
  gatefold_swap_ffn_weights w;
  if (Status status = read_struct("weights", given, {}, w); !status.ok()) return status;
  const std::array<const void*, swap_ffn::weight_count> all{
      w.core_embed,  w.scale_w,  w.scale_b,       w.shift_w,       w.shift_b, w.alpha_w, w.alpha_b,
      w.router_norm, w.router_w, w.router_swap_w, w.router_swap_b, w.bank_w,  w.bank_b,  w.ffn_norm,
      w.gate_w,      w.up_w,     w.down_w,        w.basis,         w.decoder};
  const std::int64_t element = size_of(config.dtype);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const gatefold_swap_ffn_tensor tensor = swap_ffn::tensor_of(config, static_cast<Weight>(i));
    if (Status status = check_extent({tensor.name, all[i], swap_ffn::elements(tensor) * element, element});
        !status.ok()) {
      return status;
    }
    pointers[i] = bytes(all[i]);
  }
  return {};
}

Status check_batch(const Config& config, const char* name, std::int64_t batch) {
  if (batch < 0) return invalid(name, ": ", batch, " is negative");
  const bool fits = multiplies({batch, config.cores, config.hidden_size, swap_ffn::banks}) &&
                    multiplies({batch, config.cores, config.hidden_size, config.slices()}) &&
                    multiplies({batch, config.collapse_heads, config.hidden_size}) &&
                    multiplies({batch, config.collapse_width});
  if (!fits) return invalid(name, ": ", batch, " sequences of ", config.cores, " cores overflow 64-bit indexing");
  return {};
}

Status check_stream_map(const std::uint8_t* map, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (swap_ffn::is_permutation(map[i])) continue;
    return invalid("stream_map: element ", i, " is ", static_cast<int>(map[i]), ", lanes ", swap_ffn::lane(map[i], 0),
                   ' ', swap_ffn::lane(map[i], 1), ' ', swap_ffn::lane(map[i], 2), ' ', swap_ffn::lane(map[i], 3),
                   ", which is no permutation of 0 1 2 3");
  }
  return {};
}

Status validate(const Config& config, const gatefold_swap_ffn_args& args, swap_ffn::StepOperands& operands) {
  const std::int64_t element = size_of(config.dtype);
  const std::int64_t rows = args.batch * config.cores;
  const std::int64_t vectors = args.batch * config.row_bytes();
  const std::array extents{
      Extent{"x", args.x, vectors, element},
      Extent{"ram", args.ram, rows * swap_ffn::banks * config.row_bytes(), element, true},
      Extent{"stream_map", args.stream_map, rows, 1, true},
      Extent{"delta", args.delta, vectors, element, true},
      Extent{"states", args.states, config.slices() * rows * config.row_bytes(), element, true, true},
      Extent{"decisions", args.decisions, config.events * rows, 1, true, true}};
  if (Status status = check_extents(extents); !status.ok()) return status;
  if (config.device == Device::cpu) {
    if (args.stream != nullptr) return invalid("stream: ", args.stream, " was given, but the CPU expects null");
    if (Status status = check_stream_map(args.stream_map, rows); !status.ok()) return status;
  }
  operands = {.batch = args.batch,
              .prepared = bytes(args.prepared),
              .x = bytes(args.x),
              .ram = static_cast<std::byte*>(args.ram),
              .stream_map = args.stream_map,
              .delta = static_cast<std::byte*>(args.delta),
              .workspace = static_cast<std::byte*>(args.workspace),
              .workspace_size = args.workspace_size,
              .stream = args.stream,
              .states = static_cast<std::byte*>(args.states),
              .decisions = args.decisions,
              .pass_seconds = args.pass_seconds};
  return {};
}

Status validate(const Config& config, const gatefold_swap_ffn_reference_args& args,
                swap_ffn::ReferenceOperands& operands) {
  const std::int64_t rows = args.batch * config.cores;
  const std::int64_t doubles = rows * config.hidden_size * 8;
  const std::array extents{Extent{"x", args.x, args.batch * config.row_bytes(), size_of(config.dtype)},
                           Extent{"ram", args.ram, doubles * swap_ffn::banks, 8, true},
                           Extent{"stream_map", args.stream_map, rows, 1, true},
                           Extent{"delta", args.delta, args.batch * config.hidden_size * 8, 8, true},
                           Extent{"cores", args.cores, doubles, 8, true, true},
                           Extent{"decisions", args.decisions, config.events * rows, 1, true, true}};
  if (Status status = check_extents(extents); !status.ok()) return status;
  operands = {.batch = args.batch,
              .x = bytes(args.x),
              .ram = args.ram,
              .stream_map = args.stream_map,
              .delta = args.delta,
              .cores = args.cores,
              .decisions = args.decisions};
  return check_stream_map(args.stream_map, rows);
}

Status validate(const Config& config, const gatefold_swap_ffn_check_args& args, swap_ffn::CheckOperands& operands) {
  const std::int64_t element = size_of(config.dtype);
  const std::int64_t rows = args.batch * config.cores;
  const std::int64_t ram = rows * swap_ffn::banks * config.row_bytes();
  const std::int64_t vectors = args.batch * config.row_bytes();
  const std::array extents{Extent{"x", args.x, vectors, element},
                           Extent{"ram_before", args.ram_before, ram, element},
                           Extent{"stream_map_before", args.stream_map_before, rows, 1},
                           Extent{"ram", args.ram, ram, element},
                           Extent{"stream_map", args.stream_map, rows, 1},
                           Extent{"delta", args.delta, vectors, element},
                           Extent{"states", args.states, config.slices() * rows * config.row_bytes(), element},
                           Extent{"decisions", args.decisions, config.events * rows, 1}};
  if (Status status = check_extents(extents); !status.ok()) return status;
  operands = {.batch = args.batch,
              .x = bytes(args.x),
              .ram_before = bytes(args.ram_before),
              .stream_map_before = args.stream_map_before,
              .ram = bytes(args.ram),
              .stream_map = args.stream_map,
              .delta = bytes(args.delta),
              .states = bytes(args.states),
              .decisions = args.decisions};
  return check_stream_map(args.stream_map_before, rows);
}

}  // namespace gatefold
