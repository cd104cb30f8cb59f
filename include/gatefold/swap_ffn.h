// Swap-FFN: a recurrent-memory decode step built on the gated MLP. docs/swap_ffn.md explains it with pictures.
//
// Each of `cores` rows keeps four banks of hidden state. Every event may swap a row's current state with one bank, then
// applies a gated MLP k_ffn times; at the end the rows collapse into one vector for each sequence of the batch.
//
//     s[b,c]  = x[b] * core_scale[c] + core_shift[c]       core_scale = core_embed . scale_w^T + scale_b + 1
//     `events` times:                                      core_shift = core_embed . shift_w^T + shift_b
//       z      = (rms(s) * router_norm) . router_w^T       rms(v) = v / sqrt(mean(v^2) + eps)
//       swap   = sigmoid(z . router_swap_w + router_swap_b) > 1/2
//       choice = argmax of (z . bank_w + bank_b)           the first of equals; a NaN counts as the largest
//       where swap:  s <-> ram[b,c,lane[choice]],  then lane[0] <-> lane[choice] in stream_map[b,c]
//       `k_ffn` times:  n = rms(s) * ffn_norm,  s = (silu(n . gate_w^T) * (n . up_w^T)) . down_w^T
//     pooled[b,k] = sum over c of alpha[c,k] s[b,c]        alpha = softmax over k of (core_embed . alpha_w^T + alpha_b)
//     delta[b]    = silu(sum over k of basis[k] . pooled[b,k]) . decoder^T
//
// Describe -> plan -> prepare once -> step. Statuses, messages (gatefold_last_error), struct_size, threads and streams
// are gatefold.h's.
#ifndef GATEFOLD_SWAP_FFN_H
#define GATEFOLD_SWAP_FFN_H

#include "gatefold/gatefold.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GATEFOLD_SWAP_FFN_BANKS 4

// Lane i in bits 2i and 2i + 1; lane i is i, as a sequence begins.
#define GATEFOLD_SWAP_FFN_INITIAL_MAP 0xE4

// What to compute. Zero-initialise, set struct_size = sizeof(gatefold_swap_ffn_desc), fill in every field.
typedef struct gatefold_swap_ffn_desc {
  size_t struct_size;
  gatefold_dtype dtype;  // of weights, x, ram and delta; sums are fp32 or better
  gatefold_device device;
  int64_t hidden_size;        // D
  int64_t intermediate_size;  // F
  int64_t cores;              // C
  int64_t core_embed_size;    // E
  int64_t router_width;       // R
  int64_t collapse_heads;     // K
  int64_t collapse_width;     // Rc
  int64_t events;             // all sizes at least 1
  int64_t k_ffn;
  double eps;  // positive and finite

  // The step by its name, or null, which takes the device's only one: "cpu" on the CPU, "fused" on CUDA devices.
  const char* implementation;
} gatefold_swap_ffn_desc;

// The weights as a checkpoint stores them: row-major, contiguous, of the description's type.
typedef struct gatefold_swap_ffn_weights {
  size_t struct_size;
  const void* core_embed;     // [C, E]
  const void* scale_w;        // [D, E]
  const void* scale_b;        // [D]
  const void* shift_w;        // [D, E]
  const void* shift_b;        // [D]
  const void* alpha_w;        // [K, E]
  const void* alpha_b;        // [K]
  const void* router_norm;    // [D]
  const void* router_w;       // [R, D]
  const void* router_swap_w;  // [R]
  const void* router_swap_b;  // [1]
  const void* bank_w;         // [R, 4]
  const void* bank_b;         // [4]
  const void* ffn_norm;       // [D]
  const void* gate_w;         // [F, D]
  const void* up_w;           // [F, D]
  const void* down_w;         // [D, F]
  const void* basis;          // [K, Rc, D]
  const void* decoder;        // [D, Rc]
} gatefold_swap_ffn_weights;

