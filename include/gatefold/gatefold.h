// Gatefold: the gated MLP of transformers, fused. This header is the whole C interface (names.h: its enums as text).
//
//     gate = x . w_gate^T      x      [tokens, hidden_size]
//     up   = x . w_up^T        w_gate [intermediate_size, hidden_size]     w_up   the same
//     h    = act(gate) * up    h      [tokens, intermediate_size]
//     y    = h . w_down^T      w_down [hidden_size, intermediate_size]     y      [tokens, hidden_size]
//
// Each of the three products may have a bias, a vector that is added to every token's sums.
//
// Describe -> plan -> run: fill a gatefold_desc, make a plan from it, run the plan as often as you like.
// Every matrix is row-major. Sizes and leading dimensions count elements; workspaces count bytes.
//
// No function throws, prints or exits. A function that fails returns a status other than GATEFOLD_SUCCESS, leaves its
// outputs untouched, and keeps one line for the calling thread that names the thing and the values that disagree:
// gatefold_last_error().
//
// The structs with a struct_size grow at their ends, and struct_size, their sizeof where the program was compiled, says
// how much of one the caller knows. A smaller one of an earlier version is accepted, and what it lacks reads as zero;
// a larger one is accepted as long as what this library doesn't know of it is zero. Zero always means "as before", so
// old programs run with a newer library, and new ones with an older library as far as they use what it has.
//
// The CPU's functions share larger work out by OpenMP: its first parallel region, and one of another number of threads
// than the last, starts threads and allocates; where the system refuses either, its runtime ends the process (not with
// OMP_NUM_THREADS=1). A child doesn't have the threads of the process that forked it: where Gatefold had used some
// there, the thread that forked works alone in the child. Where only the program's own parallel regions had, GCC's
// runtime waits for them for ever.
#ifndef GATEFOLD_GATEFOLD_H
#define GATEFOLD_GATEFOLD_H

#include <stddef.h>
#include <stdint.h>

#define GATEFOLD_VERSION_MAJOR 0
#define GATEFOLD_VERSION_MINOR 1
#define GATEFOLD_VERSION_PATCH 0

#if defined(_WIN32)
#define GATEFOLD_API
#else
#define GATEFOLD_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gatefold_status {
  GATEFOLD_SUCCESS = 0,
  GATEFOLD_ERROR_INVALID_ARGUMENT = 1,  // a value is wrong, or two values disagree
  GATEFOLD_ERROR_UNSUPPORTED = 2,       // valid, but no implementation (or not the forced one) can do it here
  GATEFOLD_ERROR_WORKSPACE = 3,         // the workspace is missing or too small
  GATEFOLD_ERROR_OUT_OF_MEMORY = 4,     // host memory ran out while a plan was made
  GATEFOLD_ERROR_DEVICE = 5,            // the device or its driver reported an error
  GATEFOLD_ERROR_INTERNAL = 6           // a defect in Gatefold
} gatefold_status;

typedef enum gatefold_op {
  GATEFOLD_OP_ACT_AND_MUL = 1,  // out = act(gate) * up                  gate, up [tokens, intermediate_size] in memory
  GATEFOLD_OP_GEMM = 2,         // out = x . w^T                         w [intermediate_size, hidden_size]
  GATEFOLD_OP_GEMM_GATED = 3,   // out = act(gate) * (x . w_up^T)        gate [tokens, intermediate_size] in memory
  GATEFOLD_OP_GATE_UP = 4,      // out = act(x . w_gate^T) * (x . w_up^T)
  GATEFOLD_OP_MLP = 5           // out = (act(x . w_gate^T) * (x . w_up^T)) . w_down^T
} gatefold_op;

// The element type of every tensor of a plan. Sums are always accumulated in fp32 or better.
typedef enum gatefold_dtype {
  GATEFOLD_DTYPE_FP32 = 1,
  GATEFOLD_DTYPE_FP16 = 2,
  GATEFOLD_DTYPE_BF16 = 3
} gatefold_dtype;

