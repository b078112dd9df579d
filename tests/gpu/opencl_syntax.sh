#!/usr/bin/env bash
# Usage: opencl_syntax.sh FOLDER: clang accepts every OpenCL C text there: as OpenCL C 1.2, and those for sub-groups (NAME.subgroups,
# empty for kernels that have no use for them) as OpenCL C 2.0 and 3.0, of a target that has them.
set -euo pipefail
check() {
  clang-19 -x cl -Xclang -finclude-default-header -fsyntax-only -DDIVISION_IS_EXACT=0 -Wall -Wextra -Werror \
    -Wno-unused-function -Wno-unused-parameter -Wno-unused-variable "$@"
}
found=0
for text in "$1"/*; do
  [ -s "$text" ] || continue
  case $text in
    *.subgroups) for version in 2.0 3.0; do check "-cl-std=CL$version" --target=spir64-unknown-unknown "$text"; done ;;
    *) check -cl-std=CL1.2 "$text" ;;
  esac
  found=$((found + 1))
done
[ "$found" -gt 0 ] || { echo "there is no text in $1"; exit 1; }
echo "$found texts"
