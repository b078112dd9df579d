#!/usr/bin/env bash
# Checks of the Python package by other projects: mypy.stubtest for type stubs, array-api-strict for the array API.
# Usage: standards.sh [FOLDER WITH gimbal/, default: build/release/python]. Needs python3-venv and, the first time, the network (PyPI); the judges are
# kept in build/python-standards.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PYTHONPATH=$(realpath "${1:-build/release/python}")
judges=(mypy==2.4.1 array-api-strict==2.6.1 numpy==2.4.6)
venv=build/python-standards
if [ "$(cat "$venv/judges" 2>/dev/null)" != "${judges[*]}" ]; then
  rm -rf "$venv"
  "${PYTHON:-/usr/bin/python3}" -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "${judges[@]}"
  echo "${judges[*]}" >"$venv/judges"
fi
# gimbal.lm_eval needs the harness lm_eval.
MYPYPATH=$PYTHONPATH "$venv/bin/python" -m mypy.stubtest gimbal --ignore-missing-stub --concise --allowlist <(echo "gimbal\.lm_eval.*")
"$venv/bin/python" -W ignore tests/python/array_api_judge.py
