#!/usr/bin/env bash
# Builds for 64-bit ARM and runs the tests whose answers depend on the CPU, in QEMU's emulation of a process (slow: the
# other tests stay with the native build). The pinned bits run once per kind of CPU, and must run exactly the variants
# that such a CPU can: the dispatch is tested too.
# Usage: scripts/test-aarch64.sh [quick]    (after: scripts/setup.sh arm; cmake --preset aarch64)
# quick: the pinned bits, certificates of x86-64 and the stories of the reference data alone, as CI does; the stories by a test of
# the engine. The program is only built.
set -euo pipefail
cd "$(dirname "$0")/.."
export GIMBAL_GOLDEN=${GIMBAL_GOLDEN-tests/data}
build=build/aarch64
tests=(half_test quant_test encode_test fixed_math_test kernels_test table_look_up_test golden_logits_test same_bits_test)
program=gimbal
[ "${1-}" = quick ] && tests=() program="gimbal generate_test"

cmake --build --preset aarch64 --target $program pinned_bits_test written_elsewhere_test "${tests[@]}"

# A CPU and the variants that it has: ARMv8.0, ARMv8.2 with dotprod, and all that QEMU knows.
pinned_bits() {
  local cpu=$1 want=$2 output ran
  if ! output=$(QEMU_CPU=$cpu qemu-aarch64 $build/tests/pinned_bits_test 2>&1); then
    echo "$output"
    return 1
  fi
  ran=$(awk '/ hashes$/ { printf "%s%s", sep, $1; sep = " " }' <<<"$output")
  echo "pinned bits on $cpu: $ran"
  [ "$ran" = "$want" ] || { echo "test-aarch64: $cpu should run '$want'"; return 1; }
}
pinned_bits cortex-a53 "baseline neon"
pinned_bits cortex-a76 "baseline neon neondot"
pinned_bits max "baseline neon neondot i8mm"

# Certificates of answers that were written on x86-64.
qemu-aarch64 $build/tests/written_elsewhere_test | tee $build/certificates.log
grep -q "PASSED.* 1 test" $build/certificates.log || { echo "test-aarch64: the certificates were not audited"; exit 1; }

if [ "${1-}" = quick ]; then
  qemu-aarch64 $build/tests/generate_test --gtest_filter=Generate.GreedyTextIsThatOfTheReferenceData | tee $build/stories.log
  grep -q "PASSED.* 1 test" $build/stories.log || { echo "test-aarch64: the stories were not told"; exit 1; }
  echo "all of this ran under emulation ($(qemu-aarch64 --version | head -n 1)), not on an ARM CPU"
  exit
fi

# The reference data's continuation of a story, by the built-in model.
story() { python3 -c 'import json, sys; print(eval(sys.argv[2], json.load(open(sys.argv[1]))["cases"][0]))' \
  tests/data/stories/stories260K-f32.json "$1"; }
want=$(story '",".join(map(str, greedy))')
got=$(qemu-aarch64 $build/gimbal run default -p "$(story prompt)" --greedy -n "$(tr ',' '\n' <<<"$want" | wc -l)" --print-tokens)
got=$(tr -s ' \n,' ',' <<<"$got" | sed 's/^,//; s/,$//')
[ "$got" = "$want" ] || { printf 'test-aarch64: the story went elsewhere\n  want %s\n  got  %s\n' "$want" "$got"; exit 1; }
echo "the story of the built-in model: $(tr ',' '\n' <<<"$want" | wc -l) tokens as the reference has them"

scripts/run-tests.py aarch64 -R "^($(IFS='|'; echo "${tests[*]}"))\$"
echo "all of this ran under emulation ($(qemu-aarch64 --version | head -n 1)), not on an ARM CPU"
