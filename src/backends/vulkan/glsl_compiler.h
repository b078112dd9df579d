// GLSL to SPIR-V at run time, by Google's shaderc where it is installed: as a library, or as the program
// glslc. Vulkan has no compiler of its own; the engine's kernels are compiled when gimbal is built, and need
// none.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "gpu/runtime.h"

namespace gimbal::vulkan {

// `library`: the compiler's file; empty: its usual names, then glslc. Every float operation of the module is
// marked NoContraction, as the build does (scripts/build/gpu_modules.py). Errors: Unsupported without
// shaderc; Invalid with the words of the compiler.
gpu::Failure compile_glsl(const std::string& library, std::string_view text, std::vector<uint8_t>* spirv);

}  // namespace gimbal::vulkan
