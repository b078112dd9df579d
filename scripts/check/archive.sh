#!/usr/bin/env bash
# Builds gimbal as packagers do: from `git archive`, in a bare Debian without a network, with no more than the packages of `scripts/setup.sh build`.
# The default build, without options: the main program computes on the CPU. It is installed elsewhere, and answers there.
# Usage: scripts/check/archive.sh SUITE   after scripts/check/readme.py --root SUITE, which makes that root and installs these packages
set -euo pipefail
cd "$(dirname "$0")/../.."
suite=${1:?usage: archive.sh SUITE}
root=build/bare-root/$suite
[ -e "$root/usr/bin/cmake" ] || { echo "archive: $root has no compiler yet: scripts/check/readme.py --root $suite" >&2; exit 1; }
rm -rf "$root/archive"
mkdir "$root/archive"
git archive HEAD | tar -x -C "$root/archive"
scripts/rig/bare-root.sh run --no-network "$suite" bash -euo pipefail -c '
  cd /archive
  export CCACHE_BASEDIR=$PWD
  if grep -v "^ *lo:" /proc/net/dev | grep ": "; then echo "archive: there is a network"; exit 1; fi
  cmake --preset release >/dev/null
  cmake --build --preset release --target gimbal gimbal_printed
  cmake --install build/release --prefix /opt/gimbal --component gimbal
  cd /
  text=$(/opt/gimbal/bin/gimbal run -p "Once upon a time" -n 12 --greedy --quiet)
  echo "archive: Once upon a time$text"
  [ "$text" = ", there was a little girl named Lily. She" ]
  /opt/gimbal/bin/gimbal backends --json | grep "\"backend\": *\"cpu\"" >/dev/null'
rm -rf "$root/archive"