// How the two halves lie in memory. There is no default: a wrong guess would fail silently.
// It orders the rows of the weights (gate_up, mlp) and the columns of the operands of act_and_mul.
// A packed layout has 2 * intermediate_size of them, in one tensor, passed as `gate`; `up` is then null.
typedef enum gatefold_layout {
  GATEFOLD_LAYOUT_SEPARATE = 1,             // two tensors
  GATEFOLD_LAYOUT_GATE_UP = 2,              // all of gate, then all of up
  GATEFOLD_LAYOUT_UP_GATE = 3,              // all of up, then all of gate
  GATEFOLD_LAYOUT_INTERLEAVED_GATE_UP = 4,  // `block` of gate, `block` of up, and so on
  GATEFOLD_LAYOUT_INTERLEAVED_UP_GATE = 5   // `block` of up, `block` of gate, and so on
} gatefold_layout;

// act(g). sigma is the logistic function.
typedef enum gatefold_activation {
  GATEFOLD_ACTIVATION_SILU = 1,       // g * sigma(g)                                              SwiGLU
  GATEFOLD_ACTIVATION_GELU_TANH = 2,  // g/2 * (1 + tanh(sqrt(2/pi) * (g + 0.044715 g^3)))         GeGLU
  GATEFOLD_ACTIVATION_GELU_ERF = 3,   // g/2 * (1 + erf(g / sqrt(2)))
  GATEFOLD_ACTIVATION_RELU = 4,       // max(g, 0)                                                 ReGLU
  GATEFOLD_ACTIVATION_SIGMOID = 5,    // sigma(g)                                                  GLU
  GATEFOLD_ACTIVATION_IDENTITY = 6,   // g                                                         bilinear
  // g' = min(g, limit); u' = clamp(u, -limit, limit); out = g' * sigma(alpha * g') * (u' + beta)
  GATEFOLD_ACTIVATION_SWIGLU_CLAMPED = 7
} gatefold_activation;

// The bias vectors of a description: any of these, added together (gatefold_desc.biases).
typedef enum gatefold_bias {
  GATEFOLD_BIAS_GATE = 1,  // gate_up, mlp: [F]; packed layouts: [2F], gate's and up's in one vector
  GATEFOLD_BIAS_UP = 2,    // [F]: gate_up, mlp with the separate layout; gemm and gemm_gated, whose weight is `up`
  GATEFOLD_BIAS_DOWN = 4   // mlp: [D]
} gatefold_bias;

// What else a description wants: any of these, added together (gatefold_desc.flags).
typedef enum gatefold_flag {
  // A row of the output has the same bits whatever the number of tokens and the other rows are. What cannot promise
  // that is passed over, and refused where it is forced; on a GPU long batches take several times as long, on a CPU few
  // tokens may take 1.3 times as long.
  GATEFOLD_FLAG_BATCH_INVARIANT = 1
} gatefold_flag;

typedef enum gatefold_device { GATEFOLD_DEVICE_CPU = 1, GATEFOLD_DEVICE_CUDA = 2 } gatefold_device;

// What to compute. Zero-initialise, set struct_size = sizeof(gatefold_desc), then fill in what the op uses.
typedef struct gatefold_desc {
  size_t struct_size;
  gatefold_op op;
  gatefold_dtype dtype;
  gatefold_device device;

  gatefold_layout layout;          // act_and_mul, gate_up, mlp; must be 0 for gemm and gemm_gated
  int64_t block;                   // interleaved layouts: at least 1; intermediate_size is a multiple of it
  gatefold_activation activation;  // every op but gemm, where it must be 0
  float limit, alpha, beta;        // swiglu_clamped only: limit > 0 (infinity: no clamp), alpha and beta finite

  int64_t hidden_size;        // D: the length of every sum. For act_and_mul: 0
  int64_t intermediate_size;  // F: gemm and gemm_gated: the rows of w. So down_proj as a gemm swaps D and F

  // Leading dimensions: elements from one row to the next; 0 means packed (the row's length).
  int64_t ld_x;     // [tokens, D]                                 every op but act_and_mul
  int64_t ld_gate;  // act_and_mul, gemm_gated: [tokens, F] (packed layouts [tokens, 2F]);
                    // gate_up, mlp: [F, D] (packed layouts [2F, D])
  int64_t ld_up;    // separate layout: like ld_gate. gemm, gemm_gated: the weight [F, D]. Packed layouts: 0
  int64_t ld_down;  // mlp: [D, F]
  int64_t ld_out;   // [tokens, F]; mlp: [tokens, D]

  // Force an implementation by its name; null lets Gatefold choose. Where an implementation has several kernels, one
  // of them can be forced for every number of tokens, with a colon between: "sm90:256x192 cluster 1x2"
  // (gatefold_plan_kernel lists them). If it is null, the environment variable GATEFOLD_IMPL is read, once, when the
  // plan is made: such names separated by commas, an op's own as "gate_up=sm90", of which the first whose
  // implementation belongs to this op and device is forced; where none does, Gatefold chooses. A name that no op, or
  // not its own op, has in this build is GATEFOLD_ERROR_INVALID_ARGUMENT. The two products inside an mlp follow
  // GATEFOLD_IMPL, too, as ops of their own: what one can't do as forced makes the mlp GATEFOLD_ERROR_UNSUPPORTED.
  const char* implementation;

  // Which of the bias vectors every run is given, gatefold_bias values added together; 0: none. They are of the
  // weights' type, and are added in fp32 to the sums: gate's before the activation, up's before the clamp, down's
  // before y is rounded. gemm_gated's gate is finished and takes none, and act_and_mul has no sums.
  //
  // A packed layout has one vector for both halves, [2F], whose elements lie in the order of the weight's rows: bias j
  // belongs to row j of the packed tensor, as checkpoints store gate_up_proj.bias beside gate_up_proj.weight (gpt-oss
  // interleaves both by 1). It is passed as `gate_bias`; GATEFOLD_BIAS_UP is then not set, and `up_bias` is null.
  uint64_t biases;

  // mlp: so many tokens at a time, so that the workspace holds h of [chunk_tokens, F]. 0: all at once.
  int64_t chunk_tokens;

  uint64_t flags;  // gatefold_flag values added together
} gatefold_desc;

