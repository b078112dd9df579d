// Debian compiles libpng16.a and libjpeg.a for programs: the way in which they reach the C library's `stderr`
// cannot be part of a shared library. There, this variable takes its name (cmake/media.cmake). The decoders
// do not write to it: they report their errors to this layer.
#include <dlfcn.h>

#include <cstdio>

extern "C" {
[[gnu::visibility("hidden")]] extern FILE* gimbal_decoders_stderr;
FILE* gimbal_decoders_stderr = [] {
  void* const own = dlsym(RTLD_DEFAULT, "stderr");
  return own ? *static_cast<FILE**>(own) : nullptr;
}();
}
