#include "checkpoint/presets.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "checkpoint/config.hpp"
#include "checkpoint/input_error.hpp"
#include "checkpoint/models.hpp"

namespace gatefold::checkpoint {
namespace {

using nlohmann::ordered_json;

std::optional<std::int64_t> find_number(const ordered_json& entry, const char* key) {
  const auto found = entry.find(key);
  return found == entry.end() ? std::nullopt : std::optional(found->get<std::int64_t>());
}

Activation known_activation(const std::string& name) {
  const auto activation = find_activation(name);
  if (!activation) throw std::logic_error("models.json: unknown activation " + name);
  return *activation;
}

Preset parse_preset(const std::string& name, const ordered_json& entry) {
  return {.name = name,
          .hidden_size = entry.at("hidden_size").get<std::int64_t>(),
          .intermediate_size = entry.at("intermediate_size").get<std::int64_t>(),
          .num_layers = entry.at("num_layers").get<std::int64_t>(),
          .activation = known_activation(entry.at("activation").get<std::string>()),
          .num_attention_heads = find_number(entry, "num_attention_heads"),
          .num_kv_heads = find_number(entry, "num_kv_heads"),
          .head_dim = find_number(entry, "head_dim"),
          .num_experts = find_number(entry, "n_expert"),
          .num_experts_per_token = find_number(entry, "n_expert_per_token"),
          .moe_intermediate_size = find_number(entry, "moe_intermediate_size")};
}

std::vector<Preset> parse_presets() {
  std::vector<Preset> result;
  const ordered_json models = ordered_json::parse(models_json);
  for (const auto& [name, entry] : models.items()) result.push_back(parse_preset(name, entry));
  return result;
}

// Insertions, removals and replacements that make one word the other (Levenshtein).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // distances of a's beginning to all of b's
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

// All of a's letters are in b, in their order: "llama-8b" left something out of "llama3.1-8b".
bool is_part(std::string_view a, std::string_view b) {
  std::size_t found = 0;
  for (const char letter : b) found += found < a.size() && a[found] == letter ? 1 : 0;
  return !a.empty() && found == a.size();
}

// The best few names, nearest first; all of them if none is near.
std::string suggestions(std::string_view name) {
  constexpr std::size_t most = 8;
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const Preset& preset : presets()) {
    const std::size_t distance = edit_distance(name, preset.name);
    if (is_part(name, preset.name) || distance <= std::max<std::size_t>(2, name.size() / 3))
      ranked.emplace_back(distance, preset.name);
  }
  std::ranges::stable_sort(ranked, {}, [](const auto& entry) { return entry.first; });
  if (ranked.empty()) {
    for (const Preset& preset : presets()) ranked.emplace_back(0, preset.name);
  } else if (ranked.size() > most) {
    ranked.resize(most);
  }
  std::string text;
  for (const auto& [distance, candidate] : ranked) text += (text.empty() ? "" : ", ") + candidate;
  return text;
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = parse_presets();
  return all;
}

const Preset& find_preset(std::string_view name) {
  const auto found = std::ranges::find(presets(), name, &Preset::name);
  if (found == presets().end()) {
    throw_input_error("unknown model \"", name.substr(0, 100), "\"; there are ", suggestions(name.substr(0, 100)));
  }
  return *found;
}

}  // namespace gatefold::checkpoint
