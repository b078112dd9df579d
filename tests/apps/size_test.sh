#!/usr/bin/env bash
# The program stays under 6 MB when stripped, without the bytes of the model inside: those are data. It was 5 MB before the server;
# with its page it may be 6. Usage: size_test.sh PROGRAM MODEL
set -euo pipefail
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
strip -o "$stripped" "$1"
bytes=$(stat -c %s "$stripped") model=$(stat -c %s "$2")
echo "$1: $bytes bytes stripped, of which $model are the model inside; limit 6500000 for the others"
[ $((bytes - model)) -lt 6500000 ]
