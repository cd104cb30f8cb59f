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
#elif defined(__aarch64__)
    &neon_products,
#endif
};

// Beside it, starting the threads takes nothing.
constexpr double call_seconds = 0.002;

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
#elif defined(__aarch64__)
  if (lists(features, "neon")) return neon_reads;
#endif
  return portable_reads;
}

Work products(const ProductLoop& loop, const std::byte* operands) {
  const int count = threads();
  const auto multiply = [&loop, operands, count](std::int64_t passes) {
#pragma omp parallel num_threads(count)
    keep(loop.run(operands, passes));
  };
  const auto seconds_of = [&](std::int64_t passes) {
    const auto begin = std::chrono::steady_clock::now();
    multiply(passes);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::int64_t passes = 1;
  while (seconds_of(passes) < call_seconds) passes *= 2;
  return {[=] { multiply(passes); }, static_cast<double>(passes) * loop.flops_per_pass * count};
}

void write_parts(std::byte* data, std::size_t bytes) {
  const int count = threads();
#pragma omp parallel num_threads(count)
  {
    const Part part = part_of(bytes, this_thread(), count);
    std::memset(data + part.begin, this_thread() + 1, part.bytes);
  }
}

Work reading(const ReadLoop& loop, const std::byte* data, std::size_t bytes) {
  const int count = threads();
  const auto read = [&loop, data, bytes, count] {
#pragma omp parallel num_threads(count)
    {
      const Part part = part_of(bytes, this_thread(), count);
      keep(loop.run(data + part.begin, part.bytes));
    }
  };
  return {read, static_cast<double>(bytes - bytes % read_unit)};
}

}  // namespace gatefold::peaks
