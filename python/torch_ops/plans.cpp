#include "plans.hpp"

#include <omp.h>

#include <cstdlib>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <unordered_map>

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
static_assert(sizeof(gatefold_desc) == 11 * 8 + 8 * 4, "gatefold_desc has grown: see that it has no padding");

struct KeyHash {
  size_t operator()(const Key& key) const {
    return std::hash<std::string_view>{}(key.bytes()) + static_cast<size_t>(key.threads);
  }
};

constexpr size_t kMaxPlans = 1024;

}  // namespace

void check(gatefold_status status) {
  // runtime_error alone means the same to every version of torch.
  if (status != GATEFOLD_SUCCESS) throw std::runtime_error(gatefold_last_error());
}

Plan plan_for(const gatefold_desc& desc, const std::string& implementation) {
  // Never destroyed: threads may still run while the process ends.
  static auto* const mutex = new std::mutex;
  static auto* const plans = new std::unordered_map<Key, Plan, KeyHash>;
  const char* forced = std::getenv("GATEFOLD_IMPL");  // NOLINT(concurrency-mt-unsafe): only read
  const Key key{desc, omp_get_max_threads(), implementation, forced == nullptr ? "" : forced};
  const std::lock_guard lock(*mutex);
  if (const auto found = plans->find(key); found != plans->end()) return found->second;

  gatefold_desc named = desc;
  if (!implementation.empty()) named.implementation = implementation.c_str();
  gatefold_plan* made = nullptr;
  check(gatefold_plan_create(&named, &made));
  const Plan plan(made, gatefold_plan_destroy);
  if (plans->size() >= kMaxPlans) plans->clear();  // those in use live on until their run ends
  plans->emplace(key, plan);
  return plan;
}

}  // namespace gatefold_torch
