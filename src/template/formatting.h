// Format strings: Python's % operator and str.format().
#pragma once
#include "template/interpreter.h"

namespace gimbal::tmpl {

// "%s is %5.2f" % values. `values`: a tuple, a dict for "%(name)s", or one value.
Text format_percent(Interpreter&, const Text& pattern, const Value& values);
// "{} and {name:>8}".format(...)
Text format_braces(Interpreter&, const Text& pattern, const Arguments& values);

}  // namespace gimbal::tmpl
