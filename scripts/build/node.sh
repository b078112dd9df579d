#!/usr/bin/env bash
# Runs Node with these arguments: the system's if it is new enough for the tools of the web page (Debian 12's is not), else the one
# that npm carries as a package.
set -euo pipefail
if node -e 'const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1)' 2>/dev/null; then
  exec node "$@"
fi
exec npm exec --yes --silent --package=node@22.12.0 -- node "$@"
