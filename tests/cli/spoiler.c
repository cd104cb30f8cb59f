// Preloaded, stands in for gatefold_run: runs the real one, then spoils an element of the result.
// GATEFOLD_SPOIL_H=N   element N of h, whichever op makes it
// GATEFOLD_SPOIL_Y=N   element N of mlp's y
// GATEFOLD_SPOIL_TO_NAN=1   makes it NaN, in place of a number that is far off
#define _GNU_SOURCE
#include <dlfcn.h>
#include <gatefold/gatefold.h>
#include <stdlib.h>
#include <string.h>

typedef gatefold_status (*run_function)(const gatefold_plan*, const gatefold_args*);

GATEFOLD_API gatefold_status gatefold_run(const gatefold_plan* plan, const gatefold_args* args) {
  void* symbol = dlsym(RTLD_NEXT, "gatefold_run");
  run_function real = NULL;
  memcpy(&real, &symbol, sizeof real);  // C has no cast from an object pointer to a function pointer
  const gatefold_status status = real(plan, args);
  const int makes_h = args->gate != NULL && args->down == NULL;  // a plain product has no gate
  const char* element = makes_h ? getenv("GATEFOLD_SPOIL_H") : args->down != NULL ? getenv("GATEFOLD_SPOIL_Y") : NULL;
  if (status == GATEFOLD_SUCCESS && element != NULL && args->tokens > 0) {
    unsigned char* const bytes = (unsigned char*)args->out + 2 * strtol(element, NULL, 10);
    if (getenv("GATEFOLD_SPOIL_TO_NAN") != NULL) {
      memset(bytes, 0xff, 2);  // NaN, whichever 16-bit type it is
    } else {
      bytes[1] ^= 0x40;  // a high bit of the exponent
    }
  }
  return status;
}
