#include <fmt/core.h>

#include <memory>

#include "cli/backend.hpp"
#include "cli/commands.hpp"
#include "cli/report.hpp"

namespace gatefold::cli {
namespace {

constexpr gatefold_device all_devices[] = {GATEFOLD_DEVICE_CUDA, GATEFOLD_DEVICE_CPU};

Json describe_devices(gatefold_device kind) {
  Json devices = Json::array();
  const char* why = nullptr;
  const int count = gatefold_device_count(kind, &why);
  for (int i = 0; i < count; ++i) {
    gatefold_device_info info{};
    throw_on_error(gatefold_device_query(kind, i, &info));
    devices.push_back({{"device", name_of(kind)},
                       {"index", i},
                       {"name", info.name},
                       {"features", info.features},
                       {"threads", info.threads},
                       {"memory_bytes", info.memory_bytes}});
  }
  if (count == 0) devices.push_back({{"device", name_of(kind)}, {"absent", why}});
  return devices;
}

std::string sentence(const Json& device) {
  if (device.contains("absent")) {
    return fmt::format("{}: none ({})", device["device"].get<std::string>(), device["absent"].get<std::string>());
  }
  const bool cpu = device["device"] == "cpu";
  const char* threads = device["threads"] == 1 ? "thread" : "threads";
  return fmt::format("{} {}: {}, {} {}, {}, {}", device["device"].get<std::string>(), device["index"].get<int>(),
                     device["name"].get<std::string>(), device["threads"].get<int>(), cpu ? threads : "multiprocessors",
                     bytes_text(device["memory_bytes"]), device["features"].get<std::string>());
}

std::vector<Json> implementation_rows() {
  std::vector<Json> rows;
  for (const gatefold_device device : all_devices) {
    for (int op = GATEFOLD_OP_ACT_AND_MUL; op <= GATEFOLD_OP_MLP; ++op) {
      std::string names;
      for (int i = 0; const char* name = gatefold_implementation_name(static_cast<gatefold_op>(op), device, i); ++i) {
        names += (names.empty() ? "" : ", ") + std::string(name);
      }
      if (names.empty()) continue;
      rows.push_back(
          {{"op", name_of(static_cast<gatefold_op>(op))}, {"device", name_of(device)}, {"implementations", names}});
    }
  }
  return rows;
}

int info(const OutputOptions& output) {
  output.validate();
  Report report;
  report.title = fmt::format("gatefold {}", gatefold_version());
  report.columns = {{"op", "op", plain_text},
                    {"device", "device", plain_text},
                    {"implementations", "implementations, best first", plain_text}};
  report.rows = implementation_rows();
  report.context = base_context();
  report.context["devices"] = Json::array();
  report.context["default_device"] = name_of(default_device());
  for (const gatefold_device kind : all_devices) {
    for (const Json& device : describe_devices(kind)) {
      report.notes.push_back(sentence(device));
      report.context["devices"].push_back(device);
    }
  }
  output.emit(report);
  return 0;
}

}  // namespace

Command add_info(const App& root) {
  const App app = root.add_subcommand("info", "Version, devices, and the implementations of each op");
  auto output = std::make_shared<OutputOptions>();
  output->add_to(app);
  return {app, [output] { return info(*output); }};
}

}  // namespace gatefold::cli
