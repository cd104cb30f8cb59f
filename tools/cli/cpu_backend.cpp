#include "cli/cpu_backend.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <unordered_map>

#include "cli/cpu_memory.hpp"
#include "cli/elementwise.hpp"

namespace gatefold::cli {
namespace {

constexpr std::align_val_t alignment{256};

// The clock that the first core runs at now, or null where the system does not say.
nlohmann::ordered_json clock_mhz() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.rfind("cpu MHz", 0) == 0 && colon != std::string::npos) return std::stod(line.substr(colon + 2));
  }
  return nullptr;
}

class CpuBackend final : public Backend {
 public:
  gatefold_device device() const override { return GATEFOLD_DEVICE_CPU; }

  nlohmann::ordered_json describe() const override {
    gatefold_device_info info{};
    throw_on_error(gatefold_device_query(GATEFOLD_DEVICE_CPU, 0, &info));
    return {{"device", "cpu"},
            {"cpu", info.name},
            {"features", info.features},
            {"threads", info.threads},
            {"memory_bytes", info.memory_bytes},
            {"gpu", nullptr},
            {"driver", nullptr},
            {"cuda", nullptr},
            {"clocks", {{"cpu_mhz", clock_mhz()}}}};
  }

  bool uses_host_memory() const override { return true; }

  void* allocate(std::size_t bytes) override {
    void* data = ::operator new(std::max<std::size_t>(bytes, 1), alignment);
    sizes_[data] = bytes;
    allocated_ += bytes;
    peak_ = std::max(peak_, allocated_);
    return data;
  }

  void deallocate(void* data) noexcept override {
    const auto found = sizes_.find(data);
    if (found == sizes_.end()) return;
    allocated_ -= found->second;
    sizes_.erase(found);
    ::operator delete(data, alignment);
  }

  void upload(void* device_data, std::span<const std::byte> host_data) override {
    if (!host_data.empty()) std::memcpy(device_data, host_data.data(), host_data.size());
  }

  void download(std::span<std::byte> host_data, const void* device_data) override {
    if (!host_data.empty()) std::memcpy(host_data.data(), device_data, host_data.size());
  }

  std::size_t peak_allocated() const override { return peak_; }
  void reset_peak() override { peak_ = allocated_; }
  std::size_t memory_in_use() const override { return allocated_; }

  std::size_t cache_bytes() const override {
    static const std::size_t bytes = last_level_cache_bytes();
    return bytes;
  }
  std::size_t memory_to_use() const override { return available_memory_bytes() / 2; }

  void* stream() const override { return nullptr; }
  void synchronise() override {}

  double seconds(const std::function<void()>& enqueue) override {
    const auto begin = std::chrono::steady_clock::now();
    enqueue();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  bool remembers_earlier_work() const override { return false; }

  void activation_pass(const ElementwisePass& pass) override { elementwise::activate(pass); }
  void multiply_pass(const ElementwisePass& pass) override { elementwise::multiply(pass); }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override { elementwise::copy(to, from, bytes); }

 private:
  std::unordered_map<void*, std::size_t> sizes_;
  std::size_t allocated_ = 0;
  std::size_t peak_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace gatefold::cli
