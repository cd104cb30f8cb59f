#include "cublaslt.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace gatefold::bench {
namespace {

constexpr std::size_t workspace_bytes = 64U << 20U;
constexpr int most_candidates = 16;

void require(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw std::runtime_error(std::string("cuBLASLt: ") + what + " failed with status " + std::to_string(status));
  }
}

void require(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + what + ": " + cudaGetErrorString(error));
}

cudaDataType_t data_type(gatefold_dtype dtype) {
  return dtype == GATEFOLD_DTYPE_BF16 ? CUDA_R_16BF : dtype == GATEFOLD_DTYPE_FP16 ? CUDA_R_16F : CUDA_R_32F;
}

}  // namespace

// The entry points used, under their own names.
struct CublasLt::Functions {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name that is declared can't stand in parentheses
#define GATEFOLD_CUBLASLT_FUNCTION(name) decltype(&::name) name = nullptr
  GATEFOLD_CUBLASLT_FUNCTION(cublasLtCreate);
  GATEFOLD_CUBLASLT_FUNCTION(cublasLtDestroy);
  GATEFOLD_CUBLASLT_FUNCTION(cublasLtGetVersion);
  GATEFOLD_CUBLASLT_FUNCTION(cublasLtMatmul);
  GATEFOLD_CUBLASLT_FUNCTION(cublasLtMatmulDescCreate);
  GATEFOLD_CUBLASLT_FUNCTION(cublasLtMatmulDescDestroy);
  GATEFOLD_CUBLASLT_FUNCTION(cublasLtMatmulDescSetAttribute);
  GATEFOLD_CUBLASLT_FUNCTION(cublasLtMatrixLayoutCreate);
  GATEFOLD_CUBLASLT_FUNCTION(cublasLtMatrixLayoutDestroy);
  GATEFOLD_CUBLASLT_FUNCTION(cublasLtMatmulPreferenceCreate);
  GATEFOLD_CUBLASLT_FUNCTION(cublasLtMatmulPreferenceDestroy);
  GATEFOLD_CUBLASLT_FUNCTION(cublasLtMatmulPreferenceSetAttribute);
  GATEFOLD_CUBLASLT_FUNCTION(cublasLtMatmulAlgoGetHeuristic);
  GATEFOLD_CUBLASLT_FUNCTION(cublasLtMatmulAlgoConfigGetAttribute);
#undef GATEFOLD_CUBLASLT_FUNCTION
};

namespace {

template <class Function>
void resolve(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(std::string("cuBLASLt: no symbol ") + name);
}

}  // namespace

CublasLt::CublasLt() : functions_(new Functions) {
  const char* chosen = std::getenv("GATEFOLD_CUBLASLT");  // NOLINT(concurrency-mt-unsafe): nobody here calls setenv
  const char* name = chosen != nullptr ? chosen : "libcublasLt.so.13";
  library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc keeps dlerror's text per thread
  if (library_ == nullptr) throw std::runtime_error(std::string("cuBLASLt: ") + dlerror());
  Functions& f = *functions_;
  resolve(library_, "cublasLtCreate", f.cublasLtCreate);
  resolve(library_, "cublasLtDestroy", f.cublasLtDestroy);
  resolve(library_, "cublasLtGetVersion", f.cublasLtGetVersion);
  resolve(library_, "cublasLtMatmul", f.cublasLtMatmul);
  resolve(library_, "cublasLtMatmulDescCreate", f.cublasLtMatmulDescCreate);
  resolve(library_, "cublasLtMatmulDescDestroy", f.cublasLtMatmulDescDestroy);
  resolve(library_, "cublasLtMatmulDescSetAttribute", f.cublasLtMatmulDescSetAttribute);
  resolve(library_, "cublasLtMatrixLayoutCreate", f.cublasLtMatrixLayoutCreate);
  resolve(library_, "cublasLtMatrixLayoutDestroy", f.cublasLtMatrixLayoutDestroy);
  resolve(library_, "cublasLtMatmulPreferenceCreate", f.cublasLtMatmulPreferenceCreate);
  resolve(library_, "cublasLtMatmulPreferenceDestroy", f.cublasLtMatmulPreferenceDestroy);
  resolve(library_, "cublasLtMatmulPreferenceSetAttribute", f.cublasLtMatmulPreferenceSetAttribute);
  resolve(library_, "cublasLtMatmulAlgoGetHeuristic", f.cublasLtMatmulAlgoGetHeuristic);
  resolve(library_, "cublasLtMatmulAlgoConfigGetAttribute", f.cublasLtMatmulAlgoConfigGetAttribute);
  require(f.cublasLtCreate(&handle_), "cublasLtCreate");
}

CublasLt::~CublasLt() {
  functions_->cublasLtDestroy(handle_);
  delete functions_;
  // The library stays loaded: unloading it under a live CUDA context is not safe.
}

std::size_t CublasLt::version() const { return functions_->cublasLtGetVersion(); }

