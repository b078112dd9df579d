#!/usr/bin/env bash
# Runs the tests of the Python package: tests/python/run.sh [FOLDER WITH gimbal/, default: build/release/python]
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(realpath "${1:-build/release/python}")
export PYTHONPATH=$folder:$PWD/tests/python GIMBAL=${GIMBAL:-$(dirname "$folder")/gimbal}
exec "${PYTHON:-/usr/bin/python3}" -m unittest discover -s tests/python -p "test_*.py" "${@:2}"
