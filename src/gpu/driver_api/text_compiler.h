// Kernel texts compiled at run time by a vendor's library, NVIDIA's libnvrtc or AMD's libhiprtc: one
// interface under two names.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "gpu/runtime.h"

namespace gimbal::gpu::driver_api {

struct TextCompiler {
  const char* const* libraries;  // file names to try, ends with nullptr
  const char* prefix;            // of its functions: "nvrtc"
  const char* code;              // its result, in the names of its functions: "PTX"
  const char* get_library;       // remedy if there is none
};

// `library`: its file; empty: the usual names. `options`: of the compiler. Errors: Unsupported without the
// library; Invalid with the words of the compiler.
Failure compile_text(const TextCompiler&, const std::string& library, std::string_view text,
                     const std::vector<std::string>& options, std::vector<uint8_t>* out);

}  // namespace gimbal::gpu::driver_api