#define GATEFOLD_SWAP_FFN_WEIGHTS 19

// Tensor number `index` of gatefold_swap_ffn_weights, in its order. Returns 0 past the end, and where desc is wrong.
typedef struct gatefold_swap_ffn_tensor {
  const char* name;
  int rank;
  int64_t shape[3];
} gatefold_swap_ffn_tensor;
GATEFOLD_API int gatefold_swap_ffn_weight(const gatefold_swap_ffn_desc* desc, int index,
                                          gatefold_swap_ffn_tensor* tensor);

// An immutable plan; any number of threads may use one at a time.
typedef struct gatefold_swap_ffn_plan gatefold_swap_ffn_plan;

GATEFOLD_API gatefold_status gatefold_swap_ffn_plan_create(const gatefold_swap_ffn_desc* desc,
                                                           gatefold_swap_ffn_plan** plan);
GATEFOLD_API void gatefold_swap_ffn_plan_destroy(gatefold_swap_ffn_plan* plan);  // null is fine

// What a step reads of the weights, in one buffer of the plan's device, 256-byte aligned, made once: core_scale,
// core_shift and alpha computed; ffn_norm folded into the columns of gate_w and up_w, rounded once to their type; and
// on the CPU router_norm into router_w in fp32, since what follows from it are decisions. The weights are not read
// again, and any number of steps at a time may read the buffer. On CUDA the weights too are in the device's memory; all
// work is enqueued on `stream`, behind which the weights may go, and a step on another stream waits for it as for any
// kernel.
GATEFOLD_API gatefold_status gatefold_swap_ffn_prepared_size(const gatefold_swap_ffn_plan* plan, size_t* bytes);
GATEFOLD_API gatefold_status gatefold_swap_ffn_prepare(const gatefold_swap_ffn_plan* plan,
                                                       const gatefold_swap_ffn_weights* weights, void* prepared,
                                                       size_t prepared_size, void* stream);

// The bytes of workspace that a step of 0 ... max_batch sequences needs at most.
GATEFOLD_API gatefold_status gatefold_swap_ffn_workspace_size(const gatefold_swap_ffn_plan* plan, int64_t max_batch,
                                                              size_t* bytes);

// One step of `batch` sequences. ram and stream_map are updated in place: a swap moves two rows, where a second buffer
// would have every step copy all four banks of every core; and a step that was captured into a graph continues where
// the last one ended. Who needs the old state copies it before.
typedef struct gatefold_swap_ffn_args {
  size_t struct_size;
  int64_t batch;         // B >= 0; 0 does nothing
  const void* prepared;  // gatefold_swap_ffn_prepare
  const void* x;         // [B, D]
  void* ram;             // [B, C, 4, D]
  uint8_t* stream_map;   // [B, C]; a map that is no permutation is refused on the CPU before anything is written, and
                         // on CUDA taken as it is (gatefold_swap_ffn_check_stream_map looks at a copy on the host)
  void* delta;           // [B, D]
  void* workspace;       // 256-byte aligned, used by one step at a time
  size_t workspace_size;
  void* stream;  // null on the CPU

  // What went on inside, each null where it isn't wanted.
  void* states;        // [1 + events k_ffn, B, C, D]: s at the start, then after each MLP
  uint8_t* decisions;  // [events, B, C]: the choice, 0 to 3, plus 4 where there was a swap
  // One for each pass of gatefold_swap_ffn_pass, in host memory: all its launches together. On CUDA such a step makes
  // events between its kernels and waits for its end: it cannot be captured, and takes longer than one without.
  double* pass_seconds;
} gatefold_swap_ffn_args;

// Never allocates, synchronises or tunes (but with pass_seconds on CUDA), and may be captured into a CUDA graph. It
// runs on the device that owns the pointers, whichever is current. Results are bit-identical from run to run and for
// any number of threads. Sums run over the state as it is, and are scaled by 1/rms afterwards: |s| times the sum of a
// weight row's magnitudes must stay within fp32.
GATEFOLD_API gatefold_status gatefold_swap_ffn_step(const gatefold_swap_ffn_plan* plan,
                                                    const gatefold_swap_ffn_args* args);

