// Every compiled sm_90 kernel of gate_up (bf16) on every shape, those in parts where sums are divided, held against the
// cost model's choice. Shapes are lines "hidden_size intermediate_size [TOKENS...]" of a file; each is run with the
// tokens of its line, or else with 65 to 8192: all kernels for a few milliseconds, then those that came near the best,
// and the cost model's, until they are settled. The cells are taken in a random order, the same in every run, as far as
// --seconds allow. A summary goes to stdout, rows as JSON to the file named by --json, cell by cell. With --again, an
// earlier such file, only those kernels are run that came within 4 % of a cell's best there, that it lacks, or that the
// cost model chooses: what a few new kernels change takes a fraction of the time.
//     bench_sm90_tiles SHAPES [--json FILE] [--again FILE] [--rounds N] [--milliseconds X] [--seconds S]
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "cuda/common/device.hpp"
#include "cuda/sm90/cost_model.hpp"
#include "cuda/sm90/geometry.hpp"
#include "device_buffer.hpp"
#include "program.hpp"
#include "rounds.hpp"
#include "tile_measurement.hpp"

namespace gatefold::bench {
namespace {

using cuda::sm90::Kernel;

constexpr std::int64_t default_tokens[] = {65,  96,  128, 160, 192,  200,  256,  320, 384,
                                           416, 448, 512, 768, 1024, 2048, 4096, 8192};
constexpr std::int64_t most_tokens = 8192;
constexpr RoundOptions burst{1, 4.0};
constexpr double near_before = 0.04;  // of the earlier measurement's best, to be run again

struct Shape {
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::vector<std::int64_t> tokens;

  std::int64_t weight_elements() const { return 2 * hidden_size * intermediate_size; }
};

struct Options {
  std::string shapes;
  std::string json;
  std::string again;
  RoundOptions rounds{2, 50.0};
  double seconds = HUGE_VAL;
};

struct Cell {
  Shape shape;
  std::int64_t tokens;
};

std::vector<Cell> shuffled_cells(const std::vector<Shape>& shapes) {
  std::vector<Cell> cells;
  for (const Shape& shape : shapes) {
    for (const std::int64_t tokens : shape.tokens) cells.push_back({shape, tokens});
  }
  std::mt19937 random(20'261'121);
  std::ranges::shuffle(cells, random);
  return cells;
}

struct Row {
  Shape shape;
  std::int64_t tokens;
  int clusters_of_four;
  std::string tile;
  double microseconds;
  bool settled;
  bool chosen;
};

Shape read_shape(const std::string& path, const std::string& line) {
  std::istringstream words(line);
  Shape shape;
  words >> shape.hidden_size >> shape.intermediate_size;
  bool good = shape.hidden_size > 0 && shape.intermediate_size > 0;
  for (std::int64_t tokens = 0; words >> tokens;) {
    good = good && tokens > 0 && tokens <= most_tokens;
    shape.tokens.push_back(tokens);
  }
  if (!good || !words.eof()) {
    throw std::runtime_error(concat(path, ": \"", line,
                                    "\" is no line \"hidden_size intermediate_size [TOKENS...]\" of 1 to ", most_tokens,
                                    " tokens"));
  }
  if (shape.tokens.empty()) shape.tokens.assign(std::begin(default_tokens), std::end(default_tokens));
  return shape;
}

std::vector<Shape> read_shapes(const std::string& path) {
  std::ifstream file(path);
  std::vector<Shape> shapes;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) shapes.push_back(read_shape(path, line));
  }
  if (shapes.empty()) throw std::runtime_error(path + ": no shapes there");
  return shapes;
}

// All kernels that a plan chooses among.
std::vector<Kernel> all_kernels() {
  std::vector<Kernel> all;
  for (const cuda::sm90::Product product : {cuda::sm90::Product::gate_up, cuda::sm90::Product::gated_parts}) {
    std::ranges::copy(cuda::sm90::kernels(DType::bf16, product), std::back_inserter(all));
  }
  return all;
}

