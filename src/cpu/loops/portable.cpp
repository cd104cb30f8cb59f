#include "core/float16.hpp"
#include "cpu/loops/nest.hpp"

// fp32, fp16 and bf16 on any machine, by the compiler's own vectors of four.
namespace gatefold::cpu {
namespace {

struct PortableSums {
  using Vector = float __attribute__((vector_size(16)));
  using Operand = Vector;
  static constexpr int lanes = 4;
  static constexpr bool parts_share_words = false;
  static constexpr int parts = 1;
  static constexpr int pairs = 1;
  static constexpr int tile_tokens = 2;
  static constexpr int streamed_tokens = 2;
  static constexpr int widened_tokens = tile_tokens;
  static constexpr std::int64_t widened_cache = 0;  // a conversion costs more than a product
  static constexpr std::int64_t step = 4;
  static constexpr std::int64_t k_block = 1024;

  static Vector zero() { return Vector{}; }
  static void store(float* out, Vector values) { __builtin_memcpy(out, &values, sizeof values); }
  static Vector load_widened(const float* x) {
    Vector values;
    __builtin_memcpy(&values, x, sizeof values);
    return values;
  }
  static Vector multiply_add(Operand a, Operand b, Vector sum) { return a * b + sum; }

  template <int tokens>
  static void add_sums(const Vector (&sums)[tokens][tile_rows_of], float* out, bool first) {
    for (int t = 0; t < tokens; ++t) {
      for (int r = 0; r < tile_rows_of; ++r) {
        const Vector& sum = sums[t][r];
        const float folded = (sum[0] + sum[2]) + (sum[1] + sum[3]);
        float& to = out[t * tile_rows_of + r];
        to = first ? folded : folded + to;
      }
    }
  }
};

struct Float : PortableSums {
  using Element = float;
  static constexpr bool in_place = true;
  static float value(Element element) { return element; }
};

struct Fp16 : PortableSums {
  using Element = std::uint16_t;
  static constexpr bool in_place = false;
  static float value(Element element) { return fp16_to_float(element); }
};

struct BFloat : PortableSums {
  using Element = std::uint16_t;
  static constexpr bool in_place = false;
  static float value(Element element) { return bf16_to_float(element); }
};

template <class Type>
struct Loads : Type {
  using Element = typename Type::Element;
  using Operand = typename Type::Operand;

  static Operand load(const Element* from, int /*part*/) {
    return Operand{Type::value(from[0]), Type::value(from[1]), Type::value(from[2]), Type::value(from[3])};
  }
  static Operand load_rest(const Element* from, int /*part*/, int count) {
    Operand values{};
    for (int i = 0; i < count; ++i) values[i] = Type::value(from[i]);
    return values;
  }
};

constexpr Kernel kernels[] = {make_kernel<Loads<Float>>("portable", DType::fp32),
                              make_kernel<Loads<Fp16>>("portable", DType::fp16),
                              make_kernel<Loads<BFloat>>("portable", DType::bf16)};

}  // namespace

KernelList portable_kernels() { return {kernels, sizeof kernels / sizeof kernels[0]}; }

}  // namespace gatefold::cpu