// An immutable choice of how to compute a description. Any number of threads may use one plan at a time.
typedef struct gatefold_plan gatefold_plan;

// What to compute it on. Zero-initialise, set struct_size = sizeof(gatefold_args).
// All pointers are to memory of the plan's device, aligned to the element size. The output must not overlap an input,
// with one exception: act_and_mul with separate operands may write over gate or over up (same pointer, same leading
// dimension). An op that reads no tensor of that name takes null.
typedef struct gatefold_args {
  size_t struct_size;
  int64_t tokens;    // T >= 0. An empty output does nothing and succeeds; empty sums (D = 0, and F = 0 in mlp) are 0
  const void* x;     // [T, D]
  const void* gate;  // the gate half, or both halves of a packed layout; gemm_gated: the gate values [T, F]
  const void* up;    // the up half of the separate layout; gemm and gemm_gated: the weight [F, D]
  const void* down;  // mlp: [D, F]
  void* out;
  void* workspace;  // gatefold_plan_workspace_size bytes, 256-byte aligned, used by one run at a time
  size_t workspace_size;
  void* stream;  // a cudaStream_t; null is the default stream, and the only value on the CPU

  // The bias vectors that gatefold_desc.biases announces; null where it doesn't. Contiguous.
  const void* gate_bias;  // [F]; packed layouts [2F], in the order of the weight's rows
  const void* up_bias;    // [F]
  const void* down_bias;  // [D]
} gatefold_args;

// The message of this thread's last failure, "" if there was none. Valid until this thread's next call.
GATEFOLD_API const char* gatefold_last_error(void);

// "0.1.0".
GATEFOLD_API const char* gatefold_version(void);

// Checks a description and plans it. On success *plan is set, and gatefold_plan_destroy frees it.
GATEFOLD_API gatefold_status gatefold_plan_create(const gatefold_desc* desc, gatefold_plan** plan);
GATEFOLD_API void gatefold_plan_destroy(gatefold_plan* plan);  // null is fine

// The bytes of workspace that a run of 0 ... max_tokens tokens needs at most.
GATEFOLD_API gatefold_status gatefold_plan_workspace_size(const gatefold_plan* plan, int64_t max_tokens, size_t* bytes);

// Computes. On the CPU the result is there on return; on a GPU it is in stream order. Never allocates, synchronises,
// compiles or tunes; but on the CPU OpenMP starts its threads. Results are bit-identical from run to run on one device
// and one implementation, whatever the threads' floating-point environments, which no function changes. What a kernel
// has been allowed on a device is remembered for the process: after cudaDeviceReset no run on that device may follow.
GATEFOLD_API gatefold_status gatefold_run(const gatefold_plan* plan, const gatefold_args* args);

// The name of the implementation that a run of `tokens` tokens takes. Valid as long as the plan.
GATEFOLD_API const char* gatefold_plan_implementation(const gatefold_plan* plan, int64_t tokens);

