// How fast the weights of a gated MLP come by the ways in which kernels for few tokens request them, in two kernels a
// layer as an mlp has: what such a kernel could reach at best. CUDA graphs go through several layers' weights, so that
// these come from memory; two plain kernels of one load a thread are the measure. On compute capability 9.0. A table
// goes to stdout, rows as JSON to the file named by --json.
//     bench_reading [--json FILE] [--rounds N] [--model NAME | --sizes DxF]
#include <cstdio>
#include <string>
#include <vector>

#include "layers.hpp"
#include "program.hpp"
#include "read_rows.hpp"
#include "read_weights.hpp"
#include "rounds.hpp"

namespace gatefold::bench {
namespace {

constexpr Way ways[] = {
    {"16 KiB side by side", Request::side_by_side, 16, 1024, 1, 12},
    {"pieces, 16 rows x 1 KiB, two blocks", Request::pieces, 16, 1024, 2, 6},
    {"pieces, 8 rows x 2 KiB, two blocks", Request::pieces, 8, 2048, 2, 6},
    {"boxes, columns first, 128 rows x 128 bytes", Request::columns_first, 128, 128, 1, 12},
    {"boxes, columns first, 128 rows x 256 bytes", Request::columns_first, 128, 256, 1, 6},
    {"boxes, columns first, 64 rows x 512 bytes", Request::columns_first, 64, 512, 1, 6},
    {"boxes, columns first, 32 rows x 1 KiB", Request::columns_first, 32, 1024, 1, 6},
    {"boxes, columns first, 16 rows x 2 KiB", Request::columns_first, 16, 2048, 1, 6},
    {"boxes, columns in one, 128 rows x 256 bytes", Request::columns_in_one, 128, 256, 1, 6},
    {"boxes, columns in one, 128 rows x 256 bytes, four slots", Request::columns_in_one, 128, 256, 1, 4},
    {"boxes, columns in one, 64 rows x 512 bytes", Request::columns_in_one, 64, 512, 1, 6},
    {"boxes, columns in one, 32 rows x 1 KiB", Request::columns_in_one, 32, 1024, 1, 6},
    {"boxes, columns in one, 16 rows x 2 KiB", Request::columns_in_one, 16, 2048, 1, 6},
    {"boxes, rows first, 128 rows x 256 bytes", Request::rows_first, 128, 256, 1, 6},
    {"boxes, rows first, 128 rows x 512 bytes", Request::rows_first, 128, 512, 1, 3},
    {"boxes, rows first, 64 rows x 256 bytes", Request::rows_first, 64, 256, 1, 12},
    {"boxes, rows first, 64 rows x 512 bytes", Request::rows_first, 64, 512, 1, 6},
    {"boxes, rows first, 64 rows x 1 KiB", Request::rows_first, 64, 1024, 1, 3},
    {"boxes, rows first, 32 rows x 1 KiB", Request::rows_first, 32, 1024, 1, 6},
    {"boxes, rows first, 16 rows x 2 KiB", Request::rows_first, 16, 2048, 1, 6},
};

struct Row {
  std::string model;
  std::string way;
  double microseconds;  // one layer
  double ratio;         // two plain kernels' time / this one's
  double bandwidth;     // TB/s
};

std::vector<Row> measure(const Model& m, const RoundOptions& options) {
  const std::vector<Layer> layers = layers_of(m);
  const DeviceBuffer sink(256);
  std::vector<Provider> providers;
  providers.push_back(through_layers("plain", layers, [&](const Layer& layer, cudaStream_t stream) {
    read_weights(layer.gate_up.get(), layer.gate_up.bytes(), sink.get(), stream);
    read_weights(layer.down.get(), layer.down.bytes(), sink.get(), stream);
  }));
  for (const Way& way : ways) {
    providers.push_back(through_layers(way.name, layers, [&](const Layer& layer, cudaStream_t stream) {
      read_rows(way, {layer.gate_up.get(), 2 * m.intermediate_size, 2 * m.hidden_size, true}, sink.get(), stream);
      read_rows(way, {layer.down.get(), m.hidden_size, 2 * m.intermediate_size, false}, sink.get(), stream);
    }));
  }
  const std::vector<Timing> timings = time_in_rounds(providers, options);
  std::vector<Row> rows;
  for (const Timing& timing : timings) {
    const double microseconds = median(timing.microseconds) / m.layers();
    rows.push_back({m.name, timing.name, microseconds, median(ratios(timings[0], timing)),
                    static_cast<double>(m.weight_bytes()) / microseconds / 1e6});
  }
  return rows;
}

void run(int argc, char** argv) {
  std::string json;
  std::string model;
  std::string sizes;
  RoundOptions options{7, 15.0};
  parse_options(argc, argv, 1,
                {text_option("--json", json), text_option("--model", model), text_option("--sizes", sizes),
                 count_option("--rounds", options.rounds, 1)});
  std::vector<Row> rows;
  std::printf("| model | way | us a layer | TB/s | of two plain kernels |\n|---|---|---|---|---|\n");
  for (const Model& m : chosen_models(model, sizes)) {
    for (const Row& r : measure(m, options)) {
      std::printf("| %s | %s | %.2f | %.2f | %.3f |\n", r.model.c_str(), r.way.c_str(), r.microseconds, r.bandwidth,
                  r.ratio);
      rows.push_back(r);
    }
    std::fflush(stdout);
  }
  if (json.empty()) return;
  ResultFile file(json, argc, argv);
  for (const Row& r : rows) {
    std::fprintf(file.next_row(),
                 "{\"op\": \"reading\", \"model\": \"%s\", \"way\": \"%s\", \"time_us\": %.3f, \"tbps\": %.3f, "
                 "\"fraction_of_read_bandwidth\": %.4f}",
                 r.model.c_str(), r.way.c_str(), r.microseconds, r.bandwidth, r.ratio);
  }
}

}  // namespace
}  // namespace gatefold::bench

int main(int argc, char** argv) {
  return gatefold::bench::guarded_main("bench_reading", [&] { gatefold::bench::run(argc, argv); });
}
