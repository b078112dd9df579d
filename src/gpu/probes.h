// What a device's document leaves open, found out with two small kernels (probes/kernels.def) when a runtime
// loads its first: the answers are constants of all that it loads afterwards.
#pragma once
#include "gpu/runtime.h"

namespace gimbal::simt {

// Both load, allocate and run with the Runtime, and give back what they took but for the kernel. `probes`:
// the table of probes/kernels.def in the Runtime's language.

// Whether FMA rounds once: products whose roundings show in the sum.
Failure probe_fma(Runtime&, std::span<const KernelCode> probes, bool* fused);
// Whether TREE joins the lanes that it should, as the Runtime loads that kernel now.
Failure probe_lanes(Runtime&, std::span<const KernelCode> probes, bool* right);

}  // namespace gimbal::simt
