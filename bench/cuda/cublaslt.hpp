#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include <gatefold/gatefold.h>

namespace gatefold::bench {

// cuBLASLt, loaded when a baseline asks for it (from GATEFOLD_CUBLASLT if that is set). Throws std::runtime_error.
class CublasLt {
 public:
  CublasLt();
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  struct Functions;
  const Functions& functions() const { return *functions_; }
  cublasLtHandle_t handle() const { return handle_; }
  std::size_t version() const;

 private:
  void* library_ = nullptr;
  Functions* functions_ = nullptr;
  cublasLtHandle_t handle_ = nullptr;
};

// out [tokens, rows] = x [tokens, length] . w [rows, length]^T, fp32 accumulation, packed but for the rows of w, which
// may be ld_w apart (0: packed). Of the heuristics' top candidates the first is taken until tune() has timed them all.
class CublasLtGemm {
 public:
  CublasLtGemm(const CublasLt& library, gatefold_dtype dtype, std::int64_t tokens, std::int64_t rows,
               std::int64_t length, std::int64_t ld_w = 0);
  ~CublasLtGemm();
  CublasLtGemm(const CublasLtGemm&) = delete;
  CublasLtGemm& operator=(const CublasLtGemm&) = delete;

  // Times the candidates on these buffers and keeps the fastest. Synchronises.
  void tune(const void* x, const void* w, void* out, cudaStream_t stream);
  void run(const void* x, const void* w, void* out, cudaStream_t stream) const;

  // The kept algorithm: its place in the heuristics' list, tile and stages.
  std::string describe() const;

 private:
  void run(int candidate, const void* x, const void* w, void* out, cudaStream_t stream) const;
  float time(int candidate, int repeats, const void* x, const void* w, void* out, cudaStream_t stream) const;

  const CublasLt& library_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t x_layout_ = nullptr;
  cublasLtMatrixLayout_t w_layout_ = nullptr;
  cublasLtMatrixLayout_t out_layout_ = nullptr;
  std::vector<cublasLtMatmulHeuristicResult_t> candidates_;
  int best_ = 0;
  void* workspace_ = nullptr;
};

}  // namespace gatefold::bench
