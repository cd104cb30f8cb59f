#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/presets.hpp"
#include "cli/app.hpp"
#include "gatefold/gatefold.hpp"

// Options that several subcommands share, and the names of things. A wrong value throws checkpoint::InputError with one
// line that names the option and the value.
namespace gatefold::cli {

const char* name_of(gatefold_op op);
const char* name_of(gatefold_dtype dtype);
const char* name_of(gatefold_device device);
std::string name_of(const Layout& layout);  // "separate", "interleaved_gate_up:8"
std::string name_of(const Activation& activation);
std::string name_of(const Biases& biases);  // "gate + down"

gatefold_op parse_op(const std::string& text);
gatefold_dtype parse_dtype(const std::string& text);
Layout parse_layout(const std::string& text);
Activation parse_activation(const std::string& text);
Biases parse_biases(const std::vector<std::string>& names);
// "auto": CUDA where the tool can use it, else the CPU.
gatefold_device parse_device(const std::string& text);
gatefold_device parse_present_device(const std::string& text);  // throws where there is none

constexpr std::int64_t size_of(gatefold_dtype dtype) { return dtype == GATEFOLD_DTYPE_FP32 ? 4 : 2; }

// Throws unless minimum <= value. `what` names it.
void require_at_least(const std::string& what, std::int64_t value, std::int64_t minimum);

// Throws where the folder of a file to be written isn't there: better now than after minutes of work. "" is fine.
void require_folder_of(const std::string& what, const std::string& file);

// Throws where a file to be written is another that is read or written, under whatever name. "" is none.
void require_other_file(const std::string& what, const std::string& file, const std::string& other_what,
                        const std::string& other);

// The sizes of one MLP: a preset's, or given by hand.
struct ShapeOptions {
  std::string model;
  std::int64_t tp = 1;
  std::optional<std::int64_t> hidden_size;
  std::optional<std::int64_t> intermediate_size;

  void add_to(const App& app);
};

struct Shape {
  std::string model;  // "" where the sizes were given by hand
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  Activation activation = Activation::silu();
};
// Throws where a size is missing. act_and_mul alone does without a hidden size.
Shape resolve(const ShapeOptions& options, bool needs_hidden_size = true);

// A preset's MLP as one of `tp` GPUs holds it.
Shape shape_of(const checkpoint::Preset& preset, std::int64_t tp);

// "" unless a forced implementation has been named that this op has on this device.
std::string implementation_for(gatefold_op op, gatefold_device device, const std::string& forced);
void require_known_implementation(gatefold_device device, const std::string& forced);

}  // namespace gatefold::cli
