#!/usr/bin/env bash
# One command for a machine that has what the developers' lack: a GPU, or a CPU with AMX. It needs the built tree, a shell and
# coreutils; no compiler, no network, no Python. Everything it finds goes into one folder as text and JSON; what was found when the
# time is over, or when it is interrupted, stays.
#
# Usage: hardware-trial.sh [OPTIONS] [MODEL...]
#   MODEL...          GGUF files whose speed is measured on every device (a few; the largest last)
#   --build FOLDER    of the built program (default: build/gpu beside this script, else build/release)
#   --out FOLDER      for the results (default: hardware-trial-DATE; must not exist)
#   --minutes N       in all (default 8)
#   --golden FOLDER   of models whose logits must have the CPU's bits (default: ../shared/golden or tests/data)
#   --only PATTERN    of those models, the ones whose path matches, such as '*stories*'
#   --backend NAME    only GPUs of this backend
#   --software        also GPUs that are emulated on the CPU
#   --no-speed        only whether it is right
#   --no-cpu          without the CPU's own steps
#   --jobs N          models compared at the same time (default 1)
#
# Exit code: 0 all steps passed or were left out for want of hardware or time; 1 something failed; 2 bad usage.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build="" out="" minutes=8 golden="" only="*" backend="" speed=1 cpu=1 jobs=1 software=() models=()
usage() { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --build | --out | --minutes | --golden | --only | --backend | --jobs) [ $# -gt 1 ] || usage; printf -v "${1#--}" %s "$2"; shift ;;
    --software) software=(--allow-software-devices) ;;
    --no-speed) speed=0 ;;
    --no-cpu) cpu=0 ;;
    -*) usage ;;
    *) models+=("$1") ;;
  esac
  shift
done
[[ $minutes =~ ^[0-9]+$ ]] && [ "$minutes" -gt 0 ] || { echo "hardware-trial: --minutes must be a whole number from 1 on, not '$minutes'" >&2; exit 2; }
[[ $jobs =~ ^[0-9]+$ ]] && [ "$jobs" -gt 0 ] || { echo "hardware-trial: --jobs must be a whole number from 1 on, not '$jobs'" >&2; exit 2; }
for folder in "$root/build/gpu" "$root/build/release"; do [ -n "$build" ] || [ ! -x "$folder/gimbal" ] || build=$folder; done
gimbal=$build/gimbal
[ -x "$gimbal" ] || { echo "hardware-trial: there is no program '$gimbal'; name the folder that has it with --build" >&2; exit 2; }
for folder in "$root/../shared/golden" "$root/tests/data"; do [ -n "$golden" ] || [ ! -d "$folder" ] || golden=$folder; done
out=${out:-hardware-trial-$(date +%Y%m%d-%H%M%S)}
mkdir "$out" || exit 2
out=$(cd "$out" && pwd)
export XDG_CACHE_HOME=$out/cache  # nothing is believed that was found out before
SECONDS=0 failed=0

left() { echo $((minutes * 60 - SECONDS)); }
say() { printf '%4d s  %s\n' "$SECONDS" "$*" | tee -a "$out/summary.txt"; }
result() { # name, status, seconds, note
  local note=${4:-}
  printf '{"step": "%s", "status": "%s", "seconds": %d, "note": "%s"}\n' "$1" "$2" "$3" "${note//[\"\\]/ }" >>"$out/summary.jsonl"
  say "$1: $2${note:+ ($note)}"
  [ "$2" != failed ] || failed=1
}
# step NAME SECONDS COMMAND...: standard output into NAME.json or, if it is none, NAME.txt; the rest into NAME.log.
step() {
  local name=$1 most=$2 begin=$SECONDS code=0 rest
  shift 2
  rest=$(left)
  [ "$rest" -gt 3 ] || { result "$name" "left out" 0 "no time left"; return 1; }
  timeout -k 5 $((most < rest ? most : rest)) "$@" >"$out/$name.txt" 2>"$out/$name.log" || code=$?
  [ "$(head -c 1 "$out/$name.txt")" != "{" ] || mv "$out/$name.txt" "$out/$name.json"
  [ -s "$out/$name.log" ] || rm -f "$out/$name.log"
  case $code in
    0) result "$name" passed $((SECONDS - begin)) ;;
    124 | 137) result "$name" "out of time" $((SECONDS - begin)) "what it printed is kept" ;;
    *) result "$name" failed $((SECONDS - begin)) "exit code $code; see $name.log" ;;
  esac
  return $code
}
trap 'say interrupted; exit 1' INT TERM

