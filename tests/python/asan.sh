#!/usr/bin/env bash
# Runs the tests of the Python package over a module with AddressSanitizer and UndefinedBehaviorSanitizer, in build/asan. Python itself has none and
# keeps memory until it ends, so leaks are not reported: test_tensor.py counts bytes that stay.
set -euo pipefail
cd "$(dirname "$0")/../.."
cmake --preset asan -DGIMBAL_PYTHON=ON -DPython3_EXECUTABLE=/usr/bin/python3 >/dev/null
cmake --build --preset asan --target gimbal_python
cmake --build --preset release --target gimbal  # the command that the tests start: the preloaded runtime serves one program
runtime=$(clang-19 -print-file-name=libclang_rt.asan-x86_64.so)
ASAN_OPTIONS=detect_leaks=0:halt_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 LD_PRELOAD=$runtime GIMBAL=$PWD/build/release/gimbal \
  exec tests/python/run.sh build/asan/python "$@"
