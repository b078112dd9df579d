#!/usr/bin/env bash
# What tests need of PyPI, in a virtual environment at build/NAME-rig. Building gimbal does not need it. Does nothing when it is there.
# Fails, with the reason, when it cannot be had.
# Usage: scripts/rig/python.sh NAME PACKAGE==VERSION...
set -euo pipefail
cd "$(dirname "$0")/../.."

name=$1
shift
rig=$PWD/build/$name-rig
[ "$(cat "$rig/complete" 2>/dev/null || true)" != "$*" ] || exit 0

say() { echo "$name rig: $*" >&2; }
say "fetching $*"
rm -rf "$rig"
python3 -m venv "$rig" || { say "python3 makes no virtual environment (Debian: python3-venv)"; exit 1; }
"$rig/bin/python" -m pip install --quiet --disable-pip-version-check "$@" || { say "pip could not install them (see above)"; exit 1; }
echo "$*" >"$rig/complete"
