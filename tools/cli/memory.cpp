#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "checkpoint/input_error.hpp"
#include "cli/block.hpp"
#include "cli/commands.hpp"
#include "cli/report.hpp"

namespace gatefold::cli {
namespace {

struct Options {
  std::string model = "all";
  std::int64_t chunk = 512;
  std::string dtype = "bf16";
  OutputOptions output;
};

constexpr const char* help =
    "Activation memory of the MLP's first half while a chunk of a prompt is read, unfused against fused.\n"
    "T: tokens of the chunk; D: hidden size; F: intermediate size; s: bytes of an element.\n"
    "  up_scaling          F/D\n"
    "  unfused_bytes       3 T F s: gate, up and h\n"
    "  overwriting_bytes   2 T F s: h is written over gate or up\n"
    "  fused_bytes         T F s: h alone\n"
    "  saved_bytes         unfused_bytes - fused_bytes\n"
    "  layer_share_saved   2F/(5D + 3F): of a decoder layer's activations next to an efficient attention kernel,\n"
    "                      4 T D + 3 T F + T D elements unfused, 4 T D + T F + T D fused\n"
    "  overwriting_layer_share_saved   F/(4D + 2F): the same from 3 T D + 2 T F + T D to 3 T D + T F + T D\n"
    "  kv_bytes_per_token  keys and values of one token over all layers: 2 x layers x KV heads x head size x s\n"
    "  extra_kv_tokens     saved_bytes / kv_bytes_per_token, whole tokens. Activation buffers are reused from layer\n"
    "                      to layer, so they are counted once\n"
    "A mixture of experts is counted as one MLP of its intermediate size that every token passes.";

Json memory_row(const checkpoint::Preset& preset, std::int64_t chunk, gatefold_dtype dtype) {
  Block block{.dtype = dtype,
              .hidden_size = preset.hidden_size,
              .intermediate_size = preset.intermediate_size,
              .tokens = chunk};
  require_addressable(block);
  const auto D = static_cast<double>(preset.hidden_size);
  const auto F = static_cast<double>(preset.intermediate_size);
  const auto h_bytes = static_cast<std::int64_t>(block.h_bytes());
  const std::int64_t saved = 2 * h_bytes;
  Json row{{"model", preset.name},
           {"chunk", chunk},
           {"up_scaling", F / D},
           {"unfused_bytes", 3 * h_bytes},
           {"overwriting_bytes", 2 * h_bytes},
           {"fused_bytes", h_bytes},
           {"saved_bytes", saved},
           {"layer_share_saved", 2.0 * F / (5.0 * D + 3.0 * F)},
           {"overwriting_layer_share_saved", F / (4.0 * D + 2.0 * F)},
           {"kv_bytes_per_token", nullptr},
           {"extra_kv_tokens", nullptr}};
  if (preset.num_kv_heads && preset.head_dim) {
    const std::int64_t kv_bytes = 2 * preset.num_layers * *preset.num_kv_heads * *preset.head_dim * size_of(dtype);
    row["kv_bytes_per_token"] = kv_bytes;
    row["extra_kv_tokens"] = saved / kv_bytes;
  }
  return row;
}

// null last
bool more_tokens(const Json& a, const Json& b) {
  const auto tokens = [](const Json& row) {
    return row["extra_kv_tokens"].is_null() ? std::int64_t{-1} : row["extra_kv_tokens"].get<std::int64_t>();
  };
  return tokens(a) > tokens(b);
}

int memory(const Options& options) {
  options.output.validate();
  require_at_least("--chunk", options.chunk, 1);
  const gatefold_dtype dtype = parse_dtype(options.dtype);

  Report report;
  if (options.model == "all") {
    for (const checkpoint::Preset& preset : checkpoint::presets()) {
      report.rows.push_back(memory_row(preset, options.chunk, dtype));
    }
  } else {
    report.rows.push_back(memory_row(checkpoint::find_preset(options.model), options.chunk, dtype));
  }
  std::stable_sort(report.rows.begin(), report.rows.end(), more_tokens);

  report.title =
      fmt::format("Activations of the MLP's first half, {} tokens at a time, {} (columns: gatefold memory --help)",
                  options.chunk, name_of(dtype));
  report.columns = {{"model", "model", plain_text},
                    {"up_scaling", "F/D", number_text},
                    {"unfused_bytes", "unfused", bytes_text},
                    {"overwriting_bytes", "overwriting", bytes_text},
                    {"fused_bytes", "fused", bytes_text},
                    {"saved_bytes", "saved", bytes_text},
                    {"layer_share_saved", "of the layer", percent_text},
                    {"overwriting_layer_share_saved", "if overwriting", percent_text},
                    {"kv_bytes_per_token", "KV cache per token", bytes_text},
                    {"extra_kv_tokens", "extra KV tokens", plain_text}};
  for (const Json& row : report.rows) {
    if (!row["extra_kv_tokens"].is_null()) continue;
    report.notes.emplace_back("-: the preset does not say how many key-value heads the model caches.");
    break;
  }
  report.context = base_context();
  report.context["dtype"] = name_of(dtype);
  report.context["notes"] = report.notes;
  options.output.emit(report);
  return 0;
}

}  // namespace

Command add_memory(const App& root) {
  const App app =
      root.add_subcommand("memory", "Activation memory that fusing saves, and the KV cache it makes room for");
  auto options = std::make_shared<Options>();
  app.footer(help);
  app.add_option("--model", options->model, "A preset, or all").capture_default_str();
  app.add_option("--chunk", options->chunk, "Tokens of a prefill chunk").capture_default_str();
  app.add_option("--dtype", options->dtype, "fp32, fp16 or bf16").capture_default_str();
  options->output.add_to(app);
  return {app, [options] { return memory(*options); }};
}

}  // namespace gatefold::cli
