// Beside tiles of bf16 pairs, the vectors of AVX-512 with VNNI: every CPU that has AMX has them.
#pragma once
#include "backends/cpu/variants/avx512/vec.h"
