#!/usr/bin/env bash
# Runs the commands that README.md promises: each line "$ command" in the ```console blocks of its quick-start section,
# from the root of the checkout, as a newcomer would. Fails when there is no README, no such section or no command.
# Usage: readme-smoke.sh [--already COMMAND]... [README]    (a command that CI has just run is named, not run again)
set -euo pipefail
cd "$(dirname "$0")/.."
already=()
while [ "${1:-}" = --already ]; do already+=("$2"); shift 2; done
readme=${1:-README.md}
[ -f "$readme" ] || { echo "readme-smoke: there is no $readme" >&2; exit 1; }

# The section goes from a heading with "quick start" in it to the next heading of the same or a higher level.
commands=$(awk '
  /^```/ { fence = fence ? 0 : 1; console = fence && inside && $0 ~ /^```console[ \t]*$/; next }
  !fence && /^#+ / {
    match($0, /^#+/); level = RLENGTH
    if (inside && level <= depth) inside = 0
    if (tolower($0) ~ /quick[- ]?start/) { inside = 1; depth = level }
    next
  }
  console && held { line = $0; sub(/^> /, "", line); held = 0; text = text line; more(); next }
  console && /^\$ / { text = substr($0, 3); more() }
  function more() { if (text ~ /\\$/) { sub(/\\$/, "", text); held = 1 } else print text }
' "$readme")
[ -n "$commands" ] || { echo "readme-smoke: $readme has no '\$ command' in a \`\`\`console block of a quick-start section" >&2; exit 1; }

ran=0
while IFS= read -r command <&3; do
  for done in "${already[@]}"; do
    if [ "$command" = "$done" ]; then echo "readme-smoke: was just run: $command"; continue 2; fi
  done
  # A reader of this checkout has cloned it and stands in it already.
  case $command in "git clone "* | "cd gimbal" | "sudo apt-get install "*) echo "readme-smoke: needs no run here: $command"; continue ;; esac
  echo "readme-smoke: \$ $command"
  status=0
  timeout "${README_SMOKE_TIMEOUT:-600}" bash -euo pipefail -c "$command" </dev/null || status=$?
  if [ $status -ne 0 ]; then echo "readme-smoke: exit code $status from: $command" >&2; exit 1; fi
  ran=$((ran + 1))
done 3<<<"$commands"
[ $ran -gt 0 ] || { echo "readme-smoke: not one command of $readme was run" >&2; exit 1; }
echo "readme-smoke: $ran commands ran"
