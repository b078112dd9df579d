// NEON with i8mm (ARMv8.6): the same text, unsigned codes times signed activations in one instruction.
#pragma once
#include "backends/cpu/variants/neon/vec.h"
