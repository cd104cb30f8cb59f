#include "plans.hpp"

#include <omp.h>

#include <cstdlib>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace gatefold_torch {
namespace {

// Everything that decides a plan: beside the description what the library reads of its surroundings when it makes one.
struct Key {
  gatefold_desc desc;
  int threads;
  std::string implementation;
  std::string forced;  // GATEFOLD_IMPL

  std::string_view bytes() const { return {reinterpret_cast<const char*>(&desc), sizeof desc}; }

  bool operator==(const Key& other) const {
    return threads == other.threads && bytes() == other.bytes() && implementation == other.implementation &&
           forced == other.forced;
  }
};
// Descriptions are compared as bytes, so there must be none that no field owns.
static_assert(sizeof(gatefold_desc) == 13 * 8 + 8 * 4, "gatefold_desc has grown: see that it has no padding");

struct KeyHash {
  size_t operator()(const Key& key) const {
    return std::hash<std::string_view>{}(key.bytes()) + static_cast<size_t>(key.threads);
  }
};

constexpr size_t kMaxPlans = 1024;

// Never destroyed: threads may still run while the process ends.
struct Cache {
  std::mutex mutex;
  std::unordered_map<Key, Plan, KeyHash> plans;

  static Cache& get() {
    static auto* const cache = new Cache;
    return *cache;
  }
};

// Of all threads.
Plan shared_plan_for(const Key& key) {
  Cache& cache = Cache::get();
  const std::lock_guard lock(cache.mutex);
  if (const auto found = cache.plans.find(key); found != cache.plans.end()) return found->second;

  gatefold_desc named = key.desc;
  if (!key.implementation.empty()) named.implementation = key.implementation.c_str();
  gatefold_plan* made = nullptr;
  check(gatefold_plan_create(&named, &made));
  const Plan plan(made, gatefold_plan_destroy);
  if (cache.plans.size() >= kMaxPlans) cache.plans.clear();  // those in use live on until their run ends
  cache.plans.emplace(key, plan);
  return plan;
}

}  // namespace

void check(gatefold_status status) {
  // runtime_error alone means the same to every version of torch.
  if (status != GATEFOLD_SUCCESS) throw std::runtime_error(gatefold_last_error());
}

const Plan& plan_for(const gatefold_desc& desc, const std::string& implementation) {
  const char* forced = std::getenv("GATEFOLD_IMPL");  // NOLINT(concurrency-mt-unsafe): only read
  const Key key{desc, omp_get_max_threads(), implementation, forced == nullptr ? "" : forced};
  // A model's layers are alike: the thread's last plan is the next one's too, without a lock and a hash.
  thread_local std::pair<Key, Plan> last;
  if (last.second == nullptr || !(last.first == key)) last = {key, shared_plan_for(key)};
  return last.second;
}

}  // namespace gatefold_torch

// How many plans are kept: for tests.
extern "C" GATEFOLD_API size_t gatefold_torch_plan_count() {
  auto& cache = gatefold_torch::Cache::get();
  const std::lock_guard lock(cache.mutex);
  return cache.plans.size();
}
