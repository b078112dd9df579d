// The first words of code for GPUs, and a fast test for them.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gimbal {

constexpr uint32_t kFatbin = 0xba55ed50, kElf = 0x464c457f, kSpirv = 0x07230203,
                   kBundle = 0x4c435f5f /* __CL */, kPackedBundle = 0x424f4343 /* CCOB */;

// Whether one of the next kMarkedWords words is one of these.
constexpr size_t kMarkedWords = 1024;
bool has_gpu_mark(const uint32_t* words);

}  // namespace gimbal
