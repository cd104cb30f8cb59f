// Preloaded, stands in for gatefold_run and gatefold_swap_ffn_step: runs the real one, then spoils an element of the
// result, of 16 bits.
// GATEFOLD_SPOIL_H=N   element N of h, whichever op makes it
// GATEFOLD_SPOIL_Y=N   element N of mlp's y
// GATEFOLD_SPOIL_DELTA=N   element N of swap_ffn's delta
// GATEFOLD_SPOIL_TO_NAN=1   makes it NaN, in place of a number that is far off
#define _GNU_SOURCE
#include <dlfcn.h>
#include <gatefold/gatefold.h>
#include <gatefold/swap_ffn.h>
#include <stdlib.h>
#include <string.h>

typedef gatefold_status (*run_function)(const gatefold_plan*, const gatefold_args*);
typedef gatefold_status (*step_function)(const gatefold_swap_ffn_plan*, const gatefold_swap_ffn_args*);

static void spoil(void* tensor, const char* element) {
  unsigned char* const bytes = (unsigned char*)tensor + 2 * strtol(element, NULL, 10);
  if (getenv("GATEFOLD_SPOIL_TO_NAN") != NULL) {
    memset(bytes, 0xff, 2);  // NaN, whichever 16-bit type it is
  } else {
    bytes[1] ^= 0x40;  // a high bit of the exponent
  }
}

GATEFOLD_API gatefold_status gatefold_run(const gatefold_plan* plan, const gatefold_args* args) {
  void* symbol = dlsym(RTLD_NEXT, "gatefold_run");
  run_function real = NULL;
  memcpy(&real, &symbol, sizeof real);  // C has no cast from an object pointer to a function pointer
  const gatefold_status status = real(plan, args);
  const int makes_h = args->gate != NULL && args->down == NULL;  // a plain product has no gate
  const char* element = makes_h ? getenv("GATEFOLD_SPOIL_H") : args->down != NULL ? getenv("GATEFOLD_SPOIL_Y") : NULL;
  if (status == GATEFOLD_SUCCESS && element != NULL && args->tokens > 0) spoil(args->out, element);
  return status;
}

GATEFOLD_API gatefold_status gatefold_swap_ffn_step(const gatefold_swap_ffn_plan* plan,
                                                    const gatefold_swap_ffn_args* args) {
  void* symbol = dlsym(RTLD_NEXT, "gatefold_swap_ffn_step");
  step_function real = NULL;
  memcpy(&real, &symbol, sizeof real);
  const gatefold_status status = real(plan, args);
  const char* element = getenv("GATEFOLD_SPOIL_DELTA");
  if (status == GATEFOLD_SUCCESS && element != NULL && args->batch > 0) spoil(args->delta, element);
  return status;
}
