#!/usr/bin/env bash
# Builds the web page of `gimbal serve` from web/ into assets/ (page.html.gz, page.policy) and lists what is in it in
# THIRD_PARTY_NOTICES.md. Building gimbal needs none of this: the results are committed.
# Usage: scripts/build/page.sh           builds
#        scripts/build/page.sh --check   builds elsewhere, and fails where something else is committed
# Needs npm (scripts/setup.sh page) and, where web/node_modules is not yet right, the network.
set -euo pipefail
cd "$(dirname "$0")/../.."

(cd web && { [ -e node_modules/.package-lock.json ] && [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --silent --no-audit --no-fund; })
scripts/build/node.sh web/node_modules/typescript/bin/tsc --noEmit -p web
if [ "${1:-}" != --check ]; then
  scripts/build/node.sh web/build.mjs
  scripts/build/node.sh web/notices.mjs THIRD_PARTY_NOTICES.md
  exit 0
fi

built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
scripts/build/node.sh web/build.mjs "$built"
cp THIRD_PARTY_NOTICES.md "$built"
scripts/build/node.sh web/notices.mjs "$built/THIRD_PARTY_NOTICES.md"
# Unpacked: another version of Node may compress to other bytes.
gunzip -c assets/page.html.gz >"$built/committed.html"
gunzip -c "$built/page.html.gz" | cmp - "$built/committed.html" && cmp "$built/page.policy" assets/page.policy &&
  cmp "$built/THIRD_PARTY_NOTICES.md" THIRD_PARTY_NOTICES.md ||
  { echo "assets/page.* or THIRD_PARTY_NOTICES.md are not what web/ gives: run scripts/build/page.sh and commit what it writes"; exit 1; }
