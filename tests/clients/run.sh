#!/usr/bin/env bash
# The official clients of the APIs, unchanged, against `gimbal serve` with the built-in model. Usage: run.sh [PROGRAM]
# Needs npm and, the first time, the network; they are kept in build/clients. package-lock.json says which versions of what they need.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "${1:-$here/../../build/release/gimbal}")
work=$here/../../build/clients
mkdir -p "$work"
cp "$here/clients.mjs" "$work"
cd "$work"
if ! cmp -s "$here/package-lock.json" package-lock.json || [ ! -e node_modules/.complete ]; then
  rm -rf node_modules
  cp "$here/package.json" "$here/package-lock.json" .
  npm ci --silent --no-audit --no-fund --ignore-scripts --prefer-offline
  touch node_modules/.complete
fi
exec node clients.mjs "$program" "$here/../data/vision"