// cuBLASLt is column-major: out^T [rows, tokens] = w [rows, length] . x^T, where a row-major matrix is its own
// transpose read column by column.
CublasLtGemm::CublasLtGemm(const CublasLt& library, gatefold_dtype dtype, std::int64_t tokens, std::int64_t rows,
                           std::int64_t length, std::int64_t ld_w)
    : library_(library) {
  const CublasLt::Functions& f = library_.functions();
  const cudaDataType_t type = data_type(dtype);
  const cublasOperation_t transpose = CUBLAS_OP_T;
  require(f.cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "creating the operation");
  require(f.cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose),
          "setting the transpose");
  const auto columns = static_cast<std::uint64_t>(length);
  require(f.cublasLtMatrixLayoutCreate(&w_layout_, type, columns, static_cast<std::uint64_t>(rows),
                                       ld_w == 0 ? length : ld_w),
          "w");
  require(f.cublasLtMatrixLayoutCreate(&x_layout_, type, columns, static_cast<std::uint64_t>(tokens), length), "x");
  require(f.cublasLtMatrixLayoutCreate(&out_layout_, type, static_cast<std::uint64_t>(rows),
                                       static_cast<std::uint64_t>(tokens), rows),
          "out");

  cublasLtMatmulPreference_t preference = nullptr;
  require(f.cublasLtMatmulPreferenceCreate(&preference), "creating the preference");
  require(f.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                                 sizeof workspace_bytes),
          "setting the workspace");
  candidates_.resize(most_candidates);
  int found = 0;
  require(f.cublasLtMatmulAlgoGetHeuristic(library_.handle(), operation_, w_layout_, x_layout_, out_layout_,
                                           out_layout_, preference, most_candidates, candidates_.data(), &found),
          "asking the heuristics");
  f.cublasLtMatmulPreferenceDestroy(preference);
  if (found == 0) throw std::runtime_error("cuBLASLt: no algorithm for this product");
  candidates_.resize(static_cast<std::size_t>(found));
  require(cudaMalloc(&workspace_, workspace_bytes), "allocating cuBLASLt's workspace");
}

CublasLtGemm::~CublasLtGemm() {
  const CublasLt::Functions& f = library_.functions();
  f.cublasLtMatrixLayoutDestroy(out_layout_);
  f.cublasLtMatrixLayoutDestroy(x_layout_);
  f.cublasLtMatrixLayoutDestroy(w_layout_);
  f.cublasLtMatmulDescDestroy(operation_);
  cudaFree(workspace_);
}

void CublasLtGemm::run(int candidate, const void* x, const void* w, void* out, cudaStream_t stream) const {
  const float one = 1.0F;
  const float zero = 0.0F;
  require(library_.functions().cublasLtMatmul(
              library_.handle(), operation_, &one, w, w_layout_, x, x_layout_, &zero, out, out_layout_, out,
              out_layout_, &candidates_[static_cast<std::size_t>(candidate)].algo, workspace_, workspace_bytes, stream),
          "multiplying");
}

void CublasLtGemm::run(const void* x, const void* w, void* out, cudaStream_t stream) const {
  run(best_, x, w, out, stream);
}

float CublasLtGemm::time(int candidate, int repeats, const void* x, const void* w, void* out,
                         cudaStream_t stream) const {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  require(cudaEventCreate(&begin), "creating an event");
  require(cudaEventCreate(&end), "creating an event");
  require(cudaEventRecord(begin, stream), "recording an event");
  for (int i = 0; i < repeats; ++i) run(candidate, x, w, out, stream);
  require(cudaEventRecord(end, stream), "recording an event");
  require(cudaEventSynchronize(end), "waiting for an event");
  float milliseconds = 0.0F;
  require(cudaEventElapsedTime(&milliseconds, begin, end), "reading an event");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return milliseconds / static_cast<float>(repeats);
}

void CublasLtGemm::tune(const void* x, const void* w, void* out, cudaStream_t stream) {
  constexpr float sample_ms = 10.0F;
  constexpr int passes = 3;  // in turns, so that clocks and heat fall on all alike
  constexpr float worth_a_second_look = 1.25F;
  time(0, 1, x, w, out, stream);  // loads the kernels' library
  std::vector<float> once;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const auto candidate = static_cast<int>(i);
    const float first = time(candidate, 1, x, w, out, stream);
    once.push_back(first < sample_ms ? std::min(first, time(candidate, 1, x, w, out, stream)) : first);
  }
  const float quickest = *std::min_element(once.begin(), once.end());
  std::vector<float> fastest(candidates_.size(), 1e30F);
  for (int pass = 0; pass < passes; ++pass) {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (once[i] > worth_a_second_look * quickest) continue;
      const int repeats = std::clamp(static_cast<int>(sample_ms / once[i]), 1, 200);
      fastest[i] = std::min(fastest[i], time(static_cast<int>(i), repeats, x, w, out, stream));
    }
  }
  best_ = static_cast<int>(std::min_element(fastest.begin(), fastest.end()) - fastest.begin());
}

std::string CublasLtGemm::describe() const {
  const auto attribute = [&](cublasLtMatmulAlgoConfigAttributes_t name) {
    std::uint32_t value = 0;
    std::size_t written = 0;
    const auto& algorithm = candidates_[static_cast<std::size_t>(best_)].algo;
    library_.functions().cublasLtMatmulAlgoConfigGetAttribute(&algorithm, name, &value, sizeof value, &written);
    return std::to_string(value);
  };
  return "candidate " + std::to_string(best_) + " of " + std::to_string(candidates_.size()) + ", tile " +
         attribute(CUBLASLT_ALGO_CONFIG_TILE_ID) + ", stages " + attribute(CUBLASLT_ALGO_CONFIG_STAGES_ID);
}

}  // namespace gatefold::bench