# ---- the machine
step machine 20 bash -c 'uname -a; lscpu; cat /proc/meminfo | head -3; command -v nvidia-smi >/dev/null && nvidia-smi -q; true'
step version 20 "$gimbal" --version
step doctor 60 "$gimbal" backends --json
# "cuda 0" for every device of a GPU, in the order of choice: `gimbal backends` prints "✓ CUDA (cuda)" and then "[0] name".
devices=$(timeout 60 "$gimbal" backends 2>/dev/null | awk -v software="${#software[@]}" -v only="$backend" '
  /^[^ ]+ .*\(.*\)$/ { match($0, /\([a-z]*\)$/); backend = substr($0, RSTART + 1, RLENGTH - 2); next }
  /^    \[[0-9]+\]/ && backend != "cpu" && (only == "" || backend == only) && (software > 0 || !/\(software: /) { sub(/^ *\[/, ""); sub(/\].*/, ""); print backend, $0 }')
[ -n "$devices" ] || result gpu "left out" 0 "no GPU was found; doctor.json says why"

# ---- a CPU with AMX
tokens=$(seq -s, 1 40)
same_logits() { # model, folder, options of one, "--", options of the other
  local model=$1 here=$2 first=() second=()
  shift 2
  while [ "$1" != -- ]; do first+=("$1"); shift; done
  shift; second=("$@")
  "$gimbal" logits "$model" --tokens "$tokens" --ctx 64 --quiet -o "$here/a.bin" "${first[@]}" >/dev/null 2>"$here/err" || return 2
  "$gimbal" logits "$model" --tokens "$tokens" --ctx 64 --quiet -o "$here/b.bin" "${second[@]}" >/dev/null 2>>"$here/err" || return 2
  cmp -s "$here/a.bin" "$here/b.bin"
}
compare_one() { # model, then as same_logits; prints one line
  local model=$1 here code=0
  shift
  here=$(mktemp -d)
  same_logits "$model" "$here" "$@" || code=$?
  case $code in
    0) echo "same       ${model#"$golden"/}" ;;
    1) echo "DIFFERENT  ${model#"$golden"/}" ;;
    *) echo "refused    ${model#"$golden"/}: $(tail -n 2 "$here/err" | tr '\n' ' ')" ;;
  esac
  rm -rf "$here"
}
# compare NAME SECONDS OPTIONS -- OTHER OPTIONS: the logits of every model by both; a line each in NAME.txt.
compare() {
  local name=$1 end=$((SECONDS + $2)) begin=$SECONDS same different refused total note list=()
  shift 2
  mapfile -t list < <(find -L "$golden" -name '*.gguf' -path "$only" -size -40M ! -path '*/tokenizer/*' ! -path '*/vocab/*' ! -path '*/embed/*' | sort)
  total=${#list[@]}
  for model in "${list[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    [ $SECONDS -lt $end ] && [ "$(left)" -gt 3 ] || break
    compare_one "$model" "$@" >>"$out/$name.txt" &
  done
  wait
  touch "$out/$name.txt"
  same=$(grep -c ^same "$out/$name.txt") different=$(grep -c ^DIFFERENT "$out/$name.txt") refused=$(grep -c ^refused "$out/$name.txt")
  note="$same of $total models have the same bits, $different differ, $refused refused, $((total - same - different - refused)) not reached"
  result "$name" "$([ "$different" = 0 ] && [ "$same" -gt 0 ] && echo passed || echo failed)" $((SECONDS - begin)) "$note"
}
if [ $cpu = 0 ]; then :
elif grep -qw amx_int8 /proc/cpuinfo; then
  step amx-verify 120 "$gimbal" verify --backend cpu --kernel 'cpu.amx.*' --json
  if grep -qw amx_bf16 /proc/cpuinfo; then step amx-bf16-verify 60 "$gimbal" verify --backend cpu --kernel 'cpu.amxbf16.*' --json; fi
  compare amx-bits 90 --backend cpu --cpu-variant amx -- --backend cpu --cpu-variant avx512vnni
  for model in "${models[@]}"; do
    for variant in amx avx512vnni; do
      step "amx-speed-$variant-$(basename "$model" .gguf)" 60 "$gimbal" bench "$model" --backend cpu -p 512 -n 32 -r 2 --cpu-variant $variant --json
    done
  done
else
  result amx "left out" 0 "this CPU has no AMX, or hides it"
fi

# ---- GPUs, one after the other
while read -r kind index; do
  [ -n "$kind" ] || continue
  at=$kind-$index where=(--backend "$kind" --device "$index" "${software[@]}")
  step "$at-verify" 120 "$gimbal" verify "${where[@]}" --json
  compare "$at-bits" 150 "${where[@]}" --strict -- --backend cpu
  text=(run -p "Once upon a time" -n 24 --seed 7 --quiet)
  step "$at-text-cpu" 30 "$gimbal" "${text[@]}" --backend cpu
  for layers in 1 3; do
    step "$at-text-layers-$layers" 60 "$gimbal" "${text[@]}" "${where[@]}" --strict --gpu-layers $layers || continue
    cmp -s "$out/$at-text-cpu.txt" "$out/$at-text-layers-$layers.txt" || result "$at-split-$layers" failed 0 "another text than on the CPU"
  done
  [ $speed = 1 ] || continue
  step "$at-kernels" 90 "$gimbal" bench --kernels --kernel '*.mat_mul*' "${where[@]}" --rows 1,8,512 --milliseconds 50 --megabytes 500 --json
  for model in "${models[@]}"; do
    name=$(basename "$model" .gguf)
    step "$at-speed-$name" 90 "$gimbal" bench "$model" "${where[@]}" --strict -p 512 -n 64 -r 3 --json
    step "$at-sequences-$name" 60 "$gimbal" bench "$model" "${where[@]}" --strict --sequences 1,4,16 -n 16 -r 1 --json
  done
done <<<"$devices"
rm -rf "$out/cache"
say "done; everything is in $out"
exit $failed
