#include "cli/run_job.hpp"

#include <algorithm>
#include <filesystem>
#include <random>
#include <utility>

#include "checkpoint/input_error.hpp"
#include "checkpoint/safetensors_writer.hpp"

namespace gatefold::cli {
namespace {

constexpr std::int64_t default_tokens = 256;

// Refuses to write over what is read.
void require_other_files(const RunOptions& options, const checkpoint::Checkpoint& checkpoint) {
  for (const auto& [what, file] : {std::pair("--output", options.output), std::pair("--report", options.table.file)}) {
    for (const std::filesystem::path& read : checkpoint.files()) {
      require_other_file(what, file, "a part of the checkpoint", read);
    }
    require_other_file(what, file, "--input", options.input);
  }
}

checkpoint::MlpLayer open_layer(const RunOptions& options) {
  const checkpoint::Checkpoint checkpoint(options.checkpoint);
  require_other_files(options, checkpoint);
  return checkpoint.layer(options.layer);
}

Block block_of(const RunOptions& options, const checkpoint::MlpLayer& layer) {
  Block block{.device = parse_present_device(options.device),
              .dtype = layer.dtype,
              .layout = layer.layout,
              .hidden_size = layer.hidden_size,
              .intermediate_size = layer.intermediate_size,
              .tokens = options.tokens.value_or(default_tokens),
              .implementation = options.implementation,
              .biases = layer.biases()};
  require_known_implementation(block.device, block.implementation);
  require_addressable(block);
  if (!options.activation.empty()) {
    block.activation = parse_activation(options.activation);
  } else if (layer.activation) {
    block.activation = *layer.activation;
  } else {
    checkpoint::throw_input_error(options.checkpoint, ": no config.json says which activation: give --activation NAME");
  }
  return block;
}

Input make_input(const RunOptions& options, const Block& block, std::uint64_t seed) {
  const Input::Wanted wanted{block.dtype, block.hidden_size, options.tokens};
  return options.input.empty() ? Input(seed, block.tokens, wanted) : Input(options.input, wanted);
}

Block with_tokens(Block block, std::int64_t tokens) {
  block.tokens = tokens;
  require_addressable(block);
  return block;
}

// As many as the double-precision check gets through in some ten seconds on two cores, and never fewer than 16.
std::int64_t affordable_rows(const Block& block) {
  constexpr std::int64_t products = 4'000'000'000;
  const std::int64_t per_row = std::max<std::int64_t>(block.intermediate_size * block.hidden_size, 1);
  return std::max<std::int64_t>(products / per_row, 16);
}

std::string way_name(const Way& way) {
  if (way.provider == "eager") return "unfused";
  return way.provider == "unfused" ? "act_and_mul" : name_of(way.op);
}

}  // namespace

RunJob::RunJob(const RunOptions& options)
    : options_(options),
      layer_(open_layer(options)),
      seed_(options.seed ? *options.seed : std::random_device{}()),
      block_(block_of(options, layer_)),
      input_(make_input(options, block_, seed_)),
      checked_rows_(sample_rows(input_.tokens(), options.check_rows.value_or(affordable_rows(block_)))),
      backend_(make_backend(block_.device)),
      weights_(*backend_, layer_),
      x_(DeviceBuffer::of(*backend_, input_.x())),
      checker_(checked_rows_, options.input.empty() ? GATEFOLD_DATA_ZERO_MEAN : GATEFOLD_DATA_ANY) {
  block_ = with_tokens(block_, input_.tokens());
  for (Way& way : ways_to_h(block_)) {
    std::string name = way_name(way);
    to_h_.push_back({std::move(name), std::move(way), {}, {}});
  }
  down_ = {"down_proj", down_way(block_), {}, {}};
  mlp_ = {"mlp", *find_provider(block_.device, "gatefold").make(GATEFOLD_OP_MLP, block_), {}, {}};
  memory_.emplace(*backend_, block_, BlockMemory::Use{}, workspace_size());
}

void RunJob::run() {
  first_half();
  second_half();
  progress_.clear();
}

// Leaves gate_up's h where the second half reads it.
void RunJob::first_half() {
  std::vector<Line*> lines;
  for (Line& line : to_h_) lines.push_back(&line);
  time(lines);
  const Stage& fused = *to_h_.back().way.stages.back();
  for (Line& line : to_h_) {
    progress_.show("checking " + line.name + " in double precision");
    line.way.enqueue(device_tensors(), *backend_);
    line.accuracy = checker_.check_h(line.name, line.way, fused, host_view().tensors());
  }
}

// Unless the whole block is to run at once, this half does without the memory of gate's and up's weights. Leaves
// down_proj's y.
void RunJob::second_half() {
  if (options_.whole_block) {
    time({&down_, &mlp_});
    check_mlp();
  } else {
    weights_.release_gate_and_up();
    time({&down_});
  }
  progress_.show("checking " + down_.name + " in double precision");
  down_.way.enqueue(device_tensors(), *backend_);
  down_.accuracy = checker_.check_y(down_.name, down_.way, host_view().tensors());
  if (!options_.whole_block) add_up_mlp();
}

void RunJob::check_mlp() {
  progress_.show("checking " + mlp_.name + " in double precision");
  const Tensors tensors = device_tensors();
  backend_->synchronise();
  // NaN of every type, so that down_proj's y can't pass for mlp's.
  backend_->upload(tensors.y, std::vector<std::byte>(block_.x_bytes(), std::byte{0xff}));
  mlp_.way.enqueue(tensors, *backend_);
  mlp_.accuracy = checker_.check_mlp_y(mlp_.name, mlp_.way, block_, host_view().tensors());
}

// mlp as gate_up and down_proj, one after the other.
void RunJob::add_up_mlp() {
  const Line& gate_up = to_h_.back();
  mlp_.samples = down_.samples;
  for (std::size_t i = 0; i < mlp_.samples.size(); ++i) mlp_.samples[i] += gate_up.samples[i];
  mlp_.accuracy.max_bound_ratio = std::max(gate_up.accuracy.max_bound_ratio, down_.accuracy.max_bound_ratio);
  mlp_.accuracy.violations = gate_up.accuracy.violations + down_.accuracy.violations;
}

void RunJob::time(const std::vector<Line*>& lines) {
  const Tensors tensors = device_tensors();
  std::vector<Participant> participants;
  for (const Line* line : lines) {
    participants.push_back({line->name, [=, this](std::int64_t) { line->way.enqueue(tensors, *backend_); }});
  }
  const auto samples = time_in_rounds(*backend_, participants, options_.timing,
                                      [this](const std::string& what) { progress_.show(what); });
  for (std::size_t i = 0; i < lines.size(); ++i) lines[i]->samples = samples[i];
}

std::size_t RunJob::workspace_size() const {
  std::size_t bytes = down_.way.workspace_size();
  if (options_.whole_block) bytes = std::max(bytes, mlp_.way.workspace_size());
  for (const Line& line : to_h_) bytes = std::max(bytes, line.way.workspace_size());
  return bytes;
}

Tensors RunJob::device_tensors() const {
  Tensors inputs = weights_.device();
  inputs.x = x_.data();
  return memory_->tensors(inputs);
}

HostView RunJob::host_view() const {
  Tensors inputs = weights_.host();
  inputs.x = input_.x().data();
  backend_->synchronise();
  return {*backend_, block_, device_tensors(), inputs};
}

void RunJob::write_output(const std::string& file) const {
  const HostView view = host_view();
  checkpoint::write_safetensors(
      file, {checkpoint::make_tensor("h", block_.dtype, {block_.tokens, block_.intermediate_size}, view.tensors().h),
             checkpoint::make_tensor("y", block_.dtype, {block_.tokens, block_.hidden_size}, view.tensors().y)});
}

}  // namespace gatefold::cli
