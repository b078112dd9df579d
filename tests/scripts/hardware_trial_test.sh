#!/usr/bin/env bash
# scripts/hardware-trial.sh with a stand-in for a GPU: every step runs, differences and missing hardware are said, an existing
# folder is not written into. Usage: hardware_trial_test.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trial=$1/scripts/hardware-trial.sh
fail() { echo "FAILED: $*"; cat "$folder"/*/summary.txt 2>/dev/null || true; exit 1; }

"$trial" --build "$2" --out "$folder/good" --golden "$1/tests/data" --only '*stories*q8_0*' --backend cuda --no-speed >/dev/null ||
  fail "a trial in which all is right ended with $?"
grep -q '"step": "cuda-0-verify", "status": "passed"' "$folder/good/summary.jsonl" || fail "the device was not verified"
grep -q '"step": "cuda-0-bits", "status": "passed".*1 of 1 models have the same bits' "$folder/good/summary.jsonl" || fail "no model was compared"
grep -q '"step": "cuda-0-text-layers-3", "status": "passed"' "$folder/good/summary.jsonl" || fail "no layers on both"
grep -q '"devices"' "$folder/good/doctor.json" || fail "what was found is not there"
[ ! -e "$folder/good/cache" ] || fail "its cache is still there"

code=0
"$trial" --build "$2" --out "$folder/good" 2>/dev/null || code=$?
[ $code = 2 ] || fail "an existing folder: exit code $code"
code=0
"$trial" --build "$2" --out "$folder/none" --golden "$1/tests/data" --only '*no such model*' --backend cuda --no-speed >/dev/null || code=$?
[ $code = 1 ] || fail "no model to compare must not pass"
"$trial" --build "$2" --out "$folder/absent" --backend metal --no-speed >/dev/null || fail "no such GPU is no failure"
grep -q '"step": "gpu", "status": "left out"' "$folder/absent/summary.jsonl" || fail "a missing GPU must be said"
echo "hardware trial: passed, refused and left out as it should"