// What the parts of sums take, whichever kernel leaves them.
std::size_t workspace_bytes(const std::vector<Shape>& shapes) {
  std::size_t most = 0;
  for (const Shape& shape : shapes) {
    const Problem problem = measured_problem(shape.hidden_size, shape.intermediate_size);
    for (const Kernel& kernel : all_kernels()) {
      if (!cuda::sm90::in_parts(kernel.config.product)) continue;
      most = std::max(most, cuda::sm90::most_bytes_of_parts(kernel.config, problem, most_tokens, false));
    }
  }
  return most;
}

// x, h and a pool of weights: each call reads other weights of it, until it has been through all.
struct Data {
  DeviceBuffer x, h, weights, workspace;

  explicit Data(const std::vector<Shape>& shapes)
      : x(bytes(shapes, [](const Shape& s) { return most_tokens * s.hidden_size; })),
        h(bytes(shapes, [](const Shape& s) { return most_tokens * s.intermediate_size; })),
        weights(std::max<std::size_t>(bytes(shapes, [](const Shape& s) { return s.weight_elements(); }), 1U << 30U)),
        workspace(std::max<std::size_t>(workspace_bytes(shapes), 1)) {
    x.fill_normal(GATEFOLD_DTYPE_BF16, 1);
    weights.fill_normal(GATEFOLD_DTYPE_BF16, 2);
  }

  Operands operands(const Shape& shape, std::int64_t tokens, int call) const {
    const auto sets = static_cast<std::int64_t>(weights.bytes()) / (2 * shape.weight_elements());
    Operands o;
    o.tokens = tokens;
    o.x = static_cast<const std::byte*>(x.get());
    o.gate = static_cast<const std::byte*>(weights.get()) + call % sets * 2 * shape.weight_elements();
    o.out = static_cast<std::byte*>(h.get());
    o.workspace = static_cast<std::byte*>(workspace.get());
    o.workspace_size = workspace.bytes();
    return o;
  }

 private:
  template <class Elements>
  static std::size_t bytes(const std::vector<Shape>& shapes, Elements elements) {
    std::int64_t most = 0;
    for (const Shape& shape : shapes) most = std::max(most, elements(shape));
    return static_cast<std::size_t>(2 * most);
  }
};

// Times those rows again that may hold the best kernel.
void settle(std::vector<Row>& rows, const std::vector<Provider>& providers, const RoundOptions& options) {
  const double best = std::ranges::min_element(rows, {}, &Row::microseconds)->microseconds;
  std::vector<Provider> contenders;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].settled = rows[i].chosen || rows[i].microseconds < (1.0 + contends) * best;
    if (rows[i].settled) contenders.push_back(providers[i]);
  }
  const std::vector<Timing> timings = time_in_rounds(contenders, options);
  auto timing = timings.begin();
  for (Row& row : rows) {
    if (row.settled) row.microseconds = median((timing++)->microseconds);
  }
}

// The kernels that a cell is measured with. earlier: null, or what was measured before.
std::vector<Kernel> candidates(const Cell& cell, const TileMeasurement* earlier, const Kernel* chosen,
                               std::span<const Kernel> kernels) {
  if (earlier == nullptr) return {kernels.begin(), kernels.end()};
  const auto before = std::ranges::find_if(earlier->cells, [&](const TileCell& c) {
    return c.hidden_size == cell.shape.hidden_size && c.intermediate_size == cell.shape.intermediate_size &&
           c.tokens == cell.tokens;
  });
  std::vector<Kernel> result;
  for (const Kernel& kernel : kernels) {
    const std::string kernel_name = name(kernel.config);
    const bool known = before != earlier->cells.end() && earlier->kernels.contains(kernel_name);
    if (!known || &kernel == chosen || before->regret(kernel_name) <= near_before) result.push_back(kernel);
  }
  return result;
}

std::vector<Row> measure(const Cell& cell, const TileMeasurement* earlier, const Data& data,
                         const cuda::DeviceProperties& device, const RoundOptions& options) {
  const auto& [shape, tokens] = cell;
  const Problem problem = measured_problem(shape.hidden_size, shape.intermediate_size);
  const std::vector<Kernel> family = all_kernels();
  const cuda::sm90::Machine machine = cuda::sm90::machine_of(device, family);
  const Kernel* chosen = cuda::sm90::choose(family, problem, tokens, machine);
  std::vector<Provider> providers;
  for (const Kernel& kernel : candidates(cell, earlier, chosen, family)) {
    const cuda::sm90::Config& c = kernel.config;
    if (in_parts(c.product) && parts_of(c, problem, tokens, machine.clusters(c)) == 1) continue;
    providers.push_back({name(kernel.config), [&, kernel](int call, cudaStream_t stream) {
                           const Status status =
                               kernel.launch(problem, data.operands(shape, tokens, call), device, stream);
                           if (!status.ok()) throw std::runtime_error(status.message());
                         }});
  }
  std::vector<Row> rows;
  for (const Timing& timing : time_in_rounds(providers, burst)) {
    rows.push_back({shape, tokens, machine.clusters_of_four, timing.name, median(timing.microseconds), false,
                    timing.name == name(chosen->config)});
  }
  settle(rows, providers, options);
  return rows;
}

