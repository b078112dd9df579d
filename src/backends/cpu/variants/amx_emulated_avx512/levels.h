#pragma once
#include "backends/cpu/variants/amx/levels.h"
