#ifndef GATEFOLD_PEER_H
#define GATEFOLD_PEER_H

#include <stdint.h>

/* What `gatefold bench --peer NAME=FILE` expects of the shared library FILE: another fused gate_up, to be timed in
 * turns with Gatefold's. In C, so that a peer needs nothing of Gatefold but this declaration. */
#ifdef __cplusplus
extern "C" {
#endif

typedef struct gatefold_peer_args {
  int64_t tokens;            /* T */
  int64_t hidden_size;       /* D */
  int64_t intermediate_size; /* F */
  int32_t dtype;             /* a gatefold_dtype */
  const void* x;             /* [T, D] */
  const void* w_gate;        /* [F, D]; or both halves, [2F, D], as the bench's --layout says */
  const void* w_up;          /* [F, D]; null with a packed layout */
  void* h;                   /* [T, F] */
  void* stream;              /* the cudaStream_t to enqueue on; null on a CPU */
} gatefold_peer_args;

/* Enqueues h = silu(x . w_gate^T) * (x . w_up^T). Returns 0, or anything else for what it cannot do. */
int gatefold_peer_gate_up(const gatefold_peer_args* args);

#ifdef __cplusplus
}
#endif
#endif
