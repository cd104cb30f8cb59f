#include <limits>
#include <vector>

#include "api/valid_call.hpp"

// Bias vectors at the interface: which an op takes, and every way in which a run's can be wrong.
namespace gatefold::test {
namespace {

constexpr std::uint64_t gate_bit = GATEFOLD_BIAS_GATE;
constexpr std::uint64_t up_bit = GATEFOLD_BIAS_UP;
constexpr std::uint64_t down_bit = GATEFOLD_BIAS_DOWN;

constexpr std::int64_t F = ValidCall::intermediate_size;

// A valid call with biases of 1, which nothing else of a call's tensors is.
struct BiasedCall : ValidCall {
  BiasedCall(gatefold_op op, std::uint64_t biases, gatefold_layout layout = GATEFOLD_LAYOUT_SEPARATE)
      : ValidCall(op, layout) {
    desc.biases = biases;
    if ((biases & gate_bit) != 0) args.gate_bias = bias.data();
    if ((biases & up_bit) != 0) args.up_bias = bias.data();
    if ((biases & down_bit) != 0) args.down_bias = bias.data();
  }

  std::vector<float> bias = std::vector<float>(2 * F, 1.0F);
};

struct Possible {
  gatefold_op op;
  gatefold_layout layout;
  std::uint64_t biases;
};
constexpr Possible possible[] = {{GATEFOLD_OP_ACT_AND_MUL, GATEFOLD_LAYOUT_SEPARATE, 0},
                                 {GATEFOLD_OP_ACT_AND_MUL, GATEFOLD_LAYOUT_GATE_UP, 0},
                                 {GATEFOLD_OP_GEMM, GATEFOLD_LAYOUT_SEPARATE, up_bit},
                                 {GATEFOLD_OP_GEMM_GATED, GATEFOLD_LAYOUT_SEPARATE, up_bit},
                                 {GATEFOLD_OP_GATE_UP, GATEFOLD_LAYOUT_SEPARATE, gate_bit | up_bit},
                                 {GATEFOLD_OP_GATE_UP, GATEFOLD_LAYOUT_UP_GATE, gate_bit},
                                 {GATEFOLD_OP_GATE_UP, GATEFOLD_LAYOUT_INTERLEAVED_GATE_UP, gate_bit},
                                 {GATEFOLD_OP_MLP, GATEFOLD_LAYOUT_SEPARATE, gate_bit | up_bit | down_bit},
                                 {GATEFOLD_OP_MLP, GATEFOLD_LAYOUT_GATE_UP, gate_bit | down_bit}};

TEST(Biases, EachOpTakesItsOwn) {
  for (const Possible& p : possible) {
    for (std::uint64_t biases = 0; biases < 8; ++biases) {
      SCOPED_TRACE(std::to_string(p.op) + ", layout " + std::to_string(p.layout) + ", biases " +
                   std::to_string(biases));
      BiasedCall call(p.op, biases, p.layout);
      if ((biases & ~p.biases) == 0) {
        expect_runs(call);
      } else {
        expect_refused(call.desc, {"biases: " + std::to_string(biases), p.biases == 0 ? "none, 0" : "takes at most "});
      }
    }
  }
}

TEST(Biases, RefusalsNameWhatIsPossible) {
  BiasedCall call(GATEFOLD_OP_MLP, up_bit, GATEFOLD_LAYOUT_INTERLEAVED_GATE_UP);
  expect_refused(call.desc,
                 {"biases: 2 was given, but mlp with the layout interleaved_gate_up takes at most gate 1 + down 4"});
  call = BiasedCall(GATEFOLD_OP_GEMM, gate_bit);
  expect_refused(call.desc, {"biases: 1 was given, but gemm takes at most up 2"});
  call.desc.biases = std::numeric_limits<std::uint64_t>::max();
  expect_refused(call.desc, {"biases: 18446744073709551615"});
}

struct Vector {
  const char* name;
  std::uint64_t bit;
  const void* gatefold_args::*field;
  std::int64_t length;
};
constexpr Vector vectors[] = {{"gate_bias", gate_bit, &gatefold_args::gate_bias, F},
                              {"up_bias", up_bit, &gatefold_args::up_bias, F},
                              {"down_bias", down_bit, &gatefold_args::down_bias, ValidCall::hidden_size}};

TEST(Biases, MissingSuperfluousMisalignedAndOverlapping) {
  for (const Vector& vector : vectors) {
    const std::string name = vector.name;
    BiasedCall missing(GATEFOLD_OP_MLP, gate_bit | up_bit | down_bit);
    missing.args.*vector.field = nullptr;
    expect_run_refused(missing, {name + ": null pointer", "1 x " + std::to_string(vector.length) + " elements"});

    BiasedCall superfluous(GATEFOLD_OP_MLP, (gate_bit | up_bit | down_bit) & ~vector.bit);
    superfluous.args.*vector.field = superfluous.bias.data();
    expect_run_refused(superfluous, {name + ": a pointer was given, but the description's biases expect null"});

    BiasedCall misaligned(GATEFOLD_OP_MLP, gate_bit | up_bit | down_bit);
    misaligned.args.*vector.field = reinterpret_cast<const std::byte*>(misaligned.bias.data()) + 2;
    expect_run_refused(misaligned, {name + ": address", "element size 4"});

    BiasedCall overlapping(GATEFOLD_OP_MLP, gate_bit | up_bit | down_bit);
    overlapping.args.*vector.field = overlapping.out.data() + 3;
    expect_run_refused(overlapping, {"out: 3 x 8", "overlaps input " + name, "1 x "});
  }
}

TEST(Biases, PackedVectorsAreTwiceAsLong) {
  BiasedCall missing(GATEFOLD_OP_GATE_UP, gate_bit, GATEFOLD_LAYOUT_GATE_UP);
  missing.args.gate_bias = nullptr;
  expect_run_refused(missing, {"gate_bias: null pointer", "1 x 24 elements"});

  // Its last element is the output's first.
  BiasedCall call(GATEFOLD_OP_GATE_UP, gate_bit, GATEFOLD_LAYOUT_GATE_UP);
  std::vector<float> both(2 * F + ValidCall::tokens * F, 1.0F);
  call.args.gate_bias = both.data();
  call.args.out = both.data() + 2 * F - 1;
  expect_run_refused(call, {"overlaps input gate_bias", "1 x 24"});
  call.args.out = both.data() + 2 * F;
  std::fill(call.out.begin(), call.out.end(), 0.0F);  // the output is elsewhere
  expect_runs(call);
}

// A vector beside the output's columns, in its first row's padding.
TEST(Biases, BesideTheOutputsColumns) {
  BiasedCall call(GATEFOLD_OP_GEMM, up_bit);
  call.desc.ld_out = 2 * F;
  std::vector<float> buffer(2 * ValidCall::tokens * F, 1.0F);
  call.args.out = buffer.data();
  call.args.up_bias = buffer.data() + F;
  std::fill(call.out.begin(), call.out.end(), 0.0F);
  expect_runs(call);
  EXPECT_EQ(buffer[0], 9.0F);  // 8 x 0.5 x 2 + 1
  EXPECT_EQ(buffer[F], 1.0F);
  call.args.up_bias = buffer.data() + F + 1;
  expect_run_refused(call, {"overlaps input up_bias"});
}

// A caller of 0.1.0 has no biases, and what lies behind its structs isn't read.
TEST(Biases, UnknownToTheFirstVersion) {
  BiasedCall call(GATEFOLD_OP_GEMM, up_bit);
  call.desc.struct_size = offsetof(gatefold_desc, biases);
  call.args.struct_size = offsetof(gatefold_args, gate_bias);
  expect_runs(call);
  EXPECT_EQ(call.out[0], 8.0F);
}

}  // namespace
}  // namespace gatefold::test
