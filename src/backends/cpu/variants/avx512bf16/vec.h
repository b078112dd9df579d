// Beside the dot product of bf16 pairs, the vectors of AVX-512 with VNNI: every CPU that has it has them.
#pragma once
#include "backends/cpu/variants/avx512/vec.h"
