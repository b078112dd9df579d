// The library's failures in the words of the command line: a setting is an option here, and a remedy is
// something to type. Nothing below src/apps/ knows these names.
#pragma once
#include <string>

#include "base/result.h"

namespace gimbal {

// With the option in place of each setting that it names, and remedies to type.
Error worded(const Error&);

// The library writes a setting as 'context', in quotes: here it becomes --ctx.
std::string with_options(std::string text);

}  // namespace gimbal
