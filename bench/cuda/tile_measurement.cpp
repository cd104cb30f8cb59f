#include "tile_measurement.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "quantile.hpp"

namespace gatefold::bench {

double TileCell::best() const {
  return std::ranges::min_element(microseconds, {}, [](const auto& entry) { return entry.second; })->second;
}

double TileCell::regret(const std::string& kernel) const {
  const auto time = microseconds.find(kernel);
  return time == microseconds.end() ? contends : time->second / best() - 1.0;
}

namespace {

// How much longer the other measurement's times are, in the median of the kernels that both ran; 1 if there are none.
double factor(const TileCell& cell, const TileCell& other) {
  std::vector<double> ratios;
  for (const auto& [kernel, time] : cell.microseconds) {
    const auto there = other.microseconds.find(kernel);
    if (there != other.microseconds.end()) ratios.push_back(there->second / time);
  }
  return ratios.empty() ? 1.0 : median(ratios);
}

bool same_product(const TileCell& a, const TileCell& b) {
  return a.hidden_size == b.hidden_size && a.intermediate_size == b.intermediate_size && a.tokens == b.tokens;
}

}  // namespace

void TileMeasurement::average_with(const TileMeasurement& other) {
  for (TileCell& cell : cells) {
    const auto there = std::ranges::find_if(other.cells, [&](const TileCell& c) { return same_product(c, cell); });
    if (there == other.cells.end()) continue;
    const double scale = factor(cell, *there);
    for (const auto& [kernel, time] : there->microseconds) {
      if (!kernels.contains(kernel)) continue;
      const auto [entry, only_there] = cell.microseconds.try_emplace(kernel, time / scale);
      if (!only_there) entry->second = std::sqrt(entry->second * time / scale);
    }
  }
}

namespace {

// Rows of tokens and weights that come to a multiprocessor for each product of a row with a row, by a kernel of the
// name "256x192 ...".
double rows_per_product(const std::string& kernel) {
  int tile_m = 0;
  int tile_n = 0;
  if (std::sscanf(kernel.c_str(), "%dx%d", &tile_m, &tile_n) != 2) {
    throw std::runtime_error("\"" + kernel + "\" is no name of a kernel");
  }
  return (tile_m + tile_n) / (static_cast<double>(tile_m) * tile_n);
}

// One row of tiles waits for memory.
bool power_limits(const TileCell& cell) {
  const double flops = 4.0 * static_cast<double>(cell.tokens) * static_cast<double>(cell.hidden_size) *
                       static_cast<double>(cell.intermediate_size);
  return cell.tokens > 128 && flops / (cell.best() * 1e-6) > power_limited_flops;
}

}  // namespace

void TileMeasurement::settle() {
  const double rows = rows_per_product("256x192");
  for (TileCell& cell : cells) {
    if (!power_limits(cell)) continue;
    for (auto& [kernel, time] : cell.microseconds) time *= 1.0 + power_share * (rows_per_product(kernel) / rows - 1.0);
  }
}

TileMeasurement read_tile_measurement(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": can't be read");
  TileMeasurement result;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, TileCell> cells;
  try {
    const nlohmann::json document = nlohmann::json::parse(file);
    for (const nlohmann::json& row : document.at("rows")) {
      const std::int64_t D = row.at("hidden_size");
      const std::int64_t F = row.at("intermediate_size");
      const std::int64_t T = row.at("tokens");
      const std::string kernel = row.at("tile");
      result.kernels.insert(kernel);
      TileCell& cell = cells.try_emplace({D, F, T}, TileCell{D, F, T, {}}).first->second;
      if (row.at("settled")) cell.microseconds[kernel] = row.at("time_us");
    }
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(path + ": not of bench_sm90_tiles: " + error.what());
  }
  for (auto& [key, cell] : cells) {
    if (cell.microseconds.empty()) throw std::runtime_error(path + ": a cell without a settled kernel");
    result.cells.push_back(std::move(cell));
  }
  return result;
}

}  // namespace gatefold::bench
