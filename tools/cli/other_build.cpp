#include "cli/other_build.hpp"

#include <dlfcn.h>

#include <cstddef>

#include "checkpoint/input_error.hpp"

namespace gatefold::cli {
namespace {

// The functions of gatefold.h that the stage needs, under their own names.
struct Functions {
  decltype(&::gatefold_plan_create) gatefold_plan_create = nullptr;
  decltype(&::gatefold_plan_destroy) gatefold_plan_destroy = nullptr;
  decltype(&::gatefold_plan_implementation) gatefold_plan_implementation = nullptr;
  decltype(&::gatefold_plan_workspace_size) gatefold_plan_workspace_size = nullptr;
  decltype(&::gatefold_run) gatefold_run = nullptr;
  decltype(&::gatefold_last_error) gatefold_last_error = nullptr;

  explicit Functions(void* library) {
    resolve(library, "gatefold_plan_create", gatefold_plan_create);
    resolve(library, "gatefold_plan_destroy", gatefold_plan_destroy);
    resolve(library, "gatefold_plan_implementation", gatefold_plan_implementation);
    resolve(library, "gatefold_plan_workspace_size", gatefold_plan_workspace_size);
    resolve(library, "gatefold_run", gatefold_run);
    resolve(library, "gatefold_last_error", gatefold_last_error);
  }

  bool complete() const {
    return gatefold_plan_create != nullptr && gatefold_plan_destroy != nullptr &&
           gatefold_plan_implementation != nullptr && gatefold_plan_workspace_size != nullptr &&
           gatefold_run != nullptr && gatefold_last_error != nullptr;
  }

 private:
  template <class Function>
  static void resolve(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
  }
};

// Structs are passed as 0.1.0 knew them: its own builds take no larger ones, and a benchmark has no biases.
class BuildStage final : public Stage {
 public:
  BuildStage(const Functions& functions, std::string name, const Block& block)
      : functions_(functions), name_(std::move(name)), block_(block) {
    const Desc desc = gate_up_desc(block);
    gatefold_desc c_desc = desc.c_desc();
    c_desc.struct_size = offsetof(gatefold_desc, biases);
    require(functions_.gatefold_plan_create(&c_desc, &plan_));
  }
  ~BuildStage() override { functions_.gatefold_plan_destroy(plan_); }

  std::string implementation() const override {
    const char* chosen = functions_.gatefold_plan_implementation(plan_, block_.tokens);
    return chosen == nullptr ? name_ : chosen;
  }

  Work work() const override { return gate_up_work(block_); }

  std::size_t workspace_size() const override {
    std::size_t bytes = 0;
    require(functions_.gatefold_plan_workspace_size(plan_, block_.tokens, &bytes));
    return bytes;
  }

  void enqueue(const Tensors& tensors, Backend& backend) const override {
    Args args = gate_up_args(block_, tensors);
    args.tokens = block_.tokens;
    args.workspace = tensors.workspace;
    args.stream = backend.stream();
    gatefold_args c_args = args.c_args();
    c_args.struct_size = offsetof(gatefold_args, gate_bias);
    require(functions_.gatefold_run(plan_, &c_args));
  }

 private:
  void require(gatefold_status status) const {
    if (status != GATEFOLD_SUCCESS) checkpoint::throw_input_error(name_, ": ", functions_.gatefold_last_error());
  }

  Functions functions_;
  std::string name_;
  Block block_;
  gatefold_plan* plan_ = nullptr;
};

}  // namespace

bool is_gatefold(void* library) { return Functions(library).complete(); }

StagePtr gate_up_of_build(void* library, const std::string& name, const Block& block) {
  return std::make_shared<BuildStage>(Functions(library), name, block);
}

}  // namespace gatefold::cli
