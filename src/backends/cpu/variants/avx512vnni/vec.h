// AVX-512 with VNNI: the same text, the dot product of bytes in one instruction.
#pragma once
#include "backends/cpu/variants/avx512/vec.h"