// How much longer the chosen kernel takes than the best of a cell.
double regret(const std::vector<Row>& cell) {
  const auto least = [](const Row& row) { return row.settled ? row.microseconds : HUGE_VAL; };
  const auto best = std::ranges::min_element(cell, {}, least);
  const auto chosen = std::ranges::find(cell, true, &Row::chosen);
  return chosen->microseconds / best->microseconds - 1.0;
}

void write_row(std::FILE* file, const Row& r) {
  std::fprintf(file,
               "{\"hidden_size\": %lld, \"intermediate_size\": %lld, \"tokens\": %lld, "
               "\"clusters_of_four\": %d, \"tile\": \"%s\", "
               "\"time_us\": %.2f, \"settled\": %s, \"chosen\": %s}",
               static_cast<long long>(r.shape.hidden_size), static_cast<long long>(r.shape.intermediate_size),
               static_cast<long long>(r.tokens), r.clusters_of_four, r.tile.c_str(), r.microseconds,
               r.settled ? "true" : "false", r.chosen ? "true" : "false");
}

Options options_of(int argc, char** argv) {
  if (argc < 2) throw std::invalid_argument("the first argument is a file of shapes");
  Options options;
  options.shapes = argv[1];
  parse_options(
      argc, argv, 2,
      {text_option("--json", options.json), text_option("--again", options.again),
       count_option("--rounds", options.rounds.rounds, 1), time_option("--milliseconds", options.rounds.milliseconds),
       time_option("--seconds", options.seconds)});
  return options;
}

void run(int argc, char** argv) {
  const Options options = options_of(argc, argv);
  const std::vector<Shape> shapes = read_shapes(options.shapes);
  const auto& devices = cuda::devices();
  if (devices.list.empty()) throw std::runtime_error("no GPU: " + devices.why);
  const cuda::DeviceProperties& device = devices.list.front();
  if (device.capability != 90) throw std::runtime_error(device.name + " is no sm_90");

  std::optional<TileMeasurement> earlier;
  if (!options.again.empty()) earlier = read_tile_measurement(options.again);
  std::optional<ResultFile> file;
  if (!options.json.empty()) file.emplace(options.json, argc, argv);
  const Data data(shapes);
  std::vector<double> regrets;
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Cell> cells = shuffled_cells(shapes);
  for (const Cell& cell : cells) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > options.seconds) break;
    const std::vector<Row> rows = measure(cell, earlier ? &*earlier : nullptr, data, device, options.rounds);
    regrets.push_back(regret(rows));
    if (regrets.back() > near_best) {
      std::printf("D=%lld F=%lld T=%lld: the choice takes %.1f %% longer than the best\n",
                  static_cast<long long>(cell.shape.hidden_size), static_cast<long long>(cell.shape.intermediate_size),
                  static_cast<long long>(cell.tokens), 100.0 * regrets.back());
      std::fflush(stdout);
    }
    if (!file) continue;
    for (const Row& row : rows) write_row(file->next_row(), row);
  }
  const auto within = std::ranges::count_if(regrets, [](double r) { return r <= near_best; });
  std::printf("%zu of %zu cells: the choice is within %.0f %% of the best kernel in %.1f %%\n", regrets.size(),
              cells.size(), 100.0 * near_best,
              100.0 * static_cast<double>(within) / static_cast<double>(regrets.size()));
}

}  // namespace
}  // namespace gatefold::bench

int main(int argc, char** argv) {
  return gatefold::bench::guarded_main("bench_sm90_tiles", [&] { gatefold::bench::run(argc, argv); });
}
