#include "core/layout.hpp"

#include "core/problem.hpp"

#include <gtest/gtest.h>

#include "support/layouts.hpp"
#include "support/names.hpp"

namespace gatefold {
namespace {

using Internal = decltype(Problem::layout);  // the public header has a Layout too

Internal internal(const test::Layout& layout) { return {static_cast<LayoutKind>(layout.kind()), layout.block()}; }

// Laying the lines out one by one must give what the closed formula gives.
TEST(LineMap, FollowsEveryLayout) {
  for (std::int64_t lines = 0; lines <= 96; ++lines) {
    for (const test::Layout& layout : test::layouts_for(lines)) {
      SCOPED_TRACE(test::name(layout) + " of " + std::to_string(lines) + " lines");
      const test::Positions expected = test::positions(layout, lines);
      const LineMap gate = internal(layout).map(Half::gate, lines);
      const LineMap up = internal(layout).map(Half::up, lines);
      for (std::int64_t j = 0; j < lines; ++j) {
        ASSERT_EQ(gate(j), expected.gate[j]) << "gate line " << j;
        ASSERT_EQ(up(j), expected.up[j]) << "up line " << j;
      }
    }
  }
}

TEST(LineMap, OfBlocksThatAreNoPowerOfTwo) {
  const Internal layout{LayoutKind::interleaved_up_gate, 3};
  const test::Positions expected = test::positions(test::Layout::interleaved_up_gate(3), 12);
  for (std::int64_t j = 0; j < 12; ++j) {
    EXPECT_EQ(layout.map(Half::gate, 12)(j), expected.gate[j]);
    EXPECT_EQ(layout.map(Half::up, 12)(j), expected.up[j]);
  }
}

TEST(LineMap, CountsIn64Bits) {
  constexpr std::int64_t lines = std::int64_t{1} << 40;
  const Internal halves{LayoutKind::gate_up, 0};
  EXPECT_EQ(halves.map(Half::up, lines)(lines - 1), 2 * lines - 1);
  const Internal interleaved{LayoutKind::interleaved_gate_up, 8};
  EXPECT_EQ(interleaved.map(Half::gate, lines)(lines - 8), 2 * lines - 16);
}

TEST(LayoutKinds, KnowWhatTheyAre) {
  EXPECT_FALSE((Internal{LayoutKind::none, 0}.packed()));
  EXPECT_FALSE((Internal{LayoutKind::separate, 0}.packed()));
  EXPECT_TRUE((Internal{LayoutKind::up_gate, 0}.packed()));
  EXPECT_TRUE((Internal{LayoutKind::interleaved_gate_up, 1}.interleaved()));
  EXPECT_FALSE((Internal{LayoutKind::gate_up, 0}.interleaved()));
  EXPECT_TRUE((Internal{LayoutKind::interleaved_up_gate, 1}.up_first()));
}

}  // namespace
}  // namespace gatefold