// Refuses the first of `count` maps in host memory that is no permutation of 0 ... 3, by its index and lanes.
GATEFOLD_API gatefold_status gatefold_swap_ffn_check_stream_map(const uint8_t* stream_map, int64_t count);

// The passes of a step, in the order in which they first run. Returns 0 past the end.
typedef struct gatefold_swap_ffn_pass_info {
  const char* name;              // valid as long as the plan
  int64_t launches;              // in one step
  int64_t rows, columns, depth;  // of a product [rows, depth] . [depth, columns]; depth is 0 for other passes
  double flops;                  // of all launches; multiplications and additions of products alone
  double bytes;                  // read and written by all launches: each operand once a launch
} gatefold_swap_ffn_pass_info;
GATEFOLD_API int gatefold_swap_ffn_pass(const gatefold_swap_ffn_plan* plan, int64_t batch, int index,
                                        gatefold_swap_ffn_pass_info* pass);

// The step in double precision throughout, from the weights as they are stored: computed on the CPU, from and to host
// memory. ram holds doubles here, since its state is never rounded.
typedef struct gatefold_swap_ffn_reference_args {
  size_t struct_size;
  int64_t batch;
  const void* x;        // [B, D], of the description's type
  double* ram;          // [B, C, 4, D], updated
  uint8_t* stream_map;  // [B, C], updated
  double* delta;        // [B, D]
  double* cores;        // [B, C, D]: s after the last event; may be null
  uint8_t* decisions;   // [events, B, C]; may be null
} gatefold_swap_ffn_reference_args;
GATEFOLD_API gatefold_status gatefold_swap_ffn_reference(const gatefold_swap_ffn_desc* desc,
                                                         const gatefold_swap_ffn_weights* weights,
                                                         const gatefold_swap_ffn_reference_args* args);

// Holds one step against the truth in double precision, one event at a time, each from the state that the step itself
// had: a decision near its threshold changes the state for good, so whole trajectories can't be compared. All pointers
// are to host memory; the step must have kept its states and decisions.
typedef struct gatefold_swap_ffn_check_args {
  size_t struct_size;
  int64_t batch;
  const void* x;
  const void* ram_before;  // as they were before the step
  const uint8_t* stream_map_before;
  const void* ram;  // and the rest as the step left it
  const uint8_t* stream_map;
  const void* delta;
  const void* states;
  const uint8_t* decisions;
} gatefold_swap_ffn_check_args;

// The values' bounds are gatefold_check's carried through the step (docs/swap_ffn.md); the MLP's truth has ffn_norm
// folded into gate_w and up_w and rounded to their type, as the step reads them.
typedef struct gatefold_swap_ffn_report {
  int64_t decisions;          // looked at: two for each core and event, swap and choice
  int64_t undecided;          // whose margin is within the bound of rounding, so that either way is right
  int64_t undecided_against;  // of these, went the other way than the truth
  int64_t wrong_decisions;    // others that did: must be 0
  int64_t wrong_moves;        // maps, rows of ram and of s that are not what the decisions make of them: must be 0
  int64_t violations;         // values beyond their bound: must be 0
  double max_bound_ratio;     // the largest |value - truth| / bound
  double max_abs;
  double relative_l2;  // of all states after an MLP
} gatefold_swap_ffn_report;
GATEFOLD_API gatefold_status gatefold_swap_ffn_check(const gatefold_swap_ffn_desc* desc,
                                                     const gatefold_swap_ffn_weights* weights,
                                                     const gatefold_swap_ffn_check_args* args, gatefold_data data,
                                                     gatefold_swap_ffn_report* report);

#ifdef __cplusplus
}
#endif

#endif
