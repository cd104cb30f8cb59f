#include "cli/options.hpp"

#include <filesystem>
#include <utility>

#include "checkpoint/config.hpp"
#include "checkpoint/destination.hpp"
#include "checkpoint/input_error.hpp"
#include "cli/backend.hpp"
#include "gatefold/names.h"

namespace gatefold::cli {
namespace {

using checkpoint::throw_input_error;

// The enum's value of a name; its values are 1, 2, ... last.
template <class Enum>
Enum parse(const char* what, Enum last, const char* (*name_of)(Enum), const std::string& text) {
  std::string known;
  for (int number = 1; number <= last; ++number) {
    const auto value = static_cast<Enum>(number);
    if (text == name_of(value)) return value;
    known += (known.empty() ? "" : ", ") + std::string(name_of(value));
  }
  throw_input_error(what, ": \"", text, "\" is not one of ", known);
}

std::int64_t parse_block(const std::string& text) {
  std::size_t end = 0;
  std::int64_t block = 0;
  try {
    block = std::stoll(text, &end);
  } catch (const std::exception&) {
    end = std::string::npos;
  }
  if (end != text.size() || block < 1) {
    throw_input_error("layout: block \"", text, "\" is not a positive number; write interleaved_gate_up:8");
  }
  return block;
}

// forced: an implementation, or that and one of its kernels: "sm90:256x192 cluster 1x2".
bool has_implementation(gatefold_op op, gatefold_device device, const std::string& forced) {
  const std::string name = forced.substr(0, forced.find(':'));
  for (int i = 0;; ++i) {
    const char* known = gatefold_implementation_name(op, device, i);
    if (known == nullptr) return false;
    if (name == known) return true;
  }
}

}  // namespace

const char* name_of(gatefold_op op) { return gatefold_name_of_op(op); }
const char* name_of(gatefold_dtype dtype) { return gatefold_name_of_dtype(dtype); }
const char* name_of(gatefold_device device) { return gatefold_name_of_device(device); }

std::string name_of(const Layout& layout) {
  const std::string name = gatefold_name_of_layout(layout.kind());
  return layout.block() == 0 ? name : name + ":" + std::to_string(layout.block());
}

std::string name_of(const Activation& activation) { return gatefold_name_of_activation(activation.kind); }

std::string name_of(const Biases& biases) {
  std::string text;
  for (const auto& [name, there] : {std::pair{"gate", biases.gate}, {"up", biases.up}, {"down", biases.down}}) {
    if (there) text += (text.empty() ? "" : " + ") + std::string(name);
  }
  return text;
}

gatefold_op parse_op(const std::string& text) {
  std::string name = text;
  for (char& c : name) c = c == '-' ? '_' : c;  // "act-and-mul" is the same
  return parse("op", GATEFOLD_OP_MLP, gatefold_name_of_op, name);
}

gatefold_dtype parse_dtype(const std::string& text) {
  return parse("dtype", GATEFOLD_DTYPE_BF16, gatefold_name_of_dtype, text);
}

Biases parse_biases(const std::vector<std::string>& names) {
  Biases biases;
  for (const std::string& name : names) {
    if (name != "gate" && name != "up" && name != "down") {
      throw_input_error("--biases: \"", name, "\" is not one of gate, up, down");
    }
    biases.gate |= name == "gate";
    biases.up |= name == "up";
    biases.down |= name == "down";
  }
  return biases;
}

Layout parse_layout(const std::string& text) {
  const auto colon = text.find(':');
  const gatefold_layout kind =
      parse("layout", GATEFOLD_LAYOUT_INTERLEAVED_UP_GATE, gatefold_name_of_layout, text.substr(0, colon));
  const bool interleaved = kind >= GATEFOLD_LAYOUT_INTERLEAVED_GATE_UP;
  if (!interleaved && colon != std::string::npos) {
    throw_input_error("layout: \"", text, "\" has a block, but only interleaved layouts have one");
  }
  if (!interleaved) return Layout::of(kind, 0);
  return Layout::of(kind, colon == std::string::npos ? 1 : parse_block(text.substr(colon + 1)));
}

Activation parse_activation(const std::string& text) {
  if (const auto activation = checkpoint::find_activation(text)) return *activation;
  std::string known;
  for (int kind = GATEFOLD_ACTIVATION_SILU; kind <= GATEFOLD_ACTIVATION_SWIGLU_CLAMPED; ++kind) {
    known +=
        (known.empty() ? "" : ", ") + std::string(gatefold_name_of_activation(static_cast<gatefold_activation>(kind)));
  }
  throw_input_error("activation: \"", text, "\" is not one of ", known);
}

gatefold_device parse_device(const std::string& text) {
  return text == "auto" ? default_device() : parse("device", GATEFOLD_DEVICE_CUDA, gatefold_name_of_device, text);
}

gatefold_device parse_present_device(const std::string& text) {
  const gatefold_device device = parse_device(text);
  const char* why = nullptr;
  if (gatefold_device_count(device, &why) == 0) throw_input_error("device: ", text, " is not there: ", why);
  return device;
}

void require_at_least(const std::string& what, std::int64_t value, std::int64_t minimum) {
  if (value < minimum) throw_input_error(what, ": ", value, " is less than ", minimum);
}

void require_folder_of(const std::string& what, const std::string& file) {
  if (file.empty()) return;
  const checkpoint::Destination destination = checkpoint::find_destination(file);
  if (destination.kind != checkpoint::Destination::Kind::file) return;
  const std::filesystem::path folder = std::filesystem::absolute(checkpoint::folder_of(destination.path));
  if (!std::filesystem::is_directory(folder)) {
    throw_input_error(what, ": ", file, ": there is no folder ", folder.string());
  }
}

void require_other_file(const std::string& what, const std::string& file, const std::string& other_what,
                        const std::string& other) {
  if (file.empty() || other.empty()) return;
  const auto identity = checkpoint::identify(file);
  if (identity && identity == checkpoint::identify(other)) {
    throw_input_error(what, ": ", file, " is the same file as ", other_what, ", ", other);
  }
}

void ShapeOptions::add_to(const App& app) {
  app.add_option("--model", model, "Take the sizes and the activation of this model");
  app.add_option("--tp", tp, "Tensor parallelism: divides the model's intermediate size").capture_default_str();
  app.add_option("--hidden-size", hidden_size, "D, in place of a model");
  app.add_option("--intermediate-size", intermediate_size, "F, in place of a model");
}

Shape shape_of(const checkpoint::Preset& preset, std::int64_t tp) {
  require_at_least("--tp", tp, 1);
  if (preset.intermediate_size % tp != 0) {
    throw_input_error("--tp: intermediate_size ", preset.intermediate_size, " of ", preset.name,
                      " is not a multiple of ", tp);
  }
  return {preset.name, preset.hidden_size, preset.intermediate_size / tp, preset.activation};
}

Shape resolve(const ShapeOptions& options, bool needs_hidden_size) {
  const bool by_hand = options.hidden_size || options.intermediate_size;
  if (!options.model.empty()) {
    if (by_hand) throw_input_error("--model ", options.model, " was given together with --hidden-size or so: give one");
    return shape_of(checkpoint::find_preset(options.model), options.tp);
  }
  if (options.hidden_size && !options.intermediate_size) {
    throw_input_error("--intermediate-size: missing next to --hidden-size ", *options.hidden_size);
  }
  if (options.intermediate_size && !options.hidden_size && needs_hidden_size) {
    throw_input_error("--hidden-size: missing next to --intermediate-size ", *options.intermediate_size);
  }
  if (!by_hand) {
    throw_input_error("sizes: give --model NAME, or --hidden-size D and --intermediate-size F");
  }
  if (options.tp != 1) throw_input_error("--tp: ", options.tp, " divides a model's sizes, but no --model was given");
  return {"", options.hidden_size.value_or(0), *options.intermediate_size, Activation::silu()};
}

std::string implementation_for(gatefold_op op, gatefold_device device, const std::string& forced) {
  return has_implementation(op, device, forced) ? forced : std::string();
}

void require_known_implementation(gatefold_device device, const std::string& forced) {
  if (forced.empty()) return;
  std::string known;
  for (int number = GATEFOLD_OP_ACT_AND_MUL; number <= GATEFOLD_OP_MLP; ++number) {
    const auto op = static_cast<gatefold_op>(number);
    if (has_implementation(op, device, forced)) return;
    for (int i = 0; const char* name = gatefold_implementation_name(op, device, i); ++i) {
      const std::string candidate = name;
      if ((", " + known + ",").find(", " + candidate + ",") == std::string::npos) {
        known += (known.empty() ? "" : ", ") + candidate;
      }
    }
  }
  throw_input_error("--impl: \"", forced, "\" is not one of the implementations on ", name_of(device), ": ", known);
}

}  // namespace gatefold::cli
