// Kernel texts that a program brings at run time, in the kernel dialect (docs/kernel-dialect.md). The build
// puts the frame of such a kernel (kernels/custom.k) and the dialect's words into each language with the C
// preprocessor; here a text is put into that frame, and its words get their arguments. So the dialect's
// headers remain the only description of a language.
#pragma once
#include <string>
#include <string_view>

#include "gpu/runtime.h"

namespace gimbal::gpu {

// A text computes element `at` of a result from up to three operands x0 (also x), x1 and x2, all of f32:
//   STORE(y, at, 2.0f * LOAD(x, at));
// `frame`: the module of gpu/text/kernels.def in one language. Errors: Invalid, with the line of the text,
// the mistake and the expected form.
Failure complete_text(std::string_view frame, std::string_view text, std::string* out);

}  // namespace gimbal::gpu
