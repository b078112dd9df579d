#!/usr/bin/env bash
# `gimbal crossval` with packaged releases of libllama, of four generations of its interface. Usage: run.sh [PROGRAM]
# Needs npm and, the first time, the network; the libraries are kept in build/llama. package-lock.json pins them by hash.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "${1:-$here/../../build/release/gimbal}")
work=$here/../../build/llama
mkdir -p "$work"
cd "$work"
if ! cmp -s "$here/package-lock.json" package-lock.json || [ ! -e node_modules/.complete ]; then
  rm -rf node_modules
  cp "$here/package.json" "$here/package-lock.json" .
  npm ci --silent --no-audit --no-fund --ignore-scripts --prefer-offline
  # With AMX these two compute models of 64 columns wrong: crossval says so, and that the reference agrees with gimbal
  # (docs/crossval.md). Without that library they take the next one.
  rm node_modules/libllama-b4753/bins/linux-x64/libggml-cpu-sapphirerapids.so
  rm node_modules/libllama-b6673/bins/linux-x64/libggml-cpu-sapphirerapids.so
  touch node_modules/.complete
fi
exec python3 "$here/releases.py" "$program" "$work/node_modules"
