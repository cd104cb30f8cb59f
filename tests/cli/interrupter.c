// Preloaded, ends the program as a kill would: before the call of that number, of those that change files.
// GATEFOLD_INTERRUPT_AT=N        the number, from 1
// GATEFOLD_INTERRUPT_BY=9        the signal
// GATEFOLD_WITHOUT_TMPFILE=1     O_TMPFILE fails, as on a file system that has no such thing
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static long number_in(const char* variable) {
  const char* text = getenv(variable);
  return text == NULL ? 0 : strtol(text, NULL, 10);
}

static void count(void) {
  static long calls = 0;
  if (++calls == number_in("GATEFOLD_INTERRUPT_AT")) raise((int)number_in("GATEFOLD_INTERRUPT_BY"));
}

// C has no cast from an object pointer to a function pointer.
#define REAL(name, type)                   \
  static type real = NULL;                 \
  if (real == NULL) {                      \
    void* symbol = dlsym(RTLD_NEXT, name); \
    memcpy(&real, &symbol, sizeof real);   \
  }

static int open_as(const char* name, const char* path, int flags, mode_t mode) {
  typedef int (*type)(const char*, int, ...);
  type real = NULL;
  void* symbol = dlsym(RTLD_NEXT, name);
  memcpy(&real, &symbol, sizeof real);
  const int writes = (flags & O_ACCMODE) != O_RDONLY;
  if ((flags & O_TMPFILE) == O_TMPFILE && number_in("GATEFOLD_WITHOUT_TMPFILE") != 0) {
    errno = EOPNOTSUPP;
    return -1;
  }
  if (writes) count();
  return real(path, flags, mode);
}

static mode_t mode_of(int flags, va_list rest) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_as("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_as("open64", path, flags, mode);
}

ssize_t write(int descriptor, const void* data, size_t bytes) {
  typedef ssize_t (*type)(int, const void*, size_t);
  REAL("write", type)
  count();
  return real(descriptor, data, bytes);
}

int rename(const char* from, const char* to) {
  typedef int (*type)(const char*, const char*);
  REAL("rename", type)
  count();
  return real(from, to);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  typedef int (*type)(int, const char*, int, const char*, unsigned);
  REAL("renameat2", type)
  count();
  return real(from_folder, from, to_folder, to, flags);
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  typedef int (*type)(int, const char*, int, const char*, int);
  REAL("linkat", type)
  count();
  return real(from_folder, from, to_folder, to, flags);
}

int unlinkat(int folder, const char* path, int flags) {
  typedef int (*type)(int, const char*, int);
  REAL("unlinkat", type)
  count();
  return real(folder, path, flags);
}

int unlink(const char* path) {
  typedef int (*type)(const char*);
  REAL("unlink", type)
  count();
  return real(path);
}

int mkdir(const char* path, mode_t mode) {
  typedef int (*type)(const char*, mode_t);
  REAL("mkdir", type)
  count();
  return real(path, mode);
}
