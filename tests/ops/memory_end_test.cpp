#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <new>

#include "ops/targets.hpp"
#include "support/element.hpp"

// On the CPU: nothing behind an operand, the output or the workspace is read or written, not even where memory ends
// there. A canary doesn't show what is read.
namespace gatefold::test {
namespace {

constexpr std::size_t alignment = 256;

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Bytes at the end of a page, with a page behind it that can be neither read nor written.
class LastBytes {
 public:
  explicit LastBytes(std::size_t bytes) : bytes_(bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t usable = round_up(bytes, page);
    size_ = usable + page;
    begin_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin_ == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<std::byte*>(begin_) + usable - bytes;
    if (mprotect(data_ + bytes, page, PROT_NONE) != 0) throw std::bad_alloc();
  }
  LastBytes(const void* from, std::size_t bytes) : LastBytes(bytes) {
    if (from != nullptr) std::memcpy(data_, from, bytes);
  }
  LastBytes(const LastBytes&) = delete;
  LastBytes& operator=(const LastBytes&) = delete;
  ~LastBytes() { munmap(begin_, size_); }

  std::byte* data() const { return data_; }
  std::vector<std::byte> copy() const { return {data_, data_ + bytes_}; }

 private:
  std::size_t bytes_;
  std::size_t size_ = 0;
  void* begin_ = nullptr;
  std::byte* data_ = nullptr;
};

class MemoryEnd : public TargetTest {
 protected:
  std::size_t bytes(std::int64_t elements) const {
    return static_cast<std::size_t>(elements) * element_size(GetParam().dtype);
  }

  // The same bits as where memory goes on.
  void expect_the_same_at_the_end(const Spec& s, Random& random) const {
    Experiment experiment(s, random);
    const Plan plan(experiment.desc(GetParam().implementation));
    experiment.run(plan);
    const Args ordinary = experiment.host_args();
    const bool weights = s.op != GATEFOLD_OP_ACT_AND_MUL;
    const std::int64_t weight = s.hidden_size * s.intermediate_size;
    const std::int64_t tensor = s.tokens * s.intermediate_size;
    const bool gate_is_a_weight = s.op == GATEFOLD_OP_GATE_UP || s.op == GATEFOLD_OP_MLP;

    const LastBytes x(ordinary.x, bytes(s.tokens * s.hidden_size));
    const LastBytes gate(ordinary.gate, bytes(gate_is_a_weight ? weight : tensor));
    const LastBytes up(ordinary.up, bytes(weights ? weight : tensor));
    const LastBytes down(ordinary.down, bytes(weight));
    const LastBytes gate_bias(ordinary.gate_bias, bytes(s.intermediate_size));
    const LastBytes up_bias(ordinary.up_bias, bytes(s.intermediate_size));
    const LastBytes down_bias(ordinary.down_bias, bytes(s.hidden_size));
    const LastBytes out(bytes(s.tokens * experiment.columns()));
    const std::size_t size = plan.workspace_size(s.tokens);
    const LastBytes workspace(round_up(size, alignment));
    const auto at_the_end = [](const void* operand, const LastBytes& last) {
      return operand == nullptr ? nullptr : last.data();
    };
    plan.run({.tokens = s.tokens,
              .x = at_the_end(ordinary.x, x),
              .gate = at_the_end(ordinary.gate, gate),
              .up = at_the_end(ordinary.up, up),
              .down = at_the_end(ordinary.down, down),
              .out = out.data(),
              .workspace = {workspace.data(), size},
              .gate_bias = at_the_end(ordinary.gate_bias, gate_bias),
              .up_bias = at_the_end(ordinary.up_bias, up_bias),
              .down_bias = at_the_end(ordinary.down_bias, down_bias)});
    EXPECT_EQ(out.copy(), experiment.out_bytes()) << describe(s);
  }
};
INSTANTIATE_TEST_SUITE_P(All, MemoryEnd, testing::ValuesIn(all_targets()), target_name);

// Sums of 2048 terms and more are those of outer products, and every rest of their groups of six tokens is there: from
// 48 tokens in fp32, from 72 in bf16.
TEST_P(MemoryEnd, IsNotPassed) {
  Random random = test_random();
  for (const auto& [hidden_size, intermediate_size] : {std::pair{2048, 48}, {64, 2048}, {37, 29}, {130, 70}}) {
    for (const std::int64_t tokens : {1, 2, 5, 7, 13, 49, 50, 51, 52, 53, 73, 74, 75, 76, 77, 131}) {
      Spec s = spec(tokens, hidden_size, intermediate_size);
      s.biases = every_bias;
      expect_the_same_at_the_end(s, random);
    }
  }
}

}  // namespace
}  // namespace gatefold::test
