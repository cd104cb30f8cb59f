#include "peaks/measure.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iterator>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace gatefold::peaks {
namespace {

constexpr const ProductLoop* product_loops[] = {
    &portable_products,
#if defined(__x86_64__)
    &avx2_products,     &avx512_products,     &avx512_bf16_products,
    &amx_bf16_products, &amx_bf16x3_products, &amx_bf16x2_products,
#endif
};

constexpr double window_seconds = 0.04;
constexpr int windows = 8;

// As many as are really there: limits may let fewer start than were asked for.
int threads() {
  int count = 0;
#pragma omp parallel reduction(+ : count)
  ++count;
  return count;
}

int this_thread() {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}

// Keeps what the loops return, and so the loops.
template <class Result>
void keep(Result result) {
  __asm__ volatile("" : : "m"(result) : "memory");
}

double seconds_of(const auto& work, std::int64_t times) {
  const auto begin = std::chrono::steady_clock::now();
  work(times);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// How often a second `work`, told how many times, does what it does once.
double best_rate(const auto& work) {
  std::int64_t times = 1;
  double seconds = seconds_of(work, times);
  while (seconds < window_seconds) {
    times *= 2;
    seconds = seconds_of(work, times);
  }
  double best = seconds;
  for (int window = 0; window < windows; ++window) best = std::min(best, seconds_of(work, times));
  return static_cast<double>(times) / best;
}

// Of one thread.
struct Part {
  std::size_t begin;
  std::size_t bytes;
};

Part part_of(std::size_t bytes, int thread, int count) {
  const std::size_t units = bytes / read_unit;
  const std::size_t begin = units * static_cast<std::size_t>(thread) / static_cast<std::size_t>(count);
  const std::size_t end = units * (static_cast<std::size_t>(thread) + 1) / static_cast<std::size_t>(count);
  return {begin * read_unit, (end - begin) * read_unit};
}

// Whether `name` is among words with spaces between them.
[[maybe_unused]] bool lists(std::string_view words, std::string_view name) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == name) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

}  // namespace

const ProductLoop* find_product_loop(std::string_view instruction_set) {
  const auto* found = std::ranges::find(
      product_loops, instruction_set, [](const ProductLoop* loop) { return std::string_view(loop->instruction_set); });
  return found == std::end(product_loops) ? nullptr : *found;
}

std::string known_instruction_sets() {
  std::string text;
  for (const ProductLoop* loop : product_loops) text += (text.empty() ? "" : ", ") + std::string(loop->instruction_set);
  return text;
}

std::span<const ReadLoop> read_loops([[maybe_unused]] std::string_view features) {
#if defined(__x86_64__)
  if (lists(features, "avx512f")) return avx512_reads;
  if (lists(features, "avx2")) return avx2_reads;
#endif
  return portable_reads;
}

double flops_per_second(const ProductLoop& loop, const std::byte* operands) {
  const int count = threads();
  const double passes = best_rate([&](std::int64_t times) {
#pragma omp parallel num_threads(count)
    keep(loop.run(operands, times));
  });
  return passes * loop.flops_per_pass * count;
}

void write_parts(std::byte* data, std::size_t bytes) {
  const int count = threads();
#pragma omp parallel num_threads(count)
  {
    const Part part = part_of(bytes, this_thread(), count);
    std::memset(data + part.begin, this_thread() + 1, part.bytes);
  }
}

double read_bytes_per_second(std::span<const ReadLoop> loops, const std::byte* data, std::size_t bytes) {
  const int count = threads();
  double best = 0.0;
  for (const ReadLoop& loop : loops) {
    best = std::max(best, best_rate([&](std::int64_t times) {
#pragma omp parallel num_threads(count)
                      {
                        const Part part = part_of(bytes, this_thread(), count);
                        for (std::int64_t i = 0; i < times; ++i) keep(loop.run(data + part.begin, part.bytes));
                      }
                    }));
  }
  const std::size_t read = bytes - bytes % read_unit;
  return best * static_cast<double>(read);
}

}  // namespace gatefold::peaks
