#!/usr/bin/env bash
# Runs every libFuzzer target (fuzz/NAME_fuzz.cpp, built by the preset `asan`) on its seeds in fuzz/corpus/NAME.
# FUZZ_SECONDS (60) is shared out evenly. New inputs go to build/asan/fuzz/corpus/NAME, never into the checkout; what
# breaks a target goes to build/asan/found.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-60}
shopt -s nullglob
sources=(fuzz/*_fuzz.cpp)
[ ${#sources[@]} -gt 0 ] || { echo "fuzz: there is no fuzz/*_fuzz.cpp" >&2; exit 1; }

each=$((seconds / ${#sources[@]} > 0 ? seconds / ${#sources[@]} : 1))
status=0
for source in "${sources[@]}"; do
  target=$(basename "$source" .cpp)
  name=${target%_fuzz}
  program=build/asan/fuzz/$target
  grown=build/asan/fuzz/corpus/$name
  seeds=fuzz/corpus/$name
  [ -n "$(ls "$seeds" 2>/dev/null)" ] || { echo "fuzz: $target has no seeds in $seeds" >&2; exit 1; }
  mkdir -p "$grown" build/asan/found
  echo "fuzz: $target for $each s, $(find "$seeds" -type f | wc -l) seeds"
  # An input of a few kB that makes the program take 64 MB or 10 s is as much a finding as a crash.
  if ! "$program" -max_total_time="$each" -timeout=10 -malloc_limit_mb=64 -rss_limit_mb=2048 -max_len=65536 \
    -print_final_stats=1 -verbosity=0 -artifact_prefix="build/asan/found/$target-" \
    "$grown" "$seeds" </dev/null; then
    echo "fuzz: $target FAILED; the input lies in build/asan/found. Again: $program build/asan/found/$target-..." >&2
    status=1
  fi
done
[ $status -ne 0 ] || echo "fuzz: nothing found"
exit $status
