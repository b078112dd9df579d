// Rewords library errors for the command line: settings become options, and remedies become commands to
// type. Layers below src/apps/ do not know option names.
#pragma once
#include <string>

#include "base/result.h"

namespace gimbal {

// With options in place of setting names, and remedies to type.
Error worded(const Error&);

// Replaces a setting that the library writes as 'context', in quotes, by --ctx.
std::string with_options(std::string text);

}  // namespace gimbal
