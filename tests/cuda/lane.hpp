#pragma once

#include <vector>

#include "cuda_support.hpp"
#include "support/experiment.hpp"

namespace gatefold::test {

// Runs of one experiment on a stream of their own, with their own output and workspace. The experiment must have run
// before, which uploads its inputs.
struct Lane {
  Lane(const Experiment& experiment, const Plan& plan)
      : out(experiment.make_out()), workspace(experiment.make_workspace(plan)) {
    out.upload();
    workspace.upload();
  }

  void run(const Experiment& experiment, const Plan& plan) {
    Args args = experiment.device_args(out, workspace);
    args.stream = stream.get();
    plan.run(args);
  }
  std::vector<std::byte> result(const Experiment& experiment) {
    stream.wait();
    out.download();
    out.expect_surroundings_unchanged("out");
    const std::size_t span =
        static_cast<std::size_t>((experiment.spec().tokens - 1) * out.shape().ld + out.shape().columns) *
        element_size(experiment.spec().dtype);
    return {out.host(), out.host() + span};
  }

  Tensor out;
  Tensor workspace;
  Stream stream;
};

}  // namespace gatefold::test
