// Preloaded, stands in for gatefold_run: runs the real one, then spoils the first element of the result.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <gatefold/gatefold.h>
#include <string.h>

typedef gatefold_status (*run_function)(const gatefold_plan*, const gatefold_args*);

GATEFOLD_API gatefold_status gatefold_run(const gatefold_plan* plan, const gatefold_args* args) {
  void* symbol = dlsym(RTLD_NEXT, "gatefold_run");
  run_function real = NULL;
  memcpy(&real, &symbol, sizeof real);  // C has no cast from an object pointer to a function pointer
  const gatefold_status status = real(plan, args);
  if (status == GATEFOLD_SUCCESS && args->tokens > 0) {
    ((unsigned char*)args->out)[1] ^= 0x40;  // a high bit of the exponent, whichever 16-bit type it is
  }
  return status;
}
