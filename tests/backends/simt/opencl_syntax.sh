#!/usr/bin/env bash
# Usage: opencl_syntax.sh FOLDER: clang accepts every OpenCL C text there, as OpenCL C 1.2.
set -euo pipefail
found=0
for text in "$1"/*; do
  clang-19 -x cl -cl-std=CL1.2 -Xclang -finclude-default-header -fsyntax-only -DDIVISION_IS_EXACT=0 -Wall -Wextra -Werror \
    -Wno-unused-function -Wno-unused-parameter -Wno-unused-variable "$text"
  found=$((found + 1))
done
[ "$found" -gt 0 ] || { echo "there is no text in $1"; exit 1; }
echo "$found texts"
