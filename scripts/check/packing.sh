#!/usr/bin/env bash
# Whether another compiler packs weights as g++ does: the tiles of every format, at -O1, -O2 and -O3, against those of g++ without optimization.
# By hand, for each new compiler or target whose programs run here; `gimbal verify` of the whole program remains the judge.
# Usage: scripts/check/packing.sh COMPILER [OPTION]...       e.g. clang++-19; zig c++ -fno-sanitize=all (PyPI's ziglang)
# It also reports whether the compiler has the fault that src/packing/pack.cpp works around (tests/packing/strided_scales.cpp).
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 2; }
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sources=(src/packing/pack.cpp src/tensor/quant.cpp tests/packing/packed_hashes.cpp)
for source in "${sources[@]}"; do echo "#include \"$PWD/$source\""; done >"$work/all.cpp"  # one file, which zig compiles once
g++ -std=c++20 -O0 -Isrc "$work/all.cpp" -o "$work/expected"
"$work/expected" >"$work/expected.txt"
wrong=0
for level in -O1 -O2 -O3; do
  "$@" -std=c++20 "$level" -Isrc "$work/all.cpp" -o "$work/other"
  "$work/other" >"$work/other.txt"
  if diff "$work/expected.txt" "$work/other.txt" >"$work/diff.txt"; then
    echo "$level: all $(wc -l <"$work/expected.txt") formats as g++ packs them"
  else
    wrong=1
    echo "$level: other tiles than g++: $(awk '/^>/ { printf "%s ", $2 }' "$work/diff.txt")"
  fi
done
"$@" -std=c++20 -O2 tests/packing/strided_scales.cpp -o "$work/scales"
if "$work/scales" >/dev/null; then echo "This compiler does not have clang 22's fault."; else echo "This compiler has clang 22's fault, which pack.cpp works around."; fi
exit $wrong
