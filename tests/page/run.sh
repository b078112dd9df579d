#!/usr/bin/env bash
# The web page in a real browser (Debian's chromium) against `gimbal serve` with the built-in model.
# Usage: run.sh [PROGRAM [SCREENSHOTS]]     SCREENSHOTS: a folder for the pictures of docs/images
# Needs chromium and npm (scripts/setup.sh page) and, the first time, the network; what npm brings is kept in build/page-test.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "${1:-$here/../../build/release/gimbal}")
pictures=${2:+$(realpath -m "$2")}
work=$here/../../build/page-test
mkdir -p "$work"
cp -p "$here"/package*.json "$here"/*.mjs "$work"
cd "$work"
[ -e node_modules/.package-lock.json ] && [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --silent --no-audit --no-fund
"$here/../../scripts/build/node.sh" all.mjs "$program" "$pictures"
[ -z "$pictures" ] || pngquant --force --ext .png 64 "$pictures"/page-*.png  # Debian's pngquant: a third of the bytes
