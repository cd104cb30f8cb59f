#include "tile_measurement.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>
#include <vector>

namespace gatefold::bench {

double TileCell::best() const {
  return std::ranges::min_element(microseconds, {}, [](const auto& entry) { return entry.second; })->second;
}

double TileCell::regret(const std::string& kernel) const {
  const auto time = microseconds.find(kernel);
  return time == microseconds.end() ? contends : time->second / best() - 1.0;
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
      TileCell& cell =
          cells.try_emplace({D, F, T}, TileCell{D, F, T, row.value("clusters_of_four", 0), {}}).first->second;
      if (row.value("settled", true)) cell.microseconds[kernel] = row.at("time_us");
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
