#pragma once
#include "backends/cpu/variants/avx512bf16/pairs.h"
