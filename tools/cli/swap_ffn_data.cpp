#include "cli/swap_ffn_data.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "checkpoint/input_error.hpp"
#include "checkpoint/safetensors_writer.hpp"
#include "cli/element.hpp"
#include "cli/random.hpp"

namespace gatefold::cli {
namespace {

using checkpoint::SafetensorsFile;

using checkpoint::throw_input_error;

checkpoint::Shape shape_of(const gatefold_swap_ffn_tensor& tensor) {
  return {tensor.shape, tensor.shape + tensor.rank};
}

std::int64_t elements_of(const checkpoint::Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

// Of this rank and of one of the three types.
const checkpoint::Tensor& find(const SafetensorsFile& file, const std::string& name, std::size_t rank) {
  const checkpoint::Tensor& tensor = file.at(name);
  if (tensor.shape.size() != rank) {
    throw_input_error(file.path().string(), ": ", name, ": shape ", checkpoint::to_string(tensor.shape), " has rank ",
                      tensor.shape.size(), ", expected ", rank);
  }
  return tensor;
}

void require_shape(const SafetensorsFile& file, const checkpoint::Tensor& tensor, const checkpoint::Shape& expected) {
  if (tensor.shape == expected) return;
  throw_input_error(file.path().string(), ": ", tensor.name, ": shape ", checkpoint::to_string(tensor.shape),
                    ", expected ", checkpoint::to_string(expected));
}

gatefold_dtype dtype_of(const SafetensorsFile& file, const checkpoint::Tensor& tensor) {
  if (const auto dtype = checkpoint::gatefold_dtype_of(tensor.type)) return *dtype;
  throw_input_error(file.path().string(), ": ", tensor.name, ": dtype ", tensor.type.name, " is not BF16, F16 or F32");
}

// The tensor's elements as `dtype`, each rounded once where that is another type.
Bytes converted(const checkpoint::Tensor& tensor, gatefold_dtype from, gatefold_dtype to) {
  const checkpoint::AlignedData data(tensor);
  if (from == to) return {data.data(), data.data() + tensor.bytes};
  const std::int64_t count = elements_of(tensor.shape);
  Bytes out(static_cast<std::size_t>(count * size_of(to)));
  with_element(from, [&](auto source) {
    with_element(to, [&](auto target) {
      const auto* in = reinterpret_cast<const typename decltype(source)::Stored*>(data.data());
      auto* converted_to = reinterpret_cast<typename decltype(target)::Stored*>(out.data());
      for (std::int64_t i = 0; i < count; ++i) converted_to[i] = target.store(source.load(in[i]));
    });
  });
  return out;
}

// Reads a tensor of a file whose tensors are all of one type.
Bytes read(const SafetensorsFile& file, const std::string& name, const checkpoint::Shape& expected,
           gatefold_dtype stored, gatefold_dtype wanted) {
  const checkpoint::Tensor& tensor = find(file, name, expected.size());
  require_shape(file, tensor, expected);
  if (const gatefold_dtype dtype = dtype_of(file, tensor); dtype != stored) {
    throw_input_error(file.path().string(), ": ", name, ": dtype ", tensor.type.name, ", but gate_w's is ",
                      name_of(stored));
  }
  return converted(tensor, stored, wanted);
}

std::vector<std::uint8_t> read_map(const SafetensorsFile& file, const checkpoint::Shape& expected) {
  const checkpoint::Tensor& tensor = find(file, "stream_map", 2);
  if (tensor.type.name != "U8") {
    throw_input_error(file.path().string(), ": stream_map: dtype ", tensor.type.name, ", expected U8");
  }
  require_shape(file, tensor, expected);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(tensor.data);
  std::vector<std::uint8_t> map(bytes, bytes + tensor.bytes);
  if (!map.empty() &&
      gatefold_swap_ffn_check_stream_map(map.data(), static_cast<std::int64_t>(map.size())) != GATEFOLD_SUCCESS) {
    throw_input_error(file.path().string(), ": ", gatefold_last_error());
  }
  return map;
}

gatefold_swap_ffn_tensor tensor_at(const SwapFfnDesc& desc, int index) {
  const gatefold_swap_ffn_desc c_desc = desc.c_desc();
  gatefold_swap_ffn_tensor tensor{};
  if (gatefold_swap_ffn_weight(&c_desc, index, &tensor) == 0) throw_input_error(gatefold_last_error());
  return tensor;
}

// Such that every stage of a step comes out near 1: weights by what they are summed over, norms and scales near 1.
double deviation_of(const std::string& name, const SwapFfnDesc& d) {
  const auto over_root = [](std::int64_t n) { return 1.0 / std::sqrt(static_cast<double>(n)); };
  if (name == "core_embed") return 1.0;
  if (name == "scale_w" || name == "shift_w" || name == "alpha_w") return over_root(d.core_embed_size);
  if (name == "router_w" || name == "gate_w" || name == "up_w" || name == "basis") return over_root(d.hidden_size);
  if (name == "router_swap_w" || name == "bank_w") return over_root(d.router_width);
  if (name == "down_w") return over_root(d.intermediate_size);
  if (name == "decoder") return over_root(d.collapse_width);
  return 0.1;  // biases and norms
}

// A description holds no string of its own.
const char* kept_name(const std::string& impl) {
  if (impl.empty()) return nullptr;
  for (const char* name : {"cpu", "fused"}) {
    if (impl == name) return name;
  }
  throw_input_error("--impl: \"", impl, "\" is not one of cpu, fused");
}

void add_one(Bytes& values, gatefold_dtype dtype) {
  with_element(dtype, [&](auto element) {
    auto* data = reinterpret_cast<typename decltype(element)::Stored*>(values.data());
    const std::size_t count = values.size() / sizeof *data;
    for (std::size_t i = 0; i < count; ++i) data[i] = element.store(element.load(data[i]) + 1.0F);
  });
}

Bytes drawn(gatefold_dtype dtype, std::int64_t count, double deviation, std::uint64_t seed) {
  Bytes values(static_cast<std::size_t>(count * size_of(dtype)));
  fill_random(values.data(), dtype, count, Distribution::normal(deviation), seed);
  return values;
}

}  // namespace

void SwapFfnFiles::add_to(const App& app, bool required) {
  app.add_option("--weights", weights, "Safetensors file with core_embed ... decoder").required(required);
  app.add_option("--state", state, "Safetensors file with ram [B, C, 4, D] and stream_map [B, C]").required(required);
  app.add_option("--input", input, "Safetensors file with x [B, D]").required(required);
  app.add_option("--events", events, "Events of a step").capture_default_str();
  app.add_option("--k-ffn", k_ffn, "MLPs of an event").capture_default_str();
  app.add_option("--eps", eps, "Of the RMS norms").capture_default_str();
  app.add_option("--dtype", dtype, "fp32, fp16 or bf16; default: the files', others convert them");
  app.add_option("--device", device, "cpu or cuda").capture_default_str();
  app.add_option("--impl", impl, "The step by its name: cpu, or fused on cuda; default: the device's");
}

void SwapFfnSizes::add_to(const App& app) {
  app.add_option("--batch", batch, "Sequences, B").capture_default_str();
  app.add_option("--hidden-size", desc.hidden_size, "D").capture_default_str();
  app.add_option("--intermediate-size", desc.intermediate_size, "F").capture_default_str();
  app.add_option("--cores", desc.cores, "C").capture_default_str();
  app.add_option("--core-embed-size", desc.core_embed_size, "E").capture_default_str();
  app.add_option("--router-width", desc.router_width, "R").capture_default_str();
  app.add_option("--collapse-heads", desc.collapse_heads, "K").capture_default_str();
  app.add_option("--collapse-width", desc.collapse_width, "Rc").capture_default_str();
  app.add_option("--events", desc.events, "Events of a step").capture_default_str();
  app.add_option("--k-ffn", desc.k_ffn, "MLPs of an event").capture_default_str();
  app.add_option("--eps", desc.eps, "Of the RMS norms").capture_default_str();
  app.add_option("--dtype", dtype, "fp32, fp16 or bf16").capture_default_str();
  app.add_option("--device", device, "cpu or cuda").capture_default_str();
  app.add_option("--impl", impl, "The step by its name: cpu, or fused on cuda; default: the device's");
  app.add_option("--seed", seed, "Of the data").capture_default_str();
}

SwapFfnDesc SwapFfnSizes::resolved() const {
  const gatefold_device parsed = parse_swap_ffn_device(device);
  require_at_least("--batch", batch, 1);
  SwapFfnDesc resolved = desc;
  resolved.dtype = parse_dtype(dtype);
  resolved.device = parsed;
  resolved.implementation = kept_name(impl);
  SwapFfn(resolved).workspace_size(batch);  // refuses what overflows, before anything is drawn
  return resolved;
}

gatefold_device parse_swap_ffn_device(const std::string& device) {
  if (device != "cpu" && device != "cuda") throw_input_error("--device: \"", device, "\" is not one of cpu, cuda");
  if (device == "cpu") return GATEFOLD_DEVICE_CPU;
  const char* why = nullptr;
  if (gatefold_device_count(GATEFOLD_DEVICE_CUDA, &why) > 0) return GATEFOLD_DEVICE_CUDA;
  throw_input_error("--device: cuda: ", why, "; take --device cpu");
}

SwapFfnData::SwapFfnData(const SwapFfnFiles& files) {
  const gatefold_device device = parse_swap_ffn_device(files.device);
  const SafetensorsFile weights(files.weights);
  const checkpoint::Shape embed = find(weights, "core_embed", 2).shape;
  const checkpoint::Tensor& gate = find(weights, "gate_w", 2);
  const checkpoint::Shape router = find(weights, "router_w", 2).shape;
  const checkpoint::Shape basis = find(weights, "basis", 3).shape;
  const gatefold_dtype stored = dtype_of(weights, gate);
  desc_ = {.dtype = files.dtype.empty() ? stored : parse_dtype(files.dtype),
           .device = device,
           .hidden_size = gate.shape[1],
           .intermediate_size = gate.shape[0],
           .cores = embed[0],
           .core_embed_size = embed[1],
           .router_width = router[0],
           .collapse_heads = basis[0],
           .collapse_width = basis[1],
           .events = files.events,
           .k_ffn = files.k_ffn,
           .eps = files.eps,
           .implementation = kept_name(files.impl)};
  for (int i = 0; i < GATEFOLD_SWAP_FFN_WEIGHTS; ++i) {
    const gatefold_swap_ffn_tensor tensor = tensor_at(desc_, i);
    weights_.push_back({tensor, read(weights, tensor.name, shape_of(tensor), stored, desc_.dtype)});
  }

  const SafetensorsFile input(files.input);
  batch_ = find(input, "x", 2).shape[0];
  x = read(input, "x", {batch_, desc_.hidden_size}, stored, desc_.dtype);
  const SafetensorsFile state(files.state);
  ram = read(state, "ram", {batch_, desc_.cores, GATEFOLD_SWAP_FFN_BANKS, desc_.hidden_size}, stored, desc_.dtype);
  stream_map = read_map(state, {batch_, desc_.cores});
}

SwapFfnData::SwapFfnData(const SwapFfnSizes& sizes) : desc_(sizes.resolved()), batch_(sizes.batch) {
  std::uint64_t seed = sizes.seed;
  const gatefold_dtype dtype = desc_.dtype;
  for (int i = 0; i < GATEFOLD_SWAP_FFN_WEIGHTS; ++i) {
    const gatefold_swap_ffn_tensor tensor = tensor_at(desc_, i);
    const std::string name = tensor.name;
    Bytes values = drawn(dtype, elements_of(shape_of(tensor)), deviation_of(name, desc_), random_bits(seed, 1 + i));
    if (name == "router_norm" || name == "ffn_norm") add_one(values, dtype);
    weights_.push_back({tensor, std::move(values)});
  }
  x = drawn(dtype, batch_ * desc_.hidden_size, 1.0, random_bits(seed, 100));
  ram = drawn(dtype, rows() * GATEFOLD_SWAP_FFN_BANKS * desc_.hidden_size, 1.0, random_bits(seed, 101));
  stream_map.assign(static_cast<std::size_t>(rows()), GATEFOLD_SWAP_FFN_INITIAL_MAP);
}

void SwapFfnData::write(const std::string& weights, const std::string& state, const std::string& input) const {
  std::vector<checkpoint::Tensor> tensors;
  for (const Named& named : weights_) {
    tensors.push_back(
        checkpoint::make_tensor(named.tensor.name, desc_.dtype, shape_of(named.tensor), named.values.data()));
  }
  checkpoint::write_safetensors(weights, std::move(tensors));
  checkpoint::write_safetensors(
      state, {checkpoint::make_tensor("ram", desc_.dtype,
                                      {batch_, desc_.cores, GATEFOLD_SWAP_FFN_BANKS, desc_.hidden_size}, ram.data()),
              stream_map_tensor(*this)});
  checkpoint::write_safetensors(input,
                                {checkpoint::make_tensor("x", desc_.dtype, {batch_, desc_.hidden_size}, x.data())});
}

std::string title_of(const SwapFfnDesc& desc) {
  return fmt::format("D {}, F {}, {} cores, {} events, {} MLPs an event, {}, {}", desc.hidden_size,
                     desc.intermediate_size, desc.cores, desc.events, desc.k_ffn, name_of(desc.dtype),
                     name_of(desc.device));
}

Json sizes_of(const SwapFfnData& data) {
  const SwapFfnDesc& c = data.desc();
  return {{"op", "swap_ffn"},
          {"batch", data.batch()},
          {"hidden_size", c.hidden_size},
          {"intermediate_size", c.intermediate_size},
          {"cores", c.cores},
          {"events", c.events},
          {"k_ffn", c.k_ffn},
          {"dtype", name_of(c.dtype)}};
}

checkpoint::Tensor stream_map_tensor(const SwapFfnData& data) {
  return {"stream_map",
          *checkpoint::find_element_type("U8"),
          {data.batch(), data.desc().cores},
          reinterpret_cast<const std::byte*>(data.stream_map.data()),
          data.stream_map.size()};
}

gatefold_swap_ffn_weights weights_struct(const std::vector<const void*>& pointers) {
  gatefold_swap_ffn_weights w{};
  w.struct_size = sizeof w;
  // The struct's order is the tensors'.
  std::memcpy(reinterpret_cast<std::byte*>(&w.core_embed), reinterpret_cast<const std::byte*>(pointers.data()),
              GATEFOLD_SWAP_FFN_WEIGHTS * sizeof(void*));
  return w;
}

gatefold_swap_ffn_weights SwapFfnData::weights() const {
  std::vector<const void*> pointers;
  for (const Named& named : weights_) pointers.push_back(named.values.data());
  return weights_struct(pointers);
}

std::vector<std::span<const std::byte>> SwapFfnData::weight_bytes() const {
  std::vector<std::span<const std::byte>> all;
  for (const Named& named : weights_) all.emplace_back(named.values.data(), named.values.size());
  return all;
}

const Bytes& SwapFfnData::weight(const std::string& name) const {
  return std::ranges::find_if(weights_, [&](const Named& named) { return named.tensor.name == name; })->values;
}

}  // namespace gatefold::cli
