#!/usr/bin/env bash
# The official clients of the APIs, unchanged, against `gimbal serve` with the built-in model. Usage: run.sh [PROGRAM]
# Needs npm and, the first time, the network; they are kept in build/clients.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "${1:-$here/../../build/release/gimbal}")
work=$here/../../build/clients
mkdir -p "$work"
cp "$here/package.json" "$here/clients.mjs" "$work"
cd "$work"
npm install --silent --no-audit --no-fund
exec node clients.mjs "$program"
