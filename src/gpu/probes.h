// Measures two properties that devices leave unspecified with small kernels (probes/kernels.def), before a
// runtime loads its first kernel. The results become constants of all kernels loaded later.
#pragma once
#include "gpu/runtime.h"

namespace gimbal::gpu {

// Both allocate, load and run through the Runtime and release everything but the kernel. `probes`: the table
// of probes/kernels.def in the Runtime's language.

// Whether FMA rounds once: tests products whose roundings show in the sum.
Failure probe_fma(Runtime&, std::span<const KernelCode> probes, bool* fused);
// Whether TREE combines the correct lanes with the Runtime's current settings.
Failure probe_lanes(Runtime&, std::span<const KernelCode> probes, bool* right);

}  // namespace gimbal::gpu
