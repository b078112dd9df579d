// The kernels compiled for each target: tables that the build generates (cmake/gpu.cmake) for the backends
// that request them. One function per language; each exists only in libraries that called
// gimbal_gpu_modules() for it. All but the emulator's are packed (gpu/unpack.h).
#pragma once
#include <span>

#include "gpu/runtime.h"

namespace gimbal::gpu {

std::span<const KernelCode> emulator_modules();         // code: an emulator::Compiled
std::span<const KernelCode> matrix_emulator_modules();  // of gpu/matrix/kernels.def, as also below
std::span<const KernelCode> tensor_emulator_modules();  // of gpu/tensors/kernels.def, as also below
std::span<const KernelCode> tensor_spirv_modules();
std::span<const KernelCode> tensor_opencl_modules();
std::span<const KernelCode> tensor_wgsl_modules();
std::span<const KernelCode> tensor_msl_modules();
std::span<const KernelCode> tensor_ptx_modules();
std::span<const KernelCode> tensor_amdgcn_modules(std::string_view architecture);
// Frames of kernel texts, of gpu/text/kernels.def: text in each language, for Runtime::compile.
std::span<const KernelCode> text_opencl_modules();
std::span<const KernelCode> text_wgsl_modules();
std::span<const KernelCode> text_glsl_modules();
std::span<const KernelCode> text_nvidia_modules();
std::span<const KernelCode> text_amd_modules();
std::span<const KernelCode> spirv_modules();       // SPIR-V for Vulkan 1.2, entry point "main"
std::span<const KernelCode> opencl_modules();      // OpenCL C 1.2 text
std::span<const KernelCode> wgsl_modules();        // WGSL text, entry point "main"
std::span<const KernelCode> msl_modules();         // Metal text, entry point "main0"
std::span<const KernelCode> ptx_modules();         // PTX text, zero-terminated
std::span<const KernelCode> matrix_ptx_modules();  // for compute capability 8.0 and newer
// AMD code objects: all kernels of an architecture ("gfx1100") share
// one; empty if it was not built.
std::span<const KernelCode> amdgcn_modules(std::string_view architecture);

}  // namespace gimbal::gpu