// Candidate number `index` of the plan's ordered list, best first, and why it was taken or passed over for `tokens`
// tokens. Returns 0 past the end of the list, and 1 otherwise. Strings are valid until this thread's next call.
typedef struct gatefold_candidate {
  const char* name;
  int chosen;          // 1 for exactly one candidate
  int eligible;        // 1 if it could run this description
  const char* reason;  // one line
} gatefold_candidate;
GATEFOLD_API int gatefold_plan_candidate(const gatefold_plan* plan, int64_t tokens, int index,
                                         gatefold_candidate* candidate);

// The names of the kernels of the plan's candidate `implementation` that can take the description, in no order; null
// past the end, of a candidate that has but one kernel or none that can, and of a name that is no candidate's. Valid
// until this thread's next call. For tuning by measurement: gatefold_desc.implementation = "IMPLEMENTATION:KERNEL".
GATEFOLD_API const char* gatefold_plan_kernel(const gatefold_plan* plan, const char* implementation, int index);

// The names of an op's implementations on a device, best first, the reference last; null past the end.
GATEFOLD_API const char* gatefold_implementation_name(gatefold_op op, gatefold_device device, int index);

// Devices. A CPU is always there, as device 0 of its kind; 0 CUDA devices is no error, and `why` then says what is
// missing (no CUDA in this build, no driver, no GPU).
typedef struct gatefold_device_info {
  char name[128];
  char features[128];  // the CPU's instruction sets that matter here, or "sm_90"
  int threads;         // CPU: threads used. GPU: streaming multiprocessors
  size_t memory_bytes;
} gatefold_device_info;
GATEFOLD_API int gatefold_device_count(gatefold_device device, const char** why);
GATEFOLD_API gatefold_status gatefold_device_query(gatefold_device device, int index, gatefold_device_info* info);

// How far an output of one op is from the truth in double precision, computed here on the CPU from host memory.
//
// The truth is computed from the inputs as they are stored. Each output element is held against a componentwise bound,
// with u the element type's rounding (2^-8 bf16, 2^-11 fp16, 2^-24 fp32), A_g = sum |x||w_gate| and A_u = sum
// |x||w_up|:
//     gate_up      u|h| + gamma (L A_g |up| + A_u |act(gate)|) + 2^-20 |h|         L: the largest slope of act
//     gemm_gated   u|h| + gamma A_u |act(gate)| + 2^-20 |h|
//     gemm         u|y| + gamma A
//     act_and_mul  u|h| + 2^-20 |h|
// A bias counts as a term of its sum: A_g = sum |x||w_gate| + |b_gate|, and so on.
// gamma = sqrt(D) 2^-26 for zero-mean data (GATEFOLD_DATA_ZERO_MEAN; as at 64 where D is less), D 2^-24 as the ceiling
// for any; for fp32 sqrt(D) 2^-24 and D 2^-24, each plus 2^-21 for products formed from split operands. 2^-20 grows in
// the activation's negative tail, where it is e^z of a rounded z: to |z| 2^-23, for gelu |z| 2^-21. gelu adds
// 2^-22 |g||up|, since 1 + erf and 1 + tanh cancel there. A floor covers subnormals. docs/numerics.md derives them all.
// mlp is not checked at once: check its gate_up, then its gemm.
typedef enum gatefold_data { GATEFOLD_DATA_ANY = 1, GATEFOLD_DATA_ZERO_MEAN = 2 } gatefold_data;

typedef struct gatefold_error_report {
  double max_abs, mean_abs;  // |out - truth|
  double relative_l2;        // ||out - truth|| / ||truth||; 0 if both are 0
  double max_bound_ratio;    // the largest |out - truth| / bound; infinity where a NaN or infinity is not the truth's
  int64_t violations;        // elements with a ratio above 1
  int64_t worst_row, worst_column;  // where max_bound_ratio is
} gatefold_error_report;

// desc and args are those of the run that wrote args->out (desc->device is not looked at; all pointers are to host
// memory; workspace and stream are ignored). If truth is not null, it receives the [tokens, F] double-precision
// results.
GATEFOLD_API gatefold_status gatefold_check(const gatefold_desc* desc, const gatefold_args* args, gatefold_data data,
                                            gatefold_error_report* report, double* truth);

#ifdef __cplusplus
}
#endif

#endif
