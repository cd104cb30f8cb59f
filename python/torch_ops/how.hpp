// How to compute, as one string: each argument that is no tensor costs a call from Python 0.15 us, and this one also
// reads well in an exported graph. "layout=interleaved_gate_up;block=8;activation=silu"
#pragma once

#include <string>

#include "gatefold/gatefold.h"

namespace gatefold_torch {

struct How {
  gatefold_layout layout{};
  int64_t block = 0;
  gatefold_activation activation{};
  float limit = 0;
  float alpha = 0;
  float beta = 0;
  uint64_t flags = 0;
  std::string implementation;  // "": Gatefold chooses
};

// Parts stand in any order between semicolons, the implementation last: its name may hold anything. The answer is this
// thread's until its next call. Throws std::runtime_error, naming what it doesn't know.
const How& parse_how(const std::string& text);

}  // namespace gatefold_torch
