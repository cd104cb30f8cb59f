#include "cli/elementwise.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cli/element.hpp"
#include "numbers/exp.hpp"

// A second copy for CPUs with AVX2, chosen when the program starts. (A copy for an architecture, such as haswell, would
// not inline what is compiled for another.) Sanitizers can't follow the chooser.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define GATEFOLD_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define GATEFOLD_CLONES
#endif

namespace gatefold::cli::elementwise {
namespace {

// Fewer elements than this are done before a second thread has woken up.
constexpr std::int64_t worth_a_thread = 1 << 14;

// Comparisons are false for NaN, so that it passes through.
inline float at_most(float x, float limit) { return x > limit ? limit : x; }
inline float at_least(float x, float limit) { return x < limit ? limit : x; }

using numbers::sigmoid;

struct Silu {
  float operator()(float g) const { return g * sigmoid(g); }
};
struct GeluTanh {
  // g/2 (1 + tanh z) = g sigmoid(2z), with z = sqrt(2/pi) (g + 0.044715 g^3)
  float operator()(float g) const { return g * sigmoid(1.59576912F * (g + 0.044715F * g * g * g)); }
};
struct GeluErf {
  static constexpr bool calls_a_function = true;  // no compiler makes vector code of std::erf, and clang complains
  float operator()(float g) const { return 0.5F * g * (1.0F + std::erf(g * 0.707106781F)); }
};
struct Relu {
  float operator()(float g) const { return at_least(g, 0.0F); }
};
struct Sigmoid {
  float operator()(float g) const { return sigmoid(g); }
};
struct Identity {
  float operator()(float g) const { return g; }
};
struct Clamped {
  float limit, alpha;
  float operator()(float g) const {
    const float low = at_most(g, limit);
    return low * sigmoid(alpha * low);
  }
};

// Runs of neighbouring columns of one half: the half's column j is stored in column `first` of its run, and so on.
struct Run {
  std::int64_t first;   // of h
  std::int64_t stored;  // of the operand
  std::int64_t count;
};

template <class Function>
void for_each_run(const ElementwisePass& p, bool up_half, Function function) {
  const std::int64_t F = p.intermediate_size;
  const gatefold_layout kind = p.layout.kind();
  const bool gate_first = kind != GATEFOLD_LAYOUT_UP_GATE && kind != GATEFOLD_LAYOUT_INTERLEAVED_UP_GATE;
  if (!p.layout.packed()) return function(Run{0, 0, F});
  const bool interleaved = p.layout.block() != 0;
  const std::int64_t block = interleaved ? p.layout.block() : F;
  const std::int64_t shift = up_half == gate_first ? block : 0;
  for (std::int64_t j = 0; j < F; j += block) function(Run{j, 2 * j + shift, std::min(block, F - j)});
}

std::int64_t operand_stride(const ElementwisePass& p) {
  return p.layout.packed() ? 2 * p.intermediate_size : p.intermediate_size;
}

template <class Element, class Activate>
GATEFOLD_CLONES void activate_run(const typename Element::Stored* gate, typename Element::Stored* out,
                                  std::int64_t count, Activate act) {
  if constexpr (requires { Activate::calls_a_function; }) {
    for (std::int64_t j = 0; j < count; ++j) out[j] = Element::store(act(Element::load(gate[j])));
  } else {
#pragma omp simd
    for (std::int64_t j = 0; j < count; ++j) out[j] = Element::store(act(Element::load(gate[j])));
  }
}

template <class Element>
GATEFOLD_CLONES void multiply_run(const typename Element::Stored* activated, const typename Element::Stored* up,
                                  typename Element::Stored* out, std::int64_t count) {
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j) out[j] = Element::store(Element::load(activated[j]) * Element::load(up[j]));
}

template <class Element>
GATEFOLD_CLONES void multiply_clamped_run(const typename Element::Stored* activated, const typename Element::Stored* up,
                                          typename Element::Stored* out, std::int64_t count, float limit, float beta) {
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j) {
    const float factor = at_most(at_least(Element::load(up[j]), -limit), limit) + beta;
    out[j] = Element::store(Element::load(activated[j]) * factor);
  }
}

template <class Element, class Activate>
void activate_rows(const ElementwisePass& p, Activate act) {
  using Stored = typename Element::Stored;
#pragma omp parallel for if (p.tokens * p.intermediate_size > worth_a_thread)
  for (std::int64_t row = 0; row < p.tokens; ++row) {
    const Stored* gate = reinterpret_cast<const Stored*>(p.gate) + row * operand_stride(p);
    Stored* out = reinterpret_cast<Stored*>(p.activated) + row * p.intermediate_size;
    for_each_run(p, false, [&](Run run) { activate_run<Element>(gate + run.stored, out + run.first, run.count, act); });
  }
}

template <class Element>
void multiply_rows(const ElementwisePass& p) {
  using Stored = typename Element::Stored;
  const bool clamped = p.activation.kind == GATEFOLD_ACTIVATION_SWIGLU_CLAMPED;
  const std::byte* up_base = p.layout.packed() ? p.gate : p.up;
#pragma omp parallel for if (p.tokens * p.intermediate_size > worth_a_thread)
  for (std::int64_t row = 0; row < p.tokens; ++row) {
    const Stored* activated = reinterpret_cast<const Stored*>(p.activated) + row * p.intermediate_size;
    const Stored* up = reinterpret_cast<const Stored*>(up_base) + row * operand_stride(p);
    Stored* out = reinterpret_cast<Stored*>(p.h) + row * p.intermediate_size;
    for_each_run(p, true, [&](Run run) {
      const Stored* a = activated + run.first;
      const Stored* u = up + run.stored;
      if (clamped) {
        multiply_clamped_run<Element>(a, u, out + run.first, run.count, p.activation.limit, p.activation.beta);
      } else {
        multiply_run<Element>(a, u, out + run.first, run.count);
      }
    });
  }
}

}  // namespace

void activate(const ElementwisePass& pass) {
  with_element(pass.dtype, [&](auto element) {
    using Element = decltype(element);
    switch (pass.activation.kind) {
      case GATEFOLD_ACTIVATION_SILU: return activate_rows<Element>(pass, Silu{});
      case GATEFOLD_ACTIVATION_GELU_TANH: return activate_rows<Element>(pass, GeluTanh{});
      case GATEFOLD_ACTIVATION_GELU_ERF: return activate_rows<Element>(pass, GeluErf{});
      case GATEFOLD_ACTIVATION_RELU: return activate_rows<Element>(pass, Relu{});
      case GATEFOLD_ACTIVATION_SIGMOID: return activate_rows<Element>(pass, Sigmoid{});
      case GATEFOLD_ACTIVATION_IDENTITY: return activate_rows<Element>(pass, Identity{});
      case GATEFOLD_ACTIVATION_SWIGLU_CLAMPED:
        return activate_rows<Element>(pass, Clamped{pass.activation.limit, pass.activation.alpha});
    }
  });
}

void multiply(const ElementwisePass& pass) {
  with_element(pass.dtype, [&](auto element) { multiply_rows<decltype(element)>(pass); });
}

void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t piece = std::size_t{1} << 18;
  const auto pieces = static_cast<std::int64_t>((bytes + piece - 1) / piece);
#pragma omp parallel for if (pieces > 1)
  for (std::int64_t i = 0; i < pieces; ++i) {
    const std::size_t begin = static_cast<std::size_t>(i) * piece;
    std::memcpy(to + begin, from + begin, std::min(piece, bytes - begin));
  }
}

}  // namespace gatefold::cli::elementwise
