#!/usr/bin/env bash
# The program with the model inside stays under 5 MB when stripped. Usage: size_test.sh PROGRAM
set -euo pipefail
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
strip -o "$stripped" "$1"
bytes=$(stat -c %s "$stripped")
echo "$1: $bytes bytes stripped, limit 5000000"
[ "$bytes" -lt 5000000 ]
