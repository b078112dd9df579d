#!/usr/bin/env bash
# The program, stripped, stays under the limit of shapes/built_files_test.py without the bytes of the model inside: those are data. It was
# 5 MB before the server, 6.8 MB before inspection of libraries, crossval and folders of Hugging Face, 7.6 MB before the decoders of
# pictures, 8.6 MB before their encoders and quantization, 8.9 MB before texts by a libllama. Usage: size_test.sh PROGRAM MODEL
set -euo pipefail
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
strip -o "$stripped" "$1"
bytes=$(stat -c %s "$stripped") model=$(stat -c %s "$2")
limit=$(sed -n 's/^MOST_ALONE = \([0-9_]*\).*/\1/p' "$(dirname "$0")/../shapes/built_files_test.py" | tr -d _)
echo "$1: $bytes bytes stripped, of which $model are the model inside; limit $limit for the others"
[ $((bytes - model)) -lt "$limit" ]
