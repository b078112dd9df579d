// NEON with dotprod (ARMv8.2 option): the same text, the dot product of signed bytes in one instruction.
#pragma once
#include "backends/cpu/variants/neon/vec.h"
