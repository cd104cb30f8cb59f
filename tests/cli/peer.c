/* A peer for test_peer.py: takes fp32 of one shape, on a CPU, and fills h with ones. */
#include <stddef.h>

#include "cli/gatefold_peer.h"
#include "gatefold/gatefold.h"

int gatefold_peer_gate_up(const gatefold_peer_args* args) {
  if (args->dtype != GATEFOLD_DTYPE_FP32 || args->hidden_size != 576 || args->intermediate_size != 1536) return 1;
  if (args->x == NULL || args->w_gate == NULL || args->w_up == NULL || args->stream != NULL) return 2;
  float* h = args->h;
  for (int64_t i = 0; i < args->tokens * args->intermediate_size; ++i) h[i] = 1.0F;
  return 0;
}
