#include "cpu/onednn_matmul.hpp"

#include <array>

namespace gatefold::cpu {
namespace {

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::memory::data_type data_type(DType dtype) {
  switch (dtype) {
    case DType::fp32: return dnnl::memory::data_type::f32;
    case DType::fp16: return dnnl::memory::data_type::f16;
    case DType::bf16: return dnnl::memory::data_type::bf16;
  }
  return dnnl::memory::data_type::undef;
}

dnnl::memory::desc matrix(std::int64_t rows, std::int64_t columns, std::int64_t ld, DType dtype) {
  return {dnnl::memory::dims{rows, columns}, data_type(dtype), dnnl::memory::dims{ld, 1}};
}

// The transpose of a matrix [columns, rows] whose rows are ld apart.
dnnl::memory::desc transposed(std::int64_t rows, std::int64_t columns, std::int64_t ld, DType dtype) {
  return {dnnl::memory::dims{rows, columns}, data_type(dtype), dnnl::memory::dims{1, ld}};
}

void append(dnnl::post_ops& ops, dnnl::algorithm algorithm, float alpha, float beta) {
#if DNNL_VERSION_MAJOR >= 3
  ops.append_eltwise(algorithm, alpha, beta);
#else
  ops.append_eltwise(1.0F, algorithm, alpha, beta);
#endif
}

dnnl::matmul::primitive_desc describe(const dnnl::memory::desc& x, const dnnl::memory::desc& weights,
                                      const dnnl::memory::desc& out, const dnnl::primitive_attr& attributes) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), x, weights, out, attributes};
#else
  return {dnnl::matmul::desc(x, weights, out), attributes, engine()};
#endif
}

void append_activation(dnnl::post_ops& ops, const Activation& act) {
  switch (act.kind) {
    case ActivationKind::silu: append(ops, dnnl::algorithm::eltwise_swish, 1.0F, 0.0F); break;
    case ActivationKind::gelu_erf: append(ops, dnnl::algorithm::eltwise_gelu_erf, 0.0F, 0.0F); break;
    case ActivationKind::sigmoid: append(ops, dnnl::algorithm::eltwise_logistic, 0.0F, 0.0F); break;
    case ActivationKind::gelu_tanh:
    case ActivationKind::relu:
    case ActivationKind::swiglu_clamped:
    case ActivationKind::identity:
    case ActivationKind::none: break;
  }
}

// AMX sums 32 terms at a time, and oneDNN gets rests wrong. 2.6.3 rounds a rest of 31 up to what looks like a whole
// step, and so leaves the tiles set up for a whole block while it multiplies a smaller one: 8 rows of 63 terms by 112
// (mended in 2.7.4). 3.14.0 reads 32 terms of rows that end sooner, and a NaN in the next row reaches this one through
// a weight of zero (its issue 5717).
bool mistakes_rest(const std::string& kernel, std::int64_t depth) {
  return kernel.find("amx") != std::string::npos && depth % 32 != 0;
}

// oneDNN's plain GEMM of bf16 takes terms in pairs, and an odd last one with whatever stands behind it times zero: an
// infinity there makes NaN of the whole row.
bool mistakes_odd_depth(const std::string& kernel, const MatmulShape& shape) {
  return kernel.rfind("gemm", 0) == 0 && shape.in == DType::bf16 && shape.depth % 2 != 0;
}

// oneDNN's reference code stands in for what it has no kernel for, and is slower than widening.
bool is_reference(const std::string& kernel) { return kernel.rfind("ref", 0) == 0; }

}  // namespace

bool can_activate(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::silu:
    case ActivationKind::gelu_erf:
    case ActivationKind::sigmoid:
    case ActivationKind::identity: return true;
    case ActivationKind::gelu_tanh:
    case ActivationKind::relu:
    case ActivationKind::swiglu_clamped:
    case ActivationKind::none: break;
  }
  return false;
}

bool can_multiply(ActivationKind kind) { return kind != ActivationKind::swiglu_clamped; }

Matmul::Matmul(const MatmulShape& shape, Epilogue epilogue, const Activation& activation)
    : x_(matrix(shape.rows, shape.depth, shape.ld_x, shape.in)),
      weights_(transposed(shape.depth, shape.columns, shape.ld_weights, shape.in)),
      out_(matrix(shape.rows, shape.columns, shape.ld_out, shape.out)) {
  dnnl::post_ops ops;
  if (epilogue == Epilogue::activate) append_activation(ops, activation);
  if (epilogue == Epilogue::multiply) {
    activated_ = matrix(shape.rows, shape.columns, shape.columns, DType::fp32);
    multiply_index_ = ops.len();
    ops.append_binary(dnnl::algorithm::binary_mul, activated_);
  }
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(ops);
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::matmul::primitive_desc description = describe(x_, weights_, out_, attributes);
  scratchpad_ = description.scratchpad_desc();
  kernel_ = description.impl_info_str();
  better_widened_ = is_reference(kernel_) || mistakes_rest(kernel_, shape.depth) || mistakes_odd_depth(kernel_, shape);
  primitive_ = dnnl::matmul(description);
}

bool Matmul::run(const Buffers& buffers) const noexcept try {
  const auto memory = [](const dnnl::memory::desc& desc, const void* data) {
    return dnnl::memory(desc, engine(), const_cast<void*>(data));  // oneDNN has one type for inputs and outputs
  };
  const dnnl::memory x = memory(x_, buffers.x);
  const dnnl::memory weights = memory(weights_, buffers.weights);
  const dnnl::memory out = memory(out_, buffers.out);
  const dnnl::memory scratchpad = memory(scratchpad_, buffers.scratchpad);
  std::array<dnnl_exec_arg_t, 5> arguments{{{DNNL_ARG_SRC, x.get()},
                                            {DNNL_ARG_WEIGHTS, weights.get()},
                                            {DNNL_ARG_DST, out.get()},
                                            {DNNL_ARG_SCRATCHPAD, scratchpad.get()},
                                            {0, nullptr}}};
  int count = 4;
  dnnl::memory activated;
  if (multiply_index_ >= 0) {
    activated = memory(activated_, buffers.activated);
    arguments[4] = {DNNL_ARG_ATTR_MULTIPLE_POST_OP(multiply_index_) | DNNL_ARG_SRC_1, activated.get()};
    count = 5;
  }
  dnnl::stream stream(engine());
  if (dnnl_primitive_execute(primitive_.get(), stream.get(), count, arguments.data()) != dnnl_success) return false;
  return dnnl_stream_wait(stream.get()) == dnnl_success;
} catch (...) {
  return false;
}

}  // namespace gatefold::cpu
