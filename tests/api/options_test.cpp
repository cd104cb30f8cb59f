#include "api/valid_call.hpp"

// chunk_tokens and flags at the interface.
namespace gatefold::test {
namespace {

constexpr gatefold_op ops[] = {GATEFOLD_OP_ACT_AND_MUL, GATEFOLD_OP_GEMM, GATEFOLD_OP_GEMM_GATED, GATEFOLD_OP_GATE_UP,
                               GATEFOLD_OP_MLP};

TEST(ChunkTokens, AreAnMlpsAlone) {
  for (const gatefold_op op : ops) {
    ValidCall call(op);
    call.desc.chunk_tokens = 2;
    if (op == GATEFOLD_OP_MLP) {
      expect_runs(call);
    } else {
      expect_refused(call.desc, {"chunk_tokens: 2", "expects 0"});
    }
  }
}

TEST(ChunkTokens, AreNotNegative) {
  ValidCall call(GATEFOLD_OP_MLP);
  call.desc.chunk_tokens = -1;
  expect_refused(call.desc, {"chunk_tokens: -1 is negative"});
}

TEST(Flags, AreThoseThatAreKnown) {
  for (const gatefold_op op : ops) {
    ValidCall call(op);
    call.desc.flags = GATEFOLD_FLAG_BATCH_INVARIANT;
    expect_runs(call);
    for (const std::uint64_t unknown : {std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{1} << 63}) {
      call.desc.flags = unknown;
      expect_refused(call.desc, {"flags: " + std::to_string(unknown), "at most 1"});
    }
  }
}

}  // namespace
}  // namespace gatefold::test
